/* SPDX-License-Identifier: Apache-2.0 */
#include "video/flow_time.h"

#include "base/hash.h"
#include "check.h"
#include "video/portable_math.h"
#include <math.h>

enum { N = 100000 };
static double times[N], weights[N], steps[N];

#define CHECK_NEAR(got, want, by)                                    \
    do {                                                             \
        double got_ = (got), want_ = (want);                         \
        if (!(fabs(got_ - want_) <= (by)))                           \
            CHECK_FAIL_("%s is %.9g, want %.9g", #got, got_, want_); \
    } while (0)

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Draws N times, one for each step; times are sorted. */
static void draw_side(const struct flow_options *o, enum flow_side side)
{
    for (uint64_t i = 0; i < N; i++) {
        struct flow_draw d = { .place = { 42, i, 3 }, .height = 60, .width = 104, .side = side };
        struct flow_time t;
        flow_time_draw(o, &d, &t);
        times[i] = t.t;
        weights[i] = t.weight;
        steps[i] = t.timestep;
    }
    qsort(times, N, sizeof(*times), by_value);
}

static void draw(const struct flow_options *o)
{
    draw_side(o, FLOW_ANY);
}

static double quantile(double p)
{
    return times[(size_t)(p * N)];
}

static double mean(const double *v)
{
    double sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += v[i];
    return sum / N;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- functions ---- */

static void functions_are_those_of_libm(void)
{
    for (int i = 1; i < 20000; i++) {
        double x = i * 1e-5 * exp(i * 1e-3), y = (i - 10000) * 0.05, a = (i - 10000) / 10000.0 * M_PI;
        CHECK_NEAR(portable_log(x), log(x), 4e-16 * fmax(1, fabs(log(x))));
        CHECK_NEAR(portable_exp(y), exp(y), 1e-15 * exp(y));
        CHECK_NEAR(portable_sigmoid(y), sigmoid(y), 1e-15);
        CHECK_NEAR(portable_sin(a), sin(a), 5e-16);
        CHECK_NEAR(portable_cos(a), cos(a), 5e-16);
        /* The inverse of the cumulative distribution; close to 1 that is ill-conditioned. */
        double z = -fabs(y) / 100, p = 0.5 * erfc(-z / M_SQRT2);
        CHECK_NEAR(portable_normal(p), z, 1e-13);
        CHECK_NEAR(portable_normal(1 - p), -z, 1e-9);
    }
    CHECK(portable_exp(-1e300) == 0 && portable_sigmoid(-1e300) == 0 && portable_sigmoid(1e300) == 1);
    CHECK_NEAR(portable_normal(1e-12), -7.0344838253011321, 1e-14);
}

/* ---- noise ---- */

static void noise_is_normal(void)
{
    enum { MANY = 1 << 20 };
    static float v[MANY];
    double sum[5] = { 0 };
    size_t below[6] = { 0 };
    noise_normal(&(struct noise_place){ 1, 2, 3 }, v, MANY);
    for (size_t i = 0; i < MANY; i++) {
        double power = 1;
        for (int k = 1; k < 5; k++)
            sum[k] += power *= v[i];
        for (int k = 0; k < 6; k++)
            below[k] += v[i] < k - 2.5;
    }
    CHECK_NEAR(sum[1] / MANY, 0, 0.005);
    CHECK_NEAR(sum[2] / MANY, 1, 0.007);
    CHECK_NEAR(sum[3] / MANY, 0, 0.02);
    CHECK_NEAR(sum[4] / MANY, 3, 0.05);
    for (int k = 0; k < 6; k++)
        CHECK_NEAR((double)below[k] / MANY, 0.5 * erfc(-(k - 2.5) / M_SQRT2), 0.0025);
}

/* Neither another sample nor another step nor another seed has the same or correlated numbers. */
static void noise_differs_between_places(void)
{
    enum { SOME = 1 << 16 };
    static const struct noise_place places[] = {
        { 1, 2, 3 }, { 1, 2, 4 }, { 1, 3, 3 }, { 2, 2, 3 }, { 1, 2 + (1ull << 32), 3 }
    };
    static float v[5][SOME];
    for (size_t i = 0; i < 5; i++)
        noise_normal(&places[i], v[i], SOME);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < i; k++) {
            double product = 0;
            for (size_t j = 0; j < SOME; j++)
                product += (double)v[i][j] * v[k][j];
            CHECK_NEAR(product / SOME, 0, 0.02);
        }
}

/* Lengths that end within a block, and one that takes several threads, begin with the same numbers. */
static void noise_has_the_same_bits_everywhere(void)
{
    enum { MOST = 600000 };
    static float whole[MOST], part[MOST];
    static const size_t lengths[] = { 0, 1, 63, 64, 65, 1000, 262144, 262145, 599999 };
    struct noise_place p = { 0x123456789abcdef, 77, 5 };
    noise_normal(&p, whole, MOST);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        part[lengths[i]] = 99;
        noise_normal(&p, part, lengths[i]);
        CHECK(!memcmp(whole, part, lengths[i] * sizeof(float)) && part[lengths[i]] == 99);
    }
    CHECK_INT(hash_bytes(whole, sizeof(whole)) >> 32, 1313203852);
    double u[2];
    noise_uniform(&p, 9, u);
    CHECK_INT(u[0] * 0x1p53, 6975114105336831);
}

