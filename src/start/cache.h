/* SPDX-License-Identifier: Apache-2.0
 * `cairn cache`: reads the configuration or the dataset file, lists the dataset, and makes its caches on the device. */
#ifndef CAIRN_START_CACHE_H
#define CAIRN_START_CACHE_H

#include "encode/cache_stale.h"
#include "start/read_config.h"

struct start_cache_options {
    struct config_changes changes;
    const char
        *file; /* a configuration, a dataset file of musubi-tuner or ai-toolkit, or a folder of media */
    const char *vae, *text_encoder, *tokenizer,
        *dir; /* override keys of the configuration; NULL: as it says */
    bool again;
    bool decode; /* also decode the images when they are listed, to find damaged ones */
    bool prune;  /* delete caches that no item uses */
    int hang_after_s;
    int argc; /* for a restart after a call that never returned */
    char **argv;
    FILE *talk;
    const struct message_sink *messages;
    const volatile sig_atomic_t *stop;
};

struct start_cache {
    struct job_config config;
    bool assumed_task;
    struct dataset *dataset;
    struct gpu *g;
    struct cache_result result;
    struct cache_stale stale; /* after the job was done */
};

/* The dataset.  Close it in any case. */
int start_cache_list(struct start_cache *s, const struct start_cache_options *o, struct arena *a,
                     struct cairn_error *err);
int start_cache_run(struct start_cache *s, const struct start_cache_options *o, struct arena *a,
                    struct cairn_error *err);
void start_cache_close(struct start_cache *s);

#endif
