/* SPDX-License-Identifier: Apache-2.0
 * Wan models for tests of their files, and changed copies of tensor files. */
#ifndef CAIRN_TESTS_UNIT_NN_WAN_MODELS_H
#define CAIRN_TESTS_UNIT_NN_WAN_MODELS_H

#include "models.h"
#include "nn/wan_file.h"

enum { CLIP_HEADS = 2 };
static const char official[] = "golden/dit/dit21_i2v_clip.weights.safetensors";
static const char diffusers[] = "golden/dit/dit21_i2v_clip.weights_diffusers.safetensors";
static const char fp8_scaled[] = "golden/dit/dit21_i2v_clip.weights_fp8_scaled.safetensors";

static inline struct wan *open_wan(struct nn *nn, const struct wan_shape *s, const struct wan_options *o)
{
    static const struct wan_options one = { .experts = 1 };
    struct cairn_error err = { 0 };
    struct wan *m = NULL;
    if (wan_new(nn, s, o ? o : &one, &m, &err) || model_alloc(&m->model, NULL, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return m;
}

/* The official names, f32. */
static inline void save_wan(const struct wan *m, const char *path)
{
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    struct cairn_error err = { 0 };
    for (size_t i = 0; i < m->params[0].n; i++) {
        struct param_tensor whole = param_tensor_whole(&m->params[0].list[i]);
        if (i == m->patch.w) {
            whole.rank = 5;
            memcpy(whole.shape, (uint64_t[]){ m->shape.width, m->shape.in, 1, 2, 2 }, 5 * sizeof(uint64_t));
        } else if (str_ends(whole.param->name, "modulation")) {
            whole.rank = 3;
            memcpy(whole.shape, (uint64_t[]){ 1, whole.rows / m->shape.width, m->shape.width },
                   3 * sizeof(uint64_t));
        }
        param_tensors_add(&t, &whole, "%s", whole.param->name);
    }
    if (param_file_write(&t, &m->weights[0], NULL, DTYPE_F32, path, &err))
        CHECK_FAIL_("%s", err.msg);
}

static inline struct wan_shape shape_of(const char *path)
{
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    if (wan_file_read_info(path, 0, &info, &err) && wan_file_read_info(path, CLIP_HEADS, &info, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return info.shape;
}

/* A file in a model of its shape. */
static inline struct wan *load_wan(struct nn *nn, const char *path, const struct wan_options *o)
{
    struct cairn_error err = { 0 };
    struct param_report report;
    struct wan_shape s = shape_of(path);
    struct wan *m = open_wan(nn, &s, o);
    if (wan_file_load(m, 0, path, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    param_report_release(&report);
    return m;
}

/* What a copy of a file has that the file has not. */
struct changes {
    const char *prefix;            /* before every name */
    const char *drop, *drop_end;   /* tensors that are left out: one, and those whose names end so */
    const char *rename, *to;       /* the tensor with another name */
    const char *from_end, *to_end; /* how names end, and end then */
    const char *add;               /* one more tensor: a text, or numbers of one value */
    const char *text;
    float value;
    uint64_t add_n;  /* 0: 1 */
    size_t first, n; /* the tensors; n 0: all */
};

static inline bool name_of(const struct changes *c, const char *name, char *out, size_t size)
{
    const char *end = c->from_end && str_ends(name, c->from_end) ? c->from_end : "";
    if ((c->drop && !strcmp(name, c->drop)) || (c->drop_end && str_ends(name, c->drop_end)))
        return false;
    if (c->rename && !strcmp(name, c->rename))
        snprintf(out, size, "%s%s", c->prefix ? c->prefix : "", c->to);
    else
        snprintf(out, size, "%s%.*s%s", c->prefix ? c->prefix : "", (int)(strlen(name) - strlen(end)), name,
                 *end ? c->to_end : "");
    return true;
}

/* The tensor that is added, and its bytes. */
static inline struct st_tensor added(const struct changes *c, struct arena *a, char **bytes)
{
    uint64_t *n = ARENA_NEW(a, uint64_t, 1);
    *n = c->text ? strlen(c->text) : c->add_n ? c->add_n : 1;
    struct st_tensor t = { .name = c->add, .shape = n, .rank = 1, .elements = *n };
    t.dtype_text = c->text ? "U8" : "F32";
    t.bytes = *n * (c->text ? 1 : sizeof(float));
    *bytes = arena_alloc(a, t.bytes + 1);
    for (size_t i = 0; !c->text && i < *n; i++)
        ((float *)*bytes)[i] = c->value;
    if (c->text)
        memcpy(*bytes, c->text, t.bytes);
    return t;
}

static inline void copy_changed(const char *from, const char *path, const struct changes *c)
{
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct st_file f;
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    REQUIRE(!st_open(&f, from, &err));
    struct st_tensor *list = ARENA_NEW(&a, struct st_tensor, f.n_tensors + 1);
    char **bytes = ARENA_NEW(&a, char *, f.n_tensors + 1);
    size_t n = 0, end = c->n ? c->first + c->n : f.n_tensors;
    for (size_t i = c->first; i < end && i < f.n_tensors; i++) {
        char name[256];
        if (!name_of(c, f.tensors[i].name, name, sizeof(name)))
            continue;
        bytes[n] = arena_alloc(&a, f.tensors[i].bytes + 1);
        CHECK(!st_read(&f, &f.tensors[i], 0, f.tensors[i].elements, bytes[n], &err));
        list[n] = f.tensors[i];
        list[n++].name = arena_strdup(&a, name);
    }
    if (c->add) {
        list[n] = added(c, &a, &bytes[n]);
        n++;
    }
    const struct st_contents contents = { .tensors = list, .n = n, .order = ST_ORDER_GIVEN };
    REQUIRE(!st_writer_open(&w, path, &contents, true, &err));
    for (size_t i = 0; i < n; i++)
        CHECK(!st_writer_put(&w, i, 0, bytes[i], list[i].bytes, &err));
    CHECK(!st_writer_commit(&w, &err));
    st_close(&f);
}

#endif
