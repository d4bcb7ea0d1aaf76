/* SPDX-License-Identifier: Apache-2.0
 * How things look on a terminal: colour, sizes in words, wrapped text.  stdout is data, stderr is talk. */
#ifndef CAIRN_CLI_PRINT_H
#define CAIRN_CLI_PRINT_H

#include "base/error.h"
#include "base/json.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum print_color { COLOR_PLAIN, COLOR_BOLD, COLOR_DIM, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_CYAN };

/* "auto", "always" or "never"; false for anything else. */
bool print_color_mode(const char *mode);
/* The escape that starts (or, for COLOR_PLAIN, ends) a colour on stdout; "" when colour is off. */
const char *print_color(enum print_color c);
/* stdout is this file from now on; NULL: as it is.  The name is kept. */
int print_into(const char *file, struct cairn_error *err);
/* "standard output", or that file. */
const char *print_output_name(void);
/* Text from outside, with '?' for each byte that a terminal might obey, padded with spaces to at least width
 * columns. */
void print_padded(FILE *out, const char *text, int width);
/* The same, cut to width columns: a cell of a table. */
void print_cell(FILE *out, const char *text, int width);
/* The same, with "..." at the end of what had to be cut. */
void print_cut(FILE *out, const char *text, int width);
/* Columns of UTF-8 text, one for each character. */
int print_columns(const char *text);
/* Text wrapped at width columns, each line after `indent` spaces (the first line starts where the cursor is, which is
 * there). */
void print_wrapped(FILE *out, const char *text, int indent, int width);
/* The same where the cursor is at another column. */
void print_wrapped_at(FILE *out, const char *text, int column, int indent, int width);
/* Columns of the terminal on stdout, 100 when it is not one or wider. */
int print_width(void);
/* Prints what a report_ function returned on stdout, and frees it. */
void print_report(struct json *v);
/* "cairn: message" and the hint, on stderr; returns the exit code that fits the error's kind. */
int print_error(const struct cairn_error *err);

/* The library that drives a GPU, what it belongs to, and what did not open before it; nothing for the CPU. */
struct gpu_info;
void print_runtime(FILE *out, const struct gpu_info *g, const char *before);

#endif
