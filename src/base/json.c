/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/file.h"
#include "base/str.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* struct json is json_t under another name, so that no other file sees the library. */
static json_t *inner(const struct json *v)
{
    return (json_t *)(uintptr_t)v;
}

static struct json *outer(json_t *v)
{
    return (struct json *)v;
}

/* The library's own names for these are macros. */
#undef json_is_object
#undef json_is_array
#undef json_is_null
static json_type json_typeof_or_null(const struct json *v)
{
    return v ? json_typeof(inner(v)) : JSON_NULL;
}

static json_t *must(json_t *v)
{
    if (!v) {
        fputs("cairn: out of memory (json)\n", stderr);
        abort();
    }
    return v;
}

static void put(struct json *parent, const char *key, json_t *v)
{
    int r = key ? json_object_set_new_nocheck(inner(parent), key, must(v))
                : json_array_append_new(inner(parent), must(v));
    if (r)
        must(NULL);
}

struct json *json_new_object(void)
{
    return outer(must(json_object()));
}

struct json *json_add_object(struct json *parent, const char *key)
{
    json_t *v = json_object();
    put(parent, key, v);
    return outer(v);
}

struct json *json_add_array(struct json *parent, const char *key)
{
    json_t *v = json_array();
    put(parent, key, v);
    return outer(v);
}

void json_add(struct json *parent, const char *key, struct json *child)
{
    put(parent, key, inner(child));
}

void json_add_text(struct json *parent, const char *key, const char *text)
{
    if (!text) {
        put(parent, key, json_null());
        return;
    }
    CLEANUP(str_release) struct str clean = { 0 };
    size_t len = strlen(text);
    for (size_t at = 0; at < len;) {
        size_t n = str_clean_span(text + at, len - at);
        str_addn(&clean, text + at, n);
        at += n;
        if (at < len) { /* a control character, which the library escapes, or invalid UTF-8 */
            bool control = (unsigned char)text[at] < 0x80;
            str_addn(&clean, control ? text + at : "?", 1);
            at++;
        }
    }
    put(parent, key, json_stringn(clean.s ? clean.s : "", clean.len));
}

void json_add_int(struct json *parent, const char *key, int64_t v)
{
    put(parent, key, json_integer(v));
}

void json_add_real(struct json *parent, const char *key, double v)
{
    put(parent, key, json_real(v));
}

void json_add_bool(struct json *parent, const char *key, bool v)
{
    put(parent, key, json_boolean(v));
}

void json_add_null(struct json *parent, const char *key)
{
    put(parent, key, json_null());
}

void json_add_copy(struct json *parent, const char *key, const struct json *v)
{
    put(parent, key, v ? json_deep_copy(inner(v)) : json_null());
}

void json_print(const struct json *v, FILE *out)
{
    json_dumpf(inner(v), out, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    fputc('\n', out);
}

static char *dump(const struct json *v, size_t flags)
{
    char *s = json_dumps(inner(v), JSON_COMPACT | flags);
    if (!s)
        must(NULL);
    return s;
}

char *json_to_string(const struct json *v)
{
    return dump(v, 0);
}

char *json_to_short(const struct json *v)
{
    return dump(v, JSON_REAL_PRECISION(9));
}

char *json_to_lines(const struct json *v)
{
    CLEANUP(mem_free) char *s = json_dumps(inner(v), JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    CLEANUP(str_release) struct str lines = { 0 };
    if (!s)
        must(NULL);
    str_add(&lines, s);
    str_add(&lines, "\n");
    return TAKE(lines.s);
}

void json_free(struct json *v)
{
    json_decref(inner(v));
}

void json_cleanup(struct json **v)
{
    json_free(*v);
}

static int parse(const char *text, size_t len, size_t flags, struct json **out, struct cairn_error *err)
{
    json_error_t e;
    json_t *v = json_loadb(text, len, JSON_REJECT_DUPLICATES | flags, &e);
    if (!v && json_error_code(&e) == json_error_null_character)
        return cairn_fail(err, CAIRN_EFORMAT, "line %d: a string contains \\u0000", e.line);
    if (!v)
        return cairn_fail(err, CAIRN_EFORMAT, "line %d: %s", e.line, e.text);
    *out = outer(v);
    return 0;
}

int json_parse(const char *text, size_t len, struct json **out, struct cairn_error *err)
{
    return parse(text, len, 0, out, err);
}

int json_parse_nul(const char *text, size_t len, struct json **out, struct cairn_error *err)
{
    return parse(text, len, JSON_ALLOW_NUL, out, err);
}

const char *json_bytes(const struct json *v, size_t *n)
{
    *n = json_string_length(inner(v));
    return json_string_value(inner(v));
}

int json_read_object(const char *path, struct json **out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *text = NULL;
    CLEANUP(json_cleanup) struct json *v = NULL;
    size_t n;
    if (file_read_settings(path, &text, &n, err))
        return -1;
    if (json_parse(text, n, &v, err))
        return cairn_wrap(err, "%s", path);
    if (!json_is_object(v))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: not an object", path);
    *out = TAKE(v);
    return 0;
}

const struct json *json_get(const struct json *v, const char *key)
{
    return outer(json_object_get(inner(v), key));
}

const char *json_text(const struct json *v)
{
    return json_string_value(inner(v));
}

bool json_bool(const struct json *v, bool otherwise)
{
    return json_is_boolean(inner(v)) ? json_is_true(inner(v)) : otherwise;
}

int64_t json_int(const struct json *v, int64_t otherwise)
{
    return json_is_integer(inner(v)) ? (int64_t)json_integer_value(inner(v)) : otherwise;
}

double json_number(const struct json *v, double otherwise)
{
    return json_is_number(inner(v)) ? json_number_value(inner(v)) : otherwise;
}

size_t json_length(const struct json *array)
{
    return json_array_size(inner(array));
}

const struct json *json_at(const struct json *array, size_t i)
{
    return outer(json_array_get(inner(array), i));
}

bool json_is_array(const struct json *v)
{
    return json_typeof_or_null(v) == JSON_ARRAY;
}

bool json_is_null(const struct json *v)
{
    return v && json_typeof_or_null(v) == JSON_NULL;
}

bool json_is_object(const struct json *v)
{
    return json_typeof_or_null(v) == JSON_OBJECT;
}

bool json_to_u64(const struct json *v, uint64_t *out)
{
    if (json_typeof_or_null(v) != JSON_INTEGER || json_integer_value(inner(v)) < 0)
        return false;
    *out = (uint64_t)json_integer_value(inner(v));
    return true;
}

static struct json_member member_at(void *place)
{
    if (!place)
        return (struct json_member){ 0 };
    return (struct json_member){ json_object_iter_key(place), outer(json_object_iter_value(place)), place };
}

struct json_member json_first(const struct json *object)
{
    return member_at(json_object_iter(inner(object)));
}

struct json_member json_next(const struct json *object, struct json_member m)
{
    return member_at(json_object_iter_next(inner(object), m.place));
}
