/* SPDX-License-Identifier: Apache-2.0 */
#include "media/bucket.h"

#include "base/int.h"
#include <math.h>
#include <stdlib.h>

static int compare_sizes(const void *a, const void *b)
{
    const struct bucket_size *p = a, *q = b;
    if (p->width != q->width)
        return p->width < q->width ? -1 : 1;
    return (p->height > q->height) - (p->height < q->height);
}

static void sort_unique(struct bucket_set *b)
{
    size_t n = 0;
    qsort(b->size, b->n, sizeof(*b->size), compare_sizes);
    for (size_t i = 0; i < b->n; i++)
        if (!n || compare_sizes(&b->size[n - 1], &b->size[i]))
            b->size[n++] = b->size[i];
    b->n = n;
}

int bucket_set_init(struct bucket_set *b, struct bucket_size resolution, size_t step, bool enable,
                    bool no_upscale, struct arena *a, struct cairn_error *err)
{
    enum { MOST = 1 << 15 };
    size_t area = resolution.width * resolution.height;
    *b = (struct bucket_set){ .resolution = resolution, .step = step, .no_upscale = enable && no_upscale };
    if (resolution.width > MOST || resolution.height > MOST || area < step * step)
        return cairn_fail(err, CAIRN_EFORMAT, "a resolution of %zu x %zu: expected %zu to %d",
                          resolution.width, resolution.height, step, MOST);
    if (!enable) {
        *ARENA_PUSH(a, b->size, b->n) = resolution;
        return 0;
    }
    size_t side = (size_t)sqrt((double)area), least = at_least(side / 2 / step * step, step);
    for (size_t w = least; w < side + step; w += step) {
        size_t h = area / w / step * step;
        if (!h)
            continue;
        *ARENA_PUSH(a, b->size, b->n) = (struct bucket_size){ w, h };
        *ARENA_PUSH(a, b->size, b->n) = (struct bucket_size){ h, w };
    }
    sort_unique(b);
    return 0;
}

struct bucket_size bucket_set_choose(const struct bucket_set *b, size_t width, size_t height)
{
    if (b->no_upscale && width * height <= b->resolution.width * b->resolution.height)
        return (struct bucket_size){ width / b->step * b->step, height / b->step * b->step };
    double aspect = (double)width / (double)height, nearest = INFINITY;
    size_t best = 0;
    for (size_t i = 0; i < b->n; i++) {
        double off = fabs((double)b->size[i].width / (double)b->size[i].height - aspect);
        if (off < nearest) {
            nearest = off;
            best = i;
        }
    }
    return b->size[best];
}

struct bucket_size bucket_of_area(size_t width, size_t height, size_t side, size_t step)
{
    double total = (double)width * (double)height, most = (double)side * (double)side;
    double target = total < most ? total : most, scale = sqrt(target / total), s = (double)step;
    double w = (double)width * scale / s, h = (double)height * scale / s, nearest = INFINITY;
    struct bucket_size best = { at_least((size_t)floor(w), 1) * step, at_least((size_t)floor(h), 1) * step };
    for (int i = 0; i < 4; i++) {
        double cw = (i & 2 ? ceil(w) : floor(w)) * s, ch = (i & 1 ? ceil(h) : floor(h)) * s;
        double off = fabs(cw * ch - target);
        if (cw > 0 && ch > 0 && cw * ch <= most && off < nearest) {
            nearest = off;
            best = (struct bucket_size){ (size_t)cw, (size_t)ch };
        }
    }
    return best;
}
