/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/conv.h"
#include "gpu/kernels/norm.h"
#include "nn/nn_inside.h"

static struct conv_size or_ones(struct conv_size s)
{
    return (struct conv_size){ s.t + !s.t, s.h + !s.h, s.w + !s.w };
}

static struct conv_args args_of(const struct nn *nn, const struct nn_conv *c)
{
    return (struct conv_args){
        .y = c->y,
        .x = c->x,
        .past = c->past,
        .w = c->w,
        .residual = c->residual,
        .bias = c->bias,
        .past_frames = (k_i64)c->past_frames,
        .channels = (k_i64)c->in,
        .filters = (k_i64)c->out,
        .in = { (k_i64)c->frames, (k_i64)c->height, (k_i64)c->width },
        .kernel = c->kernel,
        .stride = or_ones(c->stride),
        .pad = c->pad,
        .out = { (k_i64)c->out_frames, (k_i64)c->out_height, (k_i64)c->out_width },
        .double_size = c->double_size,
        .y_f32 = c->y_f32 && nn->storage != GPU_F32,
    };
}

size_t nn_conv_workspace(const struct nn *nn, const struct nn_conv *c)
{
    struct conv_args args = args_of(nn, c);
    return conv_workspace_on(nn_device(nn), nn->storage, &args);
}

int nn_reserve_conv(struct nn *nn, size_t bytes, struct cairn_error *err)
{
    if (bytes <= nn->conv_work_bytes)
        return 0;
    gpu_free(nn->g, GPU_MEM_DEVICE, nn->conv_work);
    nn->conv_work = NULL;
    nn->conv_work_bytes = 0;
    if (gpu_alloc(nn->g, GPU_MEM_DEVICE, bytes, &nn->conv_work, err))
        return -1;
    nn->conv_work_bytes = bytes;
    return 0;
}

int nn_conv(struct nn *nn, const struct nn_conv *c, struct cairn_error *err)
{
    struct conv_args args = args_of(nn, c);
    struct conv conv = { .g = nn->g, .stream = nn->stream, .blas = nn->blas, .storage = nn->storage };
    if (nn_reserve_conv(nn, conv_workspace(&conv, &args), err))
        return nn_fail_at(nn, "conv", err);
    conv.work = nn->conv_work;
    conv.work_bytes = nn->conv_work_bytes;
    if (conv_forward(&conv, &args, err))
        return nn_fail_at(nn, "conv", err);
    size_t pixels = c->out_frames * c->out_height * c->out_width;
    double taps = (double)(c->kernel.t * c->kernel.h * c->kernel.w), elem = (double)nn_elem_bytes(nn);
    double in = (double)(c->frames * c->height * c->width * c->in), out = (double)(pixels * c->out);
    struct nn_event e = {
        .op = "conv",
        .out = { { c->y, pixels * c->out } },
        .storage = c->y_f32 ? GPU_F32 : nn->storage,
        .flops = 2 * out * taps * (double)c->in,
        .bytes = (in + taps * (double)(c->in * c->out)) * elem +
                 out * (c->residual ? 2 : 1) * (c->y_f32 ? sizeof(float) : elem),
    };
    return nn_report_op(nn, e, err);
}

int nn_norm_silu(struct nn *nn, const struct nn_norm_silu *n, struct cairn_error *err)
{
    struct norm_silu_args args = {
        .y = n->y, .x = n->x, .w = n->w, .rows = (k_i64)n->rows, .columns = (k_i64)n->columns
    };
    struct gpu_grid grid = { .x = (unsigned)NORM_SILU_GROUPS(args.rows, args.columns) };
    bool wide = n->wide && nn->storage != GPU_F32;
    return NN_LAUNCH(nn, wide ? "norm_silu_wide" : "norm_silu", grid, args,
                     NN_OUT(n->y, n->rows * n->columns, wide ? 3 : 2), err);
}
