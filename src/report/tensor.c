/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tensor.h"

#include <math.h>

static void add_head(struct json *o, const struct st_tensor *t)
{
    json_add_text(o, "name", t->name);
    json_add_text(o, "dtype", t->dtype_text);
    struct json *shape = json_add_array(o, "shape");
    for (int i = 0; i < t->rank; i++)
        json_add_int(shape, NULL, (int64_t)t->shape[i]);
    json_add_int(o, "elements", (int64_t)t->elements);
    json_add_int(o, "bytes", (int64_t)t->bytes);
}

static void add_real(struct json *o, const char *key, double v)
{
    if (isfinite(v))
        json_add_real(o, key, v);
    else
        json_add_null(o, key);
}

struct tensor_total tensor_total(const struct tensor_source *s, const char *const *only, size_t n_only)
{
    struct tensor_total sum = { 0 };
    for (size_t i = 0; i < s->n_tensors; i++) {
        if (!source_name_matches(s->tensors[i].name, only, n_only))
            continue;
        sum.n++;
        sum.elements += s->tensors[i].elements;
        sum.bytes += s->tensors[i].bytes;
    }
    return sum;
}

static void add_source(struct json *top, const struct tensor_source *s, const char *const *only,
                       size_t n_only)
{
    struct tensor_total sum = tensor_total(s, only, n_only);
    json_add_text(top, "path", s->path);
    json_add_text(top, "format", s->format);
    json_add_int(top, "files", (int64_t)s->n_files);
    json_add_int(top, "tensor_count", (int64_t)sum.n);
    json_add_int(top, "elements", (int64_t)sum.elements);
    json_add_int(top, "data_bytes", (int64_t)sum.bytes);
    struct json *meta = json_add_object(top, "metadata");
    for (size_t i = 0; i < s->n_meta; i++)
        json_add_text(meta, s->meta[i].key, s->meta[i].value);
    struct json *list = json_add_array(top, "tensors");
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct st_tensor *t = &s->tensors[i];
        int fd;
        uint64_t at;
        if (!source_name_matches(t->name, only, n_only))
            continue;
        struct json *o = json_add_object(list, NULL);
        add_head(o, t);
        json_add_text(o, "file", source_path_of(s, t));
        if (source_place(s, t, &fd, &at))
            json_add_int(o, "offset_bytes", (int64_t)at);
        else
            json_add_null(o, "offset_bytes");
    }
}

struct json *report_tensor_list(const struct tensor_source *s, size_t n, bool several,
                                const char *const *only, size_t n_only)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    if (!several) {
        add_source(top, s, only, n_only);
        return top;
    }
    struct json *list = json_add_array(top, "sources");
    for (size_t i = 0; i < n; i++)
        add_source(json_add_object(list, NULL), &s[i], only, n_only);
    return top;
}

static void add_tensor(struct json *list, const struct st_tensor *t, const struct scan_stats *s,
                       const struct tensor_verdict *v)
{
    struct json *o = json_add_object(list, NULL);
    bool known = scan_has_range(s);
    add_head(o, t);
    json_add_text(o, "verdict", tensor_health_name(v->verdict));
    json_add_bool(o, "damaged", v->damaged);
    json_add_text(o, "why", v->why);
    if (v->verdict == TENSOR_SKIPPED)
        return;
    const struct {
        const char *key;
        double value;
    } reals[] = { { "min", s->min },
                  { "max", s->max },
                  { "mean", scan_mean(s) },
                  { "absmax", scan_absmax(s) },
                  { "std", scan_std(s) } };
    for (size_t i = 0; i < ARRAY_LEN(reals); i++) {
        if (known)
            add_real(o, reals[i].key, reals[i].value);
        else
            json_add_null(o, reals[i].key);
    }
    json_add_int(o, "zero", (int64_t)s->zero);
    json_add_int(o, "nan", (int64_t)s->nan);
    json_add_int(o, "inf", (int64_t)s->inf);
    json_add_int(o, "subnormal", (int64_t)s->subnormal);
}

