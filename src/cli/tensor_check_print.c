/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/tensor_check.h"

#include "cli/print.h"
#include "cli/tensor_commands.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static enum print_color color_of(enum tensor_health v, bool damaged)
{
    if (damaged)
        return COLOR_RED;
    return v == TENSOR_OK ? COLOR_GREEN : COLOR_YELLOW;
}

static void print_verdict(enum tensor_health v, bool damaged)
{
    printf("%s%-10s%s  ", print_color(color_of(v, damaged)), tensor_health_name(v), print_color(COLOR_PLAIN));
}

static void print_line(const char *label, const char *text)
{
    printf("%12s%s", "", label);
    print_wrapped(stdout, text, 12 + print_columns(label), print_width());
}

static void print_why(const char *name, const char *why)
{
    printf("%12s", "");
    print_padded(stdout, name, 0);
    fputs(": ", stdout);
    print_wrapped(stdout, why, 12, print_width());
}

/* The worst tensor, then a few others; --verbose and --json have all. */
static void print_damage(const struct checked_file *f)
{
    enum { SHOWN = 3 };
    const struct file_verdict *v = &f->verdict;
    size_t shown = 1;
    if (v->name)
        print_why(v->name, v->why);
    else
        print_line("", v->why);
    for (size_t i = 0; f->tensors && v->name && i < f->n_tensors && shown < SHOWN; i++) {
        if (!f->verdicts[i].damaged || !strcmp(f->tensors[i].name, v->name))
            continue;
        print_why(f->tensors[i].name, f->verdicts[i].why);
        shown++;
    }
    if (v->n_damaged > shown)
        printf("%12sand %zu more tensors (--verbose lists them)\n", "", v->n_damaged - shown);
    print_line("to do: ", v->todo);
}

static void print_tensor(const struct st_tensor *t, const struct scan_stats *s,
                         const struct tensor_verdict *v)
{
    char shape[TENSOR_SHAPE_TEXT];
    fputs("  ", stdout);
    print_verdict(v->verdict, v->damaged);
    print_padded(stdout, t->name, 0);
    putchar(' ');
    print_padded(stdout, t->dtype_text, 0);
    printf(" %s\n", tensor_shape_text(t, shape));
    if (scan_has_range(s))
        printf("%14smin %.6g  max %.6g  mean %.6g  std %.6g  absmax %.6g\n", "", s->min, s->max, scan_mean(s),
               scan_std(s), scan_absmax(s));
    if (s->zero || s->nan || s->inf || s->subnormal)
        printf("%14szero %" PRIu64 "  NaN %" PRIu64 "  Inf %" PRIu64 "  subnormal %" PRIu64 " of %" PRIu64
               "\n",
               "", s->zero, s->nan, s->inf, s->subnormal, s->n);
    if (v->why)
        print_line("  ", v->why);
}

static void print_file(const struct checked_file *f, bool verbose)
{
    char size[24];
    print_verdict(f->verdict.verdict, f->verdict.damaged);
    print_padded(stdout, f->path, 0);
    if (f->format && !f->verdict.damaged)
        printf("  (%zu tensor%s, %s)", f->n_tensors, f->n_tensors == 1 ? "" : "s",
               bytes_text((int64_t)f->data_bytes, size));
    putchar('\n');
    if (f->verdict.damaged)
        print_damage(f);
    if (f->verdict.n_skipped)
        printf("%12sskipped: %zu tensor%s of a dtype that cairn does not know\n", "", f->verdict.n_skipped,
               f->verdict.n_skipped == 1 ? "" : "s");
    for (size_t i = 0; verbose && f->tensors && i < f->n_tensors; i++)
        print_tensor(&f->tensors[i], &f->stats[i], &f->verdicts[i]);
}

/* Healthy files found in a folder are only counted: there may be thousands. */
void check_print_table(const struct checked_files *c, bool verbose)
{
    const struct checked_file *files = c->file;
    size_t n = c->n;
    for (size_t i = 0; i < n; i++)
        if (files[i].verdict.verdict != TENSOR_OK || files[i].named || verbose)
            print_file(&files[i], verbose);
    if (n == 1 && files[0].named)
        return;
    printf("%zu file%s checked: %zu damaged, ", n, n == 1 ? "" : "s", c->damaged);
    if (c->skipped)
        printf("%zu partly skipped, ", c->skipped);
    printf("%zu healthy\n", c->healthy);
}
