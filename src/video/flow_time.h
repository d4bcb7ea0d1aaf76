/* SPDX-License-Identifier: Apache-2.0
 * Times of flow matching and their loss weights, as musubi-tuner and ai-toolkit draw them.
 *
 * A time t is between 0, clean, and 1, noise: the model sees (1 - t) x0 + t noise.  Beside it the model is
 * given a timestep, which is 1000 t in ai-toolkit and 1000 t + 1 in musubi-tuner, or the entry of a table in
 * its mode "sigma".  Drawing is a function of (seed, step, sample) alone; what makes a time of random numbers
 * is a function of its own, for tests.  All bits are the same on every machine. */
#ifndef CAIRN_VIDEO_FLOW_TIME_H
#define CAIRN_VIDEO_FLOW_TIME_H

#include "base/error.h"
#include "video/noise.h"
#include <stdbool.h>

enum flow_recipe { FLOW_MUSUBI, FLOW_AI_TOOLKIT };

/* name in the enum, recipe, name in configurations */
#define FLOW_SAMPLINGS(X)                               \
    X(UNIFORM, MUSUBI, "uniform")                       \
    X(SIGMOID, MUSUBI, "sigmoid")                       \
    X(SHIFT, MUSUBI, "shift")                           \
    X(FLUX_SHIFT, MUSUBI, "flux_shift")                 \
    X(QWEN_SHIFT, MUSUBI, "qwen_shift")                 \
    X(LOGSNR, MUSUBI, "logsnr")                         \
    X(QINGLONG_FLUX, MUSUBI, "qinglong_flux")           \
    X(QINGLONG_QWEN, MUSUBI, "qinglong_qwen")           \
    X(SIGMA, MUSUBI, "sigma")                           \
    X(TABLE_LINEAR, AI_TOOLKIT, "linear")               \
    X(TABLE_WEIGHTED, AI_TOOLKIT, "weighted")           \
    X(TABLE_SIGMOID, AI_TOOLKIT, "sigmoid")             \
    X(TABLE_SHIFT, AI_TOOLKIT, "shift")                 \
    X(TABLE_LOGNORM_BLEND, AI_TOOLKIT, "lognorm_blend") \
    X(TABLE_ONE_STEP, AI_TOOLKIT, "one_step")           \
    X(TABLE_TWO_STEP, AI_TOOLKIT, "two_step")           \
    X(TABLE_FOUR_STEP, AI_TOOLKIT, "four_step")         \
    X(TABLE_EIGHT_STEP, AI_TOOLKIT, "eight_step")
#define FLOW_AS_ENUM(id, recipe, name) FLOW_##id,
enum flow_sampling { FLOW_SAMPLINGS(FLOW_AS_ENUM) FLOW_SAMPLING_COUNT };

/* musubi-tuner's weighting schemes: densities of times in mode "sigma" (logit_normal, mode), and weights of
 * the loss (sigma_sqrt, cosmap). */
#define FLOW_WEIGHTINGS(X)          \
    X(NONE, "none")                 \
    X(SIGMA_SQRT, "sigma_sqrt")     \
    X(COSMAP, "cosmap")             \
    X(LOGIT_NORMAL, "logit_normal") \
    X(MODE, "mode")
#define FLOW_WEIGHTING_AS_ENUM(id, name) FLOW_WEIGHT_##id,
enum flow_weighting { FLOW_WEIGHTINGS(FLOW_WEIGHTING_AS_ENUM) FLOW_WEIGHTING_COUNT };

/* ai-toolkit's content_or_style: content prefers much noise, style little. */
enum flow_bias { FLOW_BALANCED, FLOW_CONTENT, FLOW_STYLE, FLOW_BIAS_COUNT };

/* The experts of Wan 2.2 A14B: one is trained on times from a boundary on, the other on those below. */
enum flow_side { FLOW_ANY, FLOW_LOW, FLOW_HIGH };

