/* SPDX-License-Identifier: Apache-2.0
 * The steps of a job and the work between them: evaluations, samples, checkpoints. */
#include "base/clock.h"
#include "base/str.h"
#include "gpu/transfer.h"
#include "nn/op_trace.h"
#include "os/file.h"
#include "train/job.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* f16: the loss is multiplied by a power of 2 that is halved when a gradient overflows. */
static const double scale_most = 16777216;
enum { SCALE_GROW_AFTER = 200, PROFILE_STEPS = 3 };

/* ---- one step ---- */

struct step {
    double loss, norm, seconds, rate, scale;
    bool applied;
};

static struct optim *optim_of(const struct job *j)
{
    return j->optim[job_set(j)];
}

struct model_pass job_pass(const struct job *j, size_t micro, bool learn)
{
    return (struct model_pass){
        .slot = micro,
        .scale = (float)(j->state.loss_scale / j->task->step_units),
        .seed = (uint64_t)j->c->train.seed,
        .stream = j->state.step * job_all_micros(j) + job_first_micro(j) + micro,
        .learn = learn,
    };
}

/* Forward and backward of every micro-batch of this rank. */
static int run_passes(struct job *j, struct cairn_error *err)
{
    struct task *t = j->task;
    const struct weights *grads = optim_grads(optim_of(j));
    for (size_t i = 0; i < job_micros(j); i++)
        if (t->ops->put(t, j->work, i, j->state.step, job_first_micro(j) + i, j->state.layout.micro, err))
            return -1;
    if (optim_clear_grads(optim_of(j), NULL, err))
        return -1;
    for (size_t i = 0; i < job_micros(j); i++) {
        struct model_pass p = job_pass(j, i, true);
        if (t->model->ops->run(j->work, &p, grads, err) ||
            (j->tree && grad_tree_add(j->tree, job_set(j), grads, i, err)))
            return -1;
    }
    return 0;
}

/* The gradients of the whole step, on every rank. */
static int compute_grads(struct job *j, struct cairn_error *err)
{
    for (;;) {
        bool again;
        struct cairn_error ignored;
        int r = run_passes(j, err);
        if (r && err->code != CAIRN_ENOMEM)
            return -1;
        if (job_vote(j, r, &again, r ? &ignored : err) || r)
            return -1;
        if (!again)
            return job_sum_grads(j, err);
    }
}

/* Of all micro-batches, in their order. */
static int mean_loss(struct job *j, double *loss, struct cairn_error *err)
{
    size_t all = job_all_micros(j), first = job_first_micro(j);
    double sum = 0, n = 0;
    CLEANUP(mem_free) double(*parts)[2] = calloc(all, sizeof(*parts));
    if (!parts)
        return cairn_fail(err, CAIRN_EIO, "no memory for the losses of a step");
    for (size_t i = 0; i < job_micros(j); i++)
        if (j->task->model->ops->loss(j->work, i, &parts[first + i][0], &parts[first + i][1], err))
            return -1;
    if (job_merge(j, parts[0], 2 * all, err))
        return -1;
    for (size_t i = 0; i < all; i++) {
        sum += parts[i][0];
        n += parts[i][1];
    }
    *loss = sum / n;
    return 0;
}

static void adapt_scale(struct job *j, bool applied)
{
    struct checkpoint_state *s = &j->state;
    if (j->nn.storage != GPU_F16)
        return;
    if (!applied) {
        s->loss_scale = s->loss_scale > 1 ? s->loss_scale / 2 : 1;
        s->scale_good = 0;
    } else if (++s->scale_good >= SCALE_GROW_AFTER) {
        s->loss_scale = s->loss_scale < scale_most ? s->loss_scale * 2 : scale_most;
        s->scale_good = 0;
    }
}

static int compute_step(struct job *j, struct step *out, struct cairn_error *err)
{
    struct optim *optim = optim_of(j);
    struct optim_result r;
    out->rate = schedule_rate(&j->schedule, (int64_t)j->state.step);
    out->scale = j->state.loss_scale;
    if (compute_grads(j, err))
        return -1;
    if (optim_step(optim, NULL, out->rate, 1 / j->state.loss_scale, err) || mean_loss(j, &out->loss, err) ||
        optim_finish(optim, NULL, &r, err)) {
        if (err->code == CAIRN_ENOMEM && (optim_is_half_done(optim) || j->o->comm)) {
            err->code = CAIRN_EIO; /* the step must not be repeated */
            j->torn = true;
            cairn_hint(
                err,
                "the step had already updated some weights: --resume continues from the last checkpoint");
        }
        return -1;
    }
    out->norm = r.norm;
    out->rate = r.rate;
    out->applied = r.applied;
    return 0;
}

