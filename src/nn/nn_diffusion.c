/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/kernels/columns.h"
#include "gpu/kernels/small_linear.h"
#include "gpu/kernels/square_error.h"
#include "nn/nn_inside.h"
#include <assert.h>

/* ---- times ---- */

int nn_small_linear(struct nn *nn, const struct nn_small_linear *l, struct cairn_error *err)
{
    double rows = (double)l->rows, in = (double)l->in, out = (double)l->out;
    struct small_linear_args args = {
        .y = l->y,
        .x = l->x,
        .w = l->w,
        .bias = l->bias,
        .rows = (k_i64)l->rows,
        .in = (k_i64)l->in,
        .out = (k_i64)l->out,
        .silu = l->silu,
    };
    struct nn_launch launch = {
        .kernel = "small_linear",
        .storage = nn->storage,
        .grid = { .x = (unsigned)SMALL_LINEAR_GROUPS(l->out, SMALL_LINEAR_COLUMNS),
                  .y = (unsigned)SMALL_LINEAR_GROUPS(l->rows, SMALL_LINEAR_ROWS) },
        .args = &args,
        .args_size = sizeof(args),
        .out = l->y,
        .n = l->rows * l->out,
        .f32_out = true,
        .flops = 2 * rows * in * out,
        .bytes = in * out * (double)nn_elem_bytes(nn) + 4 * rows * (in + out),
    };
    return nn_launch(nn, &launch, err);
}

int nn_modulation(struct nn *nn, const struct nn_modulation *m, struct cairn_error *err)
{
    assert(m->add_parts <= 1 || m->add_parts == m->parts);
    struct modulation_args args = {
        .y = m->y,
        .x = m->x,
        .add = m->add,
        .sets = (k_i64)m->sets,
        .parts = (k_i64)m->parts,
        .add_parts = (k_i64)m->add_parts,
        .columns = (k_i64)m->columns,
    };
    size_t rows = m->sets * m->parts;
    struct nn_launch launch = {
        .kernel = "modulation",
        .storage = GPU_F32,
        .grid = { .x = (unsigned)K_ROW_GROUPS(rows, m->columns) },
        .args = &args,
        .args_size = sizeof(args),
        NN_OUT(m->y, rows * m->columns, 2),
    };
    return nn_launch(nn, &launch, err);
}

/* ---- gates ---- */

static int launch_gate(struct nn *nn, const struct nn_gate *g, const char *kernel, bool f32_out,
                       struct cairn_error *err)
{
    struct gate_args args = {
        .y = g->y,
        .x = g->x,
        .z = g->z,
        .gate = g->gate,
        .rows = (k_i64)g->rows,
        .columns = (k_i64)g->columns,
        .rows_per_gate = (k_i64)g->rows_per_gate,
    };
    struct nn_launch launch = {
        .kernel = kernel,
        .storage = nn->storage,
        .grid = { .x = (unsigned)K_ROW_GROUPS(g->rows, g->columns) },
        .args = &args,
        .args_size = sizeof(args),
        .f32_out = f32_out,
        NN_OUT(g->y, g->rows * g->columns, (g->x ? 3 : 2) + (f32_out ? 1 : 0)),
    };
    return nn_launch(nn, &launch, err);
}

int nn_gate(struct nn *nn, const struct nn_gate *g, struct cairn_error *err)
{
    bool wide = g->wide && nn->storage != GPU_F32;
    return launch_gate(nn, g, wide ? "gate_wide" : "gate", wide, err);
}

int nn_gate_back(struct nn *nn, const struct nn_gate *g, const struct nn_gate_back *b,
                 struct cairn_error *err)
{
    bool wide = g->wide && nn->storage != GPU_F32;
    struct nn_sums dgate = {
        .y = b->dgate,
        .x = b->dy,
        .z = g->z,
        .rows = g->rows,
        .columns = g->columns,
        .rows_per_set = g->rows_per_gate,
    };
    struct nn_gate dz = *g;
    dz.y = b->dz;
    dz.x = NULL;
    dz.z = b->dy;
    assert(!wide || !b->dgate);
    if (b->dgate && nn_add_sums(nn, &dgate, err))
        return -1;
    return b->dz ? launch_gate(nn, &dz, wide ? "gate_wide_backward" : "gate", false, err) : 0;
}

