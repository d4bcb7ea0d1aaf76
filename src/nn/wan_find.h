/* SPDX-License-Identifier: Apache-2.0
 * The files of a Wan model.
 *
 * A path is a file (.safetensors, one shard of several, an index, .pth) or a folder: a root of diffusers
 * ("transformer", "transformer_2"), an official folder ("high_noise_model", "low_noise_model"), or one with
 * the files of one model, or of two experts that their names tell apart. */
#ifndef CAIRN_NN_WAN_FIND_H
#define CAIRN_NN_WAN_FIND_H

#include "nn/wan_kind.h"

struct wan_request {
    const char *path, *high_noise_path; /* model.path, model.high_noise_path; NULL or empty: not given */
    const char *task;                   /* model.task; the same */
    const char *expert;                 /* model.expert: auto, low, high, both; NULL is auto */
    size_t heads;                       /* model.heads; 0: not given */
};

struct wan_base_file {
    const char *path; /* NULL: there is none, see wan_assume */
    struct wan_file_info info;
    struct wan_kind kind;
};
struct wan_files {
    struct arena arena;
    struct wan_base_file bases[WAN_EXPERTS]; /* with two: low, high */
    size_t n;
    const char **warnings;
    size_t n_warnings;
};

/* Finds and opens the files; what is missing is an error with the remedy.  Two experts have the same
 * shape.  Release it, also after a failure. */
int wan_find(const struct wan_request *r, struct wan_files *out, struct cairn_error *err);
/* The same without files, for a plan: the released model that r->task names; of two experts the one that r->expert or
 * the name of the only file says, else both.  A path that does not exist is a warning. */
int wan_assume(const struct wan_request *r, struct wan_files *out, struct cairn_error *err);
/* CAIRN_EUSAGE: model.path is not set, with the names of the files that it takes. */
int wan_lacks_files(const struct wan_request *r, struct cairn_error *err);
void wan_files_release(struct wan_files *f);

#endif
