/* SPDX-License-Identifier: Apache-2.0
 * Prompts of samples, as musubi-tuner writes them: a text with options behind it,
 *
 *     a red ball rolls --w 832 --h 480 --f 33 --d 7 --s 20 --l 5 --fs 3 --n blurry --i first.png
 *
 * and files of them: .txt with one a line and comments (#), .toml with [prompt] and [[prompt.subset]], .json with a list.
 * --fps is the frame rate of the file, and --lm the strength of the LoRA (network_multiplier in ai-toolkit). */
#ifndef CAIRN_VIDEO_PROMPTS_H
#define CAIRN_VIDEO_PROMPTS_H

#include "base/arena.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

struct sample_prompt {
    const char *text;
    const char *negative;         /* NULL: not given */
    const char *image;            /* a file for image-to-video; NULL: none */
    size_t width, height, frames; /* pixels; 0: not given */
    double fps;                   /* 0: not given */
    int64_t seed;                 /* -1: not given */
    size_t steps;                 /* 0: not given */
    double cfg;                   /* below 0: not given */
    double shift;                 /* 0: not given */
    double lora_scale;            /* 1 unless given */
};

/* An option that cairn does not know, or whose value is not possible, is CAIRN_EUSAGE. */
int prompt_parse(const char *line, struct arena *a, struct sample_prompt *out, struct cairn_error *err);
/* The file's name chooses its format.  Messages begin with "PATH:LINE: ".  An image that is not there is looked for beside
 * the file. */
int prompts_read(const char *path, struct arena *a, struct sample_prompt **out, size_t *n,
                 struct cairn_error *err);
/* The same for text in memory. */
int prompts_parse(const char *path, const char *text, size_t len, struct arena *a, struct sample_prompt **out,
                  size_t *n, struct cairn_error *err);

#endif
