/* SPDX-License-Identifier: Apache-2.0
 * A VAE: latents of clips and pixels of latents, as a whole and in chunks, and what leaves the layers. */
#include "golden.h"
#include "base/str.h"
#include "nn/nn_inside.h"
#include "nn/vae.h"
#include "nn/weights.h"
#include <stdio.h>
#include <string.h>

/* Keeps the outputs of layers that the case has. */
struct grabbed {
    const char *name;
    float *numbers;
    size_t n;
};
struct grabber {
    struct nn_watcher watcher;
    struct golden *c;
    const char *clip, *side; /* "enc.img", "encoder." */
    int chunk;
    struct grabbed list[64];
    size_t n;
};

struct vae_case {
    struct golden *c;
    struct nn nn;
    struct vae *v;
    size_t frames; /* of the clip in progress */
    size_t cells;  /* pixels of a frame */
    const float *in;
    float *out;
};

static bool is_vae(const struct st_file *f)
{
    if (!st_find(f, "mean") || !st_find(f, "std"))
        return false;
    for (size_t i = 0; i < f->n_tensors; i++)
        if (str_starts(f->tensors[i].name, "enc.") && str_ends(f->tensors[i].name, ".latent"))
            return true;
    return false;
}

/* ---- clips ---- */

/* Files have the channels first. */
static int read_frames(void *ctx, size_t first, size_t n, float *out, struct cairn_error *err)
{
    const struct vae_case *t = ctx;
    (void)err;
    for (size_t f = first; f < first + n; f++)
        for (size_t i = 0; i < t->cells; i++)
            for (size_t k = 0; k < 3; k++)
                *out++ = t->in[(k * t->frames + f) * t->cells + i];
    return 0;
}

static int write_frames(void *ctx, size_t first, size_t n, const float *rgb, struct cairn_error *err)
{
    struct vae_case *t = ctx;
    (void)err;
    for (size_t f = first; f < first + n; f++)
        for (size_t i = 0; i < t->cells; i++)
            for (size_t k = 0; k < 3; k++)
                t->out[(k * t->frames + f) * t->cells + i] = *rgb++;
    return 0;
}

/* ---- layers ---- */

/* The last op of a layer, or of a stage that ends with a layer, has its output. */
static const char *tensor_of(const struct grabber *g, const char *where, size_t n)
{
    struct golden *c = g->c;
    for (char *layer = arena_strdup(&c->arena, where + strlen(g->side));;) {
        const char *name = arena_printf(&c->arena, "%s.act.%s.chunk%d", g->clip, layer, g->chunk);
        const struct st_tensor *t = st_find(c->file, name);
        if (t)
            return t->elements == n ? name : NULL;
        for (int i = 0; i < 2; i++) {
            char *dot = strrchr(layer, '.');
            if (!dot)
                return NULL;
            *dot = '\0';
        }
    }
}

