/* SPDX-License-Identifier: Apache-2.0
 * cairn tensor diff */
#include "base/progress.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/tensor_commands.h"
#include "cli/tensor_json.h"
#include "tensor/diff.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wish {
    const char *rtol, *atol;
    struct opt_list only;
    bool json, ignore_dtype, metadata;
    struct diff_options how;
};

struct work {
    struct tensor_source a, b;
    struct diff_pair *pairs; /* of the names that are in both */
    size_t n_pairs, same, differ, only_a, only_b, meta;
};

static bool wanted(const struct wish *w, const char *name)
{
    return source_name_matches(name, w->only.item, w->only.n);
}

static bool dtype_differs(const struct wish *w, const struct diff_pair *p)
{
    return !w->ignore_dtype && strcmp(p->a->dtype_text, p->b->dtype_text) != 0;
}

static bool pair_differs(const struct wish *w, const struct diff_pair *p)
{
    return dtype_differs(w, p) || !p->compared || p->result.differing;
}

static const char *or_empty(const char *s)
{
    return s ? s : "";
}

/* Is this entry of one file missing or other in the other? */
static bool meta_differs(const struct tensor_source *other, const struct st_meta *m)
{
    const char *value = source_meta_find(other, m->key);
    return !value || strcmp(value, m->value);
}

static size_t count_missing(const struct tensor_source *in, const struct tensor_source *from,
                            const struct wish *w)
{
    size_t n = 0;
    for (size_t i = 0; i < from->n_tensors; i++)
        n += wanted(w, from->tensors[i].name) && !source_find(in, from->tensors[i].name);
    return n;
}

static void count(struct work *k, const struct wish *w)
{
    k->only_a = count_missing(&k->b, &k->a, w);
    k->only_b = count_missing(&k->a, &k->b, w);
    for (size_t i = 0; i < k->n_pairs; i++)
        k->differ += pair_differs(w, &k->pairs[i]);
    k->same = k->n_pairs - k->differ;
    for (size_t i = 0; w->metadata && i < k->a.n_meta; i++)
        k->meta += meta_differs(&k->b, &k->a.meta[i]);
    for (size_t i = 0; w->metadata && i < k->b.n_meta; i++)
        k->meta += !source_meta_find(&k->a, k->b.meta[i].key);
}

static int make_pairs(struct work *k, const struct wish *w, struct cairn_error *err)
{
    k->pairs = calloc(k->a.n_tensors + 1, sizeof(*k->pairs));
    if (!k->pairs)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu tensors", k->a.n_tensors);
    for (size_t i = 0; i < k->a.n_tensors; i++) {
        const struct st_tensor *other = source_find(&k->b, k->a.tensors[i].name);
        if (other && wanted(w, other->name))
            k->pairs[k->n_pairs++] = (struct diff_pair){ .a = &k->a.tensors[i], .b = other };
    }
    return 0;
}

/* Where an element is, in the words of its shape. */
static void index_of(const struct st_tensor *t, uint64_t index, uint64_t *out)
{
    for (int i = t->rank - 1; i >= 0; i--) {
        out[i] = index % t->shape[i];
        index /= t->shape[i];
    }
}

