/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config_findings.h"

#include <stdlib.h>
#include <string.h>

/* ":12:5: " after the file's name; 0: something else follows. */
static size_t read_place(const char *at, int *line, int *column)
{
    char *end;
    const char *start = at;
    if (*at++ != ':')
        return 0;
    long l = strtol(at, &end, 10);
    if (end == at || *end != ':')
        return 0;
    at = end + 1;
    long c = strtol(at, &end, 10);
    if (end == at || strncmp(end, ": ", 2))
        return 0;
    *line = (int)l;
    *column = (int)c;
    return (size_t)(end + 2 - start);
}

/* The message without the place that it begins with. */
static const char *without_place(const char *message, const char *file, int *line, int *column)
{
    size_t n = strlen(file);
    if (strncmp(message, file, n))
        return message;
    size_t place = read_place(message + n, line, column);
    if (place)
        return message + n + place;
    return strncmp(message + n, ": ", 2) ? message : message + n + 2;
}

static const char *with_name(struct arena *a, const char *text, const char *file, const char *shown)
{
    const char *at = strstr(text, file);
    if (!at)
        return text;
    const char *rest = with_name(a, at + strlen(file), file, shown);
    return arena_printf(a, "%.*s%s%s", (int)(at - text), text, shown, rest);
}

/* Checks begin with the key that they are about: "train.warmup is 50, …". */
static const char *key_of(const struct job_config *c, const char *message)
{
    size_t n = strcspn(message, " ");
    const char *word = arena_strndup(c->arena, message, n);
    const struct config_key *k = config_key_find(c, word);
    return k ? k->name : NULL;
}

static void add(struct config_findings *f, struct arena *a, struct config_finding one)
{
    *ARENA_PUSH(a, f->errors, f->n_errors) = one;
}

void config_findings_add(struct config_findings *f, const struct job_config *c, const char *file,
                         const char *shown, const struct cairn_error *err)
{
    struct arena *a = c->arena;
    for (size_t i = 0; i < c->n_troubles; i++) {
        const struct config_trouble *t = &c->troubles[i];
        int line, column;
        const char *message = without_place(t->message, file, &line, &column);
        add(f, a,
            (struct config_finding){ t->line, t->column, t->key, with_name(a, message, file, shown),
                                     *t->hint ? t->hint : NULL });
    }
    if (c->n_troubles)
        return;
    struct config_finding one = { 0 };
    const char *message = without_place(arena_strdup(a, err->msg), file, &one.line, &one.column);
    one.message = with_name(a, message, file, shown);
    one.key = key_of(c, message);
    one.hint = err->hint[0] ? with_name(a, arena_strdup(a, err->hint), file, shown) : NULL;
    add(f, a, one);
}
