/* SPDX-License-Identifier: Apache-2.0 */
#include "record/plot.h"

#include "check.h"
#include "tree.h"
#include <math.h>

static struct tree tree;

static struct series falling(size_t n)
{
    struct series s = { calloc(n, sizeof(struct step_record)), n, n, 0 };
    for (size_t i = 0; i < n; i++) {
        s.point[i].step = i + 1;
        step_record_set(&s.point[i], METRIC_LOSS, 2 + 8.0 / (double)(i + 1) + (double)(i * 7919 % 100) / 500);
        step_record_set(&s.point[i], METRIC_LR, 1e-4);
        step_record_set(&s.point[i], METRIC_MEM_BYTES, 2e9);
    }
    return s;
}

static int count(const char *text, const char *part)
{
    int n = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

/* As many as were opened are closed, and nothing is left open. */
static void check_nesting(const char *svg)
{
    CHECK_INT(count(svg, "<g "), count(svg, "</g>"));
    CHECK_INT(count(svg, "<text "), count(svg, "</text>"));
    CHECK(str_starts(svg, "<svg ") && str_ends(svg, "</svg>\n"));
    CHECK(!strstr(svg, "nan") && !strstr(svg, "inf "));
}

static void one_run(void)
{
    struct series s = falling(200);
    struct str out = { 0 };
    step_record_set(&s.point[99], METRIC_VAL_LOSS, 2.5);
    plot_svg(&(struct plot_run){ "a & <b>", &s }, 1, &(struct plot_options){ 0 }, &out);
    check_nesting(out.s);
    CHECK_HAS(out.s, "a &amp; &lt;b&gt;");
    CHECK_HAS(out.s, "class=\"raw c0\"");
    CHECK_HAS(out.s, "class=\"mean c0\"");
    CHECK_HAS(out.s, "<title>step 100: 2.5</title>");
    CHECK_HAS(out.s, "learning rate");
    CHECK_HAS(out.s, "memory, GiB");
    CHECK(!strstr(out.s, "tokens/s"));
    CHECK_HAS(out.s, "prefers-color-scheme:dark");
    CHECK_HAS(out.s, "mean of 5 steps");
    str_release(&out);
    plot_svg(&(struct plot_run){ "a", &s }, 1, &(struct plot_options){ .smooth = 1, .is_log = true }, &out);
    CHECK(!strstr(out.s, "class=\"raw c0\""));
    CHECK_HAS(out.s, "logarithmic");
    str_release(&out);
    series_release(&s);
}

/* Reserved, allocated and what is on the host under the loss, with marks where there was trouble. */
static void memory_and_trouble(void)
{
    struct series s = falling(200), other = falling(100);
    struct plot_run runs[] = { { "first", &s }, { "second", &other } };
    struct str out = { 0 };
    for (size_t i = 0; i < s.n; i++) {
        step_record_set(&s.point[i], METRIC_MEM_RESERVED, 1.5e9);
        step_record_set(&s.point[i], METRIC_MEM_ALLOCATED, i < 100 ? 1.4e9 : 0.7e9);
        if (i >= 150)
            step_record_set(&s.point[i], METRIC_MEM_HOST, 0.2e9);
    }
    s.point[99].event = "oom";
    s.point[199].event = "restart";
    plot_svg(runs, 1, &(struct plot_options){ 0 }, &out);
    check_nesting(out.s);
    CHECK_INT(count(out.s, "memory, GiB"), 1);
    CHECK_HAS(out.s, ">in use on the device, ");
    CHECK_HAS(out.s, "class=\"reserved c0\"");
    CHECK_HAS(out.s, "class=\"allocated c0\"");
    CHECK_HAS(out.s, "class=\"host c0\" d=\"M721.3 ");
    CHECK_HAS(out.s, "class=\"mark bad\" d=\"M500.0 ");
    CHECK_HAS(out.s, "<title>step 100: oom</title>");
    CHECK_HAS(out.s, "text-anchor=\"end\">restart</text>");
    str_release(&out);
    plot_svg(runs, 2, &(struct plot_options){ 0 }, &out); /* the second knows nothing but what all use */
    check_nesting(out.s);
    CHECK_HAS(out.s, "class=\"mark c0\"");
    CHECK_INT(count(out.s, "class=\"reserved c"), 2); /* one in the legend */
    CHECK_HAS(out.s, "class=\"raw c1\" d=\"M70.3 ");
    str_release(&out);
    series_release(&s);
    series_release(&other);
}

/* A level line is one stroke, however long the run was. */
static void what_does_not_change_takes_no_room(void)
{
    struct series s = falling(200000);
    struct str without = { 0 }, with = { 0 };
    plot_svg(&(struct plot_run){ "a", &s }, 1, &(struct plot_options){ 0 }, &without);
    for (size_t i = 0; i < s.n; i++) {
        step_record_set(&s.point[i], METRIC_MEM_RESERVED, 1.5e9);
        step_record_set(&s.point[i], METRIC_MEM_ALLOCATED, 1.4e9);
    }
    plot_svg(&(struct plot_run){ "a", &s }, 1, &(struct plot_options){ 0 }, &with);
    CHECK(with.len < without.len + 3000);
    str_release(&without);
    str_release(&with);
    series_release(&s);
}

static void several_runs(void)
{
    struct series s = falling(200), other = falling(50), empty = { 0 };
    struct plot_run runs[] = { { "first", &s }, { "second", &other }, { "third", &empty } };
    struct str out = { 0 };
    plot_svg(runs, 3, &(struct plot_options){ 0 }, &out);
    check_nesting(out.s);
    CHECK_HAS(out.s, ">first<");
    CHECK_HAS(out.s, ">third<");
    CHECK_HAS(out.s, "class=\"mean c1\" d=\"M70.3 ");
    str_release(&out);
    series_release(&s);
    series_release(&other);
}

static void a_loss_that_is_no_number_is_marked(void)
{
    struct series s = falling(50);
    struct str out = { 0 };
    s.point[29].value[METRIC_LOSS] = INFINITY;
    plot_svg(&(struct plot_run){ "a", &s }, 1, &(struct plot_options){ 0 }, &out);
    CHECK_HAS(out.s, "<title>step 30: the loss is inf</title>");
    CHECK_HAS(out.s, "class=\"bad\"");
    str_release(&out);
    series_release(&s);
}

static void nothing_to_draw(void)
{
    struct series empty = { 0 };
    struct str out = { 0 };
    plot_svg(&(struct plot_run){ "a", &empty }, 1, &(struct plot_options){ 0 }, &out);
    check_nesting(out.s);
    CHECK_HAS(out.s, "no loss has been logged");
    str_release(&out);
}

/* The file does not grow with the run, and the extremes are in it. */
static void a_long_run_is_small(void)
{
    struct series s = falling(200000);
    struct str out = { 0 }, with = { 0 };
    plot_svg(&(struct plot_run){ "a", &s }, 1, &(struct plot_options){ 0 }, &out);
    CHECK(out.len < 60000);
    s.point[100001].value[METRIC_LOSS] = 9.9;
    plot_svg(&(struct plot_run){ "a", &s }, 1, &(struct plot_options){ 0 }, &with);
    CHECK(strcmp(out.s, with.s) != 0);
    str_release(&out);
    str_release(&with);
    series_release(&s);
}

static void writes_the_picture_of_a_run(void)
{
    struct cairn_error err = { 0 };
    struct stat st;
    tree_put(&tree, "run/log.jsonl", "{\"step\":1,\"loss\":3}\n{\"step\":2,\"loss\":2}\n");
    char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s/run", tree.dir);
    CHECK(!plot_write_run(dir, "a run", &err));
    CHECK(!stat(tree_path(&tree, "run/loss.svg"), &st) && st.st_size > 1000);
    CHECK(plot_write_run("/nonexistent", "a run", &err) == -1);
    CHECK_HAS(err.msg, "/nonexistent/log.jsonl");
}

int main(void)
{
    tree_make(&tree);
    RUN(one_run);
    RUN(memory_and_trouble);
    RUN(what_does_not_change_takes_no_room);
    RUN(several_runs);
    RUN(a_loss_that_is_no_number_is_marked);
    RUN(nothing_to_draw);
    RUN(a_long_run_is_small);
    RUN(writes_the_picture_of_a_run);
    tree_remove(&tree);
    return check_done();
}