static void add_file(struct json *list, const struct checked_file *f)
{
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "path", f->path);
    json_add_text(o, "format", f->format);
    json_add_text(o, "verdict", tensor_health_name(f->verdict.verdict));
    json_add_bool(o, "damaged", f->verdict.damaged);
    json_add_text(o, "tensor", f->verdict.name);
    json_add_text(o, "why", f->verdict.why);
    json_add_text(o, "todo", f->verdict.todo);
    json_add_int(o, "damaged_tensors", (int64_t)f->verdict.n_damaged);
    json_add_int(o, "skipped_tensors", (int64_t)f->verdict.n_skipped);
    json_add_int(o, "data_bytes", (int64_t)f->data_bytes);
    struct json *tensors = json_add_array(o, "tensors");
    for (size_t i = 0; f->tensors && i < f->n_tensors; i++)
        add_tensor(tensors, &f->tensors[i], &f->stats[i], &f->verdicts[i]);
}

struct json *report_tensor_check(const struct checked_files *c)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_int(top, "checked", (int64_t)c->n);
    json_add_int(top, "damaged", (int64_t)c->damaged);
    json_add_int(top, "skipped", (int64_t)c->skipped);
    json_add_int(top, "healthy", (int64_t)c->healthy);
    struct json *list = json_add_array(top, "files");
    for (size_t i = 0; i < c->n; i++)
        add_file(list, &c->file[i]);
    return top;
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
        compare_index(t, p->index, at);
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
                        const struct compare_options *o)
{
    for (size_t i = 0; i < from->n_tensors; i++)
        if (compare_covers(o, from->tensors[i].name) && !source_find(in, from->tensors[i].name))
            json_add_text(list, NULL, from->tensors[i].name);
}

struct json *report_tensor_diff(const struct comparison *k)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "a", k->a.path);
    json_add_text(top, "b", k->b.path);
    json_add_bool(top, "same", compare_is_same(k));
    json_add_real(top, "rtol", k->o->values.rtol);
    json_add_real(top, "atol", k->o->values.atol);
    json_add_int(top, "same_tensors", (int64_t)k->same);
    add_missing(json_add_array(top, "only_in_a"), &k->b, &k->a, k->o);
    add_missing(json_add_array(top, "only_in_b"), &k->a, &k->b, k->o);
    struct json *list = json_add_array(top, "differ");
    for (size_t i = 0; i < k->n_pairs; i++)
        if (compare_differs(k->o, &k->pairs[i]))
            add_pair(list, &k->pairs[i]);
    if (k->o->metadata)
        json_add_int(top, "metadata_differ", (int64_t)k->meta);
    return top;
}

struct json *report_tensor_convert(const char *in, const char *out, const struct convert_report *r)
{
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {
        { "converted", r->converted },
        { "copied", r->copied },
        { "dropped", r->dropped },
        { "scaled", r->scaled },
        { "unscaled", r->unscaled },
        { "scales_ignored", r->scales_ignored },
        { "values", r->values },
        { "overflowed", r->overflowed },
        { "underflowed", r->underflowed },
        { "clamped", r->clamped },
        { "nans_replaced", r->nans_replaced },
        { "read_bytes", r->bytes_in },
        { "written_bytes", r->bytes_out },
    };
    struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_text(v, "in", in);
    json_add_text(v, "out", out);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        json_add_int(v, rows[i].key, (int64_t)rows[i].value);
    json_add_bool(v, "reordered", r->reordered);
    return v;
}

struct json *report_tensor_extract(const char *in, const char *out, const struct convert_report *r)
{
    struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_text(v, "in", in);
    json_add_text(v, "out", out);
    json_add_int(v, "tensors", (int64_t)r->copied);
    json_add_int(v, "dropped", (int64_t)r->dropped);
    json_add_int(v, "written_bytes", (int64_t)r->bytes_out);
    return v;
}
