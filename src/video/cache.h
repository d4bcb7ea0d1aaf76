/* SPDX-License-Identifier: Apache-2.0
 * Training data on disk: folders of musubi-tuner's Wan caches (cache_name.h).
 *
 * Opening lists the folders, without their subfolders, and reads the header of every file once.  Latents
 * whose text was not cached are left out and counted; so are damaged files.  Items are in the order of their paths' bytes, which
 * depends on nothing but the paths.  Once open, any number of threads may read. */
#ifndef CAIRN_VIDEO_CACHE_H
#define CAIRN_VIDEO_CACHE_H

#include "video/item.h"

struct video_cache;

/* One of the latents files of a dataset. */
struct video_cache_wanted {
    const char *path;
    struct video_use use;
};

struct video_cache_options {
    const char *const *paths; /* folders */
    size_t n_paths;
    const char
        *folder; /* items below it have the order that they would have by paths relative to it; NULL: none */
    const struct video_cache_wanted
        *wanted; /* in the order of their paths' bytes; NULL: all of the folders, once */
    size_t n_wanted;
    struct video_needs needs;
};

/* Files that were left out: how many, and the names of the first. */
enum { VIDEO_CACHE_LISTED = 5 };
struct video_cache_skipped {
    size_t n;
    const char *names[VIDEO_CACHE_LISTED];
};

struct video_cache_info {
    struct video_cache_skipped without_text;
    struct video_cache_skipped other_model; /* caches of other architectures: "a_0640x0480_hv.safetensors" */
    struct video_cache_skipped misnamed;    /* "…_wan.safetensors" without a size, such as a LoRA */
    struct video_cache_skipped damaged;     /* "FILE: what is wrong with it" */
    struct video_cache_skipped unwanted;    /* of media or sizes that the dataset does not have */
};

/* Fails if a path is not a folder, if no item is found or all are damaged, or if a file does not fit the model. */
int video_cache_open(struct video_cache **out, const struct video_cache_options *o, struct cairn_error *err);
void video_cache_close(struct video_cache *c);
void video_cache_cleanup(struct video_cache **c); /* for CLEANUP */

const struct video_cache_info *video_cache_info(const struct video_cache *c);
size_t video_cache_count(const struct video_cache *c);
const struct video_item *video_cache_item(const struct video_cache *c, size_t i);

#endif
