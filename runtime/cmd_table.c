/* The one table printer. */
#include "cmd.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "parse.h"

size_t ck_cmd_width(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

char *ck_cmd_minute(int64_t epoch, char out[static 32])
{
	ck_format_time(epoch, out);
	out[10] = ' ';
	out[16] = '\0';
	return out;
}

static bool grow(struct ck_cmd_table *table)
{
	size_t capacity = table->capacity ? 2 * table->capacity : 64;
	char **cells;

	if (table->count < table->capacity)
		return true;
	cells = realloc(table->cells, capacity * sizeof(*cells));
	if (!cells)
		return false;
	table->cells = cells;
	table->capacity = capacity;
	return true;
}

void ck_cmd_table_add(struct ck_cmd_table *table, const char *fmt, ...)
{
	struct ck_buf cell = CK_BUF_INIT;
	va_list args;
	char *text;
	int len;

	va_start(args, fmt);
	len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len >= 0) {
		ck_buf_add_escaped(&cell, text);
		free(text);
	}
	if (len < 0 || ck_buf_check(&cell, NULL) || !grow(table)) {
		ck_buf_fini(&cell);
		table->failed = true;
		return;
	}
	table->cells[table->count++] = cell.data; /* handed over; NULL for an empty one */
}

static const char *cell_at(const struct ck_cmd_table *table, size_t index)
{
	return table->cells[index] ? table->cells[index] : "";
}

static void print_row(const struct ck_cmd_table *table, FILE *stream, const size_t *widths,
		      const char *const *row)
{
	size_t last = table->ncolumns;

	while (last > 0 && !*row[last - 1])
		last--;
	for (size_t c = 0; c < last; c++) {
		int pad = (int)(widths[c] - ck_cmd_width(row[c]));
		bool right = table->columns[c].right;

		fprintf(stream, "%s%*s%s%*s", c ? "  " : "", right ? pad : 0, "", row[c],
			right || c + 1 == last ? 0 : pad, "");
	}
	fputc('\n', stream);
}

int ck_cmd_table_print(const struct ck_cmd_table *table, FILE *stream, struct ck_error *err)
{
	size_t widths[CK_CMD_COLUMNS_MAX] = {0}, n = table->ncolumns;
	const char *row[CK_CMD_COLUMNS_MAX] = {NULL};

	assert(n <= CK_CMD_COLUMNS_MAX);
	if (table->failed)
		return ck_fail_nomem(err, table->capacity * sizeof(*table->cells));
	if (table->count == 0)
		return 0;
	for (size_t c = 0; c < n; c++) {
		row[c] = table->columns[c].head;
		widths[c] = ck_cmd_width(row[c]);
		for (size_t i = c; i < table->count; i += n)
			if (ck_cmd_width(cell_at(table, i)) > widths[c])
				widths[c] = ck_cmd_width(cell_at(table, i));
	}
	print_row(table, stream, widths, row);
	for (size_t i = 0; i + n <= table->count; i += n) {
		for (size_t c = 0; c < n; c++)
			row[c] = cell_at(table, i + c);
		print_row(table, stream, widths, row);
	}
	return 0;
}

void ck_cmd_table_fini(struct ck_cmd_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	table->cells = NULL;
	table->count = table->capacity = 0;
}
