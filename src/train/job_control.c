/* SPDX-License-Identifier: Apache-2.0
 * What control.json asks of a job: a checkpoint, a sample, to stop.  None of it changes what the job computes. */
#include "base/str.h"
#include "train/job.h"
#include <inttypes.h>
#include <string.h>

void job_open_control(struct job *j)
{
    struct run_info info = { 0 };
    struct cairn_error ignored = { 0 };
    if (j->o->resume)
        (void)run_info_read(j->o->dir, &j->arena, &info, &ignored);
    control_init(&j->control, j->o->dir, info.control_seq, &j->arena);
    j->stop_at = info.stop_at_step > j->state.step ? info.stop_at_step : 0;
    if (j->stop_at)
        job_say(j, CONTROL_FILE " asked the run to stop at step %" PRIu64, j->stop_at);
}

/* A line of its own: that of the step may have another event. */
static void log_event(struct job *j, const char *event, const char *note)
{
    struct step_record m = { .step = j->state.step, .event = event, .note = note };
    job_log(j, &m);
}

static void tell_ignored(struct job *j, const struct cairn_error *why)
{
    CLEANUP(str_release) struct str text = { 0 };
    str_add_clean(&text, why->msg, strlen(why->msg));
    job_say(j, "warning: %s; the file is ignored", text.s);
    log_event(j, "control-ignored", text.s);
}

static void tell_unknown(struct job *j)
{
    CLEANUP(str_release) struct str key = { 0 };
    str_add_clean(&key, j->control.unknown, strlen(j->control.unknown));
    job_say(j, "note: %s: key \"%s\" is not known, and ignored", j->control.path, key.s);
}

/* Samples have their memory and their prompts only if they are configured. */
static void check_sample(struct job *j, struct control_order *order)
{
    if (!order->sample || j->c->sample.every)
        return;
    order->sample = false;
    job_say(j, "warning: " CONTROL_FILE " asks for a sample, but sample.every is 0: this run makes none");
}

/* A stop that is due now is kept as this step: if the process dies before it has stopped, the next one stops
 * here. */
static void set_stop(struct job *j, const struct control_order *order)
{
    if (order->stop == CONTROL_STOP_NONE)
        j->stop_at = 0;
    else if (order->stop == CONTROL_STOP_AT)
        j->stop_at = order->stop_at_step > j->state.step ? order->stop_at_step : j->state.step;
}

struct control_order job_next_order(struct job *j)
{
    struct control_order order = { 0 };
    struct cairn_error err = { 0 };
    int r = control_look(&j->control, &order, &err);
    if (r < 0)
        tell_ignored(j, &err);
    if (r <= 0)
        return (struct control_order){ 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    job_say(j, CONTROL_FILE ", order %" PRIu64 ": %s", order.seq, control_text(&order, j->state.step, &a));
    if (j->control.unknown[0])
        tell_unknown(j);
    check_sample(j, &order);
    set_stop(j, &order);
    /* Before it is obeyed: an order that ends the process must not do so again and again. */
    if (job_write_info(j, RUN_RUNNING, &err))
        job_say(j, "warning: %s", err.msg);
    return order;
}

void job_log_order(struct job *j, const struct control_order *order)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    log_event(j, "control",
              arena_printf(&a, "order %" PRIu64 ": %s", order->seq, control_text(order, j->state.step, &a)));
}

bool job_is_stop_due(const struct job *j)
{
    return j->stop_at && j->state.step >= j->stop_at && j->state.step < (uint64_t)j->c->train.steps;
}