static void report_slow(void *to, const char *brief)
{
    struct job *j = to;
    struct step_record m = { .step = j->state.step, .event = "slow-step", .note = brief };
    job_log(j, &m);
    job_say(j, "%s", brief);
}

static double work_of(const struct job *j, uint64_t step)
{
    const struct task_ops *ops = j->task->ops;
    return ops->step_cost ? ops->step_cost(j->task, step) : 1;
}

/* The step's weights, if those of another base were in use before.  The time for it is not the step's. */
int job_use_base(struct job *j, size_t base, struct cairn_error *err)
{
    double seconds;
    if (task_use_base(j->task, base, &seconds, err))
        return -1;
    j->switch_s += seconds;
    return 0;
}

/* If it runs out of memory, no weight has been updated yet. */
static int take_step(struct job *j, void *to, struct cairn_error *err)
{
    struct step *out = to;
    const struct task_ops *ops = j->task->ops;
    if (ops->base_of_step && job_use_base(j, ops->base_of_step(j->task, j->state.step), err))
        return -1;
    double begin = clock_s();
    struct step_watch_options watch = {
        .g = j->o->g,
        .dir = j->log ? j->o->dir : "", /* no log, no report */
        .evidence = j->o->evidence,
        .report = report_slow,
        .to = j,
        .work = work_of(j, j->state.step),
    };
    step_watch_begin(&j->watch, &watch, j->state.step + 1, &j->ticker.last);
    int r = compute_step(j, out, err);
    out->seconds = clock_s() - begin;
    step_watch_end(&j->watch, !r, out->seconds);
    if (!r)
        adapt_scale(j, out->applied);
    return r;
}

/* The same step again, with every op checked. */
static int report_nan(struct job *j, const struct step *s, struct cairn_error *err)
{
    struct nan_finder f;
    struct cairn_error other = { 0 };
    nan_finder_init(&f);
    j->nn.watcher = &f.watcher;
    int r = run_passes(j, &other) ? -1 : gpu_wait(j->o->g, NULL, &other);
    j->nn.watcher = NULL;
    if (r)
        snprintf(f.where, sizeof(f.where), "(the search failed)");
    nan_finder_release(&f, j->o->g);
    char found[300] = "";
    if (f.found)
        snprintf(found, sizeof(found), "%s, op %s (%lld NaN, %lld Inf of %zu)", f.where, f.op, f.nan,
                 f.infinite, f.n);
    int rank = job_first_text(j, found, sizeof(found));
    cairn_fail(err, CAIRN_EFORMAT, "step %" PRIu64 ": the loss is %g, the gradient norm %g",
               j->state.step + 1, s->loss, s->norm);
    if (found[0])
        cairn_fail(err, CAIRN_EFORMAT, "step %" PRIu64 ": the loss is %g; first non-finite values%s: %s",
                   j->state.step + 1, s->loss, job_rank_text(j, rank), found);
    return cairn_hint(err, "no checkpoint was written since; try a lower train.lr, a longer train.warmup or "
                           "train.dtype: f32, and --resume");
}

/* NaN or Inf that a smaller loss scale does not fix. */
static bool is_broken(const struct job *j, const struct step *s)
{
    if (s->applied && isfinite(s->loss))
        return false;
    return j->nn.storage != GPU_F16 || !isfinite(s->loss) || s->scale <= 1;
}

/* ---- periodic work ---- */

static bool is_due(const struct job *j, int64_t every)
{
    return every > 0 &&
           (j->state.step % (uint64_t)every == 0 || j->state.step == (uint64_t)j->c->train.steps);
}

static bool is_task_save_due(const struct job *j)
{
    const struct task_ops *ops = j->task->ops;
    return ops->is_save_due && ops->is_save_due(j->task, j->state.step);
}

static void say_validation(struct job *j, const struct step_record *m)
{
    CLEANUP(str_release) struct str quarters = { 0 };
    for (int q = METRIC_VAL_LOSS_Q1; q <= METRIC_VAL_LOSS_Q4; q++)
        if (step_record_has(m, q))
            str_addf(&quarters, " %.4f", m->value[q]);
    job_say(j, "step %" PRIu64 "  validation loss %.4f%s%s%s%s", m->step, m->value[METRIC_VAL_LOSS],
            quarters.len ? " (by quarter of the timesteps:" : "", quarters.len ? quarters.s : "",
            quarters.len ? ")" : "", j->state.waited ? " (not better)" : "");
}

