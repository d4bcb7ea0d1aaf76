/* SPDX-License-Identifier: Apache-2.0
 * A dataset of pictures and clips: which files, which frames of them, at which size, with which caption.
 *
 * It is described by a dataset file of musubi-tuner (TOML or JSON), by the datasets of an ai-toolkit job (YAML
 * or JSON), or by a list of folders and the options below.  Opening it lists the folders, asks cairn-media for
 * the size of every file, and applies the rules of that program; no pixel is decoded unless `decode` is set.  An item
 * is what becomes one cache: one picture, or some frames of a clip.  What is wrong with a file is a problem of its items, and
 * the others go on.  Fails only if the description is wrong or a folder cannot be read.
 *
 * Items are in the order of their datasets, then of the bytes of their paths, then of their frames.  All
 * memory is the dataset's; once it is open, any number of threads may read it. */
#ifndef CAIRN_MEDIA_DATASET_H
#define CAIRN_MEDIA_DATASET_H

#include "base/arena.h"
#include "base/error.h"
#include "media/bucket.h"
#include "media/media.h"
#include "media/resize.h"
#include <stdbool.h>
#include <stddef.h>

/* Which frames of a clip become items. */
enum dataset_extract {
    DATASET_HEAD,    /* the first N, for each N of the frame counts */
    DATASET_CHUNK,   /* consecutive pieces of N */
    DATASET_SLIDE,   /* N from every stride-th frame on */
    DATASET_UNIFORM, /* N from each of `samples` starts, evenly spread */
    DATASET_FULL,    /* the whole clip, at most max_frames, rounded down to 4n+1 */
    DATASET_SPREAD,  /* ai-toolkit: N frames, evenly spread over the clip; frames may repeat */
    DATASET_RATE,    /* ai-toolkit: N frames at the rate, from the start */
    DATASET_LENGTH,  /* ai-toolkit: as many as the clip has at the rate, 4n+1 */
};

/* By the first five of these names, in lower case. */
int dataset_extract_parse(const char *word, enum dataset_extract *out, struct cairn_error *err);

struct dataset_progress {
    void (*step)(void *context, size_t done, size_t total); /* one thread at a time; NULL: none */
    void *context;
};

/* {0} with paths is what somebody needs who has only a folder: pictures and clips, captions in STEM.txt,
 * buckets of the area of 832 x 480, clips at 16 frames per second, from their start, up to 81 frames. */
struct dataset_options {
    /* .toml, .json: a dataset file of musubi-tuner; .yaml, .yml, .json: a job of ai-toolkit.  NULL: paths. */
    const char *config;
    const char *folder; /* relative paths in it belong to this folder; NULL: to the current one */

    const char *const *paths; /* folders; their subfolders are not searched */
    size_t n_paths;
    const struct bucket_size *resolutions; /* each file once for each; none: 832 x 480 */
    size_t n_resolutions;
    bool no_buckets;      /* crop everything to the resolution */
    bool no_upscale;      /* small files keep their size */
    const size_t *frames; /* rounded down to 4n+1; none: 81 */
    size_t n_frames;
    const char *
        extraction; /* "head", "chunk", "slide", "uniform", "full"; NULL: full, up to the largest of `frames` */
    size_t stride, samples;        /* 0: 1 */
    double fps;                    /* frames of faster clips are dropped; 0: 16; below 0: none are dropped */
    const char *caption_extension; /* NULL: ".txt" */
    const char *caption_default;   /* where there is no caption; NULL: such files are a problem */
    const char *trigger;           /* as caption_add_trigger; NULL: captions stay as they are */
    bool flip_x, flip_y;           /* adds flipped copies */
    size_t repeats;                /* 0: 1 */
    const char *mask_path;         /* a folder of masks with the files' stems; NULL: none */
    /* NULL: that of the configuration, else the folder "_cairn_cache" in the folder of the media.  Several
     * datasets get subfolders. */
    const char *cache_directory;

    /* These apply to all three. */
    size_t bucket_step; /* 0: 16; the VAE of Wan 2.2 5B needs 32 */
    double model_fps;   /* of the model, for musubi-tuner's source_fps; 0: 16 */
    int threads;        /* cairn-media processes for probing; 0: as many as there are CPUs, at most 8 */
    const struct media_options *media; /* NULL: the defaults */
    bool decode; /* also decode the pictures, to find damaged ones; of clips, damage is found without it */
    struct dataset_progress progress;
    /* For tests: answers instead of cairn-media; called by several threads at once.  NULL: cairn-media. */
    int (*probe)(void *context, const char *path, struct arena *a, struct media_info *out,
                 struct cairn_error *err);
    void *probe_context;
};

