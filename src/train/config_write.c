/* SPDX-License-Identifier: Apache-2.0
 * Writes the keys as text: a run's config.yaml and the tables of docs/config.md. */
#include "base/hash.h"
#include "base/yaml.h"
#include "train/config.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As few digits as the number needs, in a form that YAML 1.1 reads as a number: 1.0e-05, not 1e-05. */
static void add_real(struct str *out, double v)
{
    char text[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    size_t mantissa = strcspn(text, "e");
    if (!text[mantissa] || strchr(text, '.'))
        str_add(out, text);
    else if (v >= 1 && v < 1e15)
        str_addf(out, "%.0f", v);
    else
        str_addf(out, "%.*s.0%s", (int)mantissa, text, text + mantissa);
}

static void add_list(struct str *out, const struct config_list *list)
{
    str_add(out, "[");
    for (size_t i = 0; i < list->n; i++) {
        str_add(out, i ? ", " : "");
        yaml_add_quoted(out, list->item[i]);
    }
    str_add(out, "]");
}

static void add_value(struct str *out, const struct job_config *c, const struct config_key *k)
{
    const void *at = config_written(c, k);
    int word;
    switch (k->type) {
    case CONFIG_INT:
        str_addf(out, "%" PRId64, *(const int64_t *)at);
        break;
    case CONFIG_REAL:
        add_real(out, *(const double *)at);
        break;
    case CONFIG_BOOL:
        str_add(out, *(const bool *)at ? "true" : "false");
        break;
    case CONFIG_WORD:
        memcpy(&word, at, sizeof(word));
        str_add(out, k->words[word]);
        break;
    case CONFIG_COUNT:
        memcpy(&word, at, sizeof(word));
        if (word < 0)
            str_addf(out, "%" PRId64, ((const struct config_count *)at)->n);
        else
            str_add(out, k->words[word]);
        break;
    case CONFIG_TEXT:
        yaml_add_quoted(out, *(const char *const *)at);
        break;
    case CONFIG_LIST:
        add_list(out, at);
        break;
    }
}

static bool is_in(const struct config_key *k, const struct config_section *s)
{
    size_t n = strlen(s->name);
    return !strncmp(k->name, s->name, n) && k->name[n] == '.';
}

static void add_words(struct str *out, const struct config_key *k)
{
    bool more = k->type == CONFIG_COUNT; /* a number follows */
    for (size_t i = 0; k->words[i]; i++)
        str_addf(out, "%s%s", !i ? "" : more || k->words[i + 1] ? ", " : " or ", k->words[i]);
    if (more)
        str_addf(out, " or a number");
}

static void add_key(struct str *out, const struct job_config *c, const struct config_key *k)
{
    enum { COMMENTS = 30 };
    size_t begin = out->len;
    str_addf(out, "  %s: ", strchr(k->name, '.') + 1);
    add_value(out, c, k);
    size_t width = out->len - begin;
    str_addf(out, "%*s# ", width < COMMENTS ? (int)(COMMENTS - width) : 1, "");
    if (k->words && k->words[1]) {
        add_words(out, k);
        str_add(out, ": ");
    }
    str_add(out, k->about);
    if (k->unit && !strstr(k->about, k->unit))
        str_addf(out, " (%s)", k->unit);
    str_add(out, "\n");
}

static void add_keys(struct str *out, const struct job_config *c, const struct config_section *s,
                     const struct config_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_in(&keys[i], s))
            add_key(out, c, &keys[i]);
}

void config_write(const struct job_config *c, struct str *out)
{
    const struct config_section *s;
    for (size_t i = 0; (s = config_section_at(c, i)); i++) {
        str_addf(out, "%s%s: # %s\n", i ? "\n" : "", s->name, s->about);
        add_keys(out, c, s, config_keys, n_config_keys);
        add_keys(out, c, s, c->schema->keys, c->schema->n_keys);
    }
}

static bool decides_numbers(const struct config_key *k)
{
    return strncmp(k->name, "run.", 4) != 0 && strncmp(k->name, "memory.", 7) != 0 &&
           strcmp(k->name, "dist.timeout") != 0;
}

