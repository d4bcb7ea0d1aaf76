/* SPDX-License-Identifier: Apache-2.0
 * Terminal output: color, sizes, wrapped text.  stdout is for data, stderr for messages. */
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
/* The escape sequence that starts (or, for COLOR_PLAIN, ends) a color on stdout; "" if color is off. */
const char *print_color(enum print_color c);
/* Redirects stdout to this file; NULL: does nothing.  The name must stay valid. */
int print_into(const char *file, struct cairn_error *err);
/* "standard output", or that file. */
const char *print_output_name(void);
/* Untrusted text, with '?' for each control character, padded with spaces to at least width columns. */
void print_padded(FILE *out, const char *text, int width);
/* The same, cut to width columns: a cell of a table. */
void print_cell(FILE *out, const char *text, int width);
/* The same, with "..." at the end if it was cut. */
void print_cut(FILE *out, const char *text, int width);
/* Columns of UTF-8 text, one for each character. */
int print_columns(const char *text);
/* Text wrapped at width columns, indented by `indent` spaces; the cursor must be at that column already. */
void print_wrapped(FILE *out, const char *text, int indent, int width);
/* The same with the cursor at another column. */
void print_wrapped_at(FILE *out, const char *text, int column, int indent, int width);
/* Columns of the terminal on stdout, at most 100; 100 if it is no terminal. */
int print_width(void);
/* Prints the result of a report_ function on stdout, and frees it. */
void print_report(struct json *v);
/* Prints "cairn: message" and the hint on stderr; returns the exit code of the error. */
int print_error(const struct cairn_error *err);

/* The GPU runtime library, its installation, and libraries that failed to open before it; nothing for the
 * CPU. */
struct gpu_info;
void print_runtime(FILE *out, const struct gpu_info *g, const char *before);

#endif
