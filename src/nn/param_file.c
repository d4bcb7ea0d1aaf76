/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/param_file.h"
#include "base/suggest.h"
#include "base/thread.h"
#include "nn/param_load.h"
#include "nn/param_layout.h"
#include "nn/param_scale.h"
#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_SAID = 10, NEAREST_SAID = 3 }; /* in a message; of them with the nearest name */

static bool shape_fits(const struct param_tensor *t)
{
    struct param_layout s = param_layout_of(t);
    uint64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->shape[i];
    return !t->rank || (t->rank <= PARAM_DIMS && !t->transposed && n == (uint64_t)s.rows * s.columns);
}

void param_tensors_add(struct param_tensors *t, const struct param_tensor *tensor, const char *fmt, ...)
{
    assert(shape_fits(tensor));
    struct param_tensor *new = ARENA_PUSH(&t->arena, t->list, t->n);
    va_list ap;
    *new = *tensor;
    va_start(ap, fmt);
    new->name = arena_vprintf(&t->arena, fmt, ap);
    va_end(ap);
}

struct param_tensor param_tensor_whole(const struct param *p)
{
    return (struct param_tensor){ .param = p, .rows = p->kind == PARAM_VECTOR ? p->columns : p->rows };
}

void param_tensors_release(struct param_tensors *t)
{
    arena_release(&t->arena);
    *t = (struct param_tensors){ 0 };
}

void param_report_release(struct param_report *r)
{
    str_release(&r->missing);
    str_release(&r->unexpected);
    *r = (struct param_report){ 0 };
}

void param_report_say(const struct param_report *r, struct str *out)
{
    str_addf(out, "%zu tensor%s", r->tensors, r->tensors == 1 ? "" : "s");
    if (r->strided)
        str_addf(out, "; %zu %s strided, made contiguous", r->strided, r->strided == 1 ? "was" : "were");
    if (r->skipped)
        str_addf(out, "; %zu unused, skipped", r->skipped);
    if (r->rescaled)
        str_addf(out, "; %zu pair%s rescaled to lora.alpha", r->rescaled, r->rescaled == 1 ? "" : "s");
}

/* ---- writing ---- */

struct writing {
    const struct param_tensor *tensor;
    size_t index;
    const float *numbers; /* of the whole parameter */
    enum dtype dtype;
    struct st_writer *writer;
    const struct weights *weights;
    const struct param_getter *getter; /* NULL: the weights */
};

static int refuse_numbers(const struct writing *w, const float *numbers, size_t n, struct cairn_error *err)
{
    if (!param_layout_is_finite(numbers, DTYPE_F32, n))
        return cairn_fail(err, CAIRN_EFORMAT, "%s has non-finite values (NaN or Inf)", w->tensor->name);
    cairn_fail(err, CAIRN_EFORMAT, "%s has values that %s cannot represent", w->tensor->name,
               dtype_name(w->dtype));
    return cairn_hint(err, "save as bf16 or f32");
}

static int write_piece(void *context, size_t piece, struct cairn_error *err)
{
    const struct writing *w = context;
    const struct param_tensor *t = w->tensor;
    struct param_layout s = param_layout_of(t);
    assert(!t->taps && t->factor == 0);
    size_t first = piece * param_layout_piece_rows(s), most = param_layout_piece_rows(s);
    size_t rows = s.rows - first < most ? s.rows - first : most, n = rows * s.columns;
    size_t size = dtype_size(w->dtype);
    CLEANUP(mem_free) float *transposed = t->transposed ? malloc(n * sizeof(float)) : NULL;
    CLEANUP(mem_free) void *bytes = malloc(n * size);
    if (!bytes || (t->transposed && !transposed))
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %zu values", t->name, n);
    const float *from = w->numbers + param_layout_start(t) + (t->transposed ? first : first * s.columns);
    if (t->transposed)
        param_layout_transpose(transposed, s.columns, from, t->param->columns, t->rows, rows);
    from = t->transposed ? transposed : from;
    dtype_convert(bytes, w->dtype, from, DTYPE_F32, n, &(struct dtype_how){ 0 });
    if (!param_layout_is_finite(bytes, w->dtype, n))
        return refuse_numbers(w, from, n, err);
    return st_writer_put(w->writer, w->index, first * s.columns * size, bytes, n * size, err);
}

