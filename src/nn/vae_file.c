/* SPDX-License-Identifier: Apache-2.0
 * Opens a VAE: finds its file, recognises it by names and shapes, and loads the weights. */
#include "nn/vae_inside.h"
#include "nn/wan_names.h"
#include "os/info.h"
#include "os/path.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DIM = 1 << 14, NAMES_SAID = 4 };

static const float mean_21[16] = { -0.7571f, -0.7089f, -0.9113f, 0.1075f,  -0.1745f, 0.9653f,
                                   -0.1517f, 1.5508f,  0.4134f,  -0.0715f, 0.5517f,  -0.3632f,
                                   -0.1922f, -0.9497f, 0.2503f,  -0.2921f };
static const float std_21[16] = { 2.8184f, 1.4541f, 2.3275f, 2.6558f, 1.2196f, 1.7708f, 2.6052f, 2.0743f,
                                  3.2687f, 2.1526f, 2.8652f, 1.5579f, 1.6382f, 1.1253f, 2.8251f, 1.9160f };
static const float mean_22[48] = {
    -0.2289f, -0.0052f, -0.1323f, -0.2339f, -0.2799f, 0.0174f,  0.1838f,  0.1557f,  -0.1382f, 0.0542f,
    0.2813f,  0.0891f,  0.1570f,  -0.0098f, 0.0375f,  -0.1825f, -0.2246f, -0.1207f, -0.0698f, 0.5109f,
    0.2665f,  -0.2108f, -0.2158f, 0.2502f,  -0.2055f, -0.0322f, 0.1109f,  0.1567f,  -0.0729f, 0.0899f,
    -0.2799f, -0.1230f, -0.0313f, -0.1649f, 0.0117f,  0.0723f,  -0.2839f, -0.2083f, -0.0520f, 0.3748f,
    0.0152f,  0.1957f,  0.1433f,  -0.2944f, 0.3573f,  -0.0548f, -0.1681f, -0.0667f,
};
static const float std_22[48] = {
    0.4765f, 1.0364f, 0.4514f, 1.1677f, 0.5313f, 0.4990f, 0.4818f, 0.5013f, 0.8158f, 1.0344f,
    0.5894f, 1.0901f, 0.6885f, 0.6165f, 0.8454f, 0.4978f, 0.5759f, 0.3523f, 0.7135f, 0.6804f,
    0.5833f, 1.4146f, 0.8986f, 0.5659f, 0.7069f, 0.5338f, 0.4889f, 0.4917f, 0.4069f, 0.4999f,
    0.6866f, 0.4093f, 0.5709f, 0.6065f, 0.6415f, 0.4944f, 0.5726f, 1.2042f, 0.5458f, 1.6887f,
    0.3971f, 1.0600f, 0.3943f, 0.5537f, 0.5444f, 0.4089f, 0.7468f, 0.7744f,
};

static const struct kind {
    int version;
    size_t input;    /* channels of the first convolution */
    size_t channels; /* of latents */
    size_t stride;
    const float *mean, *std;
} kinds[] = {
    { 21, 3, 16, 8, mean_21, std_21 },
    { 22, 12, 48, 16, mean_22, std_22 },
};

/* ---- what a file is ---- */

struct names {
    const char *prefix;
    bool diffusers;
};

/* What stands before the first convolution's name; NULL: it is another tensor. */
static const char *prefix_of(struct arena *a, const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    if (!str_ends(name, end) || (n > k && name[n - k - 1] != '.'))
        return NULL;
    return arena_strndup(a, name, n - k);
}

static int refuse(const struct tensor_source *s, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct wan_names wan;
    struct cairn_error ignored;
    if (!wan_names_find(s, &a, &wan, &ignored)) {
        cairn_fail(err, CAIRN_EFORMAT, "%s is a Wan transformer, not a VAE", s->path);
        return cairn_hint(err, "the VAE is a file of its own, such as Wan2.1_VAE.pth");
    }
    cairn_fail(err, CAIRN_EFORMAT, "%s is not a Wan VAE: it has no encoder.conv1.weight%s%.80s", s->path,
               s->n_tensors ? "; its first tensor is " : " and no tensor at all",
               s->n_tensors ? s->tensors[0].name : "");
    return cairn_hint(
        err, "the VAE of Wan 2.1 or 2.2 is needed: Wan2.1_VAE.pth, Wan2.2_VAE.pth or diffusers' \"vae\"");
}

static int find_names(const struct tensor_source *s, struct arena *a, struct names *out,
                      struct cairn_error *err)
{
    const char *first = NULL;
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name = s->tensors[i].name, *official = prefix_of(a, name, "encoder.conv1.weight");
        const char *diffusers = prefix_of(a, name, "encoder.conv_in.weight");
        if (!official && !diffusers)
            continue;
        if (first)
            return cairn_fail(err, CAIRN_EFORMAT, "%s contains two models: %s and %s", s->path, first, name);
        first = name;
        *out = (struct names){ official ? official : diffusers, !official };
    }
    return first ? 0 : refuse(s, err);
}

