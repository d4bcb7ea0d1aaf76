/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_lora_file.h"
#include "nn/param_layout.h"
#include "tensor/lora.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char a_end[] = ".lora_A.weight", b_end[] = ".lora_B.weight";

/* The module of a LoRA's parameter, and which part of it the parameter is. */
static enum lora_part module_of(const struct param *p, char module[LORA_NAME_MAX])
{
    size_t n = strlen(p->name) - strlen(a_end);
    snprintf(module, LORA_NAME_MAX, "%.*s", (int)n, p->name);
    return str_ends(p->name, a_end) ? LORA_DOWN : LORA_UP;
}

/* ---- saving ---- */

/* Values times what the dialect folds into them. */
struct folded {
    const struct wan *m;
    const struct param_getter *from; /* of each set; NULL: the weights */
    double down, up;
};

static int get_folded(void *context, const struct param *p, float *into, struct cairn_error *err)
{
    const struct folded *f = context;
    double factor = str_ends(p->name, a_end) ? f->down : f->up;
    const struct params *first = &f->m->loras[0].params;
    size_t set = p >= first->list && p < first->list + first->n ? 0 : 1;
    const struct param_getter *from = f->from ? &f->from[set] : NULL;
    if (from ? from->get(from->context, p, into, err) : weights_get(&f->m->loras[set].weights, p, into, err))
        return -1;
    for (size_t i = 0; factor != 1 && i < p->rows * p->columns; i++)
        into[i] = (float)((double)into[i] * factor);
    return 0;
}

/* What a file has. */
struct listing {
    struct param_tensors tensors;
    struct param_scalar *alphas;
    size_t n_alphas;
    struct st_meta *meta;
    size_t n_meta;
};

static void listing_release(struct listing *l)
{
    param_tensors_release(&l->tensors);
}

/* How the keys of a set are spelled. */
struct spelling {
    enum lora_dialect dialect;
    const char *expert; /* comes after "diffusion_model."; "": nothing */
    float alpha;
    bool has_alpha;
};

static const char *key_of(struct arena *a, const struct spelling *s, const char *module, enum lora_part part,
                          struct cairn_error *err)
{
    static const char first[] = "diffusion_model.";
    char key[2 * LORA_NAME_MAX];
    if (lora_name_format(module, part, s->dialect, key, sizeof(key), err))
        return NULL;
    return *s->expert ? arena_printf(a, "%s%s%s", first, s->expert, key + strlen(first))
                      : arena_strdup(a, key);
}

static int list_param(struct listing *l, const struct param *p, const struct spelling *s,
                      struct cairn_error *err)
{
    char module[LORA_NAME_MAX];
    struct param_tensor whole = param_tensor_whole(p);
    struct arena *a = &l->tensors.arena;
    enum lora_part part = module_of(p, module);
    const char *key = key_of(a, s, module, part, err);
    if (!key)
        return -1;
    param_tensors_add(&l->tensors, &whole, "%s", key);
    if (part != LORA_UP || !s->has_alpha)
        return 0;
    key = key_of(a, s, module, LORA_ALPHA, err);
    if (!key)
        return -1;
    *ARENA_PUSH(a, l->alphas, l->n_alphas) = (struct param_scalar){ key, s->alpha };
    return 0;
}

static int list_set(struct listing *l, const struct wan *m, size_t set, const struct spelling *s,
                    struct cairn_error *err)
{
    const struct params *p = &m->loras[set].params;
    for (size_t i = 0; i < p->n; i++)
        if (list_param(l, &p->list[i], s, err))
            return -1;
    return 0;
}

/* The first of two that have the same key counts. */
static void add_meta(struct listing *l, const char *key, const char *value)
{
    for (size_t i = 0; i < l->n_meta; i++)
        if (!strcmp(l->meta[i].key, key))
            return;
    *ARENA_PUSH(&l->tensors.arena, l->meta, l->n_meta) = (struct st_meta){ key, value };
}

static void list_meta(struct listing *l, const struct wan *m, const struct wan_lora_save *o)
{
    struct arena *a = &l->tensors.arena;
    for (size_t i = 0; i < o->n_meta; i++)
        add_meta(l, o->meta[i].key, o->meta[i].value);
    add_meta(l, "format", "pt");
    if (o->meta_is_all)
        return;
    add_meta(l, "modelspec.architecture", "wan2.1/lora");
    add_meta(l, "modelspec.implementation", "https://github.com/Wan-Video/Wan2.1");
    add_meta(l, "modelspec.sai_model_spec", "1.0.0");
    add_meta(l, "ss_base_model_version", "wan");
    add_meta(l, "ss_network_module", "networks.lora_wan");
    add_meta(l, "ss_network_dim", arena_printf(a, "%zu", m->lora_options.rank));
    add_meta(l, "ss_network_alpha", arena_printf(a, "%.9g", (double)m->lora_options.alpha));
}

