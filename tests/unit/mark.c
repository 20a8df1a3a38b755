/* Marks and events of run.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io_fault.h"
#include "run.h"
#include "rundir.h"
#include "tap.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define JOB "{\"cluster\": \"c\", \"id\": \"1\", \"restart_count\": 0, \"step_id\": \"0\"}"

static const struct {
	const char *name;
	const char *text;
	const char *says;
} refusals[] = {
	{"empty", "", "m: not JSON"},
	{"version 0", "{\"schema_version\": 0}", "m: schema_version is 0, this program reads 1"},
	{"want missing", "{\"schema_version\": 1}", "m: want: missing"},
	{"want unknown", "{\"schema_version\": 1, \"want\": \"pause\"}",
	 "m: want: 'pause' is none of requeue, stop, hold and refuse"},
	{"no job", "{\"schema_version\": 1, \"want\": \"stop\"}", "m: job: missing"},
	{"a job without id",
	 "{\"schema_version\": 1, \"want\": \"stop\", \"job\": {\"cluster\": \"\"}}",
	 "m: job: id: missing"},
	{"no step", "{\"schema_version\": 1, \"want\": \"stop\", \"job\": " JOB "}",
	 "m: step: missing"},
	{"a save of less than no time",
	 "{\"schema_version\": 1, \"want\": \"stop\", \"job\": " JOB
	 ", \"step\": 1, \"reason\": \"\", \"save_ms\": -1}",
	 "m: save_ms"},
	{"a save of no number of bytes",
	 "{\"schema_version\": 1, \"want\": \"stop\", \"job\": " JOB
	 ", \"step\": 1, \"reason\": \"\", \"save_ms\": 1, \"save_bytes\": 0.5}",
	 "m: save_bytes"},
	{"no reason", "{\"schema_version\": 1, \"want\": \"stop\", \"job\": " JOB ", \"step\": 1}",
	 "m: reason: missing"},
};

static void test_text(void)
{
	struct ck_error err = CK_ERROR_INIT;
	struct ck_buf first = CK_BUF_INIT, second = CK_BUF_INIT;
	struct ck_mark mark, again;

	for (size_t i = 0; i < ROWS(refusals); i++) {
		mark.step = 5;
		is_int(ck_mark_parse("m", refusals[i].text, strlen(refusals[i].text), &mark, &err),
		       CK_EFORMAT, "%s is refused", refusals[i].name);
		like(err.text, refusals[i].says, "%s: the text", refusals[i].name);
		is_u64(mark.step, 5, "%s: the output is untouched", refusals[i].name);
	}
	for (int want = CK_WANT_REQUEUE; want <= CK_WANT_STOP; want++) {
		mark = (struct ck_mark){.want = (enum ck_want)want,
					.job = {"c", "1", 2, "0", "n[1-9]"},
					.step = 44,
					.reason = "signal 15",
					.save_ms = want ? 1500 : 0,
					.save_bytes = want ? 1 << 30 : 0};
		ck_buf_clear(&first);
		ck_buf_clear(&second);
		is_int(ck_mark_print(&mark, &first, &err), 0, "prints: %s", err.text);
		unlike(first.data, "n[1-9]", "without the nodes");
		is_int(ck_mark_parse("m", first.data, first.len, &again, &err), 0, "reads: %s",
		       err.text);
		is_int(again.want, want, "want");
		is_u64(again.step, 44, "step");
		is_str(again.reason, "signal 15", "reason");
		is_u64(again.save_ms, mark.save_ms, "how long the save took");
		is_u64(again.save_bytes, mark.save_bytes, "and of how many bytes");
		is_int(ck_mark_print(&again, &second, &err), 0, "prints again");
		is_str(second.data, first.data, "the same text");
	}
	ck_buf_clear(&first);
	mark.want = (enum ck_want)7;
	is_int(ck_mark_print(&mark, &first, &err), CK_EFORMAT, "another wish is refused");
	mark.want = CK_WANT_STOP;
	strcpy(mark.reason, "a\nb");
	is_int(ck_mark_print(&mark, &first, &err), CK_EFORMAT, "a reason of two lines is refused");
	is_u64(first.len, 0, "nothing printed");
	ck_buf_fini(&first);
	ck_buf_fini(&second);
}

static void test_find(void)
{
	const char *dir = test_tmpdir();
	struct ck_mark mark = {.job = {"c", "1", 2, "0", ""}, .step = 10, .reason = "first"}, found;
	struct ck_job other = {"c", "1", 3, "0", ""};
	struct ck_error err = CK_ERROR_INIT;

	is_int(ck_mark_find(&ck_io_posix, in_dir(dir, "none"), &mark.job, &found, &err), CK_ENOENT,
	       "no directory");
	is_int(ck_mark_find(&ck_io_posix, dir, &mark.job, &found, &err), CK_ENOENT,
	       "no generation");
	like(err.text, "no mark of job 1, restart 2, step 0", "the text");
	for (uint64_t n = 1; n <= 12; n++)
		make_generation(dir, n);
	is_int(ck_mark_find(&ck_io_posix, dir, &mark.job, &found, &err), CK_ENOENT, "no marks");
	is_int(ck_mark_store(&ck_io_posix, dir, 2, &mark, &err), 0, "a mark");
	strcpy(mark.reason, "second");
	is_int(ck_mark_store(&ck_io_posix, dir, 10, &mark, &err), 0,
	       "and one of a later generation");
	is_int(ck_mark_find(&ck_io_posix, dir, &mark.job, &found, &err), 0, "found");
	is_str(found.reason, "second", "the later one, by number");
	is_int(ck_mark_find(&ck_io_posix, dir, &other, &found, &err), CK_ENOENT,
	       "another restart has none");
	other = mark.job;
	strcpy(other.step_id, "1");
	is_int(ck_mark_find(&ck_io_posix, dir, &other, &found, &err), CK_ENOENT,
	       "another step has none");
	other = mark.job;
	strcpy(other.cluster, "d");
	is_int(ck_mark_find(&ck_io_posix, dir, &other, &found, &err), CK_ENOENT,
	       "another cluster has none");

	put_file(in_dir(dir, ".gen-11/mark.json"), "{}");
	is_int(ck_mark_find(&ck_io_posix, dir, &mark.job, &found, &err), 0,
	       "a spoilt mark of somebody does not hide ours");
	is_int(ck_mark_find(&ck_io_posix, dir, &other, &found, &err), CK_EFORMAT,
	       "but is the answer where there is no other");
	like(err.text, ".gen-11/mark.json: schema_version: missing", "the text");
}

static void test_mark_failures(void)
{
	const char *dir = test_tmpdir();
	struct ck_mark mark = {.job = {.job_id = "1"}, .reason = "x"}, found;
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;

	is_int(ck_mark_store(&ck_io_posix, dir, 1, &mark, &err), CK_ENOENT, "no such generation");
	make_generation(dir, 1);
	is_int(ck_mark_store(&ck_io_posix, dir, 1, &mark, &err), 0, "stored");
	is_int(ck_io_fault_new(&fault, &ck_io_posix, "pread:mark.json:errno=EIO", &err), 0,
	       "fault");
	is_int(ck_mark_find(ck_io_fault_io(fault), dir, &mark.job, &found, &err), CK_EIO,
	       "a mark that cannot be read");
	like(err.text, "mark.json", "the text");
	ck_io_fault_free(fault);
}

/* The line after its time. */
static const char *behind_time(const char *line)
{
	return strncmp(line, "{\"time\": \"", 10) == 0 && line[29] == 'Z' ? line + 33 : line;
}

