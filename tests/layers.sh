#!/bin/bash
# Check the layers: a file includes only what lies below it. Exit 1 with each arrow that points up.
#
# lib/ is one ladder; runtime/ and plugin/ stand on it, side by side; programs use <ckpt.h> alone.
set -u
cd "$(dirname "$0")/.." || exit 2

# One rung a line, lowest first; the files of a rung are parts of one module.
ladder="
error env parallel
parse staging
buf
names
io io_dir io_posix io_uring io_fault io_fault_impl io_fault_queue io_fault_rules
queue
dirfile
crc32
sha256_ni
sha256
digest seal
json json_scan
tensor tiling
cut
safetensors safetensors_print
items items_pack items_compare layout deal
boxtree slabs values
reshard
shard shard_impl shard_open shard_read shard_expect shard_cut shard_plan shard_options shard_write
manifest manifest_check fields files record user
run claim owner mark leave pin
sums
catalog choose resolve
commit salvage sweep
verify verify_impl verify_files verify_items
share
source
rotate"

bad=0
complain() {
	echo "layers: $1" >&2
	bad=1
}

declare -A rung
n=0
while read -r modules; do
	n=$((n + 1))
	for module in $modules; do
		rung[$module]=$n
	done
done <<<"$ladder"

for file in lib/*.[ch] runtime/*.[ch] plugin/*.[ch]; do
	[ -e "$file" ] || continue
	dir=${file%%/*}
	while read -r header; do
		base=${header%.h}
		case $dir in
		lib)
			self=${file##*/}
			own=${rung[${self%.*}]:-0}
			other=${rung[$base]:-99}
			[ "$own" != 0 ] || complain "$file: is not on the ladder of tests/layers.sh"
			[ "$other" -le "$own" ] || complain "$file: includes $header, which lies above it or outside of lib/"
			;;
		*) [ -e "lib/$header" ] || [ -e "$dir/$header" ] || complain "$file: includes $header, which is in neither lib/ nor $dir/" ;;
		esac
	done < <(sed -n 's/^#include "\([^"]*\)".*/\1/p' "$file")
	case $file in
	runtime/comm_mpi.c | runtime/ckpt_mpi.h) ;;
	*) grep -q '^#include <mpi\.h>' "$file" && complain "$file: includes <mpi.h>; only runtime/comm_mpi.c and ckpt_mpi.h may" ;;
	esac
	[ "$dir" = plugin ] || ! grep -q '^#include <slurm/' "$file" || complain "$file: includes slurm headers; only plugin/ may"
done

# lib/ never prints, exits or aborts; only the seam makes file-system calls.
grep -nE '\b(printf|fprintf|puts|perror|exit|_exit|abort)[[:space:]]*\(' lib/*.c | grep -vE 'io_fault\.c' &&
	complain "lib/ prints, exits or aborts (above)"
grep -nE '[^_>.a-z](open|openat|fsync|rename|unlink|mkdir|rmdir|opendir|fopen|pwrite|pread|lstat|stat)[[:space:]]*\(' \
	lib/*.c runtime/*.c | grep -vE 'lib/(io|io_posix|io_fault)\.c' &&
	complain "a file-system call outside of lib/io (above)"

# Programs see the public API alone.
grep -nE '^#include "(.*/)?(lib|runtime)/' contrib/examples/*/*.[ch] 2>/dev/null && complain "an example includes internals (above)"

[ $bad = 0 ] && echo "layers: ok"
exit $bad
