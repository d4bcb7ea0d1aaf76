/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"
#include "gpu/kernels/vae.h"
#include <math.h>
#include <string.h>

struct shape {
    k_i64 frames, height, width, channels, patch;
};
/* Of the two VAEs, with and without channels that nothing uses. */
static const struct shape shapes[] = {
    { 1, 2, 3, 3, 1 }, { 2, 5, 7, 8, 1 }, { 2, 3, 5, 12, 2 }, { 1, 4, 4, 24, 2 }
};

/* Numbers that were split: the first, and the `by` places behind it the rest. */
static void check_split(struct check *c, const struct check_tensor *y, size_t at, size_t by, float want)
{
    double sum = (double)y->host[at] + (double)y->host[at + by];
    if (!(fabs(sum - (double)want) <= 0x1p-16 * fmax(1, fabs((double)want))))
        check_complain(c, "element %zu of %zu and its rest are %.9g, not %.9g", at, y->n, sum, (double)want);
}

/* Which pixel's colour is in a channel; -1: none. */
static long pixel_of(const struct shape *s, size_t place, k_i64 channel)
{
    k_i64 p = s->patch, colour = channel / (p * p), column = channel / p % p, row = channel % p;
    k_i64 w = (k_i64)place % s->width, h = (k_i64)place / s->width % s->height,
          t = (k_i64)place / s->width / s->height;
    k_i64 line = (t * s->height + h) * p + row;
    return colour < 3 ? (long)(((line * s->width + w) * p + column) * 3 + colour) : -1;
}

static void pack(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        size_t places = (size_t)(s->frames * s->height * s->width), channels = (size_t)s->channels;
        struct check_tensor pixels = check_input_f32(c, places * (size_t)(s->patch * s->patch) * 3, 1),
                            x = check_output(c, places * channels);
        struct pixels_args args = { .x = x.device,
                                    .pixels = pixels.device,
                                    .frames = s->frames,
                                    .height = s->height,
                                    .width = s->width,
                                    .channels = s->channels,
                                    .patch = s->patch };
        CHECK_LAUNCH(c, "pixels_pack", ((struct gpu_grid){ .x = (unsigned)K_ROW_GROUPS(places, channels) }),
                     args);
        double *want = check_zeros(c, x.n);
        for (size_t k = 0; check_ok(c) && k < x.n; k++) {
            long from = pixel_of(s, k / channels, (k_i64)(k % channels));
            want[k] = from < 0 ? 0 : (double)pixels.host[from];
        }
        check_compare(c, &x, want, 1);
        size_t colours = (size_t)(3 * s->patch * s->patch);
        for (size_t k = 0; check_ok(c) && k < x.n; k++)
            if (k % channels < colours && channels >= 2 * colours)
                check_split(c, &x, k, colours, (float)want[k]);
    }
}

static void split(struct check *c)
{
    enum { ROWS = 37, CHANNELS = 48 };
    struct check_tensor x = check_input_f32(c, ROWS * CHANNELS, 1), y = check_output(c, 2 * ROWS * CHANNELS);
    struct split_args args = { .y = y.device, .x = x.device, .rows = ROWS, .channels = CHANNELS };
    CHECK_LAUNCH(c, "split", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(x.n) }), args);
    check_fetch(c, &y);
    for (size_t i = 0; check_ok(c) && i < x.n; i++)
        check_split(c, &y, i + i / CHANNELS * CHANNELS, CHANNELS, x.host[i]);
}

static void unpack(struct check *c)
{
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        const struct shape *s = &shapes[i];
        size_t places = (size_t)(s->frames * s->height * s->width), channels = (size_t)s->channels;
        struct check_tensor x = check_input(c, places * channels, 1),
                            pixels = check_output_f32(c, places * (size_t)(s->patch * s->patch) * 3);
        struct pixels_args args = { .x = x.device,
                                    .pixels = pixels.device,
                                    .frames = s->frames,
                                    .height = s->height,
                                    .width = s->width,
                                    .channels = s->channels,
                                    .patch = s->patch };
        CHECK_LAUNCH(c, "pixels_unpack", ((struct gpu_grid){ .x = (unsigned)K_GROUPS(pixels.n / 3) }), args);
        double *want = check_zeros(c, pixels.n);
        for (size_t k = 0; check_ok(c) && k < x.n; k++) {
            long to = pixel_of(s, k / channels, (k_i64)(k % channels));
            if (to >= 0)
                want[to] = (double)x.host[k];
        }
        check_compare(c, &pixels, want, 1);
    }
}