static void print_place(const char *what, const struct st_tensor *t, const struct diff_place *p)
{
    printf("    %s at ", what);
    if (t->dtype == DTYPE_OTHER) {
        printf("byte %" PRIu64 ": %g, %g\n", p->index, p->a, p->b);
        return;
    }
    uint64_t at[ST_RANK_MAX];
    index_of(t, p->index, at);
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
        puts("    the numbers of these dtypes cannot be compared");
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
                          const struct tensor_source *from, const struct wish *w)
{
    char shape[TENSOR_SHAPE_TEXT];
    for (size_t i = 0; i < from->n_tensors; i++) {
        const struct st_tensor *t = &from->tensors[i];
        if (!wanted(w, t->name) || source_find(in, t->name))
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
        if (meta_differs(b, &a->meta[i])) {
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

static void print_table(const struct work *k, const struct wish *w)
{
    print_missing('-', COLOR_RED, &k->b, &k->a, w);
    print_missing('+', COLOR_GREEN, &k->a, &k->b, w);
    for (size_t i = 0; i < k->n_pairs; i++)
        if (pair_differs(w, &k->pairs[i]))
            print_pair(&k->pairs[i]);
    if (w->metadata)
        print_meta(&k->a, &k->b);
    printf("%zu tensor%s the same, %zu differ%s, %zu only in the first, %zu only in the second\n", k->same,
           k->same == 1 ? " is" : "s are", k->differ, k->differ == 1 ? "s" : "", k->only_a, k->only_b);
}

static void add_value(struct json *o, const char *key, double v)
{
    if (isfinite(v))
        json_add_real(o, key, v);
    else
        json_add_text(o, key, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
}

static void add_place(struct json *o, const char *key, const struct st_tensor *t, const struct diff_place *p)
{
    struct json *place = json_add_object(o, key);
    if (t->dtype == DTYPE_OTHER) {
        json_add_int(place, "byte", (int64_t)p->index);
    } else {
        uint64_t at[ST_RANK_MAX];
        struct json *index = json_add_array(place, "index");
        index_of(t, p->index, at);
        for (int i = 0; i < t->rank; i++)
            json_add_int(index, NULL, (int64_t)at[i]);
    }
    add_value(place, "a", p->a);
    add_value(place, "b", p->b);
    add_value(place, "difference", p->by);
}

static void add_side(struct json *o, const char *key, const struct st_tensor *t)
{
    struct json *side = json_add_object(o, key);
    json_add_text(side, "dtype", t->dtype_text);
    struct json *shape = json_add_array(side, "shape");
    for (int i = 0; i < t->rank; i++)
        json_add_int(shape, NULL, (int64_t)t->shape[i]);
}

static void add_pair(struct json *list, const struct diff_pair *p)
{
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "name", p->a->name);
    add_side(o, "a", p->a);
    add_side(o, "b", p->b);
    if (!p->compared) {
        json_add_null(o, "differing");
        return;
    }
    json_add_int(o, "differing", (int64_t)p->result.differing);
    if (!p->result.differing)
        return;
    add_place(o, "first", p->a, &p->result.first);
    add_place(o, "worst", p->a, &p->result.worst);
}

static void add_missing(struct json *list, const struct tensor_source *in, const struct tensor_source *from,
                        const struct wish *w)
{
    for (size_t i = 0; i < from->n_tensors; i++)
        if (wanted(w, from->tensors[i].name) && !source_find(in, from->tensors[i].name))
            json_add_text(list, NULL, from->tensors[i].name);
}

static bool all_same(const struct work *k)
{
    return !k->differ && !k->only_a && !k->only_b && !k->meta;
}

static void print_json(const struct work *k, const struct wish *w)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "a", k->a.path);
    json_add_text(top, "b", k->b.path);
    json_add_bool(top, "same", all_same(k));
    json_add_real(top, "rtol", w->how.rtol);
    json_add_real(top, "atol", w->how.atol);
    json_add_int(top, "same_tensors", (int64_t)k->same);
    add_missing(json_add_array(top, "only_in_a"), &k->b, &k->a, w);
    add_missing(json_add_array(top, "only_in_b"), &k->a, &k->b, w);
    struct json *list = json_add_array(top, "differ");
    for (size_t i = 0; i < k->n_pairs; i++)
        if (pair_differs(w, &k->pairs[i]))
            add_pair(list, &k->pairs[i]);
    if (w->metadata)
        json_add_int(top, "metadata_differ", (int64_t)k->meta);
    json_print(top, stdout);
}

static void work_release(struct work *k)
{
    source_close(&k->a);
    source_close(&k->b);
    free(k->pairs);
}

static int diff(const char *a, const char *b, struct wish *w)
{
    CLEANUP(work_release) struct work k = { .pairs = NULL };
    struct cairn_error err = { 0 };
    struct progress progress;
    uint64_t bytes = 0;
    if (source_open(&k.a, a, &err) || source_open(&k.b, b, &err) || make_pairs(&k, w, &err))
        return print_error(&err);
    for (size_t i = 0; i < k.n_pairs; i++)
        bytes += k.pairs[i].a->bytes;
    progress_start(&progress, stderr, "diff", bytes);
    w->how.progress = &progress;
    int r = diff_pairs(&k.a, &k.b, k.pairs, k.n_pairs, &w->how, &err);
    progress_end(&progress);
    if (r)
        return print_error(&err);
    count(&k, w);
    (w->json ? print_json : print_table)(&k, w);
    return all_same(&k) ? EXIT_FINE : EXIT_TROUBLE;
}

static bool parse_tolerance(const char *text, double *out)
{
    char *end;
    if (!text)
        return true;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= 0 && isfinite(*out);
}

static int run(int argc, char **argv, int rest, struct wish *w)
{
    int r = tensor_operands(argc, argv, rest, 2, "two files");
    if (r)
        return r;
    if (!parse_tolerance(w->rtol, &w->how.rtol) || !parse_tolerance(w->atol, &w->how.atol))
        return options_error(argv[0], "a tolerance is a number from 0 on: --rtol \"%s\" --atol \"%s\"",
                             or_empty(w->rtol), or_empty(w->atol));
    return diff(argv[rest], argv[rest + 1], w);
}

int tensor_diff(int argc, char **argv)
{
    struct wish w = { .json = false };
    const struct opt_row rows[] = {
        OPT_STR(0, "rtol", &w.rtol, "R", "values may differ by R times the second value"),
        OPT_STR(0, "atol", &w.atol, "A", "values may differ by A, and by what --rtol allows"),
        OPT_LIST(0, "only", &w.only, "GLOB", "only tensors whose name matches; may be repeated"),
        OPT_FLAG(0, "ignore-dtype", &w.ignore_dtype, "the same values in another dtype are the same"),
        OPT_FLAG(0, "metadata", &w.metadata, "compare the metadata too"),
        OPT_INT(0, "threads", &w.how.threads, "N", "use N threads instead of all cores"),
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_END,
    };
    const struct opt_usage usage = {
        .synopsis = "cairn tensor diff A B [options]",
        .about =
            "Compares two files tensor by tensor: names that are in one only, dtypes, shapes, and the first and "
            "the worst difference of values. 0 and -0 are equal, and so are two NaN. Exit 1 if they differ.",
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
