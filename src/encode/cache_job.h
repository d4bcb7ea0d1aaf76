/* SPDX-License-Identifier: Apache-2.0
 * Turns a dataset into caches: first the text of every caption, then the latents of every item.
 *
 * What is current is skipped: a file says what it was made of (video/cache_write.h), so that another caption, size or
 * model makes it anew.  Files of musubi-tuner are current if their size and caption fit.  Each file appears whole or not
 * at all, so that a job that was killed loses the item it was working on.  An item that fails is listed, and the others
 * go on; a device that fails is replaced by the CPU (encode_device.h).
 *
 * Prompts that belong to no item (the empty one, the negative one, those of samples) are cached too, so that training
 * needs no text encoder: cache_prompt_path says where. */
#ifndef CAIRN_ENCODE_CACHE_JOB_H
#define CAIRN_ENCODE_CACHE_JOB_H

#include "base/message_sink.h"
#include "gpu/gpu.h"
#include "media/dataset.h"
#include "tensor/dtype.h"
#include <signal.h>
#include <stdio.h>

/* Where one of the two encoders computes. */
struct cache_encoder {
    const char *path;
    bool on_cpu;
    enum gpu_storage storage; /* on the device; f32 on the CPU */
};

struct cache_job {
    const struct dataset *dataset;
    struct cache_encoder text, vae;
    const char *tokenizer_path; /* NULL: in or beside the text encoder's files */
    const char *const *prompts; /* besides the captions */
    size_t n_prompts;
    enum dtype dtype;                  /* of the files: bf16, f16 or f32 */
    bool image;                        /* latents of the first frame too, for image-to-video models */
    struct gpu *g;                     /* NULL: only count what is to be done */
    uint64_t budget;                   /* bytes of the device; 0: not known */
    uint64_t host_budget;              /* and of the host */
    bool again;                        /* make all files anew */
    bool repair;                       /* NaN and Inf in latents become 0 instead of an error */
    FILE *talk;                        /* for a progress line; NULL: none */
    struct message_sink sink;          /* for messages */
    const volatile sig_atomic_t *stop; /* Ctrl-C; may be NULL */
};

struct cache_failure {
    const char *path, *why; /* of a media file */
};
struct cache_count {
    size_t made, current, failed;
    uint64_t repaired; /* values */
    double seconds;
};
struct cache_result {
    struct arena arena;
    struct cache_count text, latents;
    struct cache_failure *failures;
    size_t n_failures;
    const char *first_dir; /* where the prompts are */
};

/* Fails if nothing can be done at all (a model file, no memory), and where Ctrl-C ended it; what was made until then
 * stays, and is counted.  Release the result in any case. */
int cache_job_run(const struct cache_job *job, struct cache_result *out, struct cairn_error *err);
/* Only the prompts, into this folder; job->dataset may be NULL. */
int cache_prompts_run(const struct cache_job *job, const char *dir, struct cache_result *out,
                      struct cairn_error *err);
void cache_result_release(struct cache_result *r);

/* The latents file of an item, with one "/" behind the folder. */
char *cache_item_path(struct arena *a, const struct dataset_item *item);
/* The file of a prompt that belongs to no item. */
char *cache_prompt_path(struct arena *a, const char *dir, const char *prompt);

#endif
