/* room.h: what cgroups and the node say of memory, read from made-up trees; ranks of one node. */
#include "room.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "comm_threads.h"
#include "rundir.h"
#include "tap.h"

#define NONE CK_ROOM_UNLIMITED
#define MOUNT_1 \
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
#define MOUNT_CPU "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
#define MOUNT_2 "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"
/* clang-format off */ /* its releases differ on a body in braces */
#define MEMINFO {"/proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable:    4000 kB\n"}
#define GROUP(path, text) {"/sys/fs/cgroup" path, text}
/* clang-format on */

static const struct tree {
	const char *what;
	struct {
		const char *path, *text;
	} files[24];
	uint64_t limit, use, available;
} trees[] = {
	{"nothing at all", {{NULL, NULL}}, NONE, 0, NONE},
	{"the node alone", {MEMINFO}, NONE, 0, 4096000},
	{"a node that is not told",
	 {{"/proc/meminfo", "MemTotal: 9000 kB\nMemFree: 1 kB\n"}},
	 NONE,
	 0,
	 NONE},
	{"no number", {{"/proc/meminfo", "MemAvailable: many kB\n"}}, NONE, 0, NONE},
	{"version 2: max all the way",
	 {MEMINFO,
	  {"/proc/self/cgroup", "0::/job_1/step_0\n"},
	  {"/proc/self/mountinfo", MOUNT_2},
	  GROUP("/job_1/step_0/memory.max", "max\n"),
	  GROUP("/job_1/step_0/memory.high", "max\n"),
	  GROUP("/job_1/step_0/memory.current", "77\n"),
	  GROUP("/job_1/memory.max", "max\n")},
	 NONE,
	 0,
	 4096000},
	{"version 2: the limit is the job's, and the page cache is not counted",
	 {MEMINFO,
	  {"/proc/self/cgroup", "0::/job_1/step_0/task_3\n"},
	  {"/proc/self/mountinfo", MOUNT_CPU MOUNT_2},
	  GROUP("/job_1/step_0/task_3/memory.max", "max\n"),
	  GROUP("/job_1/step_0/memory.max", "max\n"),
	  GROUP("/job_1/memory.max", "900000\n"),
	  GROUP("/job_1/memory.current", "500000\n"),
	  GROUP("/job_1/memory.stat", "anon 1\nfile 99\ninactive_file 30000\nactive_file 20000\n")},
	 900000,
	 450000,
	 4096000},
	{"version 2: the tighter of two, which is not the smaller limit",
	 {{"/proc/self/cgroup", "0::/job_1/step_0\n"},
	  {"/proc/self/mountinfo", MOUNT_2},
	  GROUP("/job_1/step_0/memory.max", "1000\n"),
	  GROUP("/job_1/step_0/memory.current", "100\n"),
	  GROUP("/job_1/memory.max", "5000\n"),
	  GROUP("/job_1/memory.current", "4800\n")},
	 5000,
	 4800,
	 NONE},
	{"version 2: high is a limit, and more used than it allows",
	 {{"/proc/self/cgroup", "0::/job_1\n"},
	  {"/proc/self/mountinfo", MOUNT_2},
	  GROUP("/job_1/memory.max", "9000\n"),
	  GROUP("/job_1/memory.high", "4000\n"),
	  GROUP("/job_1/memory.current", "4100\n"),
	  GROUP("/memory.max", "8000\n"),
	  GROUP("/memory.current", "7000\n")},
	 4000,
	 4100,
	 NONE},
	{"version 2: in a name space of its own",
	 {{"/proc/self/cgroup", "0::/\n"},
	  {"/proc/self/mountinfo", MOUNT_2},
	  GROUP("/memory.max", "3000\n"),
	  GROUP("/memory.current", "1000\n")},
	 3000,
	 1000,
	 NONE},
	{"version 2: above its name space",
	 {{"/proc/self/cgroup", "0::/../job_2\n"},
	  {"/proc/self/mountinfo", MOUNT_2},
	  GROUP("/memory.max", "3000\n"),
	  GROUP("/memory.current", "1000\n")},
	 3000,
	 1000,
	 NONE},
	{"version 2: a container sees a part of the hierarchy",
	 {{"/proc/self/cgroup", "0::/docker/ab/job_1\n"},
	  {"/proc/self/mountinfo",
	   "31 23 0:28 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
	  GROUP("/job_1/memory.max", "2000\n"),
	  GROUP("/job_1/memory.current", "10\n")},
	 2000,
	 10,
	 NONE},
	{"version 2: a container that sees another part",
	 {{"/proc/self/cgroup", "0::/docker/abc\n"},
	  {"/proc/self/mountinfo",
	   "31 23 0:28 /docker/ab /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"},
	  GROUP("/c/memory.max", "1\n"),
	  GROUP("/memory.max", "2000\n")},
	 2000,
	 0,
	 NONE},
	{"version 1: no limit is a number near 2^63",
	 {{"/proc/self/cgroup", "9:name=systemd:/\n4:memory:/slurm/job_1\n0::/\n"},
	  {"/proc/self/mountinfo", MOUNT_CPU MOUNT_1},
	  GROUP("/memory/slurm/job_1/memory.limit_in_bytes", "9223372036854771712\n"),
	  GROUP("/memory/slurm/job_1/memory.usage_in_bytes", "5\n")},
	 NONE,
	 0,
	 NONE},
	{"version 1: nested, the caches of the whole group",
	 {{"/proc/self/cgroup", "3:cpu,cpuacct:/x\n4:hugetlb,memory:/slurm/uid_0/job_1/step_0\n"},
	  {"/proc/self/mountinfo", MOUNT_CPU MOUNT_1},
	  GROUP("/memory/slurm/uid_0/job_1/step_0/memory.limit_in_bytes", "9223372036854771712\n"),
	  GROUP("/memory/slurm/uid_0/job_1/memory.limit_in_bytes", "70000\n"),
	  GROUP("/memory/slurm/uid_0/job_1/memory.usage_in_bytes", "60000\n"),
	  GROUP("/memory/slurm/uid_0/job_1/memory.stat",
		"inactive_file 9\ntotal_inactive_file 4000\ntotal_active_file 1000\n"),
	  GROUP("/memory/slurm/memory.limit_in_bytes", "100000\n"),
	  GROUP("/memory/slurm/memory.usage_in_bytes", "60000\n")},
	 70000,
	 55000,
	 NONE},
	{"both versions, the memory in version 1",
	 {{"/proc/self/cgroup", "4:memory:/a\n0::/b\n"},
	  {"/proc/self/mountinfo",
	   "30 1 0:3 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" MOUNT_1},
	  GROUP("/memory/a/memory.limit_in_bytes", "700\n"),
	  GROUP("/unified/b/cgroup.procs", "1\n")},
	 700,
	 0,
	 NONE},
	{"no mount",
	 {{"/proc/self/cgroup", "0::/a\n"}, {"/proc/self/mountinfo", MOUNT_CPU}},
	 NONE,
	 0,
	 NONE},
	{"no mounts told",
	 {{"/proc/self/cgroup", "0::/a\n"}, GROUP("/a/memory.max", "3\n")},
	 NONE,
	 0,
	 NONE},
	{"a group without files",
	 {{"/proc/self/cgroup", "0::/a\n"}, {"/proc/self/mountinfo", MOUNT_2}},
	 NONE,
	 0,
	 NONE},
	{"lines that are none",
	 {{"/proc/self/cgroup", "\n:::\nmemory\n4:memory\n0:\n0::"},
	  {"/proc/self/mountinfo",
	   "\n - \n1 - cgroup2\nx - cgroup2 cgroup2 rw\n1 2 3 - cgroup cgroup memory\n"},
	  {"/proc/meminfo", "\n\nMemAvailable:"}},
	 NONE,
	 0,
	 NONE},
};

static void put(const char *root, const char *path, const char *text)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		mkdir(full, 0777);
		*p = '/';
	}
	put_file(full, text);
}

