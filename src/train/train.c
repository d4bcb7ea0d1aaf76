/* SPDX-License-Identifier: Apache-2.0 */
#include "train/train.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "gpu/transfer.h"
#include "nn/op_trace.h"
#include "train/job.h"
#include "record/plot.h"
#include "record/runs.h"
#include "os/file.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* f16: the loss is multiplied by a power of 2 that is halved when a gradient overflows. */
static const double scale_first = 65536, scale_most = 16777216;
enum { SCALE_GROW_AFTER = 200, PROFILE_STEPS = 3 };

/* ---- one step ---- */

struct step {
    double loss, norm, seconds, rate, scale;
    bool moved;
};

static int put_batches(struct job *j, struct cairn_error *err)
{
    for (size_t i = 0; i < job_micros(j); i++) {
        j->data_failed = data_batch(j->data, j->state.step, i, j->state.micro, j->ids, j->targets, err);
        if (j->data_failed || gpt_put(j->room, i, j->ids, j->targets, err))
            return -1;
    }
    return 0;
}

static struct gpt_pass pass_of(const struct job *j, size_t micro, bool learn)
{
    double targets = (double)(j->c->train.batch * j->c->train.accumulate * j->c->train.seq);
    return (struct gpt_pass){
        .slot = micro,
        .scale = (float)(j->state.loss_scale / targets),
        .smoothing = learn ? (float)j->c->train.label_smoothing : 0,
        .seed = (uint64_t)j->c->train.seed,
        .stream = j->state.step * job_micros(j) + micro,
        .learn = learn,
    };
}

/* Forward and backward of every micro-batch. */
static int passes(struct job *j, struct cairn_error *err)
{
    if (put_batches(j, err) || optim_clear_grads(j->optim, NULL, err))
        return -1;
    for (size_t i = 0; i < job_micros(j); i++) {
        struct gpt_pass p = pass_of(j, i, true);
        if (gpt_run(j->room, &p, optim_grads(j->optim), err))
            return -1;
    }
    return 0;
}

static int mean_loss(struct job *j, double *loss, struct cairn_error *err)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < job_micros(j); i++) {
        double part;
        size_t targets;
        if (gpt_loss(j->room, i, &part, &targets, err))
            return -1;
        sum += part;
        n += targets;
    }
    *loss = sum / (double)n;
    return 0;
}

static void adapt_scale(struct job *j, bool moved)
{
    struct checkpoint_state *s = &j->state;
    if (j->nn.storage != GPU_F16)
        return;
    if (!moved) {
        s->loss_scale = s->loss_scale > 1 ? s->loss_scale / 2 : 1;
        s->scale_good = 0;
    } else if (++s->scale_good >= SCALE_GROW_AFTER) {
        s->loss_scale = s->loss_scale < scale_most ? s->loss_scale * 2 : scale_most;
        s->scale_good = 0;
    }
}

static int compute_step(struct job *j, struct step *out, struct cairn_error *err)
{
    struct optim_result r;
    out->rate = schedule_rate(&j->schedule, (int64_t)j->state.step);
    out->scale = j->state.loss_scale;
    if (passes(j, err) || optim_step(j->optim, NULL, out->rate, 1 / j->state.loss_scale, err) ||
        mean_loss(j, &out->loss, err) || optim_finish(j->optim, NULL, &r, err)) {
        if (err->code == CAIRN_ENOMEM && optim_is_half_done(j->optim)) {
            err->code = CAIRN_EIO; /* it must not be done again */
            j->torn = true;
            cairn_hint(err,
                       "weights have moved in this step already: --resume goes on from the last checkpoint");
        }
        return -1;
    }
    out->norm = r.norm;
    out->rate = r.rate;
    out->moved = r.applied;
    return 0;
}

/* Where it fails for want of memory, nothing has moved yet. */
static int take_step(struct job *j, void *to, struct cairn_error *err)
{
    struct step *out = to;
    double begin = clock_s();
    slow_begin(j);
    int r = compute_step(j, out, err);
    out->seconds = clock_s() - begin;
    slow_end(j, !r, out->seconds);
    if (!r)
        adapt_scale(j, out->moved);
    return r;
}

