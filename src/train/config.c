/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config.h"

#include "base/suggest.h"
#include "base/parse.h"
#include "base/yaml.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The source of a value: a file, whose nodes have positions, or an option. */
struct source {
    const char *name;
    bool is_file;
};

static const char *place_of(struct job_config *c, struct source from, const struct yaml_node *n)
{
    return from.is_file ? arena_printf(c->arena, "%s:%d:%d", from.name, n->line, n->column) : from.name;
}

const struct config_key *config_key_at(const struct job_config *c, size_t i)
{
    if (i < n_config_keys)
        return &config_keys[i];
    i -= n_config_keys;
    return i < c->schema->n_keys ? &c->schema->keys[i] : NULL;
}

const struct config_key *config_key_find(const struct job_config *c, const char *name)
{
    const struct config_key *k;
    for (size_t i = 0; (k = config_key_at(c, i)); i++)
        if (!strcmp(k->name, name))
            return k;
    return NULL;
}

static bool is_shared(const struct config_key *k)
{
    return k >= config_keys && k < config_keys + n_config_keys;
}

static const char **place_at(const struct job_config *c, const struct config_key *k)
{
    return is_shared(k) ? &c->place[k - config_keys] : &c->own_place[k - c->schema->keys];
}

void *config_value(const struct job_config *c, const struct config_key *k)
{
    return (char *)(is_shared(k) ? (void *)c : c->own) + k->at;
}

/* The i-th section: the shared ones, then those of the kind. */
const struct config_section *config_section_at(const struct job_config *c, size_t i)
{
    if (i < n_config_sections)
        return &config_sections[i];
    i -= n_config_sections;
    return i < c->schema->n_sections ? &c->schema->sections[i] : NULL;
}

static bool is_section(const struct job_config *c, const char *name)
{
    const struct config_section *s;
    for (size_t i = 0; (s = config_section_at(c, i)); i++)
        if (!strcmp(s->name, name))
            return true;
    return false;
}

const char *config_place(const struct job_config *c, const char *key)
{
    const struct config_key *k = config_key_find(c, key);
    assert(k);
    return *place_at(c, k);
}

bool config_is_set(const struct job_config *c, const char *key)
{
    return config_place(c, key) != NULL;
}

/* The key that a message begins with; NULL: none. */
static const struct config_key *leading_key(const struct job_config *c, const char *message)
{
    char word[64] = "";
    snprintf(word, sizeof(word), "%.*s", (int)strcspn(message, " :"), message);
    return config_key_find(c, word);
}

/* "--set model.path=FILE" and "job.toml:3:1: dit" name a key already. */
static bool place_names_key(const struct job_config *c, const char *place)
{
    return str_starts(place, "--") || (c->foreign && strstr(place, ": "));
}

int config_wrap(const struct job_config *c, const char *key, const char *remedy, struct cairn_error *err)
{
    const struct config_key *first = leading_key(c, err->msg);
    const char *place = config_place(c, first ? first->name : key);
    if (!first && !(place && place_names_key(c, place)))
        cairn_wrap(err, "%s", key);
    if (place)
        cairn_wrap(err, "%s", place);
    return remedy && !err->hint[0] ? cairn_hint(err, "%s", remedy) : -1;
}

/* The user's text for a message: without control characters, and cut if long. */
static void add_shown(struct str *out, const char *text)
{
    enum { MOST = 60 };
    size_t len = strlen(text), n = len;
    if (len > MOST)
        for (n = MOST; n && (text[n] & 0xc0) == 0x80;)
            n--;
    str_add_clean(out, text, n);
    str_add(out, n < len ? "..." : "");
}

static void add_value(struct str *out, const struct yaml_node *n)
{
    if (n->kind != YAML_SCALAR || yaml_is_null(n)) {
        str_add(out, n->kind == YAML_LIST ? "a list" : n->kind == YAML_MAP ? "a map" : "empty");
        return;
    }
    const char *quote = n->style == YAML_PLAIN && *n->text ? "" : "\"";
    str_add(out, quote);
    add_shown(out, n->text);
    str_add(out, quote);
}

