/* SPDX-License-Identifier: Apache-2.0
 * What happens to each tensor of a file: decided before any data is read, so that a wrong option fails
 * early. */
#ifndef CAIRN_TENSOR_CONVERT_PLAN_H
#define CAIRN_TENSOR_CONVERT_PLAN_H

#include "tensor/convert.h"

enum convert_action {
    CONVERT_COPY,    /* bytes as they are */
    CONVERT_CAST,    /* another dtype, or repaired */
    CONVERT_UNSCALE, /* code * scale */
    CONVERT_SCALE,   /* to codes and scales */
    CONVERT_NOTHING, /* empty, or written beside another tensor */
};

struct convert_step {
    enum convert_action action;
    const struct st_tensor *from; /* NULL: the new file alone has it */
    struct st_tensor out;
    const struct st_tensor *scale; /* UNSCALE: where the scales are */
    size_t scale_step;             /* SCALE: the step that holds them */
    uint64_t block;                /* elements that share a scale */
    uint64_t counter;              /* number of its first element, for random bits */
};

struct convert_plan {
    struct arena arena;
    struct convert_step *steps; /* in the order of the source */
    size_t n;
    struct st_meta *meta;
    size_t n_meta;
};

/* Fills the counts of tensors in the report.  Names in the plan belong to it and to the source. */
int convert_plan_make(struct convert_plan *p, const struct tensor_source *src,
                      const struct convert_options *o, struct convert_report *report,
                      struct cairn_error *err);
void convert_plan_release(struct convert_plan *p);

#endif