/* The same step again, with an eye on every op. */
static int name_culprit(struct job *j, const struct step *s, struct cairn_error *err)
{
    struct nan_finder f;
    struct cairn_error other = { 0 };
    nan_finder_init(&f);
    j->nn.watcher = &f.watcher;
    int r = passes(j, &other) ? -1 : gpu_wait(j->o->g, NULL, &other);
    j->nn.watcher = NULL;
    if (r)
        snprintf(f.where, sizeof(f.where), "(looking for it failed)");
    nan_finder_release(&f, j->o->g);
    cairn_fail(err, CAIRN_EFORMAT, "step %" PRIu64 ": the loss is %g and the gradients' norm %g",
               j->state.step + 1, s->loss, s->norm);
    if (f.found)
        cairn_fail(err, CAIRN_EFORMAT,
                   "step %" PRIu64
                   ": the loss is %g; the first numbers that are none came from %s, %s: %lld NaN and "
                   "%lld infinite of %zu",
                   j->state.step + 1, s->loss, f.where, f.op, f.nan, f.infinite, f.n);
    return cairn_hint(
        err, "nothing was saved since; a lower train.lr or a longer train.warmup, or train.dtype: f32, "
             "and --resume");
}

/* A scale that cannot shrink any more, or numbers that nobody scaled. */
static bool is_broken(const struct job *j, const struct step *s)
{
    if (s->moved && isfinite(s->loss))
        return false;
    return j->nn.storage != GPU_F16 || !isfinite(s->loss) || s->scale <= 1;
}

/* ---- now and then ---- */

static bool is_due(const struct job *j, int64_t every)
{
    return every > 0 &&
           (j->state.step % (uint64_t)every == 0 || j->state.step == (uint64_t)j->c->train.steps);
}

static int evaluate(struct job *j, void *to, struct cairn_error *err)
{
    double *loss = to;
    struct data_info d;
    data_info_get(j->data, &d);
    uint64_t batches = d.val_windows / j->state.micro;
    uint64_t most = (uint64_t)(j->c->eval.batches * j->c->train.batch) / j->state.micro;
    batches = batches > most ? most : batches;
    batches = batches ? batches : 1;
    double sum = 0;
    size_t n = 0;
    for (uint64_t i = 0; i < batches; i++) {
        struct gpt_pass p = pass_of(j, 0, false);
        double part;
        size_t targets;
        j->data_failed = data_val_batch(j->data, i, j->state.micro, j->ids, j->targets, err);
        if (j->data_failed || gpt_put(j->room, 0, j->ids, j->targets, err) ||
            gpt_run(j->room, &p, NULL, err) || gpt_loss(j->room, 0, &part, &targets, err))
            return -1;
        sum += part;
        n += targets;
    }
    *loss = sum / (double)n;
    return 0;
}

static void emit(struct job *j, const struct step_record *m)
{
    job_log(j, m);
    ticker_step(&j->ticker, m);
    if (step_record_has(m, METRIC_VAL_LOSS))
        job_say(j, "step %" PRIu64 "  validation loss %.4f%s", m->step, m->value[METRIC_VAL_LOSS],
                j->state.waited ? " (not better)" : "");
    const struct cairn_error *trouble = run_log_trouble(j->metrics);
    if (trouble)
        job_say(j, "cannot write the log: %s; it is kept in memory until that works again", trouble->msg);
}

/* A checkpoint that is made before it is done tells the next process. */
static void note_due(struct job *j)
{
    struct data_info d;
    data_info_get(j->data, &d);
    j->state.eval_due = is_due(j, j->c->eval.every) && d.val_windows;
    j->state.sample_due = is_due(j, j->c->sample.every);
}

/* The line gets the validation loss. */
static int evaluate_if_due(struct job *j, struct step_record *m, struct cairn_error *err)
{
    double loss;
    if (!j->state.eval_due)
        return 0;
    run_log_flush(j->metrics);
    if (job_with_less(j, evaluate, &loss, err))
        return -1;
    step_record_set(m, METRIC_VAL_LOSS, loss);
    m->event = m->event ? m->event : "eval";
    bool better = !(loss >= j->state.best_val);
    j->state.best_val = better ? loss : j->state.best_val;
    j->state.waited = better ? 0 : j->state.waited + 1;
    j->state.eval_due = false;
    return 0;
}

static bool is_enough(const struct job *j)
{
    return j->c->train.patience && is_due(j, j->c->eval.every) &&
           j->state.waited >= (uint64_t)j->c->train.patience;
}

/* A disk that is full costs a checkpoint, not the run.  A device that does not give its numbers ends it. */
static int save(struct job *j, bool wait, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    struct checkpoint_model m = job_checkpoint_model(j);
    snprintf(j->state.config, sizeof(j->state.config), "%s", j->config_hash);
    j->state.applied = optim_applied(j->optim);
    j->state.attempted = optim_attempted(j->optim);
    run_log_flush(j->metrics);
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
    j->event = "checkpoint-failed";
    snprintf(j->note, sizeof(j->note), "%s", why.msg);
    job_say(j, "a checkpoint could not be written: %s; the older ones are as they were", why.msg);
    if (wait)
        *err = why;
    return wait ? -1 : 0;
}

