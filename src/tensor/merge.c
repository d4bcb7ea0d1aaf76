/* SPDX-License-Identifier: Apache-2.0
 * Merging: who meets whom, what the new file holds, then tensor by tensor. */
#include "tensor/merge.h"

#include "base/progress.h"
#include "base/str.h"
#include "tensor/fp8_scaled.h"
#include "tensor/merge_tensor.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A module of the LoRA and what it was found to be in the base. */
struct pair {
    const struct lora_module *module;
    const struct st_tensor *weight, *bias;
};

/* The last part of a weight's name, and how the weights of that name lie. */
struct leaf {
    const char *name;
    size_t n;
    long lies;
};

struct plan {
    struct arena arena;
    const struct tensor_source *base;
    const struct lora_file *lora;
    const struct merge_options *o;
    struct pair *pairs; /* by name */
    size_t n_pairs;
    const struct pair **pair_of; /* by the base's tensors; NULL: not touched */
    struct merge_job *jobs;
    size_t n_jobs;
    struct st_tensor *tensors; /* of the new file */
    size_t n_tensors;
    struct st_meta *meta;
    size_t n_meta;
    struct leaf *leaves; /* by name */
    size_t n_leaves;
    long lies;    /* of all weights of the base: above 0 most are [in, out], below 0 [out, in] */
    bool unscale; /* fp8 weights lose their scales on the way to a wider dtype */
};

static void plan_release(struct plan *p)
{
    arena_release(&p->arena);
}

static int by_name(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return lora_module_compare(x->module->name, y->module->name);
}

static struct pair *find_pair(struct plan *p, const char *name)
{
    struct lora_module wanted = { .name = name };
    struct pair key = { .module = &wanted };
    return bsearch(&key, p->pairs, p->n_pairs, sizeof(*p->pairs), by_name);
}

static bool changes_weight(const struct lora_module *m)
{
    return m->part[LORA_DOWN] || m->part[LORA_DIFF] || m->part[LORA_WHOLE];
}

static bool changes_bias(const struct lora_module *m)
{
    return m->part[LORA_DIFF_B] || m->part[LORA_UP_BIAS] || m->part[LORA_WHOLE_B];
}

static int pair_tensor(struct plan *p, size_t i, struct cairn_error *err)
{
    const struct st_tensor *t = &p->base->tensors[i];
    char name[LORA_NAME_MAX];
    bool is_bias;
    struct pair *found = lora_base_name(t->name, name, &is_bias) ? find_pair(p, name) : NULL;
    if (!found || !(is_bias ? changes_bias(found->module) : changes_weight(found->module)))
        return 0;
    const struct st_tensor **place = is_bias ? &found->bias : &found->weight;
    if (*place)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s and %.150s are both %s", p->base->path,
                          (*place)->name, t->name, found->module->name);
    *place = t;
    p->pair_of[i] = found;
    return 0;
}

static int check_all_found(const struct plan *p, struct cairn_error *err)
{
    CLEANUP(str_release) struct str names = { 0 };
    size_t missing = 0;
    for (size_t i = 0; i < p->lora->n_modules; i++) {
        const struct lora_module *m = &p->lora->modules[i];
        const struct pair *found = find_pair((struct plan *)p, m->name);
        bool lacks_weight = changes_weight(m) && !found->weight;
        if (!lacks_weight && (!changes_bias(m) || found->bias))
            continue;
        if (missing++ < 3)
            str_addf(&names, "%s%s%s", names.len ? ", " : "", m->name, lacks_weight ? "" : " (bias)");
    }
    if (!missing)
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s has %zu of %zu modules that %s lacks: %s%s", p->lora->source.path,
               missing, p->lora->n_modules, p->base->path, names.s, missing > 3 ? ", ..." : "");
    return cairn_hint(err, "check that the LoRA was trained for this model");
}

static int find_pairs(struct plan *p, struct cairn_error *err)
{
    p->n_pairs = p->lora->n_modules;
    p->pairs = ARENA_NEW(&p->arena, struct pair, p->n_pairs + 1);
    p->pair_of = ARENA_NEW(&p->arena, const struct pair *, p->base->n_tensors + 1);
    for (size_t i = 0; i < p->n_pairs; i++)
        p->pairs[i].module = &p->lora->modules[i];
    qsort(p->pairs, p->n_pairs, sizeof(*p->pairs), by_name);
    for (size_t i = 1; i < p->n_pairs; i++)
        if (!by_name(&p->pairs[i - 1], &p->pairs[i]))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s and %.150s are ambiguous", p->lora->source.path,
                              p->pairs[i - 1].module->name, p->pairs[i].module->name);
    for (size_t i = 0; i < p->base->n_tensors; i++)
        if (pair_tensor(p, i, err))
            return -1;
    return check_all_found(p, err);
}

