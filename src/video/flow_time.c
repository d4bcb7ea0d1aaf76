/* SPDX-License-Identifier: Apache-2.0 */
#include "video/flow_time.h"

#include "base/shuffle.h"
#include "base/str.h"
#include "video/portable_math.h"
#include <math.h>
#include <string.h>

enum {
    STEPS = 1000,       /* entries of the tables, and the scale of timesteps */
    RANGE_TRIES = 1000, /* of preserve_shape */
    SIDE_TRIES = 100,   /* to be on the side of an expert */
};

/* ---- names and options ---- */

#define AS_ROW(id, of, text) { FLOW_##of, text },
static const struct {
    enum flow_recipe recipe;
    const char *name;
} samplings[] = { FLOW_SAMPLINGS(AS_ROW) };
#define AS_NAME(id, text) text,
static const char *const weightings[] = { FLOW_WEIGHTINGS(AS_NAME) };
static const char *const biases[] = { "balanced", "content", "style" };

struct flow_options flow_options_default(enum flow_sampling sampling)
{
    bool table = flow_recipe_of(sampling) == FLOW_AI_TOOLKIT;
    return (struct flow_options){
        .sampling = sampling,
        .shift = table ? 5 : 1,
        .sigmoid_scale = 1,
        .logit_std = 1,
        .mode_scale = 1.29,
        .max_timestep = table ? STEPS - 1 : STEPS,
        .boundary = 0.875,
    };
}

enum flow_recipe flow_recipe_of(enum flow_sampling s)
{
    return samplings[s].recipe;
}

const char *flow_sampling_name(enum flow_sampling s)
{
    return samplings[s].name;
}

const char *flow_weighting_name(enum flow_weighting w)
{
    return weightings[w];
}

int flow_sampling_parse(enum flow_recipe recipe, const char *name, enum flow_sampling *out,
                        struct cairn_error *err)
{
    CLEANUP(str_release) struct str list = { 0 };
    for (int s = 0; s < FLOW_SAMPLING_COUNT; s++) {
        if (samplings[s].recipe != recipe)
            continue;
        if (!strcmp(samplings[s].name, name)) {
            *out = (enum flow_sampling)s;
            return 0;
        }
        str_addf(&list, "%s%s", list.len ? ", " : "", samplings[s].name);
    }
    cairn_fail(err, CAIRN_EUSAGE, "\"%s\" is not a distribution of timesteps", name);
    return cairn_hint(err, "%s has %s", recipe == FLOW_MUSUBI ? "musubi-tuner" : "ai-toolkit", list.s);
}

static int parse_name(const char *const *names, size_t n, const char *what, const char *name, int *out,
                      struct cairn_error *err)
{
    CLEANUP(str_release) struct str list = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(names[i], name)) {
            *out = (int)i;
            return 0;
        }
        str_addf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    cairn_fail(err, CAIRN_EUSAGE, "\"%s\" is not a %s", name, what);
    return cairn_hint(err, "it must be one of %s", list.s);
}

int flow_weighting_parse(const char *name, enum flow_weighting *out, struct cairn_error *err)
{
    int i;
    if (parse_name(weightings, FLOW_WEIGHTING_COUNT, "weighting scheme", name, &i, err))
        return -1;
    *out = (enum flow_weighting)i;
    return 0;
}

int flow_bias_parse(const char *name, enum flow_bias *out, struct cairn_error *err)
{
    int i;
    if (parse_name(biases, FLOW_BIAS_COUNT, "value of content_or_style", name, &i, err))
        return -1;
    *out = (enum flow_bias)i;
    return 0;
}

int flow_options_check(const struct flow_options *o, struct cairn_error *err)
{
    if (!(o->min_timestep >= 0 && o->min_timestep <= o->max_timestep && o->max_timestep <= STEPS))
        return cairn_fail(
            err, CAIRN_EUSAGE,
            "timesteps from %g to %g: the first must not exceed the second, and both are between 0 and %d",
            o->min_timestep, o->max_timestep, STEPS);
    if (!(o->shift > 0 && isfinite(o->shift)))
        return cairn_fail(err, CAIRN_EUSAGE, "a shift of %g: it must be above 0", o->shift);
    if (!(o->sigmoid_scale > 0 && isfinite(o->sigmoid_scale)))
        return cairn_fail(err, CAIRN_EUSAGE, "a sigmoid_scale of %g: it must be above 0", o->sigmoid_scale);
    if (!(o->logit_std >= 0 && isfinite(o->logit_std) && isfinite(o->logit_mean)))
        return cairn_fail(err, CAIRN_EUSAGE, "a logit_mean of %g and logit_std of %g", o->logit_mean,
                          o->logit_std);
    if (!(o->boundary > 0 && o->boundary < 1))
        return cairn_fail(err, CAIRN_EUSAGE, "a boundary of %g: it must be between 0 and 1", o->boundary);
    return 0;
}

