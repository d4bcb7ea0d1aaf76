/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/fp8_scaled.h"

#include "base/str.h"
#include "tensor/dtype_scalar.h"
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_COLUMNS = 64 };

static const char *const grains[] = { "plain", "tensor", "channel", "block64" };

bool fp8_grain_parse(const char *word, enum fp8_grain *out)
{
    for (size_t i = FP8_TENSOR; i < ARRAY_LEN(grains); i++)
        if (!strcmp(word, grains[i]))
            return *out = (enum fp8_grain)i, true;
    return false;
}

bool fp8_is(enum dtype t)
{
    return t == DTYPE_F8_E4M3 || t == DTYPE_F8_E5M2;
}

static const char weight_suffix[] = ".weight";
enum { N_SCALE_SUFFIXES = 2 }; /* then come the hints */
static const char *const suffixes[] = { ".scale_weight", ".weight_scale", ".scale_input", ".input_scale",
                                        ".comfy_quant" };

static const char *suffix_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (str_ends(name, suffixes[i]))
            return suffixes[i];
    return NULL;
}

bool fp8_is_bookkeeping(const char *name)
{
    return !strcmp(name, FP8_MARKER) || str_ends(name, "." FP8_MARKER) || suffix_of(name);
}

/* Small tables and ends of the network, where a rounding error shows at once. */
static const char *const tender[] = { "norm", "emb", "time_projection", "modulation", "head" };

/* "blocks.7.ffn.0.weight" has a part that is a number: it belongs to a row of equal layers. */
static bool is_in_a_row(const char *name)
{
    for (const char *p = name; *p; p += *p == '.') {
        size_t n = strcspn(p, ".");
        if (n && strspn(p, "0123456789") == n)
            return true;
        p += n;
    }
    return false;
}

bool fp8_is_target(const struct st_tensor *t)
{
    if (t->rank != 2 || t->shape[0] < 2 || t->shape[1] < 2 || !str_ends(t->name, weight_suffix))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(tender); i++)
        if (strstr(t->name, tender[i]))
            return false;
    return is_in_a_row(t->name);
}

static const char *sibling(struct arena *a, const char *name, const char *suffix, const char *other)
{
    if (!suffix || !str_ends(name, suffix))
        return NULL;
    return arena_printf(a, "%.*s%s", (int)(strlen(name) - strlen(suffix)), name, other);
}

const char *fp8_scale_name(struct arena *a, const char *weight)
{
    return sibling(a, weight, weight_suffix, suffixes[0]);
}

const char *fp8_weight_name(struct arena *a, const char *bookkeeping)
{
    return sibling(a, bookkeeping, suffix_of(bookkeeping), weight_suffix);
}

const struct st_tensor *fp8_scale_of(const struct tensor_source *s, const struct st_tensor *weight)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct st_tensor *found = NULL;
    for (size_t i = 0; i < N_SCALE_SUFFIXES && !found; i++) {
        const char *name = sibling(&a, weight->name, weight_suffix, suffixes[i]);
        found = name ? source_find(s, name) : NULL;
    }
    return found && dtype_is_float(found->dtype) ? found : NULL;
}

