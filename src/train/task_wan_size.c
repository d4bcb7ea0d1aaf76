/* SPDX-License-Identifier: Apache-2.0
 * Sizes of clips in pixels and frames: those of data.size, and those that people train with. */
#include "base/parse.h"
#include "train/task_wan_inside.h"
#include <string.h>

enum { FRAMES_STEP = 4 /* frames of a latent's, after the first */, FRAMES_MOST = 1001, SIDE_MOST = 16384 };

/* Pixels of a latent's cell; the VAE of TI2V-5B is another. */
static size_t cell_pixels(const struct wan_shape *s)
{
    return s->out == 48 ? 16 : 8;
}

static int bad_size(const char *text, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_EUSAGE, "\"%s\" is not WIDTHxHEIGHTxFRAMES, such as 832x480x81", text);
}

int wan_pixels_parse(const char *text, struct wan_pixels *out, struct cairn_error *err)
{
    uint64_t number[3] = { 0, 0, 1 };
    char part[3][8];
    size_t n = 0;
    for (const char *at = text;; at++) {
        size_t len = strcspn(at, "x");
        if (n == ARRAY_LEN(part) || !len || len >= sizeof(part[0]))
            return bad_size(text, err);
        memcpy(part[n], at, len);
        part[n][len] = '\0';
        if (!cairn_parse_u64(part[n], &number[n]) || !number[n])
            return bad_size(text, err);
        n++;
        at += len;
        if (!*at)
            break;
    }
    if (n < 2)
        return bad_size(text, err);
    if (number[0] > SIDE_MOST || number[1] > SIDE_MOST || number[2] > FRAMES_MOST)
        return cairn_fail(err, CAIRN_EUSAGE, "\"%s\" is too large: at most %dx%dx%d", text, SIDE_MOST,
                          SIDE_MOST, FRAMES_MOST);
    *out = (struct wan_pixels){ (size_t)number[0], (size_t)number[1], (size_t)number[2] };
    return 0;
}

struct wan_pixels wan_pixels_of(const struct wan_shape *s, size_t width, size_t height, size_t frames)
{
    size_t cell = cell_pixels(s);
    return (struct wan_pixels){ width * cell, height * cell, (frames - 1) * FRAMES_STEP + 1 };
}

/* Tokens of one frame of the latent. */
static size_t positions_of(const struct wan_shape *s, size_t width, size_t height)
{
    size_t cell = cell_pixels(s);
    return width / cell * (height / cell) / WAN_PATCH;
}

static size_t rounded(size_t n, size_t step)
{
    return n < step ? step : (n + step / 2) / step * step;
}

int wan_job_set_size(struct wan_job *t, struct cairn_error *err)
{
    const struct job_config *c = t->task.env.config;
    size_t cell = cell_pixels(&t->shape), patch = 2 * cell;
    struct wan_pixels p;
    if (wan_pixels_parse(t->keys.data.size, &p, err))
        return -1;
    if (p.width % patch || p.height % patch)
        return config_clash(c, "data.size", "data.size", err,
                            "data.size: %zux%zu: width and height must be multiples of %zu; %zux%zu is the "
                            "nearest",
                            p.width, p.height, patch, rounded(p.width, patch), rounded(p.height, patch));
    if (p.frames % FRAMES_STEP != 1)
        return config_clash(c, "data.size", "data.size", err,
                            "data.size: %zu frames: it must be a multiple of %d, plus 1; %zu is the nearest",
                            p.frames, FRAMES_STEP, rounded(p.frames - 1, FRAMES_STEP) + 1);
    t->largest = p;
    t->planned = (struct video_item){ .frames = (p.frames - 1) / FRAMES_STEP + 1,
                                      .height = p.height / cell,
                                      .width = p.width / cell };
    t->cells = t->planned.frames * t->planned.height * t->planned.width;
    t->task.extent = t->cells / WAN_PATCH;
    return 0;
}

void wan_job_pictures(const struct task *task, struct task_pictures *out)
{
    static const struct {
        size_t width, height;
    } usual[] = { { 256, 256 }, { 512, 512 }, { 832, 480 }, { 960, 544 }, { 1280, 720 } };
    static const size_t frames[] = { 1, 17, 33, 49, 81, 121 /* of TI2V-5B */ };
    const struct wan_job *t = (const struct wan_job *)task;
    size_t patch = 2 * cell_pixels(&t->shape);
    *out = (struct task_pictures){ .n_frames = ARRAY_LEN(frames) - (t->shape.out == 48 ? 0 : 1),
                                   .frames_step = FRAMES_STEP,
                                   .frames_most = FRAMES_MOST };
    memcpy(out->frames, frames, sizeof(frames));
    out->own = ARRAY_LEN(out->sizes);
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        size_t w = usual[i].width, h = usual[i].height / patch * patch; /* 1280x704 for TI2V-5B */
        bool is_own = (w == t->largest.width && h == t->largest.height) ||
                      (h == t->largest.width && w == t->largest.height);
        if (is_own)
            out->own = out->n_sizes;
        out->sizes[out->n_sizes++] = (struct task_picture){ w, h, positions_of(&t->shape, w, h) };
    }
    if (out->own < out->n_sizes)
        return;
    out->own = out->n_sizes;
    out->sizes[out->n_sizes++] =
        (struct task_picture){ t->largest.width, t->largest.height,
                               positions_of(&t->shape, t->largest.width, t->largest.height) };
}
