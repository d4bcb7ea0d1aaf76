/* SPDX-License-Identifier: Apache-2.0
 * Fits a job into memory, at its start and while it runs.  memory_plan.c decides; this file acts on it and
 * reports it. */
#include "base/clock.h"
#include "base/str.h"
#include "gpu/pool.h"
#include "gpu/transfer.h"
#include "train/job.h"
#include <inttypes.h>
#include <string.h>

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* The blocks that the configuration wants streamed. */
static uint64_t streamed_asked(const struct job *j)
{
    const struct config_memory *c = &j->c->memory;
    if (!memory_can_offload_blocks(&j->memory.job) || j->memory.blocks_pinned)
        return 0;
    if (c->blocks.word < 0)
        return (uint64_t)c->blocks.n;
    bool all = c->blocks.word == CONFIG_PLACE_HOST || (c->blocks.word == CONFIG_PLACE_AUTO && c->low_vram);
    return all ? model_blocks(j->task->model) : 0;
}

static struct memory_limits limits_of(const struct job *j)
{
    return (struct memory_limits){
        .device_bytes = j->o->budget_bytes,
        .host_bytes = j->o->machine          ? j->o->machine->host_bytes
                      : j->o->host_available ? j->o->host_available() / (uint64_t)comm_local_size(j->o->comm)
                                             : 0,
        .optimizer = j->c->memory.optimizer,
        .inputs = j->c->memory.inputs,
        .idle = j->c->memory.idle,
        .blocks_on_device = j->c->memory.blocks.word == CONFIG_PLACE_DEVICE,
        .streamed_least = streamed_asked(j),
        .optim_pinned = j->memory.optim_pinned,
        .blocks_pinned = j->memory.blocks_pinned,
        .inputs_pinned = j->memory.inputs_pinned,
        .is_allocated = model_is_allocated(j->task->model),
    };
}

static void replan(struct job *j)
{
    memory_plan(&j->memory.job, &j->state.layout, &j->memory.plan);
}

/* The next fallback; its text is the last of j->memory.fallbacks.  NULL: there is none. */
static const char *next_fallback(struct job *j)
{
    struct memory_limits limits = limits_of(j);
    char text[FALLBACK_TEXT];
    uint64_t streamed = j->state.layout.weights.streamed;
    if (!memory_fallback(&j->memory.job, &limits, &j->state.layout, text))
        return NULL;
    size_t last = j->memory.n_fallbacks < JOB_FALLBACKS ? j->memory.n_fallbacks++ : JOB_FALLBACKS - 1;
    if (j->state.layout.weights.streamed != streamed)
        j->memory.blocks_fallback = last + 1;
    memcpy(j->memory.fallbacks[last], text, sizeof(text));
    return j->memory.fallbacks[last];
}

static int fail_for_good(const struct job *j, const struct cairn_error *why, struct cairn_error *err)
{
    *err = *why;
    err->code = CAIRN_ENOMEM;
    if (j->memory.job.only_samples)
        return cairn_hint(err, "what memory.* allows to offload is not enough: try %s",
                          j->task->ops->sample_shrink_hint);
    return cairn_hint(err, "micro-batches of %zu with gradient checkpointing do not fit: try %s",
                      (size_t)j->state.layout.micro, j->task->ops->shrink_hint);
}

/* ---- at the start ---- */

/* Whether the configuration wants a part on the host; warns if that is impossible. */
static bool goes_to_host(struct job *j, const char *key, enum config_place asked, bool can)
{
    bool wanted = asked == CONFIG_PLACE_HOST || (asked == CONFIG_PLACE_AUTO && j->c->memory.low_vram);
    if (asked == CONFIG_PLACE_HOST && !can && !j->quiet)
        job_say(j, "%s: cannot offload to the host here; keeping it on the device", key);
    return wanted && can;
}