static void test_trees(void)
{
	for (size_t i = 0; i < sizeof(trees) / sizeof(trees[0]); i++) {
		const struct tree *t = &trees[i];
		char root[PATH_MAX];
		struct ck_room room = {.limit = 5, .ranks = 3};

		snprintf(root, sizeof(root), "%s/%zu", test_tmpdir(), i);
		mkdir(root, 0777);
		for (size_t f = 0; t->files[f].path; f++)
			put(root, t->files[f].path, t->files[f].text);
		ck_room_look(&ck_io_posix, root, &room);
		is_u64(room.limit, t->limit, "%s: limit", t->what);
		is_u64(room.use, t->use, "%s: use", t->what);
		is_u64(room.available, t->available, "%s: available", t->what);
		is_u64(room.ranks, 3, "%s: ranks stay", t->what);
	}
}

static void test_here(void)
{
	struct ck_room room = {.ranks = 1};

	ck_room_look(&ck_io_posix, "", &room);
	ok(room.available > (1 << 20) && room.available < NONE, "this machine has %llu bytes",
	   (unsigned long long)room.available);
}

/* ---- ranks of a node ---- */

#define RANKS 5

struct member {
	struct ck_threads *threads;
	int rank, rc;
	char root[PATH_MAX];
	uint32_t ranks;
};

static void *count(void *arg)
{
	struct member *m = arg;
	struct ck_error err = CK_ERROR_INIT;
	struct ckpt_comm table;
	struct ck_comm comm;

	ck_threads_comm(m->threads, m->rank, &table);
	ck_comm_init(&comm, &table, 20000, &err);
	m->rc = ck_room_ranks(&comm, &ck_io_posix, m->root, &m->ranks, &err);
	ck_comm_fini(&comm);
	return NULL;
}

static void test_ranks(void)
{
	static const char *const nodes[RANKS] = {"a", "b", "a", "b", "b"};
	static const uint32_t wanted[RANKS] = {2, 3, 2, 3, 3};
	static struct member members[RANKS];
	struct ck_threads *threads = ck_threads_new(RANKS);
	pthread_t ids[RANKS];

	for (int r = 0; r < RANKS; r++) {
		members[r] = (struct member){.threads = threads, .rank = r};
		snprintf(members[r].root, sizeof(members[r].root), "%s/node-%s", test_tmpdir(),
			 nodes[r]);
		mkdir(members[r].root, 0777);
		put(members[r].root, "/proc/sys/kernel/random/boot_id", nodes[r]);
	}
	for (int r = 0; r < RANKS; r++)
		pthread_create(&ids[r], NULL, count, &members[r]);
	for (int r = 0; r < RANKS; r++) {
		pthread_join(ids[r], NULL);
		is_int(members[r].rc, 0, "rank %d has counted", r);
		is_u64(members[r].ranks, wanted[r], "... those of its node");
	}
	ck_threads_free(threads);
}

int main(void)
{
	test_trees();
	test_here();
	test_ranks();
	return done_testing();
}