/* ---- musubi-tuner ---- */

static void modes_have_their_distributions(void)
{
    struct flow_options o = flow_options_default(FLOW_UNIFORM);
    draw(&o);
    CHECK_NEAR(quantile(0.25), 0.25, 0.007);
    CHECK_NEAR(mean(times), 0.5, 0.004);
    CHECK_NEAR(mean(steps), 501, 4);
    CHECK(mean(weights) == 1);

    o = flow_options_default(FLOW_SIGMOID);
    o.sigmoid_scale = 1.5;
    draw(&o);
    CHECK_NEAR(quantile(0.5), 0.5, 0.007);
    CHECK_NEAR(quantile(0.8413447), sigmoid(1.5), 0.007);

    o = flow_options_default(FLOW_SHIFT);
    o.shift = 3;
    draw(&o);
    CHECK_NEAR(quantile(0.5), 0.75, 0.007);
    CHECK_NEAR(quantile(0.1586553), 3 * sigmoid(-1) / (1 + 2 * sigmoid(-1)), 0.007);

    o = flow_options_default(FLOW_FLUX_SHIFT);
    draw(&o);
    double shift = exp(0.5 + 0.65 * (30 * 52 - 256) / 3840.0);
    CHECK_NEAR(quantile(0.5), shift / (1 + shift), 0.007);

    o = flow_options_default(FLOW_LOGSNR);
    o.logit_mean = -6;
    o.logit_std = 2;
    draw(&o);
    CHECK_NEAR(quantile(0.5), sigmoid(3), 0.003);
    CHECK_NEAR(quantile(0.1586553), sigmoid(2), 0.004);
}

/* 10 % (5 %) of the times of the mixed modes are from logsnr(5.36, 1), about 0.064. */
static void mixed_modes_have_their_shares(void)
{
    static const enum flow_sampling modes[] = { FLOW_QINGLONG_FLUX, FLOW_QINGLONG_QWEN };
    for (int m = 0; m < 2; m++) {
        struct flow_options o = flow_options_default(modes[m]);
        o.logit_mean = -12; /* 0.9975 */
        o.logit_std = 0.1;
        draw(&o);
        size_t high = 0, low = 0;
        for (size_t i = 0; i < N; i++) {
            high += times[i] > 0.9965 && times[i] < 0.9985;
            low += times[i] < 0.1;
        }
        CHECK_NEAR((double)high / N, m == 0 ? 0.11 : 0, 0.006);
        CHECK_NEAR((double)low / N, m == 0 ? 0.086 : 0.045, 0.008);
    }
}