static int check_diff(const struct plan *p, const struct st_tensor *t, const struct st_tensor *diff,
                      struct cairn_error *err)
{
    if (!diff || diff->elements == t->elements)
        return 0;
    return cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s has %" PRIu64 " elements, %.150s has %" PRIu64,
                      p->lora->source.path, diff->name, diff->elements, t->name, t->elements);
}

/* ---- how the base keeps its weights ---- */

static uint64_t rows_of(const struct st_tensor *t)
{
    return t->rank ? t->shape[0] : 1;
}

static uint64_t cols_of(const struct st_tensor *t)
{
    return rows_of(t) ? t->elements / rows_of(t) : 0;
}

/* +1: [in, out], -1: [out, in], 0: not to be seen.  in and out are 0 where they are not known. */
static signed char lies_as(const struct st_tensor *t, uint64_t in, uint64_t out)
{
    if (t->rank != 2 || t->shape[0] == t->shape[1])
        return 0;
    if (t->shape[1] == out && (!in || t->shape[0] == in))
        return 1;
    return t->shape[0] == out && (!in || t->shape[1] == in) ? -1 : 0;
}

/* A bias is as long as the output. */
static signed char lies_by_bias(const struct tensor_source *base, const struct st_tensor *t)
{
    char name[LORA_NAME_MAX];
    size_t n = strlen(t->name) - strlen("weight");
    if (!str_ends(t->name, ".weight") || n + sizeof("bias") > sizeof(name))
        return 0;
    memcpy(name, t->name, n);
    strcpy(name + n, "bias");
    const struct st_tensor *bias = source_find(base, name);
    return bias && bias->rank == 1 ? lies_as(t, 0, bias->elements) : 0;
}

/* "c_proj" of "transformer.h.0.attn.c_proj.weight"; a number is no name. */
static struct leaf leaf_of(const char *name)
{
    const char *end = strrchr(name, '.'), *at = end;
    while (at && at > name && at[-1] != '.')
        at--;
    return (struct leaf){ at, at && (*at < '0' || *at > '9') ? (size_t)(end - at) : 0, 0 };
}

static int by_leaf(const void *a, const void *b)
{
    const struct leaf *x = a, *y = b;
    int c = memcmp(x->name, y->name, x->n < y->n ? x->n : y->n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

static signed char lies_of(const struct plan *p, size_t i)
{
    const struct st_tensor *t = &p->base->tensors[i];
    const struct lora_module *m = p->pair_of[i] ? p->pair_of[i]->module : NULL;
    bool matrices = m && m->part[LORA_DOWN] && !m->embedding && p->pair_of[i]->weight == t;
    signed char by_module = matrices ? lies_as(t, m->in, m->out) : 0;
    return by_module ? by_module : lies_by_bias(p->base, t);
}

static void look_at_base(struct plan *p)
{
    struct leaf *all = NULL;
    size_t n = 0;
    for (size_t i = 0; i < p->base->n_tensors; i++) {
        struct leaf leaf = leaf_of(p->base->tensors[i].name);
        leaf.lies = lies_of(p, i);
        p->lies += leaf.lies;
        if (leaf.n && leaf.lies)
            *ARENA_PUSH(&p->arena, all, n) = leaf;
    }
    if (n)
        qsort(all, n, sizeof(*all), by_leaf);
    for (size_t i = 0; i < n; i++) {
        if (p->n_leaves && !by_leaf(&p->leaves[p->n_leaves - 1], &all[i]))
            p->leaves[p->n_leaves - 1].lies += all[i].lies;
        else
            *ARENA_PUSH(&p->arena, p->leaves, p->n_leaves) = all[i];
    }
}

static bool judge_square(const struct plan *p, const struct st_tensor *t, struct merge_report *report)
{
    enum adapter_layout said = p->lora->config.layout;
    struct leaf leaf = leaf_of(t->name);
    const struct leaf *twins =
        leaf.n && p->n_leaves ? bsearch(&leaf, p->leaves, p->n_leaves, sizeof(leaf), by_leaf) : NULL;
    if (twins && twins->lies)
        return twins->lies > 0;
    if (said != ADAPTER_LAYOUT_UNKNOWN)
        return said == ADAPTER_LAYOUT_IN_OUT;
    report->orientation_guessed += p->lies >= 0;
    report->guessed_transposed = p->lies > 0;
    return p->lies > 0;
}

/* Is the weight [in, out]? */
static bool is_transposed(const struct plan *p, const struct st_tensor *t, const struct lora_module *m,
                          struct merge_report *report)
{
    enum adapter_layout said = p->lora->config.layout;
    if (m->embedding || m->known) /* Wan has no Conv1D */
        return m->embedding;
    bool square = t->rank == 2 && t->shape[0] == t->shape[1];
    bool turned = square ? judge_square(p, t, report) : lies_as(t, m->in, m->out) > 0;
    report->orientation_against +=
        said != ADAPTER_LAYOUT_UNKNOWN && t->rank == 2 && turned != (said == ADAPTER_LAYOUT_IN_OUT);
    report->transposed += turned;
    return turned;
}

/* ---- what happens to each tensor ---- */

static bool same_shape(const struct st_tensor *a, const struct st_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(*a->shape));
}

static int check_whole(const struct plan *p, const struct st_tensor *t, const struct st_tensor *whole,
                       struct cairn_error *err)
{
    if (!whole || same_shape(t, whole))
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s has a different shape than %.150s in %s", p->lora->source.path,
               whole->name, t->name, p->base->path);
    return cairn_hint(err,
                      "if the base was resized before training, save the resized base and merge into that");
}