static int need(const struct tensor_source *s, const char *name, const struct st_tensor **out,
                struct cairn_error *err)
{
    *out = source_find(s, name);
    if (!*out)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s is missing", s->path, name);
    if ((*out)->rank != 5 || !(*out)->shape[0] || (*out)->shape[0] > MOST_DIM || (*out)->shape[1] > MOST_DIM)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s is not a convolution of a Wan VAE", s->path,
                          name);
    return 0;
}

static int find_info(const struct tensor_source *s, const struct names *n, struct arena *a,
                     struct vae_info *out, struct cairn_error *err)
{
    const struct st_tensor *in, *middle;
    const char *end = n->diffusers ? "conv_in.weight" : "conv1.weight";
    if (need(s, arena_printf(a, "%sencoder.%s", n->prefix, end), &in, err) ||
        need(s, arena_printf(a, "%sdecoder.%s", n->prefix, end), &middle, err))
        return -1;
    const struct kind *k = NULL;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (in->shape[1] == kinds[i].input && middle->shape[1] == kinds[i].channels)
            k = &kinds[i];
    if (!k)
        return cairn_fail(err, CAIRN_EFORMAT,
                          "%s is no VAE of Wan 2.1 or 2.2: %zu input channels and %zu latent channels",
                          s->path, (size_t)in->shape[1], (size_t)middle->shape[1]);
    *out = (struct vae_info){ .version = k->version,
                              .channels = k->channels,
                              .stride_time = 4,
                              .stride = k->stride,
                              .mean = k->mean,
                              .std = k->std,
                              .dim = in->shape[0],
                              .decoder_dim = middle->shape[0] / 4,
                              .dtype = in->dtype,
                              .diffusers = n->diffusers };
    if (!out->decoder_dim || out->decoder_dim % 2)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s has an impossible size", s->path, middle->name);
    return 0;
}

static int open_file(struct tensor_source *s, const char *path, struct arena *a, struct names *names,
                     struct vae_info *info, struct cairn_error *err)
{
    return source_open_model(s, path, err) || find_names(s, a, names, err) ||
                   find_info(s, names, a, info, err)
               ? -1
               : 0;
}

/* ---- which file ---- */

static bool is_vae(const char *path, struct cairn_error *broken)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct names names;
    struct cairn_error ignored;
    if (source_open(&s, path, broken->code ? &ignored : broken))
        return false;
    return !find_names(&s, &a, &names, &ignored);
}

static int natural(const void *a, const void *b)
{
    return str_compare_natural(*(char *const *)a, *(char *const *)b);
}

/* A VAE is small: it comes in one file. */
static bool is_candidate(const char *name)
{
    unsigned number, of;
    size_t at;
    if (str_ends(name, ".safetensors"))
        return !st_is_shard(name, &number, &of, &at);
    return str_ends(name, ".pth") || str_ends(name, ".pt");
}

static int find_in_folder(const char *dir, struct str *out, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(str_release) struct str list = { 0 };
    char **names = NULL;
    size_t n = 0, found = 0;
    struct cairn_error broken = { 0 };
    const char *below = arena_printf(&a, "%s/vae", dir);
    if (os_is_folder(below))
        dir = below;
    if (file_names(dir, &a, &names, &n))
        return cairn_fail_errno(err, "read folder %s", dir);
    if (n)
        qsort(names, n, sizeof(*names), natural);
    for (size_t i = 0; i < n; i++) {
        const char *path = arena_printf(&a, "%s/%s", dir, names[i]);
        if (!is_candidate(names[i]) || !is_vae(path, &broken))
            continue;
        if (!found++)
            str_add(out, path);
        if (found <= NAMES_SAID)
            str_addf(&list, "%s%s", found > 1 ? ", " : "", names[i]);
    }
    if (found == 1)
        return 0;
    if (found)
        return cairn_fail(err, CAIRN_EUSAGE, "%s has %zu VAEs: %.300s; name one file", dir, found, list.s);
    if (broken.code) {
        *err = broken;
        return cairn_hint(err, "download the files of the VAE again");
    }
    cairn_fail(err, CAIRN_EUSAGE, "%s has no Wan VAE", dir);
    return cairn_hint(err, "it is Wan2.1_VAE.pth, Wan2.2_VAE.pth, or the folder \"vae\" of diffusers");
}

