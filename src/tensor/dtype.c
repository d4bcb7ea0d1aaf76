/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/dtype.h"

#include "base/cleanup.h"
#include "tensor/dtype_scalar.h"
#include <string.h>
#include <strings.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

static const struct row {
    const char *name, *safetensors;
    const char *aliases; /* torch's and numpy's words */
    size_t size;
    bool is_float;
    double max;
} rows[DTYPE_COUNT] = {
    [DTYPE_OTHER] = { "other", NULL, "", 0, false, 0 },
    [DTYPE_F64] = { "f64", "F64", "float64 double", 8, true, 0x1.fffffffffffffp1023 },
    [DTYPE_F32] = { "f32", "F32", "float32 float", 4, true, 0x1.fffffep127 },
    [DTYPE_F16] = { "f16", "F16", "float16 half fp16", 2, true, 65504 },
    [DTYPE_BF16] = { "bf16", "BF16", "bfloat16", 2, true, 0x1.fep127 },
    [DTYPE_F8_E4M3] = { "f8_e4m3", "F8_E4M3", "float8_e4m3fn fp8 e4m3", 1, true, 448 },
    [DTYPE_F8_E5M2] = { "f8_e5m2", "F8_E5M2", "float8_e5m2 e5m2", 1, true, 57344 },
    [DTYPE_I64] = { "i64", "I64", "int64 long", 8, false, 0 },
    [DTYPE_I32] = { "i32", "I32", "int32 int", 4, false, 0 },
    [DTYPE_I16] = { "i16", "I16", "int16 short", 2, false, 0 },
    [DTYPE_I8] = { "i8", "I8", "int8", 1, false, 0 },
    [DTYPE_U64] = { "u64", "U64", "uint64", 8, false, 0 },
    [DTYPE_U32] = { "u32", "U32", "uint32", 4, false, 0 },
    [DTYPE_U16] = { "u16", "U16", "uint16", 2, false, 0 },
    [DTYPE_U8] = { "u8", "U8", "uint8", 1, false, 0 },
    [DTYPE_BOOL] = { "bool", "BOOL", "", 1, false, 0 },
};

size_t dtype_size(enum dtype t)
{
    return rows[t].size;
}

const char *dtype_name(enum dtype t)
{
    return rows[t].name;
}

const char *dtype_safetensors(enum dtype t)
{
    return rows[t].safetensors;
}

bool dtype_is_float(enum dtype t)
{
    return rows[t].is_float;
}

double dtype_max(enum dtype t)
{
    return rows[t].max;
}

static bool word_in(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (len == n && !strncasecmp(p, word, n))
            return true;
        p += len;
    }
    return false;
}

enum dtype dtype_parse(const char *name)
{
    for (int t = DTYPE_OTHER + 1; t < DTYPE_COUNT; t++)
        if (!strcasecmp(name, rows[t].name) || word_in(rows[t].aliases, name))
            return (enum dtype)t;
    return DTYPE_OTHER;
}

bool dtype_can_convert(enum dtype from, enum dtype to)
{
    return rows[from].is_float && rows[to].is_float;
}

/* The reference: one element at a time, in the words of dtype_scalar.h. */

static void bf16_to_f32_c(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const u16_any *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = scalar_f32(scalar_from_bf16(src[i]));
}

static void f16_to_f32_c(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const u16_any *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = scalar_f32(scalar_from_f16(src[i]));
}

static void e4m3_to_f32_c(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = scalar_f32(scalar_from_e4m3(src[i]));
}

static void e5m2_to_f32_c(void *to, const void *from, size_t n)
{
    f32_any *dst = to;
    const uint8_t *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = scalar_f32(scalar_from_e5m2(src[i]));
}

static void f32_to_bf16_c(void *to, const void *from, size_t n, bool saturate)
{
    u16_any *dst = to;
    const f32_any *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint16_t)scalar_narrow(&scalar_bf16, scalar_bits(&src[i]), SCALAR_HALF, saturate);
}

static void f32_to_f16_c(void *to, const void *from, size_t n, bool saturate)
{
    u16_any *dst = to;
    const f32_any *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint16_t)scalar_narrow(&scalar_f16, scalar_bits(&src[i]), SCALAR_HALF, saturate);
}

