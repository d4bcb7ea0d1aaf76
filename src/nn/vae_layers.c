/* SPDX-License-Identifier: Apache-2.0
 * The layers of both VAEs as a table, with the names of their parameters. */
#include "nn/vae_inside.h"
#include <string.h>

static const size_t multipliers[VAE_STAGES] = { 1, 2, 4, 4 };

size_t vae_patch(const struct vae_info *i)
{
    return i->version == 22 ? 2 : 1;
}

/* Rows of whole vectors, so that the first convolution has nothing special. */
size_t vae_input_channels(const struct vae_info *i)
{
    size_t n = 2 * 3 * vae_patch(i) * vae_patch(i);
    return (n + VAE_INPUT_ALIGN - 1) / VAE_INPUT_ALIGN * VAE_INPUT_ALIGN;
}

/* ---- parameters ---- */

/* A module, by both names. */
struct name {
    const char *official, *diffusers;
};
struct maker {
    struct vae_table *t;
    struct arena *arena;
    struct vae_layers *layers;
    struct name name; /* of the layer that is made */
    size_t padded;    /* input channels of the next convolution; 0: its own */
    size_t copies;    /* of its weights */
};

static size_t add_tensor(struct maker *m, size_t index, const char *diffusers, struct vae_tensor tensor)
{
    tensor.diffusers = diffusers;
    *ARENA_PUSH(m->arena, m->t->tensors, m->t->n_tensors) = tensor;
    return index;
}

/* Part of the layer: its name in it, or "". */
static const char *join(struct maker *m, const char *module, const char *part, const char *end)
{
    return arena_printf(m->arena, "%s%s%s.%s", module, *module && *part ? "." : "", part, end);
}

struct kernel {
    size_t t, h, w;
    int rank; /* 4: no t in the file */
};
static const struct kernel cube = { 3, 3, 3, 5 }, plane = { 1, 3, 3, 4 }, line = { 3, 1, 1, 5 },
                           one = { 1, 1, 1, 5 }, one_flat = { 1, 1, 1, 4 };

static struct vae_weights add_conv(struct maker *m, const struct kernel *k, size_t in, size_t out,
                                   struct name part)
{
    size_t taps = k->t * k->h * k->w, padded = m->padded ? m->padded : in;
    struct vae_tensor w = { .rank = k->rank, .taps = taps, .channels = in, .copies = m->copies },
                      b = { .rank = 1, .shape = { out } };
    uint64_t shape[5] = { out, in, k->t, k->h, k->w };
    if (k->rank == 4)
        memcpy(shape + 2, (uint64_t[]){ k->h, k->w }, 2 * sizeof(*shape));
    memcpy(w.shape, shape, sizeof(shape));
    struct params *p = &m->t->params;
    return (struct vae_weights){
        .w = add_tensor(m,
                        params_add(p, PARAM_MATRIX, out, taps * padded, "%s",
                                   join(m, m->name.official, part.official, "weight")),
                        join(m, m->name.diffusers, part.diffusers, "weight"), w),
        .b = add_tensor(
            m, params_add(p, PARAM_VECTOR, 1, out, "%s", join(m, m->name.official, part.official, "bias")),
            join(m, m->name.diffusers, part.diffusers, "bias"), b),
    };
}

/* One that reads divided sums and writes sums that are not, and one that writes divided ones as well. */
static void multiply(struct maker *m, struct vae_weights w)
{
    m->t->tensors[w.w].factor = VAE_MULTIPLIED;
}

static void divide(struct maker *m, struct vae_weights w)
{
    m->t->tensors[w.b].factor = VAE_DIVIDED;
}

static size_t add_norm(struct maker *m, size_t channels, int rank, struct name part)
{
    struct vae_tensor w = { .rank = rank, .shape = { channels, 1, 1, 1 } };
    size_t index = params_add(&m->t->params, PARAM_VECTOR, 1, channels, "%s",
                              join(m, m->name.official, part.official, "gamma"));
    return add_tensor(m, index, join(m, m->name.diffusers, part.diffusers, "gamma"), w);
}

/* ---- layers ---- */

static struct vae_layer *add_layer(struct maker *m, enum vae_op op, size_t in, size_t out, struct name name)
{
    struct vae_layer *l = ARENA_PUSH(m->arena, m->layers->list, m->layers->n);
    *l = (struct vae_layer){ .op = op, .name = name.official, .in = in, .out = out };
    m->name = name;
    return l;
}