struct flow_options {
    enum flow_sampling sampling;
    double shift;         /* of "shift" in both recipes */
    double sigmoid_scale; /* musubi-tuner */
    double logit_mean, logit_std;
    double mode_scale;
    enum flow_weighting weighting;
    /* musubi-tuner: timesteps 0 … 1000; in mode "sigma" indices of a descending table, so that the range is
     * mirrored.  ai-toolkit: min_ and max_denoising_steps, indices of a descending table. */
    double min_timestep, max_timestep;
    /* The distribution is cut to the range by drawing again; otherwise it is squeezed into it. */
    bool preserve_shape;
    size_t buckets; /* num_timestep_buckets; below 2: times of an epoch are not stratified */
    enum flow_bias bias;
    double boundary; /* between the experts, a time */
};

struct flow_time {
    double t, timestep, weight;
};

/* What the programs use when nothing is said; a shift of 1 in musubi-tuner, of 5 in ai-toolkit, and a boundary
 * of 0.875. */
struct flow_options flow_options_default(enum flow_sampling sampling);
enum flow_recipe flow_recipe_of(enum flow_sampling s);
const char *flow_sampling_name(enum flow_sampling s);
const char *flow_weighting_name(enum flow_weighting w);
/* Fails with the names there are. */
int flow_sampling_parse(enum flow_recipe recipe, const char *name, enum flow_sampling *out,
                        struct cairn_error *err);
int flow_weighting_parse(const char *name, enum flow_weighting *out, struct cairn_error *err);
int flow_bias_parse(const char *name, enum flow_bias *out, struct cairn_error *err);
/* Ranges, scales and the boundary make sense. */
int flow_options_check(const struct flow_options *o, struct cairn_error *err);

/* ---- drawing ---- */

struct flow_draw {
    struct noise_place place;
    size_t height, width; /* of the latents */
    /* musubi-tuner draws up to 100 times until the time is on this side; ai-toolkit restricts the indices. */
    enum flow_side side;
    /* With buckets: this is sample number `position` of the per_epoch samples of an epoch. */
    uint64_t epoch, position, per_epoch;
};

void flow_time_draw(const struct flow_options *o, const struct flow_draw *d, struct flow_time *out);
/* Which expert a time belongs to.  In a batch of musubi-tuner the first sample decides for the others. */
enum flow_side flow_side_of(const struct flow_options *o, const struct flow_time *t);
/* ai-toolkit trains each expert for `every` steps, the high-noise one first. */
enum flow_side flow_side_at_step(uint64_t step, uint64_t every);

/* ---- what drawing is made of ---- */

struct flow_random {
    double u;      /* uniform in (0, 1) */
    double z;      /* normal */
    double choice; /* uniform in (0, 1), independent of both */
};

/* The normal number of musubi-tuner's buckets: u is kept 1e-7 from 0 and 1. */
double flow_bucket_normal(double u);
/* The time before min_timestep and max_timestep of musubi-tuner's modes, but for "sigma". */
double flow_time_of(const struct flow_options *o, const struct flow_random *r, size_t height, size_t width);
/* S of "flux_shift" and "qwen_shift", and of the modes that contain them. */
double flow_shift_of(enum flow_sampling s, size_t height, size_t width);
/* Squeezes it into the range. */
double flow_time_in_range(const struct flow_options *o, double t);
/* Mode "sigma": the index, 0 … 999, of the table of sigmas 1 - i/1000. */
int flow_sigma_index(const struct flow_options *o, const struct flow_random *r);
/* ai-toolkit: timestep i of its table, of which "sigmoid" draws a new one for each step. */
double flow_table_timestep(const struct flow_options *o, int i, double within);
/* The weight of the loss in musubi-tuner; sigma is one of the table's. */
double flow_weight_of(enum flow_weighting w, double sigma);
/* The weight of entry i in ai-toolkit's type "weighted". */
double flow_table_weight(int i);

#endif