static const char *number_trouble(const struct yaml_node *n)
{
    const char *s = n->text;
    if (n->kind != YAML_SCALAR || !*s || !strchr("+-.0123456789", *s))
        return "";
    size_t digits = strspn(s, "+-.0123456789"), known = strspn(s, "+-.0123456789_eE");
    if (n->style != YAML_PLAIN)
        return " (quotes make it a string; write it without them)";
    if (s[known] == '\0' && strchr(s, '_'))
        return " (write it without _)";
    if (s[digits] && strchr("kKmMgGtT", s[digits]))
        return " (write all digits of the number)";
    if (digits == strlen(s) && s[strspn(s, "+-")] == '0' && s[1])
        return " (a 0 in front would make it octal)";
    return "";
}

static void add_suggestion(struct str *out, const struct config_key *k, const struct yaml_node *n)
{
    if (!k->words || n->kind != YAML_SCALAR)
        return;
    struct suggestion near = { .word = n->text };
    for (size_t i = 0; k->words[i]; i++)
        suggest_try(&near, k->words[i]);
    if (near.best)
        str_addf(out, "; did you mean %s?", near.best);
}

static int bad_value(struct job_config *c, const struct config_key *k, struct source from,
                     const struct yaml_node *n, struct cairn_error *err)
{
    CLEANUP(str_release) struct str s = { 0 };
    str_addf(&s, "%s: %s is ", place_of(c, from, n), k->name);
    add_value(&s, n);
    str_add(&s, "; it must be ");
    config_allowed(k, &s);
    if (k->type == CONFIG_INT || k->type == CONFIG_REAL || k->type == CONFIG_COUNT)
        str_add(&s, number_trouble(n));
    add_suggestion(&s, k, n);
    return cairn_fail(err, CAIRN_EUSAGE, "%s", s.s);
}

static bool in_range(const struct config_key *k, double v)
{
    return (k->above ? v > k->least : v >= k->least) && (k->below ? v < k->most : v <= k->most);
}

/* Digits, a point, an exponent: what YAML and JSON call a number, and 1e-4, which YAML 1.1 does not. */
static bool parse_real(const char *s, double *out)
{
    const char *p = s + (*s == '-' || *s == '+');
    size_t whole = strspn(p, "0123456789"), part = 0;
    if (whole > 1 && *p == '0')
        return false;
    p += whole;
    if (*p == '.')
        p += 1 + (part = strspn(p + 1, "0123456789"));
    if (!whole && !part)
        return false;
    if (*p == 'e' || *p == 'E') {
        p += 1 + (p[1] == '-' || p[1] == '+');
        size_t n = strspn(p, "0123456789");
        if (!n)
            return false;
        p += n;
    }
    *out = strtod(s, NULL);
    return !*p && isfinite(*out);
}

static bool parse_whole(const char *s, int64_t *out)
{
    const char *digits = s + (*s == '-');
    return !(*digits == '0' && digits[1]) && cairn_parse_i64(s, out);
}

static bool parse_bool(const char *s, bool *out)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (!strcasecmp(s, words[i])) {
            *out = i % 2;
            return true;
        }
    return false;
}

static bool take_whole(const struct config_key *k, void *at, const struct yaml_node *n)
{
    int64_t v;
    if (n->style != YAML_PLAIN || !parse_whole(n->text, &v) || !in_range(k, (double)v))
        return false;
    *(int64_t *)at = v;
    return true;
}

static bool take_real(const struct config_key *k, void *at, const struct yaml_node *n)
{
    double v;
    if (n->style != YAML_PLAIN || !parse_real(n->text, &v) || !in_range(k, v))
        return false;
    *(double *)at = v;
    return true;
}

static bool take_word(const struct config_key *k, void *at, const struct yaml_node *n)
{
    for (int i = 0; k->words[i]; i++)
        if (!strcmp(n->text, k->words[i])) {
            memcpy(at, &i, sizeof(i)); /* any enum */
            return true;
        }
    return false;
}

static bool take_count(const struct config_key *k, struct config_count *at, const struct yaml_node *n)
{
    int64_t number;
    if (take_word(k, &at->word, n))
        return true;
    if (!take_whole(k, &number, n))
        return false;
    *at = (struct config_count){ -1, number };
    return true;
}