static const char *shape_text(const struct st_tensor *t, char *buf, size_t size)
{
    size_t used = (size_t)snprintf(buf, size, "[");
    for (int i = 0; i < t->rank && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%" PRIu64, i ? ", " : "", t->shape[i]);
    if (used < size)
        snprintf(buf + used, size - used, "]");
    return buf;
}

/* Scales in rows fit when there is a whole number of them for each row of the weight. */
static bool fits_rows(const struct st_tensor *weight, const struct st_tensor *scale)
{
    return weight->rank >= 2 && scale->rank >= 1 && scale->shape[0] == weight->shape[0] && weight->elements &&
           scale->elements &&
           (weight->elements / weight->shape[0]) % (scale->elements / scale->shape[0]) == 0;
}

int fp8_block_of(const struct st_tensor *weight, const struct st_tensor *scale, uint64_t *block,
                 struct cairn_error *err)
{
    char w[96], s[96];
    if (scale->elements != 1 && !fits_rows(weight, scale))
        return cairn_fail(err, CAIRN_EFORMAT, "tensor %.160s %s does not fit %.160s %s", scale->name,
                          shape_text(scale, s, sizeof(s)), weight->name, shape_text(weight, w, sizeof(w)));
    *block = weight->elements / scale->elements;
    return 0;
}

uint64_t fp8_block_for(const struct st_tensor *weight, enum fp8_grain grain)
{
    if (grain == FP8_TENSOR || weight->rank != 2)
        return weight->elements;
    uint64_t columns = weight->shape[1];
    return grain == FP8_BLOCK64 && columns % BLOCK_COLUMNS == 0 ? BLOCK_COLUMNS : columns;
}

void fp8_scale_tensor(struct arena *a, const struct st_tensor *weight, uint64_t block, struct st_tensor *out)
{
    uint64_t *shape = ARENA_NEW(a, uint64_t, 3);
    uint64_t n = block ? weight->elements / block : 1;
    bool whole = n == 1 && block == weight->elements;
    *out = (struct st_tensor){
        .name = fp8_scale_name(a, weight->name), .shape = shape, .rank = 1, .elements = n
    };
    shape[0] = 1;
    if (!whole) {
        shape[0] = weight->shape[0];
        shape[1] = n / weight->shape[0];
        shape[2] = 1;
        out->rank = block == weight->shape[1] ? 2 : 3;
    }
    /* Fine scales are kept as the weight was, which is what trainers expect of bf16; f16 has no room for
     * them. */
    out->dtype = !whole && weight->dtype == DTYPE_BF16 ? DTYPE_BF16 : DTYPE_F32;
    out->dtype_text = dtype_safetensors(out->dtype);
    out->bytes = n * dtype_size(out->dtype);
}

/* Magnitudes order like their bits, and NaN lies above infinity.  The compiler makes vectors of the lanes. */
static inline __attribute__((always_inline)) float absmax(const float *w, size_t n)
{
    enum { LANES = 32 };
    int32_t lane[LANES] = { 0 }, most = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            int32_t bits = (int32_t)(scalar_bits((const f32_any *)&w[i + k]) & 0x7fffffff);
            lane[k] = bits > lane[k] ? bits : lane[k];
        }
    for (; i < n; i++) {
        int32_t bits = (int32_t)(scalar_bits((const f32_any *)&w[i]) & 0x7fffffff);
        most = bits > most ? bits : most;
    }
    for (int k = 0; k < LANES; k++)
        most = lane[k] > most ? lane[k] : most;
    return scalar_f32(most > 0x7f800000 ? 0x7f800000 : (uint32_t)most);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static float absmax_avx2(const float *w, size_t n)
{
    return absmax(w, n);
}
#else
#define absmax_avx2 absmax
#endif

float fp8_absmax(const float *w, size_t n)
{
    return dtype_cpu() & DTYPE_CPU_AVX2 ? absmax_avx2(w, n) : absmax(w, n);
}

float fp8_scale_for(float absmax, enum dtype to)
{
    /* The floor is that of the trainers who read these files; it keeps an all-zero block finite. */
    float scale = absmax / (float)dtype_max(to);
    return scale < 1e-8f ? 1e-8f : scale;
}

void fp8_quantise(void *codes, enum dtype to, float *w, size_t n, float scale, const struct dtype_how *how)
{
    struct dtype_how saturating = *how;
    saturating.saturate = true;
    for (size_t i = 0; i < n; i++)
        w[i] /= scale;
    dtype_convert(codes, to, w, DTYPE_F32, n, &saturating);
}

enum { AT_ONCE = 512 };

/* The product of a code and an f32 is exact in f64, so that any target is rounded to once. */
static void multiply(void *out, enum dtype to, const float *codes, size_t n, float scale,
                     const struct dtype_how *how)
{
    double product[AT_ONCE];
    if (to == DTYPE_F32 && !how->saturate) { /* the same number, sooner */
        for (size_t i = 0; i < n; i++)
            ((f32_any *)out)[i] = codes[i] * scale;
        return;
    }
    for (size_t i = 0; i < n; i++)
        product[i] = (double)codes[i] * (double)scale;
    dtype_convert(out, to, product, DTYPE_F64, n, how);
}

void fp8_dequantise(void *out, enum dtype to, const void *codes, enum dtype from, size_t n, float scale,
                    const struct dtype_how *how)
{
    float block[AT_ONCE];
    struct dtype_how here = *how;
    for (size_t at = 0; at < n; at += AT_ONCE) {
        size_t m = n - at < AT_ONCE ? n - at : AT_ONCE;
        here.first = how->first + at;
        dtype_convert(block, DTYPE_F32, (const char *)codes + at, from, m, &(struct dtype_how){ 0 });
        multiply((char *)out + at * dtype_size(to), to, block, m, scale, &here);
    }
}
