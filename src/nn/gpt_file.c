/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/gpt_file.h"
#include "nn/gpt_config.h"
#include "tensor/adapter_config.h"
#include "os/path.h"
#include "os/info.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

enum layout {
    LAYOUT_GPT2,  /* Hugging Face's: the matrices of blocks are [in, out] */
    LAYOUT_NANO,  /* the same names, [out, in] */
    LAYOUT_LLAMA, /* q, k and v apart */
};
struct naming {
    enum layout layout;
    const char *outer,
        *inner; /* what stands before "lm_head", and before all other names: "", "transformer." */
};

/* What Llama calls what lies outside the matrices of a block. Learned positions and biases are only in our
 * mixtures. */
static const char llama_tokens[] = "embed_tokens", llama_positions[] = "embed_positions",
                  llama_norm[] = "norm";
static const char *const llama_norms[] = { "input_layernorm", "post_attention_layernorm" };

/* One parameter under the name before + name + end. */
static void add_whole(struct param_tensors *t, const struct gpt *m, size_t param, const char *before,
                      const char *name, const char *end)
{
    struct param_tensor whole = param_tensor_whole(&m->params.list[param]);
    param_tensors_add(t, &whole, "%s%s%s", before, name, end);
}

static void add_norm(struct param_tensors *t, const struct gpt *m, const struct gpt_norm *n,
                     const char *before, const char *name)
{
    add_whole(t, m, n->w, before, name, ".weight");
    if (m->shape.bias && m->shape.norm == NN_NORM_LAYER)
        add_whole(t, m, n->b, before, name, ".bias");
}

/* The parts of one parameter of a linear: its matrix, or its bias. */
static void add_parts(struct param_tensors *t, const struct param *p, const struct gpt_part parts[GPT_PARTS],
                      const char *before, const char *end)
{
    for (int i = 0; i < GPT_PARTS && parts[i].module; i++) {
        struct param_tensor part = { .param = p, .first = parts[i].first, .rows = parts[i].rows };
        param_tensors_add(t, &part, "%s%s%s", before, parts[i].module, end);
    }
}

static void list_llama_block(struct param_tensors *t, const struct gpt *m, const struct gpt_block *b,
                             const char *before)
{
    for (int i = 0; i < GPT_MATRICES; i++) {
        const struct gpt_linear *l = &b->linear[i];
        struct gpt_part parts[GPT_PARTS];
        if (i == GPT_QKV || i == GPT_FC)
            add_norm(t, m, &b->norm[i == GPT_FC], before, llama_norms[i == GPT_FC]);
        gpt_parts(&m->shape, (enum gpt_matrix)i, parts);
        add_parts(t, &m->params.list[l->w], parts, before, ".weight");
        if (m->shape.bias)
            add_parts(t, &m->params.list[l->b], parts, before, ".bias");
    }
}

static void list_llama(struct param_tensors *t, const struct gpt *m, const struct naming *n)
{
    add_whole(t, m, m->wte, n->inner, llama_tokens, ".weight");
    if (!m->shape.rope)
        add_whole(t, m, m->wpe, n->inner, llama_positions, ".weight");
    for (size_t i = 0; i < m->shape.layers; i++) {
        CLEANUP(str_release) struct str before = { 0 };
        str_addf(&before, "%slayers.%zu.", n->inner, i);
        list_llama_block(t, m, &m->blocks[i], before.s);
    }
    add_norm(t, m, &m->norm, n->inner, llama_norm);
    if (!m->shape.tied)
        add_whole(t, m, m->head, n->outer, "lm_head", ".weight");
}

/* GPT-2's names are our own. */
static void list_gpt2(struct param_tensors *t, const struct gpt *m, const struct naming *n)
{
    for (size_t i = 0; i < m->params.n; i++) {
        const struct param *p = &m->params.list[i];
        struct param_tensor whole = param_tensor_whole(p);
        bool in_block = str_starts(p->name, "h."), head = !m->shape.tied && i == m->head;
        whole.transposed = n->layout == LAYOUT_GPT2 && in_block && p->kind != PARAM_VECTOR;
        param_tensors_add(t, &whole, "%s%s", head ? n->outer : n->inner, p->name);
    }
}

