/* SPDX-License-Identifier: Apache-2.0
 * The job files of other trainers, as far as they concern cairn: which trainer, which optimizer, and where
 * it will write its caches.
 *
 * cairn knows jobs of ai-toolkit (YAML, JSON), datasets and options of musubi-tuner and sd-scripts (TOML),
 * and options of diffusion-pipe (TOML). */
#ifndef CAIRN_RUN_JOB_FILE_H
#define CAIRN_RUN_JOB_FILE_H

#include "base/arena.h"
#include <stdbool.h>
#include <stddef.h>

/* A value and its place in the file. */
struct job_setting {
    const char *value; /* NULL: not in the file */
    const char *key;   /* "config.process[0].train.optimizer" */
    int line;
};

struct job_folder {
    const char *path; /* as in the file, relative to the trainer's working folder */
    bool is_cache;    /* every safetensors file in it belongs to a cache */
};

struct job_file {
    const char *path;
    const char *trainer; /* as --trainer knows it */
    bool is_dataset;     /* it describes datasets, not a training */
    const char *dataset; /* the dataset file that it names; NULL: none */
    struct job_setting optimizer, low_vram, offloading;
    struct job_folder *folder;
    size_t n_folders;
};

/* False if it is none of these, or cannot be read. */
bool job_file_read(const char *path, struct arena *a, struct job_file *out);
/* Those that a command names, and the dataset files that these name. */
size_t job_files_of(char *const *argv, struct arena *a, struct job_file **out);
/* The command that runs it. */
const char *job_file_command(const struct job_file *f, struct arena *a);
/* A sentence that recommends an optimizer instead of one of bitsandbytes; NULL: it uses none of those. */
const char *job_file_optimizer(const struct job_file *f, struct arena *a);

#endif