/* As configured, if that is possible here. */
static enum model_idle idle_asked(struct job *j)
{
    const struct memory_job *m = &j->memory.job;
    enum config_place asked = j->c->memory.idle;
    bool least = asked == CONFIG_PLACE_AUTO && j->c->memory.low_vram;
    if (least && !memory_can_offload_blocks(m) && memory_can_take_turns(m, true))
        return MODEL_IDLE_FILE;
    if (asked != CONFIG_PLACE_HOST && asked != CONFIG_PLACE_FILE)
        return MODEL_IDLE_DEVICE;
    bool file = asked == CONFIG_PLACE_FILE || !memory_can_take_turns(m, false);
    if (memory_can_take_turns(m, file))
        return file ? MODEL_IDLE_FILE : MODEL_IDLE_HOST;
    if (!j->quiet)
        job_say(j, "memory.idle: this job uses all of its weights in each step; they stay on the device");
    return MODEL_IDLE_DEVICE;
}

/* Places the parts as the configuration asks.  Stochastic rounding draws other random numbers on the host, so
 * its optimizer stays where the checkpoint had it. */
static void place_parts(struct job *j)
{
    const struct config_memory *c = &j->c->memory;
    const struct memory_job *m = &j->memory.job;
    struct job_layout *l = &j->state.layout;
    if (!m->only_samples) {
        bool was_there = l->optim_on_host && m->optim.stochastic && c->optimizer == CONFIG_PLACE_AUTO;
        bool can = memory_can_offload_optimizer(m);
        l->recompute = l->recompute || c->low_vram;
        l->optim_on_host = goes_to_host(j, "memory.optimizer", c->optimizer, can) || (was_there && can);
        l->inputs_on_host = goes_to_host(j, "memory.inputs", c->inputs, memory_can_save_inputs(m));
    }
    if ((c->blocks.word == CONFIG_PLACE_HOST || (c->blocks.word < 0 && c->blocks.n)) &&
        !memory_can_offload_blocks(m) && !j->quiet)
        job_say(j, "memory.blocks: cannot offload to the host here; keeping them on the device");
    l->weights = (struct model_layout){ .streamed = streamed_asked(j), .idle = idle_asked(j) };
}

static int check_blocks(const struct job *j, struct cairn_error *err)
{
    uint64_t asked = streamed_asked(j), all = model_blocks(j->task->model);
    if (asked <= all)
        return 0;
    return config_clash(j->c, "memory.blocks", "memory.blocks", err,
                        "memory.blocks is %" PRIu64 ", but the model has only %" PRIu64 " blocks", asked,
                        all);
}

static bool is_anything_on_host(const struct job *j)
{
    const struct job_layout *l = &j->state.layout;
    return l->optim_on_host || l->inputs_on_host || l->weights.streamed || l->weights.idle == MODEL_IDLE_HOST;
}

static int check_host(struct job *j, struct cairn_error *err)
{
    uint64_t there = limits_of(j).host_bytes, host = memory_plan_sum(j->memory.plan.host);
    if (!there || host <= there || !is_anything_on_host(j))
        return 0;
    cairn_fail(err, CAIRN_ENOMEM, "needs %.1f MiB of host memory, %.1f MiB available", mib(host), mib(there));
    return cairn_hint(
        err, "set memory.optimizer, memory.blocks and memory.inputs to device, or use a smaller model");
}

int job_fit(struct job *j, struct cairn_error *err)
{
    place_parts(j);
    return check_blocks(j, err) || job_fit_again(j, err) ? -1 : 0;
}

/* Fewer blocks on the host, if later fallbacks made that possible. */
static int end_fit(struct job *j, struct cairn_error *err)
{
    struct memory_limits limits = limits_of(j);
    char text[FALLBACK_TEXT];
    size_t at = j->memory.blocks_fallback;
    if (at && memory_relax(&j->memory.job, &limits, &j->state.layout, text)) {
        memcpy(j->memory.fallbacks[at - 1], text, sizeof(text));
        replan(j);
        if (!j->quiet)
            job_say(j, "with that, it is enough: %s", text);
    }
    return check_host(j, err);
}

int job_fit_again(struct job *j, struct cairn_error *err)
{
    const struct memory_job *m = &j->memory.job;
    for (;;) {
        struct memory_limits limits = limits_of(j);
        struct cairn_error why = { 0 };
        replan(j);
        if (memory_fits(m, &limits, &j->memory.plan, true))
            return end_fit(j, err);
        cairn_fail(&why, CAIRN_ENOMEM, "needs %.1f MiB, %.1f MiB available",
                   mib(memory_plan_bound(m, &j->memory.plan)), mib(limits.device_bytes));
        const char *done = next_fallback(j);
        if (!done)
            return memory_fits(m, &limits, &j->memory.plan, false) ? check_host(j, err)
                                                                   : fail_for_good(j, &why, err);
        if (!j->quiet)
            job_say(j, "%s: %s", why.msg, done);
    }
}

