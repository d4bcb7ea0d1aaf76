/* SPDX-License-Identifier: Apache-2.0
 * Wan transformers in the files that they come in: safetensors (single, by an index, or one of several
 * shards) and torch's zip files; official or diffusers names, after any prefix; f32, f16, bf16 or fp8 with
 * and without scales.  Which files a model has: wan_find.h. */
#ifndef CAIRN_NN_WAN_FILE_H
#define CAIRN_NN_WAN_FILE_H

#include "nn/param_file.h"
#include "nn/wan.h"

struct wan_file_info {
    struct wan_shape shape; /* text_rows and clip_rows are those of released models: no tensor shows them */
    enum dtype dtype;       /* of the blocks' matrices */
    bool scaled;            /* they are fp8 with scales */
    bool diffusers;         /* names */
    bool control;           /* a Fun-Control model: takes the latents of a control video */
    size_t files;           /* more than one: shards */
};

/* heads: 0 takes the config.json beside the file, or a head size of 128.  Fails for what is no Wan
 * transformer, and says what it is. */
int wan_file_read_info(const char *path, size_t heads, struct wan_file_info *out, struct cairn_error *err);

/* Loads a file into a base of a model of its shape.  The report is filled even on failure; release it. */
int wan_file_load(struct wan *m, size_t base, const char *path, struct param_report *report,
                  struct cairn_error *err);

#endif
