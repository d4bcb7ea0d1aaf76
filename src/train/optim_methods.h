/* SPDX-License-Identifier: Apache-2.0
 * The optimizers.  A new one is a row of OPTIM_METHODS and a file optim_<name>.c with its `struct
 * optim_method`; the word for train.optimizer and the enum follow from the row. */
#ifndef CAIRN_TRAIN_OPTIM_METHODS_H
#define CAIRN_TRAIN_OPTIM_METHODS_H

#include "base/error.h"
#include <stddef.h>

/* In the order of the documentation; files hold the name. */
#define OPTIM_METHODS(X)    \
    X(ADAMW, adamw)         \
    X(ADAMW8, adamw8)       \
    X(LION, lion)           \
    X(ADAFACTOR, adafactor) \
    X(PRODIGY, prodigy)

#define OPTIM_KIND(KIND, name) OPTIM_##KIND,
enum optim_kind { OPTIM_METHODS(OPTIM_KIND) OPTIM_KINDS };
#undef OPTIM_KIND

struct gpu_stream;
struct optim;
struct optim_group;
struct optim_state;
struct optim_weights;
struct params;

struct optim_method {
    /* Lists the arrays of a group's state, in the order of the file; returns how many there are. */
    size_t (*state)(const struct optim_group *group, const struct params *p, struct optim_state *out);
    /* Allocates further memory.  NULL: none needed. */
    int (*open)(struct optim *o, struct cairn_error *err);
    /* Sets state that does not start as zeros; called each time weights were loaded.  NULL: there is none. */
    int (*start)(struct optim *o, struct cairn_error *err);
    /* One of the two.  update is one launch, for any range of a group's elements, so its state can be
     * offloaded.  step updates all parameters at once. */
    int (*update)(struct optim *o, struct gpu_stream *s, const struct optim_group *range,
                  const struct optim_weights *to, struct cairn_error *err);
    int (*step)(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err);

    double default_lr;     /* train.lr if it is not set; 0: the key's own default */
    double low_lr;         /* below it, the summary prints lr_remark; 0: never */
    const char *lr_remark; /* how the optimizer uses train.lr */
};

#define OPTIM_METHOD(KIND, name) extern const struct optim_method optim_##name;
OPTIM_METHODS(OPTIM_METHOD)
#undef OPTIM_METHOD

extern const struct optim_method *const optim_methods[OPTIM_KINDS];
extern const char *const optim_names[OPTIM_KINDS + 1]; /* NULL at the end */

#endif