/* Only if the plan leaves enough memory for what large blocks waste. */
void job_warm_pool(struct job *j)
{
    const uint64_t warm = (uint64_t)1 << 30;
    uint64_t sum = memory_plan_bound(&j->memory.job, &j->memory.plan), budget = j->o->budget_bytes;
    if (!j->memory.job.is_cpu && (!budget || sum + 2 * warm <= budget))
        pool_warm(gpu_pool(j->o->g), warm);
}

uint64_t job_refused_transfers(const struct job *j)
{
    struct transfer_stats st;
    transfer_stats_get(gpu_transfer(j->o->g), &st);
    return st.rungs[TRANSFER_REFUSED];
}

bool job_offload_next(struct job *j, const struct cairn_error *why)
{
    struct job_layout *l = &j->state.layout;
    const char *part;
    if (gpu_lost(j->o->g))
        return false;
    if (memory_can_offload_blocks(&j->memory.job) && l->weights.streamed < model_blocks(j->task->model)) {
        j->memory.evicted.streamed = l->weights.streamed;
        l->weights.streamed = model_blocks(j->task->model);
        j->memory.evicted.blocks = true;
        part = "the weights of the blocks";
    } else if (memory_can_offload_optimizer(&j->memory.job) && !l->optim_on_host) {
        l->optim_on_host = j->memory.evicted.optimizer = true;
        part = "the optimizer state";
    } else
        return false;
    job_event(j, "part-on-host", "%s: %s", part, why->msg);
    job_say(j, "upload refused (%s): keeping %s in host memory; will retry at each checkpoint", why->msg,
            part);
    return true;
}

bool job_cancel_offload(struct job *j, const struct cairn_error *why)
{
    struct job_layout *l = &j->state.layout;
    bool offloads = l->optim_on_host || l->weights.streamed || l->weights.idle == MODEL_IDLE_HOST;
    if (why->code != CAIRN_ELACK || !offloads)
        return false;
    job_say(j, "cannot offload to host memory: %s; everything stays on the device", why->msg);
    j->memory.optim_pinned = j->memory.blocks_pinned = true;
    l->optim_on_host = false;
    l->weights.streamed = 0;
    if (l->weights.idle == MODEL_IDLE_HOST)
        l->weights.idle = MODEL_IDLE_DEVICE;
    return true;
}

bool job_cancel_inputs(struct job *j, const struct cairn_error *why)
{
    struct job_layout *l = &j->state.layout;
    if (why->code != CAIRN_ELACK || !l->inputs_on_host)
        return false;
    job_say(j, "cannot save the inputs of the blocks in host memory: %s; they stay on the device", why->msg);
    j->memory.inputs_pinned = true;
    l->inputs_on_host = false;
    return true;
}

/* ---- while it runs ---- */

/* That of any set: after a move that failed half way, the sets may be in different places. */
static bool optimizer_is_on_host(const struct job *j)
{
    for (size_t i = 0; i < MODEL_SETS && j->optim[i]; i++)
        if (optim_is_on_host(j->optim[i]))
            return true;
    return false;
}

/* All sets, or none where that is possible.  A set whose state is on the host and whose windows do not fit on the device yet
 * has moved, although the move failed. */
static int move_optimizers(struct job *j, bool to_host, struct cairn_error *err)
{
    struct cairn_error ignored;
    int r = 0;
    for (size_t i = 0; i < MODEL_SETS && j->optim[i]; i++) {
        if (!optim_move_state(j->optim[i], to_host, err))
            continue;
        r = -1;
        if (optim_is_on_host(j->optim[i]) == to_host)
            continue;
        while (i-- > 0)
            optim_move_state(j->optim[i], !to_host, &ignored);
        return -1;
    }
    return r;
}