static void f32_to_e4m3_c(void *to, const void *from, size_t n, bool saturate)
{
    uint8_t *dst = to;
    const f32_any *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)scalar_narrow(&scalar_e4m3, scalar_bits(&src[i]), SCALAR_HALF, saturate);
}

static void f32_to_e5m2_c(void *to, const void *from, size_t n, bool saturate)
{
    uint8_t *dst = to;
    const f32_any *src = from;
    for (size_t i = 0; i < n; i++)
        dst[i] = (uint8_t)scalar_narrow(&scalar_e5m2, scalar_bits(&src[i]), SCALAR_HALF, saturate);
}

void dtype_ops_init(struct dtype_ops *ops, unsigned cpu)
{
    *ops = (struct dtype_ops){
        .bf16_to_f32 = bf16_to_f32_c,
        .f16_to_f32 = f16_to_f32_c,
        .e4m3_to_f32 = e4m3_to_f32_c,
        .e5m2_to_f32 = e5m2_to_f32_c,
        .f32_to_bf16 = f32_to_bf16_c,
        .f32_to_f16 = f32_to_f16_c,
        .f32_to_e4m3 = f32_to_e4m3_c,
        .f32_to_e5m2 = f32_to_e5m2_c,
    };
#ifdef __x86_64__
    if (cpu & DTYPE_CPU_AVX2)
        dtype_ops_init_avx2(ops);
    if (cpu & DTYPE_CPU_AVX512)
        dtype_ops_init_avx512(ops);
#else
    (void)cpu;
#endif
}

static unsigned ask_cpu(void)
{
    unsigned cpu = 0;
#ifdef __x86_64__
    unsigned a, b, c, d; /* clang 14 has no word for F16C in __builtin_cpu_supports */
    if (__builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C))
        cpu |= DTYPE_CPU_AVX2;
    if (cpu && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        cpu |= DTYPE_CPU_AVX512;
#endif
    return cpu;
}

/* The CPU is asked once: in a virtual machine the question traps. */
unsigned dtype_cpu(void)
{
    static unsigned known; /* atomic; with a bit that says so */
    enum { ASKED = 1 << 30 };
    unsigned cpu = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (!cpu) {
        cpu = ask_cpu() | ASKED;
        __atomic_store_n(&known, cpu, __ATOMIC_RELAXED);
    }
    return cpu & ~(unsigned)ASKED;
}

/* Written once, by the first caller; the same values whoever is first. */
static const struct dtype_ops *best_ops(void)
{
    static struct dtype_ops ops;
    static int ready;
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        struct dtype_ops fresh;
        dtype_ops_init(&fresh, dtype_cpu());
        ops = fresh;
        __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    }
    return &ops;
}

enum { BLOCK = 2048 }; /* elements of the f32 in between: 8 KiB, stays in L1 */

static void f64_to_f32(float *dst, const double *src, size_t n, bool round_to_odd, bool saturate)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, (const char *)src + i * sizeof(v), sizeof(v));
        float out = round_to_odd ? scalar_f32(scalar_f64_to_odd(v)) : (float)v;
        if (saturate && !round_to_odd)
            out = scalar_f32(scalar_clamp(scalar_bits(&out)));
        memcpy((char *)dst + i * sizeof(out), &out, sizeof(out));
    }
}

static void f32_to_f64(double *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float v;
        memcpy(&v, (const char *)src + i * sizeof(v), sizeof(v));
        double out = v;
        memcpy((char *)dst + i * sizeof(out), &out, sizeof(out));
    }
}

static void widen(const struct dtype_ops *ops, float *dst, const void *src, enum dtype from, size_t n,
                  bool to_odd)
{
    switch (from) {
    case DTYPE_F64:
        f64_to_f32(dst, src, n, to_odd, false);
        break;
    case DTYPE_F32:
        memcpy(dst, src, n * sizeof(float));
        break;
    case DTYPE_F16:
        ops->f16_to_f32(dst, src, n);
        break;
    case DTYPE_BF16:
        ops->bf16_to_f32(dst, src, n);
        break;
    case DTYPE_F8_E4M3:
        ops->e4m3_to_f32(dst, src, n);
        break;
    default:
        ops->e5m2_to_f32(dst, src, n);
    }
}