static void emit(struct job *j, const struct step_record *m)
{
    job_log(j, m);
    ticker_step(&j->ticker, m);
    if (step_record_has(m, METRIC_VAL_LOSS))
        say_validation(j, m);
    const struct cairn_error *trouble = run_log_trouble(j->log);
    if (trouble)
        job_say(j, "cannot write the log: %s; keeping it in memory and retrying", trouble->msg);
}

/* Noted in the state, so that a checkpoint saved before the work is done tells the next process. */
static void note_due(struct job *j)
{
    j->state.eval_due = is_due(j, j->c->eval.every) && job_val_samples(j);
    j->state.sample_due = is_due(j, j->c->sample.every);
}

/* Adds the validation loss to the step's record. */
static int evaluate_if_due(struct job *j, struct step_record *m, struct cairn_error *err)
{
    struct evaluation e;
    if (!j->state.eval_due)
        return 0;
    run_log_flush(j->log);
    if (job_retry_smaller(j, job_evaluate, &e, err))
        return -1;
    step_record_set(m, METRIC_VAL_LOSS, e.loss);
    for (int q = 0; q < EVALUATION_QUARTERS; q++)
        if (!isnan(e.quarter[q]))
            step_record_set(m, METRIC_VAL_LOSS_Q1 + q, e.quarter[q]);
    m->event = m->event ? m->event : "eval";
    bool better = !(e.loss >= j->state.best_val);
    j->state.best_val = better ? e.loss : j->state.best_val;
    j->state.waited = better ? 0 : j->state.waited + 1;
    j->state.eval_due = false;
    return 0;
}

static bool should_stop_early(const struct job *j)
{
    return j->c->train.patience && is_due(j, j->c->eval.every) &&
           j->state.waited >= (uint64_t)j->c->train.patience;
}

/* A full disk costs a checkpoint, not the run.  If the weights cannot be read from the device, the run
 * ends. */
static int save(struct job *j, bool wait, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    struct checkpoint_model m = job_checkpoint_model(j);
    if (!job_is_first_rank(j)) {
        j->saved_step = j->state.step;
        return 0;
    }
    snprintf(j->state.config, sizeof(j->state.config), "%s", j->config_hash);
    for (size_t i = 0; i < model_sets(j->task->model); i++) {
        j->state.applied[i] = optim_applied(j->optim[i]);
        j->state.attempted[i] = optim_attempted(j->optim[i]);
    }
    run_log_flush(j->log);
    int r = checkpoints_save(j->checkpoints, &m, &j->state, &why);
    if (wait && checkpoints_wait(j->checkpoints, NULL, r ? &(struct cairn_error){ 0 } : &why))
        r = -1;
    j->unsaved = r && why.code != CAIRN_EDEVICE;
    j->saved_step = j->state.step;
    if (!r || why.code == CAIRN_EDEVICE) {
        if (r)
            *err = why;
        return r;
    }
    job_event(j, "checkpoint-failed", "%s", why.msg);
    job_say(j, "cannot write a checkpoint: %s; the older ones are intact", why.msg);
    if (wait)
        *err = why;
    return wait ? -1 : 0;
}

/* The step's record, with the event since the previous step, if any. */
static struct step_record record_of(struct job *j, const struct step *s)
{
    struct step_record m = { .step = j->state.step, .event = j->event, .note = j->event ? j->note : NULL };
    step_record_set(&m, METRIC_LOSS, s->loss);
    step_record_set(&m, METRIC_LR, s->rate);
    step_record_set(&m, METRIC_GRAD_NORM, s->norm);
    if (j->task->speed == TASK_TOKENS_PER_S)
        step_record_set(&m, METRIC_TOKENS_PER_S, j->task->step_units / s->seconds);
    else
        step_record_set(&m, METRIC_S_PER_IT, s->seconds);
    step_record_set(&m, METRIC_MEM_BYTES, (double)job_memory_bytes(j));
    job_record_memory(j, &m);
    if (j->nn.storage == GPU_F16)
        step_record_set(&m, METRIC_LOSS_SCALE, s->scale);
    if (!s->applied && !m.event)
        m.event = "overflow";
    if (j->switch_s > 0 && !m.event) {
        job_event(j, "expert-switch", "%.3f s to bring the weights of the expert", j->switch_s);
        m.event = j->event;
        m.note = j->note;
    }
    j->switch_s = 0;
    j->event = NULL;
    return m;
}