/* Moves allocated parts to where the layout wants them.  A part that does not fit on the host stays on the
 * device. */
static int move_parts(struct job *j, struct cairn_error *err)
{
    struct cairn_error why = { 0 }, other = { 0 };
    struct job_layout *l = &j->state.layout;
    struct model *m = j->task->model;
    bool was_pinned = j->memory.optim_pinned || j->memory.blocks_pinned;
    uint64_t before = gpu_allocated(j->o->g).bytes;
    bool failed = j->optim[0] && move_optimizers(j, l->optim_on_host, &why);
    if (failed && optimizer_is_on_host(j) != l->optim_on_host) {
        j->memory.optim_pinned = true;
        l->optim_on_host = false;
    }
    uint64_t between = gpu_allocated(j->o->g).bytes;
    if (model_is_allocated(m) && model_move_blocks(m, &l->weights, &other)) {
        bool moved = m->layout.streamed == l->weights.streamed && m->layout.idle == l->weights.idle;
        j->memory.blocks_pinned = j->memory.blocks_pinned || !moved;
        l->weights = m->layout;
        failed = true;
        why = other;
    }
    j->memory.used_bytes[MEMORY_OPTIMIZER] += between - before;
    j->memory.used_bytes[MEMORY_WEIGHTS] += gpu_allocated(j->o->g).bytes - between;
    if (!was_pinned && (j->memory.optim_pinned || j->memory.blocks_pinned))
        job_say(j, "cannot offload to host memory: %s", why.msg);
    if (!failed || why.code == CAIRN_ENOMEM || why.code == CAIRN_ELACK)
        return 0;
    *err = why;
    return -1;
}

/* Blocks that follow others to the host are the same eviction. */
static void note_evicted(struct job_memory *m, const struct job_layout *before, const struct job_layout *now)
{
    struct memory_evicted *e = &m->evicted;
    bool more = e->blocks && now->weights.streamed > before->weights.streamed;
    if (!e->blocks && now->weights.streamed > before->weights.streamed) {
        e->blocks = true;
        e->streamed = before->weights.streamed;
    }
    e->optimizer = e->optimizer || (now->optim_on_host && !before->optim_on_host);
    e->times += !more && (e->optimizer || e->blocks);
}

int job_fallback(struct job *j, const struct cairn_error *why, struct cairn_error *err)
{
    struct job_memory *m = &j->memory;
    const struct job_layout *l = &j->state.layout;
    struct job_layout before = *l;
    job_event(j, "oom", "%s", why->msg);
    j->task->ops->sample_close(j->task); /* the next sample opens it again */
    m->used_bytes[MEMORY_SAMPLER] = 0;
    const char *done = next_fallback(j);
    if (!done)
        return fail_for_good(j, why, err);
    job_say(j, "out of memory (%s): %s", why->msg, done);
    note_evicted(m, &before, l);
    int r = move_parts(j, err);
    replan(j);
    return r;
}

int job_retry_smaller(struct job *j, int (*fn)(struct job *j, void *to, struct cairn_error *err), void *to,
                      struct cairn_error *err)
{
    for (;;) {
        struct cairn_error why = { 0 };
        if (!fn(j, to, &why))
            return 0;
        if (why.code != CAIRN_ENOMEM || gpu_lost(j->o->g)) {
            *err = why;
            return -1;
        }
        if (job_fallback(j, &why, err) || job_open_work(j, err))
            return -1;
        step_watch_reset(&j->watch);
    }
}

/* Free bytes on the device and in its pool, less what the next sample needs. */
static uint64_t free_bytes(const struct job *j)
{
    uint64_t there = 0, total = 0, budget = j->o->budget_bytes;
    uint64_t kept = j->task->ops->sample_is_open(j->task) ? 0 : j->memory.plan.device[MEMORY_SAMPLER];
    struct cairn_error ignored;
    struct pool_stats st;
    pool_stats_get(gpu_pool(j->o->g), &st);
    if (gpu_memory(j->o->g, &there, &total, &ignored))
        return 0;
    there += st.cached_bytes;
    uint64_t left = budget > st.allocated_bytes ? budget - st.allocated_bytes : 0;
    there = budget && left < there ? left : there;
    return there > kept ? there - kept : 0;
}