/* One line a step; what went wrong since the last stands in it. */
static struct step_record measure_of(struct job *j, const struct step *s)
{
    struct step_record m = { .step = j->state.step, .event = j->event, .note = j->event ? j->note : NULL };
    double tokens = (double)(j->c->train.batch * j->c->train.accumulate * j->c->train.seq);
    step_record_set(&m, METRIC_LOSS, s->loss);
    step_record_set(&m, METRIC_LR, s->rate);
    step_record_set(&m, METRIC_GRAD_NORM, s->norm);
    step_record_set(&m, METRIC_TOKENS_PER_S, tokens / s->seconds);
    step_record_set(&m, METRIC_MEM_BYTES, (double)job_memory(j));
    job_measure_memory(j, &m);
    if (j->nn.storage == GPU_F16)
        step_record_set(&m, METRIC_LOSS_SCALE, s->scale);
    if (!s->moved && !m.event)
        m.event = "overflow";
    j->event = NULL;
    return m;
}

/* Quantized weights that the host has to dequantize; said once. */
static void tell_help(struct job *j)
{
    const struct weights_host_dequant *h = j->m->weights.host_dequant;
    if (!h || !h->active || j->told_help || j->event)
        return;
    j->told_help = true;
    j->event = "weights-by-host";
    snprintf(j->note, sizeof(j->note), "%s", h->why.msg);
    job_say(j,
            "the device cannot widen quantised weights (%s): the host does it, with the same numbers, slowly",
            h->why.msg);
}

/* Copies that went another way than they should; each way once. */
static void tell_copies(struct job *j)
{
    CLEANUP(str_release) struct str news = { 0 };
    if (j->event || !transfer_news(gpu_transfer(j->o->g), &news))
        return;
    j->event = "copies";
    snprintf(j->note, sizeof(j->note), "%s", news.s);
    job_say(j, "%s", news.s);
}

/* ---- the loop ---- */

static int do_what_is_due(struct job *j, struct step_record *m, struct cairn_error *err)
{
    int r = evaluate_if_due(j, m, err);
    emit(j, m);
    if (r || (j->state.sample_due && job_with_less(j, job_sample, NULL, err)))
        return -1;
    j->state.sample_due = false;
    return 0;
}

/* What the process before could not do at the step that it saved.  A restart that no step follows is told here too. */
static int catch_up(struct job *j, bool *enough, struct cairn_error *err)
{
    bool eval = j->state.eval_due, text = j->state.sample_due;
    note_due(j); /* as the configuration is now */
    j->state.eval_due = j->state.eval_due && eval;
    j->state.sample_due = j->state.sample_due && text;
    bool due = j->state.eval_due || j->state.sample_due;
    if (!due && (!j->event || j->state.step < (uint64_t)j->c->train.steps))
        return 0;
    struct step_record m = { .step = j->state.step, .event = j->event, .note = j->event ? j->note : NULL };
    j->event = NULL;
    if (do_what_is_due(j, &m, err))
        return -1;
    *enough = due && is_enough(j);
    j->unsaved = due;
    return 0;
}

static int train_steps(struct job *j, enum train_end *end, struct cairn_error *err)
{
    bool enough = false;
    *end = TRAIN_FINISHED;
    if (catch_up(j, &enough, err))
        return -1;
    while (j->state.step < (uint64_t)j->c->train.steps && !enough) {
        struct step s;
        if (job_with_less(j, take_step, &s, err))
            return -1;
        if (is_broken(j, &s))
            return name_culprit(j, &s, err);
        j->state.step++;
        tell_help(j);
        tell_copies(j);
        job_tell_holes(j);
        struct step_record m = measure_of(j, &s);
        note_due(j);
        if (do_what_is_due(j, &m, err))
            return -1;
        enough = is_enough(j);
        bool stop = j->o->is_stopped && j->o->is_stopped();
        if (is_due(j, j->c->checkpoint.every) || stop || enough || job_host_is_short(j)) {
            bool last = stop || enough || j->state.step == (uint64_t)j->c->train.steps;
            if (save(j, stop, err) || (!last && job_step_up(j, err)))
                return -1;
        }
        if (stop) {
            *end = TRAIN_STOPPED;
            return 0;
        }
    }
    if (enough)
        job_say(j, "the validation loss was not better for %" PRIu64 " evaluations: that is enough",
                j->state.waited);
    if (j->saved_step != j->state.step || !j->state.step || j->unsaved)
        return save(j, true, err);
    return checkpoints_wait(j->checkpoints, NULL, err);
}

