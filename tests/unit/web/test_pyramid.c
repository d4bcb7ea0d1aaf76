/* SPDX-License-Identifier: Apache-2.0
 * Pyramids against a plain loop over the values. */
#include "web/pyramid.h"

#include "base/cleanup.h"
#include "base/splitmix.h"
#include "check.h"
#include <math.h>
#include <stdlib.h>

static struct cairn_error err;

/* What a read must return. */
static struct pyramid_node plain(const float *v, size_t n, size_t from, size_t to)
{
    struct pyramid_node out = { 0 };
    for (size_t i = from; i < to && i < n; i++) {
        if (!isfinite(v[i]))
            continue;
        out.min = out.n ? fminf(out.min, v[i]) : v[i];
        out.max = out.n ? fmaxf(out.max, v[i]) : v[i];
        out.sum += (double)v[i];
        out.n++;
    }
    return out;
}

static bool is_same(const struct pyramid_node *a, const struct pyramid_node *b)
{
    return a->n == b->n && (!a->n || (a->min == b->min && a->max == b->max &&
                                      fabs(a->sum - b->sum) <= 1e-9 * (1 + fabs(b->sum))));
}

static float random_value(uint64_t *seed)
{
    uint64_t r = splitmix_next(seed);
    if (r % 50 == 0)
        return r % 3 ? NAN : (float)INFINITY;
    return (float)((double)(int64_t)(r >> 20) / 1e9 - 4000);
}

static void reads_are_those_of_a_loop(void)
{
    enum { N = 150000 };
    CLEANUP(mem_free) float *v = malloc(N * sizeof(*v));
    struct pyramid p = { 0 };
    uint64_t seed = 7;
    REQUIRE(v != NULL);
    for (size_t i = 0; i < N; i++) {
        v[i] = random_value(&seed);
        REQUIRE(!pyramid_set(&p, i, v[i], &err));
        if (i % 40009 == 0) { /* between two points, so that nodes are made in steps */
            struct pyramid_node got, want = plain(v, i + 1, i / 3, i + 1);
            REQUIRE(!pyramid_read(&p, i / 3, i + 1, &got, &err));
            CHECK(is_same(&got, &want));
        }
    }
    for (int i = 0; i < 400; i++) {
        size_t from = splitmix_next(&seed) % N, to = from + splitmix_next(&seed) % (i % 2 ? 300 : N);
        struct pyramid_node got, want = plain(v, N, from, to);
        REQUIRE(!pyramid_read(&p, from, to, &got, &err));
        CHECK(is_same(&got, &want));
    }
    pyramid_release(&p);
}

static void the_last_point_may_change(void)
{
    struct pyramid p = { 0 };
    struct pyramid_node got;
    for (size_t i = 0; i < 16; i++)
        REQUIRE(!pyramid_set(&p, i, 1, &err));
    REQUIRE(!pyramid_read(&p, 0, 16, &got, &err));
    REQUIRE(!pyramid_set(&p, 15, 9, &err));
    REQUIRE(!pyramid_read(&p, 0, 16, &got, &err));
    CHECK(got.max == 9 && got.sum == 24);
    pyramid_release(&p);
}

static void points_that_are_cut_leave_nothing(void)
{
    enum { N = 5000 };
    float v[N];
    struct pyramid p = { 0 };
    uint64_t seed = 3;
    size_t n = 0;
    for (int round = 0; round < 60; round++) {
        size_t more = splitmix_next(&seed) % 400;
        for (size_t i = 0; i < more && n < N; i++, n++) {
            v[n] = random_value(&seed);
            REQUIRE(!pyramid_set(&p, n, v[n], &err));
        }
        struct pyramid_node got, want = plain(v, n, 0, n);
        REQUIRE(!pyramid_read(&p, 0, n, &got, &err));
        CHECK(is_same(&got, &want));
        n = n ? splitmix_next(&seed) % (n + 1) : 0;
        pyramid_cut(&p, n);
    }
    pyramid_release(&p);
}

static void a_metric_that_is_rare_has_gaps(void)
{
    struct pyramid p = { 0 };
    struct pyramid_node got;
    REQUIRE(!pyramid_set(&p, 999, 5, &err));
    REQUIRE(!pyramid_set(&p, 1999, 7, &err));
    REQUIRE(!pyramid_read(&p, 0, 5000, &got, &err));
    CHECK(got.n == 2 && got.min == 5 && got.max == 7);
    REQUIRE(!pyramid_read(&p, 0, 999, &got, &err));
    CHECK(!got.n);
    pyramid_release(&p);
}

static void halves_keep_the_later_value(void)
{
    struct pyramid p = { 0 };
    struct pyramid_node got;
    for (size_t i = 0; i < 1001; i++)
        REQUIRE(!pyramid_set(&p, i, i % 4 == 3 ? NAN : (double)i, &err));
    REQUIRE(!pyramid_read(&p, 0, 1001, &got, &err));
    pyramid_halve(&p);
    CHECK(p.n == 501);
    for (size_t i = 0; i < 501; i++) {
        double want = i == 500 ? 1000 : i % 2 ? (double)(2 * i) : (double)(2 * i + 1);
        REQUIRE(!pyramid_read(&p, i, i + 1, &got, &err));
        CHECK(got.n == 1 && (double)got.min == want);
    }
    REQUIRE(!pyramid_read(&p, 0, 501, &got, &err));
    CHECK(got.n == 501 && got.max == 1000 && got.min == 1);
    pyramid_release(&p);
}

int main(void)
{
    RUN(halves_keep_the_later_value);
    RUN(reads_are_those_of_a_loop);
    RUN(the_last_point_may_change);
    RUN(points_that_are_cut_leave_nothing);
    RUN(a_metric_that_is_rare_has_gaps);
    return check_done();
}
