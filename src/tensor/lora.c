/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/lora.h"

#include "base/str.h"
#include "tensor/fp8_scaled.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor and what its name says. */
struct entry {
    const struct st_tensor *tensor;
    struct lora_name name;
};

static int by_module(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int c = strcmp(x->name.module, y->name.module);
    return c ? c : (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static int by_place(const void *a, const void *b)
{
    const struct lora_module *x = a, *y = b;
    const struct st_tensor *first[2] = { NULL, NULL };
    for (int i = 0; i < LORA_PART_COUNT; i++) {
        if (x->part[i] && (!first[0] || x->part[i] < first[0]))
            first[0] = x->part[i];
        if (y->part[i] && (!first[1] || y->part[i] < first[1]))
            first[1] = y->part[i];
    }
    return (first[0] > first[1]) - (first[0] < first[1]);
}

/* One file speaks one dialect and is made for one model. */
static int check_alike(const struct entry *e, enum lora_dialect *dialect, const struct entry *first,
                       const char *path, struct cairn_error *err)
{
    if (*dialect == LORA_ANY)
        *dialect = e->name.dialect;
    if (e->name.dialect != LORA_ANY && e->name.dialect != *dialect)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: mixes dialects: %.150s is %s, the keys before it are %s",
                          path, e->tensor->name, lora_dialect_name(e->name.dialect),
                          lora_dialect_name(*dialect));
    if (e->name.expert == first->name.expert)
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s: contains LoRAs of two models: %.120s and %.120s", path,
               first->tensor->name, e->tensor->name);
    return cairn_hint(err,
                      "extract one of them first: cairn tensor extract FILE OUT --only '*transformer_1.*'");
}

/* A tensor that PEFT keeps as a whole: a trained bias, a module to save, an embedding that was resized. */
static int read_whole(struct lora_file *l, struct entry *e, const struct cairn_error *why,
                      struct cairn_error *err)
{
    static const char *const embeddings[] = { "embed_tokens", "lm_head", "wte" };
    const struct adapter_config *c = &l->config;
    char path[LORA_NAME_MAX];
    if (!c->path || !lora_name_parse_whole(e->tensor->name, &e->name)) {
        *err = *why;
        return cairn_wrap(err, "%s", l->source.path);
    }
    lora_name_path(e->tensor->name, path);
    bool wanted =
        adapter_config_saves(c, path) || (c->bias != ADAPTER_BIAS_NONE && e->name.part == LORA_WHOLE_B);
    for (size_t i = 0; i < ARRAY_LEN(embeddings); i++)
        wanted |= str_ends(path, embeddings[i]);
    return wanted ? 0
                  : cairn_fail(err, CAIRN_EFORMAT,
                               "%s: %.200s is neither part of a LoRA nor of \"modules_to_save\" in %s",
                               l->source.path, e->tensor->name, c->path);
}

/* Keeps the tensors of one expert, where a file names experts.  diffusers calls the one for much noise
 * "transformer", as it does the only model of other files. */
static int select_expert(const char *path, enum lora_expert expert, struct entry *entries, size_t *n,
                         struct cairn_error *err)
{
    static const char *const noise[LORA_EXPERTS] = { "", "high", "low" };
    size_t count[LORA_EXPERTS] = { 0 }, kept = 0;
    for (size_t i = 0; i < *n; i++)
        count[entries[i].name.expert]++;
    if (expert == LORA_EXPERT_ANY || count[LORA_EXPERT_ANY] == *n)
        return 0;
    bool unnamed = expert == LORA_EXPERT_HIGH && !count[LORA_EXPERT_HIGH] && count[LORA_EXPERT_ANY];
    enum lora_expert wanted = unnamed ? LORA_EXPERT_ANY : expert;
    if (!count[wanted])
        return cairn_fail(err, CAIRN_EFORMAT, "%s: has no LoRA of the %s-noise expert: %.150s", path,
                          noise[expert], entries[0].tensor->name);
    for (size_t i = 0; i < *n; i++)
        if (entries[i].name.expert == wanted)
            entries[kept++] = entries[i];
    *n = kept;
    return 0;
}

