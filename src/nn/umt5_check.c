/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "nn/umt5_inside.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static enum umt5_row kind_of(const float *x, size_t dim)
{
    float sum = 0;
    size_t same = 1;
    for (size_t i = 0; i < dim; i++)
        sum += fabsf(x[i]) * 0; /* NaN if one is not finite */
    while (same < dim && x[same] == x[0])
        same++;
    return !isfinite(sum) ? UMT5_ROW_ODD : same == dim && dim > 1 ? UMT5_ROW_CONSTANT : UMT5_ROW_FINE;
}

struct checking {
    const float *rows;
    size_t dim;
    uint8_t *kinds;
};

static int check_row(void *context, size_t row, struct cairn_error *err)
{
    const struct checking *c = context;
    (void)err;
    c->kinds[row] = (uint8_t)kind_of(c->rows + row * c->dim, c->dim);
    return 0;
}

int umt5_check_rows(const float *rows, size_t n, size_t dim, uint8_t *kinds, struct cairn_error *err)
{
    struct checking c = { rows, dim, kinds };
    return parallel_for(n, 0, check_row, &c, err);
}

static int find_constant(struct nn_watcher *w, struct nn *nn, const struct nn_event *e,
                         struct cairn_error *err)
{
    struct umt5_constant_finder *f = (struct umt5_constant_finder *)w;
    size_t bytes = f->dim * storage_size(e->storage);
    if (f->found || !e->out[0].at || e->out[0].n != f->rows * f->dim)
        return 0;
    CLEANUP(mem_free) char *raw = malloc(bytes);
    CLEANUP(mem_free) float *row = malloc(f->dim * sizeof(*row));
    if (!raw || !row)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (gpu_download(nn->g, nn->stream, raw, (const char *)e->out[0].at + f->row * bytes, bytes, err) ||
        gpu_wait(nn->g, nn->stream, err))
        return -1;
    dtype_convert(row, DTYPE_F32, raw, storage_dtype(e->storage), f->dim, &(struct dtype_how){ 0 });
    f->found = kind_of(row, f->dim) != UMT5_ROW_FINE;
    snprintf(f->where, sizeof(f->where), "%s", e->where);
    snprintf(f->op, sizeof(f->op), "%s", e->op);
    return 0;
}

void umt5_constant_finder_init(struct umt5_constant_finder *f)
{
    f->watcher = (struct nn_watcher){ find_constant };
}