static void add_first(struct maker *m, size_t in, size_t out, struct name name)
{
    struct vae_layer *l = add_layer(m, VAE_CONV, in, out, name);
    l->conv[0] = add_conv(m, &cube, in, out, (struct name){ "", "" });
}

static void add_mix(struct maker *m, size_t channels, size_t out, struct name name)
{
    struct vae_layer *l = add_layer(m, VAE_MIX, channels, out, name);
    m->padded = 2 * channels, m->copies = 2;
    l->conv[0] = add_conv(m, &one, channels, channels, (struct name){ "", "" });
    m->padded = 0, m->copies = 1;
}

static void add_residual(struct maker *m, size_t in, size_t out, struct name name)
{
    struct vae_layer *l = add_layer(m, VAE_RESIDUAL, in, out, name);
    l->norm[0] = add_norm(m, in, 4, (struct name){ "residual.0", "norm1" });
    l->conv[0] = add_conv(m, &cube, in, out, (struct name){ "residual.2", "conv1" });
    l->norm[1] = add_norm(m, out, 4, (struct name){ "residual.3", "norm2" });
    l->conv[1] = add_conv(m, &cube, out, out, (struct name){ "residual.6", "conv2" });
    if (in != out) {
        l->conv[2] = add_conv(m, &one, in, out, (struct name){ "shortcut", "conv_shortcut" });
        multiply(m, l->conv[2]);
    }
}

static void add_attention(struct maker *m, size_t channels, struct name name)
{
    struct vae_layer *l = add_layer(m, VAE_ATTENTION, channels, channels, name);
    l->norm[0] = add_norm(m, channels, 3, (struct name){ "norm", "norm" });
    l->conv[0] = add_conv(m, &one_flat, channels, 3 * channels, (struct name){ "to_qkv", "to_qkv" });
    l->conv[1] = add_conv(m, &one_flat, channels, channels, (struct name){ "proj", "proj" });
}

static void add_resample(struct maker *m, enum vae_op op, size_t in, size_t out, bool time, struct name name)
{
    struct vae_layer *l = add_layer(m, op, in, out, name);
    l->time = time;
    l->conv[0] = add_conv(m, &plane, in, out, (struct name){ "resample.1", "resample.1" });
    if (time)
        l->conv[1] =
            add_conv(m, &line, in, op == VAE_UP ? 2 * in : in, (struct name){ "time_conv", "time_conv" });
    /* On the way up time comes first, on the way down last. */
    size_t last = op == VAE_DOWN && time ? 1 : 0;
    multiply(m, l->conv[last]);
    if (time)
        divide(m, l->conv[1 - last]);
}

static void add_stage_end(struct maker *m, enum vae_op op, size_t in, size_t out, bool time, bool space,
                          const char *name)
{
    struct vae_layer *l = add_layer(m, op, in, out, (struct name){ name, name });
    l->time = time;
    l->by_space = space ? 2 : 1;
}

static void add_middle(struct maker *m, const char *side, size_t channels)
{
#define NAME(official, diffusers)                                 \
    ((struct name){ arena_printf(m->arena, "%s." official, side), \
                    arena_printf(m->arena, "%s." diffusers, side) })
    add_residual(m, channels, channels, NAME("middle.0", "mid_block.resnets.0"));
    add_attention(m, channels, NAME("middle.1", "mid_block.attentions.0"));
    add_residual(m, channels, channels, NAME("middle.2", "mid_block.resnets.1"));
}

static void add_head(struct maker *m, const char *side, size_t in, size_t out)
{
    struct vae_layer *l = add_layer(m, VAE_HEAD, in, out, (struct name){ side, side });
    l->norm[0] = add_norm(m, in, 4, (struct name){ "head.0", "norm_out" });
    l->conv[0] = add_conv(m, &cube, in, out, (struct name){ "head.2", "conv_out" });
    l->name = arena_printf(m->arena, "%s.head", side);
}