static void add_values(struct str *out, const struct job_config *c, const struct config_key *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (decides_numbers(&keys[i])) {
            str_addf(out, "%s: ", keys[i].name);
            add_value(out, c, &keys[i]);
            str_add(out, "\n");
        }
}

void config_write_values(const struct job_config *c, struct str *out)
{
    add_values(out, c, config_keys, n_config_keys);
    add_values(out, c, c->schema->keys, c->schema->n_keys);
}

void config_allowed(const struct config_key *k, struct str *out)
{
    switch (k->type) {
    case CONFIG_INT:
    case CONFIG_REAL:
        str_addf(out, "a %snumber, %s %.16g, %s %.16g", k->type == CONFIG_INT ? "whole " : "",
                 k->above ? "above" : "at least", k->least, k->below ? "below" : "at most", k->most);
        break;
    case CONFIG_BOOL:
        str_add(out, "true or false");
        break;
    case CONFIG_WORD:
        add_words(out, k);
        break;
    case CONFIG_COUNT:
        add_words(out, k);
        str_addf(out, " (whole, at least %.16g, at most %.16g)", k->least, k->most);
        break;
    case CONFIG_TEXT:
        str_add(out, "a string");
        break;
    case CONFIG_LIST:
        str_add(out, "a string or a list of strings");
        break;
    }
}

static void add_row(struct str *out, const struct config_key *k)
{
    bool quoted = k->type == CONFIG_TEXT && !*k->preset;
    str_addf(out, "| `%s` | `%s` | ", k->name, quoted ? "\"\"" : k->preset);
    config_allowed(k, out);
    str_addf(out, "%s%s%s | %s |\n", k->unit ? " (" : "", k->unit ? k->unit : "", k->unit ? ")" : "",
             k->about);
}

static bool any_in(const struct config_key *keys, size_t n, const struct config_section *s)
{
    for (size_t i = 0; i < n; i++)
        if (is_in(&keys[i], s))
            return true;
    return false;
}

static void add_table(struct str *out, const struct config_section *s, const struct config_key *keys,
                      size_t n)
{
    str_add(out, "| key | default | allowed | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < n; i++)
        if (is_in(&keys[i], s))
            add_row(out, &keys[i]);
}

static void add_presets(struct str *out, const struct config_schema *schema, const struct config_section *s)
{
    for (size_t i = 0; i < schema->n_presets; i++) {
        struct config_key k = { .name = schema->presets[i].key };
        if (is_in(&k, s))
            str_addf(out, "\nWith `model.kind: %s` the default of `%s` is `%s`.\n", schema->kind, k.name,
                     schema->presets[i].value);
    }
}

/* The shared keys of a section, then those of each kind. */
static void add_section(struct str *out, const struct config_section *s, bool shared)
{
    str_addf(out, "%s### `%s`: %s\n", out->len ? "\n" : "", s->name, s->about);
    if (shared && any_in(config_keys, n_config_keys, s)) {
        str_add(out, "\n");
        add_table(out, s, config_keys, n_config_keys);
    }
    for (int kind = 0; config_kinds[kind]; kind++) {
        const struct config_schema *schema = config_schema(kind);
        if (any_in(schema->keys, schema->n_keys, s)) {
            str_addf(out, "\nWith `model.kind: %s`:\n\n", schema->kind);
            add_table(out, s, schema->keys, schema->n_keys);
        }
        add_presets(out, schema, s);
    }
}

void config_write_markdown(struct str *out)
{
    for (size_t i = 0; i < n_config_sections; i++)
        add_section(out, &config_sections[i], true);
    for (int kind = 0; config_kinds[kind]; kind++)
        for (size_t i = 0; i < config_schema(kind)->n_sections; i++)
            add_section(out, &config_schema(kind)->sections[i], false);
}

void config_hash(const struct job_config *c, char out[33])
{
    CLEANUP(str_release) struct str text = { 0 };
    struct hash h;
    config_write_values(c, &text);
    hash_init(&h);
    hash_add(&h, text.s, text.len);
    hash_end_text(&h, out);
}
