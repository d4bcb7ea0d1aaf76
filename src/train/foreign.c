/* SPDX-License-Identifier: Apache-2.0 */
#include "train/foreign.h"

#include "base/yaml.h"
#include <stdarg.h>
#include <string.h>

static struct foreign_key *find(const struct foreign_job *j, const char *key)
{
    for (size_t i = 0; i < j->n_keys; i++)
        if (!strcmp(j->keys[i].key, key))
            return &j->keys[i];
    return NULL;
}

void foreign_add(struct foreign_job *j, struct arena *a, const char *key, const char *value,
                 const char *place, const char *from)
{
    struct foreign_key *k = find(j, key);
    if (!k)
        k = ARENA_PUSH(a, j->keys, j->n_keys);
    *k = (struct foreign_key){ arena_strdup(a, key), arena_strdup(a, value), arena_strdup(a, place),
                               arena_strdup(a, from) };
}

void foreign_add_list(struct foreign_job *j, struct arena *a, const char *key, const char *const *items,
                      size_t n, const char *place, const char *from)
{
    CLEANUP(str_release) struct str list = { 0 };
    str_add(&list, "[");
    for (size_t i = 0; i < n; i++) {
        str_add(&list, i ? ", " : "");
        yaml_add_quoted(&list, items[i]);
    }
    str_add(&list, "]");
    foreign_add(j, a, key, list.s, place, from);
}

void foreign_note(struct foreign_job *j, struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *ARENA_PUSH(a, j->notes, j->n_notes) = arena_vprintf(a, fmt, ap);
    va_end(ap);
}

const char *foreign_value(const struct foreign_job *j, const char *key)
{
    const struct foreign_key *k = find(j, key);
    return k ? k->value : NULL;
}

static int apply_key(struct job_config *c, const struct foreign_job *j, const struct foreign_key *k,
                     struct cairn_error *err)
{
    const char *option = !k->place ? arena_printf(c->arena, "%s's default", j->program)
                         : !k->from || !strcmp(k->place, k->from)
                             ? k->place
                             : arena_printf(c->arena, "%s: %s", k->place, k->from);
    return config_set(c, option, k->key, k->value, err);
}

/* model.kind comes first, since it decides which keys exist. */
int foreign_apply(struct job_config *c, const struct foreign_job *j, struct cairn_error *err)
{
    const struct foreign_key *kind = find(j, "model.kind");
    struct foreign_job *kept = ARENA_NEW(c->arena, struct foreign_job, 1);
    *kept = *j;
    c->foreign = kept;
    if (j->file)
        c->file = arena_strdup(c->arena, j->file);
    if (kind && apply_key(c, j, kind, err))
        return -1;
    for (size_t i = 0; i < j->n_keys; i++)
        if (&j->keys[i] != kind && apply_key(c, j, &j->keys[i], err))
            return -1;
    return 0;
}

/* ---- a file ---- */

static const struct config_schema *schema_of(const struct foreign_job *j)
{
    const char *kind = foreign_value(j, "model.kind");
    for (int i = 0; kind && config_kinds[i]; i++)
        if (!strcmp(config_kinds[i], kind))
            return config_schema(i);
    return config_schema(0);
}

static bool is_text(const struct config_schema *s, const char *name)
{
    for (size_t i = 0; i < n_config_keys + s->n_keys; i++) {
        const struct config_key *k = i < n_config_keys ? &config_keys[i] : &s->keys[i - n_config_keys];
        if (!strcmp(k->name, name))
            return k->type == CONFIG_TEXT || k->type == CONFIG_LIST;
    }
    return true;
}

static bool is_list(const char *value)
{
    return value[0] == '[' && (value[1] == '"' || value[1] == ']');
}

static void add_key(struct str *out, const struct foreign_job *j, const struct config_schema *s,
                    const struct foreign_key *k)
{
    enum { COMMENTS = 34 };
    size_t begin = out->len;
    str_addf(out, "  %s: ", strchr(k->key, '.') + 1);
    if (is_text(s, k->key) && !is_list(k->value))
        yaml_add_quoted(out, k->value);
    else
        str_add(out, k->value);
    size_t width = out->len - begin;
    str_addf(out, "%*s# ", width < COMMENTS ? (int)(COMMENTS - width) : 1, "");
    if (k->from)
        str_addf(out, "from %s\n", k->from);
    else
        str_addf(out, "%s's default\n", j->program);
}

static bool is_in(const char *key, const char *section)
{
    size_t n = strlen(section);
    return !strncmp(key, section, n) && key[n] == '.';
}

static void add_section(struct str *out, const struct foreign_job *j, const struct config_schema *s,
                        const char *section)
{
    bool any = false;
    for (size_t i = 0; i < j->n_keys; i++) {
        if (!is_in(j->keys[i].key, section))
            continue;
        if (!any)
            str_addf(out, "%s:\n", section);
        any = true;
        add_key(out, j, s, &j->keys[i]);
    }
}

void foreign_write(const struct foreign_job *j, struct str *yaml)
{
    const struct config_schema *s = schema_of(j);
    CLEANUP(str_release) struct str comment = { 0 };
    str_addf(&comment, "%s%s%s", j->program, j->file ? ": " : "", j->file ? j->file : "");
    for (size_t i = 0; i < j->n_notes; i++)
        str_addf(&comment, "\n%s", j->notes[i]);
    if (j->missing)
        str_addf(&comment, "\nmodel.path is still to be set: %s", j->missing);
    for (const char *line = comment.s; line; line = str_next_line(line)) {
        str_add(yaml, "# ");
        str_add_clean(yaml, line, strcspn(line, "\n"));
        str_add(yaml, "\n");
    }
    for (size_t i = 0; i < n_config_sections; i++)
        add_section(yaml, j, s, config_sections[i].name);
    for (size_t i = 0; i < s->n_sections; i++)
        add_section(yaml, j, s, s->sections[i].name);
}