int job_restore(struct job *j, struct cairn_error *err)
{
    struct job_memory *m = &j->memory;
    struct job_layout *l = &j->state.layout, then;
    if (!memory_restore(&m->job, l, &m->evicted, free_bytes(j), &then))
        return 0;
    struct cairn_error why = { 0 };
    if ((move_optimizers(j, then.optim_on_host, &why) ||
         model_move_blocks(j->task->model, &then.weights, &why)) &&
        gpu_lost(j->o->g)) {
        *err = why;
        return -1;
    }
    l->optim_on_host = optimizer_is_on_host(j);
    l->weights = j->task->model->layout;
    m->evicted.optimizer = m->evicted.optimizer && l->optim_on_host;
    m->evicted.blocks = m->evicted.blocks && l->weights.streamed > m->evicted.streamed;
    uint64_t before = memory_plan_sum(m->plan.device);
    replan(j);
    m->used_bytes[MEMORY_OPTIMIZER] = m->plan.device[MEMORY_OPTIMIZER];
    m->used_bytes[MEMORY_WEIGHTS] = m->plan.device[MEMORY_WEIGHTS];
    if (why.code) {
        if (!m->warned_stuck)
            job_say(j, "cannot move offloaded memory back to the device yet: %s", why.msg);
        m->warned_stuck = true;
        return 0;
    }
    uint64_t more = memory_plan_sum(m->plan.device) - before;
    job_event(j, "memory-back", "%.1f MiB moved back to the device", mib(more));
    job_say(j, "memory is available again: moved %.1f MiB back to the device", mib(more));
    return 0;
}

void job_warn_fragmented(struct job *j)
{
    enum { WORTH_IT = 256 << 20 };
    struct pool_stats st;
    pool_stats_get(gpu_pool(j->o->g), &st);
    if (j->memory.warned_fragmented || j->event || st.reserved_bytes < WORTH_IT || st.fragmentation < 0.25)
        return;
    j->memory.warned_fragmented = true;
    job_event(j, "fragmentation", "%.0f %% of %.1f MiB is free, but in small holes; the largest is %.1f MiB",
              100 * st.fragmentation, mib(st.reserved_bytes), mib(st.hole_bytes));
    job_say(j, "device memory is fragmented: %s", j->note);
}

bool job_host_is_short(struct job *j)
{
    enum { EVERY_S = 1, SHARE = 50, MOST = 512 << 20 };
    struct job_memory *m = &j->memory;
    double now = clock_s();
    if (!j->o->host_available || now - m->host_checked_s < EVERY_S)
        return false;
    m->host_checked_s = now;
    uint64_t there = j->o->host_available();
    m->host_peak_bytes = there > m->host_peak_bytes ? there : m->host_peak_bytes;
    uint64_t little = m->host_peak_bytes / SHARE < MOST ? m->host_peak_bytes / SHARE : MOST;
    bool is_short = there && there < little;
    bool news = is_short && !m->host_was_short;
    m->host_was_short = is_short || (m->host_was_short && there < 2 * little);
    if (!news)
        return false;
    if (!j->event)
        job_event(j, "host-memory", "%.1f MiB left", mib(there));
    job_say(
        j,
        "the host has %.1f MiB of free memory left: saving a checkpoint now, before the kernel's OOM killer acts",
        mib(there));
    return true;
}

/* ---- figures ---- */

/* Offloaded bytes: by the pool, or whole parts of the job. */
static uint64_t bytes_on_host(const struct job *j, const struct pool_stats *st)
{
    uint64_t sum = st->host_bytes;
    if (optimizer_is_on_host(j))
        sum += j->memory.plan.host[MEMORY_OPTIMIZER];
    if (model_is_offloaded(j->task->model))
        sum += j->memory.plan.host[MEMORY_WEIGHTS];
    sum += j->memory.plan.host[MEMORY_ACTIVATIONS];
    return sum;
}

static const enum metric pool_metrics[] = {
    [POOL_RELEASED] = METRIC_MEM_RELEASED,
    [POOL_COMPACTED] = METRIC_MEM_COMPACTED,
    [POOL_EVICTED] = METRIC_MEM_EVICTED,
    [POOL_REFUSED] = METRIC_MEM_REFUSED,
};
_Static_assert(ARRAY_LEN(pool_metrics) == POOL_RUNGS, "each fallback of the pool has a metric");