int vae_find(const char *path, struct str *out, struct cairn_error *err)
{
    struct os_info info;
    if (os_info(path, &info)) {
        if (errno != ENOENT)
            return cairn_fail_errno(err, "open %s", path);
        return cairn_fail(err, CAIRN_EIO, "%s does not exist", path);
    }
    if (info.kind == OS_KIND_FOLDER)
        return find_in_folder(path, out, err);
    str_add(out, path);
    return 0;
}

int vae_read_info(const char *path, struct vae_info *out, struct cairn_error *err)
{
    CLEANUP(str_release) struct str file = { 0 };
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct names names;
    return vae_find(path, &file, err) || open_file(&source, file.s, &a, &names, out, err) ? -1 : 0;
}

/* ---- weights ---- */

static float factor_of(const struct vae *v, enum vae_factor f)
{
    if (f == VAE_AS_IT_IS || v->storage == GPU_F32)
        return 0;
    return f == VAE_MULTIPLIED ? 1 / vae_shrink(v) : vae_shrink(v);
}

static void list_tensors(struct param_tensors *list, const struct vae *v, const struct names *names)
{
    const struct vae_table *t = &v->table;
    for (size_t i = 0; i < t->params.n; i++) {
        const struct vae_tensor *at = &t->tensors[i];
        struct param_tensor whole = param_tensor_whole(&t->params.list[i]);
        whole.rank = at->rank;
        whole.factor = factor_of(v, at->factor);
        memcpy(whole.shape, at->shape, sizeof(at->shape));
        /* One tap and no padding: the file has it as it is. */
        if (at->taps && (at->taps > 1 || at->channels != whole.param->columns)) {
            whole.taps = at->taps;
            whole.channels = at->channels;
            whole.copies = at->copies;
        }
        param_tensors_add(list, &whole, "%s%s", names->prefix,
                          names->diffusers ? at->diffusers : whole.param->name);
    }
}

/* The names of the half that is not asked for. */
static const char *const *other_half(struct arena *a, const struct names *n, bool encoder, bool decoder)
{
    const char **globs = ARENA_NEW(a, const char *, 5);
    size_t k = 0;
    if (!encoder) {
        globs[k++] = arena_printf(a, "%sencoder.*", n->prefix);
        globs[k++] = arena_printf(a, "%s%s.*", n->prefix, n->diffusers ? "quant_conv" : "conv1");
    }
    if (!decoder) {
        globs[k++] = arena_printf(a, "%sdecoder.*", n->prefix);
        globs[k++] = arena_printf(a, "%s%s.*", n->prefix, n->diffusers ? "post_quant_conv" : "conv2");
    }
    return globs;
}

static int load(struct vae *v, const char *path, bool encoder, bool decoder, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors tensors = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    struct names names;
    if (open_file(&source, path, &tensors.arena, &names, &v->info, err))
        return -1;
    vae_table_make(&v->table, &v->info, encoder, decoder);
    if (weights_open(&v->weights, v->nn->g, &v->table.params, v->storage, WEIGHTS_INT8, err))
        return cairn_wrap(err, "%s", path);
    list_tensors(&tensors, v, &names);
    struct param_file_rules rules = { .under = names.prefix,
                                      .unused = other_half(&tensors.arena, &names, encoder, decoder) };
    return param_file_read(&tensors, &v->weights, &source, &rules, &report, err);
}

int vae_open(struct vae **out, struct nn *nn, const char *path, bool encoder, bool decoder,
             struct cairn_error *err)
{
    CLEANUP(str_release) struct str file = { 0 };
    if (vae_find(path, &file, err))
        return -1;
    struct vae *v = calloc(1, sizeof(*v));
    if (!v)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", path);
    v->nn = nn;
    v->storage = nn->storage == GPU_F32 ? GPU_F32 : GPU_F16;
    snprintf(v->path, sizeof(v->path), "%s", file.s);
    if (load(v, file.s, encoder, decoder, err)) {
        vae_close(v);
        return -1;
    }
    *out = v;
    return 0;
}

void vae_close(struct vae *v)
{
    if (!v)
        return;
    vae_slots_close(v);
    if (v->weights.g)
        weights_close(&v->weights);
    params_release(&v->table.params);
    free(v);
}

const struct vae_info *vae_info(const struct vae *v)
{
    return &v->info;
}

uint64_t vae_weight_bytes(const struct vae *v)
{
    return weights_size(&v->table.params, v->storage);
}

enum gpu_storage vae_enter(const struct vae *v)
{
    enum gpu_storage before = v->nn->storage;
    v->nn->storage = v->storage;
    return before;
}

float vae_shrink(const struct vae *v)
{
    return v->storage == GPU_F32 ? 1 : 1.0f / VAE_DIVISOR;
}

void vae_set_repair(struct vae *v, bool repair)
{
    v->repair = repair;
}

uint64_t vae_repaired(const struct vae *v)
{
    return v->repaired;
}
