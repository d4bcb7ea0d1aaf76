/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor diff */
#include "base/progress.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/tensor_commands.h"
#include "report/tensor.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *rtol, *atol;
    struct opt_list only;
    bool json;
    struct compare_options how;
};

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

static void print_place(const char *what, const struct st_tensor *t, const struct diff_place *p)
{
    printf("    %s at ", what);
    if (t->dtype == DTYPE_OTHER) {
        printf("byte %" PRIu64 ": %g, %g\n", p->index, p->a, p->b);
        return;
    }
    uint64_t at[ST_RANK_MAX];
    compare_index(t, p->index, at);
    putchar('[');
    for (int i = 0; i < t->rank; i++)
        printf("%s%" PRIu64, i ? ", " : "", at[i]);
    printf("]: %.9g, %.9g (by %.4g)\n", p->a, p->b, p->by);
}

/* A dtype's name comes from the file. */
static void print_dtypes(const struct diff_pair *p)
{
    fputs("    dtype ", stdout);
    print_padded(stdout, p->a->dtype_text, 0);
    fputs(", ", stdout);
    print_padded(stdout, p->b->dtype_text, 0);
    putchar('\n');
}

static void print_pair(const struct diff_pair *p)
{
    char a[TENSOR_SHAPE_TEXT], b[TENSOR_SHAPE_TEXT];
    printf("%s~ ", print_color(COLOR_YELLOW));
    print_padded(stdout, p->a->name, 0);
    printf("%s\n", print_color(COLOR_PLAIN));
    if (strcmp(p->a->dtype_text, p->b->dtype_text))
        print_dtypes(p);
    if (!diff_same_shape(p->a, p->b))
        printf("    shape %s, %s\n", tensor_shape_text(p->a, a), tensor_shape_text(p->b, b));
    else if (!p->compared)
        puts("    cannot compare values of these dtypes");
    if (!p->result.differing)
        return;
    uint64_t all = p->a->dtype == DTYPE_OTHER ? p->a->bytes : p->a->elements;
    printf("    %" PRIu64 " of %" PRIu64 " %s differ\n", p->result.differing, all,
           p->a->dtype == DTYPE_OTHER ? "bytes" : "values");
    print_place("first", p->a, &p->result.first);
    if (p->result.worst.index != p->result.first.index)
        print_place("worst", p->a, &p->result.worst);
}

static void print_missing(char mark, enum print_color color, const struct tensor_source *in,
                          const struct tensor_source *from, const struct compare_options *o)
{
    char shape[TENSOR_SHAPE_TEXT];
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct st_tensor *t = &from->tensors[i];
        if (!compare_covers(o, t->name) || source_find(in, t->name))
            continue;
        printf("%s%c ", print_color(color), mark);
        print_padded(stdout, t->name, 0);
        printf("%s ", print_color(COLOR_PLAIN));
        print_padded(stdout, t->dtype_text, 0);
        printf(" %s\n", tensor_shape_text(t, shape));
    }
}

static void print_meta(const struct tensor_source *a, const struct tensor_source *b)
{
    for (size_t i = 0; i < a->n_meta; i++)
        if (compare_meta_differs(b, &a->meta[i])) {
            fputs("~ metadata ", stdout);
            print_padded(stdout, a->meta[i].key, 0);
            printf("%s\n", source_meta_find(b, a->meta[i].key) ? "" : " (only in the first)");
        }
    for (size_t i = 0; i < b->n_meta; i++)
        if (!source_meta_find(a, b->meta[i].key)) {
            fputs("~ metadata ", stdout);
            print_padded(stdout, b->meta[i].key, 0);
            puts(" (only in the second)");
        }
}

static void print_table(const struct comparison *k)
{
    print_missing('-', COLOR_RED, &k->b, &k->a, k->o);
    print_missing('+', COLOR_GREEN, &k->a, &k->b, k->o);
    for (size_t i = 0; i < k->n_pairs; i++)
        if (compare_differs(k->o, &k->pairs[i]))
            print_pair(&k->pairs[i]);
    if (k->o->metadata)
        print_meta(&k->a, &k->b);
    printf("%zu tensor%s the same, %zu differ%s, %zu only in the first, %zu only in the second\n", k->same,
           k->same == 1 ? " is" : "s are", k->differ, k->differ == 1 ? "s" : "", k->only_a, k->only_b);
}

static int diff(const char *a, const char *b, struct options *w)
{
    CLEANUP(compare_close) struct comparison k = { 0 };
    struct cairn_error err = { 0 };
    struct progress progress;
    w->how.only = w->only.item;
    w->how.n_only = w->only.n;
    if (compare_open(&k, a, b, &w->how, &err))
        return print_error(&err);
    progress_start(&progress, stderr, "diff", k.bytes);
    w->how.values.progress = &progress;
    int r = compare_run(&k, &err);
    progress_end(&progress);
    if (r)
        return print_error(&err);
    if (w->json)
        print_report(report_tensor_diff(&k));
    else
        print_table(&k);
    return compare_is_same(&k) ? EXIT_FINE : EXIT_TROUBLE;
}

static bool parse_tolerance(const char *text, double *out)
{
    char *end;
    if (!text)
        return true;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && isfinite(*out);
}

static int run(int argc, char **argv, int rest, struct options *w)
{
    int r = tensor_operands(argc, argv, rest, 2, "two files");
    if (r)
        return r;
    if (!parse_tolerance(w->rtol, &w->how.values.rtol) || !parse_tolerance(w->atol, &w->how.values.atol))
        return options_error(argv[0], "--rtol and --atol take a number of at least 0: \"%s\", \"%s\"",
                             or_empty(w->rtol), or_empty(w->atol));
    return diff(argv[rest], argv[rest + 1], w);
}

int tensor_diff(int argc, char **argv)
{
    struct options w = { .json = false };
    const struct opt_row rows[] = {
        OPT_STR(0, "rtol", &w.rtol, "R", "values may differ by R times the second value"),
        OPT_STR(0, "atol", &w.atol, "A", "values may differ by A, and by what --rtol allows"),
        OPT_LIST(0, "only", &w.only, "GLOB", "only tensors whose name matches; may be repeated"),
        OPT_FLAG(0, "ignore-dtype", &w.how.ignore_dtype, "equal values in another dtype count as equal"),
        OPT_FLAG(0, "metadata", &w.how.metadata, "compare the metadata too"),
        OPT_INT(0, "threads", &w.how.values.threads, "N", "use N threads instead of all cores"),
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn tensor diff A B [options]",
        .about = "Compares two files tensor by tensor: names in only one of them, dtypes, shapes, and the "
                 "first and the largest difference of values. 0 and -0 are equal, and so are two NaN. Exit "
                 "status: 1 if they differ.",
        .examples = "  cairn tensor diff before.safetensors after.safetensors\n"
                    "  cairn tensor diff model.pth model-bf16.safetensors --ignore-dtype --rtol 0.004\n",
        .mixed = true,
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r == OPTIONS_GO)
        r = run(argc, argv, rest, &w);
    opt_list_release(&w.only);
    return r;
}