/* *n gets how many of the tensors count. */
static int read_names(struct lora_file *l, enum lora_expert expert, struct entry *entries, size_t *n,
                      struct cairn_error *err)
{
    *n = l->source.n_tensors;
    for (size_t i = 0; i < *n; i++) {
        struct cairn_error why = { 0 };
        entries[i].tensor = &l->source.tensors[i];
        if (lora_name_parse(entries[i].tensor->name, &entries[i].name, &why) &&
            read_whole(l, &entries[i], &why, err))
            return -1;
    }
    if (select_expert(l->source.path, expert, entries, n, err))
        return -1;
    for (size_t i = 0; i < *n; i++)
        if (check_alike(&entries[i], &l->dialect, &entries[0], l->source.path, err))
            return -1;
    return 0;
}

static int put_part(struct lora_file *l, struct lora_module *m, const struct entry *e,
                    struct cairn_error *err)
{
    const struct st_tensor *before = m->part[e->name.part];
    if (before)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s and %.150s are the same part of %.80s",
                          l->source.path, before->name, e->tensor->name, m->name);
    if (e->name.part != LORA_ALPHA && !dtype_is_float(e->tensor->dtype))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s is %s, not floating point", l->source.path,
                          e->tensor->name, e->tensor->dtype_text);
    m->part[e->name.part] = e->tensor;
    m->embedding |= e->name.embedding;
    return 0;
}

static int group_modules(struct lora_file *l, const struct entry *entries, size_t n, struct cairn_error *err)
{
    struct arena *a = &l->source.arena;
    for (size_t i = 0; i < n; i++) {
        const struct lora_name *name = &entries[i].name;
        if (!i || strcmp(name->module, entries[i - 1].name.module))
            *ARENA_PUSH(a, l->modules, l->n_modules) = (struct lora_module){
                .name = arena_strdup(a, name->module), .known = name->known, .scale = 1
            };
        if (put_part(l, &l->modules[l->n_modules - 1], &entries[i], err))
            return -1;
    }
    if (l->n_modules > 1)
        qsort(l->modules, l->n_modules, sizeof(*l->modules), by_place);
    return 0;
}

static const struct st_tensor *any_part(const struct lora_module *m)
{
    size_t i = 0;
    while (!m->part[i])
        i++;
    return m->part[i];
}

/* A convolution's matrices are [rank, in, …] and [out, rank, 1, …]: flat, they multiply all the same. */
static int read_shapes(const struct lora_file *l, struct lora_module *m, struct cairn_error *err)
{
    const struct st_tensor *down = m->part[LORA_DOWN], *up = m->part[LORA_UP];
    if (!down || !up)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s has no matching %s matrix", l->source.path,
                          any_part(m)->name, down ? "up" : "down");
    if (down->rank < 2 || up->rank < 2 || !down->elements || !up->elements)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s and %.150s are not two matrices", l->source.path,
                          down->name, up->name);
    m->rank = down->shape[0];
    m->in = down->elements / m->rank;
    m->out = up->shape[0];
    if (up->shape[1] != m->rank || up->elements != m->out * m->rank)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.150s has rank %" PRIu64 ", %.150s has %" PRIu64,
                          l->source.path, down->name, m->rank, up->name, up->elements / m->out);
    return 0;
}

/* Some programs write alpha as an integer. */
static int read_number(const struct tensor_source *s, const struct st_tensor *t, double *out,
                       struct cairn_error *err)
{
    float f;
    int64_t wide;
    int32_t narrow;
    if (t->elements != 1)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s has %" PRIu64 " elements, not one", s->path, t->name,
                          t->elements);
    if (dtype_is_float(t->dtype)) {
        int r = source_read_as(s, t, 0, 1, DTYPE_F32, &f, err);
        *out = r ? 0 : (double)f;
        return r;
    }
    if (t->dtype == DTYPE_I64) {
        int r = source_read(s, t, 0, 1, &wide, err);
        *out = r ? 0 : (double)wide;
        return r;
    }
    if (t->dtype == DTYPE_I32) {
        int r = source_read(s, t, 0, 1, &narrow, err);
        *out = r ? 0 : (double)narrow;
        return r;
    }
    return cairn_fail(err, CAIRN_EFORMAT, "%s: %s is %s, not a number", s->path, t->name, t->dtype_text);
}