static void ranges_squeeze_or_cut(void)
{
    struct flow_options o = flow_options_default(FLOW_SHIFT);
    o.shift = 5;
    o.min_timestep = 875;
    draw(&o);
    CHECK(times[0] >= 0.875 && times[N - 1] <= 1);
    CHECK_NEAR(quantile(0.5), 0.875 + 0.125 * 5 / 6, 0.001);
    o.preserve_shape = true;
    draw(&o);
    CHECK(times[0] >= 0.875 && times[N - 1] <= 1);
    /* Of z: shifted(sigmoid(z)) = 0.875 at sigmoid(z) = 7/12. */
    double from = 0.5 * erfc(-log(7 / 5.0) / M_SQRT2), middle = sigmoid(portable_normal((1 + from) / 2));
    CHECK_NEAR(quantile(0.5), 5 * middle / (1 + 4 * middle), 0.001);
    /* A range that is never hit: the distribution is squeezed. */
    o.sigmoid_scale = 1e-6;
    o.min_timestep = 100;
    o.max_timestep = 200;
    struct flow_time t;
    flow_time_draw(&o, &(struct flow_draw){ .place = { 1, 1, 1 } }, &t);
    CHECK(t.t >= 0.1 && t.t <= 0.2);
}

/* The table descends: a range 875 … 1000 is that of little noise. */
static void sigma_is_a_mirrored_table(void)
{
    struct flow_options o = flow_options_default(FLOW_SIGMA);
    o.shift = 7; /* has no effect */
    draw(&o);
    CHECK(times[0] == 0.001 && times[N - 1] == 1);
    CHECK_NEAR(mean(times), 0.5005, 0.004);
    CHECK(steps[5] == floor(steps[5]));
    o.min_timestep = 875;
    draw(&o);
    CHECK(times[0] == 0.001 && times[N - 1] == 0.125);
    o = flow_options_default(FLOW_SIGMA);
    o.weighting = FLOW_WEIGHT_LOGIT_NORMAL;
    o.logit_mean = 1;
    draw(&o);
    CHECK_NEAR(quantile(0.5), 1 - sigmoid(1), 0.007);
    o.weighting = FLOW_WEIGHT_MODE;
    draw(&o);
    double u = 0.25, c = cos(M_PI * u / 2), mapped = 1 - u - 1.29 * (c * c - 1 + u);
    CHECK_NEAR(quantile(u), 1 - mapped, 0.01);
}

static void weights_follow_the_time(void)
{
    static const enum flow_weighting schemes[] = { FLOW_WEIGHT_SIGMA_SQRT, FLOW_WEIGHT_COSMAP };
    for (int k = 0; k < 2; k++) {
        struct flow_options o = flow_options_default(FLOW_SHIFT);
        o.weighting = schemes[k];
        for (uint64_t i = 0; i < 100; i++) {
            struct flow_time t;
            flow_time_draw(&o, &(struct flow_draw){ .place = { 1, i, 0 } }, &t);
            double s = floor(t.timestep + 0.5) / 1000;
            CHECK_NEAR(t.timestep, 1000 * t.t + 1, 1e-9);
            CHECK_NEAR(t.weight, k ? 2 / M_PI / (1 - 2 * s + 2 * s * s) : 1 / (s * s), 1e-9 * t.weight);
        }
    }
}

/* Each tenth of an epoch's samples is in each tenth of the times, whatever the order. */
static void buckets_stratify_an_epoch(void)
{
    struct flow_options o = flow_options_default(FLOW_UNIFORM);
    o.buckets = 10;
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        int count[10] = { 0 };
        for (uint64_t i = 0; i < 250; i++) {
            struct flow_time t;
            struct flow_draw d = { { 5, epoch * 125 + i / 2, i % 2 }, 0, 0, FLOW_ANY, epoch, i, 250 };
            flow_time_draw(&o, &d, &t);
            count[(int)(10 * t.t)]++;
        }
        for (int i = 0; i < 10; i++)
            CHECK_INT(count[i], 25);
    }
    o.sampling = FLOW_SHIFT;
    o.shift = 3;
    int below = 0;
    for (uint64_t i = 0; i < 250; i++) {
        struct flow_time t;
        struct flow_draw d = { { 5, i, 0 }, 0, 0, FLOW_ANY, 0, i, 250 };
        flow_time_draw(&o, &d, &t);
        below += t.t < 0.75;
    }
    CHECK_INT(below, 125);
}

