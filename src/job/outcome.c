/* SPDX-License-Identifier: Apache-2.0 */
#include "job/outcome.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "job/job_dir.h"
#include "job/progress.h"
#include "record/runs.h"
#include "run/journal.h"
#include <string.h>

enum { TAIL_BYTES = 8 << 10 };

/* What native training says of itself; RUN_UNKNOWN if it left nothing. */
static enum run_state training_state(const char *run_dir, struct arena *a)
{
    struct run_info info;
    struct cairn_error ignored;
    return run_dir && !run_info_read(run_dir, a, &info, &ignored) ? info.state : RUN_UNKNOWN;
}

/* A stopped job keeps its place if the user paused it. */
static enum job_state stopped(const struct job_row *row)
{
    return row->want == JOB_WANT_PAUSE ? JOB_PAUSED : JOB_STOPPED;
}

/* The last line of the log that `cairn train` itself said, with the user's name of the configuration. */
static const char *last_message(const char *journal, const struct job_row *row, struct arena *a)
{
    static const char mark[] = "cairn: ";
    CLEANUP(json_cleanup) struct json *options = NULL;
    struct cairn_error ignored;
    char text[TAIL_BYTES + 1];
    size_t n = file_read_tail(arena_printf(a, "%s/log", journal), text, TAIL_BYTES);
    const char *last = NULL, *config = job_dir_config_name(row);
    text[n] = '\0';
    for (const char *line = text; line && *line; line = str_next_line(line))
        if (str_starts(line, mark))
            last = line + strlen(mark);
    if (!last)
        return NULL;
    last = arena_strndup(a, last, strcspn(last, "\n"));
    const char *here = strstr(last, arena_printf(a, "/%s/%s:", row->uid, config));
    const char *file = row->options && !json_parse(row->options, strlen(row->options), &options, &ignored)
                           ? json_text(json_get(options, "file"))
                           : NULL;
    return here && file ? arena_printf(a, "%s%s", file, strchr(here + strlen(row->uid) + 2, ':')) : last;
}

/* The line of the log that shows it, for a failure that is not cairn's subject. */
static const char *evidence(const struct json *attempt, struct arena *a)
{
    const struct json *lines = json_get(attempt, "evidence");
    return json_length(lines) ? arena_strdup(a, json_text(json_at(lines, 0))) : NULL;
}

static const char *cause_of(const struct json *last, const struct store_end *end, const struct job_row *row,
                            const char *journal, struct arena *a)
{
    const char *said = row->kind == JOB_RUN ? NULL : last_message(journal, row, a),
               *shown = evidence(last, a);
    bool known = end->class_id && strcmp(end->class_id, "unknown") != 0;
    if (said)
        return said;
    if (str_eq(json_text(json_get(last, "end")), "not-started"))
        return end->exit_code == 127 ? "there is no such command" : "the command cannot be executed";
    if (shown && (!known || str_eq(end->class_id, "not-rocm")))
        return shown;
    return known ? arena_strdup(a, json_text(json_get(last, "cause")))
                 : arena_printf(a, "it ended with exit status %lld", (long long)end->exit_code);
}

static void read_verdict(const struct json *verdict, const struct job_row *row, const char *journal,
                         enum run_state training, struct arena *a, struct store_end *out)
{
    const struct json *tries = json_get(verdict, "attempts"),
                      *last = json_length(tries) ? json_at(tries, json_length(tries) - 1) : NULL;
    out->has_exit = true;
    out->exit_code = json_int(json_get(verdict, "code"), 0);
    if (str_eq(json_text(json_get(last, "end")), "interrupted") || training == RUN_STOPPED) {
        out->state = stopped(row);
        if (row->want == JOB_WANT_NOTHING)
            out->cause = "a signal stopped it: the machine was shut down, or somebody sent one";
    } else if (out->exit_code == 0)
        out->state = JOB_FINISHED;
    else {
        out->state = JOB_FAILED;
        out->class_id = arena_strdup(a, json_text(json_get(last, "class")));
        out->cause = cause_of(last, out, row, journal, a);
    }
}

void outcome_read(const char *state, const struct job_row *row, struct arena *a, struct store_end *out)
{
    CLEANUP(json_cleanup) struct json *verdict = NULL;
    struct cairn_error ignored;
    const char *journal = job_dir_attempt(state, row, a);
    *out = (struct store_end){ .state = JOB_LOST, .run_dir = journal_training(journal, a) };
    enum run_state training = training_state(out->run_dir, a);
    if (!json_read_object(arena_printf(a, "%s/verdict.json", journal), &verdict, &ignored))
        read_verdict(verdict, row, journal, training, a, out);
    else if (training == RUN_FINISHED || (row->want == JOB_WANT_KILL || row->want == JOB_WANT_STOP))
        out->state = training == RUN_FINISHED ? JOB_FINISHED : JOB_STOPPED;
    else if (row->want == JOB_WANT_PAUSE)
        out->state = JOB_PAUSED;
    if (out->state == JOB_LOST)
        out->cause = "it ended without saying why: power loss, or somebody killed it";
    out->options = job_progress_keep(state, row, out->run_dir, a);
}
