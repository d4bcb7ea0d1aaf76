/* SPDX-License-Identifier: Apache-2.0
 * What an optimizer is made of, for the files that move weights: optim.c does what all have in common and the kinds
 * whose step is one launch, the others have a file each. */
#ifndef CAIRN_TRAIN_OPTIM_INSIDE_H
#define CAIRN_TRAIN_OPTIM_INSIDE_H

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

struct adafactor_room {
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
    float *back;   /* on the host: norm, factor, Prodigy's d (else 1) */
    double rate;   /* of the step, but for this d */
    struct adafactor_room adafactor;
    float *prodigy_parts, *prodigy_d;
    uint64_t steps, tries;
};

/* Memory of the device, zeroed, that lives as long as the optimizer; an array of it is kept with the run. */
int optim_room(struct optim *o, size_t bytes, void **out, struct cairn_error *err);
int optim_add_array(struct optim *o, const char *name, enum dtype dtype, size_t n, void **out,
                    struct cairn_error *err);
int optim_launch(struct optim *o, struct gpu_stream *s, const char *name, enum gpu_storage storage,
                 struct gpu_grid grid, const void *args, size_t size, struct cairn_error *err);
/* What a kernel is told of a group's weights. */
struct optim_weights optim_moved(const struct optim *o, int which, double rate);
/* The weights as they are, in f32. */
int optim_copy_weights(struct optim *o, const struct group *gr, float *to, struct cairn_error *err);

size_t adafactor_rows(const struct params *p);
size_t adafactor_columns(const struct params *p);
int adafactor_open(struct optim *o, struct cairn_error *err);
int adafactor_step(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err);

int prodigy_open(struct optim *o, struct cairn_error *err);
int prodigy_start(struct optim *o, struct cairn_error *err);
int prodigy_step(struct optim *o, struct gpu_stream *s, double rate, struct cairn_error *err);

#endif
