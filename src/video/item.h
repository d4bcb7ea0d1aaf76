/* SPDX-License-Identifier: Apache-2.0
 * One item of training data: the cached latents of an image or a clip, and its cached text.
 *
 * Headers are read once; an item remembers where each tensor is, so that reading one costs an open, a read
 * and a conversion, and no file stays open.  The dtype is that of the file's header: musubi-tuner names its
 * CLIP features by the dtype of the latents although they are f16.  Latents in a cache are normalised
 * already.  Any number of threads may read. */
#ifndef CAIRN_VIDEO_ITEM_H
#define CAIRN_VIDEO_ITEM_H

#include "base/error.h"
#include "tensor/dtype.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum video_part {
    VIDEO_LATENTS, /* [channels, frames, height, width] */
    VIDEO_IMAGE,   /* [image_channels, frames, height, width]: 4 of the mask, then those of the image */
    VIDEO_CLIP,    /* [clip_tokens, clip_dim] */
    VIDEO_TEXT,    /* [text_rows, text_dim] */
    VIDEO_PARTS,
};

/* A tensor in a file. */
struct video_tensor {
    const char *path;
    char name[64];
    enum dtype dtype;
    uint64_t at;     /* offset in the file */
    uint64_t file;   /* size of the file when it was opened */
    uint64_t values; /* 0: the item has no such tensor */
};

/* How a dataset wants an item to be trained on. */
struct video_use {
    size_t repeats;         /* in an epoch */
    double weight;          /* of its loss */
    double caption_dropout; /* share of its samples with the empty caption */
    bool clean_first_frame; /* no noise and no loss on it */
    bool is_regularisation; /* ai-toolkit: such items have every other step to themselves */
};

struct video_item {
    const char *name; /* of the latents file, without its folder and "_wan.safetensors" */
    const char *path, *text_path;
    size_t channels, frames, height, width; /* of the latents */
    size_t text_rows, text_dim;
    size_t image_channels;        /* 0: no image latents */
    size_t clip_tokens, clip_dim; /* 0: no CLIP features */
    bool is_clip;                 /* the cache of a clip, not of a still image */
    struct video_use use;
    struct video_tensor parts[VIDEO_PARTS];
};

/* What a model needs of every item. */
struct video_needs {
    size_t channels;              /* of the latents; 0: any */
    size_t text_dim;              /* 0: any */
    size_t image_channels;        /* 0: no image latents are needed */
    bool clip;                    /* CLIP features are needed, and … */
    size_t clip_tokens, clip_dim; /* … of this size; 0: any */
};

/* Reads the header of item->path and fills in the latents, image latents and CLIP features; or of
 * item->text_path and fills in the text.  Fails if the file is damaged or not what the model needs. */
int video_item_open(struct video_item *item, const struct video_needs *needs, struct cairn_error *err);
int video_item_open_text(struct video_item *item, const struct video_needs *needs, struct cairn_error *err);

/* Orders items by frames, height and width; 0: the same size of latents. */
int video_item_compare_size(const struct video_item *a, const struct video_item *b);
/* Reads a tensor that the item has as f32, in the order of the file.  Fails if the file is gone or has
 * changed, if a value is NaN or infinite, or if all latents are the same number: then caching went wrong. */
int video_item_read(const struct video_item *item, enum video_part part, float *out, struct cairn_error *err);
/* Reads all that a model needs and throws it away. */
int video_item_check(const struct video_item *item, const struct video_needs *needs, struct cairn_error *err);

#endif
