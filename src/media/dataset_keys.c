/* SPDX-License-Identifier: Apache-2.0 */
#include "media/dataset_keys.h"

#include "base/parse.h"
#include "base/suggest.h"
#include "media/bucket.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_COUNT = 1 << 24 };

const struct yaml_node *settings_get(const struct yaml_node *map, const char *key)
{
    for (const struct yaml_node *n = map && map->kind == YAML_MAP ? map->first : NULL; n; n = n->next)
        if (!strcmp(n->key->text, key))
            return n;
    return NULL;
}

static bool is_plain(const struct yaml_node *n)
{
    return n->kind == YAML_SCALAR && n->style == YAML_PLAIN && n->text;
}

/* 1_000 is a number in TOML. */
static bool read_count(const struct yaml_node *n, size_t *out)
{
    char digits[24];
    size_t len = 0;
    uint64_t v;
    if (!is_plain(n))
        return false;
    for (const char *p = n->text; *p; p++)
        if (*p != '_') {
            if (len + 1 >= sizeof(digits))
                return false;
            digits[len++] = *p;
        }
    digits[len] = '\0';
    if (!cairn_parse_u64(digits, &v) || !v || v > MOST_COUNT)
        return false;
    *out = (size_t)v;
    return true;
}

static bool read_real(const struct yaml_node *n, double *out)
{
    char *end;
    if (!is_plain(n) || !*n->text)
        return false;
    double v = strtod(n->text, &end);
    if (*end || !isfinite(v))
        return false;
    *out = v;
    return true;
}

int settings_bool(const struct yaml_node *n)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
    for (size_t i = 0; is_plain(n) && i < ARRAY_LEN(words); i++)
        if (!strcasecmp(n->text, words[i]))
            return i % 2;
    return -1;
}

static bool read_bool(const struct yaml_node *n, bool *out)
{
    int word = settings_bool(n);
    *out = word == 1;
    return word >= 0;
}

const char *settings_expand(const char *text, const char *job, struct arena *a)
{
    CLEANUP(str_release) struct str out = { 0 };
    if (!text)
        return NULL;
    str_add(&out, "");
    for (const char *p = text; *p;) {
        const char *end = str_starts(p, "${") ? strchr(p, '}') : NULL;
        const char *value = end ? getenv(arena_strndup(a, p + 2, (size_t)(end - p - 2))) : NULL;
        bool is_name = job && str_starts(p, "[name]");
        if (value || is_name) {
            str_add(&out, value ? value : job);
            p = value ? end + 1 : p + strlen("[name]");
        } else {
            str_addn(&out, p++, 1);
        }
    }
    return arena_strdup(a, out.s ? out.s : "");
}

static bool read_size(const struct yaml_node *n, struct bucket_size *out)
{
    if (n->kind == YAML_LIST)
        return n->first && n->first->next && !n->first->next->next && read_count(n->first, &out->width) &&
               read_count(n->first->next, &out->height);
    if (!read_count(n, &out->width))
        return false;
    out->height = out->width;
    return true;
}

static bool read_counts(const struct yaml_node *n, struct setting_counts *out, struct arena *a)
{
    *out = (struct setting_counts){ 0 };
    if (n->kind != YAML_LIST)
        return read_count(n, ARENA_PUSH(a, out->item, out->n));
    for (const struct yaml_node *v = n->first; v; v = v->next)
        if (!read_count(v, ARENA_PUSH(a, out->item, out->n)))
            return false;
    return out->n > 0;
}

static bool is_nothing(const struct yaml_node *n)
{
    bool set;
    double v;
    if (n->kind != YAML_SCALAR)
        return !n->first;
    return yaml_is_null(n) || !n->text || !*n->text || (read_bool(n, &set) && !set) ||
           (read_real(n, &v) && v == 0);
}

/* A number or true where a text belongs is none, unless it is in quotes. */
static bool read_text(const struct yaml_node *n, const char **out)
{
    double v;
    *out = n->text;
    return n->kind == YAML_SCALAR && n->text && !read_real(n, &v) && settings_bool(n) < 0;
}