/* What the configuration says of a module, which must agree with the matrices and with an alpha beside
 * them. */
static int read_config_scale(struct lora_file *l, struct lora_module *m, const double *alpha,
                             struct cairn_error *err)
{
    const struct adapter_config *c = &l->config;
    const struct st_tensor *down = m->part[LORA_DOWN];
    char path[LORA_NAME_MAX];
    lora_name_path(down->name + (str_starts(down->name, c->prefix) ? strlen(c->prefix) : 0), path);
    uint64_t rank = adapter_config_rank(c, path);
    double said = adapter_config_alpha(c, path);
    if (rank && rank != m->rank)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: \"r\" is %" PRIu64 " for %.150s, whose matrices in %s have rank %" PRIu64,
                          c->path, rank, path, l->source.path, m->rank);
    bool silent = !c->alpha_is_said && said == c->alpha; /* and no pattern says it */
    if (alpha && silent)
        said = *alpha;
    l->basis.alpha_default |= silent && !alpha;
    if (alpha && *alpha != said)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: \"lora_alpha\" is %g for %.150s, but %.150s in %s is %g",
                          c->path, said, path, m->part[LORA_ALPHA]->name, l->source.path, *alpha);
    m->scale = adapter_config_scale(c, said, m->rank);
    return 0;
}

static int read_scale(struct lora_file *l, struct lora_module *m, struct cairn_error *err)
{
    const struct st_tensor *part = m->part[LORA_ALPHA];
    double alpha = (double)m->rank;
    if (part && read_number(&l->source, part, &alpha, err))
        return -1;
    if (!isfinite(alpha))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s is not a finite number", l->source.path, part->name);
    if (l->config.path)
        return read_config_scale(l, m, part ? &alpha : NULL, err);
    l->basis.alpha_guessed += !part;
    m->scale = alpha / (double)m->rank;
    return 0;
}

static int read_module(struct lora_file *l, struct lora_module *m, struct cairn_error *err)
{
    const struct st_tensor *bias = m->part[LORA_UP_BIAS];
    bool matrices = m->part[LORA_DOWN] || m->part[LORA_UP] || m->part[LORA_ALPHA] || bias;
    if (matrices && (read_shapes(l, m, err) || read_scale(l, m, err)))
        return -1;
    if (bias && (bias->elements != m->out || m->part[LORA_DIFF_B]))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %.200s does not fit the other parts of %.150s",
                          l->source.path, bias->name, m->name);
    return 0;
}

static int read_modules(struct lora_file *l, enum lora_expert expert, struct cairn_error *err)
{
    size_t n;
    if (!l->source.n_tensors)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: contains no tensors", l->source.path);
    CLEANUP(mem_free) struct entry *entries = calloc(l->source.n_tensors, sizeof(*entries));
    if (!entries)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu names", l->source.path,
                          l->source.n_tensors);
    if (read_names(l, expert, entries, &n, err))
        return -1;
    qsort(entries, n, sizeof(*entries), by_module);
    if (group_modules(l, entries, n, err))
        return -1;
    for (size_t i = 0; i < l->n_modules; i++)
        if (read_module(l, &l->modules[i], err))
            return -1;
    return 0;
}

/* Are these the keys of another program, whose strength PEFT's configuration does not know? */
static bool is_foreign(const struct tensor_source *s)
{
    struct lora_name name;
    struct cairn_error ignored;
    return s->n_tensors && !lora_name_parse(s->tensors[0].name, &name, &ignored) &&
           name.dialect == LORA_MUSUBI;
}