static int check_kind(const struct plan *p, const struct st_tensor *t, struct cairn_error *err)
{
    return dtype_is_float(t->dtype) ? 0
                                    : cairn_fail(err, CAIRN_EFORMAT, "%s: %s is %s, not floating point",
                                                 p->base->path, t->name, t->dtype_text);
}

static int check_shape(const struct st_tensor *t, const struct lora_module *m, bool transposed,
                       struct cairn_error *err)
{
    uint64_t rows = rows_of(t), cols = cols_of(t);
    if (!m->part[LORA_DOWN] ||
        (transposed ? rows == m->in && cols == m->out : rows == m->out && cols == m->in))
        return 0;
    return cairn_fail(err, CAIRN_EFORMAT,
                      "%.150s is %" PRIu64 " x %" PRIu64 " in the LoRA, %" PRIu64 " x %" PRIu64
                      " in the base",
                      m->name, m->out, m->in, rows, cols);
}

static int plan_bias(struct plan *p, struct merge_job *j, const struct lora_module *m,
                     struct cairn_error *err)
{
    j->diff = m->part[LORA_UP_BIAS] ? m->part[LORA_UP_BIAS] : m->part[LORA_DIFF_B];
    j->diff_scale = m->part[LORA_UP_BIAS] ? m->scale : 1;
    j->whole = m->part[LORA_WHOLE_B];
    return check_kind(p, j->from, err) || check_diff(p, j->from, j->diff, err) ||
                   check_whole(p, j->from, j->whole, err)
               ? -1
               : 0;
}

static int plan_change(struct plan *p, struct merge_job *j, const struct pair *pair,
                       struct merge_report *report, struct cairn_error *err)
{
    const struct lora_module *m = pair->module;
    if (pair->bias == j->from) {
        if (plan_bias(p, j, m, err))
            return -1;
    } else {
        j->module = m->part[LORA_DOWN] ? m : NULL;
        j->transposed = j->module && is_transposed(p, j->from, m, report);
        j->diff = m->part[LORA_DIFF];
        j->diff_scale = 1;
        j->whole = m->part[LORA_WHOLE];
        if (check_kind(p, j->from, err) || check_shape(j->from, m, j->transposed, err) ||
            check_diff(p, j->from, j->diff, err) || check_whole(p, j->from, j->whole, err))
            return -1;
    }
    report->replaced += j->whole != NULL;
    return 0;
}

static void add_output(struct plan *p, struct merge_job *j)
{
    struct st_tensor *t = ARENA_PUSH(&p->arena, p->tensors, p->n_tensors);
    *t = *j->from;
    if (j->dtype != t->dtype) {
        t->dtype = j->dtype;
        t->dtype_text = dtype_safetensors(t->dtype);
        t->bytes = t->elements * dtype_size(t->dtype);
    }
    j->out = p->n_tensors - 1;
}