int wan_lora_save(const struct wan *m, size_t set, const struct wan_lora_save *o, struct cairn_error *err)
{
    CLEANUP(listing_release) struct listing l = { 0 };
    const struct lora *lora = &m->loras[set];
    enum lora_dialect d = o->dialect == LORA_ANY ? LORA_COMFY : o->dialect;
    struct spelling s = {
        .dialect = d,
        .expert = "",
        .alpha = m->lora_options.alpha,
        .has_alpha = d != LORA_DIFFUSERS && !(o->no_alpha && lora->scale == 1),
    };
    struct folded folded = { .m = m, .from = o->from, .down = 1, .up = 1 };
    if (d == LORA_DIFFUSERS)
        lora_fold(d, (double)lora->scale, &folded.down, &folded.up);
    for (size_t i = 0; i < (o->joined ? m->model.n_loras : 1); i++) {
        s.expert = !o->joined ? "" : i ? "transformer_1." : "transformer_2.";
        if (list_set(&l, m, o->joined ? i : set, &s, err))
            return cairn_wrap(err, "%s", o->path);
    }
    list_meta(&l, m, o);
    struct param_getter getter = { get_folded, &folded };
    struct param_file_options options = {
        .weights = &lora->weights,
        .getter = &getter,
        .dtype = o->dtype,
        .order = ST_ORDER_REFERENCE,
        .hashes = true,
        .meta = l.meta,
        .n_meta = l.n_meta,
        .scalars = l.alphas,
        .n_scalars = l.n_alphas,
    };
    return param_file_write_with(&l.tensors, &options, o->path, err);
}

const char *wan_lora_note(const struct wan *m, size_t set, enum lora_dialect d)
{
    size_t linears = 0;
    for (int i = 0; i < WAN_MATRICES; i++)
        linears += wan_has_matrix(&m->shape, (enum wan_matrix)i);
    bool is_partial = m->loras[set].params.n < 2 * linears * m->shape.layers;
    return d == LORA_MUSUBI && is_partial
               ? "diffusers reads LoRA files of the musubi format only if they have every linear layer of the "
                 "blocks"
               : NULL;
}

/* ---- what a file is for ---- */

/* Which released models have blocks of this width. */
static const struct {
    uint64_t width;
    const char *name;
} released[] = { { 1536, "Wan 2.1 1.3B" }, { 3072, "Wan 2.2 5B" }, { 5120, "Wan 14B" } };

static void say_width(const struct lora_file *f, struct str *out)
{
    for (size_t i = 0; i < f->n_modules; i++) {
        const struct lora_module *module = &f->modules[i];
        if (!module->known || !module->rank || !strstr(module->name, "attn."))
            continue;
        str_addf(out, "; the file is for Wan of hidden size %" PRIu64, module->in);
        for (size_t k = 0; k < ARRAY_LEN(released); k++)
            if (released[k].width == module->in)
                str_addf(out, " (%s)", released[k].name);
        return;
    }
}

/* "; the file is for …", as far as it can be seen. */
static void say_purpose(const struct lora_file *f, struct str *out)
{
    static const char *const keys[] = { "ss_base_model_version", "modelspec.architecture" };
    bool is_wan = false;
    for (size_t i = 0; i < f->n_modules; i++)
        is_wan |= f->modules[i].known && str_starts(f->modules[i].name, "blocks.");
    if (is_wan) {
        say_width(f, out);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const char *value = source_meta_find(&f->source, keys[i]);
        if (value) {
            str_addf(out, "; the file is for \"%.80s\"", value);
            return;
        }
    }
    str_add(out, "; the file is for another model");
}

/* ---- loading ---- */

struct loading {
    const struct wan *m;
    const struct lora *lora;
    const struct lora_file *file;
    struct param_report *report;
};

static const struct param *find_param(const struct lora *l, const char *module, const char *end)
{
    char name[2 * LORA_NAME_MAX];
    snprintf(name, sizeof(name), "%s%s", module, end);
    return params_find(&l->params, name);
}

static int refuse(const struct loading *l, const char *what, const char *why, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    say_purpose(l->file, &text);
    return cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s %s%s", l->file->source.path, what, why,
                      text.s ? text.s : "");
}

/* A module that the set does not train: the model may lack it. */
static int refuse_module(const struct loading *l, const char *module, struct cairn_error *err)
{
    char weight[2 * LORA_NAME_MAX];
    snprintf(weight, sizeof(weight), "%s.weight", module);
    if (!params_find(&l->m->params[0], weight))
        return refuse(l, module, "is not a layer of the model", err);
    cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s is not one of lora.targets", l->file->source.path, module);
    return cairn_hint(err, "add it to lora.targets, or leave lora.targets out to train every linear layer");
}