/* Something was refused, or the data cannot be read any more, but what the last step left on the device is there.  (Not so
 * where work failed that was queued: it is not known which.) */
static void save_what_is_sound(struct job *j, const struct cairn_error *why)
{
    struct cairn_error ignored = { 0 };
    if ((why->code == CAIRN_EDEVICE || j->data_failed) && gpu_is_sound(j->o->g) &&
        !optim_is_half_done(j->optim) && (j->saved_step != j->state.step || j->unsaved) &&
        !save(j, true, &ignored))
        job_say(j, "%s; what step %" PRIu64 " left is saved",
                j->data_failed ? "the data cannot be read" : "the device failed", j->state.step);
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

/* A few steps with a look at every op; nothing is saved. */
static int profile(struct job *j, struct cairn_error *err)
{
    struct op_profile p;
    struct step s;
    if (take_step(j, &s, err)) /* what is measured once and compiled is out of the way */
        return -1;
    FILE *trace = os_stream(j->o->profile, OS_WRITE | OS_CREATE | OS_TRUNCATE);
    if (!trace)
        return cairn_fail_errno(err, "open %s", j->o->profile);
    op_profile_start(&p, trace);
    j->nn.watcher = &p.watcher;
    int r = 0;
    for (int i = 0; i < PROFILE_STEPS && !r; i++) {
        op_profile_skip(&p);
        r = passes(j, err) ? -1 : gpu_wait(j->o->g, NULL, err);
    }
    j->nn.watcher = NULL;
    op_profile_end(&p);
    if (fclose(trace) && !r)
        r = cairn_fail_errno(err, "write %s", j->o->profile);
    if (!r)
        print_profile(j, &p);
    return r;
}

/* ---- start and end ---- */

static void say_skipped(void *to, const char *path, const char *why)
{
    job_say(to, "%s is not whole (%s); an older one is looked for", path, why);
}

/* Where a run goes on: the newest whole checkpoint, or the start. */
static int find_start(struct job *j, char **from, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    *from = NULL;
    job_set_start(j);
    if (!j->o->resume)
        return 0;
    struct checkpoint_state found;
    if (!checkpoints_newest(j->o->dir, &j->arena, from, &found, say_skipped, j, &why)) {
        uint64_t all = (uint64_t)(j->c->train.batch * j->c->train.accumulate);
        if (!found.micro || all % found.micro)
            return cairn_fail(err, CAIRN_EUSAGE,
                              "%s was made with micro-batches of %" PRIu64 ", which do not divide %" PRIu64,
                              *from, found.micro, all);
        j->state = found;
        return 0;
    }
    if (why.code != CAIRN_ELACK) {
        *err = why;
        return -1;
    }
    job_say(j, "there is no whole checkpoint in %s: starting at step 0", j->o->dir);
    return 0;
}

/* What the checkpoints of this run are made from; the file also tells where the run lies, which does not count. */
static void hash_config(struct job *j)
{
    struct job_config c = *j->c;
    CLEANUP(str_release) struct str text = { 0 };
    struct hash h;
    uint64_t sum[2];
    c.run = (struct config_run){ "", "" };
    c.memory = (struct config_memory){ 0 };
    config_write(&c, &text);
    hash_init(&h);
    hash_add(&h, text.s, text.len);
    hash_end(&h, sum);
    hash_text(sum, j->config_hash);
}

static int write_config(struct job *j, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    char *path = arena_printf(&j->arena, "%s/config.yaml", j->o->dir);
    j->c->run.dir = j->o->dir; /* so that --resume with this file finds the run */
    config_write(j->c, &text);
    return file_write(path, text.s, text.len, err);
}

static const char *run_name(const struct job *j)
{
    return j->c->run.name[0] ? j->c->run.name : str_file_name(j->o->dir);
}

static struct run_info info_of(struct job *j, enum run_state state, int64_t started)
{
    return (struct run_info){
        .name = run_name(j),
        .config_hash = j->config_hash,
        .model = arena_printf(&j->arena, "gpt %zux%zu", j->m->shape.layers, j->m->shape.width),
        .device = gpu_info(j->o->g)->name,
        .workaround = j->o->workaround,
        .cairn_version = j->o->version,
        .parameters = params_count(&j->m->params),
        .steps = (uint64_t)j->c->train.steps,
        .started = started,
        .finished = state == RUN_RUNNING ? 0 : (int64_t)time(NULL),
        .pid = getpid(),
        .state = state,
    };
}

static int open_all(struct job *j, char *from, struct cairn_error *err)
{
    if (job_open_data(j, err) || job_new_network(j, err) || job_fit(j, err))
        return -1;
    job_warm(j);
    if (!from && j->nn.storage == GPU_F16)
        j->state.loss_scale = scale_first;
    if (job_load(j, from, err) || job_open_work(j, err))
        return -1;
    j->schedule = schedule_of(&j->c->train);
    hash_config(j);
    return 0;
}

static int finish(struct job *j, enum train_end end, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    if (run_log_close(j->metrics, &why))
        job_say(j, "a part of the log was lost: %s", why.msg);
    j->metrics = NULL;
    if (plot_write_run(j->o->dir, run_name(j), err))
        return -1;
    job_say_taken(j);
    job_say(j, "%s at step %" PRIu64 " of %lld; %s/checkpoints/latest, %s/loss.svg",
            end == TRAIN_STOPPED ? "stopped" : "finished", j->state.step, (long long)j->c->train.steps,
            j->o->dir, j->o->dir);
    CLEANUP(str_release) struct str dir = { 0 };
    str_add_word(&dir, j->o->dir);
    if (end == TRAIN_STOPPED)
        job_say(j, "to go on:  cairn train --resume=%s", dir.s);
    job_say(j, "to see it: cairn plot %s", dir.s);
    job_say(j, "to try it: cairn sample %s", dir.s);
    return 0;
}

static int run_open_job(struct job *j, const char *from, enum train_end *end, struct cairn_error *err)
{
    int64_t started = (int64_t)time(NULL);
    struct run_info info = info_of(j, RUN_RUNNING, started);
    struct cairn_error ignored;
    if (run_log_open(j->o->dir, j->state.step + 1, &j->metrics, err) || write_config(j, err) ||
        job_keep_tokenizer(j, err) || run_info_write(j->o->dir, &info, err) ||
        checkpoints_open(j->o->dir, (size_t)j->c->checkpoint.keep, j->c->checkpoint.async, &j->checkpoints,
                         err))
        return -1;
    if (from)
        job_say(j, "going on from %s%s", from,
                strcmp(j->state.config, j->config_hash) != 0 ? ", which was made with another configuration"
                                                             : "");
    if (j->o->restarted) {
        j->event = "restart";
        snprintf(j->note, sizeof(j->note), "%s", j->o->restarted);
    }
    j->saved_step = j->state.step;
    ticker_start(&j->ticker, j->o->talk, (uint64_t)j->c->train.steps);
    int r = !from && j->c->sample.every && job_with_less(j, job_sample, NULL, err) ? -1
                                                                                   : train_steps(j, end, err);
    if (r)
        save_what_is_sound(j, err);
    ticker_end(&j->ticker);
    j->ticker.out = NULL;
    info = info_of(j, r ? RUN_CRASHED : *end == TRAIN_STOPPED ? RUN_STOPPED : RUN_FINISHED, started);
    run_info_write(j->o->dir, &info, &ignored);
    return r ? r : finish(j, *end, err);
}

static bool is_finished(struct job *j)
{
    struct run_info info;
    struct cairn_error ignored;
    return !run_info_read(j->o->dir, &j->arena, &info, &ignored) && info.state == RUN_FINISHED;
}

static int run_job(struct job *j, enum train_end *end, struct cairn_error *err)
{
    char *from;
    bool writes = !j->o->dry_run && !j->o->profile;
    if (job_read_shape(j, err) || (writes && run_log_check(j->o->dir, err)) || find_start(j, &from, err))
        return -1;
    if (from && j->state.step >= (uint64_t)j->c->train.steps && is_finished(j)) {
        job_say(j, "%s has all its %lld steps already", j->o->dir, (long long)j->c->train.steps);
        *end = TRAIN_WAS_FINISHED;
        return 0;
    }
    if (open_all(j, from, err)) {
        if (!j->o->is_stopped || !j->o->is_stopped())
            return -1;
        job_say(j, "stopped before the first step (%s)", err->msg);
        *end = TRAIN_STOPPED;
        return 0;
    }
    job_summary(j);
    *end = TRAIN_FINISHED;
    if (j->o->dry_run)
        return 0;
    return j->o->profile ? profile(j, err) : run_open_job(j, from, end, err);
}

int train_run(const struct train_options *o, enum train_end *end, struct cairn_error *err)
{
    struct job j = { .o = o, .c = o->config };
    int r = -1;
    if (!o->debug || !gpu_set_debug(o->g, err))
        r = run_job(&j, end, err);
    if (r && j.torn)
        *end = TRAIN_TORN;
    if (j.metrics)
        run_log_close(j.metrics, &(struct cairn_error){ 0 });
    job_close(&j);
    return r;
}
