#include "room.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"

#define TEXT_MAX (256 << 10)
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Where one version keeps its numbers. */
struct version {
	const char *fs; /* type of its file system */
	const char *limits[2];
	const char *use;
	const char *cache[2]; /* in memory.stat, of the whole group */
};

static const struct version versions[] = {
	{"cgroup",
	 {"memory.limit_in_bytes", NULL},
	 "memory.usage_in_bytes",
	 {"total_inactive_file", "total_active_file"}},
	{"cgroup2",
	 {"memory.max", "memory.high"},
	 "memory.current",
	 {"inactive_file", "active_file"}},
};

/* A text, "" when it cannot be read. */
static void read_text(const struct ck_io *io, struct ck_buf *out, const char *dir, const char *name)
{
	char path[PATH_MAX];

	ck_buf_clear(out);
	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", dir, *name == '/' ? "" : "/", name) <
	    sizeof(path))
		ck_io_read_stream(io, path, TEXT_MAX, out, NULL);
	if (!out->data)
		ck_buf_add_str(out, "");
}

/* The number behind a word at the beginning of a line; fallback without one. */
static uint64_t number_of(const struct ck_buf *text, const char *word, uint64_t fallback)
{
	const char *line = text->data;
	size_t len = strlen(word);
	uint64_t number;

	while (line && strncmp(line, word, len) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return line && sscanf(line + len, "%" SCNu64, &number) == 1 ? number : fallback;
}

/* One cgroup: does it leave less room than those before? */
static void look_at_group(const struct ck_io *io, const struct version *v, const char *dir,
			  struct ck_buf *text, struct ck_room *room)
{
	uint64_t limit = CK_ROOM_UNLIMITED, use, cache = 0;

	for (size_t i = 0; i < 2 && v->limits[i]; i++) {
		uint64_t number;

		read_text(io, text, dir, v->limits[i]);
		number = number_of(text, "", CK_ROOM_UNLIMITED); /* "max" is no number */
		limit = number < limit ? number : limit;
	}
	if (limit >= CK_ROOM_UNLIMITED / 4) /* version 1 says "none" with a number near 2^63 */
		return;
	read_text(io, text, dir, v->use);
	use = number_of(text, "", 0);
	read_text(io, text, dir, "memory.stat");
	for (size_t i = 0; i < 2; i++)
		cache += number_of(text, v->cache[i], 0);
	use = use > cache ? use - cache : 0;
	if (room->limit == CK_ROOM_UNLIMITED ||
	    (int64_t)(limit - use) < (int64_t)(room->limit - room->use)) {
		room->limit = limit;
		room->use = use;
	}
}

/* From the cgroup at `path` below the mount up to the mount itself. */
static void walk(const struct ck_io *io, const struct version *v, const char *mount, char *path,
		 struct ck_room *room)
{
	struct ck_buf text = CK_BUF_INIT;
	char dir[PATH_MAX];

	for (;;) {
		char *last = strrchr(path, '/');

		if ((size_t)snprintf(dir, sizeof(dir), "%s%s", mount, path) < sizeof(dir))
			look_at_group(io, v, dir, &text, room);
		if (!last)
			break;
		*last = '\0';
	}
	ck_buf_fini(&text);
}

/* A line of mountinfo, as proc(5) has it. False: of another file system, or of another controller. */
static bool parse_mount(const char *line, const struct version *v, char top[static PATH_MAX],
			char point[static PATH_MAX])
{
	const char *rest = strstr(line, " - ");
	const char *end = strchr(line, '\n');
	char type[32], options[512];

	if (!rest || (end && rest > end) || sscanf(rest, " - %31s %*s %511s", type, options) != 2 ||
	    strcmp(type, v->fs) != 0 || sscanf(line, "%*d %*d %*s %4095s %4095s", top, point) != 2)
		return false;
	return v != &versions[0] || strstr(options, "memory");
}

/* The mount of a version, and the path below it of what is `path` in the whole hierarchy. */
static bool find_mount(const struct ck_buf *mounts, const struct version *v, const char *root,
		       char *path, char mount[static PATH_MAX])
{
	char top[PATH_MAX], point[PATH_MAX];
	const char *line = mounts->data;
	size_t len;

	while (line && !parse_mount(line, v, top, point)) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line || (size_t)snprintf(mount, PATH_MAX, "%s%s", root, point) >= PATH_MAX)
		return false;
	/* A container may see a part of the hierarchy alone, or be named by its whole path. */
	len = strcmp(top, "/") == 0 ? 0 : strlen(top);
	if (strncmp(path, top, len) == 0 && (path[len] == '/' || !path[len]))
		memmove(path, path + len, strlen(path + len) + 1);
	else
		*path = '\0';
	if (strcmp(path, "/") == 0 || strncmp(path, "/..", 3) == 0)
		*path = '\0';
	return true;
}

