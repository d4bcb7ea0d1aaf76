/* SPDX-License-Identifier: Apache-2.0
 * A chunk of a clip through the layers.  The same code first runs dry, which gives the sizes. */
#include "base/int.h"
#include "gpu/gemm_cpu.h"
#include "nn/nn_inside.h"
#include "nn/vae_inside.h"
#include "nn/work_memory.h"
#include <assert.h>
#include <math.h>

/* The model divides by the length of a row, 1e-12 at least; this is less than what rounding does. */
#define NORM_EPSILON 1e-24f

enum {
    SCORES_MOST = 64 << 20, /* bytes of f32 scores in attention; a row if that is more */
    SHARES_FACTOR = 1024,   /* of 16-bit shares: those of a large frame would be subnormal */
};

/* ---- memory ---- */

size_t vae_numbers(const struct vae_activation *x)
{
    return x->frames * x->height * x->width * x->channels;
}

static size_t elem_bytes(const struct vae_pass *p, const struct vae_activation *x)
{
    return x->wide ? sizeof(float) : nn_elem_bytes(p->v->nn);
}

static size_t frame_bytes(const struct vae_pass *p, const struct vae_activation *x)
{
    return x->height * x->width * x->channels * elem_bytes(p, x);
}

static struct vae_activation reserve(struct vae_pass *p, struct vae_activation x)
{
    x.at = vae_memory_add(p->memory, x.frames * frame_bytes(p, &x));
    return x;
}

struct vae_activation vae_new(struct vae_pass *p, size_t frames, size_t height, size_t width, size_t channels)
{
    return reserve(p, (struct vae_activation){ 0, frames, height, width, channels, false });
}

static struct vae_activation new_wide(struct vae_pass *p, size_t frames, size_t height, size_t width,
                                      size_t channels)
{
    return reserve(p, (struct vae_activation){ 0, frames, height, width, channels, true });
}

static struct vae_activation new_like(struct vae_pass *p, const struct vae_activation *x, size_t channels)
{
    return vae_new(p, x->frames, x->height, x->width, channels);
}

static struct vae_activation new_wide_like(struct vae_pass *p, const struct vae_activation *x,
                                           size_t channels)
{
    return new_wide(p, x->frames, x->height, x->width, channels);
}

void vae_drop(struct vae_pass *p, const struct vae_activation *x)
{
    vae_memory_drop(p->memory, x->at);
}

void *vae_at(const struct vae_pass *p, const struct vae_activation *x)
{
    return p->memory->base ? p->memory->base + x->at : NULL;
}

/* Frame i of x. */
static char *frame_at(const struct vae_pass *p, const struct vae_activation *x, size_t i)
{
    char *at = vae_at(p, x);
    return at ? at + i * frame_bytes(p, x) : NULL;
}

/* ---- parameters ---- */

static const float *vector(const struct vae_pass *p, size_t index)
{
    return weights_vector(&p->v->weights, &p->v->table.params.list[index]);
}

static int matrix(const struct vae_pass *p, size_t index, void **out, struct cairn_error *err)
{
    return weights_matrix(&p->v->weights, p->v->nn->stream, &p->v->table.params.list[index], out, err);
}

/* The CPU packs the operands of matmuls. */
static void count_packed(struct vae_pass *p, size_t floats)
{
    size_t packed = floats * sizeof(float);
    p->packed = packed > p->packed ? packed : p->packed;
}

static bool is_on_cpu(const struct vae_pass *p)
{
    return nn_device(p->v->nn)->api == GPU_API_HOST && gpu_info(p->v->nn->g)->api == GPU_API_HOST;
}

static void count_matmul(struct vae_pass *p, size_t m, size_t n, size_t k)
{
    if (is_on_cpu(p))
        count_packed(p, gemm_cpu_scratch(p->v->nn->g, m, n, k));
}

/* ---- what convolutions have seen before ---- */

