/* SPDX-License-Identifier: Apache-2.0
 * Convolutions on the CPU: a matmul whose left matrix is gathered while it is packed, so that it is never in memory as a
 * whole. */
#include "gpu/conv_way.h"

#include "gpu/backend.h"
#include "gpu/gemm_cpu.h"
#include <string.h>

struct gather {
    const struct conv_args *a;
    size_t size; /* bytes of a number */
};

/* What a pixel of the result sees of one row of x; `to` has room for kernel.w pixels. */
static void gather_line(const struct gather *g, const char *line, k_i64 column, char *to)
{
    const struct conv_args *a = g->a;
    size_t pixel = (size_t)a->channels * g->size;
    k_i64 begin = column * a->stride.w - a->pad.w, wide = a->in.w << a->double_size;
    if (begin >= 0 && begin + a->kernel.w <= wide && !a->double_size) {
        memcpy(to, line + (size_t)begin * pixel, (size_t)a->kernel.w * pixel);
        return;
    }
    for (k_i64 k = 0; k < a->kernel.w; k++, to += pixel)
        if (begin + k < 0 || begin + k >= wide)
            memset(to, 0, pixel);
        else
            memcpy(to, line + (size_t)((begin + k) >> a->double_size) * pixel, pixel);
}

static void gather_pixel(const struct gather *g, k_i64 place, char *to)
{
    const struct conv_args *a = g->a;
    size_t bytes = (size_t)(a->kernel.w * a->channels) * g->size;
    size_t line = (size_t)(a->in.w * a->channels) * g->size;
    k_i64 column = place % a->out.w, row = place / a->out.w % a->out.h, frame = place / a->out.w / a->out.h;
    for (k_i64 kt = a->first_t; kt < a->first_t + a->count_t; kt++) {
        k_i64 t = frame * a->stride.t + kt - a->pad.t;
        const char *x = t >= a->in.t                         ? NULL
                        : t >= 0                             ? a->x
                        : a->past && t + a->past_frames >= 0 ? a->past
                                                             : NULL;
        t += t < 0 ? a->past_frames : 0;
        for (k_i64 kh = 0; kh < a->kernel.h; kh++, to += bytes) {
            k_i64 h = row * a->stride.h + kh - a->pad.h;
            if (!x || h < 0 || h >= a->in.h << a->double_size)
                memset(to, 0, bytes);
            else
                gather_line(g, x + (size_t)(t * a->in.h + (h >> a->double_size)) * line, column, to);
        }
    }
}

static void gather_rows(const void *context, size_t row, size_t n, void *to)
{
    const struct gather *g = context;
    const struct conv_args *a = g->a;
    size_t bytes = (size_t)(a->count_t * a->kernel.h * a->kernel.w * a->channels) * g->size;
    for (size_t i = 0; i < n; i++)
        gather_pixel(g, a->first + (k_i64)(row + i), (char *)to + i * bytes);
}

static bool fits(const struct conv *c, const struct conv_args *a)
{
    (void)a;
    return c->g->info.api == GPU_API_HOST && !c->g->fault && !c->only;
}

/* Frames that see the kernel's same frames are one matmul. */
static int run(const struct conv *c, const struct conv_args *args, struct cairn_error *err)
{
    struct conv_args a = *args;
    struct gather g = { &a, conv_number_size(c->storage) };
    k_i64 area = a.out.h * a.out.w, line = a.kernel.h * a.kernel.w * a.channels;
    for (k_i64 t = 0, end; t < a.out.t; t = end) {
        struct conv_args next = a;
        conv_set_frames(&a, t);
        for (end = t + 1; end < a.out.t; end++) {
            conv_set_frames(&next, end);
            if (next.first_t != a.first_t || next.count_t != a.count_t)
                break;
        }
        a.first = t * area, a.count = (end - t) * area;
        size_t at = conv_result_at(c->storage, &a);
        bool adds_f32 = a.y_f32 && a.residual;
        struct gemm_args m = {
            .c = (char *)a.y + at,
            .b = (const char *)a.w + (size_t)(a.first_t * line) * g.size,
            .residual = a.residual && !adds_f32 ? (const char *)a.residual + at : NULL,
            .bias = a.bias,
            .m = a.count,
            .n = a.filters,
            .k = a.count_t * line,
            .a_stride = a.count_t * line,
            .b_stride = a.kernel.t * line,
            .c_stride = a.filters,
            .alpha = 1,
            .beta = adds_f32 ? 1 : 0,
            .b_transposed = 1,
            .c_f32 = a.y_f32,
        };
        if (gemm_cpu_run_rows(c->g, c->storage, &m, &(struct gemm_cpu_rows){ gather_rows, &g }, err))
            return -1;
    }
    return 0;
}

const struct conv_way conv_by_cpu = { "conv_cpu", fits, run };