/* ---- patches ---- */

static size_t volume(struct conv_size p)
{
    return (size_t)(p.t * p.h * p.w);
}

static size_t patches_of(const struct nn_patches *p)
{
    return volume(p->in) / volume(p->patch);
}

static size_t patch_numbers(const struct nn_patches *p)
{
    return p->channels * volume(p->patch);
}

size_t nn_patches_scratch(const struct nn *nn, const struct nn_patches *p)
{
    return patches_of(p) * patch_numbers(p) * nn_elem_bytes(nn);
}

/* The patches of a sample as columns, into the scratch. */
static int columns_of(struct nn *nn, const struct nn_patches *p, size_t sample, struct cairn_error *err)
{
    assert(p->in.t % p->patch.t == 0 && p->in.h % p->patch.h == 0 && p->in.w % p->patch.w == 0);
    size_t n = patches_of(p), rows = patch_numbers(p), skip = sample * p->channels * volume(p->in);
    struct patch_columns_args args = {
        .columns = p->scratch,
        .x = (const char *)p->x + skip * nn_elem_bytes(nn),
        .channels = (k_i64)p->channels,
        .count = (k_i64)n,
        .in = p->in,
        .patch = p->patch,
    };
    struct gpu_grid grid = { .x = (unsigned)((n + PATCH_STEP - 1) / PATCH_STEP), .y = (unsigned)rows };
    return NN_LAUNCH(nn, "patch_columns", grid, args, NN_OUT(p->scratch, n * rows, 2), err);
}

int nn_patches(struct nn *nn, const struct nn_patches *p, struct cairn_error *err)
{
    size_t n = patches_of(p), k = patch_numbers(p);
    for (size_t i = 0; i < p->samples; i++) {
        struct gemm_args args = {
            .c = (char *)p->y + i * n * p->out * nn_elem_bytes(nn),
            .a = p->scratch,
            .b = p->w,
            .bias = p->bias,
            .m = (k_i64)n,
            .n = (k_i64)p->out,
            .k = (k_i64)k,
            .a_stride = (k_i64)n,
            .b_stride = (k_i64)k,
            .c_stride = (k_i64)p->out,
            .alpha = 1,
            .a_transposed = 1,
            .b_transposed = 1,
        };
        if (columns_of(nn, p, i, err) || nn_gemm(nn, "patches", &args, NULL, err))
            return -1;
    }
    return 0;
}

int nn_patches_back(struct nn *nn, const struct nn_patches *p, const struct nn_patches_back *b,
                    struct cairn_error *err)
{
    size_t n = patches_of(p), k = patch_numbers(p);
    struct nn_sums bias = { .y = b->dbias, .x = b->dy, .rows = p->samples * n, .columns = p->out };
    for (size_t i = 0; b->dw && i < p->samples; i++) {
        struct gemm_args args = {
            .c = b->dw,
            .a = (const char *)b->dy + i * n * p->out * nn_elem_bytes(nn),
            .b = p->scratch,
            .m = (k_i64)p->out,
            .n = (k_i64)k,
            .k = (k_i64)n,
            .a_stride = (k_i64)p->out,
            .b_stride = (k_i64)n,
            .c_stride = (k_i64)k,
            .alpha = 1,
            .beta = 1,
            .a_transposed = 1,
            .b_transposed = 1,
            .c_f32 = 1,
        };
        if (columns_of(nn, p, i, err) || nn_gemm(nn, "patches_dw", &args, NULL, err))
            return -1;
    }
    return b->dbias ? nn_add_sums(nn, &bias, err) : 0;
}

/* ---- loss ---- */

size_t nn_square_error_parts(size_t n)
{
    return K_GROUPS(n);
}

int nn_square_error(struct nn *nn, const struct nn_square_error *s, struct cairn_error *err)
{
    struct square_error_args args = {
        .parts = s->parts,
        .dx = s->dx,
        .x = s->x,
        .target = s->target,
        .n = (k_i64)s->n,
        .factor = 2 * s->scale,
    };
    struct gpu_grid grid = { .x = (unsigned)K_GROUPS(s->n), .y = (unsigned)s->samples };
    return NN_LAUNCH(nn, "square_error", grid, args, NN_OUT(s->dx, s->samples * s->n, s->dx ? 4 : 3), err);
}
