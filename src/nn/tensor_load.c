/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/tensor_load.h"
#include "base/arena.h"

struct reading {
    const struct tensor_source *source;
    const struct tensor_want *want;
    size_t size; /* of a number on the device */
};

static int read_numbers(void *context, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    const struct reading *r = context;
    const struct tensor_want *w = r->want;
    if (w->as == w->tensor->dtype)
        return source_read_bytes(r->source, w->tensor, at, n, bytes, err);
    return source_read_as(r->source, w->tensor, at / r->size, n / r->size, w->as, bytes, err);
}

int tensor_load(struct gpu *g, const struct tensor_source *s, const struct tensor_want *wants, size_t n,
                const struct transfer_options *o, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct transfer_part *parts = ARENA_NEW(&a, struct transfer_part, n + 1);
    struct reading *readings = ARENA_NEW(&a, struct reading, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct st_tensor *t = wants[i].tensor;
        bool same = wants[i].as == t->dtype;
        size_t size = dtype_size(wants[i].as);
        readings[i] = (struct reading){ s, &wants[i], size };
        parts[i] = (struct transfer_part){ .device = wants[i].device,
                                           .bytes = same ? t->bytes : t->elements * size,
                                           .unit = size,
                                           .move = read_numbers,
                                           .context = &readings[i],
                                           .on_host = wants[i].on_host };
    }
    return transfer_up(gpu_transfer(g), parts, n, o, err) ? -1 : source_unchanged(s, err);
}
