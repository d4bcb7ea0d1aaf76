/* SPDX-License-Identifier: Apache-2.0 */
#include "record/series.h"

#include "check.h"
#include "record/curve.h"
#include "tree.h"
#include <math.h>

static struct tree tree;

static struct series read_text(const char *text)
{
    struct series s = { 0 };
    struct cairn_error err = { 0 };
    tree_put(&tree, "log.jsonl", text);
    CHECK(!series_read(tree_path(&tree, "log.jsonl"), &s, &err));
    return s;
}

static void lines_of_a_step_are_one_point(void)
{
    struct series s =
        read_text("{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":3}\n"
                  "{\"step\":2,\"val_loss\":3.5,\"event\":\"eval\"}\n\n{\"step\":3,\"loss\":5}\n");
    CHECK_INT(s.n, 3);
    CHECK_INT(s.bad_lines, 0);
    CHECK(s.point[1].value[METRIC_LOSS] == 3 && s.point[1].value[METRIC_VAL_LOSS] == 3.5);
    CHECK(series_last(&s, METRIC_VAL_LOSS)->step == 2);
    CHECK(series_least(&s, METRIC_LOSS)->step == 2 && series_most(&s, METRIC_LOSS)->step == 3);
    CHECK(series_mean(&s, METRIC_LOSS) == 4);
    CHECK(series_last(&s, METRIC_LR) == NULL && isnan(series_mean(&s, METRIC_LR)));
    series_release(&s);
}

static void a_step_keeps_its_trouble(void)
{
    struct series s =
        read_text("{\"step\":1,\"loss\":4}\n{\"step\":1,\"event\":\"slow-step\"}\n{\"step\":2,\"loss\":3}\n"
                  "{\"step\":3,\"loss\":3,\"event\":\"oom\"}\n{\"step\":3,\"val_loss\":3}\n");
    CHECK_INT(s.n, 3);
    CHECK_INT(series_next_event(&s, 0), 0);
    CHECK_STR(s.point[0].event, "slow-step");
    CHECK_INT(series_next_event(&s, 1), 2);
    CHECK_STR(s.point[2].event, "oom");
    CHECK_INT(series_next_event(&s, 3), 3);
    series_release(&s);
}

static void later_lines_count(void)
{
    struct series s = read_text("{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":3}\n"
                                "{\"step\":2,\"loss\":20}\n");
    CHECK_INT(s.n, 2);
    CHECK(s.point[1].value[METRIC_LOSS] == 20);
    series_release(&s);
}

static void damage_is_counted(void)
{
    struct series s =
        read_text("{\"step\":1,\"loss\":1}\nrubbish\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"lo");
    CHECK_INT(s.n, 2);
    CHECK_INT(s.bad_lines, 2);
    series_release(&s);
    s = read_text("");
    CHECK_INT(s.n, 0);
    CHECK_INT(s.bad_lines, 0);
    CHECK(series_last(&s, METRIC_LOSS) == NULL && series_least(&s, METRIC_LOSS) == NULL);
    series_release(&s);
}

static void no_number_is_not_the_least(void)
{
    struct series s = read_text("{\"step\":1,\"loss\":null,\"loss_is\":\"-inf\"}\n{\"step\":2,\"loss\":2}\n"
                                "{\"step\":3,\"loss\":null,\"loss_is\":\"nan\"}\n");
    CHECK_INT(series_least(&s, METRIC_LOSS)->step, 2);
    CHECK(isnan(series_last(&s, METRIC_LOSS)->value[METRIC_LOSS]));
    CHECK(series_mean(&s, METRIC_LOSS) == 2);
    series_release(&s);
}

static void the_tail_begins_with_a_whole_line(void)
{
    struct series s = { 0 };
    struct cairn_error err = { 0 };
    tree_put(&tree, "log.jsonl",
             "{\"step\":1,\"loss\":1}\n{\"step\":2,\"loss\":2}\n{\"step\":3,\"loss\":3}\n");
    REQUIRE(!series_read_tail(tree_path(&tree, "log.jsonl"), 25, &s, &err));
    CHECK_INT(s.n, 1);
    CHECK_INT(s.point[0].step, 3);
    CHECK_INT(s.bad_lines, 0);
    series_release(&s);
    CHECK(series_read(tree_path(&tree, "nothing"), &s, &err) == -1);
    CHECK_HAS(err.msg, "nothing");
}

static struct curve curve_from(double *values, size_t n)
{
    struct curve c = { calloc(n, sizeof(double)), calloc(n, sizeof(double)), n };
    for (size_t i = 0; i < n; i++) {
        c.step[i] = (double)i + 1;
        c.value[i] = values[i];
    }
    return c;
}

static void the_mean_of_a_window(void)
{
    double values[] = { 10, 4, 1, 4, NAN, 10 };
    struct curve c = curve_from(values, ARRAY_LEN(values)), mean = curve_mean(&c, 3),
                 same = curve_mean(&c, 1);
    CHECK(mean.value[0] == 10); /* nothing before it, so nothing behind it counts */
    CHECK(mean.value[1] == 5 && mean.value[2] == 3 && mean.value[3] == 2.5);
    CHECK(isnan(mean.value[4]) && mean.value[5] == 10);
    for (size_t i = 0; i < c.n; i++)
        CHECK(same.value[i] == values[i] || isnan(values[i]));
    curve_release(&c);
    curve_release(&mean);
    curve_release(&same);
}

/* One huge value does not make the others a flat line, nor spoil means far from it. */
static void a_spike_is_cut_off(void)
{
    double values[400];
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        values[i] = 2 + (double)(i % 10) / 10;
    values[200] = 1e300;
    struct curve c = curve_from(values, ARRAY_LEN(values)), mean = curve_mean(&c, 11);
    struct range r = curve_range(&c);
    CHECK(r.lo == 2 && r.hi > 2.8 && r.hi < 4);
    CHECK(mean.value[200] < 3 && fabs(mean.value[300] - 2.45) < 0.1);
    curve_release(&mean);
    c.value[200] = 8; /* not so far: shown */
    CHECK(curve_range(&c).hi == 8);
    curve_release(&c);
}

int main(void)
{
    tree_make(&tree);
    RUN(lines_of_a_step_are_one_point);
    RUN(a_step_keeps_its_trouble);
    RUN(later_lines_count);
    RUN(damage_is_counted);
    RUN(no_number_is_not_the_least);
    RUN(the_tail_begins_with_a_whole_line);
    RUN(the_mean_of_a_window);
    RUN(a_spike_is_cut_off);
    tree_remove(&tree);
    return check_done();
}
