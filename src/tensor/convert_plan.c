/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/convert_plan.h"

#include <stdlib.h>
#include <string.h>

/* Scales of a row are found while the row is in memory. */
enum { LONGEST_ROW = 1 << 20 };

struct planner {
    struct convert_plan *plan;
    const struct tensor_source *src;
    const struct convert_options *o;
    struct convert_report *report;
    uint64_t counter;
    size_t matched; /* tensors that `only` names */
};

static bool to_fp8(const struct convert_options *o)
{
    return o->scaled != FP8_PLAIN && fp8_is(o->to);
}

static bool from_fp8(const struct convert_options *o)
{
    return o->scaled != FP8_PLAIN && dtype_is_float(o->to) && !fp8_is(o->to);
}

static bool is_wanted(const struct planner *p, const struct st_tensor *t)
{
    return source_name_matches(t->name, p->o->only, p->o->n_only);
}

static struct convert_step *add_step(struct planner *p, enum convert_action action,
                                     const struct st_tensor *from)
{
    struct convert_step *s = ARENA_PUSH(&p->plan->arena, p->plan->steps, p->plan->n);
    *s = (struct convert_step){ .action = action, .from = from, .counter = p->counter };
    if (from) {
        s->out = *from;
        p->counter += from->elements;
    }
    return s;
}

static void set_dtype(struct convert_step *s, enum dtype to)
{
    s->out.dtype = to;
    s->out.dtype_text = dtype_safetensors(to);
    s->out.bytes = s->out.elements * dtype_size(to);
}

static void add_cast(struct planner *p, const struct st_tensor *t)
{
    enum dtype to = p->o->to == DTYPE_OTHER ? t->dtype : p->o->to;
    bool same = to == t->dtype && !p->o->clamp && !p->o->replace_nan;
    struct convert_step *s = add_step(p, same ? CONVERT_COPY : CONVERT_CAST, t);
    set_dtype(s, to);
    if (same)
        p->report->copied++;
    else
        p->report->converted++;
    p->report->scales_ignored += to != t->dtype && fp8_is(t->dtype) && fp8_scale_of(p->src, t);
}

static void add_copy(struct planner *p, const struct st_tensor *t)
{
    add_step(p, CONVERT_COPY, t);
    p->report->copied++;
}

static int add_unscale(struct planner *p, const struct st_tensor *t, const struct st_tensor *scale,
                       struct cairn_error *err)
{
    struct convert_step *s = add_step(p, CONVERT_UNSCALE, t);
    s->scale = scale;
    set_dtype(s, p->o->to);
    p->report->unscaled++;
    p->report->converted++;
    if (!fp8_block_of(t, scale, &s->block, err))
        return 0;
    return cairn_wrap(err, "%s", p->src->path);
}

static int add_scale(struct planner *p, const struct st_tensor *t, struct cairn_error *err)
{
    uint64_t block = fp8_block_for(t, p->o->scaled);
    if (block < t->elements && block > LONGEST_ROW) {
        cairn_fail(err, CAIRN_EUSAGE, "%s: the rows of %s are too long for one scale each", p->src->path,
                   t->name);
        return cairn_hint(err, "--scaled=tensor uses one scale for the whole tensor");
    }
    struct convert_step *s = add_step(p, CONVERT_SCALE, t);
    set_dtype(s, p->o->to);
    s->block = block;
    s->scale_step = p->plan->n;
    fp8_scale_tensor(&p->plan->arena, t, block, &add_step(p, CONVERT_NOTHING, NULL)->out);
    p->report->scaled++;
    p->report->converted++;
    return 0;
}

/* Only kinds wider than fp8 get scales: codes that are there already stay what they are. */
static bool gets_scale(const struct planner *p, const struct st_tensor *t)
{
    if (!to_fp8(p->o) || !dtype_is_float(t->dtype) || fp8_is(t->dtype) || !t->elements)
        return false;
    return p->o->n_only ? fp8_scale_name(&p->plan->arena, t->name) != NULL : fp8_is_target(t);
}