static const enum metric transfer_metrics[] = {
    [TRANSFER_SMALL_RING] = METRIC_COPY_SMALL_RING, [TRANSFER_PAGEABLE] = METRIC_COPY_PAGEABLE,
    [TRANSFER_STEPS] = METRIC_COPY_STEPS,           [TRANSFER_PIECES] = METRIC_COPY_PIECES,
    [TRANSFER_REFUSED] = METRIC_COPY_REFUSED,
};
_Static_assert(ARRAY_LEN(transfer_metrics) == TRANSFER_RUNGS, "each fallback of a copy has a metric");

void job_record_memory(const struct job *j, struct step_record *m)
{
    struct pool_stats pool;
    struct transfer_stats transfer;
    pool_stats_get(gpu_pool(j->o->g), &pool);
    transfer_stats_get(gpu_transfer(j->o->g), &transfer);
    uint64_t on_host = bytes_on_host(j, &pool);
    step_record_set(m, METRIC_MEM_ALLOCATED, (double)pool.allocated_bytes);
    step_record_set(m, METRIC_MEM_RESERVED, (double)pool.reserved_bytes);
    step_record_set(m, METRIC_MEM_PEAK, (double)pool.peak_bytes);
    if (on_host)
        step_record_set(m, METRIC_MEM_HOST, (double)on_host);
    step_record_set(m, METRIC_MEM_HOLE, (double)pool.hole_bytes);
    step_record_set(m, METRIC_MEM_FRAGMENTATION, pool.fragmentation);
    for (int i = 0; i < POOL_RUNGS; i++)
        if (pool.rungs[i])
            step_record_set(m, pool_metrics[i], (double)pool.rungs[i]);
    for (int i = 0; i < TRANSFER_RUNGS; i++)
        if (transfer.rungs[i])
            step_record_set(m, transfer_metrics[i], (double)transfer.rungs[i]);
}

static void add_part(struct str *list, const char *name, double a, const char *more)
{
    str_addf(list, "%s %s %.1f%s", list->len ? "," : ":", name, a, more);
}

void job_say_plan(struct job *j)
{
    const struct memory_plan *p = &j->memory.plan;
    uint64_t free_now = 0, total = 0, budget = j->o->budget_bytes;
    struct cairn_error ignored;
    CLEANUP(str_release) struct str device = { 0 }, host = { 0 };
    gpu_memory(j->o->g, &free_now, &total, &ignored);
    for (int i = 0; i < MEMORY_PARTS; i++) {
        if (p->device[i])
            add_part(&device, memory_part_names[i], mib(p->device[i]),
                     i == MEMORY_ACTIVATIONS && j->state.layout.recompute ? " (recomputed)" : "");
        if (p->host[i])
            add_part(&host, memory_part_names[i], mib(p->host[i]), "");
    }
    double there = mib(budget ? budget : total);
    job_say(j, "memory    %.1f MiB planned%s; %.1f %s %s", mib(memory_plan_sum(p->device)), device.s,
            there < 1024 ? there : there / 1024, there < 1024 ? "MiB" : "GiB", "available");
    job_say(j, "          %.1f MiB of host memory%s", mib(memory_plan_sum(p->host)), host.s);
}

void job_say_used(struct job *j)
{
    const struct job_memory *m = &j->memory;
    struct gpu_allocated all = gpu_allocated(j->o->g);
    uint64_t rest = all.bytes;
    CLEANUP(str_release) struct str list = { 0 };
    for (int i = 0; i < MEMORY_PARTS; i++) {
        rest -= m->used_bytes[i];
        if (m->used_bytes[i])
            str_addf(&list, "%s %.1f/%.1f, ", memory_part_names[i], mib(m->used_bytes[i]),
                     mib(m->plan.device[i]));
    }
    job_say(j, "memory    peak %.1f MiB (planned %.1f); at the end: %sother %.1f", mib(all.most_bytes),
            mib(memory_plan_sum(m->plan.device)), list.s ? list.s : "", mib(rest));
}