static int grab(struct nn_watcher *w, struct nn *nn, const struct nn_event *e, struct cairn_error *err)
{
    struct grabber *g = (struct grabber *)w;
    struct golden *c = g->c;
    size_t n = e->out[0].n, bytes = e->storage == GPU_F32 ? 4 : 2, i = 0;
    if (str_eq(e->where, "input"))
        g->chunk++;
    if (!str_starts(e->where, g->side) || !e->out[0].at)
        return 0;
    const char *name = tensor_of(g, e->where, n);
    if (!name)
        return 0;
    while (i < g->n && strcmp(g->list[i].name, name) != 0)
        i++;
    if (i == g->n && g->n < ARRAY_LEN(g->list))
        g->list[g->n++] = (struct grabbed){ name, ARENA_NEW(&c->arena, float, n), n };
    void *raw = arena_alloc(&c->arena, n * bytes);
    if (i == g->n || gpu_download(nn->g, nn->stream, raw, e->out[0].at, n * bytes, err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    dtype_convert(g->list[i].numbers, DTYPE_F32, raw, storage_dtype(e->storage), n, &(struct dtype_how){ 0 });
    return 0;
}

/* By the largest difference.  In 16 bits decoded pixels have a limit of their own: the models' last layers have four
 * channels, and where all of them are small, their norm makes one number worse than all others. */
static void compare(struct golden *c, const char *name, const float *got, const float *want, size_t n)
{
    bool is_decoded = str_starts(name, "dec.") && !strstr(name, ".act.");
    double share = c->share16;
    if (is_decoded)
        c->share16 = 0.02;
    golden_compare(c, name, got, want, n, 2e-5, 1);
    c->share16 = share;
}

static int compare_layers(struct grabber *g)
{
    struct golden *c = g->c;
    const char *prefix = arena_printf(&c->arena, "%s.act.", g->clip);
    size_t all = 0;
    for (size_t i = 0; i < c->file->n_tensors; i++)
        all += str_starts(c->file->tensors[i].name, prefix);
    if (all != g->n)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "%s: %zu of %zu layers were seen", g->clip, g->n, all);
    for (size_t i = 0; i < g->n; i++) {
        const struct st_tensor *t = st_find(c->file, g->list[i].name);
        size_t channels = t->shape[1], cells = g->list[i].n / channels;
        float *want = golden_floats(c, c->file, g->list[i].name, NULL),
              *got = ARENA_NEW(&c->arena, float, g->list[i].n);
        if (!want)
            return -1;
        for (size_t k = 0; k < g->list[i].n; k++)
            got[k % channels * cells + k / channels] = g->list[i].numbers[k];
        compare(c, g->list[i].name, got, want, g->list[i].n);
    }
    return 0;
}

/* ---- cases ---- */

/* "enc.img" of "enc.img.in". */
static int run_clip(struct vae_case *t, const char *clip, size_t chunk, bool layers)
{
    struct golden *c = t->c;
    bool encode = str_starts(clip, "enc.");
    const char *in = arena_printf(&c->arena, "%s.in", clip);
    const char *out = arena_printf(&c->arena, "%s.%s", clip, encode ? "latent" : "out");
    const struct st_tensor *pixels = st_find(c->file, encode ? in : out);
    struct grabber g = {
        .watcher = { grab }, .c = c, .clip = clip, .side = encode ? "encoder." : "decoder.", .chunk = -1
    };
    size_t n;
    float *want = golden_floats(c, c->file, out, &n), *got = ARENA_NEW(&c->arena, float, n + 1);
    t->in = golden_floats(c, c->file, in, NULL);
    if (!pixels || !want || !t->in)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "%s has not both ends", clip);
    struct vae_size size = { pixels->shape[2], pixels->shape[3], pixels->shape[4] };
    struct vae_layout layout = { .tile_height = size.height, .tile_width = size.width, .chunk = chunk };
    struct vae_source source = { read_frames, t };
    struct vae_sink sink = { write_frames, t };
    t->frames = size.frames;
    t->cells = size.height * size.width;
    t->out = got;
    t->nn.watcher = layers ? &g.watcher : NULL;
    int r = encode ? vae_encode(t->v, &size, &layout, &source, got, &c->err)
                   : vae_decode(t->v, &size, &layout, t->in, &sink, &c->err);
    t->nn.watcher = NULL;
    if (r)
        return cairn_wrap(&c->err, "%s", clip);
    compare(c, arena_printf(&c->arena, "%s in chunks of %zu", out, chunk), got, want, n);
    return layers ? compare_layers(&g) : 0;
}

static int run_clips(struct vae_case *t)
{
    for (size_t i = 0; i < t->c->file->n_tensors; i++) {
        const char *name = t->c->file->tensors[i].name;
        if (!str_ends(name, ".in"))
            continue;
        const char *clip = arena_strndup(&t->c->arena, name, strlen(name) - 3);
        if (run_clip(t, clip, 1, true) || run_clip(t, clip, 2, false) || run_clip(t, clip, 100, false))
            return -1;
    }
    return 0;
}

static int run_vae(struct golden *c)
{
    struct vae_case t = { .c = c };
    size_t n;
    c->share16 = 0.005; /* in bf16, too: the VAE computes in f16 then */
    if (!c->weights)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "there are no weights");
    int r = nn_open(&t.nn, c->g, c->storage, &c->err) ||
            vae_open(&t.v, &t.nn, c->weights->shards[0].path, true, true, &c->err);
    float *mean = r ? NULL : golden_floats(c, c->file, "mean", &n),
          *std = r ? NULL : golden_floats(c, c->file, "std", &n);
    if (mean && std) {
        golden_compare(c, "mean", vae_info(t.v)->mean, mean, n, 1e-6, 0);
        golden_compare(c, "std", vae_info(t.v)->std, std, n, 1e-6, 0);
    }
    r = r || !mean || !std || run_clips(&t) ? -1 : 0;
    vae_close(t.v);
    nn_close(&t.nn);
    return r;
}

const struct golden_kind golden_vae = { "vae", is_vae, run_vae };