/* Keeps the last `most` frames of the n that begin at x, behind those that are kept already. */
static int keep_frames(struct vae_pass *p, struct vae_past *past, const char *x, size_t n, size_t frame,
                       size_t most, struct cairn_error *err)
{
    struct nn *nn = p->v->nn;
    size_t added = n < most ? n : most, kept = past->frames + added < most ? past->frames : most - added;
    size_t moved = past->frames - kept; /* that leave at the front */
    past->frames = kept + added;
    if (p->dry)
        return 0;
    char *to = p->stream->base + past->at;
    if (moved && kept && gpu_copy(nn->g, nn->stream, to, to + moved * frame, kept * frame, err))
        return -1;
    return gpu_copy(nn->g, nn->stream, to + kept * frame, x + (n - added) * frame, added * frame, err);
}

/* The place of the next convolution's past, of so many frames of so many bytes. */
static struct vae_past *next_past(struct vae_pass *p, size_t bytes)
{
    assert(p->convs < VAE_MOST_CONVS);
    struct vae_past *past = &p->stream->past[p->convs++];
    if (p->first) {
        *past = (struct vae_past){ .at = p->stream->bytes };
        if (!p->last)
            p->stream->bytes += align_up(bytes, WORK_ALIGN);
    }
    return past;
}

/* A convolution of frames of x from `skip` on, into frames of y from `into` on. */
struct conv_step {
    const struct vae_activation *x, *y;
    size_t skip, into;
    bool add; /* to the contents of y */
    struct vae_weights weights;
    struct conv_size kernel, stride, pad;
    size_t keep; /* frames for the next chunk */
    bool double_size;
};

/* The first frames of a clip see fewer of the kernel's: the others are one matmul. */
static void count_conv(struct vae_pass *p, const struct nn_conv *c)
{
    if (!is_on_cpu(p))
        return;
    size_t pad = (size_t)c->pad.t, missing = pad > c->past_frames ? pad - c->past_frames : 0;
    size_t frames = c->out_frames > missing ? c->out_frames - missing : 1, seen = (size_t)c->kernel.t;
    if (c->out_frames <= missing)
        seen = c->past_frames + c->frames;
    size_t m = frames * c->out_height * c->out_width, k = seen * (size_t)(c->kernel.h * c->kernel.w) * c->in;
    count_packed(p, gemm_cpu_scratch_rows(p->v->nn->g, p->v->nn->storage, m, c->out, k));
}

static int conv(struct vae_pass *p, const struct conv_step *s, struct cairn_error *err)
{
    const struct vae_activation *x = s->x, *y = s->y;
    size_t frame = frame_bytes(p, x);
    struct vae_past *past = s->keep ? next_past(p, s->keep * frame) : NULL;
    struct nn_conv c = {
        .frames = x->frames - s->skip,
        .height = x->height,
        .width = x->width,
        .in = x->channels,
        .out = y->channels,
        .out_frames = y->frames - s->into,
        .out_height = y->height,
        .out_width = y->width,
        .kernel = s->kernel,
        .stride = s->stride,
        .pad = s->pad,
        .double_size = s->double_size,
        .y_f32 = y->wide,
    };
    /* A frame that skips the convolution over time is still seen by the first that does not, on the way down. */
    if (s->skip && s->stride.t == 2)
        c.past_frames = 1;
    else if (past)
        c.past_frames = past->frames;
    size_t work = nn_conv_workspace(p->v->nn, &c);
    p->work = work > p->work ? work : p->work;
    count_conv(p, &c);
    if (!p->dry) {
        void *w;
        if (matrix(p, s->weights.w, &w, err))
            return -1;
        c.w = w;
        c.bias = vector(p, s->weights.b);
        c.x = frame_at(p, x, s->skip);
        c.y = frame_at(p, y, s->into);
        c.residual = s->add ? c.y : NULL;
        if (c.past_frames)
            c.past = s->skip ? (const void *)frame_at(p, x, s->skip - 1) : p->stream->base + past->at;
        if (nn_conv(p->v->nn, &c, err))
            return -1;
    }
    if (!past || p->last)
        return 0;
    return keep_frames(p, past, frame_at(p, x, s->skip), c.frames, frame, s->keep, err);
}

