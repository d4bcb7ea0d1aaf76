/* SPDX-License-Identifier: Apache-2.0 */
#include "report/config_keys.h"

#include "train/config.h"
#include <string.h>

static const char *type_name(const struct config_key *k)
{
    switch (k->type) {
    case CONFIG_BOOL:
        return "bool";
    case CONFIG_WORD:
        return "choice";
    case CONFIG_TEXT:
        return "text";
    case CONFIG_LIST:
        return "list";
    default:
        return "number"; /* CONFIG_COUNT also takes its words */
    }
}

static const char *default_of(const struct config_schema *s, const struct config_key *k)
{
    for (size_t i = 0; i < s->n_presets; i++)
        if (!strcmp(s->presets[i].key, k->name))
            return s->presets[i].value;
    return k->preset;
}

static void add_key(struct json *list, const struct config_schema *s, const struct config_key *k)
{
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "name", k->name);
    json_add_text(o, "type", type_name(k));
    json_add_text(o, "default", default_of(s, k));
    if (k->words && k->words[0]) {
        struct json *words = json_add_array(o, "words");
        for (size_t i = 0; k->words[i]; i++)
            json_add_text(words, NULL, k->words[i]);
    } else
        json_add_null(o, "words");
    json_add_text(o, "unit", k->unit);
    json_add_text(o, "about", k->about);
}

static bool is_in(const struct config_key *k, const struct config_section *s)
{
    size_t n = strlen(s->name);
    return !strncmp(k->name, s->name, n) && k->name[n] == '.';
}

/* In the order of `cairn help config`: by section, the shared keys first. */
static void add_kind(struct json *list, struct json *sections, const struct job_config *c)
{
    const struct config_section *s;
    const struct config_schema *schema = c->schema;
    for (size_t i = 0; (s = config_section_at(c, i)); i++) {
        if (!json_get(sections, s->name))
            json_add_text(sections, s->name, s->about);
        for (size_t k = 0; k < n_config_keys; k++)
            if (is_in(&config_keys[k], s))
                add_key(list, schema, &config_keys[k]);
        for (size_t k = 0; k < schema->n_keys; k++)
            if (is_in(&schema->keys[k], s))
                add_key(list, schema, &schema->keys[k]);
    }
}

struct json *report_config_keys(void)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *kinds = json_add_object(top, "kinds"), *sections = json_add_object(top, "sections");
    for (size_t i = 0; config_kinds[i]; i++) {
        CLEANUP(arena_release) struct arena a = { 0 };
        struct job_config c;
        struct cairn_error ignored;
        config_init(&c, &a);
        if (!config_set(&c, "keys", "model.kind", config_kinds[i], &ignored))
            add_kind(json_add_array(kinds, config_kinds[i]), sections, &c);
    }
    return top;
}