/* The parameter of tensors at ... at + n - 1. */
static int write_param(const struct param_tensors *t, size_t at, size_t n, struct writing w,
                       struct cairn_error *err)
{
    const struct param *p = t->list[at].param;
    CLEANUP(mem_free) float *numbers = param_alloc(p, err);
    if (!numbers || (w.getter ? w.getter->get(w.getter->context, p, numbers, err)
                              : weights_get(w.weights, p, numbers, err)))
        return -1;
    w.numbers = numbers;
    for (size_t i = at; i < at + n; i++) {
        w.tensor = &t->list[i];
        w.index = i;
        if (parallel_for(param_layout_pieces(param_layout_of(w.tensor)), 0, write_piece, &w, err))
            return -1;
    }
    return 0;
}

static struct st_tensor *header_of(const struct param_tensors *t, const struct param_file_options *o,
                                   struct arena *a)
{
    static const uint64_t no_shape[1];
    struct st_tensor *list = ARENA_NEW(a, struct st_tensor, t->n + o->n_scalars);
    for (size_t i = 0; i < t->n; i++) {
        uint64_t *shape = ARENA_NEW(a, uint64_t, PARAM_DIMS);
        struct param_layout s = param_layout_of(&t->list[i]);
        list[i] = (struct st_tensor){
            .name = t->list[i].name,
            .dtype = o->dtype,
            .dtype_text = dtype_safetensors(o->dtype),
            .shape = shape,
            .rank = param_layout_shape(&t->list[i], shape),
            .elements = (uint64_t)s.rows * s.columns,
            .bytes = (uint64_t)s.rows * s.columns * dtype_size(o->dtype),
        };
    }
    for (size_t i = 0; i < o->n_scalars; i++)
        list[t->n + i] = (struct st_tensor){
            .name = o->scalars[i].name,
            .dtype = DTYPE_F32,
            .dtype_text = dtype_safetensors(DTYPE_F32),
            .shape = no_shape,
            .elements = 1,
            .bytes = sizeof(float),
        };
    return list;
}

static int write_scalars(const struct param_file_options *o, size_t first, struct st_writer *writer,
                         struct cairn_error *err)
{
    for (size_t i = 0; i < o->n_scalars; i++)
        if (st_writer_put(writer, first + i, 0, &o->scalars[i].value, sizeof(float), err))
            return -1;
    return 0;
}

int param_file_write_with(const struct param_tensors *t, const struct param_file_options *o, const char *path,
                          struct cairn_error *err)
{
    static const struct st_meta torch[] = { { "format", "pt" } };
    CLEANUP(st_writer_close) struct st_writer writer = { .out = FILE_OUT_NONE };
    CLEANUP(arena_release) struct arena arena = { 0 };
    if (o->dtype != DTYPE_F32 && o->dtype != DTYPE_F16 && o->dtype != DTYPE_BF16)
        return cairn_fail(err, CAIRN_EUSAGE, "%s: weights can be saved as f32, f16 or bf16, not as %s", path,
                          dtype_name(o->dtype));
    const struct st_contents contents = {
        .tensors = header_of(t, o, &arena),
        .n = t->n + o->n_scalars,
        .meta = o->meta ? o->meta : torch,
        .n_meta = o->meta ? o->n_meta : ARRAY_LEN(torch),
        .order = o->order,
        .hashes = o->hashes,
    };
    if (st_writer_open(&writer, path, &contents, true, err) || write_scalars(o, t->n, &writer, err))
        return -1;
    struct writing writing = {
        .dtype = o->dtype, .writer = &writer, .weights = o->weights, .getter = o->getter
    };
    for (size_t i = 0, n; i < t->n; i += n) {
        n = param_tensors_of(t, i);
        if (write_param(t, i, n, writing, err))
            return -1;
    }
    return st_writer_commit(&writer, err);
}

int param_file_write(const struct param_tensors *t, const struct weights *w,
                     const struct param_getter *getter, enum dtype dtype, const char *path,
                     struct cairn_error *err)
{
    struct param_file_options o = { .weights = w, .getter = getter, .dtype = dtype, .order = ST_ORDER_GIVEN };
    return param_file_write_with(t, &o, path, err);
}

/* ---- what a file has ---- */

static bool can_read(enum dtype t)
{
    return dtype_is_float(t);
}

static void shape_text(struct str *out, const uint64_t *shape, int rank)
{
    str_add(out, "[");
    for (int i = 0; i < rank; i++)
        str_addf(out, "%s%" PRIu64, i ? ", " : "", shape[i]);
    str_add(out, "]");
}

