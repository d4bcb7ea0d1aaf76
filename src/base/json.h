/* SPDX-License-Identifier: Apache-2.0
 * JSON values: built for --json, parsed from files.  The only module that uses the JSON library.
 *
 * A value made by json_new_* or json_parse is owned by the caller (json_free); a value put into a parent
 * belongs to the parent.  Text that is not UTF-8 (a damaged sysfs file) is put in with '?' for each bad
 * byte. */
#ifndef CAIRN_BASE_JSON_H
#define CAIRN_BASE_JSON_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json;

struct json *json_new_object(void);
/* key is NULL when the parent is an array.  Both return the new child. */
struct json *json_add_object(struct json *parent, const char *key);
struct json *json_add_array(struct json *parent, const char *key);
void json_add(struct json *parent, const char *key, struct json *child);    /* takes the child */
void json_add_text(struct json *parent, const char *key, const char *text); /* NULL gives null */
void json_add_int(struct json *parent, const char *key, int64_t v);
void json_add_real(struct json *parent, const char *key, double v);
void json_add_bool(struct json *parent, const char *key, bool v);
void json_add_null(struct json *parent, const char *key);
/* A copy of a value of any type. */
void json_add_copy(struct json *parent, const char *key, const struct json *v);

/* One line feed at the end.  Key order is the order of adding. */
void json_print(const struct json *v, FILE *out);
char *json_to_string(const struct json *v); /* compact, on the heap: free() it */
char *json_to_short(const struct json *v);  /* the same with nine digits, enough for any f32 */
char *json_to_lines(const struct json *v);  /* as json_print, but with nine digits, enough for any f32 */
void json_free(struct json *v);
void json_cleanup(struct json **v); /* for CLEANUP */

/* Duplicate keys and trailing text are errors; the message has the line. */
int json_parse(const char *text, size_t len, struct json **out, struct cairn_error *err);
/* The same for text that may contain NUL characters; json_text ends at the first, json_bytes does not. */
int json_parse_nul(const char *text, size_t len, struct json **out, struct cairn_error *err);
/* Reads a configuration file of one object, at most 1 MiB.  The message names the file. */
int json_read_object(const char *path, struct json **out, struct cairn_error *err);
/* Look-ups return NULL (or the default) when v is NULL, has another type, or has no such key. */
const struct json *json_get(const struct json *v, const char *key);
const char *json_text(const struct json *v);
const char *json_bytes(const struct json *v, size_t *n);
bool json_bool(const struct json *v, bool otherwise);
int64_t json_int(const struct json *v, int64_t otherwise);
double json_number(const struct json *v, double otherwise); /* integer or not */
size_t json_length(const struct json *array);
const struct json *json_at(const struct json *array, size_t i);
bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_null(const struct json *v); /* the value null; not a missing one */
/* An integer >= 0; false for anything else. */
bool json_to_u64(const struct json *v, uint64_t *out);

/* The members of an object in their order:
 *     for (struct json_member m = json_first(v); m.key; m = json_next(v, m)) … m.key, m.value … */
struct json_member {
    const char *key; /* NULL: no more */
    const struct json *value;
    void *place;
};
struct json_member json_first(const struct json *object);
struct json_member json_next(const struct json *object, struct json_member m);

#endif
