/* SPDX-License-Identifier: Apache-2.0 */
#include "train/memory_plan.h"
#include "base/int.h"
#include "train/average.h"
#include "train/grad_tree.h"
#include <inttypes.h>
#include <stdio.h>

const char *const memory_part_names[MEMORY_PARTS] = {
    [MEMORY_WEIGHTS] = "weights",         [MEMORY_GRADIENTS] = "gradients", [MEMORY_OPTIMIZER] = "optimizer",
    [MEMORY_ACTIVATIONS] = "activations", [MEMORY_SAMPLER] = "samples",     [MEMORY_WORK] = "work",
    [MEMORY_CHECKPOINT] = "checkpoint",
};

const char *const memory_idle_names[] = {
    [MODEL_IDLE_DEVICE] = "device", [MODEL_IDLE_HOST] = "host", [MODEL_IDLE_FILE] = "file"
};

size_t memory_micros(const struct memory_job *m, const struct job_layout *l)
{
    return (size_t)(m->step_samples / l->micro);
}

/* Further copies of the gradients. */
static size_t tree_levels(const struct memory_job *m, const struct job_layout *l)
{
    return m->exact ? grad_tree_levels(memory_micros(m, l), m->ranks ? m->ranks : 1) : 0;
}

struct work_options memory_work_options(const struct memory_job *m, const struct job_layout *l)
{
    return (struct work_options){
        .samples = l->micro,
        .extent = m->task->extent,
        .slots = memory_micros(m, l),
        .train = true,
        .recompute = l->recompute,
        .inputs_on_host = l->inputs_on_host,
    };
}

/* ---- the plan ---- */

static void plan_set(const struct memory_job *m, size_t set, const struct job_layout *l,
                     struct memory_plan *out)
{
    const struct params *trained = model_trained(m->task->model, set);
    enum gpu_storage storage = m->task->model->nn->storage;
    struct optim_options optim = m->optim;
    optim.on_host = l->optim_on_host;
    struct optim_sizes sizes = optim_sizes(trained, storage, &optim);
    out->device[MEMORY_GRADIENTS] += sizes.grads * (1 + tree_levels(m, l));
    out->device[MEMORY_OPTIMIZER] += sizes.state;
    out->host[MEMORY_OPTIMIZER] += sizes.host;
    if (m->samples && optim.ema > 0)
        out->host[MEMORY_SAMPLER] += average_bytes(trained, storage);
    optim.on_host = false;
    out->host[MEMORY_CHECKPOINT] +=
        weights_size(trained, storage) + optim_sizes(trained, storage, &optim).state;
}

void memory_plan(const struct memory_job *m, const struct job_layout *l, struct memory_plan *out)
{
    const struct model *model = m->task->model;
    struct work_bytes step = { 0 }, sample = { 0 };
    size_t host;
    if (!m->only_samples) {
        struct work_options o = memory_work_options(m, l);
        step = model->ops->work_bytes(model, &o);
    }
    if (m->samples)
        sample = m->task->ops->sample_bytes(m->task);
    *out = (struct memory_plan){ 0 };
    out->device[MEMORY_WEIGHTS] = model_bytes(model, &l->weights, &host);
    out->host[MEMORY_WEIGHTS] = host;
    for (size_t i = 0; i < model_sets(model) && !m->only_samples; i++)
        plan_set(m, i, l, out);
    out->device[MEMORY_ACTIVATIONS] = step.own;
    out->host[MEMORY_ACTIVATIONS] = step.host;
    out->device[MEMORY_SAMPLER] = sample.own;
    if (m->task->sample_alone) /* what it needs beyond a step, whose memory it gets */
        out->device[MEMORY_SAMPLER] = sample.own > step.own ? sample.own - step.own : 0;
    out->device[MEMORY_WORK] = m->fixed_bytes + at_least(at_least(step.sums, sample.sums), m->reserved.sums) +
                               at_least(at_least(step.packed, sample.packed), m->reserved.packed);
}

