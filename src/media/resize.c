/* SPDX-License-Identifier: Apache-2.0 */
#include "media/resize.h"

#include "base/cleanup.h"
#include "base/int.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the plan ---- */

static size_t rounded(double x)
{
    return (size_t)(x + 0.5);
}

/* The window along one axis in pixels of the source. */
static void map_back(size_t at, size_t n, size_t scaled, size_t from, size_t *out_at, size_t *out_n)
{
    double ratio = (double)from / (double)scaled;
    size_t start = at_most(rounded((double)at * ratio), from - 1);
    size_t end = at_most(rounded((double)(at + n) * ratio), from);
    *out_at = start;
    *out_n = at_least(end, start + 1) - start;
}

int picture_fit_plan(struct picture_fit *out, size_t from_width, size_t from_height, size_t width,
                     size_t height, struct cairn_error *err)
{
    struct picture_fit f = { .from_width = from_width, .from_height = from_height };
    if (!from_width || !from_height || !width || !height || from_width > INT_MAX || from_height > INT_MAX ||
        width > INT_MAX || height > INT_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "cannot scale %zu x %zu pixels to %zu x %zu", from_width,
                          from_height, width, height);
    double across = (double)width / (double)from_width, down = (double)height / (double)from_height;
    double scale = across > down ? across : down;
    f.grows = scale > 1;
    /* Rounding may lose the pixel that the bucket needs. */
    f.scaled_width = at_least(rounded((double)from_width * scale), width);
    f.scaled_height = at_least(rounded((double)from_height * scale), height);
    if (f.scaled_width > INT_MAX || f.scaled_height > INT_MAX)
        return cairn_fail(err, CAIRN_EFORMAT, "cannot scale %zu x %zu pixels to %zu x %zu: it is too narrow",
                          from_width, from_height, width, height);
    f.window =
        (struct picture_rect){ (f.scaled_width - width) / 2, (f.scaled_height - height) / 2, width, height };
    map_back(f.window.x, width, f.scaled_width, from_width, &f.crop.x, &f.crop.width);
    map_back(f.window.y, height, f.scaled_height, from_height, &f.crop.y, &f.crop.height);
    *out = f;
    return 0;
}

/* ---- Lanczos, as Pillow's Resample.c for 8 bits ---- */

enum { PRECISION = 32 - 8 - 2 };

/* The pixels of the source, and their weights, that make each pixel of one axis of the window. */
struct filter_row {
    size_t first, n;
    const int32_t *weight;
};
struct filter {
    struct filter_row *row;
    int32_t *weights;
    double *scratch;
};

static void filter_release(struct filter *f)
{
    free(f->row);
    free(f->weights);
    free(f->scratch);
}

static double sinc(double x)
{
    if (x == 0)
        return 1;
    x *= M_PI;
    return sin(x) / x;
}

