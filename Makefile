# slurm-ckpt: `make` builds, `make check` tests, `make demo` shows it, `make help` lists the rest.
#
# Knobs: PREFIX DESTDIR CC MPICC SLURM_CFLAGS CFLAGS VARIANT (release asan tsan); SLURM_PREFIX, of another
# Slurm than the system's, to build for and test on; HAVE_ISAL= and HAVE_URING= build without what makes
# it faster.
# V=1 shows the commands. Objects go to build/<variant>/. A part whose dependency is missing is skipped, aloud.

PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
SPANKDIR ?= $(LIBDIR)/slurm
MPICC ?= mpicc
SLURM_PREFIX ?= $(MINICLUSTER_SLURM)
VARIANT ?= $(if $(SLURM_PREFIX),$(notdir $(SLURM_PREFIX)),release)
VERSION := 0.1.0

B := build/$(VARIANT)
Q := $(if $(V),,@)
say = $(if $(V),,@echo "  $(1)	$@")
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Werror
SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined
SANITIZE_tsan := -fsanitize=thread
CFLAGS ?= -O2 -g
HARDEN := -D_FORTIFY_SOURCE=2 -fstack-protector-strong
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE -DCK_VERSION='"$(VERSION)"' $(WARN) $(CFLAGS) \
	$(if $(SANITIZE_$(VARIANT)),$(SANITIZE_$(VARIANT)) -O1,$(HARDEN)) \
	-fPIC -ffunction-sections -fdata-sections -pthread -MMD -MP -Ilib -Iruntime
ALL_LDFLAGS := $(SANITIZE_$(VARIANT)) -pthread -Wl,-z,relro -Wl,-z,now $(LDFLAGS)
LIBS := -lcjson -lcrypto -lz -lm

