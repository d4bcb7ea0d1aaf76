/* SPDX-License-Identifier: Apache-2.0
 * Text in, batches of tokens out.
 *
 * Sources (text_source.h, and .bin files of tokens) are tokenized once; a cache file, named by content and
 * tokenizer, holds the tokens.  All sources form one stream of tokens, in the order given, with the
 * end-of-text token after each document.
 *
 * The stream is cut into windows of seq tokens, each with the token after it, so that every token but the
 * first is a target once per epoch.  Each epoch uses every window once, in an order that depends only on seed
 * and epoch.  Sample number k, counted over the whole run, is always the same window: a batch depends on
 * seed, step and batch size, not on earlier calls or on how a step is split into micro-batches.
 *
 * Validation data is a share at the end of each source (at least one window, if the source has two), or a
 * source of its own.  Its batches are the same in every run, whatever the seed.
 *
 * Once open, any number of threads may read. */
#ifndef CAIRN_TEXT_DATA_H
#define CAIRN_TEXT_DATA_H

#include "text/tokenizer.h"
#include <signal.h>
#include <stdio.h>

struct data;

struct data_options {
    const char *const *paths; /* files, folders, .jsonl, .bin */
    size_t n_paths;
    const char *text_key;  /* of .jsonl; NULL: "text" */
    const char *val_path;  /* NULL or "": val_split decides */
    double val_split;      /* share of each source, below 1 */
    const char *cache_dir; /* NULL: $XDG_CACHE_HOME/cairn/tokens */
    size_t seq;
    size_t batch; /* samples per step, over all its micro-batches */
    uint64_t seed;
    FILE *talk;                        /* progress, if it is a terminal; NULL: silent */
    const volatile sig_atomic_t *stop; /* when set, reading and training fail with an error; may be NULL */
};

struct data_info {
    uint64_t tokens, windows;         /* for training */
    uint64_t val_tokens, val_windows; /* 0: no validation data */
    uint64_t skipped;                 /* files in folders that are not text */
    size_t made;                      /* sources tokenized now, because they were not in the cache */
    uint64_t hash; /* of what was read, and of the tokenizer; of .bin files, their sizes alone */
};

int data_open(const struct data_options *o, const struct tokenizer *t, struct data **out,
              struct cairn_error *err);
void data_close(struct data *d);
void data_cleanup(struct data **d); /* for CLEANUP */
void data_info_get(const struct data *d, struct data_info *out);

/* Micro-batch number `micro` of a step, of n samples: ids and targets have n × seq elements.  A step's batch
 * is the concatenation of its micro-batches, so that 2 of 8 are the same samples as 4 of 4.  Fails if a file
 * became unreadable. */
int data_batch(const struct data *d, uint64_t step, size_t micro, size_t n, int32_t *ids, int32_t *targets,
               struct cairn_error *err);
/* Batch number `batch`, of n samples, of the validation windows; after the last it wraps around.  There must
 * be at least one window. */
int data_val_batch(const struct data *d, uint64_t batch, size_t n, int32_t *ids, int32_t *targets,
                   struct cairn_error *err);

/* Trains a tokenizer on the text of the same sources, without val_path. */
int data_train_tokenizer(const struct data_options *o, uint32_t vocab, struct tokenizer **out,
                         struct cairn_error *err);

#endif
