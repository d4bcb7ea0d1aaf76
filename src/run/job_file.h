/* SPDX-License-Identifier: Apache-2.0
 * The job files of other trainers, as far as they concern cairn: whose they are, which optimizer they ask for, and where
 * the trainer will keep its caches.
 *
 * Known are ai-toolkit's jobs (YAML, JSON), datasets and options of musubi-tuner and sd-scripts (TOML), and diffusion-pipe's
 * options (TOML). */
#ifndef CAIRN_RUN_JOB_FILE_H
#define CAIRN_RUN_JOB_FILE_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>

/* A value, and where it stands. */
struct job_setting {
    const char *value; /* NULL: the file does not say */
    const char *key;   /* "config.process[0].train.optimizer" */
    int line;
};

struct job_folder {
    const char *path; /* as the file has it: from the trainer's working folder */
    bool is_cache;    /* every safetensors file in it is one of a cache */
};

struct job_file {
    const char *path;
    const char *trainer; /* as --trainer knows it */
    bool is_dataset;     /* it says what is learned from, not how */
    const char *dataset; /* the file of datasets that it names; NULL: none */
    struct job_setting optimizer, low_vram, offloading;
    struct job_folder *folder;
    size_t n_folders;
};

/* False for a file that is none of these, or cannot be read. */
bool job_file_read(const char *path, struct arena *a, struct job_file *out);
/* Those that a command names, and the datasets that they name in turn. */
size_t job_files_of(char *const *argv, struct arena *a, struct job_file **out);
/* What to type to run it. */
const char *job_file_command(const struct job_file *f, struct arena *a);
/* Another optimizer in place of one of bitsandbytes, as a sentence; NULL: it asks for none of those. */
const char *job_file_optimizer(const struct job_file *f, struct arena *a);

#endif
