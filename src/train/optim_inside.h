/* SPDX-License-Identifier: Apache-2.0
 * What an optimizer is made of, for the files that move weights: optim.c does what all have in common and the kinds
 * whose step is one launch, the others have a file each. */
#ifndef CAIRN_TRAIN_OPTIM_INSIDE_H
#define CAIRN_TRAIN_OPTIM_INSIDE_H

#include "gpu/offload.h"
#include "gpu/kernels/optim.h"
#include "train/optim.h"

enum { GROUPS = 2 /* matrices and vectors */, ARRAYS_MOST = 16, ROOMS_MOST = 8 };

/* The parameters of a kind. */
struct group {
    size_t n;
    enum gpu_storage storage;
    bool eight; /* state in 8 bits */
    void *w;
    float *g;
    float *master, *average; /* may be NULL */
    float *m, *v;
    uint8_t *m8, *v8;
    float *m_max, *v_max;
    float *s, *start;      /* Prodigy */
    float *rows, *columns; /* Adafactor, of all matrices one after the other */
};

/* One array of a group's state; `at` gets its place. */
struct want {
    const char *name;
    enum dtype dtype;
    size_t n;
    void **at;
};
enum { WANTS = OFFLOAD_ARRAYS };

struct adafactor_workspace {
    float *sums, *sizes, *uses;
    long long *places; /* of the vectors */
    size_t vectors;
};

struct optim {
    struct gpu *g;
    const struct params *params;
    struct weights *weights;
    struct optim_options o;
    struct weights grads;
    struct group groups[GROUPS];
    struct optim_array arrays[ARRAYS_MOST];
    size_t n_arrays;
    void *rooms[ROOMS_MOST]; /* other memory of the device */
    size_t n_rooms;
    float *parts;  /* of the norm */
    float *result; /* norm, factor */
    float *tables; /* of the 8-bit codes */
    struct gpu_staging staging;
    float *back; /* there: norm, factor, Prodigy's d (else 1) */
    double rate; /* of the step, but for this d */
    struct adafactor_workspace adafactor;
    float *prodigy_parts, *prodigy_d;
    struct offload *offload; /* of the matrices' state; NULL: it is on the device */
    size_t piece;            /* numbers of a piece of it */
    uint64_t steps, tries;
    bool moving; /* something was queued that moves weights */
};

/* Memory of the device, zeroed, that lives as long as the optimizer; an array of it is kept with the run. */
int optim_workspace(struct optim *o, size_t bytes, void **out, struct cairn_error *err);
int optim_add_array(struct optim *o, const char *name, enum dtype dtype, size_t n, void **out,
                    struct cairn_error *err);
int optim_launch(struct optim *o, struct gpu_stream *s, const char *name, enum gpu_storage storage,
                 struct gpu_grid grid, const void *args, size_t size, struct cairn_error *err);
/* What a kernel is told of a group's weights. */
struct optim_weights optim_moved(const struct optim *o, int which, double rate);
/* The weights as they are, in f32. */
int optim_copy_weights(struct optim *o, const struct group *gr, float *to, struct cairn_error *err);

size_t optim_list_wants(struct group *gr, const struct params *p, const struct optim_options *o, bool vectors,
                        struct want w[WANTS]);

/* State on the host: optim_offload.c. */
size_t optim_offload_arrays(struct group *gr, const struct params *p, const struct optim_options *o,
                            struct offload_array out[OFFLOAD_ARRAYS]);
int optim_offload_open(struct optim *o, struct cairn_error *err);
/* Calls fn with each piece of the matrices, as a group of its own, on its way past. */
typedef int optim_visit(struct optim *o, struct gpu_stream *s, const struct group *piece, uint64_t nth,
                        double rate, struct cairn_error *err);
int optim_offload_pass(struct optim *o, struct gpu_stream *s, optim_visit *fn, double rate,
                       struct cairn_error *err);
/* Begins to bring the first pieces over. */
int optim_offload_begin(struct optim *o, struct cairn_error *err);
/* The matrices in f32, on the host; waits. */
int optim_offload_weights(struct optim *o, const struct group *gr, float *to, struct cairn_error *err);

size_t adafactor_rows(const struct params *p);
size_t adafactor_columns(const struct params *p);
int adafactor_open(struct optim *o, struct cairn_error *err);
int adafactor_step(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err);

int prodigy_open(struct optim *o, struct cairn_error *err);
int prodigy_start(struct optim *o, struct cairn_error *err);
int prodigy_step(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err);

#endif