static void test_events(void)
{
	const char *dir = test_tmpdir();
	struct ck_error err = CK_ERROR_INIT;
	struct ck_io_fault *fault;
	char *text, *second;
	int fd;

	is_int(ck_event_add(&ck_io_posix, dir, 1, "saved", 1, "x", &err), CK_ENOENT,
	       "no such generation");
	make_generation(dir, 1);
	is_int(ck_event_add(&ck_io_posix, dir, 1, "saved", 12, "in 3 s", &err), 0, "an event: %s",
	       err.text);
	is_int(ck_event_add(&ck_io_posix, dir, 1, "open", UINT64_MAX, "a\n\"b\" \xff", &err), 0,
	       "another");
	text = content_of(in_dir(dir, ".gen-1/events.jsonl"));
	second = strchr(text, '\n') + 1;
	is_str(behind_time(second),
	       "\"event\": \"open\", \"step\": null, \"text\": \"a\\\\x0a\\\"b\\\" "
	       "\\\\xff\"}\n",
	       "one line, escaped");
	*second = '\0';
	is_str(behind_time(text), "\"event\": \"saved\", \"step\": 12, \"text\": \"in 3 s\"}\n",
	       "before it the first");
	free(text);

	fd = open(in_dir(dir, ".gen-1/events.jsonl"), O_WRONLY | O_TRUNC);
	is_int(write(fd, "{\"time\": \"20", 12), 12, "half a line of one who died");
	close(fd);
	is_int(ck_event_add(&ck_io_posix, dir, 1, "saved", 3, "x", &err), 0, "an event after it");
	text = content_of(in_dir(dir, ".gen-1/events.jsonl"));
	like(text, "{\"time\": \"20\n{\"time\": \"2", "stands on a line of its own");
	free(text);

	is_int(ck_io_fault_new(&fault, &ck_io_posix, "pwrite:events.jsonl:errno=ENOSPC", &err), 0,
	       "fault");
	is_int(ck_event_add(ck_io_fault_io(fault), dir, 1, "saved", 3, "x", &err), CK_EIO,
	       "no space");
	like(err.text, "events.jsonl: write of", "the text");
	ck_io_fault_free(fault);
}

int main(void)
{
	test_text();
	test_find();
	test_mark_failures();
	test_events();
	return done_testing();
}