/* ---- musubi-tuner ---- */

double flow_bucket_normal(double u)
{
    const double least = 1e-7;
    return portable_normal(u < least ? least : u > 1 - least ? 1 - least : u);
}

/* mu is linear in the number of tokens of a frame: 0.5 for 256, `to` for `at`. */
double flow_shift_of(enum flow_sampling s, size_t height, size_t width)
{
    bool qwen = s == FLOW_QWEN_SHIFT || s == FLOW_QINGLONG_QWEN;
    double at = qwen ? 8192 : 4096, to = qwen ? 0.9 : 1.15;
    double tokens = (double)((height / 2) * (width / 2));
    double slope = (to - 0.5) / (at - 256);
    return portable_exp(slope * tokens + (0.5 - slope * 256));
}

static double shifted(double t, double shift)
{
    return shift * t / (1 + (shift - 1) * t);
}

static double logsnr_time(double mean, double std, double z)
{
    return portable_sigmoid(-(mean + std * z) / 2);
}

double flow_time_of(const struct flow_options *o, const struct flow_random *r, size_t height, size_t width)
{
    double centred = portable_sigmoid(o->sigmoid_scale * r->z);
    /* The shares of the mixed modes that are drawn as "shift" and as "logsnr"; what is left is almost clean. */
    double by_shift = o->sampling == FLOW_QINGLONG_FLUX ? 0.79 : 0.95;
    double by_logsnr = o->sampling == FLOW_QINGLONG_FLUX ? 0.9 : 0.95;
    switch (o->sampling) {
    case FLOW_UNIFORM:
        return r->u;
    case FLOW_SIGMOID:
        return centred;
    case FLOW_SHIFT:
        return shifted(centred, o->shift);
    case FLOW_LOGSNR:
        return logsnr_time(o->logit_mean, o->logit_std, r->z);
    case FLOW_QINGLONG_FLUX:
    case FLOW_QINGLONG_QWEN:
        if (r->choice >= by_logsnr)
            return logsnr_time(5.36, 1, r->z);
        if (r->choice >= by_shift)
            return logsnr_time(o->logit_mean, o->logit_std, r->z);
        return shifted(centred, flow_shift_of(o->sampling, height, width));
    default:
        return shifted(centred, flow_shift_of(o->sampling, height, width));
    }
}

double flow_time_in_range(const struct flow_options *o, double t)
{
    return t * ((o->max_timestep - o->min_timestep) / STEPS) + o->min_timestep / STEPS;
}

int flow_sigma_index(const struct flow_options *o, const struct flow_random *r)
{
    double u = r->u;
    if (o->weighting == FLOW_WEIGHT_LOGIT_NORMAL) {
        u = portable_sigmoid(o->logit_mean + o->logit_std * r->z);
    } else if (o->weighting == FLOW_WEIGHT_MODE) {
        double c = portable_cos(PORTABLE_PI * u / 2);
        u = 1 - u - o->mode_scale * (c * c - 1 + u);
    }
    double i = floor(u * (o->max_timestep - o->min_timestep) + o->min_timestep);
    return i < 0 ? 0 : i > STEPS - 1 ? STEPS - 1 : (int)i;
}

double flow_weight_of(enum flow_weighting w, double sigma)
{
    if (w == FLOW_WEIGHT_SIGMA_SQRT)
        return 1 / (sigma * sigma);
    if (w == FLOW_WEIGHT_COSMAP)
        return 2 / (PORTABLE_PI * (1 - 2 * sigma + 2 * sigma * sigma));
    return 1;
}

/* The entry of the table nearest to a timestep. */
static double nearest_sigma(double timestep)
{
    double i = floor(timestep + 0.5);
    return (i < 1 ? 1 : i > STEPS ? STEPS : i) / STEPS;
}

/* Random numbers of try number k; the first may be stratified.  Of the N per_epoch samples, N / buckets have u
 * in each of the buckets. */
static void draw_random(const struct flow_options *o, const struct flow_draw *d, uint32_t k,
                        struct flow_random *r)
{
    double u[2];
    noise_uniform(&d->place, k, u);
    r->choice = u[1];
    if (k == 0 && o->buckets >= 2 && d->per_epoch) {
        uint64_t each = (d->per_epoch + o->buckets - 1) / o->buckets;
        uint64_t key = shuffle_key(d->place.seed, d->epoch);
        uint64_t at = shuffle(d->position % d->per_epoch, each * o->buckets, key);
        r->u = ((double)(at / each) + u[0]) / (double)o->buckets;
        r->z = flow_bucket_normal(r->u);
        return;
    }
    r->u = u[0];
    r->z = portable_normal(u[0]);
}

