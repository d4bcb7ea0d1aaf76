/* SPDX-License-Identifier: Apache-2.0
 * Series of logs that grow in pieces of any size, start over, are truncated and replaced, against record/series.h,
 * which reads a whole log anew, and plain loops over its points. */
#include "web/run_series.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/splitmix.h"
#include "check.h"
#include "record/series.h"
#include "tree.h"
#include "web/series_cache.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct cairn_error err;
static struct tree tree;
static char path[PATH_MAX];
static uint64_t seed = 5;

static void put(const char *text, size_t n, const char *mode)
{
    FILE *f = fopen(path, mode);
    REQUIRE(f != NULL);
    fwrite(text, 1, n, f);
    fclose(f);
}

static void put_text(const char *text, const char *mode)
{
    put(text, strlen(text), mode);
}

static struct json *view(struct run_series *s, const struct run_series_view *w)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct json *v = NULL;
    CHECK(!run_series_write(s, w, &text, &err));
    CHECK(!json_parse(text.s, text.len, &v, &err));
    return v;
}

static double number(const struct json *list, size_t i)
{
    return json_number(json_at(list, i), NAN);
}

/* As near as floats of that size are. */
static bool is_near(double got, double want, double size)
{
    return isnan(want) ? isnan(got) : fabs(got - want) <= 2e-7 * (size + 1e-6);
}

/* ---- the plain model ---- */

struct window {
    size_t first, end, size;
};

static struct window window_of(const struct series *s, const struct run_series_view *w)
{
    struct window out = { .end = s->n };
    while (out.first < s->n && s->point[out.first].step < w->from)
        out.first++;
    while (out.end > out.first && s->point[out.end - 1].step > w->to)
        out.end--;
    out.size = (out.end - out.first + w->points - 1) / w->points;
    out.size = out.size ? out.size : 1;
    return out;
}

static void check_metric(const struct series *s, struct window o, enum metric m, const struct json *got)
{
    size_t group = 0;
    for (size_t at = o.first; at < o.end; at += o.size, group++) {
        double low = NAN, high = NAN, sum = 0, size = 0;
        size_t n = 0;
        for (size_t i = at; i < at + o.size && i < o.end; i++) {
            double v = s->point[i].value[m];
            if (!step_record_has(&s->point[i], m) || !isfinite(v))
                continue;
            low = n && low < v ? low : v;
            high = n && high > v ? high : v;
            sum += v;
            size = fmax(size, fabs(v));
            n++;
        }
        CHECK(is_near(number(json_get(got, "min"), group), low, size));
        CHECK(is_near(number(json_get(got, "max"), group), high, size));
        CHECK(is_near(number(json_get(got, "mean"), group), n ? sum / (double)n : NAN, size));
    }
    CHECK_INT(json_length(json_get(got, "mean")), group);
}

static void check_events(const struct series *s, struct window o, const struct json *got)
{
    size_t n = 0;
    for (size_t i = o.first; i < o.end; i++)
        if (s->point[i].event) {
            const struct json *e = json_at(got, n++);
            CHECK_INT(json_int(json_get(e, "step"), -1), s->point[i].step);
            CHECK_STR(json_text(json_get(e, "event")), s->point[i].event);
            CHECK_STR(json_text(json_get(e, "note")), "a \"note\"");
        }
    CHECK_INT(json_length(got), n);
}

static void check_view(struct run_series *got, const struct series *want, const struct run_series_view *w)
{
    CLEANUP(json_cleanup) struct json *v = view(got, w);
    const struct json *metrics = json_get(v, "metrics"), *steps = json_get(v, "step");
    struct window o = window_of(want, w);
    size_t group = 0;
    for (size_t at = o.first; at < o.end; at += o.size, group++) {
        size_t last = at + o.size < o.end ? at + o.size - 1 : o.end - 1;
        CHECK_INT(json_int(json_at(steps, group), -1), want->point[last].step);
    }
    CHECK_INT(json_length(steps), group);
    CHECK(group <= w->points);
    for (int m = 0; m < METRIC_COUNT; m++)
        if (json_get(metrics, metric_key(m)))
            check_metric(want, o, m, json_get(metrics, metric_key(m)));
        else
            CHECK(w->only_known || !(w->metrics >> m & 1));
    check_events(want, o, json_get(v, "events"));
    CHECK_INT(json_int(json_get(v, "last_step"), -1), want->n ? want->point[want->n - 1].step : 0);
}

