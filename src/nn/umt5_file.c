/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/umt5_file.h"
#include "base/file.h"
#include "os/info.h"
#include "os/path.h"
#include "tensor/fp8_scaled.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 1024, MOST_SIZE = 1 << 24, MOST_HEAD = 128 /* values: attention.h */ };

/* ---- which file ---- */

/* *broken: why the first file could not be opened, such as one with a missing shard. */
static bool is_umt5(const char *path, struct cairn_error *broken)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct umt5_names names;
    struct cairn_error ignored;
    if (source_open_model(&s, path, broken->code ? &ignored : broken))
        return false;
    return !umt5_names_find(&s, &a, &names, &ignored);
}

/* An index, a single file, or the first shard where there is no index. */
static bool is_candidate(const char *dir, struct arena *a, const char *name)
{
    unsigned number, of;
    size_t at;
    if (str_ends(name, ".pth") || str_ends(name, ".pt") || str_ends(name, ".safetensors.index.json"))
        return true;
    if (!str_ends(name, ".safetensors"))
        return false;
    if (!st_is_shard(name, &number, &of, &at))
        return true;
    struct os_info info;
    return number == 1 &&
           os_info(arena_printf(a, "%s/%.*s.safetensors.index.json", dir, (int)at - 1, name), &info);
}

static int find_in_folder(const char *dir, struct arena *a, const char **out, struct cairn_error *err)
{
    char **names;
    size_t n, found = 0;
    struct cairn_error broken = { 0 };
    const char *below = arena_printf(a, "%s/text_encoder", dir);
    if (os_is_folder(below))
        return find_in_folder(below, a, out, err);
    if (file_names(dir, a, &names, &n))
        return cairn_fail_errno(err, "read folder %s", dir);
    for (size_t i = 0; i < n; i++) {
        const char *path = arena_printf(a, "%s/%s", dir, names[i]);
        if (!is_candidate(dir, a, names[i]) || !is_umt5(path, &broken))
            continue;
        if (found++) {
            cairn_fail(err, CAIRN_EUSAGE, "%s has several umT5 encoders: %s and %s", dir, path_name(*out),
                       names[i]);
            return cairn_hint(err, "name one of the files");
        }
        *out = path;
    }
    if (found)
        return 0;
    if (broken.code) {
        *err = broken;
        return cairn_hint(err, "download the files of the text encoder again");
    }
    cairn_fail(err, CAIRN_EUSAGE, "%s has no umT5 encoder", dir);
    return cairn_hint(
        err, "name a .safetensors or .pth file, or a folder as diffusers or Wan's authors publish it");
}

int umt5_find(const char *path, struct arena *a, const char **out, struct cairn_error *err)
{
    struct os_info info;
    if (os_info(path, &info))
        return cairn_fail_errno(err, "open %s", path);
    if (info.kind == OS_KIND_FOLDER)
        return find_in_folder(path, a, out, err);
    *out = arena_strdup(a, path);
    return 0;
}

/* ---- its shape ---- */

static int need(const struct umt5_file *f, const char *name, int rank, const struct st_tensor **out,
                struct cairn_error *err)
{
    *out = source_find(&f->source, name);
    if (!*out)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s is missing", f->source.path, name);
    if ((*out)->rank != rank)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s has %d dimensions, expected %d", f->source.path,
                          name, (*out)->rank, rank);
    for (int i = 0; i < rank; i++)
        if (!(*out)->shape[i] || (*out)->shape[i] > MOST_SIZE)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s has an impossible size", f->source.path,
                              name);
    return 0;
}

/* One more than the highest number of a block. */
static size_t count_layers(const struct umt5_file *f, const struct umt5_names *names)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    size_t n = 0;
    const char *prefix =
        arena_printf(&a, "%s%s", names->prefix, names->official ? "blocks." : "encoder.block.");
    for (size_t i = 0; i < f->source.n_tensors; i++) {
        const char *name = f->source.tensors[i].name, *digits = name + strlen(prefix);
        if (!str_starts(name, prefix))
            continue;
        char *end;
        unsigned long number = strtoul(digits, &end, 10);
        if (end > digits && *end == '.' && number < MOST_LAYERS && number >= n)
            n = number + 1;
    }
    return n;
}

static int find_shape(struct umt5_file *f, const struct umt5_names *names, struct cairn_error *err)
{
    const struct st_tensor *embedding, *q, *gate, *bias;
    struct arena *a = &f->arena;
    if (need(f, umt5_name_embedding(names, a, &f->source), 2, &embedding, err) ||
        need(f, umt5_name(names, a, 0, UMT5_Q), 2, &q, err) ||
        need(f, umt5_name(names, a, 0, UMT5_GATE), 2, &gate, err) ||
        need(f, umt5_name(names, a, 0, UMT5_BIAS), 2, &bias, err))
        return -1;
    struct umt5_info *s = &f->info;
    *s = (struct umt5_info){
        .vocab = embedding->shape[0],
        .dim = embedding->shape[1],
        .attention_dim = q->shape[0],
        .heads = bias->shape[1],
        .ffn = gate->shape[0],
        .layers = count_layers(f, names),
        .dtype = q->dtype,
        .scaled = fp8_scale_of(&f->source, q) != NULL,
        .has_tokenizer = source_find(&f->source, "spiece_model") != NULL,
        .official = names->official,
        .files = f->source.n_files,
    };
    if (s->attention_dim % s->heads || s->attention_dim / s->heads > MOST_HEAD)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %zu heads do not divide %zu values, or are larger than %d",
                          f->source.path, s->heads, s->attention_dim, MOST_HEAD);
    return 0;
}

