/* SPDX-License-Identifier: Apache-2.0 */
#include "video/noise.h"

#include "base/int.h"
#include "base/thread.h"
#include "video/philox.h"
#include <math.h>
#include <string.h>

/* Counters whose second word has this bit are not those of normal numbers. */
#define UNIFORM_SAMPLES UINT32_C(0x80000000)

/* Blocks of a piece of work: 256 Ki numbers. */
enum { PIECE = 4096 };

/* Numbers come in blocks, which are written so that compilers vectorise them: loops over lanes, without
 * branches. */
enum { LANES = 16, BLOCK = 4 * LANES };

#define HALF_PI 1.57079632679489661923f
#define LN2 0.693147180559945309417f

static inline uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* sqrt(-2 log u), u = (w/2 + 1/2) 2^-31: above 0 and at most 1. */
static inline float radius(uint32_t w)
{
    float u = ((float)(int32_t)(w >> 1) + 0.5f) * 0x1p-31f;
    /* u = 2^e m, m between sqrt(1/2) and sqrt(2): the bits of sqrt(1/2) are subtracted and added again. */
    uint32_t shifted = bits_of(u) - 0x3f3504f3u;
    float e = (float)((int32_t)shifted >> 23), m = float_of((shifted & 0x7fffffu) + 0x3f3504f3u);
    float s = (m - 1) / (m + 1), q = s * s;
    float atanh2 = 2 * s * (1 + q * (1.0f / 3 + q * (1.0f / 5 + q * (1.0f / 7 + q * (1.0f / 9)))));
    return sqrtf(fabsf(2 * (e * LN2 + atanh2)));
}

/* cos and sin of w 2^-32 turns: of the nearest quarter turn, and of an angle up to an eighth more or less. */
static inline void turn(uint32_t w, float *cosine, float *sine)
{
    uint32_t quarter = (w + 0x20000000u) >> 30;
    float x = (float)(int32_t)(w << 2) * (0x1p-32f * HALF_PI), q = x * x;
    float s = x * (1 + q * (-1.0f / 6 + q * (1.0f / 120 + q * (-1.0f / 5040 + q * (1.0f / 362880)))));
    float c = 1 + q * (-1.0f / 2 + q * (1.0f / 24 + q * (-1.0f / 720 + q * (1.0f / 40320))));
    uint32_t odd = 0u - (quarter & 1), first = bits_of(c), second = bits_of(s);
    uint32_t swapped = (first ^ second) & odd;
    *cosine = float_of((first ^ swapped) ^ (((quarter + 1) & 2) << 30));
    *sine = float_of((second ^ swapped) ^ ((quarter & 2) << 30));
}

static void fill_block(const struct noise_place *p, uint32_t block, float out[BLOCK])
{
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    uint32_t k0 = (uint32_t)p->seed, k1 = (uint32_t)(p->seed >> 32);
    for (uint32_t i = 0; i < LANES; i++) {
        c0[i] = block * LANES + i;
        c1[i] = p->sample;
        c2[i] = (uint32_t)p->step;
        c3[i] = (uint32_t)(p->step >> 32);
    }
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)c0[i] * PHILOX_M0, p1 = (uint64_t)c2[i] * PHILOX_M1;
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)p1;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)p0;
        }
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    for (int i = 0; i < LANES; i++) {
        float r = radius(c0[i]), x, y;
        turn(c1[i], &x, &y);
        out[i] = r * x;
        out[LANES + i] = r * y;
    }
    for (int i = 0; i < LANES; i++) {
        float r = radius(c2[i]), x, y;
        turn(c3[i], &x, &y);
        out[2 * LANES + i] = r * x;
        out[3 * LANES + i] = r * y;
    }
}

struct work {
    const struct noise_place *place;
    float *out;
    size_t n;
};

static int fill_piece(void *context, size_t piece, struct cairn_error *err)
{
    const struct work *w = context;
    size_t end = at_most((piece + 1) * PIECE, div_up(w->n, BLOCK));
    (void)err;
    for (size_t b = piece * PIECE; b < end; b++) {
        size_t at = b * BLOCK;
        float last[BLOCK];
        if (w->n - at >= BLOCK) {
            fill_block(w->place, (uint32_t)b, w->out + at);
        } else {
            fill_block(w->place, (uint32_t)b, last);
            memcpy(w->out + at, last, (w->n - at) * sizeof(*last));
        }
    }
    return 0;
}

void noise_normal(const struct noise_place *p, float *out, size_t n)
{
    struct work w = { p, out, n };
    struct cairn_error err;
    parallel_for(div_up(n, (size_t)PIECE * BLOCK), 0, fill_piece, &w, &err);
}

void noise_uniform(const struct noise_place *p, uint32_t k, double out[2])
{
    const uint32_t counter[4] = { k, p->sample | UNIFORM_SAMPLES, (uint32_t)p->step,
                                  (uint32_t)(p->step >> 32) };
    uint32_t w[4];
    philox(p->seed, counter, w);
    for (int i = 0; i < 2; i++) {
        uint64_t bits = ((uint64_t)w[2 * i] << 32 | w[2 * i + 1]) >> 12;
        out[i] = ((double)bits + 0.5) * 0x1p-52;
    }
}