static void list_tensors(struct param_tensors *t, const struct gpt *m, const struct naming *n)
{
    if (n->layout == LAYOUT_LLAMA)
        list_llama(t, m, n);
    else
        list_gpt2(t, m, n);
}

/* ---- the names of a file ---- */

/* "transformer." of "transformer.wte.weight"; NULL: it does not end so. */
static const char *before_end(struct arena *a, const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    if (!str_ends(name, end) || (n > k && name[n - k - 1] != '.'))
        return NULL;
    return arena_strndup(a, name, n - k);
}

static const struct st_tensor *find(const struct tensor_source *s, struct arena *a, const char *before,
                                    const char *name)
{
    return source_find(s, arena_printf(a, "%s%s", before, name));
}

/* A matrix of q, k and v has more rows than columns. */
static bool is_transposed(const struct tensor_source *s, struct arena *a, const char *inner)
{
    const struct st_tensor *qkv = find(s, a, inner, "h.0.attn.c_attn.weight");
    return qkv && qkv->rank == 2 && qkv->shape[0] < qkv->shape[1];
}

/* A torch file may hold more than the model: its names begin after the longest that all have. */
static const char *outer_of(struct arena *a, const char *inner)
{
    static const char *const own[] = { "transformer.", "model." };
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (str_ends(inner, own[i]))
            return arena_strndup(a, inner, strlen(inner) - strlen(own[i]));
    return inner;
}

static int find_naming(const struct tensor_source *s, struct arena *a, struct naming *out,
                       struct cairn_error *err)
{
    const char *first = NULL;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name = s->tensors[i].name;
        const char *gpt2 = before_end(a, name, "wte.weight");
        const char *llama = before_end(a, name, "embed_tokens.weight");
        if (!gpt2 && !llama)
            continue;
        if (first)
            return cairn_fail(err, CAIRN_EFORMAT, "%s contains two models: %s and %s", s->path, first, name);
        first = name;
        out->inner = gpt2 ? gpt2 : llama;
        out->layout = llama ? LAYOUT_LLAMA : is_transposed(s, a, gpt2) ? LAYOUT_GPT2 : LAYOUT_NANO;
    }
    if (!first)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s is not a GPT: it has neither wte.weight nor embed_tokens.weight", s->path);
    out->outer = outer_of(a, out->inner);
    return 0;
}

/* ---- where things are ---- */

struct place {
    const char *weights, *config; /* config is NULL where there is none */
};

static int look(const char *path, bool *there, bool *folder, struct cairn_error *err)
{
    struct os_info info;
    *there = *folder = false;
    if (os_info(path, &info))
        return errno == ENOENT ? 0 : cairn_fail_errno(err, "list its tensors: %s", path);
    *there = true;
    *folder = info.kind == OS_KIND_FOLDER;
    return 0;
}

/* The first of these names that is in the folder; *out stays as it is if none is. */
static int find_in(struct arena *a, const char *folder, const char *const *names, size_t n, const char **out,
                   struct cairn_error *err)
{
    for (size_t i = 0; i < n; i++) {
        bool there, is_folder;
        const char *path = arena_printf(a, "%s/%s", folder, names[i]);
        if (look(path, &there, &is_folder, err))
            return -1;
        if (there) {
            *out = path;
            return 0;
        }
    }
    return 0;
}

static const char *const model_names[] = { "model.safetensors", "model.safetensors.index.json",
                                           "pytorch_model.bin" };

