/* SPDX-License-Identifier: Apache-2.0
 * Text: a growing string, and the few questions everybody asks about strings.
 *
 * `struct str` owns heap memory; {0} is an empty string; s is always NUL-terminated once something was
 * added.  Release it with str_release, or CLEANUP(str_release). */
#ifndef CAIRN_BASE_STR_H
#define CAIRN_BASE_STR_H

#include "base/cleanup.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct str {
    char *s;
    size_t len, cap;
};

void str_add(struct str *t, const char *s);
void str_addn(struct str *t, const char *s, size_t n);
void str_addf(struct str *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Text from outside, with '?' for each byte that a terminal might obey: controls, and what is not UTF-8. */
void str_add_clean(struct str *t, const char *s, size_t n);
/* The same, padded with spaces to at least width columns. */
void str_add_padded(struct str *t, const char *text, int width);
/* The same, cut to width columns: a cell of a table. */
void str_add_cell(struct str *t, const char *text, int width);
/* The same as str_add_clean, but line feeds and tabs stay. */
void str_add_clean_lines(struct str *t, const char *s, size_t n);
/* A word as a shell takes it, quoted where it has to be; any bytes. */
void str_add_word(struct str *t, const char *word);
/* Text in lines of at most `width` columns where its words allow.  The first begins at `column`, the others after
 * `indent` spaces; spaces between words stay as they are within a line. */
void str_add_wrapped(struct str *t, const char *text, size_t column, size_t indent, size_t width);
void str_release(struct str *t);

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* Is word one of the entries of list, which are separated by sep?  Whole entries only. */
bool str_list_has(const char *list, char sep, const char *word);
/* The value of a variable in a list of "NAME=value", which ends with NULL; NULL if it is not there. */
const char *str_env(const char *const *env, const char *name);
/* A name that every shell takes for a variable: letters, digits and _, no digit first. */
bool str_is_variable(const char *name, size_t n);
/* Orders "node2" before "node10": runs of digits compare as numbers. */
int str_compare_natural(const char *a, const char *b);
/* How many bytes of s a terminal and JSON can take as they are: valid UTF-8, no control characters. */
size_t str_clean_span(const char *s, size_t len);
/* Valid UTF-8; control characters are fine. */
bool str_is_utf8(const char *s);
/* What stands behind the last slash, of a path that a Linux machine told; for a file to open: path_name (os/path.h). */
const char *str_file_name(const char *path);
/* The line after this one; NULL behind the last. */
const char *str_next_line(const char *line);

/* "512 MiB", "24.0 GiB"; buf holds 24 bytes and is returned. */
const char *bytes_text(int64_t bytes, char *buf);

#endif
