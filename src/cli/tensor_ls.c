/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor ls */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/tensor_commands.h"
#include "report/tensor.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct options {
    struct opt_list only;
    bool json, verbose;
};

static bool wanted(const struct options *w, const struct st_tensor *t)
{
    return source_name_matches(t->name, w->only.item, w->only.n);
}

static int widest_name(const struct tensor_source *s, const struct options *w)
{
    int widest = 4;
    for (size_t i = 0; i < s->n_tensors; i++) {
        int n = wanted(w, &s->tensors[i]) ? print_columns(s->tensors[i].name) : 0;
        widest = n > widest ? n : widest;
    }
    return widest < 60 ? widest : 60;
}

static void print_tensor(const struct st_tensor *t, int width)
{
    char shape[TENSOR_SHAPE_TEXT], size[24];
    print_padded(stdout, t->name, width);
    putchar(' ');
    print_padded(stdout, t->dtype_text, 9);
    printf(" %-20s %9s\n", tensor_shape_text(t, shape), bytes_text((int64_t)t->bytes, size));
}

static void print_metadata(const struct tensor_source *s)
{
    for (size_t i = 0; i < s->n_meta; i++) {
        print_padded(stdout, s->meta[i].key, 0);
        fputs(" = ", stdout);
        print_wrapped(stdout, s->meta[i].value, 4, print_width());
    }
    if (s->n_meta)
        putchar('\n');
}

static void print_table(const struct tensor_source *s, const struct options *w)
{
    int width = widest_name(s, w);
    char size[24];
    if (w->verbose)
        print_metadata(s);
    printf("%s%-*s %-9s %-20s %9s%s\n", print_color(COLOR_BOLD), width, "NAME", "DTYPE", "SHAPE", "SIZE",
           print_color(COLOR_PLAIN));
    for (size_t i = 0; i < s->n_tensors; i++)
        if (wanted(w, &s->tensors[i]))
            print_tensor(&s->tensors[i], width);
    struct tensor_total sum = tensor_total(s, w->only.item, w->only.n);
    printf("%zu tensor%s, %" PRIu64 " values, %s (%" PRIu64 " bytes)", sum.n, sum.n == 1 ? "" : "s",
           sum.elements, bytes_text((int64_t)sum.bytes, size), sum.bytes);
    if (s->n_files > 1)
        printf(" in %zu files", s->n_files);
    if (s->n_meta && !w->verbose)
        printf("; %zu metadata entr%s (--verbose)", s->n_meta, s->n_meta == 1 ? "y" : "ies");
    putchar('\n');
}

static void print_tables(const struct tensor_source *s, size_t n, bool several, const struct options *w)
{
    for (size_t i = 0; i < n; i++) {
        if (several) {
            printf("%s", i ? "\n" : "");
            print_padded(stdout, s[i].path, 0);
            puts(":");
        }
        print_table(&s[i], w);
    }
}

static void show(const struct tensor_source *s, size_t n, bool several, const struct options *w)
{
    if (w->json)
        print_report(report_tensor_list(s, n, several, w->only.item, w->only.n));
    else
        print_tables(s, n, several, w);
}

/* Reports files that cannot be read, and still lists the others. */
static int open_all(struct tensor_source *s, size_t *opened, char **paths, size_t n)
{
    int code = EXIT_FINE;
    for (size_t i = 0; i < n; i++) {
        struct cairn_error err = { 0 };
        if (source_open(&s[*opened], paths[i], &err))
            code = print_error(&err);
        else
            ++*opened;
    }
    return code;
}

static int list(char **paths, size_t n, const struct options *w)
{
    CLEANUP(mem_free) struct tensor_source *s = calloc(n, sizeof(*s));
    struct cairn_error err = { 0 };
    size_t opened = 0;
    if (!s) {
        cairn_fail(&err, CAIRN_ENOMEM, "out of memory for %zu files", n);
        return print_error(&err);
    }
    int code = open_all(s, &opened, paths, n);
    if (opened && tensor_check_patterns(s, opened, &w->only, &err))
        code = print_error(&err);
    else if (opened)
        show(s, opened, n > 1, w);
    for (size_t i = 0; i < opened; i++)
        source_close(&s[i]);
    return code;
}

int tensor_ls(int argc, char **argv)
{
    struct options w = { .json = false };
    const struct opt_row rows[] = {
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_FLAG('v', "verbose", &w.verbose, "also show the metadata"),
        OPT_LIST(0, "only", &w.only, "GLOB", "only tensors whose name matches; may be repeated"),
        OPT_END,
    };
    const struct opt_usage usage = {
        "cairn tensor ls FILE... [options]",
        "Lists the tensors of each file in the order of their data. It reads only the header, and "
        "checks all of it.",
        "  cairn tensor ls wan2.1_t2v_14B.safetensors --only 'blocks.0.*'\n"
        "  cairn tensor ls model.safetensors.index.json --json | jq .data_bytes\n",
        .mixed = true,
    };
    int rest, r = options_parse(argc, argv, rows, &usage, &rest);
    if (r == OPTIONS_GO)
        r = rest == argc ? options_error(argv[0], "needs a FILE")
                         : list(argv + rest, (size_t)(argc - rest), &w);
    opt_list_release(&w.only);
    return r;
}
