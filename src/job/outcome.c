/* SPDX-License-Identifier: Apache-2.0 */
#include "job/outcome.h"

#include "base/json.h"
#include "base/str.h"
#include "job/job_dir.h"
#include "job/progress.h"
#include "record/runs.h"
#include "run/journal.h"

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

static void read_verdict(const struct json *verdict, const struct job_row *row, enum run_state training,
                         struct arena *a, struct store_end *out)
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
        out->cause = arena_strdup(a, json_text(json_get(last, "cause")));
        if (!out->cause && str_eq(json_text(json_get(last, "end")), "not-started"))
            out->cause =
                out->exit_code == 127 ? "there is no such command" : "the command cannot be executed";
        else if (!out->cause || str_eq(out->class_id, "unknown"))
            out->cause = arena_printf(a, "it ended with exit status %lld", (long long)out->exit_code);
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
        read_verdict(verdict, row, training, a, out);
    else if (training == RUN_FINISHED || (row->want == JOB_WANT_KILL || row->want == JOB_WANT_STOP))
        out->state = training == RUN_FINISHED ? JOB_FINISHED : JOB_STOPPED;
    else if (row->want == JOB_WANT_PAUSE)
        out->state = JOB_PAUSED;
    if (out->state == JOB_LOST)
        out->cause = "its supervisor ended without a word: power loss, or somebody killed it";
    out->options = job_progress_keep(state, row, out->run_dir, a);
}
