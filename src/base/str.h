/* SPDX-License-Identifier: Apache-2.0
 * Text: a growing string, and common string helpers.
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
/* Appends untrusted text, with '?' for each control character and invalid UTF-8 byte. */
void str_add_clean(struct str *t, const char *s, size_t n);
/* The same, padded with spaces to at least width columns. */
void str_add_padded(struct str *t, const char *text, int width);
/* The same, cut to width columns: a cell of a table. */
void str_add_cell(struct str *t, const char *text, int width);
/* The same as str_add_clean, but line feeds and tabs stay. */
void str_add_clean_lines(struct str *t, const char *s, size_t n);
/* Appends a word for a shell, quoted if necessary; any bytes. */
void str_add_word(struct str *t, const char *word);
/* Appends text wrapped to `width` columns if its words allow.  The first line begins at `column`, the others
 * after `indent` spaces; spaces between words of a line are preserved. */
void str_add_wrapped(struct str *t, const char *text, size_t column, size_t indent, size_t width);
void str_release(struct str *t);

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* Whether word is an entry of list, whose entries are separated by sep. */
bool str_list_has(const char *list, char sep, const char *word);
/* The value of a variable in a NULL-terminated list of "NAME=value"; NULL if it is missing. */
const char *str_env(const char *const *env, const char *name);
/* Whether it is a valid variable name in every shell: letters, digits and _, no digit first. */
bool str_is_variable(const char *name, size_t n);
/* Orders "node2" before "node10": runs of digits compare as numbers. */
int str_compare_natural(const char *a, const char *b);
/* Length of the prefix of s that is valid UTF-8 without control characters. */
size_t str_clean_span(const char *s, size_t len);
/* Valid UTF-8; control characters are fine. */
bool str_is_utf8(const char *s);
/* The part after the last slash of a path on a captured Linux machine; for local files use path_name
 * (os/path.h). */
const char *str_file_name(const char *path);
/* The line after this one; NULL after the last. */
const char *str_next_line(const char *line);

/* "512 MiB", "24.0 GiB"; buf holds 24 bytes and is returned. */
const char *bytes_text(int64_t bytes, char *buf);

#endif
