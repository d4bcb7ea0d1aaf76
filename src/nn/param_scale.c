/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/param_scale.h"
#include "base/str.h"
#include "tensor/fp8_scaled.h"
#include <stdlib.h>

bool param_scale_is_in(const struct tensor_source *s)
{
    if (source_meta_find(s, FP8_METADATA))
        return true;
    for (size_t i = 0; i < s->n_tensors; i++)
        if (fp8_is_bookkeeping(s->tensors[i].name))
            return true;
    return false;
}

bool param_scale_is_bookkeeping(const struct tensor_source *s, const char *name)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    if (!fp8_is_bookkeeping(name))
        return false;
    const char *weight = fp8_weight_name(&a, name);
    return !weight || source_find(s, weight);
}

int param_scale_find(const struct tensor_source *s, const struct st_tensor *weight, bool file_is_scaled,
                     struct param_scale *out, struct cairn_error *err)
{
    *out = (struct param_scale){ 0 };
    if (!file_is_scaled)
        return 0;
    out->tensor = fp8_scale_of(s, weight);
    if (out->tensor) {
        if (fp8_block_of(weight, out->tensor, &out->block, err))
            return cairn_wrap(err, "%s", source_path_of(s, weight));
        return 0;
    }
    if (!fp8_is(weight->dtype) || weight->rank < 2)
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s: %s is %s without a scale, but the file has scales",
               source_path_of(s, weight), weight->name, weight->dtype_text);
    return cairn_hint(err, "the file is damaged, or in a form of fp8 that is not supported");
}

/* The compiler makes vectors of the lanes. */
static void multiply(float *x, size_t n, float factor)
{
    enum { LANES = 16 };
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++)
            x[i + k] *= factor;
    for (; i < n; i++)
        x[i] *= factor;
}

int param_scale_apply(const struct tensor_source *s, const struct param_scale *scale, uint64_t first,
                      size_t n, float *numbers, struct cairn_error *err)
{
    if (!scale->tensor || !n)
        return 0;
    uint64_t begin = first / scale->block, end = (first + n - 1) / scale->block + 1;
    float one, *values = &one;
    CLEANUP(mem_free) float *many = NULL;
    if (end - begin > 1)
        values = many = malloc((end - begin) * sizeof(*many));
    if (!values)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for scales", scale->tensor->name);
    if (source_read_as(s, scale->tensor, begin, end - begin, DTYPE_F32, values, err))
        return -1;
    for (uint64_t block = begin; block < end; block++) {
        uint64_t from = block * scale->block, to = from + scale->block;
        from = from > first ? from - first : 0;
        to = to - first < n ? to - first : n;
        multiply(numbers + from, to - from, values[block - begin]);
    }
    return 0;
}

bool param_scale_is_by_row(const struct param_scale *scale, uint64_t columns)
{
    return !scale->tensor || scale->block % columns == 0;
}

int param_scale_of_rows(const struct tensor_source *s, const struct param_scale *scale, uint64_t columns,
                        uint64_t first, size_t rows, float *out, struct cairn_error *err)
{
    uint64_t each = scale->tensor ? scale->block / columns : 1; /* rows of a scale */
    uint64_t begin = first / each, end = (first + rows + each - 1) / each;
    if (scale->tensor && source_read_as(s, scale->tensor, begin, end - begin, DTYPE_F32, out, err))
        return -1;
    for (size_t i = rows; i-- > 0;) /* from the end: a row's scale is not behind it */
        out[i] = scale->tensor ? out[(first + i) / each - begin] : 1;
    return 0;
}
