/* SPDX-License-Identifier: Apache-2.0
 * The inside of an optimizer, for the files that implement one: optim.c has what all of them share,
 * optim_offload.c the state on the host, optim_<name>.c a method. */
#ifndef CAIRN_TRAIN_OPTIM_INSIDE_H
#define CAIRN_TRAIN_OPTIM_INSIDE_H

#include "gpu/offload.h"
#include "gpu/kernels/optim.h"
#include "train/optim.h"

enum {
    GROUPS = 2,                    /* matrices and vectors */
    GROUP_ARRAYS = OFFLOAD_ARRAYS, /* of a group at most: master copy, average, state */
    STATE_MOST = GROUP_ARRAYS - 2, /* arrays of a method's state of a group */
    OPTIM_PIECE_UNIT = 4096,       /* elements; a piece of offloaded state is a multiple */
    ARRAYS_MOST = 16,
    WORKSPACES_MOST = 8,
};

/* All matrices, all vectors, or a range of the matrices. */
struct optim_group {
    size_t n;
    bool vectors;
    enum gpu_storage storage;
    void *w;
    float *g;
    float *master, *average; /* may be NULL */
    void *state[STATE_MOST]; /* in the order of optim_method.state */
};

/* One array of a group. */
struct optim_state {
    const char *name;
    enum dtype dtype;
    size_t n;
    size_t
        block; /* elements of the group per element of the array, a divisor of OPTIM_PIECE_UNIT; 0 means 1 */
    void **at; /* where its address goes; optim_list_arrays sets it */
};
/* A row of a method's state: its name is prefixed with that of the group; then .n, and .block if it is not
 * 1. */
#define OPTIM_STATE(group, what, type, ...) \
    ((struct optim_state){ (group)->vectors ? "vector." what : "matrix." what, type, __VA_ARGS__ })

struct optim {
    struct gpu *g;
    const struct params *params;
    struct weights *weights;
    struct optim_options o;
    const struct optim_method *method;
    struct weights grads;
    struct optim_group groups[GROUPS];
    struct optim_array arrays[ARRAYS_MOST];
    size_t n_arrays;
    void *workspaces[WORKSPACES_MOST]; /* other device memory */
    size_t n_workspaces;
    float *parts;  /* of the norm */
    float *result; /* norm, factor */
    struct gpu_staging staging;
    float *back;             /* on the host: norm, factor, the method's own factor on the rate (else 1) */
    double rate;             /* of the step, without the method's factor */
    void *own;               /* the method's; free() releases it */
    struct offload *offload; /* of the matrices' state; NULL: it is on the device */
    size_t piece;            /* elements per piece of it */
    uint64_t applied, attempted;
    bool dirty; /* something was queued that changes weights */
};

/* Zeroed device memory that lives as long as the optimizer; arrays are saved in checkpoints. */
int optim_workspace(struct optim *o, size_t bytes, void **out, struct cairn_error *err);
int optim_add_array(struct optim *o, const char *name, enum dtype dtype, size_t n, void **out,
                    struct cairn_error *err);
/* Zeroed host memory for the method, in o->own. */
int optim_alloc_own(struct optim *o, size_t bytes, struct cairn_error *err);
int optim_launch(struct optim *o, struct gpu_stream *s, const char *name, enum gpu_storage storage,
                 struct gpu_grid grid, const void *args, size_t size, struct cairn_error *err);
/* Kernel arguments for a group's weights, common to all methods. */
struct optim_weights optim_kernel_args(const struct optim *o, int which, double rate);
/* AdamW's arguments without its state; Lion has the same. */
struct adamw_args optim_adamw_args(const struct optim *o, const struct optim_weights *to);
/* The current weights, in f32. */
int optim_copy_weights(struct optim *o, const struct optim_group *group, float *to, struct cairn_error *err);

/* LoRA+: calls fn with the parts of a group that have a learning rate of their own, or with the group.  Parts
 * begin and end where parameters do. */
typedef int optim_update(struct optim *o, struct gpu_stream *s, const struct optim_group *range,
                         const struct optim_weights *to, struct cairn_error *err);
int optim_each_rate(struct optim *o, struct gpu_stream *s, const struct optim_group *gr,
                    const struct optim_weights *to, optim_update *fn, struct cairn_error *err);
/* A parameter's factor of the learning rate. */
double optim_rate_of(const struct optim *o, const struct param *p);

/* Master copy, average, and the method's state. */
size_t optim_list_arrays(struct optim_group *group, const struct params *p, const struct optim_options *o,
                         struct optim_state out[GROUP_ARRAYS]);

/* State on the host: optim_offload.c. */
size_t optim_offload_arrays(struct optim_group *group, const struct params *p, const struct optim_options *o,
                            struct offload_array out[OFFLOAD_ARRAYS]);
int optim_offload_open(struct optim *o, struct cairn_error *err);
/* Calls fn with each piece of the matrices, as a group of its own, while it is on the device. */
typedef int optim_visit(struct optim *o, struct gpu_stream *s, const struct optim_group *piece, uint64_t nth,
                        double rate, struct cairn_error *err);
int optim_offload_pass(struct optim *o, struct gpu_stream *s, optim_visit *fn, double rate,
                       struct cairn_error *err);
/* Starts the transfer of the first pieces to the device. */
int optim_offload_begin(struct optim *o, struct cairn_error *err);
/* The matrices in f32, on the host; waits. */
int optim_offload_weights(struct optim *o, const struct optim_group *group, float *to,
                          struct cairn_error *err);

#endif
