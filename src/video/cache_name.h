/* SPDX-License-Identifier: Apache-2.0
 * Names of musubi-tuner's cache files.
 *
 *     STEM_WIDTHxHEIGHT_ARCH.safetensors                          latents of an image
 *     STEM_START-FRAMES[-SECTION]_WIDTHxHEIGHT_ARCH.safetensors   latents of a clip
 *     STEM_ARCH_te.safetensors                                    text, for all latents of a stem
 *
 * The size is that of the original media.  A stem may itself contain "_" and any other byte, so that a name
 * is split from the right.  "wan" is the architecture of Wan 2.1 and 2.2. */
#ifndef CAIRN_VIDEO_CACHE_NAME_H
#define CAIRN_VIDEO_CACHE_NAME_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>

#define CACHE_NAME_ARCH "wan"

struct cache_name {
    size_t stem; /* length of the stem of an image: all before the size */
    /* Length of the stem of a clip; 0: the name is not one of a clip.  The name alone does not tell an image
     * "a_00000-005.png" from a clip "a.mp4". */
    size_t clip_stem;
    const char *arch; /* "wan", within the name */
    size_t arch_len;
};

/* False: not the name of a latents cache of any architecture. */
bool cache_name_parse(const char *file, struct cache_name *out);
bool cache_name_is_wan(const struct cache_name *n);

/* What a cache of latents was made of. */
struct cache_of {
    const char *stem;
    size_t width, height; /* of the original media */
    bool clip;
    size_t start, frames; /* of a clip: the first frame and how many */
};
/* The names of its files for Wan. */
char *cache_name_latents(struct arena *a, const struct cache_of *of);
char *cache_name_text(struct arena *a, const char *stem);

#endif
