/*
 * The small texts: numbers, times, intervals, sizes, dates, names of runs and in a run's directory, choices. The
 * first byte says which. What is accepted lies in its range and is printed as it was, where there is a printer.
 */
#include <string.h>

#include "choose.h"
#include "fuzz.h"
#include "names.h"
#include "parse.h"

#define TEXT_MAX 300

static void time_and_back(const char *text, struct ck_error *err)
{
	char again[32];
	int64_t epoch;

	if (ck_parse_time("f", text, &epoch, err) == 0)
		fuzz_expect(strcmp(ck_format_time(epoch, again), text) == 0);
}

static void names(const char *text)
{
	char again[CK_NAME_MAX];
	struct ck_step_id id;
	uint64_t generation;
	uint32_t rank, part;

	if (ck_is_step(text, &id))
		fuzz_expect(strcmp(ck_name_step(id, again), text) == 0);
	if (ck_is_saving(text, &id))
		fuzz_expect(strcmp(ck_name_saving(id, again), text) == 0);
	if (ck_is_deleting(text, &id))
		fuzz_expect(strcmp(ck_name_deleting(id, again), text) == 0);
	if (ck_is_salvage(text, &id))
		fuzz_expect(strcmp(ck_name_salvage(id, again), text) == 0);
	if (ck_is_pin(text, &id))
		fuzz_expect(strcmp(ck_name_pin(id, again), text) == 0);
	if (ck_is_generation(text, &generation))
		fuzz_expect(strcmp(ck_name_generation(generation, again), text) == 0);
	if (ck_is_shard(text, &rank, &part))
		fuzz_expect(strcmp(ck_name_shard(rank, part, again), text) == 0);
}

static void numbers(const char *text, struct ck_error *err)
{
	struct ck_interval interval;
	uint64_t value;

	if (ck_parse_u64("f", text, 3, 1000, &value, err) == 0)
		fuzz_expect(value >= 3 && value <= 1000);
	if (ck_parse_seconds("f", text, false, &value, err) == 0)
		fuzz_expect(value <= CK_SECONDS_MAX);
	if (ck_parse_interval("f", text, &interval, err) == 0)
		fuzz_expect((interval.seconds == 0) != (interval.steps == 0));
	ck_parse_bytes("f", text, &value, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_error err = CK_ERROR_INIT;
	char text[TEXT_MAX];

	if (size == 0 || size > sizeof(text))
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] % 4) {
	case 0:
		numbers(text, &err);
		break;
	case 1:
		time_and_back(text, &err);
		break;
	case 2:
		names(text);
		break;
	default:
		if (ck_parse_run_name("f", text, &err) == 0)
			fuzz_expect(*text && !strchr(text, '/') && *text != '.' && *text != '-');
	}
	return 0;
}