static void narrow(const struct dtype_ops *ops, void *dst, enum dtype to, const float *src, size_t n,
                   bool saturate)
{
    switch (to) {
    case DTYPE_F64:
        f32_to_f64(dst, src, n);
        break;
    case DTYPE_F32:
        memcpy(dst, src, n * sizeof(float));
        break;
    case DTYPE_F16:
        ops->f32_to_f16(dst, src, n, saturate);
        break;
    case DTYPE_BF16:
        ops->f32_to_bf16(dst, src, n, saturate);
        break;
    case DTYPE_F8_E4M3:
        ops->f32_to_e4m3(dst, src, n, saturate);
        break;
    default:
        ops->f32_to_e5m2(dst, src, n, saturate);
    }
}

static void narrow_stochastic(void *dst, enum dtype to, const float *src, size_t n,
                              const struct dtype_how *how, uint64_t first)
{
    const struct scalar_format *f = to == DTYPE_BF16      ? &scalar_bf16
                                    : to == DTYPE_F16     ? &scalar_f16
                                    : to == DTYPE_F8_E4M3 ? &scalar_e4m3
                                                          : &scalar_e5m2;
    for (size_t i = 0; i < n; i++) {
        uint32_t code =
            scalar_narrow(f, scalar_bits(&src[i]), scalar_random(how->seed, first + i), how->saturate);
        if (dtype_size(to) == 1)
            ((uint8_t *)dst)[i] = (uint8_t)code;
        else
            memcpy((char *)dst + 2 * i, &(uint16_t){ (uint16_t)code }, 2);
    }
}

/* f64 saturates against its own largest value only when it comes from itself. */
static void saturate_f64(double *dst, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double v;
        memcpy(&v, (char *)dst + i * sizeof(v), sizeof(v));
        if (v > rows[DTYPE_F64].max || v < -rows[DTYPE_F64].max) {
            v = v > 0 ? rows[DTYPE_F64].max : -rows[DTYPE_F64].max;
            memcpy((char *)dst + i * sizeof(v), &v, sizeof(v));
        }
    }
}

/* One step where a kernel does it whole; otherwise block by block through f32. */
static bool convert_direct(const struct dtype_ops *ops, void *dst, enum dtype to, const void *src,
                           enum dtype from, size_t n, const struct dtype_how *how)
{
    if (from == to && !how->saturate) {
        if (dst != src)
            memcpy(dst, src, n * dtype_size(to));
        return true;
    }
    if (how->round == DTYPE_STOCHASTIC && dtype_size(to) < 4)
        return false;
    if (from == DTYPE_F64 && to == DTYPE_F64) {
        if (dst != src)
            memcpy(dst, src, n * sizeof(double));
        saturate_f64(dst, n);
        return true;
    }
    if (from == DTYPE_F64 && to == DTYPE_F32)
        return f64_to_f32(dst, src, n, false, how->saturate), true;
    if (from == DTYPE_F32 && to != DTYPE_F32 && to != DTYPE_F64)
        return narrow(ops, dst, to, src, n, how->saturate), true;
    if (to == DTYPE_F32 && from != DTYPE_F32 && !how->saturate)
        return widen(ops, dst, src, from, n, false), true;
    return false;
}

void dtype_convert(void *dst, enum dtype to, const void *src, enum dtype from, size_t n,
                   const struct dtype_how *how)
{
    const struct dtype_ops *ops = best_ops();
    if (n == 0 || convert_direct(ops, dst, to, src, from, n, how))
        return;
    float block[BLOCK];
    for (size_t at = 0; at < n; at += BLOCK) {
        size_t m = n - at < BLOCK ? n - at : BLOCK;
        void *out = (char *)dst + at * dtype_size(to);
        widen(ops, block, (const char *)src + at * dtype_size(from), from, m, true);
        if (how->saturate && dtype_size(to) >= 4)
            for (size_t i = 0; i < m; i++)
                block[i] = scalar_f32(scalar_clamp(scalar_bits(&block[i])));
        if (how->round == DTYPE_STOCHASTIC && dtype_size(to) < 4)
            narrow_stochastic(out, to, block, m, how, how->first + at);
        else
            narrow(ops, out, to, block, m, how->saturate);
    }
}