static int plan_tensor(struct plan *p, size_t i, struct merge_report *report, struct cairn_error *err)
{
    const struct st_tensor *t = &p->base->tensors[i];
    bool bookkeeping = fp8_is_bookkeeping(t->name);
    if (p->unscale && bookkeeping)
        return 0;
    struct merge_job *j = ARENA_PUSH(&p->arena, p->jobs, p->n_jobs);
    j->from = t;
    j->dtype =
        p->o->dtype != DTYPE_OTHER && dtype_is_float(t->dtype) && !bookkeeping ? p->o->dtype : t->dtype;
    j->scale = fp8_is(t->dtype) ? fp8_scale_of(p->base, t) : NULL;
    if (p->pair_of[i] && plan_change(p, j, p->pair_of[i], report, err))
        return -1;
    j->keep_scale = j->scale && !p->unscale && p->pair_of[i];
    report->changed += p->pair_of[i] != NULL;
    report->copied += p->pair_of[i] == NULL;
    add_output(p, j);
    return 0;
}

/* A weight that keeps its scales writes them itself; the scales' own job would write the old ones. */
static void hand_over_scales(struct plan *p)
{
    size_t *job_of = ARENA_NEW(&p->arena, size_t, p->base->n_tensors + 1);
    for (size_t i = 0; i < p->n_jobs; i++)
        job_of[p->jobs[i].from - p->base->tensors] = i;
    for (size_t i = 0; i < p->n_jobs; i++) {
        if (!p->jobs[i].keep_scale)
            continue;
        struct merge_job *scales = &p->jobs[job_of[p->jobs[i].scale - p->base->tensors]];
        p->jobs[i].scale_out = scales->out;
        scales->written_elsewhere = true;
    }
}

static int check_scaled(struct plan *p, struct cairn_error *err)
{
    bool scaled = false;
    for (size_t i = 0; i < p->base->n_tensors && !scaled; i++)
        scaled = fp8_is(p->base->tensors[i].dtype) && fp8_scale_of(p->base, &p->base->tensors[i]);
    p->unscale = scaled && p->o->dtype != DTYPE_OTHER;
    if (!p->unscale || !fp8_is(p->o->dtype))
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s: cannot convert fp8 weights with scales to plain %s", p->base->path,
               dtype_name(p->o->dtype));
    return cairn_hint(err, "without --dtype they stay fp8 with scales");
}

static void plan_meta(struct plan *p)
{
    for (size_t i = 0; i < p->base->n_meta; i++) {
        const struct st_meta *m = &p->base->meta[i];
        if (!lora_meta_is_hash(m->key) && !(p->unscale && !strcmp(m->key, FP8_METADATA)))
            *ARENA_PUSH(&p->arena, p->meta, p->n_meta) = *m;
    }
}

static int make_plan(struct plan *p, struct merge_report *report, struct cairn_error *err)
{
    if (find_pairs(p, err) || check_scaled(p, err))
        return -1;
    look_at_base(p);
    for (size_t i = 0; i < p->base->n_tensors; i++)
        if (plan_tensor(p, i, report, err))
            return -1;
    hand_over_scales(p);
    plan_meta(p);
    return 0;
}

static int run_jobs(const struct plan *p, struct merge_run *run, struct cairn_error *err)
{
    for (size_t i = 0; i < p->n_jobs; i++)
        if (!p->jobs[i].written_elsewhere && merge_tensor(run, &p->jobs[i], err))
            return -1;
    return source_unchanged(p->base, err) || source_unchanged(&p->lora->source, err) ? -1 : 0;
}

static int write_file(const struct plan *p, const char *out, struct merge_report *report,
                      struct cairn_error *err)
{
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    struct merge_run run = { .base = p->base, .lora = &p->lora->source, .options = p->o, .writer = &w };
    const struct st_contents contents = { .tensors = p->tensors,
                                          .n = p->n_tensors,
                                          .meta = p->meta,
                                          .n_meta = p->n_meta,
                                          .order = ST_ORDER_ALIGNED };
    if (st_writer_open(&w, out, &contents, p->o->replace, err))
        return -1;
    if (p->o->progress)
        p->o->progress->total = w.size - w.data_at;
    merge_run_init(&run, p->jobs, p->n_jobs);
    int r = run_jobs(p, &run, err);
    block_pool_close(&run.blocks);
    if (r || st_writer_commit(&w, err))
        return -1;
    report->rescaled = run.rescaled;
    report->nan_made = run.nan_made;
    report->inf_made = run.inf_made;
    report->bytes = w.size;
    return 0;
}

int merge_lora(const struct tensor_source *base, const struct lora_file *lora, const char *out,
               const struct merge_options *o, struct merge_report *report, struct cairn_error *err)
{
    CLEANUP(plan_release) struct plan p = { .base = base, .lora = lora, .o = o };
    *report =
        (struct merge_report){ .dialect = lora->dialect, .basis = lora->basis, .modules = lora->n_modules };
    return make_plan(&p, report, err) || write_file(&p, out, report, err) ? -1 : 0;
}