/* Block j of stage i; `flat` counts all of them, as Wan 2.1 does. */
static struct name block_name(struct maker *m, const struct vae_info *info, bool encoder, size_t i, size_t j,
                              size_t flat, bool resample)
{
    const char *word = encoder ? "downsamples" : "upsamples", *side = encoder ? "encoder" : "decoder";
    const char *blocks = encoder ? "down_blocks" : "up_blocks";
    if (info->version == 21) {
        const char *official = arena_printf(m->arena, "%s.%s.%zu", side, word, flat);
        if (encoder)
            return (struct name){ official, arena_printf(m->arena, "%s.%s.%zu", side, blocks, flat) };
        return (struct name){ official,
                              resample
                                  ? arena_printf(m->arena, "%s.%s.%zu.upsamplers.0", side, blocks, i)
                                  : arena_printf(m->arena, "%s.%s.%zu.resnets.%zu", side, blocks, i, j) };
    }
    const char *official = arena_printf(m->arena, "%s.%s.%zu.%s.%zu", side, word, i, word, j);
    if (resample)
        return (struct name){ official, arena_printf(m->arena, "%s.%s.%zu.%s", side, blocks, i,
                                                     encoder ? "downsampler" : "upsampler") };
    return (struct name){ official, arena_printf(m->arena, "%s.%s.%zu.resnets.%zu", side, blocks, i, j) };
}

static void make_encoder(struct maker *m, const struct vae_info *info)
{
    enum { BLOCKS = 2 };
    size_t in = info->dim, flat = 0, patch = vae_patch(info);
    m->padded = vae_input_channels(info);
    m->copies = 2;
    add_first(m, 3 * patch * patch, info->dim, (struct name){ "encoder.conv1", "encoder.conv_in" });
    m->padded = 0;
    m->copies = 1;
    m->layers->list[0].in = vae_input_channels(info);
    for (size_t i = 0; i < VAE_STAGES; i++) {
        size_t out = info->dim * multipliers[i], from = in;
        bool down = i + 1 < VAE_STAGES, time = i == 1 || i == 2;
        if (info->version == 22)
            add_layer(m, VAE_STAGE, from, from, (struct name){ "", "" });
        for (size_t j = 0; j < BLOCKS; j++, in = out)
            add_residual(m, in, out, block_name(m, info, true, i, j, flat++, false));
        if (down)
            add_resample(m, VAE_DOWN, out, out, time, block_name(m, info, true, i, BLOCKS, flat++, true));
        if (info->version == 22)
            add_stage_end(m, VAE_STAGE_DOWN, from, out, time, down,
                          arena_printf(m->arena, "encoder.downsamples.%zu", i));
    }
    add_middle(m, "encoder", in);
    add_head(m, "encoder", in, 2 * info->channels);
    add_mix(m, 2 * info->channels, info->channels, (struct name){ "conv1", "quant_conv" });
}

static void make_decoder(struct maker *m, const struct vae_info *info)
{
    enum { BLOCKS = 3 };
    size_t in = info->decoder_dim * multipliers[VAE_STAGES - 1], flat = 0, patch = vae_patch(info);
    add_mix(m, info->channels, info->channels, (struct name){ "conv2", "post_quant_conv" });
    m->padded = 2 * info->channels, m->copies = 2;
    add_first(m, info->channels, in, (struct name){ "decoder.conv1", "decoder.conv_in" });
    m->padded = 0, m->copies = 1;
    add_middle(m, "decoder", in);
    for (size_t i = 0; i < VAE_STAGES; i++) {
        size_t out = info->decoder_dim * multipliers[VAE_STAGES - 1 - i], from = in;
        bool up = i + 1 < VAE_STAGES, time = i < 2;
        if (info->version == 22 && up)
            add_layer(m, VAE_STAGE, from, from, (struct name){ "", "" });
        for (size_t j = 0; j < BLOCKS; j++, in = out)
            add_residual(m, in, out, block_name(m, info, false, i, j, flat++, false));
        if (up) {
            in = info->version == 22 ? out : out / 2;
            add_resample(m, VAE_UP, out, in, time, block_name(m, info, false, i, BLOCKS, flat++, true));
        }
        if (info->version == 22 && up)
            add_stage_end(m, VAE_STAGE_UP, from, out, time, true,
                          arena_printf(m->arena, "decoder.upsamples.%zu", i));
    }
    add_head(m, "decoder", in, 3 * patch * patch);
}

void vae_table_make(struct vae_table *t, const struct vae_info *i, bool encoder, bool decoder)
{
    *t = (struct vae_table){ 0 };
    struct maker m = { .t = t, .arena = &t->params.arena, .layers = &t->encoder, .copies = 1 };
    if (encoder)
        make_encoder(&m, i);
    m.layers = &t->decoder;
    if (decoder)
        make_decoder(&m, i);
}