static void check_file(struct run_series *s, unsigned metrics)
{
    CLEANUP(series_release) struct series want = { 0 };
    REQUIRE(!run_series_read(s, path, metrics, &err));
    REQUIRE(!series_read(path, &want, &err));
    struct run_series_view w = { .metrics = metrics, .to = UINT64_MAX, .points = 50 };
    check_view(s, &want, &w);
    for (int i = 0; i < 4; i++) {
        w.from = splitmix_next(&seed) % (want.n + 2);
        w.to = w.from + splitmix_next(&seed) % (want.n + 2);
        w.points = 1 + splitmix_next(&seed) % 300;
        w.only_known = i % 2;
        check_view(s, &want, &w);
    }
}

/* ---- logs ---- */

static void add_random_line(struct str *out, uint64_t *step)
{
    uint64_t r = splitmix_next(&seed);
    *step += r % 10 != 0; /* sometimes a second line of the same step */
    if (r % 97 == 0)
        *step -= *step / 3; /* a resume whose log was not truncated */
    if (r % 61 == 0) {
        str_add(out, r % 2 ? "no JSON at all\n" : "{\"loss\":3}\n");
        return;
    }
    if (r % 53 == 0) { /* a form that the quick scanner does not take */
        str_addf(out, "{ \"loss\": %g, \"step\": %llu }\n", (double)(r >> 40) / 3e5,
                 (unsigned long long)*step);
        return;
    }
    struct step_record m = { .step = *step };
    for (int i = 0; i < METRIC_COUNT; i++)
        if (splitmix_next(&seed) % 4 == 0)
            step_record_set(&m, i, (double)(int64_t)splitmix_next(&seed) / 1e12);
    if (r % 41 == 0)
        step_record_set(&m, METRIC_LOSS, r % 2 ? NAN : INFINITY);
    if (r % 10 && r % 37 == 0) {
        m.event = "oom";
        m.note = "a \"note\"";
    }
    step_record_add_line(&m, out);
}

static void logs_that_grow_in_pieces(void)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct run_series *s = run_series_new();
    uint64_t step = 0;
    size_t at = 0;
    for (int i = 0; i < 3000; i++)
        add_random_line(&text, &step);
    put_text("", "w");
    while (at < text.len) {
        size_t n = 1 + splitmix_next(&seed) % 20000;
        n = n < text.len - at ? n : text.len - at;
        put(text.s + at, n, "a");
        at += n;
        check_file(s, RUN_SERIES_ALL);
    }
    run_series_free(s);
}

static void a_torn_line_waits(void)
{
    struct run_series *s = run_series_new();
    const struct run_series_view w = { .metrics = 1, .to = UINT64_MAX, .points = 10 };
    put_text("{\"step\":1,\"loss\":4}\n{\"step\":2,\"lo", "w");
    check_file(s, 1);
    put_text("ss\":3}\n", "a");
    check_file(s, 1);
    CLEANUP(json_cleanup) struct json *v = view(s, &w);
    CHECK_INT(json_length(json_get(v, "step")), 2);
    run_series_free(s);
}

