/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tensor_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *tensor_shape_text(const struct st_tensor *t, char *buf)
{
    size_t used = (size_t)snprintf(buf, TENSOR_SHAPE_TEXT, "[");
    for (int i = 0; i < t->rank; i++) {
        char one[24];
        size_t n = (size_t)snprintf(one, sizeof(one), "%s%" PRIu64, i ? ", " : "", t->shape[i]);
        if (used + n + sizeof("...]") > TENSOR_SHAPE_TEXT) {
            strcpy(buf + used, "...]");
            return buf;
        }
        memcpy(buf + used, one, n + 1);
        used += n;
    }
    strcpy(buf + used, "]");
    return buf;
}

void tensor_json_head(struct json *o, const struct st_tensor *t)
{
    json_add_text(o, "name", t->name);
    json_add_text(o, "dtype", t->dtype_text);
    struct json *shape = json_add_array(o, "shape");
    for (int i = 0; i < t->rank; i++)
        json_add_int(shape, NULL, (int64_t)t->shape[i]);
    json_add_int(o, "elements", (int64_t)t->elements);
    json_add_int(o, "bytes", (int64_t)t->bytes);
}

void tensor_json_real(struct json *o, const char *key, double v)
{
    if (isfinite(v))
        json_add_real(o, key, v);
    else
        json_add_null(o, key);
}
