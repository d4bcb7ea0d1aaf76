/* SPDX-License-Identifier: Apache-2.0 */
#include "run/history.h"

#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "host/root.h"
#include "run/attempt.h"
#include "run/journal.h"
#include "run/state_dir.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static int64_t seconds_since_1970(const char *utc)
{
    struct tm tm = { 0 };
    const char *end = utc ? strptime(utc, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
    return end && !*end ? (int64_t)timegm(&tm) : 0;
}

/* The first event has time and command. */
static void read_start(const struct root *r, struct run_entry *out, struct arena *a)
{
    const char *text = root_read(r, a, path_join(a, out->dir, "events.jsonl"), NULL);
    CLEANUP(json_cleanup) struct json *start = parse(text, text ? strcspn(text, "\n") : 0);
    out->started_text = arena_strdup(a, json_text(json_get(start, "time")));
    out->started = out->touched = seconds_since_1970(out->started_text);
    out->name = join_words(json_get(start, "command"), a);
    out->state = journal_is_running(start) ? RUN_RUNNING : RUN_CRASHED;
}

/* The file is not trusted: impossible values count as missing. */
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

static void read_verdict(const struct root *r, struct run_entry *out, struct arena *a)
{
    size_t n = 0;
    const char *text = root_read(r, a, path_join(a, out->dir, "verdict.json"), &n);
    CLEANUP(json_cleanup) struct json *v = parse(text, n);
    const struct json *tries = json_get(v, "attempts");
    if (!v)
        return;
    out->ended = true;
    out->code = code_of(v);
    out->attempts = (int64_t)json_length(tries);
    for (size_t i = 0; i < json_length(tries); i++) {
        const struct json *t = json_at(tries, i);
        const char *class_id = json_text(json_get(t, "class")), *change = json_text(json_get(t, "change"));
        out->seconds += seconds_of(t);
        out->verdict = class_id ? arena_strdup(a, class_id) : out->verdict;
        out->change = change ? arena_strdup(a, change) : out->change;
    }
    const struct json *last = json_length(tries) ? json_at(tries, json_length(tries) - 1) : NULL;
    bool stopped = str_eq(json_text(json_get(last, "end")), attempt_end_name(ATTEMPT_INTERRUPTED));
    out->state = stopped ? RUN_STOPPED : out->code ? RUN_CRASHED : RUN_FINISHED;
    out->touched += (int64_t)out->seconds;
}

/* The folders sorted by name, so oldest first. */
static size_t list_runs(const struct root *here, const char *state, struct arena *a, struct run_entry **out)
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
            *ARENA_PUSH(a, *out, n) =
                (struct run_entry){ .kind = RUN_SUPERVISED, .dir = run, .id = names[i] };
    }
    return n;
}

static void turn_round(struct run_entry *runs, size_t n)
{
    for (size_t i = 0; i < n / 2; i++) {
        struct run_entry first = runs[i];
        runs[i] = runs[n - 1 - i];
        runs[n - 1 - i] = first;
    }
}

size_t history_list(const char *state, struct arena *a, struct run_entry **out)
{
    struct root here = { .fd = -1 };
    struct cairn_error ignored = { 0 };
    *out = NULL;
    if (root_open(&here, NULL, &ignored))
        return 0;
    size_t n = list_runs(&here, state, a, out);
    turn_round(*out, n);
    root_close(&here);
    return n;
}

void history_read_runs(struct run_entry *runs, size_t n, struct arena *a)
{
    struct root here = { .fd = -1 };
    struct cairn_error ignored = { 0 };
    if (root_open(&here, NULL, &ignored))
        return;
    for (size_t i = 0; i < n; i++) {
        read_start(&here, &runs[i], a);
        read_verdict(&here, &runs[i], a);
    }
    root_close(&here);
}

size_t history_read(const char *state, struct arena *a, struct run_entry **out)
{
    size_t n = history_list(state, a, out);
    history_read_runs(*out, n, a);
    return n;
}

/* 1 is the newest; 0: not a number. */
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
    struct run_entry *runs;
    uint64_t number = number_of(name);
    if (root_open(&here, NULL, &ignored))
        return NULL;
    size_t n = list_runs(&here, state, a, &runs);
    root_close(&here);
    for (size_t i = 0; i < n; i++)
        if (number ? n - i == number : str_eq(runs[i].id, name))
            return runs[i].dir;
    return NULL;
}

int history_dir(const char *name, struct arena *a, const char **dir, struct cairn_error *err)
{
    const char *state;
    *dir = NULL;
    if (!history_is_name(name))
        return 0;
    if (state_dir((const char *const *)environ, a, &state, err))
        return -1;
    *dir = history_find(state, name, a);
    if (*dir)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "no run named %s", name);
    return cairn_hint(err, "cairn run --history lists the runs; cairn run -- COMMAND starts one");
}