static bool take_scalar(const struct config_key *k, void *at, const struct yaml_node *n)
{
    switch (k->type) {
    case CONFIG_INT:
        return take_whole(k, at, n);
    case CONFIG_REAL:
        return take_real(k, at, n);
    case CONFIG_BOOL:
        return n->style == YAML_PLAIN && parse_bool(n->text, at);
    case CONFIG_WORD:
        return take_word(k, at, n);
    case CONFIG_COUNT:
        return take_count(k, at, n);
    case CONFIG_TEXT:
        *(const char **)at = yaml_is_null(n) ? "" : n->text;
        return true;
    case CONFIG_LIST:
        break;
    }
    return false;
}

/* A scalar is a list of one item; null is an empty list. */
static int take_list(struct job_config *c, const struct config_key *k, struct source from,
                     const struct yaml_node *n, struct cairn_error *err)
{
    struct config_list list = { 0 };
    if (n->kind == YAML_SCALAR && !yaml_is_null(n))
        *ARENA_PUSH(c->arena, list.item, list.n) = n->text;
    for (const struct yaml_node *i = n->first; i; i = i->next) {
        if (n->kind != YAML_LIST || i->kind != YAML_SCALAR || yaml_is_null(i))
            return bad_value(c, k, from, n->kind == YAML_LIST ? i : n, err);
        *ARENA_PUSH(c->arena, list.item, list.n) = i->text;
    }
    memcpy(config_value(c, k), &list, sizeof(list));
    return 0;
}

static int use_schema(struct job_config *c, const char *place, struct cairn_error *err);

static int take(struct job_config *c, const struct config_key *k, struct source from,
                const struct yaml_node *n, struct cairn_error *err)
{
    if (k->type == CONFIG_LIST) {
        if (take_list(c, k, from, n, err))
            return -1;
    } else if (n->kind != YAML_SCALAR || !take_scalar(k, config_value(c, k), n)) {
        return bad_value(c, k, from, n, err);
    }
    const char *place = place_of(c, from, n);
    *place_at(c, k) = place;
    return k->words == config_kinds ? use_schema(c, place, err) : 0;
}

/* The key that was probably meant, or NULL. */
static const char *suggest(const struct job_config *c, const char *name)
{
    const struct config_key *k;
    const struct config_section *s;
    const char *dot = strrchr(name, '.');
    size_t section = dot ? (size_t)(dot + 1 - name) : 0;
    struct suggestion near = { .word = name + section };
    for (size_t i = 0; section && (k = config_key_at(c, i)); i++)
        if (!strncmp(k->name, name, section))
            suggest_try(&near, k->name + section);
    if (near.best)
        return near.best - section;
    for (size_t i = 0; (k = config_key_at(c, i)); i++) /* the right name in the wrong section */
        if (!strcmp(strchr(k->name, '.') + 1, name + section))
            return k->name;
    for (size_t i = 0; !section && (s = config_section_at(c, i)); i++)
        suggest_try(&near, s->name);
    return near.best;
}

static int unknown_key(const struct job_config *c, const char *place, const char *name,
                       struct cairn_error *err)
{
    CLEANUP(str_release) struct str s = { 0 };
    const char *meant = suggest(c, name), *dot = strchr(name, '.');
    str_addf(&s, "%s: unknown key ", place);
    add_shown(&s, name);
    if (is_section(c, name))
        str_add(&s, "; it is a section: write its keys below it");
    else if (config_key_find(c, name)) /* in a file, with its dot */
        str_addf(&s, "; write %s below %.*s", dot + 1, (int)(dot - name), name);
    else if (meant)
        str_addf(&s, "; did you mean %s?", meant);
    cairn_fail(err, CAIRN_EUSAGE, "%s", s.s);
    return cairn_hint(err, "cairn help config %s lists the keys", c->schema->kind);
}

/* Something other than a map where a section belongs. */
static int no_map(const char *place, const char *what, const struct yaml_node *n, struct cairn_error *err)
{
    CLEANUP(str_release) struct str s = { 0 };
    str_addf(&s, "%s: %s is ", place, what);
    add_value(&s, n);
    str_add(&s, "; it must have keys below it");
    return cairn_fail(err, CAIRN_EUSAGE, "%s", s.s);
}