static struct conv_step cube(const struct vae_activation *x, const struct vae_activation *y,
                             struct vae_weights w)
{
    return (struct conv_step){
        .x = x, .y = y, .weights = w, .kernel = { 3, 3, 3 }, .pad = { 2, 1, 1 }, .keep = 2
    };
}

static int copy_frame(struct vae_pass *p, const struct vae_activation *y, const struct vae_activation *x,
                      struct cairn_error *err)
{
    struct nn *nn = p->v->nn;
    return p->dry ? 0 : gpu_copy(nn->g, nn->stream, vae_at(p, y), vae_at(p, x), frame_bytes(p, x), err);
}

/* Sums in the storage format: a copy that is divided, unless that is f32. */
static int narrow(struct vae_pass *p, const struct vae_activation *x, struct vae_activation *y,
                  struct cairn_error *err)
{
    *y = *x;
    y->wide = false;
    if (elem_bytes(p, y) == sizeof(float))
        return 0;
    *y = reserve(p, *y);
    return p->dry ? 0
                  : vae_narrow(p->v->nn, vae_at(p, y), vae_at(p, x), vae_numbers(x), vae_shrink(p->v), err);
}

/* The same for an x that nobody needs then. */
static int become_narrow(struct vae_pass *p, struct vae_activation *x, struct cairn_error *err)
{
    struct vae_activation y;
    if (narrow(p, x, &y, err))
        return -1;
    if (y.at != x->at)
        vae_drop(p, x);
    *x = y;
    return 0;
}

/* x as two numbers each; that is what x may be already. */
static int become_split(struct vae_pass *p, struct vae_activation *x, struct cairn_error *err)
{
    if (!x->wide)
        return 0;
    struct vae_activation y = new_like(p, x, 2 * x->channels);
    if (!p->dry &&
        vae_split(p->v->nn, vae_at(p, &y), vae_at(p, x), vae_numbers(x) / x->channels, x->channels, err))
        return -1;
    vae_drop(p, x);
    *x = y;
    return 0;
}

/* ---- layers ---- */

static int norm_silu(struct vae_pass *p, const struct vae_activation *y, const struct vae_activation *x,
                     size_t gamma, struct cairn_error *err)
{
    if (p->dry)
        return 0;
    struct nn_norm_silu n = { .x = vae_at(p, x),
                              .y = vae_at(p, y),
                              .w = vector(p, gamma),
                              .rows = vae_numbers(x) / x->channels,
                              .columns = x->channels,
                              .wide = x->wide };
    return nn_norm_silu(p->v->nn, &n, err);
}

/* The same without SiLU. */
static int norm(struct vae_pass *p, const struct vae_activation *y, const struct vae_activation *x,
                size_t gamma, struct cairn_error *err)
{
    size_t rows = vae_numbers(x) / x->channels, rstd = vae_memory_add(p->memory, rows * sizeof(float));
    vae_memory_drop(p->memory, rstd); /* nobody reads it */
    if (p->dry)
        return 0;
    struct nn_norm n = { .kind = NN_NORM_RMS,
                         .x = vae_at(p, x),
                         .y = vae_at(p, y),
                         .w = vector(p, gamma),
                         .rstd = (float *)(void *)(p->memory->base + rstd),
                         .rows = rows,
                         .columns = x->channels,
                         .epsilon = NORM_EPSILON,
                         .wide = x->wide };
    return nn_norm(p->v->nn, &n, err);
}

static int linear(struct vae_pass *p, const struct vae_activation *y, const struct vae_activation *x,
                  struct vae_weights w, struct cairn_error *err)
{
    void *m;
    count_matmul(p, vae_numbers(x) / x->channels, y->channels, x->channels);
    if (p->dry)
        return 0;
    if (matrix(p, w.w, &m, err))
        return -1;
    struct nn_linear l = { .x = vae_at(p, x),
                           .w = m,
                           .bias = vector(p, w.b),
                           .y = vae_at(p, y),
                           .rows = vae_numbers(x) / x->channels,
                           .in = x->channels,
                           .out = y->channels,
                           .y_f32 = y->wide };
    return nn_linear(p->v->nn, &l, err);
}

