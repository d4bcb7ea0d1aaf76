/* SPDX-License-Identifier: Apache-2.0 */
#include "train/foreign_toolkit_keys.h"

#include "base/suggest.h"
#include "media/dataset_keys.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

const struct yaml_node *toolkit_get_in(const struct yaml_node *map, const char *name)
{
    const struct yaml_node *n = settings_get(map, name);
    return n && !yaml_is_null(n) ? n : NULL;
}

const struct yaml_node *toolkit_get(const struct toolkit *t, const char *name)
{
    const struct yaml_node *n = t->process;
    for (const char *dot; n && (dot = strchr(name, '.')); name = dot + 1)
        n = toolkit_get_in(n, arena_strndup(t->a, name, (size_t)(dot - name)));
    return toolkit_get_in(n, name);
}

const char *toolkit_expand(const struct toolkit *t, const char *text)
{
    return settings_expand(text, t->name, t->a);
}

const char *toolkit_text(const struct toolkit *t, const char *name, const char *preset)
{
    const struct yaml_node *n = toolkit_get(t, name);
    return n ? toolkit_expand(t, n->text) : preset;
}

double toolkit_real(const struct toolkit *t, const char *name, double preset)
{
    const struct yaml_node *n = toolkit_get(t, name);
    return n ? strtod(n->text, NULL) : preset;
}

bool toolkit_bool(const struct toolkit *t, const char *name, bool preset)
{
    const struct yaml_node *n = toolkit_get(t, name);
    return n ? settings_bool(n) == 1 : preset;
}

const char *toolkit_place(const struct toolkit *t, const struct yaml_node *n)
{
    return arena_printf(t->a, "%s:%d:%d", t->path, n->line, n->column);
}

void toolkit_add(const struct toolkit *t, const char *key, const char *value, const char *from)
{
    const struct yaml_node *n = from ? toolkit_get(t, from) : NULL;
    foreign_add(t->job, t->a, key, value, n ? toolkit_place(t, n) : NULL, n ? from : NULL);
}

/* ---- errors ---- */

/* An error at a node, or at the file if there is none. */
static int fail_at(const struct toolkit *t, const struct yaml_node *n, const char *text)
{
    return n ? cairn_fail(t->err, CAIRN_EUSAGE, "%s:%d:%d: %s", t->path, n->line, n->column, text)
             : cairn_fail(t->err, CAIRN_EUSAGE, "%s: %s", t->path, text);
}

static int fail_key(const struct toolkit *t, const char *name, const char *remedy, const char *fmt,
                    va_list ap)
{
    char text[400];
    vsnprintf(text, sizeof(text), fmt, ap);
    const struct yaml_node *n = toolkit_get(t, name);
    const char *above = name;
    for (const char *dot; !n && (dot = strrchr(above, '.'));) /* a key that is missing: its section */
        n = toolkit_get(t, above = arena_strndup(t->a, above, (size_t)(dot - above)));
    fail_at(t, n ? n : t->process, arena_printf(t->a, "%s: %s", name, text));
    return cairn_hint(t->err, "%s", remedy);
}

int toolkit_fail(const struct toolkit *t, const char *name, const char *remedy, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_key(t, name, remedy, fmt, ap);
    va_end(ap);
    return -1;
}

int toolkit_refuse(const struct toolkit *t, const char *name, const char *remedy, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_key(t, name, remedy, fmt, ap);
    va_end(ap);
    t->job->refused = true;
    return -1;
}

static const char *shown(const struct toolkit *t, const struct yaml_node *n)
{
    enum { SHOWN = 60 };
    CLEANUP(str_release) struct str s = { 0 };
    if (n->kind != YAML_SCALAR)
        return n->kind == YAML_LIST ? "a list" : "a map";
    size_t len = strlen(n->text);
    str_add_clean(&s, n->text, len < SHOWN ? len : SHOWN);
    return len ? arena_strdup(t->a, s.s) : "\"\"";
}