/* One [[datasets]] of musubi-tuner, one resolution of a dataset of ai-toolkit, one folder. */
struct dataset_block {
    const char *name; /* of its folder or list, as it was written */
    const char *cache_directory;
    size_t batch, repeats;
    double caption_dropout; /* ai-toolkit; 0 elsewhere */
    bool first_frame;       /* condition on the first frame (do_i2v) */
    bool is_regularisation; /* ai-toolkit's is_reg */
    double loss_multiplier, network_weight, mask_minimum;
    bool alpha_mask, invert_mask;
    /* Where the job says so, such as "job.yaml:8:20: network_weight"; NULL: it does not. */
    const char *weight_place, *mask_place;
};

enum dataset_problem {
    DATASET_FINE,
    DATASET_UNREADABLE, /* the media file */
    DATASET_CAPTION,    /* missing, empty or not UTF-8 */
    DATASET_TOO_SHORT,  /* fewer frames than needed */
    DATASET_TOO_SMALL,  /* fewer pixels than a bucket has at least, or a bucket that the model cannot use */
    DATASET_SAME_NAME,  /* another item would have the same cache file */
    DATASET_CONTROL,    /* its control or mask is missing */
    DATASET_PROBLEMS,
};

struct dataset_item {
    const struct dataset_block *block;
    const char *path; /* a file, or a folder of frames */
    const char *stem; /* name of the file without its extension */
    /* The names of its caches are cache_stem_wan_te.safetensors and, for a picture,
     * cache_stem_WIDTHxHEIGHT_wan.safetensors; for a clip, cache_stem_START-FRAMES_WIDTHxHEIGHT_wan.safetensors,
     * with name_size and `start`.  musubi-tuner names a picture by its own size, a clip by its bucket. */
    const char *cache_stem;
    struct bucket_size name_size;
    size_t start; /* number of the first frame, after frames were dropped for the rate */

    struct media_info media; /* all 0: it could not be read */
    bool is_clip;            /* its frames are named by start and number */
    bool has_caption;        /* one of its own */
    const char *caption;     /* NULL: none; may be "" where the program trains with an empty prompt */
    struct bucket_size bucket;
    struct picture_fit fit;               /* .crop is the rectangle in the source's pixels */
    const size_t *frames;                 /* numbers in the file, ascending; may repeat */
    size_t n_frames;                      /* 4n+1; 1 for a picture; 0: not known */
    bool flip_x, flip_y;                  /* the source, before it is scaled */
    const char *mask_path, *control_path; /* NULL: none */

    enum dataset_problem problem;
    const char *why;          /* what is wrong, without the path; NULL: nothing */
    const char *const *notes; /* remarks: enlarged, variable frame rate, a duplicate of another file, … */
    size_t n_notes;
    bool is_duplicate; /* the same bytes as an earlier file */
};

struct dataset;

int dataset_open(struct dataset **out, const struct dataset_options *o, struct cairn_error *err);
void dataset_close(struct dataset *d);
void dataset_cleanup(struct dataset **d); /* for CLEANUP */

size_t dataset_count(const struct dataset *d);
const struct dataset_item *dataset_item(const struct dataset *d, size_t i);
/* Remarks that concern no single item, such as keys that are ignored. */
size_t dataset_notes(const struct dataset *d, const char *const **notes);

/* An error message about a file for a list that names the file already. */
const char *dataset_why(struct arena *a, const char *path, const char *message);

/* Fails if no item is without a problem; the message names the first problem. */
int dataset_check(const struct dataset *d, struct cairn_error *err);

/* Totals, and items per bucket. */
struct dataset_bucket {
    size_t width, height, frames;
    size_t items;
};
struct dataset_totals {
    size_t files, items, usable; /* usable: items without a problem */
    size_t samples;              /* of an epoch: usable items times their repeats */
    size_t by_problem[DATASET_PROBLEMS];
    size_t captions_missing; /* files without a caption of their own, whether or not that is a problem */
    size_t duplicates;       /* files */
    struct dataset_bucket *bucket; /* of usable items; ascending */
    size_t n_buckets;
};
void dataset_total(const struct dataset *d, struct arena *a, struct dataset_totals *out);
/* "caption", "too-short": for programs. */
const char *dataset_problem_name(enum dataset_problem p);

/* Decodes an item's frames, flips, scales and crops them.  `take` gets n_frames pictures of the bucket's size
 * in order, with their index, 0 … n_frames-1. */
int dataset_item_read(const struct dataset_item *item, struct media *m, media_take *take, void *ctx,
                      struct cairn_error *err);
/* The same for frames first … first+n-1 of the item. */
int dataset_item_read_range(const struct dataset_item *item, size_t first, size_t n, struct media *m,
                            media_take *take, void *ctx, struct cairn_error *err);
/* The same for the control file, which repeats its last frame if it is shorter, and for the mask, one picture
 * with one channel, or the first frame's alpha channel where the block has alpha_mask. */
int dataset_item_read_control(const struct dataset_item *item, struct media *m, media_take *take, void *ctx,
                              struct cairn_error *err);
int dataset_item_read_mask(const struct dataset_item *item, struct media *m, media_take *take, void *ctx,
                           struct cairn_error *err);

#endif