static int check_tensor(const struct tensor_source *s, const struct param_tensor *t,
                        const struct st_tensor *found, struct cairn_error *err)
{
    uint64_t shape[PARAM_DIMS];
    int rank = param_layout_shape(t, shape);
    if (!can_read(found->dtype))
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s is %s; weights must be f32, f16, bf16, f64 or fp8",
                          source_path_of(s, found), t->name, found->dtype_text);
    if (found->rank == rank && !memcmp(found->shape, shape, (size_t)rank * sizeof(*shape)))
        return 0;
    CLEANUP(str_release) struct str want = { 0 }, have = { 0 };
    shape_text(&want, shape, rank);
    shape_text(&have, found->shape, found->rank);
    return cairn_fail(err, CAIRN_EFORMAT, "%s: %s is %s, but the model's is %s", source_path_of(s, found),
                      t->name, have.s, want.s);
}

static bool is_unused(const struct param_file_rules *rules, const char *name)
{
    for (const char *const *glob = rules->unused; glob && *glob; glob++)
        if (!fnmatch(*glob, name, 0))
            return true;
    return false;
}

/* What names in a message are compared with: the lines of the other list, or else all of the model. */
struct nearest {
    const char *under; /* the prefix of names, which does not count */
    const char *lines;
    const struct param_tensors *all; /* may be NULL */
};

static const char *after_prefix(const struct nearest *n, const char *name)
{
    return str_starts(name, n->under) ? name + strlen(n->under) : name;
}

static void say_nearest(struct str *out, const char *name, const struct nearest *n)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct suggestion best = { .word = after_prefix(n, name) };
    for (const char *l = n->lines; l && *l; l = str_next_line(l))
        suggest_try(&best, after_prefix(n, arena_strndup(&a, l, strcspn(l, "\n"))));
    size_t more = n->all && !best.best ? n->all->n : 0;
    for (size_t i = 0; i < more; i++)
        suggest_try(&best, after_prefix(n, n->all->list[i].name));
    if (best.best)
        str_addf(out, " (nearest: %s)", best.best);
}

/* The first few of a list of lines, and how many there are besides. */
static void say_names(struct str *out, const char *what, const char *lines, const struct nearest *near)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    size_t n = 0;
    for (const char *l = lines; l && *l; l = str_next_line(l))
        n++;
    if (!n)
        return;
    str_addf(out, "%s%zu %s: ", out->len ? "; " : "", n, what);
    size_t said = 0;
    for (const char *l = lines; l && *l && said < NAMES_SAID; l = str_next_line(l), said++) {
        const char *name = arena_strndup(&a, l, strcspn(l, "\n"));
        str_addf(out, "%s%s", said ? ", " : "", name);
        if (said < NEAREST_SAID)
            say_nearest(out, name, near);
    }
    if (n > said)
        str_addf(out, " and %zu more", n - said);
}

static int check_names(const struct param_tensors *t, const struct tensor_source *s, const char *under,
                       const struct param_report *r, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct nearest of_file = { under, r->unexpected.s, NULL }, of_model = { under, r->missing.s, t };
    say_names(&text, "missing", r->missing.s, &of_file);
    say_names(&text, "not of this model", r->unexpected.s, &of_model);
    return text.len ? cairn_fail(err, CAIRN_EFORMAT, "%s: tensors: %s", s->path, text.s) : 0;
}

int param_file_match(const struct param_tensors *t, const struct tensor_source *s,
                     const struct param_file_rules *rules, const struct st_tensor **found,
                     struct param_report *r, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    bool *used = ARENA_NEW(&arena, bool, s->n_tensors + 1);
    for (size_t i = 0; i < t->n; i++) {
        found[i] = source_find(s, t->list[i].name);
        if (found[i])
            used[found[i] - s->tensors] = true;
        else
            str_addf(&r->missing, "%s\n", t->list[i].name);
    }
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name = s->tensors[i].name;
        if (used[i] || !str_starts(name, rules->under))
            continue;
        if (is_unused(rules, name))
            r->skipped++;
        else if (!param_scale_is_bookkeeping(s, name))
            str_addf(&r->unexpected, "%s\n", name);
    }
    if (check_names(t, s, rules->under, r, err))
        return -1;
    for (size_t i = 0; i < t->n; i++)
        if (check_tensor(s, &t->list[i], found[i], err))
            return -1;
    return 0;
}

int param_file_read(const struct param_tensors *t, const struct weights *w, const struct tensor_source *s,
                    const struct param_file_rules *rules, struct param_report *report,
                    struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    const struct st_tensor **found = ARENA_NEW(&arena, const struct st_tensor *, t->n + 1);
    if (param_file_match(t, s, rules, found, report, err) || param_load(t, w, s, found, report, err))
        return -1;
    return source_unchanged(s, err);
}