static void become(struct vae_pass *p, struct vae_activation *x, const struct vae_activation *y)
{
    vae_drop(p, x);
    *x = *y;
}

static int run_conv(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                    struct cairn_error *err)
{
    if (become_split(p, x, err))
        return -1;
    struct vae_activation y = new_wide_like(p, x, l->out);
    struct conv_step step = cube(x, &y, l->conv[0]);
    if (conv(p, &step, err))
        return -1;
    become(p, x, &y);
    return 0;
}

static int run_mix(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                   struct cairn_error *err)
{
    if (become_split(p, x, err))
        return -1;
    struct vae_activation y = new_wide_like(p, x, l->out);
    if (linear(p, &y, x, l->conv[0], err))
        return -1;
    become(p, x, &y);
    return 0;
}

static int run_head(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                    struct cairn_error *err)
{
    struct vae_activation a = new_like(p, x, l->in), y;
    if (norm_silu(p, &a, x, l->norm[0], err))
        return -1;
    become(p, x, &a);
    y = new_wide_like(p, x, l->out);
    struct conv_step step = cube(x, &y, l->conv[0]);
    if (conv(p, &step, err))
        return -1;
    become(p, x, &y);
    return 0;
}

/* What the second convolution of a block adds to: the shortcut, or x.  With keep_x somebody else still needs x. */
static int start_sum(struct vae_pass *p, const struct vae_layer *l, const struct vae_activation *x,
                     bool keep_x, struct vae_activation *y, struct cairn_error *err)
{
    struct nn *nn = p->v->nn;
    struct vae_activation seen;
    if (l->in == l->out) {
        *y = keep_x ? new_wide_like(p, x, l->out) : *x;
        return p->dry || !keep_x ? 0
                                 : gpu_copy(nn->g, nn->stream, vae_at(p, y), vae_at(p, x),
                                            x->frames * frame_bytes(p, x), err);
    }
    if (narrow(p, x, &seen, err))
        return -1;
    *y = new_wide_like(p, x, l->out);
    if (linear(p, y, &seen, l->conv[2], err))
        return -1;
    if (seen.at != x->at)
        vae_drop(p, &seen);
    if (!keep_x)
        vae_drop(p, x);
    return 0;
}

static int run_residual(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x, bool keep_x,
                        struct cairn_error *err)
{
    struct vae_activation a = new_like(p, x, l->in), b = new_like(p, x, l->out), y;
    struct conv_step one = cube(&a, &b, l->conv[0]), two = cube(&b, &y, l->conv[1]);
    two.add = true;
    if (norm_silu(p, &a, x, l->norm[0], err) || conv(p, &one, err))
        return -1;
    vae_drop(p, &a);
    if (norm_silu(p, &b, &b, l->norm[1], err) || start_sum(p, l, x, keep_x, &y, err) || conv(p, &two, err))
        return -1;
    vae_drop(p, &b);
    *x = y;
    return 0;
}

/* Queries first … first + n - 1 of a frame.  Sizes are of a frame. */
struct attention {
    const char *qkv;
    char *out;
    float *scores;
    void *shares;
    size_t rows, channels;
};

static int attend(struct vae_pass *p, const struct attention *a, size_t first, size_t n,
                  struct cairn_error *err)
{
    struct nn *nn = p->v->nn;
    size_t elem = nn_elem_bytes(nn), stride = 3 * a->channels;
    float factor = nn->storage == GPU_F32 ? 1 : SHARES_FACTOR;
    struct gemm_args scores = { .c = a->scores,
                                .a = a->qkv + first * stride * elem,
                                .b = a->qkv + a->channels * elem,
                                .m = (k_i64)n,
                                .n = (k_i64)a->rows,
                                .k = (k_i64)a->channels,
                                .a_stride = (k_i64)stride,
                                .b_stride = (k_i64)stride,
                                .c_stride = (k_i64)a->rows,
                                .alpha = 1,
                                .b_transposed = 1,
                                .c_f32 = 1 };
    struct gemm_args out = { .c = a->out + first * a->channels * elem,
                             .a = a->shares,
                             .b = a->qkv + 2 * a->channels * elem,
                             .m = (k_i64)n,
                             .n = (k_i64)a->channels,
                             .k = (k_i64)a->rows,
                             .a_stride = (k_i64)a->rows,
                             .b_stride = (k_i64)stride,
                             .c_stride = (k_i64)a->channels,
                             .alpha = 1 / factor };
    struct vae_softmax softmax = { .y = a->shares,
                                   .x = a->scores,
                                   .rows = n,
                                   .columns = a->rows,
                                   .scale = 1 / sqrtf((float)a->channels),
                                   .factor = factor };
    return nn_gemm(nn, "scores", &scores, NULL, err) || vae_softmax(nn, &softmax, err) ||
                   nn_gemm(nn, "attend", &out, NULL, err)
               ? -1
               : 0;
}

