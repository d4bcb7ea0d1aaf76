/* SPDX-License-Identifier: Apache-2.0
 * Updates the weights: gradients, their norm, the optimizer's state, a master copy, a moving average.
 *
 * A step is queued like everything else; optim_finish waits and reports whether it was applied.  A step whose
 * gradients are not finite is skipped: weights and state stay as they are, and it does not count. */
#ifndef CAIRN_TRAIN_OPTIM_H
#define CAIRN_TRAIN_OPTIM_H

#include "nn/weights.h"
#include "tensor/dtype.h"
#include "train/optim_methods.h"

struct optim_options {
    enum optim_kind kind;
    double beta1, beta2, epsilon;
    double decay;    /* of matrices; vectors have none */
    double clip;     /* largest norm of all gradients; 0: no limit */
    bool master;     /* 16-bit weights have an f32 copy, which is updated instead */
    bool stochastic; /* without one: stochastic rounding */
    double ema;      /* decay of a moving average of the weights; 0: none */
    uint64_t seed;   /* of stochastic rounding */
    /* Adafactor: the rate follows from the step; steps in proportion to the weights. */
    bool relative, scaled;
    /* Prodigy: initial estimate, factor on it, largest growth per step (0: no limit); whether the estimate
     * ignores the warmup; Adam's bias correction. */
    double d0, d_coef, growth;
    bool warm, corrected;
    double plus;  /* LoRA+: the rate of B matrices divided by that of A; 0 counts as 1 */
    bool on_host; /* the matrices' state begins there (optim_move_state) */
};

struct optim;
/* For the parameters of p, none of which is quantized. */
int optim_open(struct gpu *g, const struct params *p, struct weights *w, const struct optim_options *o,
               struct optim **out, struct cairn_error *err);
void optim_close(struct optim *o);
/* Memory it needs: on the device, and on the host if its state is offloaded. */
struct optim_sizes {
    size_t grads, state, host;
};
struct optim_sizes optim_sizes(const struct params *p, enum gpu_storage storage,
                               const struct optim_options *o);

/* The state of the matrices, with their master copy and average, may live on the host; each step copies it to
 * the device piece by piece while it computes.  The bits are the same, except with stochastic rounding, whose
 * random numbers then differ.  Only optimizers with optim_method.update can: the others need their state as a
 * whole. */
bool optim_can_move(enum optim_kind kind);
int optim_move_state(struct optim *o, bool to_host, struct cairn_error *err);
bool optim_is_on_host(const struct optim *o);

/* Call after weights were loaded.  The master copy gets them too, unrounded, and the average starts from
 * them. */
int optim_start(struct optim *o, struct cairn_error *err);
const struct weights *optim_grads(const struct optim *o);
int optim_clear_grads(struct optim *o, struct gpu_stream *s, struct cairn_error *err);

/* unscale: 1 / what the loss was multiplied by.  optim_step is followed by optim_finish. */
int optim_step(struct optim *o, struct gpu_stream *s, double rate, double unscale, struct cairn_error *err);
struct optim_result {
    double norm; /* of the gradients, before they were clipped */
    double rate; /* the rate applied: Adafactor and Prodigy may compute their own */
    bool applied;
};
/* Whether a step that failed may have changed some weights: it must not be repeated. */
bool optim_is_half_done(const struct optim *o);
int optim_finish(struct optim *o, struct gpu_stream *s, struct optim_result *out, struct cairn_error *err);
uint64_t optim_applied(const struct optim *o);   /* steps that were not skipped */
uint64_t optim_attempted(const struct optim *o); /* all steps */

/* The state to save in a checkpoint: arrays on the device, or on the host, for which optim_settle must come
 * first.  The names are the optimizer's own.  The moving average is "matrix.ema" and "vector.ema", in the
 * order of the parameters. */
struct optim_array {
    const char *name;
    enum dtype dtype;
    size_t n;
    void *at;
    bool on_host;
};
const struct optim_array *optim_arrays(const struct optim *o, size_t *n);
/* Waits for transfers to the host. */
int optim_settle(struct optim *o, struct cairn_error *err);
/* Call after the arrays were loaded from a file. */
void optim_resume(struct optim *o, uint64_t applied, uint64_t attempted);

#endif