uint64_t memory_plan_sum(const uint64_t bytes[MEMORY_PARTS])
{
    uint64_t sum = 0;
    for (int i = 0; i < MEMORY_PARTS; i++)
        sum += bytes[i];
    return sum;
}

uint64_t memory_plan_bound(const struct memory_job *m, const struct memory_plan *p)
{
    return memory_plan_sum(p->device) + (m->is_cpu || m->is_unified ? memory_plan_sum(p->host) : 0);
}

bool memory_fits(const struct memory_job *m, const struct memory_limits *limits, const struct memory_plan *p,
                 bool with_reserve)
{
    enum { RESERVE_SHARE = 50, RESERVE_MOST = 256 << 20 };
    uint64_t budget = limits->device_bytes, spare = budget / RESERVE_SHARE;
    spare = !with_reserve ? 0 : spare < RESERVE_MOST ? spare : RESERVE_MOST;
    return !budget || memory_plan_bound(m, p) + spare <= budget;
}

/* ---- fallbacks ---- */

/* Offloading saves nothing where device memory is host memory. */
static bool is_apart(const struct memory_job *m)
{
    return !m->is_cpu && !m->is_unified;
}

bool memory_can_offload_optimizer(const struct memory_job *m)
{
    return is_apart(m) && !m->only_samples && optim_can_move(m->optim.kind);
}

bool memory_can_offload_blocks(const struct memory_job *m)
{
    return is_apart(m) && model_blocks(m->task->model);
}

bool memory_can_save_inputs(const struct memory_job *m)
{
    return is_apart(m) && !m->only_samples && m->task->model->ops->can_save_on_host;
}

bool memory_can_take_turns(const struct memory_job *m, bool from_file)
{
    const struct task_ops *ops = m->task->ops;
    return model_can_take_turns(m->task->model) && ops->base_of_step &&
           (ops->base_of_val || !ops->val_samples) && (from_file ? ops->reload_base != NULL : is_apart(m));
}

/* Whether the layout `then` is smaller, and the host has enough memory for what it needs beyond `now`. */
static bool is_worth_it(const struct memory_job *m, const struct memory_limits *limits,
                        const struct job_layout *now, const struct job_layout *then)
{
    struct memory_plan before, after;
    memory_plan(m, now, &before);
    memory_plan(m, then, &after);
    uint64_t more = memory_plan_sum(after.host), there = limits->host_bytes;
    more -= limits->is_allocated ? memory_plan_sum(before.host) : 0;
    return is_apart(m) && memory_plan_bound(m, &after) < memory_plan_bound(m, &before) &&
           (!there || more <= there - there / 5);
}

static bool fits(const struct memory_job *m, const struct memory_limits *limits, const struct job_layout *l)
{
    struct memory_plan p;
    memory_plan(m, l, &p);
    return memory_fits(m, limits, &p, true);
}

/* The fewest streamed blocks, from `least` on, with which the layout fits; all if it does not. */
static uint64_t fewest_streamed(const struct memory_job *m, const struct memory_limits *limits,
                                const struct job_layout *l, uint64_t least)
{
    struct job_layout then = *l;
    uint64_t most = model_blocks(m->task->model);
    while (least < most) {
        then.weights.streamed = least + (most - least) / 2;
        if (fits(m, limits, &then))
            most = then.weights.streamed;
        else
            least = then.weights.streamed + 1;
    }
    return most;
}

static void describe_blocks(const struct memory_job *m, const struct job_layout *l, char text[FALLBACK_TEXT])
{
    uint64_t all = model_blocks(m->task->model);
    if (l->weights.streamed == all)
        snprintf(text, FALLBACK_TEXT, "offloading the weights of the blocks to host memory");
    else
        snprintf(text, FALLBACK_TEXT,
                 "offloading the weights of %" PRIu64 " of %" PRIu64 " blocks to host memory",
                 l->weights.streamed, all);
}