static int run_attention(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                         struct cairn_error *err)
{
    size_t rows = x->height * x->width, elem = nn_elem_bytes(p->v->nn), row = rows * sizeof(float);
    size_t piece = row < SCORES_MOST ? SCORES_MOST / row : 1;
    piece = piece < rows ? piece : rows;
    struct vae_activation a = new_like(p, x, l->in), qkv = new_like(p, x, 3 * l->in);
    if (norm(p, &a, x, l->norm[0], err) || linear(p, &qkv, &a, l->conv[0], err))
        return -1;
    count_matmul(p, piece, rows, l->in);
    count_matmul(p, piece, l->in, rows);
    size_t scores = vae_memory_add(p->memory, piece * row);
    size_t shares = elem < sizeof(float) ? vae_memory_add(p->memory, piece * rows * elem) : scores;
    for (size_t f = 0; !p->dry && f < x->frames; f++) {
        struct attention one = { .qkv = frame_at(p, &qkv, f),
                                 .out = frame_at(p, &a, f),
                                 .scores = (float *)(void *)(p->memory->base + scores),
                                 .shares = p->memory->base + shares,
                                 .rows = rows,
                                 .channels = l->in };
        for (size_t first = 0; first < rows; first += piece)
            if (attend(p, &one, first, rows - first < piece ? rows - first : piece, err))
                return -1;
    }
    vae_memory_drop(p->memory, scores);
    if (shares != scores)
        vae_memory_drop(p->memory, shares);
    vae_drop(p, &qkv);
    struct vae_activation y = new_wide_like(p, x, l->out);
    if (linear(p, &y, &a, l->conv[1], err) ||
        (!p->dry && vae_add(p->v->nn, vae_at(p, &y), vae_at(p, x), vae_numbers(x), err)))
        return -1;
    vae_drop(p, &a);
    become(p, x, &y);
    return 0;
}

/* Two frames become one, but the first frame of a clip passes as it is. */
static int halve_frames(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                        struct cairn_error *err)
{
    size_t alone = p->first ? 1 : 0, rows = x->height * x->width;
    struct vae_activation y = new_wide(p, alone + (x->frames - alone) / 2, x->height, x->width, l->out);
    struct conv_step time = { .x = x,
                              .y = &y,
                              .skip = alone,
                              .into = alone,
                              .weights = l->conv[1],
                              .kernel = { 3, 1, 1 },
                              .stride = { 2, 1, 1 },
                              .pad = { 1, 0, 0 },
                              .keep = 1 };
    if (alone && !p->dry &&
        vae_widen(p->v->nn, vae_at(p, &y), vae_at(p, x), rows * l->out, 1 / vae_shrink(p->v), err))
        return -1;
    if (x->frames > alone) {
        if (conv(p, &time, err))
            return -1;
    } else {
        size_t frame = frame_bytes(p, x);
        struct vae_past *past = next_past(p, frame);
        if (!p->last && keep_frames(p, past, vae_at(p, x), 1, frame, 1, err))
            return -1;
    }
    become(p, x, &y);
    return 0;
}

static int run_down(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                    struct cairn_error *err)
{
    if (become_narrow(p, x, err))
        return -1;
    struct vae_activation y = { 0, x->frames, x->height / 2, x->width / 2, l->out, !l->time };
    struct conv_step flat = {
        .x = x, .y = &y, .weights = l->conv[0], .kernel = { 1, 3, 3 }, .stride = { 1, 2, 2 }
    };
    y = reserve(p, y);
    if (conv(p, &flat, err))
        return -1;
    become(p, x, &y);
    return l->time ? halve_frames(p, l, x, err) : 0;
}