static int fail_type(const struct toolkit *t, const struct toolkit_key *k, const struct yaml_node *n)
{
    static const char *const wanted[] = {
        [TOOLKIT_TEXT] = "a text",
        [TOOLKIT_TEXTS] = "a list of texts",
        [TOOLKIT_PROMPT] = "a text",
        [TOOLKIT_COUNT] = "a whole number, at least 1",
        [TOOLKIT_INDEX] = "a whole number, at least 0",
        [TOOLKIT_REAL] = "a number",
        [TOOLKIT_BOOL] = "true or false",
        [TOOLKIT_MAP] = "keys and values below it",
        [TOOLKIT_LIST] = "a list",
        [TOOLKIT_ANY] = "anything",
    };
    fail_at(t, n, arena_printf(t->a, "%s is %s", k->name, shown(t, n)));
    return cairn_hint(t->err, "it takes %s", wanted[k->type]);
}

static int fail_unknown(const struct toolkit *t, const struct yaml_node *key, const char *prefix)
{
    const char *name = arena_printf(t->a, "%s%s", prefix, key->text), *elsewhere = NULL;
    struct suggestion near = { .word = key->text };
    size_t n = strlen(prefix);
    for (size_t i = 0; i < n_toolkit_keys; i++) {
        const char *k = toolkit_keys[i].name, *dot = strrchr(k, '.');
        if (!strncmp(k, prefix, n) && !strchr(k + n, '.'))
            suggest_try(&near, k + n);
        if (dot && !strcmp(dot + 1, key->text) && !elsewhere)
            elsewhere = k;
    }
    fail_at(t, key, arena_printf(t->a, "%s: unknown key of an ai-toolkit job", name));
    if (near.best)
        return cairn_hint(t->err, "did you mean %s%s?", prefix, near.best);
    if (elsewhere)
        return cairn_hint(t->err, "did you mean %s?", elsewhere);
    return cairn_hint(t->err, "leave it out; docs/migrate.md lists the keys");
}

/* ---- types ---- */

static bool is_number(const struct yaml_node *n, double *out)
{
    char *end;
    if (n->kind != YAML_SCALAR || n->style != YAML_PLAIN || !*n->text ||
        strspn(n->text, "+-.0123456789eE") != strlen(n->text))
        return false;
    *out = strtod(n->text, &end);
    return !*end && isfinite(*out);
}

static bool is_whole(const struct yaml_node *n, double least)
{
    double v;
    return is_number(n, &v) && v == floor(v) && v >= least && v <= 1e12;
}

static bool are_texts(const struct yaml_node *n)
{
    for (const struct yaml_node *i = n->kind == YAML_LIST ? n->first : NULL; i; i = i->next)
        if (i->kind != YAML_SCALAR)
            return false;
    return n->kind == YAML_LIST;
}

/* A number or true where a text belongs is no text, unless it is in quotes. */
static bool is_text(const struct yaml_node *n)
{
    double v;
    return n->kind == YAML_SCALAR && !is_number(n, &v) && settings_bool(n) < 0;
}

static bool has_type(const struct yaml_node *n, enum toolkit_type type)
{
    double v;
    switch (type) {
    case TOOLKIT_TEXT:
        return is_text(n);
    case TOOLKIT_TEXTS:
        return are_texts(n);
    case TOOLKIT_PROMPT:
        return n->kind == YAML_SCALAR;
    case TOOLKIT_COUNT:
        return is_whole(n, 1);
    case TOOLKIT_INDEX:
        return is_whole(n, 0);
    case TOOLKIT_REAL:
        return is_number(n, &v);
    case TOOLKIT_BOOL:
        return settings_bool(n) >= 0;
    case TOOLKIT_MAP:
        return n->kind == YAML_MAP;
    case TOOLKIT_LIST:
        return n->kind == YAML_LIST;
    case TOOLKIT_ANY:
        return true;
    }
    return false;
}

/* ---- walk ---- */