/* "4:memory:/slurm/job_7" or "0::/slurm/job_7": which version, and its path. NULL: neither. */
static const struct version *parse_group(const char *line, char path[static PATH_MAX])
{
	char controllers[512];

	if (sscanf(line, "0::%4095[^\n]", path) == 1)
		return &versions[1];
	if (sscanf(line, "%*d:%511[^:]:%4095[^\n]", controllers, path) == 2 &&
	    strstr(controllers, "memory"))
		return &versions[0];
	return NULL;
}

static void look_at_groups(const struct ck_io *io, const char *root, struct ck_room *room)
{
	struct ck_buf groups = CK_BUF_INIT, mounts = CK_BUF_INIT;
	char path[PATH_MAX], mount[PATH_MAX];

	read_text(io, &groups, root, "/proc/self/cgroup");
	read_text(io, &mounts, root, "/proc/self/mountinfo");
	for (const char *line = groups.data; line && *line;) {
		const struct version *v = parse_group(line, path);

		if (v && find_mount(&mounts, v, root, path, mount))
			walk(io, v, mount, path, room);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	ck_buf_fini(&groups);
	ck_buf_fini(&mounts);
}

void ck_room_look(const struct ck_io *io, const char *root, struct ck_room *room)
{
	struct ck_buf meminfo = CK_BUF_INIT;
	uint64_t kib;

	*room = (struct ck_room){.limit = CK_ROOM_UNLIMITED,
				 .available = CK_ROOM_UNLIMITED,
				 .ranks = room->ranks};
	read_text(io, &meminfo, root, "/proc/meminfo");
	kib = number_of(&meminfo, "MemAvailable:", CK_ROOM_UNLIMITED);
	if (kib < CK_ROOM_UNLIMITED / 1024)
		room->available = kib * 1024;
	ck_buf_fini(&meminfo);
	look_at_groups(io, root, room);
}

/* A number of the node that this process is on: FNV-1a of its boot id, else of its name. */
static uint64_t node_number(const struct ck_io *io, const char *root)
{
	struct ck_buf text = CK_BUF_INIT;
	uint64_t hash = UINT64_C(14695981039346656037);
	char host[256] = "";

	read_text(io, &text, root, BOOT_ID);
	if (!text.len && gethostname(host, sizeof(host) - 1) == 0)
		ck_buf_add_str(&text, host);
	for (size_t i = 0; i < text.len; i++)
		hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(1099511628211);
	ck_buf_fini(&text);
	return hash;
}

int ck_room_ranks(struct ck_comm *comm, const struct ck_io *io, const char *root, uint32_t *ranks,
		  struct ck_error *err)
{
	struct ck_per_rank gathered = CK_PER_RANK_INIT;
	uint64_t mine = node_number(io, root), bytes = 0, *all;
	void *data = NULL;
	int rc = ck_comm_gather(comm, 0, &mine, sizeof(mine), &gathered, err);

	if (rc)
		return rc;
	if (gathered.data) {
		data = gathered.data;
		bytes = gathered.offsets[comm->table.size];
	}
	rc = ck_comm_bcast_new(comm, 0, &data, &bytes, err);
	all = data;
	if (!rc) {
		*ranks = 0;
		for (size_t r = 0; r < bytes / sizeof(*all); r++)
			*ranks += all[r] == mine;
	}
	if (data != gathered.data)
		free(data);
	ck_per_rank_fini(&gathered);
	return rc;
}