/* As many as the plan needs.  If it fits already and memory ran out all the same, half of those that are left. */
static bool offload_blocks(const struct memory_job *m, const struct memory_limits *limits,
                           struct job_layout *l, char text[FALLBACK_TEXT])
{
    struct job_layout then = *l;
    uint64_t now = l->weights.streamed, all = model_blocks(m->task->model);
    if (now >= all || limits->blocks_pinned || limits->blocks_on_device)
        return false;
    then.weights.streamed =
        fits(m, limits, l) ? now + (all - now + 1) / 2 : fewest_streamed(m, limits, l, now + 1);
    if (!is_worth_it(m, limits, l, &then)) {
        then.weights.streamed = all;
        while (then.weights.streamed > now && !is_worth_it(m, limits, l, &then))
            then.weights.streamed--;
    }
    if (then.weights.streamed == now)
        return false;
    *l = then;
    describe_blocks(m, l, text);
    return true;
}

bool memory_relax(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                  char text[FALLBACK_TEXT])
{
    if (l->weights.streamed <= limits->streamed_least || !fits(m, limits, l))
        return false;
    uint64_t fewest = fewest_streamed(m, limits, l, limits->streamed_least);
    bool fewer = fewest < l->weights.streamed;
    l->weights.streamed = fewest;
    describe_blocks(m, l, text);
    return fewer;
}

/* How many steps in a row use the same base, on average. */
static double steps_per_base(const struct task *t)
{
    enum { LOOKED_AT = 256 };
    size_t turns = 1;
    for (uint64_t i = 1; i < LOOKED_AT; i++)
        turns += t->ops->base_of_step(t, i) != t->ops->base_of_step(t, i - 1);
    return (double)LOOKED_AT / (double)turns;
}

/* Only the base in use stays on the device, if it is used for so many steps in a row that bringing it costs little.  A sample
 * brings each base once.  `at_any_cost`: or if there is no other way left than smaller batches. */
static bool take_turns(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                       bool at_any_cost, char text[FALLBACK_TEXT])
{
    enum { STEPS_HOST = 4, STEPS_FILE = 16 };
    struct job_layout host = *l, file = *l;
    struct memory_plan before, after;
    if (l->weights.idle != MODEL_IDLE_DEVICE || limits->idle == CONFIG_PLACE_DEVICE ||
        (!memory_can_take_turns(m, false) && !memory_can_take_turns(m, true)))
        return false;
    double steps = at_any_cost ? STEPS_FILE : m->only_samples ? STEPS_HOST : steps_per_base(m->task);
    host.weights.idle = MODEL_IDLE_HOST;
    file.weights.idle = MODEL_IDLE_FILE;
    memory_plan(m, l, &before);
    memory_plan(m, &file, &after);
    if (steps >= STEPS_HOST && memory_can_take_turns(m, false) && !limits->blocks_pinned &&
        limits->idle != CONFIG_PLACE_FILE && is_worth_it(m, limits, l, &host)) {
        *l = host;
        snprintf(text, FALLBACK_TEXT, "keeping the weights of the expert that is not in use in host memory");
        return true;
    }
    if (steps < STEPS_FILE || !memory_can_take_turns(m, true) || limits->idle == CONFIG_PLACE_HOST ||
        memory_plan_bound(m, &after) >= memory_plan_bound(m, &before))
        return false;
    *l = file;
    snprintf(text, FALLBACK_TEXT,
             "dropping the weights of the expert that is not in use, and reading them again for its steps");
    return true;
}

static bool offload_optimizer(const struct memory_job *m, const struct memory_limits *limits,
                              struct job_layout *l, char text[FALLBACK_TEXT])
{
    struct job_layout then = *l;
    then.optim_on_host = true;
    if (l->optim_on_host || limits->optim_pinned || limits->optimizer == CONFIG_PLACE_DEVICE ||
        !is_worth_it(m, limits, l, &then))
        return false;
    *l = then;
    snprintf(text, FALLBACK_TEXT, "offloading the optimizer state to host memory");
    return true;
}

