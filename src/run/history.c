/* SPDX-License-Identifier: Apache-2.0 */
#include "run/history.h"

#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "host/root.h"
#include "run/journal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_S = 1000000000 };

static struct json *parse(const char *text, size_t n)
{
    struct json *v = NULL;
    struct cairn_error ignored = { 0 };
    return text && !json_parse(text, n, &v, &ignored) ? v : NULL;
}

static const char *join_words(const struct json *list, struct arena *a)
{
    CLEANUP(str_release) struct str text = { 0 };
    for (size_t i = 0; i < json_length(list); i++)
        if (json_text(json_at(list, i)))
            str_addf(&text, "%s%s", i ? " " : "", json_text(json_at(list, i)));
    return text.len ? arena_strdup(a, text.s) : NULL;
}

/* The first event says when and what. */
static void read_start(const struct root *r, struct history_run *out, struct arena *a)
{
    const char *text = root_read(r, a, path_join(a, out->dir, "events.jsonl"), NULL);
    CLEANUP(json_cleanup) struct json *start = parse(text, text ? strcspn(text, "\n") : 0);
    out->started = arena_strdup(a, json_text(json_get(start, "time")));
    out->command = join_words(json_get(start, "command"), a);
    out->running = journal_is_running(start);
}

/* A file may say anything: what no run can have counts as not said. */
static double seconds_of(const struct json *attempt)
{
    double s = json_number(json_get(attempt, "seconds"), 0);
    return s > 0 && s < LONGEST_S ? s : 0;
}

static int64_t code_of(const struct json *v)
{
    int64_t code = json_int(json_get(v, "code"), -1);
    return code >= 0 && code <= 255 ? code : -1;
}

static void read_verdict(const struct root *r, struct history_run *out, struct arena *a)
{
    size_t n = 0;
    const char *text = root_read(r, a, path_join(a, out->dir, "verdict.json"), &n);
    CLEANUP(json_cleanup) struct json *v = parse(text, n);
    const struct json *tries = json_get(v, "attempts");
    if (!v)
        return;
    out->ended = true;
    out->running = false;
    out->code = code_of(v);
    out->attempts = (int64_t)json_length(tries);
    for (size_t i = 0; i < json_length(tries); i++) {
        const struct json *t = json_at(tries, i);
        const char *class_id = json_text(json_get(t, "class")), *change = json_text(json_get(t, "change"));
        out->seconds += seconds_of(t);
        out->class_id = class_id ? arena_strdup(a, class_id) : out->class_id;
        out->change = change ? arena_strdup(a, change) : out->change;
    }
}

/* The folders, oldest first, as their names sort. */
static size_t list_runs(const struct root *here, const char *state, struct arena *a, struct history_run **out)
{
    const char *dir = path_join(a, state, "runs");
    char **names;
    size_t n_names = 0, n = 0;
    *out = NULL;
    if (root_list(here, a, dir, &names, &n_names))
        return 0;
    for (size_t i = 0; i < n_names; i++) {
        const char *run = path_join(a, dir, names[i]);
        if (root_is_dir(here, run))
            *ARENA_PUSH(a, *out, n) = (struct history_run){ .dir = run, .name = names[i] };
    }
    return n;
}

static void turn_round(struct history_run *runs, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct history_run first = runs[i];
        runs[i] = runs[n - 1 - i];
        runs[n - 1 - i] = first;
    }
}

size_t history_read(const char *state, struct arena *a, struct history_run **out)
{
    struct root here = { .fd = -1 };
    struct cairn_error ignored = { 0 };
    *out = NULL;
    if (root_open(&here, NULL, &ignored))
        return 0;
    size_t n = list_runs(&here, state, a, out);
    turn_round(*out, n);
    for (size_t i = 0; i < n; i++) {
        read_start(&here, &(*out)[i], a);
        read_verdict(&here, &(*out)[i], a);
    }
    root_close(&here);
    return n;
}

/* 1 is the newest; 0: it is no number. */
static uint64_t number_of(const char *name)
{
    uint64_t n;
    if (str_eq(name, "last"))
        return 1;
    return cairn_parse_u64(name + (*name == '#'), &n) ? n : 0;
}

bool history_is_name(const char *word)
{
    int end = 0; /* of "20261115T060535Z-4711", which may have a letter behind it: see run/journal.c */
    if (number_of(word))
        return true;
    (void)!sscanf(word, "%*8[0-9]T%*6[0-9]Z-%*[0-9-]%n", &end);
    const char *rest = word + end;
    return end > 0 && (!*rest || (*rest >= 'a' && *rest <= 'z' && !rest[1]));
}

const char *history_find(const char *state, const char *name, struct arena *a)
{
    struct root here = { .fd = -1 };
    struct cairn_error ignored = { 0 };
    struct history_run *runs;
    uint64_t number = number_of(name);
    if (root_open(&here, NULL, &ignored))
        return NULL;
    size_t n = list_runs(&here, state, a, &runs);
    root_close(&here);
    for (size_t i = 0; i < n; i++)
        if (number ? n - i == number : str_eq(runs[i].name, name))
            return runs[i].dir;
    return NULL;
}