/* What diffusers keeps in the file itself is about the models that its keys begin with. */
static int read_metadata(struct lora_file *l, const char *text, struct cairn_error *err)
{
    const char *first = l->source.n_tensors ? l->source.tensors[0].name : "", *dot = strchr(first, '.');
    CLEANUP(str_release) struct str prefix = { 0 }, name = { 0 };
    str_addn(&prefix, first, dot ? (size_t)(dot + 1 - first) : 0);
    str_addf(&name, "%s: %s", l->source.path, ADAPTER_METADATA);
    return adapter_config_parse(&l->config, name.s, text, prefix.s ? prefix.s : "", err);
}

static int read_config(struct lora_file *l, const char *path, struct cairn_error *err)
{
    const char *inside = source_meta_find(&l->source, ADAPTER_METADATA);
    l->basis.config_ignored = path && is_foreign(&l->source);
    if (is_foreign(&l->source))
        return 0;
    if ((inside && read_metadata(l, inside, err)) ||
        (path && !l->config.path && adapter_config_read(&l->config, path, err)))
        return -1;
    if (!l->config.path)
        return 0;
    snprintf(l->basis.config, sizeof(l->basis.config), "%s", l->config.path);
    snprintf(l->basis.unknown_keys, sizeof(l->basis.unknown_keys), "%s",
             l->config.unknown ? l->config.unknown : "");
    return 0;
}

int lora_open_expert(struct lora_file *l, const char *path, enum lora_expert expert, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    static const char *const own[] = {
        [LORA_EXPERT_LOW] = "lora_low_noise.safetensors", [LORA_EXPERT_HIGH] = "lora_high_noise.safetensors"
    };
    const char *weights, *config;
    *l = (struct lora_file){ 0 };
    if (adapter_find(&a, path, expert == LORA_EXPERT_ANY ? NULL : own[expert], &weights, &config, err) ||
        source_open(&l->source, weights, err))
        return -1;
    if (read_config(l, config, err) || read_modules(l, expert, err)) {
        lora_close(l);
        return -1;
    }
    return 0;
}

int lora_open(struct lora_file *l, const char *path, struct cairn_error *err)
{
    return lora_open_expert(l, path, LORA_EXPERT_ANY, err);
}

void lora_close(struct lora_file *l)
{
    source_close(&l->source);
    adapter_config_release(&l->config);
    *l = (struct lora_file){ 0 };
}

int lora_read_strength(const char *path, uint64_t *rank, double *alpha, struct cairn_error *err)
{
    CLEANUP(lora_close) struct lora_file l = { 0 };
    struct cairn_error why = { 0 };
    if (lora_open(&l, path, &why) && lora_open_expert(&l, path, LORA_EXPERT_LOW, err)) {
        *err = why;
        return -1;
    }
    const struct lora_module *first = NULL;
    for (size_t i = 0; i < l.n_modules; i++) {
        const struct lora_module *m = &l.modules[i];
        if (!m->rank)
            continue;
        if (!first) {
            first = m;
            *rank = m->rank;
            *alpha = m->scale * (double)m->rank;
        }
        if (m->rank != *rank)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: %.100s has rank %" PRIu64 ", but %.100s has %" PRIu64,
                              l.source.path, m->name, m->rank, first->name, *rank);
        if (m->scale != first->scale)
            *alpha = 0;
    }
    return first ? 0 : cairn_fail(err, CAIRN_EFORMAT, "%s: has no matrices of a LoRA", l.source.path);
}

/* An infinity was there before. */
static double largest_finite(const float *v, size_t n)
{
    float most = fp8_absmax(v, n);
    if (!isinf(most))
        return (double)most;
    most = 0;
    for (size_t i = 0; i < n; i++)
        most = isfinite(v[i]) && fabsf(v[i]) > most ? fabsf(v[i]) : most;
    return (double)most;
}

int lora_check_fits(const struct st_tensor *t, const float *v, size_t n, enum dtype to,
                    struct cairn_error *err)
{
    double most = largest_finite(v, n);
    if (most <= dtype_max(to))
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s: the value %g overflows %s", t->name, most, dtype_name(to));
    return cairn_hint(err, "use --dtype bf16 or f32");
}