# What is there to build with.
has = $(shell printf '%s\n' '$(1)' | $(2) -E -x c - >/dev/null 2>&1 && echo yes)
SLURM_CFLAGS ?= $(if $(SLURM_PREFIX),-I$(SLURM_PREFIX)/include)
# Warnings in Slurm's headers are not ours to mend.
SLURM_INCLUDE := $(SLURM_CFLAGS:-I%=-isystem%)
export MINICLUSTER_SLURM := $(SLURM_PREFIX)
HAVE_MPI := $(call has,#include <mpi.h>,$(MPICC))
HAVE_ISAL := $(call has,#include <isa-l/crc.h>,$(CC))
HAVE_URING := $(call has,#include <liburing.h>,$(CC))
HAVE_SLURM := $(call has,#include <slurm/spank.h>,$(CC) $(SLURM_CFLAGS))

# What makes it faster where it is there.
ifeq ($(HAVE_ISAL),yes)
ALL_CFLAGS += -DCK_HAVE_ISAL
LIBS += -lisal
endif
ifeq ($(HAVE_URING),yes)
ALL_CFLAGS += -DCK_HAVE_URING
LIBS += -luring
endif

LIB_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard lib/*.c))
RUNTIME_OBJ := $(patsubst %.c,$(B)/%.o,$(filter-out runtime/comm_mpi.c runtime/cmd_%,$(wildcard runtime/*.c)))
CMD_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard runtime/cmd_*.c))
PLUGIN_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard plugin/*.c))
PRELOAD := $(patsubst %.c,$(B)/%.so,$(wildcard tests/preload/*.c))
SUPPORT_OBJ := $(patsubst %.c,$(B)/%.o,$(wildcard tests/support/*.c))
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/unit/%.t,$(wildcard tests/unit/*.c))
FUZZ := $(filter-out replay,$(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c)))
FUZZ_REPLAY := $(patsubst %,$(B)/tests/fuzz/%.t,$(FUZZ))
BENCH_MPI := $(B)/tests/bench/async
BENCH := $(filter-out $(BENCH_MPI),$(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(wildcard tests/bench/*.c)))
PLUGIN_UNIT := $(patsubst tests/plugin/%.c,$(B)/tests/plugin/%.t,$(wildcard tests/plugin/*.c))
BENCH_LIB := $(patsubst %.c,$(B)/%.o,$(wildcard tests/bench/lib/*.c))
MPI_UNIT := $(patsubst tests/mpi/%.c,$(B)/tests/mpi/%.bin,$(wildcard tests/mpi/*.c))

PARTS := $(B)/libckpt.so.0 $(B)/ckpt
ifeq ($(HAVE_MPI),yes)
PARTS += $(B)/libckpt_mpi.so.0 $(B)/train
endif
ifeq ($(HAVE_SLURM),yes)
PARTS += $(B)/plugin/ckpt.so
endif

.PHONY: all faults fuzz check check-full check-other check-slurm check-unit asan tsan bench bench-peers lint format layers demo \
	install uninstall clean help skipped
.DELETE_ON_ERROR:

all: skipped $(PARTS)

skipped:
	@$(if $(HAVE_MPI),:,echo "skipped: libckpt_mpi and the example: no mpi.h with MPICC=$(MPICC) (contrib/deps.sh installs Open MPI)")
	@$(if $(HAVE_SLURM),:,echo "skipped: the SPANK plugin: no slurm/spank.h (contrib/deps.sh installs libslurm-dev; SLURM_PREFIX=…)")
	@$(if $(HAVE_ISAL),:,echo "slower: CRC-32 by zlib: no isa-l/crc.h (contrib/deps.sh installs libisal-dev)")
	@$(if $(HAVE_URING),:,echo "slower: disk and CPU overlap by threads: no liburing.h (contrib/deps.sh installs liburing-dev)")

help:
	@echo "all                build libraries, command, plugin and example into build/release"
	@echo "install uninstall  PREFIX=/usr/local DESTDIR= SPANKDIR=PREFIX/lib/slurm"
	@echo "demo               a job on a private Slurm cluster that is preempted, loses a node, and resumes"
	@echo "check check-full   all tests: one case per behaviour, every case; check-unit: no MPI, no cluster"
	@echo "check-other        the demo and the tests on the other Debian release (12 or 13), in a folder"
	@echo "check-slurm        on a Slurm built from source: SLURM_SOURCE=tarball SLURM_PREFIX=/opt/slurm-25.11"
	@echo "asan tsan fuzz     the unit tests under sanitizers; the parsers under libFuzzer"
	@echo "faults             kills and errors at each system call of saves, starts and commands"
	@echo "bench bench-peers  speed, as ratios to the hardware; to what else one might use"
	@echo "lint layers format clang-tidy, cppcheck, shellcheck; the table of layers; clang-format"

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(B)/runtime/comm_mpi.o $(B)/tests/mpi/%.o $(BENCH_MPI:=.o) $(B)/contrib/examples/train/%.o: CC := $(MPICC)
$(B)/plugin/%.o $(B)/tests/plugin/%.o: ALL_CFLAGS += $(SLURM_INCLUDE) -Iplugin
$(B)/tests/%.o: ALL_CFLAGS += -Itests/support -Itests/fuzz -Itests/bench/lib
# Bit-exact training: no fused multiply-add where the compiler likes one.
$(B)/contrib/examples/train/%.o: ALL_CFLAGS += -ffp-contract=off

# Libraries: the core and the runtime in one, exporting <ckpt.h>; MPI beside it.
$(B)/libckpt.a: $(LIB_OBJ) $(RUNTIME_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/libckpt.so.0: $(LIB_OBJ) $(RUNTIME_OBJ) runtime/libckpt.map
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,libckpt.so.0 -Wl,--version-script=runtime/libckpt.map \
		-Wl,--gc-sections $(filter %.o,$^) -o $@ $(LIBS)
	$(Q)ln -sf libckpt.so.0 $(B)/libckpt.so

$(B)/libckpt_mpi.so.0: $(B)/runtime/comm_mpi.o $(B)/lib/error.o $(B)/libckpt.so.0
	$(call say,LD)
	$(Q)$(MPICC) $(ALL_LDFLAGS) -shared -Wl,-soname,libckpt_mpi.so.0 -Wl,--version-script=runtime/libckpt.map \
		$(filter %.o,$^) -o $@ -L$(B) -lckpt
	$(Q)ln -sf libckpt_mpi.so.0 $(B)/libckpt_mpi.so

$(B)/ckpt: $(CMD_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS)

# The plugin's symbols of Slurm come from the process that loads it; it hashes nothing, so it must not
# bring libcrypto into Slurm's daemons.
$(B)/plugin/ckpt.so: $(PLUGIN_OBJ) $(B)/libckpt.a plugin/ckpt.map
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,ckpt.so -Wl,--version-script=plugin/ckpt.map \
		-Wl,-z,nodelete -Wl,-z,noexecstack -Wl,--gc-sections $(PLUGIN_OBJ) $(B)/libckpt.a -o $@ -lcjson

$(B)/train: $(patsubst %.c,$(B)/%.o,$(wildcard contrib/examples/train/*.c)) $(B)/libckpt_mpi.so.0
	$(call say,LD)
	$(Q)$(MPICC) $(ALL_LDFLAGS) $(filter %.o,$^) -o $@ -L$(B) -lckpt_mpi -lckpt -lm \
		-Wl,-rpath,'$$ORIGIN' -Wl,-rpath,'$$ORIGIN/../lib'

# Tests: one program per module; real ranks; the plugin; the cluster.
$(B)/tests/unit/%.t: $(B)/tests/unit/%.o $(SUPPORT_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS) -lm
$(B)/tests/fuzz/%.t: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/replay.o $(SUPPORT_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS) -lm
$(BENCH): $(B)/tests/bench/%: $(B)/tests/bench/%.o $(BENCH_LIB) $(SUPPORT_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS) -lm
$(BENCH_MPI): %: %.o $(BENCH_LIB) $(B)/runtime/comm_mpi.o $(SUPPORT_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(MPICC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS) -lm
$(B)/tests/mpi/%.bin: $(B)/tests/mpi/%.o $(B)/runtime/comm_mpi.o $(SUPPORT_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(MPICC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS) -lm
$(B)/tests/plugin/%.t: $(B)/tests/plugin/%.o $(filter-out %/ckpt_spank.o,$(PLUGIN_OBJ)) $(SUPPORT_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--gc-sections -Wl,--unresolved-symbols=ignore-all $^ -o $@ $(LIBS)

# Preloaded into Slurm's commands, to make fail what does not by itself.
$(B)/tests/preload/%.so: $(B)/tests/preload/%.o
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared $^ -o $@
$(PRELOAD:.so=.o): ALL_CFLAGS += $(SLURM_INCLUDE)

# tsan alone stretches the time limits of the tests already.
PROVE := prove -j $(if $(filter tsan,$(VARIANT)),1,2) --timer
check-unit: $(UNIT) $(FUZZ_REPLAY) $(B)/ckpt
	$(PROVE) $(wildcard tests/*.t) $(UNIT) $(FUZZ_REPLAY)

FAULTS := $(B)/tests/faults/inject $(B)/tests/faults/life
$(FAULTS): $(B)/tests/faults/%: $(B)/tests/faults/%.o $(SUPPORT_OBJ) $(B)/libckpt.a
	$(call say,LD)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ -o $@ $(LIBS)

# Strike the library and the command at their system calls: all of them, for hours. SHARE=0/10 takes a tenth.
SHARE ?= 0/1
faults: $(FAULTS) $(B)/ckpt
	tests/faults/sweep $(B) --share $(SHARE)
	tests/faults/powercut $(B) --random 20 --share $(SHARE)

check-build: all $(FAULTS) $(UNIT) $(FUZZ_REPLAY) $(if $(HAVE_SLURM),$(PLUGIN_UNIT) $(PRELOAD)) $(if $(HAVE_MPI),$(MPI_UNIT))

check: check-build
	tests/run $(B) fast
check-full: check-build
	tests/run $(B) full

# The demo and the tests on the Debian release that this machine is not, with its Slurm and Open MPI.
check-other:
	contrib/other-debian up
	contrib/other-debian run sh -c 'contrib/demo && make -j2 check'

# All tests on a Slurm that is built from source: SLURM_SOURCE=slurm-25.11.7.tar.bz2 or the unpacked folder.
check-slurm:
	contrib/slurm-from-source "$(SLURM_SOURCE)" "$(SLURM_PREFIX)"
	$(MAKE) check

# libFuzzer over each target; new inputs go to build/fuzz/<target>/. FUZZ_SECONDS=600 make fuzz
FUZZ_SECONDS ?= 60
fuzz: $(patsubst %,fuzz-%,$(FUZZ))
fuzz-%: tests/fuzz/%.c $(wildcard lib/*.[ch])
	@mkdir -p build/fuzz/$*
	$(Q)clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -Ilib -Itests/fuzz \
		$< $(wildcard lib/*.c) -o build/fuzz/$*.bin $(LIBS)
	build/fuzz/$*.bin -max_total_time=$(FUZZ_SECONDS) -max_len=16384 build/fuzz/$* tests/fuzz/corpus/$*

# Ratios against limits measured in the same run; QUICK=1 takes a tenth of the time.
bench: $(BENCH) $(if $(HAVE_MPI),$(BENCH_MPI))
	tests/bench/run $(B)

# Against what there is instead, in turns on one disk; PEERS="dcp course" chooses. Wants python3-torch.
bench-peers: $(B)/tests/bench/job
	tests/bench/run-peers $(B) $(PEERS)

asan tsan:
	TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp $(TSAN_OPTIONS)" $(MAKE) VARIANT=$@ check-unit

SOURCES := $(wildcard lib/*.[ch] runtime/*.[ch] plugin/*.[ch] tests/*/*.[ch] tests/bench/lib/*.[ch] contrib/examples/*/*.[ch])
lint:
	tests/lint.sh $(SLURM_CFLAGS) $(filter -DCK_HAVE_%,$(ALL_CFLAGS))
format:
	clang-format -i $(SOURCES)
layers:
	tests/layers.sh

demo:
	contrib/demo

MANS := $(wildcard contrib/man/*.[1-9])
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 $(B)/ckpt $(DESTDIR)$(PREFIX)/bin/
	install -m 644 runtime/ckpt.h $(DESTDIR)$(PREFIX)/include/
	install -m 755 $(B)/libckpt.so.0 $(DESTDIR)$(LIBDIR)/
	$(Q)ln -sf libckpt.so.0 $(DESTDIR)$(LIBDIR)/libckpt.so
ifeq ($(HAVE_MPI),yes)
	install -m 644 runtime/ckpt_mpi.h $(DESTDIR)$(PREFIX)/include/
	install -m 755 $(B)/libckpt_mpi.so.0 $(DESTDIR)$(LIBDIR)/
	$(Q)ln -sf libckpt_mpi.so.0 $(DESTDIR)$(LIBDIR)/libckpt_mpi.so
endif
	$(if $(DESTDIR),,[ "$$(id -u)" != 0 ] || ldconfig)	# a package does that itself
ifeq ($(HAVE_SLURM),yes)
	install -d $(DESTDIR)$(SPANKDIR)
	install -m 755 $(B)/plugin/ckpt.so $(DESTDIR)$(SPANKDIR)/
endif
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' runtime/ckpt.pc.in \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/ckpt.pc
	for m in $(MANS); do d=$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}; install -d $$d && install -m 644 $$m $$d/; done

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/ckpt $(DESTDIR)$(PREFIX)/include/ckpt.h $(DESTDIR)$(PREFIX)/include/ckpt_mpi.h
	rm -f $(DESTDIR)$(LIBDIR)/libckpt.so* $(DESTDIR)$(LIBDIR)/libckpt_mpi.so* $(DESTDIR)$(LIBDIR)/pkgconfig/ckpt.pc
	rm -f $(DESTDIR)$(SPANKDIR)/ckpt.so
	for m in $(notdir $(MANS)); do rm -f $(DESTDIR)$(PREFIX)/share/man/man$${m##*.}/$$m; done

clean:
	rm -rf build

.SECONDARY:
-include $(shell find build -name '*.d' 2>/dev/null)
