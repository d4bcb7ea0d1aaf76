/* SPDX-License-Identifier: Apache-2.0
 * How much memory a job takes, where its parts lie, and what gives way when there is too little. */
#include "base/clock.h"
#include "base/str.h"
#include "gpu/pool.h"
#include "gpu/transfer.h"
#include "train/job.h"
#include "train/slow.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const job_part_names[JOB_PARTS] = {
    [JOB_WEIGHTS] = "weights",         [JOB_GRADIENTS] = "gradients", [JOB_OPTIMIZER] = "optimizer",
    [JOB_ACTIVATIONS] = "activations", [JOB_SAMPLER] = "samples",     [JOB_WORK] = "work",
    [JOB_CHECKPOINT] = "checkpoint",
};

static double mib(uint64_t bytes)
{
    return (double)bytes / (1 << 20);
}

static bool is_cpu(const struct job *j)
{
    return gpu_info(j->o->g)->api == GPU_API_HOST;
}

/* ---- the plan ---- */

static uint64_t packed_bytes(const struct job *j, const struct gpt_work_options *room,
                             const struct gpt_work_options *sampler)
{
    size_t step = gpt_work_packed_bytes(j->m, room),
           sample = j->c->sample.every ? gpt_work_packed_bytes(j->m, sampler) : 0;
    return step > sample ? step : sample;
}

void job_plan(const struct job *j, struct job_plan *out)
{
    const struct params *trained = gpt_trained(j->m);
    struct optim_options optim = job_optim_options(j);
    struct optim_sizes sizes = optim_sizes(trained, j->nn.storage, &optim);
    struct gpt_work_options room = job_work_options(j), sampler = sampler_bytes(j->m, j->m->shape.context);
    size_t host;
    *out = (struct job_plan){ 0 };
    out->device[JOB_WEIGHTS] = gpt_bytes(j->m, j->state.blocks_on_host, &host);
    out->host[JOB_WEIGHTS] = host;
    out->device[JOB_GRADIENTS] = sizes.grads;
    out->device[JOB_OPTIMIZER] = sizes.state;
    out->host[JOB_OPTIMIZER] = sizes.host;
    out->device[JOB_ACTIVATIONS] = gpt_work_bytes(j->m, &room);
    out->device[JOB_SAMPLER] = j->c->sample.every ? gpt_work_bytes(j->m, &sampler) : 0;
    out->device[JOB_WORK] =
        j->work_bytes + gpt_work_sums_bytes(j->m, &room) + packed_bytes(j, &room, &sampler);
    optim.on_host = false;
    out->host[JOB_CHECKPOINT] =
        weights_size(trained, j->nn.storage) + optim_sizes(trained, j->nn.storage, &optim).state;
}

uint64_t job_plan_sum(const uint64_t bytes[JOB_PARTS])
{
    uint64_t sum = 0;
    for (int i = 0; i < JOB_PARTS; i++)
        sum += bytes[i];
    return sum;
}

uint64_t job_plan_bound(const struct job *j, const struct job_plan *p)
{
    return job_plan_sum(p->device) + (is_cpu(j) || gpu_info(j->o->g)->unified ? job_plan_sum(p->host) : 0);
}

/* ---- what gives way ---- */