/* Warns once if the host has to dequantize weights. */
static void warn_host_dequant(struct job *j)
{
    const struct cairn_error *why = model_host_dequant(j->task->model);
    if (!why || j->warned_dequant || j->event)
        return;
    j->warned_dequant = true;
    job_event(j, "weights-by-host", "%s", why->msg);
    job_say(j, "the device cannot dequantize weights (%s): falling back to the CPU (same bits, slow)",
            why->msg);
}

/* Warns once if the host had to quantize weights. */
static void warn_host_quant(struct job *j)
{
    const struct cairn_error *why = model_host_quant(j->task->model);
    if (!why || j->warned_quant || j->event)
        return;
    j->warned_quant = true;
    job_event(j, "weights-by-host", "%s", why->msg);
    job_say(j, "quantizing on the host: the device cannot (%s); the same bits, but loading takes longer",
            why->msg);
}

/* Warns once for each kind of copy that needed a fallback. */
static void warn_copies(struct job *j)
{
    CLEANUP(str_release) struct str news = { 0 };
    if (j->event || !transfer_news(gpu_transfer(j->o->g), &news))
        return;
    job_event(j, "copies", "%s", news.s);
    job_say(j, "%s", news.s);
}

/* ---- the loop ---- */

/* A full disk costs a sample, not the run. */
int job_try_sample(struct job *j, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    if (!job_is_first_rank(j) || !job_retry_smaller(j, job_sample, NULL, &why))
        return 0;
    if (why.code != CAIRN_EIO || gpu_lost(j->o->g)) {
        *err = why;
        return -1;
    }
    job_event(j, "sample-failed", "%s", why.msg);
    job_say(j, "cannot write a sample: %s", why.msg);
    return 0;
}

static int do_what_is_due(struct job *j, struct step_record *m, struct cairn_error *err)
{
    char note[sizeof(j->note)]; /* an OOM in the evaluation writes its own */
    if (m->note)
        m->note = memcpy(note, m->note, sizeof(note));
    int r = evaluate_if_due(j, m, err);
    emit(j, m);
    if (r || (j->state.sample_due && job_try_sample(j, err)))
        return -1;
    j->state.sample_due = false;
    return 0;
}

/* Does what the previous process left undone at the step it saved.  Also logs a restart that no step
 * follows. */
static int catch_up(struct job *j, bool *stop_early, struct cairn_error *err)
{
    bool eval = j->state.eval_due, sample = j->state.sample_due;
    note_due(j); /* by the current configuration */
    j->state.eval_due = j->state.eval_due && eval;
    j->state.sample_due = j->state.sample_due && sample;
    bool due = j->state.eval_due || j->state.sample_due;
    if (!due && (!j->event || j->state.step < (uint64_t)j->c->train.steps))
        return 0;
    struct step_record m = { .step = j->state.step, .event = j->event, .note = j->event ? j->note : NULL };
    j->event = NULL;
    if (do_what_is_due(j, &m, err))
        return -1;
    *stop_early = due && should_stop_early(j);
    j->unsaved = due;
    return 0;
}

/* Many steps are taken to go on like the first of them. */
static double sum_work(const struct job *j)
{
    enum { MOST = 100000 };
    uint64_t first = j->state.step, all = (uint64_t)j->c->train.steps;
    uint64_t n = all > first ? all - first : 0, looked = n < MOST ? n : MOST;
    double sum = 0;
    for (uint64_t i = 0; i < looked; i++)
        sum += work_of(j, first + i);
    return looked ? sum * ((double)n / (double)looked) : 0;
}

static void count_work(struct job *j, uint64_t step)
{
    if (!j->task->ops->step_cost)
        return;
    double work = work_of(j, step);
    j->work_left = fmax(0, j->work_left - work);
    ticker_work(&j->ticker, work, j->work_left);
}

/* All ranks stop after the same step. */
static bool is_stopped(const struct job *j)
{
    return j->o->comm ? j->stopping : j->o->is_stopped && j->o->is_stopped();
}

static bool is_compare_due(const struct job *j)
{
    enum { EVERY = 100 };
    return is_due(j, EVERY) || is_due(j, j->c->checkpoint.every);
}