static void samples_can_be_kept_on_a_side(void)
{
    struct flow_options o = flow_options_default(FLOW_SHIFT);
    o.shift = 5;
    draw_side(&o, FLOW_HIGH);
    CHECK(times[0] >= 0.874 && times[0] < 0.8745);
    draw_side(&o, FLOW_LOW);
    CHECK(times[N - 1] < 0.874 && times[N - 1] > 0.8735 && quantile(0.01) < 0.6);
    for (int side = FLOW_LOW; side <= FLOW_HIGH; side++) {
        struct flow_time t;
        o.logit_std = 0; /* always 0.5 */
        o.sampling = FLOW_LOGSNR;
        flow_time_draw(&o, &(struct flow_draw){ .place = { 1, 1, 1 }, .side = (enum flow_side)side }, &t);
        CHECK_INT(flow_side_of(&o, &t), side);
    }
}

/* ---- ai-toolkit ---- */

static void tables_have_their_distributions(void)
{
    struct flow_options o = flow_options_default(FLOW_TABLE_LINEAR);
    draw(&o);
    CHECK(times[0] == 0.002 && times[N - 1] == 1);
    CHECK_NEAR(mean(times), 0.501, 0.004);
    CHECK(mean(weights) == 1 && fabs(mean(steps) - 1000 * mean(times)) < 1e-6);
    o.min_timestep = 100;
    o.max_timestep = 300;
    draw(&o);
    CHECK(times[0] == 0.701 && times[N - 1] == 0.9);
    o.min_timestep = o.max_timestep = 1000; /* one entry, the last */
    draw(&o);
    CHECK(times[0] == 0.001 && times[N - 1] == 0.001);

    o = flow_options_default(FLOW_TABLE_WEIGHTED);
    draw(&o);
    CHECK_NEAR(mean(weights), 1, 0.01);
    CHECK(flow_table_weight(0) < 1 && flow_table_weight(130) > 1.5 && flow_table_weight(999) < 0.45);

    o = flow_options_default(FLOW_TABLE_SIGMOID);
    draw(&o);
    CHECK_NEAR(quantile(0.5), 0.5, 0.007);
    CHECK_NEAR(quantile(0.8413447), sigmoid(1), 0.007);

    o = flow_options_default(FLOW_TABLE_SHIFT);
    o.shift = 3;
    draw(&o);
    CHECK_NEAR(quantile(0.5), 0.75, 0.007);
    CHECK(times[N - 1] == 1 && times[0] > 0.008 && times[0] < 0.012);
}

static void few_steps_have_few_times(void)
{
    struct flow_options o = flow_options_default(FLOW_TABLE_ONE_STEP);
    draw(&o);
    CHECK(times[0] == 1 && times[N - 1] == 1);
    o = flow_options_default(FLOW_TABLE_TWO_STEP);
    draw(&o);
    CHECK(times[0] == 0.501 && times[N - 1] == 1);
    CHECK_NEAR(mean(times), 0.7505, 0.01);
    o = flow_options_default(FLOW_TABLE_EIGHT_STEP);
    draw(&o);
    CHECK(times[0] == 0.125 && times[N - 1] == 1 && times[N / 2 - N / 16] == 0.5);
}

/* The quantiles are those of a simulation of its draws. */
static void a_blend_is_lognormal_and_linear(void)
{
    struct flow_options o = flow_options_default(FLOW_TABLE_LOGNORM_BLEND);
    draw(&o);
    CHECK_NEAR(quantile(0.1), 0.314, 0.02);
    CHECK_NEAR(quantile(0.5), 0.634, 0.02);
    CHECK_NEAR(quantile(0.9), 0.797, 0.02);
    CHECK(times[0] >= 0 && times[N - 1] <= 1);
}

static void content_prefers_noise_and_style_none(void)
{
    struct flow_options o = flow_options_default(FLOW_TABLE_LINEAR);
    o.bias = FLOW_CONTENT;
    draw(&o);
    CHECK_NEAR(quantile(0.5), 1 - 0.125, 0.01);
    o.bias = FLOW_STYLE;
    draw(&o);
    CHECK_NEAR(quantile(0.5), 0.125, 0.01);
    CHECK(times[0] >= 0.001);
}