static void truncated_and_replaced_files_start_anew(void)
{
    struct run_series *s = run_series_new();
    put_text("{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":3}\n{\"step\":3,\"loss\":2}\n", "w");
    check_file(s, 1);
    REQUIRE(!truncate(path, 40));
    check_file(s, 1);
    put_text("{\"step\":3,\"loss\":9}\n{\"step\":4,\"loss\":8}\n", "a");
    check_file(s, 1);
    put_text(
        "{\"step\":1,\"loss\":5}\n{\"step\":2,\"loss\":6}\n{\"step\":3,\"loss\":7}\n{\"step\":4,\"loss\":8}\n",
        "w");
    check_file(s, 1); /* the same inode, longer than before, other bytes */
    REQUIRE(!unlink(path));
    REQUIRE(!run_series_read(s, path, 1, &err));
    const struct run_series_view w = { .metrics = 1, .to = UINT64_MAX, .points = 10 };
    CLEANUP(json_cleanup) struct json *v = view(s, &w);
    CHECK_INT(json_length(json_get(v, "step")), 0);
    put_text("{\"step\":7,\"loss\":5}\n", "w");
    check_file(s, 1);
    run_series_free(s);
}

static void metrics_are_read_when_they_are_wanted(void)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct run_series *s = run_series_new();
    uint64_t step = 0;
    for (int i = 0; i < 400; i++)
        add_random_line(&text, &step);
    put(text.s, text.len, "w");
    check_file(s, 1u << METRIC_LR);
    check_file(s, 1u << METRIC_LOSS | 1u << METRIC_ELAPSED_S);
    check_file(s, RUN_SERIES_ALL);
    check_file(s, 1u << METRIC_LOSS);
    run_series_free(s);
}

static void a_line_without_an_end_is_skipped(void)
{
    enum { LONG = 3 << 20 };
    CLEANUP(str_release) struct str text = { 0 };
    struct run_series *s = run_series_new();
    str_add(&text, "{\"step\":1,\"loss\":4}\n");
    CLEANUP(mem_free) char *junk = malloc(LONG);
    REQUIRE(junk != NULL);
    memset(junk, 'x', LONG);
    str_addn(&text, junk, LONG);
    put(text.s, text.len, "w");
    REQUIRE(!run_series_read(s, path, 1, &err));
    put_text("\n{\"step\":2,\"loss\":3}\n", "a");
    check_file(s, 1);
    run_series_free(s);
}

/* More points than are kept: each two become one, and the ends stay where they are. */
static void very_long_runs_are_thinned(void)
{
    enum { STEPS = RUN_SERIES_POINTS + 5000 };
    struct run_series *s = run_series_new();
    FILE *f = fopen(path, "w");
    REQUIRE(f != NULL);
    for (int i = 1; i <= STEPS; i++)
        fprintf(f, "{\"step\":%d,\"loss\":%d}\n", i, i % 1000);
    fclose(f);
    REQUIRE(!run_series_read(s, path, 1, &err));
    const struct run_series_view w = { .metrics = 1, .to = UINT64_MAX, .points = 100 };
    CLEANUP(json_cleanup) struct json *v = view(s, &w);
    const struct json *loss = json_get(json_get(v, "metrics"), "loss");
    CHECK_INT(json_int(json_get(v, "last_step"), 0), STEPS);
    CHECK(json_length(json_get(v, "step")) == 100);
    CHECK(number(json_get(loss, "max"), 3) >= 998 && number(json_get(loss, "min"), 3) <= 1);
    CHECK(fabs(number(json_get(loss, "mean"), 3) - 499.5) < 5);
    CHECK(run_series_bytes(s) < 40u << 20);
    run_series_free(s);
}

static void numbers_are_those_of_printf(void)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct run_series *s = run_series_new();
    enum { N = 5000 };
    static float want[N];
    for (int i = 0; i < N; i++) {
        double v =
            ldexp((double)(int64_t)splitmix_next(&seed) / 9.3e18, (int)(splitmix_next(&seed) % 80) - 40);
        want[i] = (float)v;
        str_addf(&text, "{\"step\":%d,\"loss\":%.9g}\n", i + 1, (double)want[i]);
    }
    put(text.s, text.len, "w");
    REQUIRE(!run_series_read(s, path, 1, &err));
    const struct run_series_view w = { .metrics = 1, .to = UINT64_MAX, .points = N };
    CLEANUP(json_cleanup) struct json *v = view(s, &w);
    const struct json *mean = json_get(json_get(json_get(v, "metrics"), "loss"), "mean");
    for (int i = 0; i < N; i++)
        CHECK((float)number(mean, (size_t)i) == want[i]);
    run_series_free(s);
}