int job_run_steps(struct job *j, enum train_end *end, struct cairn_error *err)
{
    bool stop_early = false;
    *end = TRAIN_FINISHED;
    if (catch_up(j, &stop_early, err))
        return -1;
    j->work_left = j->task->ops->step_cost ? sum_work(j) : 0;
    while (j->state.step < (uint64_t)j->c->train.steps && !stop_early) {
        struct step s;
        if (job_retry_smaller(j, take_step, &s, err))
            return -1;
        if (is_broken(j, &s))
            return report_nan(j, &s, err);
        count_work(j, j->state.step++);
        warn_host_dequant(j);
        warn_host_quant(j);
        warn_copies(j);
        job_warn_fragmented(j);
        struct step_record m = record_of(j, &s);
        struct control_order order = j->o->comm ? j->order : job_next_order(j);
        j->order = (struct control_order){ 0 };
        note_due(j);
        j->state.sample_due |= order.sample;
        if (do_what_is_due(j, &m, err))
            return -1;
        stop_early = should_stop_early(j);
        bool stop = is_stopped(j) || job_is_stop_due(j);
        if (is_compare_due(j) && job_compare_weights(j, err))
            return -1;
        if (is_due(j, j->c->checkpoint.every) || is_task_save_due(j) || order.save || stop || stop_early ||
            job_host_is_short(j)) {
            bool last = stop || stop_early || j->state.step == (uint64_t)j->c->train.steps;
            if (save(j, stop, err) || (!last && job_restore(j, err)))
                return -1;
        }
        if (order.seq)
            job_log_order(j, &order);
        if (stop) {
            *end = TRAIN_STOPPED;
            return 0;
        }
    }
    if (stop_early)
        job_say(j, "no better validation loss in %" PRIu64 " evaluations: stopping early", j->state.waited);
    if (j->saved_step != j->state.step || !j->state.step || j->unsaved)
        return save(j, true, err);
    return job_is_first_rank(j) ? checkpoints_wait(j->checkpoints, NULL, err) : 0;
}

static bool any_half_done(const struct job *j)
{
    for (size_t i = 0; i < MODEL_SETS && j->optim[i]; i++)
        if (optim_is_half_done(j->optim[i]))
            return true;
    return false;
}

/* Saves if the device refused a call or the data became unreadable: the weights of the last step are still
 * intact. Not if queued work failed, because it is unknown which. */
void job_save_after_failure(struct job *j, const struct cairn_error *why)
{
    struct cairn_error ignored = { 0 };
    bool other = comm_has_failed(j->o->comm);
    if ((why->code == CAIRN_EDEVICE || j->task->data_failed || other) && gpu_is_sound(j->o->g) &&
        !j->averaged && !any_half_done(j) && (j->saved_step != j->state.step || j->unsaved) &&
        job_is_first_rank(j) && !save(j, true, &ignored))
        job_say(j, "%s; saved a checkpoint of step %" PRIu64,
                j->task->data_failed ? "a file cannot be read"
                : other              ? "another rank failed"
                                     : "the device failed",
                j->state.step);
}

static void print_profile(struct job *j, const struct op_profile *p)
{
    double all = 0;
    for (size_t i = 0; i < p->n; i++)
        all += p->rows[i].seconds;
    job_say(j, "%-22s %7s %10s %7s %10s %9s", "OP", "CALLS", "MS/STEP", "SHARE", "GFLOP/S", "GB/S");
    for (size_t i = 0; i < p->n; i++) {
        const struct op_profile_row *r = &p->rows[i];
        job_say(j, "%-22s %7zu %10.3f %6.1f%% %10.1f %9.1f", r->op, r->calls / PROFILE_STEPS,
                r->seconds * 1e3 / PROFILE_STEPS, 100 * r->seconds / all, r->flops / r->seconds / 1e9,
                r->bytes / r->seconds / 1e9);
    }
}

int job_profile(struct job *j, struct cairn_error *err)
{
    struct op_profile p;
    struct step s;
    if (take_step(j, &s, err)) /* warm up: kernels are compiled and tuned here */
        return -1;
    if (!job_is_first_rank(j))
        return 0;
    FILE *trace = os_stream(j->o->profile, OS_WRITE | OS_CREATE | OS_TRUNCATE);
    if (!trace)
        return cairn_fail_errno(err, "open %s", j->o->profile);
    op_profile_start(&p, trace);
    j->nn.watcher = &p.watcher;
    int r = 0;
    for (int i = 0; i < PROFILE_STEPS && !r; i++) {
        op_profile_skip(&p);
        r = run_passes(j, err) ? -1 : gpu_wait(j->o->g, NULL, err);
    }
    j->nn.watcher = NULL;
    op_profile_end(&p);
    if (fclose(trace) && !r)
        r = cairn_fail_errno(err, "write %s", j->o->profile);
    if (!r)
        print_profile(j, &p);
    return r;
}