static void give_way(struct job *j, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void give_way(struct job *j, const char *fmt, ...)
{
    va_list ap;
    size_t last = j->n_given_way < JOB_RUNGS_MOST ? j->n_given_way++ : JOB_RUNGS_MOST - 1;
    va_start(ap, fmt);
    vsnprintf(j->given_way[last], sizeof(j->given_way[last]), fmt, ap);
    va_end(ap);
}

static uint64_t host_there(const struct job *j)
{
    return j->o->host_available ? j->o->host_available() : 0;
}

/* Memory that is the host's anyway is not won by going there.  What is there already is not asked for again. */
static bool can_go_to_host(const struct job *j, enum config_place asked, const struct job_plan *after)
{
    const struct gpu_info *g = gpu_info(j->o->g);
    struct job_plan now;
    if (g->api == GPU_API_HOST || g->unified || asked == CONFIG_PLACE_DEVICE)
        return false;
    job_plan(j, &now);
    uint64_t there = host_there(j), more = job_plan_sum(after->host);
    more -= j->m->weights.g ? job_plan_sum(now.host) : 0;
    return !there || more <= there - there / 5;
}

/* Whether a change of the layout makes it smaller. */
static bool saves(const struct job *j, const struct job_plan *after)
{
    struct job_plan now;
    job_plan(j, &now);
    return job_plan_bound(j, after) < job_plan_bound(j, &now);
}

static bool blocks_to_host(struct job *j)
{
    struct job_plan p;
    struct job then = *j;
    then.state.blocks_on_host = true;
    job_plan(&then, &p);
    if (j->state.blocks_on_host || j->blocks_stay || !saves(j, &p) ||
        !can_go_to_host(j, j->c->memory.blocks, &p))
        return false;
    j->state.blocks_on_host = true;
    give_way(j, "the weights of the blocks live on the host and come over one by one");
    return true;
}

static bool optim_to_host(struct job *j)
{
    struct job_plan p;
    struct job then = *j;
    then.state.optim_on_host = true;
    job_plan(&then, &p);
    if (j->state.optim_on_host || j->optim_stays || !saves(j, &p) ||
        !can_go_to_host(j, j->c->memory.optimizer, &p))
        return false;
    j->state.optim_on_host = true;
    give_way(j, "the optimizer's state lives on the host and comes over piece by piece");
    return true;
}

static bool recompute(struct job *j)
{
    if (j->state.recompute)
        return false;
    j->state.recompute = true;
    give_way(j, "blocks are computed again on the way back");
    return true;
}

static bool halve(struct job *j)
{
    if (j->state.micro % 2)
        return false;
    j->state.micro /= 2;
    give_way(j, "micro-batches of %" PRIu64 " sample%s, %zu of them a step", j->state.micro,
             j->state.micro > 1 ? "s" : "", job_micros(j));
    return true;
}

/* Micro-batches that still keep a device busy cost next to nothing. */
static bool halve_large(struct job *j)
{
    enum { ENOUGH = 4 << 20 /* tokens times width */, ENOUGH_CPU = 512 /* tokens */ };
    uint64_t tokens = j->state.micro / 2 * (uint64_t)j->c->train.seq;
    bool enough = is_cpu(j) ? tokens >= ENOUGH_CPU : tokens * (uint64_t)j->c->model.width >= ENOUGH;
    return enough && halve(j);
}

/* The cheapest first. */
static bool (*const rungs[])(struct job *j) = { halve_large, blocks_to_host, optim_to_host, recompute,
                                                halve };

static bool take_rung(struct job *j)
{
    for (size_t i = 0; i < ARRAY_LEN(rungs); i++)
        if (rungs[i](j))
            return true;
    return false;
}

static int fail_for_good(const struct job *j, const struct cairn_error *why, struct cairn_error *err)
{
    *err = *why;
    err->code = CAIRN_ENOMEM;
    return cairn_hint(err,
                      "micro-batches of %zu with recomputation do not fit: a shorter train.seq, a smaller "
                      "model, model.quantize with LoRA, or train.optimizer: adafactor",
                      (size_t)j->state.micro);
}

/* What is asked for and cannot be is told. */
static bool goes_to_host(struct job *j, const char *key, enum config_place asked, bool can)
{
    bool wanted = asked == CONFIG_PLACE_HOST || (asked == CONFIG_PLACE_AUTO && j->c->memory.low_vram);
    if (asked == CONFIG_PLACE_HOST && !can && !j->quiet)
        job_say(j, "%s: host is not possible here; it stays on the device", key);
    return wanted && can;
}

/* Where the configuration wants the parts; the rest begins on the device, and gives way if it must.  Stochastic rounding has
 * other chances there, and so stays where the checkpoint has it. */
static void place_parts(struct job *j)
{
    const struct config_memory *c = &j->c->memory;
    const struct gpu_info *g = gpu_info(j->o->g);
    struct optim_options optim = job_optim_options(j);
    bool apart = g->api != GPU_API_HOST && !g->unified; /* the device has memory of its own */
    bool was_there = j->state.optim_on_host && optim.stochastic && c->optimizer == CONFIG_PLACE_AUTO;
    bool can = apart && optim_can_move(optim.kind);
    j->state.recompute = j->state.recompute || c->low_vram;
    j->state.optim_on_host = goes_to_host(j, "memory.optimizer", c->optimizer, can) || (was_there && can);
    j->state.blocks_on_host = goes_to_host(j, "memory.blocks", c->blocks, apart && j->m->frozen.pieces > 0);
}

static int check_host(struct job *j, struct cairn_error *err)
{
    uint64_t there = host_there(j), host = job_plan_sum(j->plan.host);
    if (!there || host <= there || (!j->state.optim_on_host && !j->state.blocks_on_host))
        return 0;
    cairn_fail(err, CAIRN_ENOMEM, "%.1f MiB of the host's memory are planned, %.1f are there", mib(host),
               mib(there));
    return cairn_hint(err, "memory.optimizer and memory.blocks can stay on the device; a smaller model");
}

int job_fit(struct job *j, struct cairn_error *err)
{
    place_parts(j);
    return job_fit_again(j, err);
}

int job_fit_again(struct job *j, struct cairn_error *err)
{
    enum { RESERVE_SHARE = 50, RESERVE_MOST = 256 << 20 };
    uint64_t budget = j->o->budget_bytes;
    for (;;) {
        job_plan(j, &j->plan);
        uint64_t sum = job_plan_bound(j, &j->plan), spare = budget / RESERVE_SHARE;
        spare = spare < RESERVE_MOST ? spare : RESERVE_MOST;
        if (!budget || sum + spare <= budget)
            return check_host(j, err);
        struct cairn_error why = { 0 };
        cairn_fail(&why, CAIRN_ENOMEM, "%.1f MiB of memory are planned, %.1f are there", mib(sum),
                   mib(budget));
        if (take_rung(j)) {
            if (!j->quiet)
                job_say(j, "%s: %s", why.msg, j->given_way[j->n_given_way - 1]);
        } else
            return sum <= budget ? check_host(j, err) : fail_for_good(j, &why, err);
    }
}

/* Large blocks at once, where the plan leaves room for what they waste. */
void job_warm(struct job *j)
{
    const uint64_t warm = (uint64_t)1 << 30;
    uint64_t sum = job_plan_bound(j, &j->plan), budget = j->o->budget_bytes;
    if (!is_cpu(j) && (!budget || sum + 2 * warm <= budget))
        pool_warm(gpu_pool(j->o->g), warm);
}

/* ---- in the middle of it ---- */

/* What the host has no room for stays where it is; the next rung then. */
static int move_parts(struct job *j, struct cairn_error *err)
{
    struct cairn_error why = { 0 };
    bool stayed = j->optim_stays || j->blocks_stay;
    uint64_t before = gpu_allocated(j->o->g).bytes;
    if (j->optim && optim_move_state(j->optim, j->state.optim_on_host, &why) &&
        optim_is_on_host(j->optim) != j->state.optim_on_host) {
        j->optim_stays = true;
        j->state.optim_on_host = false;
    }
    uint64_t between = gpu_allocated(j->o->g).bytes;
    if (j->m->weights.g && weights_move_blocks(&j->m->weights, j->state.blocks_on_host, &why) &&
        (j->m->weights.offloaded != NULL) != j->state.blocks_on_host) {
        j->blocks_stay = true;
        j->state.blocks_on_host = false;
    }
    j->taken_bytes[JOB_OPTIMIZER] += between - before;
    j->taken_bytes[JOB_WEIGHTS] += gpu_allocated(j->o->g).bytes - between;
    if (!stayed && (j->optim_stays || j->blocks_stay))
        job_say(j, "that is not possible now: %s", why.msg);
    if (!why.code || why.code == CAIRN_ENOMEM || why.code == CAIRN_ELACK)
        return 0;
    *err = why;
    return -1;
}

uint64_t job_refused(const struct job *j)
{
    struct transfer_stats st;
    transfer_stats_get(gpu_transfer(j->o->g), &st);
    return st.rungs[TRANSFER_REFUSED];
}

bool job_leave_on_host(struct job *j, const struct cairn_error *why)
{
    const struct gpu_info *g = gpu_info(j->o->g);
    const char *part;
    if (g->api == GPU_API_HOST || g->unified || gpu_lost(j->o->g))
        return false;
    if (j->m->frozen.pieces && !j->state.blocks_on_host) {
        j->state.blocks_on_host = j->blocks_by_need = true;
        part = "the weights of the blocks";
    } else if (optim_can_move(job_optim_options(j).kind) && !j->state.optim_on_host) {
        j->state.optim_on_host = j->optim_by_need = true;
        part = "the optimizer's state";
    } else
        return false;
    j->event = "part-on-host";
    snprintf(j->note, sizeof(j->note), "%s: %s", part, why->msg);
    job_say(
        j,
        "the device does not take all of it (%s): %s stay on the host, and are tried again at each checkpoint",
        why->msg, part);
    return true;
}

bool job_keep_near(struct job *j, const struct cairn_error *why)
{
    if (why->code != CAIRN_ELACK || (!j->state.optim_on_host && !j->state.blocks_on_host))
        return false;
    job_say(j, "%s: what should live there stays on the device", why->msg);
    j->optim_stays = j->blocks_stay = true;
    j->state.optim_on_host = j->state.blocks_on_host = false;
    return true;
}

int job_step_down(struct job *j, const struct cairn_error *why, struct cairn_error *err)
{
    bool optim = j->state.optim_on_host, blocks = j->state.blocks_on_host;
    j->event = "oom";
    snprintf(j->note, sizeof(j->note), "%s", why->msg);
    sampler_close(j->sampler); /* it is opened again for the next sample */
    j->sampler = NULL;
    j->taken_bytes[JOB_SAMPLER] = 0;
    if (!take_rung(j))
        return fail_for_good(j, why, err);
    job_say(j, "out of memory (%s): %s", why->msg, j->given_way[j->n_given_way - 1]);
    j->optim_by_need = j->optim_by_need || (j->state.optim_on_host && !optim);
    j->blocks_by_need = j->blocks_by_need || (j->state.blocks_on_host && !blocks);
    j->falls += j->optim_by_need || j->blocks_by_need;
    int r = move_parts(j, err);
    job_plan(j, &j->plan);
    return r;
}

int job_with_less(struct job *j, int (*fn)(struct job *j, void *to, struct cairn_error *err), void *to,
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
        if (job_step_down(j, &why, err) || job_open_work(j, err))
            return -1;
        slow_forget(j);
    }
}

