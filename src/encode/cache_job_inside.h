/* SPDX-License-Identifier: Apache-2.0
 * The two passes of a cache job. */
#ifndef CAIRN_ENCODE_CACHE_JOB_INSIDE_H
#define CAIRN_ENCODE_CACHE_JOB_INSIDE_H

#include "base/hash.h"
#include "encode/cache_job.h"
#include "encode/encode_device.h"

int cache_job_texts(const struct cache_job *job, struct cache_result *out, struct cairn_error *err);
int cache_job_latents(const struct cache_job *job, struct cache_result *out, struct cairn_error *err);

/* Identifies a model's file (or folder) by its size and some of its bytes: enough to notice another model. */
int cache_hash_file(struct hash *h, const char *path, struct cairn_error *err);
/* Whether a file is current: made of the same, or by another program. */
enum cache_file { CACHE_MISSING, CACHE_OTHER, CACHE_FOREIGN, CACHE_CURRENT };
enum cache_file cache_file_state(const char *path, const char *made_from);
/* The stem of the file of a prompt that belongs to no item. */
char *cache_prompt_stem(struct arena *a, const char *prompt);
/* Fails with CAIRN_EIO after Ctrl-C. */
int cache_job_stopped(const struct cache_job *job, struct cairn_error *err);
void cache_job_fail_item(struct cache_result *out, struct cache_count *count, const char *path,
                         const struct cairn_error *why);

/* "latents  12 of 80  1.3/s  ETA 0:52", on a terminal in place. */
struct cache_progress {
    FILE *talk;
    const char *what;
    size_t total;
    double started, shown;
};
void cache_progress_start(struct cache_progress *p, FILE *talk, const char *what, size_t total);
void cache_progress_step(struct cache_progress *p, size_t done);
void cache_progress_end(struct cache_progress *p);

#endif
