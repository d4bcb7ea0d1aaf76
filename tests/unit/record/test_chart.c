/* SPDX-License-Identifier: Apache-2.0 */
#include "record/chart.h"

#include "os/terminal.h"
#include "check.h"
#include "record/axis.h"
#include <math.h>

static void ticks_are_round(void)
{
    static const struct {
        struct axis a;
        int want;
        const char *labels;
    } rows[] = {
        { { 0, 1000, false }, 5, "0 200 400 600 800 1000 " },
        { { 2.41, 11.2, false }, 5, "4 6 8 10 " },
        { { 0, 1e6, false }, 4, "0 0.5M 1M " },
        { { 0, 3e-4, false }, 3, "0 1e-4 2e-4 3e-4 " },
        { { 0, 1.1e-3, false }, 3, "0 0.0005 0.001 " },
        { { 4e-5, 2, true }, 5, "1e-4 1e-3 1e-2 1e-1 1e0 " },
        { { 0, 1.2e4, false }, 3, "0 5k 10k " },
        { { 0, 2e15, false }, 2, "0 1e15 2e15 " },
        { { -1, 1, false }, 4, "-1 -0.5 0 0.5 1 " },
        { { 0.02, 30, true }, 12, "0.02 0.05 0.1 0.2 0.5 1 2 5 10 20 " },
        { { 1, 1e8, true }, 4, "1 100 10k 1M 100M " },
        { { 2, 4, true }, 4, "2 2.5 3 3.5 4 " },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double ticks[AXIS_TICKS_MOST];
        char all[256] = "", one[AXIS_LABEL];
        size_t n = axis_ticks(&rows[i].a, rows[i].want, ticks);
        for (size_t k = 0; k < n; k++)
            strcat(strcat(all, axis_label(&rows[i].a, ticks[k], one)), " ");
        CHECK_STR(all, rows[i].labels);
    }
}

static void an_axis_has_width(void)
{
    struct axis a = axis_fit(3, 3, false);
    CHECK(a.lo < 3 && a.hi > 3 && axis_place(&a, 3) == 0.5);
    a = axis_fit(0, 0, false);
    CHECK(a.lo < a.hi);
    a = axis_fit(2, 2, true);
    CHECK(a.is_log && a.lo < 2 && a.hi > 2);
    a = axis_fit(0, 5, true);
    CHECK(!a.is_log);
}

static void draws_a_curve(void)
{
    double x[] = { 0, 1, 2, 3 }, y[] = { 4, 3, 2, 1 };
    struct chart_line line = { { x, y, 4 }, NULL };
    struct chart c = { .lines = &line, .n = 1, .width = 16, .height = 4 };
    struct str out = { 0 };
    chart_draw(&c, &out);
    CHECK_STR(out.s, "       4 +*****\n"
                     "         |     ****\n"
                     "       2 +         ****\n"
                     "         |             ***\n"
                     "         ++---------+-----\n"
                     "          0         2\n");
    str_release(&out);
    c.utf8 = true;
    chart_draw(&c, &out);
    CHECK_HAS(out.s, "▀");
    CHECK_HAS(out.s, "└");
    str_release(&out);
}

/* A loss that went wild: as far apart as numbers can be, on both kinds of axis. */
static void any_numbers_are_drawn(void)
{
    static const double far[] = { 1,       1e300,  1e308, -1e308, 0, 5e-324, 1.7976931348623157e308,
                                  -5e-324, 1e-300, 3 };
    enum { N = ARRAY_LEN(far) };
    for (int from = 0; from < N; from++)
        for (int n = 1; n <= N; n++)
            for (int way = 0; way < 4; way++) {
                double x[N], y[N];
                for (int i = 0; i < n; i++) {
                    x[i] = way & 2 ? 1.8e19 + i : i;
                    y[i] = far[(from + i) % N];
                }
                struct chart_line line = { { x, y, (size_t)n }, NULL };
                struct chart c = { .lines = &line, .n = 1, .width = 16, .height = 4, .is_log = way & 1 };
                CLEANUP(str_release) struct str out = { 0 };
                chart_draw(&c, &out);
                CHECK(out.len > 60 && !strstr(out.s, "nan") && !strstr(out.s, "inf"));
                chart_sparkline(y, (size_t)n, true, &out);
            }
    struct axis a = axis_fit(1, 1e300, true);
    CHECK(axis_place(&a, 1) < 0.1 && axis_place(&a, 1e300) > 0.9 && isfinite(axis_place(&a, 1e150)));
    a = axis_fit(-1e308, 1e308, false);
    CHECK(axis_place(&a, 0) == 0.5 && isfinite(axis_place(&a, 1.7e308)));
}

static void steps_are_marked_on_the_axis(void)
{
    double x[] = { 0, 1, 2, 3 }, y[] = { 4, 4, 4, 4 }, marks[] = { 3, 1 };
    struct chart_line line = { { x, y, 4 }, NULL };
    struct chart c = {
        .lines = &line, .n = 1, .width = 16, .height = 3, .from_0 = true, .marks = marks, .n_marks = 2
    };
    struct str out = { 0 };
    chart_draw(&c, &out);
    CHECK_STR(out.s, "         |****************\n"
                     "         |\n"
                     "       0 +\n"
                     "         ++----^----+----^\n"
                     "          0         2\n");
    str_release(&out);
}

static void curves_have_marks(void)
{
    double x[] = { 1, 2 }, up[] = { 1, 2 }, down[] = { 2, 1 }, none[] = { NAN, NAN };
    struct chart_line lines[] = { { { x, up, 2 }, "" }, { { x, down, 2 }, "" }, { { x, none, 2 }, "" } };
    struct chart c = { .lines = lines, .n = 3, .width = 10, .height = 3, .utf8 = true };
    struct str out = { 0 };
    chart_draw(&c, &out);
    CHECK_HAS(out.s, "a");
    CHECK_HAS(out.s, "b");
    CHECK(!strchr(out.s, 'c'));
    str_release(&out);
    c.lines = lines + 2, c.n = 1;
    chart_draw(&c, &out);
    CHECK_INT(out.len, 0);
    c.lines = &(struct chart_line){ { x, up, 0 }, "" };
    c.is_log = true;
    chart_draw(&c, &out);
    CHECK_INT(out.len, 0);
}

static void sparkline(void)
{
    double v[] = { 8, 4, NAN, 1 }, same[] = { 3, 3 };
    struct str out = { 0 };
    chart_sparkline(v, 4, true, &out);
    CHECK_STR(out.s, "█▄ ▁");
    str_release(&out);
    chart_sparkline(v, 4, false, &out);
    CHECK_STR(out.s, "#- _");
    str_release(&out);
    chart_sparkline(same, 2, false, &out);
    CHECK_STR(out.s, "__");
    str_release(&out);
}

static void the_first_variable_decides(void)
{
    unsetenv("LC_ALL");
    setenv("LC_CTYPE", "", 1);
    setenv("LANG", "de_DE.UTF-8", 1);
    CHECK(tty_knows_utf8());
    setenv("LC_ALL", "C", 1);
    CHECK(!tty_knows_utf8());
    setenv("LC_ALL", "C.utf8", 1);
    CHECK(tty_knows_utf8());
}

int main(void)
{
    RUN(ticks_are_round);
    RUN(an_axis_has_width);
    RUN(draws_a_curve);
    RUN(any_numbers_are_drawn);
    RUN(steps_are_marked_on_the_axis);
    RUN(curves_have_marks);
    RUN(sparkline);
    RUN(the_first_variable_decides);
    return check_done();
}