static bool recompute(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                      char text[FALLBACK_TEXT])
{
    (void)m, (void)limits;
    if (l->recompute)
        return false;
    l->recompute = true;
    snprintf(text, FALLBACK_TEXT, "gradient checkpointing: recomputing the blocks in the backward pass");
    return true;
}

static bool save_inputs(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                        char text[FALLBACK_TEXT])
{
    struct job_layout then = *l;
    then.inputs_on_host = true;
    if (l->inputs_on_host || limits->inputs_pinned || limits->inputs == CONFIG_PLACE_DEVICE ||
        !memory_can_save_inputs(m) || !is_worth_it(m, limits, l, &then))
        return false;
    *l = then;
    snprintf(text, FALLBACK_TEXT, "saving the inputs of the blocks in host memory");
    return true;
}

static bool halve(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                  char text[FALLBACK_TEXT])
{
    (void)limits;
    if (l->micro % 2)
        return false;
    l->micro /= 2;
    snprintf(text, FALLBACK_TEXT, "micro-batches of %" PRIu64 " sample%s, %zu per step", l->micro,
             l->micro > 1 ? "s" : "", memory_micros(m, l));
    return true;
}

/* Splitting is nearly free while micro-batches are large enough to keep the device busy. */
static bool halve_large(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                        char text[FALLBACK_TEXT])
{
    enum { ENOUGH = 4 << 20 /* positions times hidden size */, ENOUGH_CPU = 512 /* positions */ };
    uint64_t positions = l->micro / 2 * m->task->extent;
    bool enough = m->is_cpu ? positions >= ENOUGH_CPU : positions * m->task->hidden_size >= ENOUGH;
    return enough && halve(m, limits, l, text);
}

bool memory_fallback(const struct memory_job *m, const struct memory_limits *limits, struct job_layout *l,
                     char text[FALLBACK_TEXT])
{
    if (m->only_samples)
        return take_turns(m, limits, l, false, text) || offload_blocks(m, limits, l, text) ||
               take_turns(m, limits, l, true, text);
    return halve_large(m, limits, l, text) || take_turns(m, limits, l, false, text) ||
           offload_blocks(m, limits, l, text) || offload_optimizer(m, limits, l, text) ||
           recompute(m, limits, l, text) || save_inputs(m, limits, l, text) ||
           take_turns(m, limits, l, true, text) || halve(m, limits, l, text);
}

static uint64_t windows_bytes(const struct model *m, uint64_t streamed)
{
    const struct weights_blocks *b = m->bases[0].blocks;
    return weights_windows_size(b, m->nn->storage, streamed < b->pieces ? (size_t)streamed : b->pieces);
}

/* A part must fit as a whole, beside the windows through which it was streamed.  After two evictions there are no more
 * attempts. */
bool memory_restore(const struct memory_job *m, const struct job_layout *l, const struct memory_evicted *e,
                    uint64_t free_bytes, struct job_layout *out)
{
    enum { EVICTIONS_MOST = 2 };
    struct job_layout then = *l;
    struct memory_plan after, now;
    if (e->times >= EVICTIONS_MOST || (!e->optimizer && !e->blocks))
        return false;
    then.optim_on_host = l->optim_on_host && !e->optimizer;
    then.weights.streamed = e->blocks ? e->streamed : l->weights.streamed;
    memory_plan(m, l, &now);
    memory_plan(m, &then, &after);
    uint64_t need = (e->optimizer ? after.device[MEMORY_OPTIMIZER] : 0) +
                    (e->blocks ? after.device[MEMORY_WEIGHTS] - now.device[MEMORY_WEIGHTS] +
                                     windows_bytes(m->task->model, l->weights.streamed)
                               : 0);
    if (need + need / 10 > free_bytes)
        return false;
    *out = then;
    return true;
}