static bool is_harmless(const struct toolkit_key *k, const struct yaml_node *n)
{
    double v, w;
    if (n->kind != YAML_SCALAR)
        return !n->first;
    if (!*n->text || !settings_bool(n) || strcmp(n->text, "none") == 0)
        return !(k->harmless && !strcmp(k->harmless, "true"));
    if (k->harmless && settings_bool(n) == 1)
        return !strcmp(k->harmless, "true");
    if (!is_number(n, &v))
        return k->harmless && !strcmp(k->harmless, n->text);
    return k->harmless ? (w = strtod(k->harmless, NULL), v == w) : v == 0;
}

static const struct toolkit_key *find_key(const char *name)
{
    for (size_t i = 0; i < n_toolkit_keys; i++)
        if (!strcmp(toolkit_keys[i].name, name))
            return &toolkit_keys[i];
    return NULL;
}

static const char *value_of(const struct toolkit *t, const struct toolkit_key *k, const struct yaml_node *n)
{
    if (k->type == TOOLKIT_BOOL)
        return settings_bool(n) == 1 ? "true" : "false";
    if (k->type == TOOLKIT_COUNT || k->type == TOOLKIT_INDEX)
        return arena_printf(t->a, "%.0f", strtod(n->text, NULL));
    return k->type == TOOLKIT_REAL ? n->text : toolkit_expand(t, n->text);
}

static int check_map(const struct toolkit *t, const struct yaml_node *map, const char *prefix,
                     struct str *ignored);

static int check_items(const struct toolkit *t, const struct yaml_node *list, const char *prefix,
                       struct str *ignored)
{
    for (const struct yaml_node *i = list->first; i; i = i->next) {
        if (i->kind != YAML_MAP)
            return fail_at(t, i, "sample.samples: each sample is a map with a prompt"),
                   cairn_hint(t->err, "write - prompt: TEXT");
        if (check_map(t, i, prefix, ignored))
            return -1;
    }
    return 0;
}

static void note_ignored(struct str *ignored, const char *name)
{
    const char *at = ignored->s ? strstr(ignored->s, name) : NULL;
    size_t n = strlen(name);
    if (!at || (at[n] && at[n] != ','))
        str_addf(ignored, "%s%s", ignored->len ? ", " : "", name);
}

static int check_key(const struct toolkit *t, const struct yaml_node *n, const char *prefix,
                     struct str *ignored)
{
    const char *name = arena_printf(t->a, "%s%s", prefix, n->key->text);
    const struct toolkit_key *k = find_key(name);
    if (!k)
        return fail_unknown(t, n->key, prefix);
    if (yaml_is_null(n))
        return 0;
    if (!has_type(n, k->type))
        return fail_type(t, k, n);
    if (k->use == TOOLKIT_REFUSED && !is_harmless(k, n)) {
        fail_at(t, n,
                arena_printf(t->a, "%s: cairn cannot do %s", k->name,
                             k->type == TOOLKIT_BOOL ? "this" : shown(t, n)));
        t->job->refused = true;
        return cairn_hint(t->err, "%s", k->remedy);
    }
    if (k->use == TOOLKIT_IGNORED)
        note_ignored(ignored, k->name);
    if (k->to)
        foreign_add(t->job, t->a, k->to, value_of(t, k, n), toolkit_place(t, n), k->name);
    if (k->type == TOOLKIT_MAP)
        return check_map(t, n, arena_printf(t->a, "%s.", name), ignored);
    return !strcmp(name, "sample.samples") ? check_items(t, n, "sample.samples[].", ignored) : 0;
}

static int check_map(const struct toolkit *t, const struct yaml_node *map, const char *prefix,
                     struct str *ignored)
{
    for (const struct yaml_node *n = map->first; n; n = n->next)
        if (check_key(t, n, prefix, ignored))
            return -1;
    return 0;
}

int toolkit_check_keys(const struct toolkit *t)
{
    CLEANUP(str_release) struct str ignored = { 0 };
    if (check_map(t, t->process, "", &ignored))
        return -1;
    if (ignored.len)
        foreign_note(t->job, t->a, "without effect in cairn: %s", ignored.s);
    return 0;
}