/* A try on a side may itself be several tries to hit the range. */
static double draw_musubi(const struct flow_options *o, const struct flow_draw *d, uint32_t try)
{
    struct flow_random r;
    double t = 0, low = o->min_timestep / STEPS, high = o->max_timestep / STEPS;
    for (uint32_t i = 0; i < RANGE_TRIES; i++) {
        draw_random(o, d, try * RANGE_TRIES + i, &r);
        t = flow_time_of(o, &r, d->height, d->width);
        if (!o->preserve_shape)
            break;
        if (t >= low && t <= high)
            return t;
    }
    return flow_time_in_range(o, t);
}

static void musubi_time(const struct flow_options *o, const struct flow_draw *d, uint32_t try,
                        struct flow_time *out)
{
    if (o->sampling == FLOW_SIGMA) {
        struct flow_random r;
        /* This mode knows no buckets. */
        draw_random(&(struct flow_options){ 0 }, d, try * RANGE_TRIES, &r);
        out->timestep = STEPS - flow_sigma_index(o, &r);
        out->t = out->timestep / STEPS;
    } else {
        out->t = draw_musubi(o, d, try);
        out->timestep = STEPS * out->t + 1;
    }
}

static void draw_on_side(const struct flow_options *o, const struct flow_draw *d, struct flow_time *out)
{
    for (uint32_t try = 0; try < SIDE_TRIES; try++) {
        musubi_time(o, d, try, out);
        if (d->side == FLOW_ANY || flow_side_of(o, out) == d->side)
            return;
    }
    /* This side is never hit: the time that is nearest to the boundary. */
    double edge = ceil(STEPS * o->boundary) - (d->side == FLOW_LOW);
    out->timestep = edge;
    out->t = (o->sampling == FLOW_SIGMA ? edge : edge - 1) / STEPS;
}

/* ---- ai-toolkit ---- */

/* Its weights were measured with a model and are a list of 1000 numbers (toolkit/timestep_weighing/
 * default_weighing_scheme.py).  Straight lines between these points are within 2.2 % of each, and within 0.2 %
 * on the average. */
double flow_table_weight(int i)
{
    static const struct {
        int at;
        double weight;
    } points[] = {
        { 0, 0.891 },   { 10, 1.053 },  { 20, 1.181 },  { 40, 1.333 },  { 60, 1.419 },  { 80, 1.486 },
        { 110, 1.516 }, { 150, 1.514 }, { 200, 1.444 }, { 300, 1.264 }, { 400, 1.081 }, { 500, 0.922 },
        { 600, 0.801 }, { 700, 0.728 }, { 750, 0.715 }, { 800, 0.714 }, { 850, 0.732 }, { 900, 0.723 },
        { 920, 0.680 }, { 940, 0.620 }, { 960, 0.544 }, { 980, 0.475 }, { 990, 0.450 }, { 999, 0.446 },
    };
    size_t k = 1;
    while (k + 1 < ARRAY_LEN(points) && points[k].at < i)
        k++;
    double part = (double)(i - points[k - 1].at) / (points[k].at - points[k - 1].at);
    return points[k - 1].weight + part * (points[k].weight - points[k - 1].weight);
}

/* Probability that a normal number is below z: the inverse of portable_normal. */
static double normal_below(double z)
{
    double low = 0, high = 1;
    for (int i = 0; i < 40; i++) {
        double p = (low + high) / 2;
        *(portable_normal(p) < z ? &low : &high) = p;
    }
    return (low + high) / 2;
}

/* "lognorm_blend": three quarters of the entries are 1000 (1 - x/max x), x = exp(z/3), the others linear.  The largest
 * of its 750 draws is taken to be their median one.  The share of entries above a timestep: */
static double blend_above(double timestep)
{
    const double share = 0.75, scale = 0.333, largest = 2.82, below_largest = 0.99908;
    double x = largest * (1 - timestep / STEPS);
    double lognormal = x <= 0 ? 0 : normal_below(portable_log(x) / scale) / below_largest;
    return share * fmin(lognormal, 1) + (1 - share) * (STEPS - timestep) / STEPS;
}

static double blend_timestep(double quantile)
{
    double low = 0, high = STEPS;
    for (int i = 0; i < 30; i++) {
        double t = (low + high) / 2;
        *(blend_above(t) > quantile ? &low : &high) = t;
    }
    return floor((low + high) / 2);
}