/* What is free on the device and in its pool, but for what the next sample takes. */
static uint64_t free_bytes(const struct job *j)
{
    uint64_t there = 0, total = 0, budget = j->o->budget_bytes;
    uint64_t kept = j->sampler ? 0 : j->plan.device[JOB_SAMPLER];
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

/* The whole of a part must fit beside the windows through which it came over.  That it does not come after all costs
 * nothing; twice it is not tried. */
int job_step_up(struct job *j, struct cairn_error *err)
{
    enum { FALLS_MOST = 2 };
    struct job_plan after;
    struct job then = *j;
    if (j->falls >= FALLS_MOST || (!j->optim_by_need && !j->blocks_by_need))
        return 0;
    then.state.optim_on_host = j->state.optim_on_host && !j->optim_by_need;
    then.state.blocks_on_host = j->state.blocks_on_host && !j->blocks_by_need;
    job_plan(&then, &after);
    uint64_t need = (j->optim_by_need ? after.device[JOB_OPTIMIZER] : 0) +
                    (j->blocks_by_need ? after.device[JOB_WEIGHTS] : 0);
    if (need + need / 10 > free_bytes(j))
        return 0;
    struct cairn_error why = { 0 };
    if ((optim_move_state(j->optim, then.state.optim_on_host, &why) ||
         weights_move_blocks(&j->m->weights, then.state.blocks_on_host, &why)) &&
        gpu_lost(j->o->g)) {
        *err = why;
        return -1;
    }
    j->state.optim_on_host = optim_is_on_host(j->optim);
    j->state.blocks_on_host = j->m->weights.offloaded != NULL;
    j->optim_by_need = j->optim_by_need && j->state.optim_on_host;
    j->blocks_by_need = j->blocks_by_need && j->state.blocks_on_host;
    uint64_t before = job_plan_sum(j->plan.device);
    job_plan(j, &j->plan);
    j->taken_bytes[JOB_OPTIMIZER] = j->plan.device[JOB_OPTIMIZER];
    j->taken_bytes[JOB_WEIGHTS] = j->plan.device[JOB_WEIGHTS];
    if (why.code) {
        if (!j->told_stays)
            job_say(j, "what went to the host cannot come back yet: %s", why.msg);
        j->told_stays = true;
        return 0;
    }
    uint64_t more = job_plan_sum(j->plan.device) - before;
    j->event = "memory-back";
    snprintf(j->note, sizeof(j->note), "%.1f MiB are on the device again", mib(more));
    job_say(j, "there is room again: what went to the host, %.1f MiB, is back on the device", mib(more));
    return 0;
}

/* ---- beside it ---- */

void job_tell_holes(struct job *j)
{
    enum { WORTH_IT = 256 << 20 };
    struct pool_stats st;
    pool_stats_get(gpu_pool(j->o->g), &st);
    if (j->told_holes || j->event || st.reserved_bytes < WORTH_IT || st.fragmentation < 0.25)
        return;
    j->told_holes = true;
    j->event = "fragmentation";
    snprintf(j->note, sizeof(j->note),
             "%.0f %% of %.1f MiB are free in small holes; the largest has %.1f MiB", 100 * st.fragmentation,
             mib(st.reserved_bytes), mib(st.hole_bytes));
    job_say(j, "the device's memory is fragmented: %s", j->note);
}

bool job_host_is_short(struct job *j)
{
    enum { EVERY_S = 1, SHARE = 50, MOST = 512 << 20 };
    double now = clock_s();
    if (!j->o->host_available || now - j->looked_s < EVERY_S)
        return false;
    j->looked_s = now;
    uint64_t there = j->o->host_available();
    j->host_most = there > j->host_most ? there : j->host_most;
    uint64_t little = j->host_most / SHARE < MOST ? j->host_most / SHARE : MOST;
    bool is_short = there && there < little;
    bool news = is_short && !j->host_was_short;
    j->host_was_short = is_short || (j->host_was_short && there < 2 * little);
    if (!news)
        return false;
    if (!j->event) {
        j->event = "host-memory";
        snprintf(j->note, sizeof(j->note), "%.1f MiB are left", mib(there));
    }
    job_say(
        j, "the host has %.1f MiB of memory left: a checkpoint is made now, before the kernel ends something",
        mib(there));
    return true;
}

/* ---- what is said ---- */

/* What gave way to the host, by the pool or by a whole part of the job. */
static uint64_t bytes_on_host(const struct job *j, const struct pool_stats *st)
{
    uint64_t sum = st->host_bytes;
    if (optim_is_on_host(j->optim))
        sum += j->plan.host[JOB_OPTIMIZER];
    if (j->m->weights.offloaded)
        sum += j->plan.host[JOB_WEIGHTS];
    return sum;
}

static const enum metric pool_metrics[] = {
    [POOL_RELEASED] = METRIC_MEM_RELEASED,
    [POOL_COMPACTED] = METRIC_MEM_COMPACTED,
    [POOL_EVICTED] = METRIC_MEM_EVICTED,
    [POOL_REFUSED] = METRIC_MEM_REFUSED,
};
_Static_assert(ARRAY_LEN(pool_metrics) == POOL_RUNGS, "each rung of the pool has a metric");

static const enum metric transfer_metrics[] = {
    [TRANSFER_SMALL_RING] = METRIC_COPY_SMALL_RING, [TRANSFER_PAGEABLE] = METRIC_COPY_PAGEABLE,
    [TRANSFER_STEPS] = METRIC_COPY_STEPS,           [TRANSFER_PIECES] = METRIC_COPY_PIECES,
    [TRANSFER_REFUSED] = METRIC_COPY_REFUSED,
};
_Static_assert(ARRAY_LEN(transfer_metrics) == TRANSFER_RUNGS, "each rung of copies has a metric");

static void measure_pool(const struct job *j, struct step_record *m)
{
    struct pool_stats st;
    pool_stats_get(gpu_pool(j->o->g), &st);
    uint64_t on_host = bytes_on_host(j, &st);
    step_record_set(m, METRIC_MEM_ALLOCATED, (double)st.allocated_bytes);
    step_record_set(m, METRIC_MEM_RESERVED, (double)st.reserved_bytes);
    step_record_set(m, METRIC_MEM_PEAK, (double)st.peak_bytes);
    if (on_host)
        step_record_set(m, METRIC_MEM_HOST, (double)on_host);
    step_record_set(m, METRIC_MEM_HOLE, (double)st.hole_bytes);
    step_record_set(m, METRIC_MEM_FRAGMENTATION, st.fragmentation);
    for (int i = 0; i < POOL_RUNGS; i++)
        if (st.rungs[i])
            step_record_set(m, pool_metrics[i], (double)st.rungs[i]);
}

void job_measure_memory(const struct job *j, struct step_record *m)
{
    struct transfer_stats st;
    measure_pool(j, m);
    transfer_stats_get(gpu_transfer(j->o->g), &st);
    for (int i = 0; i < TRANSFER_RUNGS; i++)
        if (st.rungs[i])
            step_record_set(m, transfer_metrics[i], (double)st.rungs[i]);
}

static void add_part(struct str *list, const char *name, double a, const char *more)
{
    str_addf(list, "%s %s %.1f%s", list->len ? "," : ":", name, a, more);
}

void job_say_plan(struct job *j)
{
    uint64_t free_now = 0, total = 0, host = job_plan_sum(j->plan.host), budget = j->o->budget_bytes;
    struct cairn_error ignored;
    CLEANUP(str_release) struct str list = { 0 }, away = { 0 };
    gpu_memory(j->o->g, &free_now, &total, &ignored);
    for (int i = 0; i < JOB_PARTS; i++) {
        if (j->plan.device[i])
            add_part(&list, job_part_names[i], mib(j->plan.device[i]),
                     i == JOB_ACTIVATIONS && j->state.recompute ? " (recomputed)" : "");
        if (j->plan.host[i])
            add_part(&away, job_part_names[i], mib(j->plan.host[i]), "");
    }
    double there = mib(budget ? budget : total);
    job_say(j, "memory    %.1f MiB planned%s; %.1f %s %s", mib(job_plan_sum(j->plan.device)), list.s,
            there < 1024 ? there : there / 1024, there < 1024 ? "MiB" : "GiB",
            budget ? "may be used" : "are there");
    job_say(j, "          %.1f MiB of the host%s", mib(host), away.s);
}

void job_say_taken(struct job *j)
{
    struct gpu_allocated all = gpu_allocated(j->o->g);
    uint64_t rest = all.bytes;
    CLEANUP(str_release) struct str list = { 0 };
    for (int i = 0; i < JOB_PARTS; i++) {
        rest -= j->taken_bytes[i];
        if (j->taken_bytes[i])
            str_addf(&list, "%s %.1f (%.1f), ", job_part_names[i], mib(j->taken_bytes[i]),
                     mib(j->plan.device[i]));
    }
    job_say(j, "memory    %.1f MiB taken at most, %.1f planned; at the end (planned): %sthe rest %.1f",
            mib(all.most_bytes), mib(job_plan_sum(j->plan.device)), list.s ? list.s : "", mib(rest));
}