/* The first problem becomes the error, the others its hint, so that the user can fix the file in one go. */
static void note_trouble(struct job_config *c, const char *key, const struct yaml_node *at,
                         struct cairn_error *all, const struct cairn_error *one)
{
    size_t n = strlen(all->hint);
    struct config_trouble *t = ARENA_PUSH(c->arena, c->troubles, c->n_troubles);
    *t = (struct config_trouble){ key, at->line, at->column, arena_strdup(c->arena, one->msg),
                                  arena_strdup(c->arena, one->hint) };
    if (!all->code)
        *all = *one;
    else if (!str_starts(all->hint, "also "))
        cairn_hint(all, "also %s", one->msg);
    else if (n + strlen(one->msg) + 3 < sizeof(all->hint))
        snprintf(all->hint + n, sizeof(all->hint) - n, "\n%s", one->msg);
    else if (!str_ends(all->hint, "\n...") && n + 5 < sizeof(all->hint))
        snprintf(all->hint + n, sizeof(all->hint) - n, "\n...");
}

static void read_key(struct job_config *c, struct source from, const char *section, const struct yaml_node *n,
                     struct cairn_error *all)
{
    struct cairn_error one = { 0 };
    const char *name = arena_printf(c->arena, "%s.%s", section, n->key->text);
    const struct config_key *k = config_key_find(c, name);
    if (k ? take(c, k, from, n, &one) : unknown_key(c, place_of(c, from, n->key), name, &one))
        note_trouble(c, name, k ? n : n->key, all, &one);
}

static void read_section(struct job_config *c, struct source from, const struct yaml_node *n,
                         struct cairn_error *all)
{
    struct cairn_error one = { 0 };
    const char *section = n->key->text;
    if (!is_section(c, section)                   ? unknown_key(c, place_of(c, from, n->key), section, &one)
        : n->kind != YAML_MAP && !yaml_is_null(n) ? no_map(place_of(c, from, n), section, n, &one)
                                                  : 0) {
        note_trouble(c, section, is_section(c, section) ? n : n->key, all, &one);
        return;
    }
    for (const struct yaml_node *k = n->first; k; k = k->next)
        read_key(c, from, section, k, all);
}

/* model.kind is read first, wherever it is in the file, because it decides which keys exist.  An error in it
 * is reported when its own line is read. */
static void read_kind(struct job_config *c, struct source from, const struct yaml_node *root)
{
    struct cairn_error ignored = { 0 };
    for (const struct yaml_node *n = root->first; n; n = n->next)
        for (const struct yaml_node *k = strcmp(n->key->text, "model") ? NULL : n->first; k; k = k->next)
            if (k->key && !strcmp(k->key->text, "kind"))
                take(c, config_key_find(c, "model.kind"), from, k, &ignored);
}

static int read_sections(struct job_config *c, struct source from, const struct yaml_node *root,
                         struct cairn_error *err)
{
    c->file = arena_strdup(c->arena, from.name);
    if (root->kind != YAML_MAP && !yaml_is_null(root))
        return no_map(place_of(c, from, root), "the file", root, err);
    struct cairn_error all = { 0 };
    read_kind(c, from, root);
    for (const struct yaml_node *n = root->first; n; n = n->next)
        read_section(c, from, n, &all);
    if (all.code)
        *err = all;
    return all.code ? -1 : 0;
}

int config_read_text(struct job_config *c, const char *name, const char *text, size_t len,
                     struct cairn_error *err)
{
    struct yaml_node *root;
    if (yaml_parse(name, text, len, c->arena, &root, err))
        return -1;
    return read_sections(c, (struct source){ name, true }, root, err);
}

int config_read(struct job_config *c, const char *path, struct cairn_error *err)
{
    struct yaml_node *root;
    if (yaml_read(path, c->arena, &root, err))
        return -1;
    return read_sections(c, (struct source){ path, true }, root, err);
}

/* A string is used literally, whatever it would mean in YAML. */
static int set_key(struct job_config *c, const struct config_key *k, const char *option, const char *value,
                   struct cairn_error *err)
{
    bool is_text = k->type == CONFIG_TEXT || k->type == CONFIG_LIST;
    struct yaml_node one = { .style = is_text ? YAML_QUOTED : YAML_PLAIN, .text = value }, *n = &one;
    struct source from = { option, false };
    if (k->type == CONFIG_LIST && *value == '[' &&
        yaml_parse(option, value, strlen(value), c->arena, &n, err)) {
        bad_value(c, k, from, &one, err);
        return strchr(value, '*')
                   ? cairn_hint(err,
                                "quote a pattern that contains *: ['*.c_proj']; a bare * is a YAML alias")
                   : -1;
    }
    return take(c, k, from, n, err);
}