/* "sigmoid" sorts 1000 draws of 1000 sigmoid(z) and picks one by its index: the index is a quantile. */
double flow_table_timestep(const struct flow_options *o, int i, double within)
{
    if (o->sampling == FLOW_TABLE_SIGMOID)
        return STEPS * portable_sigmoid(-portable_normal((i + within) / STEPS));
    if (o->sampling == FLOW_TABLE_LOGNORM_BLEND)
        return blend_timestep((i + within) / STEPS);
    if (o->sampling != FLOW_TABLE_SHIFT)
        return STEPS - i;
    /* The scheduler's smallest sigma is shifted already, and the times down to it are shifted again. */
    double least = shifted(1.0 / STEPS, o->shift);
    return STEPS * shifted(1 - (1 - least) * i / (STEPS - 1), o->shift);
}

/* Of 1000 draws of "sigmoid", how many are above the boundary. */
static double sigmoids_above(double boundary)
{
    double want = portable_log(boundary / (1 - boundary)), low = 0, high = 1;
    for (int i = 0; i < 50; i++) {
        double p = (low + high) / 2;
        if (portable_normal(p) < want)
            low = p;
        else
            high = p;
    }
    return STEPS * (1 - (low + high) / 2);
}

/* Indices that may be drawn, from *first on and below *end. */
static void table_range(const struct flow_options *o, enum flow_side side, double *first, double *end)
{
    *first = fmin(o->min_timestep, STEPS - 1);
    *end = fmin(o->max_timestep, STEPS - 1);
    if (side == FLOW_ANY)
        return;
    /* The stage replaces the range.  The last entry of a table is not drawn. */
    if (o->sampling == FLOW_TABLE_SIGMOID) {
        double above = sigmoids_above(o->boundary);
        *first = side == FLOW_LOW ? above : 0;
        *end = side == FLOW_LOW ? STEPS - 1 : above;
        return;
    }
    int above = 0, below = STEPS; /* the table descends */
    while (above < below) {
        int middle = (above + below) / 2;
        if (flow_table_timestep(o, middle, 0) > STEPS * o->boundary)
            above = middle + 1;
        else
            below = middle;
    }
    *first = side == FLOW_LOW ? above : 0;
    *end = side == FLOW_LOW ? STEPS - 1 : above - 1;
}

/* The modes for a model that is distilled to few steps: entries of the linear table, whatever the range and the bias. */
static size_t few_steps(enum flow_sampling s)
{
    return s == FLOW_TABLE_ONE_STEP     ? 1
           : s == FLOW_TABLE_TWO_STEP   ? 2
           : s == FLOW_TABLE_FOUR_STEP  ? 4
           : s == FLOW_TABLE_EIGHT_STEP ? 8
                                        : 0;
}

static void few_steps_time(size_t n, double u, struct flow_time *out)
{
    size_t i = (size_t)(u * (double)n);
    out->timestep = STEPS - (n == 2 && i ? 499 : (double)(i * STEPS / n));
    out->t = out->timestep / STEPS;
    out->weight = 1;
}

static void table_time(const struct flow_options *o, const struct flow_draw *d, struct flow_time *out)
{
    double u[2], first, end;
    size_t few = few_steps(o->sampling);
    noise_uniform(&d->place, 0, u);
    if (few) {
        few_steps_time(few, u[0], out);
        return;
    }
    table_range(o, d->side, &first, &end);
    double cube = u[0] * u[0] * u[0], at = first + u[0] * (end - first);
    if (o->bias != FLOW_BALANCED) {
        at = first + (o->bias == FLOW_CONTENT ? cube : 1 - cube) * STEPS * (end - first) / (STEPS - 1);
        at = at > end ? end : at;
    }
    int i = (int)at;
    out->timestep = flow_table_timestep(o, i, o->bias == FLOW_BALANCED ? at - i : u[1]);
    out->t = out->timestep / STEPS;
    out->weight = o->sampling == FLOW_TABLE_WEIGHTED ? flow_table_weight(i) : 1;
}

/* ---- drawing ---- */

void flow_time_draw(const struct flow_options *o, const struct flow_draw *d, struct flow_time *out)
{
    if (flow_recipe_of(o->sampling) == FLOW_AI_TOOLKIT) {
        table_time(o, d, out);
        return;
    }
    draw_on_side(o, d, out);
    out->weight = flow_weight_of(o->weighting, nearest_sigma(out->timestep));
}

enum flow_side flow_side_of(const struct flow_options *o, const struct flow_time *t)
{
    double boundary = STEPS * o->boundary;
    bool high =
        flow_recipe_of(o->sampling) == FLOW_AI_TOOLKIT ? t->timestep > boundary : t->timestep >= boundary;
    return high ? FLOW_HIGH : FLOW_LOW;
}

enum flow_side flow_side_at_step(uint64_t step, uint64_t every)
{
    return step / (every ? every : 1) % 2 ? FLOW_LOW : FLOW_HIGH;
}