static char *output_view(struct run_series *s)
{
    const struct run_series_view w = {
        .metrics = RUN_SERIES_ALL, .only_known = true, .to = UINT64_MAX, .points = 10000
    };
    struct str text = { 0 };
    CHECK(!run_series_write(s, &w, &text, &err));
    return text.s;
}

/* Bars of epochs, of something else, a loss in a line of its own, long lines: in pieces as at once. */
static void output_in_pieces_is_output_at_once(void)
{
    CLEANUP(str_release) struct str text = { 0 };
    for (int epoch = 0; epoch < 3; epoch++)
        for (int i = 1; i <= 200; i++) {
            if (i % 50 == 0)
                str_addf(&text, "sampling: 50%%|##  | %d/30 [00:01<00:01, 3.0it/s]\n", i % 30);
            str_addf(&text, "epoch: 10%%|#  | %d/200 [00:31<20:11, 2.00it/s%s]%s", i,
                     i % 3 ? ", loss=0.25" : "", i % 7 ? "\r" : "\n");
            if (i % 3 == 0)
                str_addf(&text, "{'loss': %d.5, 'lr': 1e-4}\n", epoch);
        }
    struct run_series *whole = run_series_new(), *pieces = run_series_new();
    put_text("", "w");
    for (size_t at = 0, n; at < text.len; at += n) {
        n = 1 + splitmix_next(&seed) % 900;
        n = n < text.len - at ? n : text.len - at;
        put(text.s + at, n, "a");
        REQUIRE(!run_series_read_output(pieces, path, &err));
    }
    REQUIRE(!run_series_read_output(whole, path, &err));
    CLEANUP(mem_free) char *one = output_view(whole), *other = output_view(pieces);
    CHECK_STR(other, one);
    CLEANUP(json_cleanup) struct json *v = NULL;
    REQUIRE(!json_parse(one, strlen(one), &v, &err));
    const struct json *loss = json_get(json_get(json_get(v, "metrics"), "loss"), "mean");
    CHECK_INT(json_length(json_get(v, "step")), 600);
    CHECK_INT(json_int(json_get(v, "last_step"), 0), 600);
    CHECK(number(loss, 0) == 0.25 && number(loss, 2) == 0.5 && number(loss, 402) == 2.5);
    run_series_free(whole);
    run_series_free(pieces);
}

static void the_cache_keeps_the_last(void)
{
    struct loop *l;
    REQUIRE(!loop_open(&l, &err));
    struct series_cache *c = series_cache_open(l);
    struct shared_series *first = series_borrow(c, "/0"), *again = series_borrow(c, "/0");
    CHECK(first == again);
    for (int i = 1; i < 3 * SERIES_CACHE_MOST; i++) {
        char name[8];
        snprintf(name, sizeof(name), "/%d", i);
        series_give_back(c, series_borrow(c, name));
    }
    CHECK_INT(series_cache_count(c), SERIES_CACHE_MOST);
    CHECK(series_borrow(c, "/0") == first); /* it was in use all the time */
    for (int i = 0; i < 3; i++)
        series_give_back(c, first);
    series_cache_close(c);
    loop_close(l);
}

int main(void)
{
    tree_make(&tree);
    snprintf(path, sizeof(path), "%s/log.jsonl", tree.dir);
    RUN(logs_that_grow_in_pieces);
    RUN(a_torn_line_waits);
    RUN(truncated_and_replaced_files_start_anew);
    RUN(metrics_are_read_when_they_are_wanted);
    RUN(a_line_without_an_end_is_skipped);
    RUN(very_long_runs_are_thinned);
    RUN(numbers_are_those_of_printf);
    RUN(output_in_pieces_is_output_at_once);
    RUN(the_cache_keeps_the_last);
    tree_remove(&tree);
    return check_done();
}