/* Scales and hints go when the weight they belong to loses its codes; the marker, when all weights do. */
static bool is_spent(const struct planner *p, const struct st_tensor *t)
{
    if (!from_fp8(p->o))
        return false;
    if (!strcmp(t->name, FP8_MARKER))
        return !p->o->n_only;
    const char *name = fp8_weight_name(&p->plan->arena, t->name);
    const struct st_tensor *weight = name ? source_find(p->src, name) : NULL;
    return weight && fp8_is(weight->dtype) && is_wanted(p, weight);
}

static int add_tensor(struct planner *p, const struct st_tensor *t, struct cairn_error *err)
{
    bool wanted = is_wanted(p, t), bookkeeping = fp8_is_bookkeeping(t->name);
    p->matched += wanted;
    if ((!wanted && p->o->drop_others) || (bookkeeping && is_spent(p, t)))
        return p->report->dropped++, 0;
    if (!wanted || bookkeeping || !dtype_is_float(t->dtype))
        return add_copy(p, t), 0;
    const struct st_tensor *scale = from_fp8(p->o) && fp8_is(t->dtype) ? fp8_scale_of(p->src, t) : NULL;
    if (scale)
        return add_unscale(p, t, scale, err);
    if (gets_scale(p, t))
        return add_scale(p, t, err);
    /* With scales, what is not quantised stays as precise as it was. */
    return to_fp8(p->o) ? add_copy(p, t) : add_cast(p, t), 0;
}

static int add_marker(struct planner *p, struct cairn_error *err)
{
    if (!to_fp8(p->o) || source_find(p->src, FP8_MARKER))
        return 0;
    if (!p->report->scaled) {
        cairn_fail(err, CAIRN_EUSAGE, "%s: no tensor to scale", p->src->path);
        return cairn_hint(
            err, "name the tensors with --only GLOB; the default is matrices NAME.<number>.*.weight");
    }
    struct convert_step *s = add_step(p, CONVERT_NOTHING, NULL);
    s->out = (struct st_tensor){ .name = FP8_MARKER, .rank = 1 };
    s->out.shape = ARENA_NEW(&p->plan->arena, uint64_t, 1);
    set_dtype(s, p->o->to);
    return 0;
}

static void add_meta(struct planner *p)
{
    for (size_t i = 0; i < p->src->n_meta; i++)
        if (!from_fp8(p->o) || strcmp(p->src->meta[i].key, FP8_METADATA) != 0)
            *ARENA_PUSH(&p->plan->arena, p->plan->meta, p->plan->n_meta) = p->src->meta[i];
}

/* A new scale may have the name of a tensor that is there: a second time over a file with scales. */
static int check_names(const struct planner *p, struct cairn_error *err)
{
    for (size_t i = 0; i < p->plan->n; i++) {
        const struct convert_step *s = &p->plan->steps[i];
        if (!s->from && source_find(p->src, s->out.name))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: already has a tensor %s", p->src->path, s->out.name);
    }
    return 0;
}

int convert_plan_make(struct convert_plan *plan, const struct tensor_source *src,
                      const struct convert_options *o, struct convert_report *report, struct cairn_error *err)
{
    *plan = (struct convert_plan){ 0 };
    struct planner p = { .plan = plan, .src = src, .o = o, .report = report };
    for (size_t i = 0; i < src->n_tensors; i++)
        if (add_tensor(&p, &src->tensors[i], err))
            return -1;
    if (o->n_only && !p.matched)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: no tensor name matches", src->path);
    if (add_marker(&p, err) || check_names(&p, err))
        return -1;
    add_meta(&p);
    return 0;
}

void convert_plan_release(struct convert_plan *p)
{
    arena_release(&p->arena);
    *p = (struct convert_plan){ 0 };
}
