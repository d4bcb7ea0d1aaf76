/* SPDX-License-Identifier: Apache-2.0
 * Which released Wan model a file is, and which expert.
 *
 * Tensors show most of it.  They cannot tell Wan 2.1 T2V-14B from Wan 2.2 T2V-A14B, nor the two experts of an
 * A14B model from each other: a setting decides, or the name of the file or of its folder. */
#ifndef CAIRN_NN_WAN_KIND_H
#define CAIRN_NN_WAN_KIND_H

#include "nn/wan_file.h"

enum wan_task { WAN_T2V_1_3B, WAN_T2V_14B, WAN_I2V_14B, WAN_T2V_A14B, WAN_I2V_A14B, WAN_TI2V_5B, WAN_TASKS };

struct wan_task_info {
    const char *name;  /* "t2v-A14B", as in model.task */
    const char *title; /* "Wan 2.2 T2V-A14B" */
    struct wan_shape shape;
    double boundary;   /* of the experts' times, as a share of 1; 0: one model */
    const char *files; /* the usual names of its files, for a message */
};
const struct wan_task_info *wan_task_info(enum wan_task t);
/* CAIRN_EUSAGE with the nearest one. */
int wan_task_parse(const char *name, enum wan_task *out, struct cairn_error *err);

enum wan_expert { WAN_EXPERT_NONE, WAN_EXPERT_LOW, WAN_EXPERT_HIGH };
const char *wan_expert_name(enum wan_expert e); /* "low-noise expert" */
enum wan_known { WAN_BY_TENSORS, WAN_BY_NAME, WAN_BY_SETTING, WAN_BY_NOTHING /* assumed */ };

/* What the names of a file and of its folders say.  version: 21, 22, or 0 for nothing. */
enum wan_expert wan_expert_by_name(const char *path);
int wan_version_by_name(const char *path);

struct wan_kind {
    enum wan_task task;
    enum wan_known by;
    enum wan_expert expert; /* of the file; with both experts, that of each is known otherwise */
    enum wan_known expert_by;
};

/* What the kind is decided from. */
struct wan_evidence {
    const char *path;
    const struct wan_file_info *info;
    const char *task;       /* model.task; NULL or empty: not given */
    enum wan_expert expert; /* of the file, where it is known */
    enum wan_known expert_by;
    bool both; /* the model has a file for each expert */
};
/* CAIRN_EUSAGE where model.task contradicts the tensors.  A warning, or nothing, is added to *warning. */
int wan_kind_of(const struct wan_evidence *e, struct wan_kind *out, struct str *warning,
                struct cairn_error *err);
/* "Wan 2.2 T2V-A14B, high-noise expert (by its name), bf16, 40 blocks, hidden size 5120, official names" */
void wan_kind_say(const struct wan_kind *k, const struct wan_file_info *info, struct str *out);

#endif