static int check_module(const struct loading *l, const struct lora_module *module, struct cairn_error *err)
{
    const struct param *a = find_param(l->lora, module->name, a_end);
    const struct param *b = find_param(l->lora, module->name, b_end);
    for (int i = LORA_DIFF; i < LORA_PART_COUNT; i++)
        if (module->part[i])
            return cairn_fail(err, CAIRN_EFORMAT,
                              "%s: %.200s is not a matrix of a LoRA and cannot be trained",
                              l->file->source.path, module->part[i]->name);
    if (!a || !b)
        return refuse_module(l, module->name, err);
    if (module->in != a->columns || module->out != b->rows) {
        char why[160];
        snprintf(why, sizeof(why), "is %" PRIu64 " x %" PRIu64 ", but the model's is %zu x %zu", module->out,
                 module->in, b->rows, a->columns);
        return refuse(l, module->name, why, err);
    }
    if (module->rank != l->lora->rank) {
        cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s has rank %" PRIu64 ", but lora.rank is %zu",
                   l->file->source.path, module->name, module->rank, l->lora->rank);
        return cairn_hint(err, "set lora.rank = %" PRIu64, module->rank);
    }
    return 0;
}

static int load_param(const struct loading *l, const struct st_tensor *from, const struct param *p,
                      double factor, struct cairn_error *err)
{
    const struct tensor_source *s = &l->file->source;
    size_t n = p->rows * p->columns;
    enum dtype to = storage_dtype(l->lora->weights.storage);
    CLEANUP(mem_free) float *values = param_alloc(p, err);
    if (!values || source_read_as(s, from, 0, n, DTYPE_F32, values, err))
        return -1;
    for (size_t i = 0; factor != 1 && i < n; i++)
        values[i] = (float)((double)values[i] * factor);
    if (!param_layout_is_finite(values, DTYPE_F32, n))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s has non-finite values (NaN or Inf)", s->path,
                          from->name);
    for (size_t i = 0; i < n; i++)
        if ((double)fabsf(values[i]) > dtype_max(to))
            return cairn_fail(err, CAIRN_EFORMAT, "%s: the value %g of %s overflows %s", s->path,
                              (double)values[i], from->name, dtype_name(to));
    l->report->tensors++;
    return weights_put(&l->lora->weights, p, values, err);
}

/* What the file folds is taken out again as diffusers folds it, so that powers of two come back exactly. */
static int load_module(const struct loading *l, const struct lora_module *module, struct cairn_error *err)
{
    double down = 1, up = 1;
    if ((float)module->scale != l->lora->scale) {
        if (module->scale == 0 || l->lora->scale == 0)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s has alpha %g, but lora.alpha is %g",
                              l->file->source.path, module->name, module->scale * (double)module->rank,
                              (double)l->lora->scale * (double)l->lora->rank);
        lora_fold(LORA_DIFFUSERS, (double)l->lora->scale / module->scale, &down, &up);
        l->report->rescaled++;
    }
    const struct param *a = find_param(l->lora, module->name, a_end);
    const struct param *b = find_param(l->lora, module->name, b_end);
    return load_param(l, module->part[LORA_DOWN], a, 1 / down, err) ||
                   load_param(l, module->part[LORA_UP], b, 1 / up, err)
               ? -1
               : 0;
}

static bool has_module(const struct lora_file *f, const char *name)
{
    for (size_t i = 0; i < f->n_modules; i++)
        if (!strcmp(f->modules[i].name, name))
            return true;
    return false;
}

static void list_missing(const struct loading *l)
{
    for (size_t i = 0; i < l->lora->params.n; i++) {
        char module[LORA_NAME_MAX];
        if (module_of(&l->lora->params.list[i], module) == LORA_DOWN && !has_module(l->file, module))
            str_addf(&l->report->missing, "%s\n", module);
    }
}

int wan_lora_load(struct wan *m, size_t set, const char *path, struct param_report *report,
                  struct cairn_error *err)
{
    CLEANUP(lora_close) struct lora_file file = { 0 };
    struct loading l = { m, &m->loras[set], &file, report };
    enum lora_expert expert = m->model.n_loras < 2 ? LORA_EXPERT_ANY
                              : set                ? LORA_EXPERT_HIGH
                                                   : LORA_EXPERT_LOW;
    *report = (struct param_report){ 0 };
    if (lora_open_expert(&file, path, expert, err))
        return -1;
    for (size_t i = 0; i < file.n_modules; i++)
        if (check_module(&l, &file.modules[i], err))
            return -1;
    list_missing(&l);
    for (size_t i = 0; i < file.n_modules; i++)
        if (load_module(&l, &file.modules[i], err))
            return -1;
    return source_unchanged(&file.source, err);
}