/* ---- its tensors ---- */

/* In the order of enum umt5_tensor. */
static void list_layer(struct umt5_file *f, struct params *p, const struct umt5_names *names, size_t layer)
{
    const struct umt5_info *s = &f->info;
    const size_t shapes[UMT5_LAYER_TENSORS][2] = {
        [UMT5_Q] = { s->attention_dim, s->dim },
        [UMT5_K] = { s->attention_dim, s->dim },
        [UMT5_V] = { s->attention_dim, s->dim },
        [UMT5_O] = { s->dim, s->attention_dim },
        [UMT5_GATE] = { s->ffn, s->dim },
        [UMT5_UP] = { s->ffn, s->dim },
        [UMT5_DOWN] = { s->dim, s->ffn },
        [UMT5_NORM1] = { 1, s->dim },
        [UMT5_NORM2] = { 1, s->dim },
        [UMT5_BIAS] = { UMT5_BUCKETS, s->heads },
    };
    for (int t = 0; t < UMT5_LAYER_TENSORS; t++)
        params_add(p, t == UMT5_NORM1 || t == UMT5_NORM2 ? PARAM_VECTOR : PARAM_MATRIX, shapes[t][0],
                   shapes[t][1], "%s", umt5_name(names, &f->arena, layer, (enum umt5_tensor)t));
}

/* Known, and not needed: the decoder of a whole umT5, and second copies of the embedding. */
static const char *const unused[] = {
    "*spiece_model", "*decoder.*", "*lm_head.weight", "*shared.weight", "*encoder.embed_tokens.weight", NULL
};

static int match(struct umt5_file *f, const struct umt5_names *names, struct cairn_error *err)
{
    const struct umt5_info *s = &f->info;
    CLEANUP(params_release) struct params p = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    for (size_t i = 0; i < s->layers; i++)
        list_layer(f, &p, names, i);
    params_add(&p, PARAM_VECTOR, 1, s->dim, "%s", umt5_name_norm(names, &f->arena));
    params_add(&p, PARAM_MATRIX, s->vocab, s->dim, "%s", umt5_name_embedding(names, &f->arena, &f->source));
    for (size_t i = 0; i < p.n; i++) {
        struct param_tensor whole = param_tensor_whole(&p.list[i]);
        param_tensors_add(&t, &whole, "%s", p.list[i].name);
    }
    const struct st_tensor **found = ARENA_NEW(&f->arena, const struct st_tensor *, t.n + 1);
    struct param_file_rules rules = { .under = names->prefix, .unused = unused };
    if (param_file_match(&t, &f->source, &rules, found, &report, err))
        return -1;
    f->layers = (const struct st_tensor *(*)[UMT5_LAYER_TENSORS])found;
    f->norm = found[s->layers * UMT5_LAYER_TENSORS];
    f->embedding = found[s->layers * UMT5_LAYER_TENSORS + 1];
    return 0;
}

/* Whether the device can have the codes of the file. */
static int find_scales(struct umt5_file *f, struct cairn_error *err)
{
    bool is_scaled = param_scale_is_in(&f->source);
    f->info.keeps_fp8 = true;
    if (param_scale_find(&f->source, f->embedding, is_scaled, &f->embedding_scale, err))
        return -1;
    for (size_t i = 0; i < f->info.layers; i++)
        for (int t = 0; t < UMT5_MATRICES; t++) {
            const struct st_tensor *m = f->layers[i][t];
            struct param_scale scale;
            if (param_scale_find(&f->source, m, is_scaled, &scale, err))
                return -1;
            f->info.keeps_fp8 &= m->dtype == DTYPE_F8_E4M3 && param_scale_is_by_row(&scale, m->shape[1]);
        }
    return 0;
}

int umt5_file_open(struct umt5_file *f, const char *path, struct cairn_error *err)
{
    const char *file;
    struct umt5_names names;
    *f = (struct umt5_file){ 0 };
    if (umt5_find(path, &f->arena, &file, err) || source_open_model(&f->source, file, err) ||
        umt5_names_find(&f->source, &f->arena, &names, err) || find_shape(f, &names, err) ||
        match(f, &names, err))
        return -1;
    return find_scales(f, err);
}

void umt5_file_close(struct umt5_file *f)
{
    source_close(&f->source);
    arena_release(&f->arena);
    *f = (struct umt5_file){ 0 };
}

int umt5_read_info(const char *path, struct umt5_info *out, struct cairn_error *err)
{
    CLEANUP(umt5_file_close) struct umt5_file f = { 0 };
    if (umt5_file_open(&f, path, err))
        return -1;
    *out = f.info;
    return 0;
}

int umt5_read_tokenizer(const char *path, struct str *spiece, struct cairn_error *err)
{
    enum { MOST = 64 << 20 };
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *file;
    if (umt5_find(path, &a, &file, err) || source_open_model(&s, file, err))
        return -1;
    const struct st_tensor *t = source_find(&s, "spiece_model");
    if (!t) {
        cairn_fail(err, CAIRN_ELACK, "%s has no tokenizer: there is no tensor spiece_model", file);
        return cairn_hint(err, "set model.tokenizer_path to spiece.model or tokenizer.json");
    }
    if (!t->bytes || t->bytes > MOST || t->bytes != t->elements)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: spiece_model is %s of %llu bytes, not a tokenizer", file,
                          t->dtype_text, (unsigned long long)t->bytes);
    CLEANUP(mem_free) char *bytes = malloc(t->bytes);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for spiece_model", file);
    if (source_read_bytes(&s, t, 0, t->bytes, bytes, err))
        return -1;
    str_addn(spiece, bytes, t->bytes);
    return 0;
}