/* Frames from `alone` on become two each. */
static int double_frames(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                         struct cairn_error *err)
{
    size_t alone = p->first ? 1 : 0, more = x->frames - alone, rows = x->height * x->width;
    if (!more) {
        next_past(p, 2 * rows * l->in * nn_elem_bytes(p->v->nn)); /* the first frame is not seen */
        return 0;
    }
    struct vae_activation pairs = vae_new(p, more, x->height, x->width, 2 * l->in);
    struct conv_step time = { .x = x,
                              .y = &pairs,
                              .skip = alone,
                              .weights = l->conv[1],
                              .kernel = { 3, 1, 1 },
                              .pad = { 2, 0, 0 },
                              .keep = 2 };
    if (conv(p, &time, err))
        return -1;
    struct vae_activation y = vae_new(p, alone + 2 * more, x->height, x->width, l->in);
    if (alone && copy_frame(p, &y, x, err))
        return -1;
    vae_drop(p, x);
    if (!p->dry &&
        vae_split_frames(p->v->nn, frame_at(p, &y, alone), vae_at(p, &pairs), more, rows, l->in, err))
        return -1;
    vae_drop(p, &pairs);
    *x = y;
    return 0;
}

static int run_up(struct vae_pass *p, const struct vae_layer *l, struct vae_activation *x,
                  struct cairn_error *err)
{
    if (become_narrow(p, x, err) || (l->time && double_frames(p, l, x, err)))
        return -1;
    struct vae_activation y = new_wide(p, x->frames, 2 * x->height, 2 * x->width, l->out);
    struct conv_step flat = {
        .x = x, .y = &y, .weights = l->conv[0], .kernel = { 1, 3, 3 }, .pad = { 0, 1, 1 }, .double_size = true
    };
    if (conv(p, &flat, err))
        return -1;
    become(p, x, &y);
    return 0;
}

static int end_stage(struct vae_pass *p, const struct vae_layer *l, const struct vae_activation *y,
                     const struct vae_activation *from, struct cairn_error *err)
{
    struct vae_shortcut s = { .y = vae_at(p, y),
                              .x = vae_at(p, from),
                              .shape = y,
                              .in = l->in,
                              .by_time = l->time ? 2 : 1,
                              .by_space = l->by_space,
                              .up = l->op == VAE_STAGE_UP };
    s.lead = l->time && p->first ? 1 : 0;
    if (!p->dry && vae_shortcut(p->v->nn, &s, err))
        return -1;
    vae_drop(p, from);
    return 0;
}

int vae_run_layers(struct vae_pass *p, const struct vae_layers *layers, struct vae_activation *x,
                   struct cairn_error *err)
{
    struct vae_activation from = { 0 };
    bool keep = false;
    int r = 0;
    for (size_t i = 0; !r && i < layers->n; i++) {
        const struct vae_layer *l = &layers->list[i];
        if (!p->dry)
            nn_at(p->v->nn, "%s", l->name);
        switch (l->op) {
        case VAE_CONV:
            r = run_conv(p, l, x, err);
            break;
        case VAE_RESIDUAL:
            r = run_residual(p, l, x, keep, err);
            break;
        case VAE_ATTENTION:
            r = run_attention(p, l, x, err);
            break;
        case VAE_DOWN:
            r = run_down(p, l, x, err);
            break;
        case VAE_UP:
            r = run_up(p, l, x, err);
            break;
        case VAE_HEAD:
            r = run_head(p, l, x, err);
            break;
        case VAE_MIX:
            r = run_mix(p, l, x, err);
            break;
        case VAE_STAGE:
            from = *x;
            break;
        case VAE_STAGE_DOWN:
        case VAE_STAGE_UP:
            r = end_stage(p, l, x, &from, err);
            break;
        }
        keep = l->op == VAE_STAGE;
    }
    return r;
}