/* The files of a model: a folder, or a file of its tensors. */
static int find_model(struct arena *a, const char *path, struct place *out, struct cairn_error *err)
{
    static const char *const config = "config.json";
    bool there, folder;
    *out = (struct place){ 0 };
    if (look(path, &there, &folder, err))
        return -1;
    if (!there)
        return cairn_fail(err, CAIRN_EIO, "%s does not exist", path);
    const char *name = path_name(path);
    const char *dir = folder ? path : name == path ? "." : arena_strndup(a, path, (size_t)(name - path));
    if (folder && find_in(a, dir, model_names, ARRAY_LEN(model_names), &out->weights, err))
        return -1;
    if (!folder)
        out->weights = arena_strdup(a, path);
    if (!out->weights)
        return cairn_fail(err, CAIRN_EFORMAT, "%s has no %s", path, model_names[0]);
    return find_in(a, dir, &config, 1, &out->config, err);
}

/* ---- a shape from tensors ---- */

/* Does a tensor have as many dimensions, each of a size that can be of a model? */
static bool has_rank(const struct st_tensor *t, int rank)
{
    if (!t || t->rank != rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (!t->shape[i] || t->shape[i] > 1 << 24)
            return false;
    return true;
}

/* Are these the same values?  nanoGPT stores what is tied under both names. */
static int same_numbers(const struct tensor_source *s, const struct st_tensor *x, const struct st_tensor *y,
                        bool *same, struct cairn_error *err)
{
    enum { STEP = 1 << 20 };
    *same = x->dtype == y->dtype && x->bytes == y->bytes;
    CLEANUP(mem_free) char *a = malloc(STEP);
    CLEANUP(mem_free) char *b = malloc(STEP);
    if (!a || !b)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (uint64_t at = 0; *same && at < x->bytes; at += STEP) {
        uint64_t n = x->bytes - at < STEP ? x->bytes - at : STEP;
        if (source_read_bytes(s, x, at, n, a, err) || source_read_bytes(s, y, at, n, b, err))
            return -1;
        *same = !memcmp(a, b, n);
    }
    return 0;
}

static size_t count_layers(const struct tensor_source *s, struct arena *a, const char *inner)
{
    size_t n = 0;
    while (source_find(s, arena_printf(a, "%sh.%zu.ln_1.weight", inner, n)))
        n++;
    return n;
}

static int need_heads(const struct tensor_source *s, struct cairn_error *err)
{
    cairn_fail(err, CAIRN_EUSAGE, "%s: the tensors do not show the number of heads", s->path);
    return cairn_hint(err, "put the model's config.json beside it, or set model.heads");
}

static int shape_of_tensors(const struct tensor_source *s, struct arena *a, size_t heads,
                            struct gpt_shape *out, struct cairn_error *err)
{
    struct naming n;
    if (find_naming(s, a, &n, err))
        return -1;
    if (n.layout == LAYOUT_LLAMA)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: a Llama model needs its config.json beside it", s->path);
    const struct st_tensor *wte = find(s, a, n.inner, "wte.weight"), *wpe = find(s, a, n.inner, "wpe.weight");
    const struct st_tensor *fc = find(s, a, n.inner, "h.0.mlp.c_fc.weight");
    const struct st_tensor *head = find(s, a, n.outer, "lm_head.weight");
    if (!has_rank(wte, 2) || !has_rank(wpe, 2) || !has_rank(fc, 2))
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s: wte.weight, wpe.weight and h.0.mlp.c_fc.weight must be matrices", s->path);
    *out = (struct gpt_shape){
        .layers = count_layers(s, a, n.inner),
        .heads = heads,
        .kv_heads = heads,
        .width = wte->shape[1],
        .ffn = fc->shape[n.layout == LAYOUT_GPT2],
        .context = wpe->shape[0],
        .vocab = wte->shape[0],
        .bias = find(s, a, n.inner, "h.0.attn.c_attn.bias") != NULL,
        .tied = true,
        .norm_epsilon = 1e-5f,
    };
    if (head && same_numbers(s, wte, head, &out->tied, err))
        return -1;
    return heads ? 0 : need_heads(s, err);
}

int gpt_file_shape(const char *path, struct gpt_shape *s, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(source_close) struct tensor_source source = { 0 };
    struct place place;
    struct gpt_shape found;
    struct cairn_error why = { 0 };
    if (find_model(&a, path, &place, err))
        return -1;
    if (place.config)
        return gpt_config_read(place.config, s, err);
    if (source_open(&source, place.weights, err) || shape_of_tensors(&source, &a, s->heads, &found, err))
        return -1;
    if (gpt_shape_check(&found, &why))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s", place.weights, why.msg);
    *s = found;
    return 0;
}

/* ---- models ---- */

int gpt_file_save_tensors(const struct gpt *m, const char *path, enum dtype dtype,
                          const struct param_getter *from, struct cairn_error *err)
{
    CLEANUP(param_tensors_release) struct param_tensors tensors = { 0 };
    bool gpt2 = gpt_is_gpt2(&m->shape);
    struct naming n = { gpt2 ? LAYOUT_GPT2 : LAYOUT_LLAMA, "", gpt2 ? "transformer." : "model." };
    list_tensors(&tensors, m, &n);
    return param_file_write(&tensors, &m->weights, from, dtype, path, err);
}

int gpt_file_save(const struct gpt *m, const char *dir, enum dtype dtype, const struct param_getter *from,
                  struct cairn_error *err)
{
    CLEANUP(str_release) struct str config = { 0 }, path = { 0 };
    str_addf(&config, "%s/config.json", dir);
    str_addf(&path, "%s/%s", dir, model_names[0]);
    if (gpt_config_write(&m->shape, dtype, config.s, err))
        return -1;
    return gpt_file_save_tensors(m, path.s, dtype, from, err);
}

/* Buffers that some versions of transformers stored; and a head that is tied to the embedding. */
static const char *const unused[] = { "*.attn.bias", "*.attn.masked_bias", "*.rotary_emb.inv_freq",
                                      "*lm_head.weight", NULL };

int gpt_file_load(struct gpt *m, const char *path, struct param_report *report, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors tensors = { 0 };
    struct place place;
    struct naming n;
    *report = (struct param_report){ 0 };
    if (find_model(&tensors.arena, path, &place, err) || source_open(&source, place.weights, err) ||
        find_naming(&source, &tensors.arena, &n, err))
        return -1;
    if (n.layout == LAYOUT_LLAMA && gpt_is_gpt2(&m->shape))
        return cairn_fail(err, CAIRN_EFORMAT, "%s has Llama's tensor names, but the model is a GPT-2",
                          source.path);
    list_tensors(&tensors, m, &n);
    struct param_file_rules rules = { .under = n.outer, .unused = unused };
    return param_file_read(&tensors, &m->weights, &source, &rules, report, err);
}

/* ---- LoRA ---- */

static void list_lora(struct param_tensors *t, const struct gpt *m)
{
    for (size_t i = 0; i < m->lora.params.n; i++) {
        struct param_tensor whole = param_tensor_whole(&m->lora.params.list[i]);
        param_tensors_add(t, &whole, "base_model.model.%s", whole.param->name);
    }
}

static const struct lora_pair *pair_of(const struct gpt *m, size_t layer, int matrix,
                                       const struct gpt_part *part)
{
    const struct lora_site *site = &m->blocks[layer].linear[matrix].lora;
    for (size_t i = 0; i < site->n; i++)
        if (site->pairs[i].first == part->first)
            return &site->pairs[i];
    return NULL;
}

/* PEFT takes "attn.c_attn" for that module of every block. Where blocks differ each module is named in
 * full. */
static bool blocks_differ(const struct gpt *m, int matrix, const struct gpt_part *part)
{
    for (size_t i = 1; i < m->shape.layers; i++)
        if (!pair_of(m, i, matrix, part) != !pair_of(m, 0, matrix, part))
            return true;
    return false;
}

static void add_targets_of(struct json *list, const struct gpt *m, int matrix, const struct gpt_part *part)
{
    bool differ = blocks_differ(m, matrix, part);
    for (size_t i = 0; i < m->shape.layers; i++) {
        CLEANUP(str_release) struct str full = { 0 };
        str_addf(&full, "%s.%zu.%s", gpt_blocks_name(&m->shape), i, part->module);
        if (pair_of(m, i, matrix, part) && (differ || i == 0))
            json_add_text(list, NULL, differ ? full.s : part->module);
    }
}

static void add_targets(struct json *list, const struct gpt *m)
{
    for (int i = 0; i < GPT_MATRICES; i++) {
        struct gpt_part parts[GPT_PARTS];
        gpt_parts(&m->shape, (enum gpt_matrix)i, parts);
        for (int k = 0; k < GPT_PARTS && parts[k].module; k++)
            add_targets_of(list, m, i, &parts[k]);
    }
}

/* PEFT expects an integer, but takes any. */
static void add_alpha(struct json *c, float alpha)
{
    if (alpha == floorf(alpha) && fabsf(alpha) < 1 << 24)
        json_add_int(c, "lora_alpha", (int64_t)alpha);
    else
        gpt_config_add_real(c, "lora_alpha", alpha);
}

static int save_lora_config(const struct gpt *m, const struct gpt_lora_file *f, const char *path,
                            struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *c = json_new_object();
    json_add_text(c, "peft_type", "LORA");
    json_add_text(c, "task_type", "CAUSAL_LM");
    json_add_text(c, "base_model_name_or_path", f->base);
    json_add_int(c, "r", (int64_t)m->lora.rank);
    add_alpha(c, f->options->alpha);
    gpt_config_add_real(c, "lora_dropout", f->options->dropout);
    add_targets(json_add_array(c, "target_modules"), m);
    json_add_bool(c, "fan_in_fan_out", gpt_is_gpt2(&m->shape));
    json_add_text(c, "bias", "none");
    json_add_bool(c, "inference_mode", true);
    return gpt_config_save(c, path, err);
}

int gpt_file_save_lora_tensors(const struct gpt *m, const char *path, enum dtype dtype,
                               const struct param_getter *from, struct cairn_error *err)
{
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    list_lora(&t, m);
    return param_file_write(&t, &m->lora.weights, from, dtype, path, err);
}

int gpt_file_save_lora(const struct gpt *m, const char *dir, const struct gpt_lora_file *f,
                       struct cairn_error *err)
{
    CLEANUP(str_release) struct str config = { 0 }, path = { 0 }, copy = { 0 };
    str_addf(&config, "%s/adapter_config.json", dir);
    str_addf(&path, "%s/%s", dir, "adapter_model.safetensors");
    str_addf(&copy, "%s/%s", dir, f->copy ? f->copy : "");
    if (save_lora_config(m, f, config.s, err) ||
        gpt_file_save_lora_tensors(m, path.s, f->dtype, f->from, err))
        return -1;
    return f->copy ? gpt_file_save_lora_tensors(m, copy.s, f->dtype, f->from, err) : 0;
}

static int check_lora_config(const struct gpt *m, const char *path, struct cairn_error *err)
{
    CLEANUP(adapter_config_release) struct adapter_config c = { 0 };
    double ours = (double)m->lora.scale * m->lora.rank;
    if (adapter_config_read(&c, path, err))
        return -1;
    if (c.rslora || adapter_config_has_patterns(&c))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: \"%s\" is not supported", path,
                          c.rslora ? "use_rslora" : "rank_pattern or alpha_pattern");
    if (c.rank != m->lora.rank)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: \"r\" is %" PRIu64 ", but lora.rank is %zu", path, c.rank,
                          m->lora.rank);
    if (fabs(c.alpha - ours) > 1e-5 * fabs(ours))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: \"lora_alpha\" is %g, but lora.alpha is %g", path, c.alpha,
                          ours);
    return 0;
}

int gpt_file_load_lora(struct gpt *m, const char *path, struct param_report *report, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    const char *weights, *config;
    *report = (struct param_report){ 0 };
    if (adapter_find(&t.arena, path, NULL, &weights, &config, err))
        return -1;
    if (config && check_lora_config(m, config, err))
        return -1;
    if (source_open(&source, weights, err))
        return -1;
    list_lora(&t, m);
    struct param_file_rules rules = { .under = "" };
    return param_file_read(&t, &m->lora.weights, &source, &rules, report, err);
}