static bool is_index(const struct yaml_node *n)
{
    uint64_t v;
    return is_plain(n) && cairn_parse_u64(n->text, &v);
}

static bool read_value(const struct setting *row, const struct yaml_node *n, struct arena *a, void *at)
{
    switch (row->type) {
    case SETTING_TEXT:
        return read_text(n, at);
    case SETTING_COUNT:
        return read_count(n, at);
    case SETTING_REAL:
        return read_real(n, at);
    case SETTING_BOOL:
        return read_bool(n, at);
    case SETTING_SIZE:
        return read_size(n, at);
    case SETTING_COUNTS:
        return read_counts(n, at, a);
    case SETTING_INDEX:
        return is_index(n);
    case SETTING_LIST:
        return n->kind == YAML_LIST;
    case SETTING_ANY:
        return true;
    case SETTING_REFUSED:
        return is_nothing(n);
    }
    return false;
}

/* Suggests keys of other maps, too: a misspelt video_directory makes a dataset one of images. */
static int fail_unknown(const struct settings *s, const struct yaml_node *n, struct cairn_error *err)
{
    struct suggestion near = { .word = n->key->text };
    const char *elsewhere = NULL;
    for (size_t i = 0; i < s->n; i++) {
        suggest_try(&near, s->row[i].name);
        if (!strcmp(s->row[i].name, n->key->text))
            elsewhere = s->row[i].name;
    }
    cairn_fail(err, CAIRN_EFORMAT, "%s:%d:%d: the key %s is %s", s->path, n->key->line, n->key->column,
               n->key->text, elsewhere ? "not allowed here" : "unknown");
    return near.best && !elsewhere ? cairn_hint(err, "did you mean %s?", near.best)
                                   : cairn_hint(err, "leave it out");
}

static int fail_value(const struct settings *s, const struct setting *row, const struct yaml_node *n,
                      struct cairn_error *err)
{
    static const char *const wanted[] = {
        [SETTING_TEXT] = "a text",
        [SETTING_COUNT] = "a whole number from 1 on",
        [SETTING_REAL] = "a number",
        [SETTING_BOOL] = "true or false",
        [SETTING_SIZE] = "a number of pixels, or [width, height]",
        [SETTING_COUNTS] = "a list of whole numbers from 1 on",
        [SETTING_INDEX] = "a whole number from 0 on",
        [SETTING_LIST] = "a list",
        [SETTING_ANY] = "anything",
    };
    if (row->type == SETTING_REFUSED) {
        cairn_fail(err, CAIRN_EFORMAT, "%s:%d:%d: cairn does not support %s", s->path, n->line, n->column,
                   row->name);
        return cairn_hint(err, "leave it out");
    }
    cairn_fail(err, CAIRN_EFORMAT, "%s:%d:%d: %s: expected %s", s->path, n->line, n->column, row->name,
               wanted[row->type]);
    bool unquoted = row->type == SETTING_TEXT && n->kind == YAML_SCALAR;
    return cairn_hint(err, unquoted ? "put it in quotes, or leave it out" : "correct it, or leave it out");
}

int settings_read(const struct settings *s, const struct yaml_node *map, unsigned where, void *into,
                  struct cairn_error *err)
{
    union {
        const char *text;
        size_t count;
        double real;
        bool yes;
        struct bucket_size size;
        struct setting_counts counts;
    } unused;
    if (map->kind != YAML_MAP) {
        cairn_fail(err, CAIRN_EFORMAT, "%s:%d:%d: expected keys and values", s->path, map->line, map->column);
        return cairn_hint(err, "write one KEY: VALUE or KEY = VALUE on each line");
    }
    for (const struct yaml_node *n = map->first; n; n = n->next) {
        const struct setting *row = NULL;
        for (size_t i = 0; i < s->n && !row; i++)
            if (s->row[i].where & where && !strcmp(s->row[i].name, n->key->text))
                row = &s->row[i];
        if (!row)
            return fail_unknown(s, n, err);
        void *at = row->at == SETTING_UNUSED ? (void *)&unused : (char *)into + row->at;
        if (!yaml_is_null(n) && !read_value(row, n, s->arena, at))
            return fail_value(s, row, n, err);
    }
    return 0;
}