int config_set(struct job_config *c, const char *option, const char *key, const char *value,
               struct cairn_error *err)
{
    const struct config_key *k = config_key_find(c, key);
    if (!k)
        return unknown_key(c, option, key, err);
    if (!str_is_utf8(value))
        return cairn_fail(err, CAIRN_EUSAGE, "%s: %s is not UTF-8", option, k->name);
    return set_key(c, k, arena_strdup(c->arena, option), arena_strdup(c->arena, value), err);
}

void config_set_list(struct job_config *c, const char *option, const char *key, struct config_list list)
{
    const struct config_key *k = config_key_find(c, key);
    assert(k && k->type == CONFIG_LIST);
    memcpy(config_value(c, k), &list, sizeof(list));
    *place_at(c, k) = option;
}

int config_set_pair(struct job_config *c, const char *pair, struct cairn_error *err)
{
    const char *equals = strchr(pair, '=');
    CLEANUP(str_release) struct str shown = { 0 };
    add_shown(&shown, pair);
    if (!equals)
        return cairn_fail(err, CAIRN_EUSAGE, "--set %s: it must be KEY=VALUE", shown.s);
    const char *option = arena_printf(c->arena, "--set %s", shown.s);
    return config_set(c, option, arena_strndup(c->arena, pair, (size_t)(equals - pair)), equals + 1, err);
}

/* ---- defaults ---- */

static void set_default(struct job_config *c, const struct config_key *k, const char *value)
{
    struct cairn_error err;
    int failed = set_key(c, k, "default", value, &err);
    assert(!failed); /* a table is wrong */
    (void)failed;
    *place_at(c, k) = NULL;
}

/* Sets the defaults of the kind's own keys, and its defaults for shared keys that are not set. */
static void set_schema(struct job_config *c, const struct config_schema *schema)
{
    for (size_t i = 0; c->schema && i < c->schema->n_presets; i++) { /* of the previous kind */
        const struct config_key *k = config_key_find(c, c->schema->presets[i].key);
        if (!*place_at(c, k))
            set_default(c, k, k->preset);
    }
    c->schema = schema;
    c->own = arena_alloc(c->arena, schema->bytes);
    c->own_place = ARENA_NEW(c->arena, const char *, schema->n_keys + 1);
    for (size_t i = 0; i < schema->n_keys; i++)
        set_default(c, &schema->keys[i], schema->keys[i].preset);
    for (size_t i = 0; i < schema->n_presets; i++) {
        const struct config_key *k = config_key_find(c, schema->presets[i].key);
        assert(k);
        if (!*place_at(c, k))
            set_default(c, k, schema->presets[i].value);
    }
}

/* Called after model.kind was set.  Keys of the previous kind cannot be carried over. */
static int use_schema(struct job_config *c, const char *place, struct cairn_error *err)
{
    const struct config_schema *schema = config_schema(c->model.kind);
    if (schema == c->schema)
        return 0;
    for (size_t i = 0; i < c->schema->n_keys; i++)
        if (c->own_place[i])
            return cairn_fail(err, CAIRN_EUSAGE, "%s: model.kind is %s, but %s (%s) is a key of %s", place,
                              schema->kind, c->schema->keys[i].name, c->own_place[i], c->schema->kind);
    set_schema(c, schema);
    return 0;
}

void config_init(struct job_config *c, struct arena *arena)
{
    static const struct config_schema none = { .kind = "" };
    *c = (struct job_config){ .arena = arena, .place = ARENA_NEW(arena, const char *, n_config_keys) };
    c->schema = &none;
    for (size_t i = 0; i < n_config_keys; i++)
        if (config_keys[i].words != config_kinds) /* kind 0 */
            set_default(c, &config_keys[i], config_keys[i].preset);
    set_schema(c, config_schema(0));
}

void config_copy(struct job_config *to, const struct job_config *from)
{
    *to = *from;
    to->place = ARENA_NEW(from->arena, const char *, n_config_keys);
    to->own = arena_alloc(from->arena, from->schema->bytes);
    to->own_place = ARENA_NEW(from->arena, const char *, from->schema->n_keys + 1);
    memcpy(to->place, from->place, n_config_keys * sizeof(*to->place));
    memcpy(to->own, from->own, from->schema->bytes);
    memcpy(to->own_place, from->own_place, from->schema->n_keys * sizeof(*to->own_place));
}
