/* SPDX-License-Identifier: Apache-2.0
 * The caches of a Wan job: whether data.path has them, and how they are made of images, clips and captions. */
#ifndef CAIRN_TRAIN_WAN_CACHE_H
#define CAIRN_TRAIN_WAN_CACHE_H

#include "encode/cache_job.h"
#include "train/task_wan.h"
#include "train/wan_prompts.h"
#include "video/cache.h"

/* Whether data.path has images and clips, whatever else it has, or names a dataset file. */
bool wan_cache_has_media(const struct job_config *c);
/* Whether data.path names images and clips without caches, or a dataset file: then caches are made first. */
bool wan_cache_is_needed(const struct job_config *c);
/* Adds data.path, its place and a remedy to an error about its folders. */
int wan_cache_wrap(const struct job_config *c, struct cairn_error *err);
/* Caches need no transformer.  Where neither model.path nor model.task is set, sets the task: that of Wan 2.2's VAE, or
 * text-to-video.  *assumed: it may be another, image-to-video. */
int wan_cache_assume_task(struct job_config *c, bool *assumed, struct cairn_error *err);
/* Lists the images and clips.  decode: also decodes the images, to find damaged ones. */
int wan_cache_dataset(const struct job_config *c, const struct dataset_progress *progress, bool decode,
                      struct dataset **out, struct cairn_error *err);
/* The largest clip that data.resolution and data.frames ask for, as data.size. */
int wan_cache_largest(const struct job_config *c, struct arena *a, const char **out, struct cairn_error *err);
/* Fails if the encoders are not those of the model: before its caches are replaced. */
int wan_cache_check(const struct job_config *c, const struct video_needs *needs, struct cairn_error *err);
/* Fails if the model needs CLIP features, which cairn cannot make. */
int wan_cache_check_clip(const struct job_config *c, struct cairn_error *err);
/* Fails if a dataset wants to be trained on in a way that is not possible, such as with a mask. */
int wan_cache_check_use(const struct dataset *d, struct cairn_error *err);
/* Fills in what follows from the configuration and the device; the caller adds messages, budgets and the stop flag.  g
 * may be NULL.  Texts are in the arena. */
int wan_cache_job(const struct job_config *c, const struct dataset *d, struct gpu *g, struct arena *a,
                  struct cache_job *out, struct cairn_error *err);
/* The same for prompts alone (cache_prompts_run). */
int wan_cache_prompts(const struct job_config *c, const struct sample_prompt *prompts, size_t n,
                      struct gpu *g, struct arena *a, struct cache_job *out, struct cairn_error *err);
/* Where a dataset's caches are: the folders, each once, and the files of latents. */
void wan_cache_list(const struct dataset *d, struct arena *a, struct video_cache_options *out);

#endif