static void stages_keep_to_their_expert(void)
{
    static const enum flow_sampling types[] = { FLOW_TABLE_LINEAR, FLOW_TABLE_SIGMOID, FLOW_TABLE_SHIFT };
    for (size_t i = 0; i < 3; i++) {
        struct flow_options o = flow_options_default(types[i]);
        draw_side(&o, FLOW_HIGH);
        CHECK(times[0] > 0.875 && times[0] < 0.879 && times[N - 1] <= 1 &&
              times[N - 1] > 0.99 - 0.05 * (i == 1));
        draw_side(&o, FLOW_LOW);
        CHECK(times[N - 1] <= 0.875 && times[N - 1] > 0.873 && times[0] < 0.06);
    }
    struct flow_options o = flow_options_default(FLOW_TABLE_LINEAR);
    draw_side(&o, FLOW_HIGH);
    CHECK(times[0] == 0.877);
    draw_side(&o, FLOW_LOW);
    CHECK(times[0] == 0.002 && times[N - 1] == 0.875);
    CHECK_INT(flow_side_at_step(0, 1), FLOW_HIGH);
    CHECK_INT(flow_side_at_step(1, 1), FLOW_LOW);
    CHECK_INT(flow_side_at_step(9, 10), FLOW_HIGH);
    CHECK_INT(flow_side_at_step(10, 10), FLOW_LOW);
    CHECK_INT(flow_side_at_step(20, 10), FLOW_HIGH);
}

/* ---- options ---- */

static void names_are_those_of_the_programs(void)
{
    struct cairn_error err = { 0 };
    enum flow_sampling s;
    for (int i = 0; i < FLOW_SAMPLING_COUNT; i++) {
        enum flow_recipe recipe = flow_recipe_of((enum flow_sampling)i);
        struct flow_options o = flow_options_default((enum flow_sampling)i);
        CHECK(!flow_sampling_parse(recipe, flow_sampling_name((enum flow_sampling)i), &s, &err) &&
              (int)s == i);
        CHECK(!flow_options_check(&o, &err));
    }
    CHECK(flow_sampling_parse(FLOW_AI_TOOLKIT, "uniform", &s, &err) == -1);
    CHECK_HAS(err.hint, "weighted");
    enum flow_weighting w;
    for (int i = 0; i < FLOW_WEIGHTING_COUNT; i++)
        CHECK(!flow_weighting_parse(flow_weighting_name((enum flow_weighting)i), &w, &err) && (int)w == i);
    CHECK(flow_weighting_parse("cubic", &w, &err) == -1);
    enum flow_bias b;
    CHECK(!flow_bias_parse("content", &b, &err) && b == FLOW_CONTENT);
    CHECK(!flow_bias_parse("style", &b, &err) && b == FLOW_STYLE);
    CHECK(flow_bias_parse("", &b, &err) == -1);
}

static void bad_options_are_refused(void)
{
    struct cairn_error err = { 0 };
    for (int i = 0; i < 8; i++) {
        struct flow_options o = flow_options_default(FLOW_SHIFT);
        double *fields[] = { &o.min_timestep, &o.max_timestep, &o.min_timestep,  &o.shift,
                             &o.boundary,     &o.logit_std,    &o.sigmoid_scale, &o.min_timestep };
        static const double bad[] = { 1001, 1001, -1, 0, 1, NAN, -1, NAN };
        *fields[i] = bad[i];
        CHECK(flow_options_check(&o, &err) == -1 && err.code == CAIRN_EUSAGE);
    }
}

int main(void)
{
    RUN(functions_are_those_of_libm);
    RUN(noise_is_normal);
    RUN(noise_differs_between_places);
    RUN(noise_has_the_same_bits_everywhere);
    RUN(modes_have_their_distributions);
    RUN(mixed_modes_have_their_shares);
    RUN(ranges_squeeze_or_cut);
    RUN(sigma_is_a_mirrored_table);
    RUN(weights_follow_the_time);
    RUN(buckets_stratify_an_epoch);
    RUN(samples_can_be_kept_on_a_side);
    RUN(tables_have_their_distributions);
    RUN(few_steps_have_few_times);
    RUN(a_blend_is_lognormal_and_linear);
    RUN(content_prefers_noise_and_style_none);
    RUN(stages_keep_to_their_expert);
    RUN(names_are_those_of_the_programs);
    RUN(bad_options_are_refused);
    return check_done();
}