static double lanczos(double x)
{
    return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

static int filter_init(struct filter *f, size_t from, size_t to, size_t at, size_t n, struct cairn_error *err)
{
    double scale = (double)from / (double)to, wide = scale < 1 ? 1 : scale, support = 3 * wide;
    size_t most = (size_t)ceil(support) * 2 + 1;
    f->row = calloc(n, sizeof(*f->row));
    f->weights = calloc(n * most, sizeof(*f->weights));
    f->scratch = calloc(most, sizeof(*f->scratch));
    if (!f->row || !f->weights || !f->scratch)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to scale a picture");
    for (size_t i = 0; i < n; i++) {
        int32_t *weight = f->weights + i * most;
        double center = ((double)(at + i) + 0.5) * scale, sum = 0;
        double low = center - support + 0.5, high = center + support + 0.5;
        size_t first = low < 0 ? 0 : (size_t)low, end = at_most((size_t)high, from);
        for (size_t k = 0; k < end - first; k++)
            sum += f->scratch[k] = lanczos(((double)(k + first) - center + 0.5) / wide);
        for (size_t k = 0; k < end - first; k++) {
            double w = f->scratch[k] / sum * (1 << PRECISION);
            weight[k] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
        }
        f->row[i] = (struct filter_row){ first, end - first, weight };
    }
    return 0;
}

static uint8_t clip8(int32_t sum)
{
    sum >>= PRECISION;
    return sum < 0 ? 0 : sum > 255 ? 255 : (uint8_t)sum;
}

static void filter_across(const struct filter *f, const uint8_t *in, uint8_t *out, size_t n, size_t channels)
{
    for (size_t i = 0; i < n; i++) {
        const struct filter_row *r = &f->row[i];
        const uint8_t *p = in + r->first * channels;
        int32_t sum[3] = { 1 << (PRECISION - 1), 1 << (PRECISION - 1), 1 << (PRECISION - 1) };
        if (channels == 3)
            for (size_t k = 0; k < r->n; k++, p += 3)
                for (size_t c = 0; c < 3; c++)
                    sum[c] += p[c] * r->weight[k];
        else
            for (size_t k = 0; k < r->n; k++)
                sum[0] += p[k] * r->weight[k];
        for (size_t c = 0; c < channels; c++)
            out[i * channels + c] = clip8(sum[c]);
    }
}

/* `rows` starts with row number `base` of the source. */
static void filter_down(const struct filter_row *r, const uint8_t *rows, size_t base, size_t row_bytes,
                        int32_t *sum, uint8_t *out)
{
    for (size_t i = 0; i < row_bytes; i++)
        sum[i] = 1 << (PRECISION - 1);
    for (size_t k = 0; k < r->n; k++) {
        const uint8_t *p = rows + (r->first - base + k) * row_bytes;
        int32_t weight = r->weight[k];
        for (size_t i = 0; i < row_bytes; i++)
            sum[i] += p[i] * weight;
    }
    for (size_t i = 0; i < row_bytes; i++)
        out[i] = clip8(sum[i]);
}

/* Pillow does the horizontal pass first, and omits a pass that does not change the size. */
static int fit_lanczos(const struct picture *in, const struct picture_fit *fit, struct picture *out,
                       struct cairn_error *err)
{
    CLEANUP(filter_release) struct filter across = { 0 }, down = { 0 };
    const struct picture_rect *w = &fit->window;
    size_t channels = (size_t)in->channels, bytes = w->width * channels, in_bytes = in->width * channels;
    bool is_scaled_across = fit->scaled_width != in->width, is_scaled_down = fit->scaled_height != in->height;
    size_t first = w->y, end = w->y + w->height;
    if ((is_scaled_across && filter_init(&across, in->width, fit->scaled_width, w->x, w->width, err)) ||
        (is_scaled_down && filter_init(&down, in->height, fit->scaled_height, w->y, w->height, err)))
        return -1;
    if (is_scaled_down) {
        const struct filter_row *last = &down.row[w->height - 1];
        first = down.row[0].first;
        end = last->first + last->n;
    }
    CLEANUP(mem_free) uint8_t *rows = malloc((end - first) * bytes);
    CLEANUP(mem_free) int32_t *sum = malloc(bytes * sizeof(*sum));
    if (!rows || !sum)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to scale a picture");
    for (size_t y = first; y < end; y++) {
        uint8_t *row = rows + (y - first) * bytes;
        if (is_scaled_across)
            filter_across(&across, in->at + y * in_bytes, row, w->width, channels);
        else
            memcpy(row, in->at + y * in_bytes + w->x * channels, bytes);
    }
    for (size_t y = 0; y < w->height; y++) {
        if (is_scaled_down)
            filter_down(&down.row[y], rows, first, bytes, sum, out->at + y * bytes);
        else
            memcpy(out->at + y * bytes, rows + y * bytes, bytes);
    }
    return 0;
}

/* ---- area, as OpenCV's resize.cpp for 8 bits ---- */

/* A source pixel's share of a pixel of the window. */
struct share {
    size_t from, to;
    float weight;
};

static size_t floor_at_most(double x, size_t most)
{
    double low = floor(x);
    return low >= (double)most ? most : (size_t)low;
}

/* The shares of one axis; NULL: no memory. */
static struct share *area_shares(size_t from, size_t to, size_t at, size_t n, size_t *count)
{
    /* OpenCV inverts the ratio twice. */
    double scale = 1. / ((double)to / (double)from);
    struct share *s = malloc(n * ((size_t)ceil(scale) + 2) * sizeof(*s));
    size_t k = 0;
    for (size_t i = 0; s && i < n; i++) {
        double left = (double)(at + i) * scale, right = left + scale;
        double cell = (double)from - left < scale ? (double)from - left : scale;
        size_t last = floor_at_most(right, from - 1), first = at_most((size_t)ceil(left), last);
        if ((double)first - left > 1e-3)
            s[k++] = (struct share){ first - 1, i, (float)(((double)first - left) / cell) };
        for (size_t x = first; x < last; x++)
            s[k++] = (struct share){ x, i, (float)(1. / cell) };
        double rest = right - (double)last;
        if (rest > 1e-3) {
            rest = rest > 1 ? 1 : rest;
            s[k++] = (struct share){ last, i, (float)((rest < cell ? rest : cell) / cell) };
        }
    }
    *count = k;
    return s;
}

/* Half to even, as OpenCV's cvRound does it. */
static uint8_t round8(float x)
{
    const float shift = 8388608.f; /* 2^23: the fraction has no bits left */
    uint32_t bits;
    x = (x > 255.f ? 255.f : x) + shift;
    memcpy(&bits, &x, sizeof(bits));
    return (uint8_t)bits;
}

static void area_across(const struct share *s, size_t n, const uint8_t *in, float *out, size_t channels)
{
    if (channels == 3) {
        for (size_t k = 0; k < n; k++) {
            const uint8_t *p = in + s[k].from * 3;
            float *q = out + s[k].to * 3;
            q[0] += p[0] * s[k].weight;
            q[1] += p[1] * s[k].weight;
            q[2] += p[2] * s[k].weight;
        }
        return;
    }
    for (size_t k = 0; k < n; k++)
        out[s[k].to] += in[s[k].from] * s[k].weight;
}

static int fit_area(const struct picture *in, const struct picture_fit *fit, struct picture *out,
                    struct cairn_error *err)
{
    const struct picture_rect *w = &fit->window;
    size_t channels = (size_t)in->channels, n = w->width * channels, n_across = 0, n_down = 0;
    CLEANUP(mem_free)
    struct share *across = area_shares(in->width, fit->scaled_width, w->x, w->width, &n_across);
    CLEANUP(mem_free)
    struct share *down = area_shares(in->height, fit->scaled_height, w->y, w->height, &n_down);
    CLEANUP(mem_free) float *row = malloc(n * sizeof(*row)), *sum = NULL;
    sum = malloc(n * sizeof(*sum));
    if (!across || !down || !row || !sum)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to scale a picture");
    for (size_t k = 0; k < n_down; k++) {
        memset(row, 0, n * sizeof(*row));
        area_across(across, n_across, in->at + down[k].from * in->width * channels, row, channels);
        bool starts = !k || down[k].to != down[k - 1].to;
        bool ends = k + 1 == n_down || down[k].to != down[k + 1].to;
        for (size_t i = 0; i < n; i++)
            sum[i] = starts ? row[i] * down[k].weight : sum[i] + row[i] * down[k].weight;
        for (size_t i = 0; ends && i < n; i++)
            out->at[down[k].to * n + i] = round8(sum[i]);
    }
    return 0;
}

/* How many source pixels make one; 0 if that is not a whole number, or not quite for OpenCV. */
static size_t whole_ratio(size_t from, size_t to)
{
    double scale = 1. / ((double)to / (double)from);
    return fabs(scale - rint(scale)) < DBL_EPSILON ? (size_t)rint(scale) : 0;
}

/* Whole numbers of source pixels make one. */
static void fit_whole(const struct picture *in, const struct picture_fit *fit, size_t across, size_t down,
                      struct picture *out)
{
    size_t channels = (size_t)in->channels, in_row = in->width * channels;
    float share = 1.f / (float)(across * down);
    uint8_t *to = out->at;
    for (size_t y = 0; y < fit->window.height; y++)
        for (size_t x = 0; x < fit->window.width; x++) {
            const uint8_t *p =
                in->at + (fit->window.y + y) * down * in_row + (fit->window.x + x) * across * channels;
            for (size_t c = 0; c < channels; c++) {
                uint32_t sum = 0;
                for (size_t j = 0; j < down; j++)
                    for (size_t i = 0; i < across; i++)
                        sum += p[j * in_row + i * channels + c];
                /* OpenCV has a way of its own for halves. */
                *to++ = across == 2 && down == 2 ? (uint8_t)((sum + 2) >> 2) : round8((float)sum * share);
            }
        }
}

static void crop(const struct picture *in, const struct picture_rect *w, struct picture *out)
{
    size_t channels = (size_t)in->channels, bytes = w->width * channels;
    for (size_t y = 0; y < w->height; y++)
        memcpy(out->at + y * bytes, in->at + ((w->y + y) * in->width + w->x) * channels, bytes);
}

int picture_fit(const struct picture *in, const struct picture_fit *fit, struct picture *out,
                struct cairn_error *err)
{
    if (in->width != fit->from_width || in->height != fit->from_height)
        return cairn_fail(err, CAIRN_EFORMAT, "the picture has %zu x %zu pixels, expected %zu x %zu",
                          in->width, in->height, fit->from_width, fit->from_height);
    if (picture_new(out, fit->window.width, fit->window.height, in->channels, err))
        return -1;
    size_t across = whole_ratio(in->width, fit->scaled_width),
           down = whole_ratio(in->height, fit->scaled_height);
    int failed = 0;
    if (in->width == fit->scaled_width && in->height == fit->scaled_height)
        crop(in, &fit->window, out);
    else if (fit->grows)
        failed = fit_lanczos(in, fit, out, err);
    else if (across && down)
        fit_whole(in, fit, across, down, out);
    else
        failed = fit_area(in, fit, out, err);
    if (failed)
        picture_free(out);
    return failed;
}

/* ---- flips ---- */

void picture_flip_x(struct picture *p)
{
    size_t channels = (size_t)p->channels, bytes = p->width * channels;
    for (size_t y = 0; y < p->height; y++) {
        uint8_t *left = p->at + y * bytes, *right = left + bytes - channels;
        for (; left < right; left += channels, right -= channels)
            for (size_t c = 0; c < channels; c++) {
                uint8_t kept = left[c];
                left[c] = right[c];
                right[c] = kept;
            }
    }
}

void picture_flip_y(struct picture *p)
{
    size_t bytes = p->width * (size_t)p->channels;
    for (size_t y = 0; y < p->height / 2; y++) {
        uint8_t *top = p->at + y * bytes, *bottom = p->at + (p->height - 1 - y) * bytes;
        for (size_t i = 0; i < bytes; i++) {
            uint8_t kept = top[i];
            top[i] = bottom[i];
            bottom[i] = kept;
        }
    }
}