struct change {
    k_i64 frames, height, width, out, in, by_time, by_space, lead; /* of y */
};

/* By definition: all cells of a place of the smaller one, counted as its channels. */
static void shortcut(struct check *c, const struct change *s, bool down)
{
    k_i64 t = s->by_time, p = s->by_space, cells = t * p * p;
    k_i64 frames = down ? s->frames * t - s->lead : (s->frames + s->lead) / t;
    k_i64 height = down ? s->height * p : s->height / p, width = down ? s->width * p : s->width / p;
    struct check_tensor x = check_input(c, (size_t)(frames * height * width * s->in), 1);
    struct check_tensor y = check_input(c, (size_t)(s->frames * s->height * s->width * s->out), 1);
    double *want = check_numbers(c, &y);
    k_i64 each = down ? s->in * cells / s->out : s->out * cells / s->in;
    k_i64 wide = down ? width : s->width, high = down ? height : s->height, deep = down ? s->in : s->out;
    k_i64 more = down ? frames : s->frames; /* of the larger one */
    for (k_i64 i = 0; check_ok(c) && i < more * high * wide * deep; i++) {
        k_i64 channel = i % deep, w = i / deep % wide, h = i / deep / wide % high,
              f = i / deep / wide / high + s->lead;
        k_i64 index = channel * cells + (f % t * p + h % p) * p + w % p;
        k_i64 place = (f / t * (high / p) + h / p) * (wide / p) + w / p;
        if (down)
            want[place * s->out + index / each] += (double)x.host[i] / (double)each;
        else
            want[i] += (double)x.host[place * s->in + index / each];
    }
    struct shortcut_args args = { .y = y.device,
                                  .x = x.device,
                                  .frames = s->frames,
                                  .height = s->height,
                                  .width = s->width,
                                  .out = s->out,
                                  .in = s->in,
                                  .by_time = t,
                                  .by_space = p,
                                  .lead = s->lead };
    struct gpu_grid grid = { .x = (unsigned)K_ROW_GROUPS(s->frames * s->height * s->width, s->out) };
    CHECK_LAUNCH(c, down ? "shortcut_down" : "shortcut_up", grid, args);
    check_compare(c, &y, want, 2);
}

static void shortcut_down(struct check *c)
{
    static const struct change changes[] = {
        { 1, 2, 3, 4, 4, 1, 2, 0 },     { 2, 3, 2, 8, 4, 2, 2, 0 },     { 1, 2, 2, 8, 4, 2, 2, 1 },
        { 3, 2, 2, 320, 160, 2, 2, 1 }, { 2, 3, 5, 160, 160, 1, 2, 0 }, { 2, 3, 3, 16, 16, 1, 1, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        shortcut(c, &changes[i], true);
}

static void shortcut_up(struct check *c)
{
    static const struct change changes[] = {
        { 2, 4, 6, 16, 16, 2, 2, 0 },    { 1, 4, 4, 16, 16, 2, 2, 1 }, { 3, 2, 4, 8, 16, 2, 2, 1 },
        { 3, 4, 2, 512, 1024, 1, 2, 0 }, { 2, 2, 6, 12, 6, 1, 2, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(changes); i++)
        shortcut(c, &changes[i], false);
}

const struct check_case checks_vae[] = {
    { "pixels_pack", pack, false },        { "split", split, false },
    { "pixels_unpack", unpack, false },    { "shortcut_down", shortcut_down, false },
    { "shortcut_up", shortcut_up, false },
};
const size_t n_checks_vae = ARRAY_LEN(checks_vae);
