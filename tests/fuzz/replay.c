/* Runs a fuzz target over its corpus: tests/fuzz/corpus/<name of this program>/. What breaks, ends it. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tap.h"

#define INPUT_MAX (1 << 20)

static int replay(const char *path)
{
	static uint8_t all[INPUT_MAX];
	FILE *file = fopen(path, "rb");
	size_t size;
	uint8_t *data;

	if (!file)
		return 0;
	size = fread(all, 1, sizeof(all), file);
	fclose(file);
	/* Of its own size, so that a sanitizer sees a step beyond it. */
	data = malloc(size + !size);
	if (!data)
		return 0;
	memcpy(data, all, size);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 1;
}

int main(int argc, char **argv)
{
	char dir[PATH_MAX / 2], path[PATH_MAX];
	const char *name = strrchr(argv[0], '/');
	struct dirent *entry;
	int inputs = 0;
	DIR *open;

	name = name ? name + 1 : argv[0];
	snprintf(dir, sizeof(dir), "tests/fuzz/corpus/%.*s", (int)strcspn(name, "."), name);
	if (argc > 1) /* one input, to look at it */
		return !replay(argv[1]);
	open = opendir(dir);
	while (open && (entry = readdir(open))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		inputs += ok(replay(path), "%s", entry->d_name);
	}
	if (open)
		closedir(open);
	ok(inputs > 5, "%d inputs in %s", inputs, dir);
	return done_testing();
}
