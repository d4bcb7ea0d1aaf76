/* SPDX-License-Identifier: Apache-2.0
 * The umT5 encoder: the features of prompts from every file of weights that goes with the case, with all layers on the
 * device and with layers from the file, and the table of buckets. */
#include "golden.h"
#include "nn/umt5.h"
#include <stdio.h>
#include <string.h>

struct prompt {
    const char *name; /* of its rows */
    const float *want;
};

struct umt5_case {
    struct golden *c;
    struct umt5_prompt *prompts;
    struct prompt *about;
    size_t n, dim, written;
};

static bool is_umt5(const struct st_file *f)
{
    return st_find(f, "bucket.index") && st_find(f, "bucket.rel_pos");
}

static int64_t *longs(struct golden *c, const char *name, size_t *n)
{
    size_t bytes;
    int64_t *all = (int64_t *)golden_bytes(c, c->file, name, &bytes);
    *n = all ? bytes / sizeof(*all) : 0;
    return all;
}

static int check_buckets(struct golden *c)
{
    size_t n, m;
    int64_t *at = longs(c, "bucket.rel_pos", &n), *want = longs(c, "bucket.index", &m);
    if (!at || !want || n != m)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (umt5_bucket((long)at[i]) != (size_t)want[i])
            return cairn_fail(&c->err, CAIRN_EFORMAT, "distance %ld is in bucket %zu, expected %ld",
                              (long)at[i], umt5_bucket((long)at[i]), (long)want[i]);
    return 0;
}

/* The prompts of "NAME.ids". */
static int add_prompts(struct umt5_case *t, const char *tensor)
{
    struct golden *c = t->c;
    const char *name = arena_strndup(&c->arena, tensor, strlen(tensor) - strlen(".ids"));
    size_t n_ids, n_lens;
    int64_t *ids = longs(c, tensor, &n_ids),
            *lens = longs(c, arena_printf(&c->arena, "%s.lens", name), &n_lens);
    if (!ids || !lens || !n_lens)
        return -1;
    for (size_t i = 0; i < n_lens; i++) {
        size_t most = t->n, n = (size_t)lens[i];
        uint32_t *own = ARENA_NEW(&c->arena, uint32_t, n);
        for (size_t k = 0; k < n; k++)
            own[k] = (uint32_t)ids[i * (n_ids / n_lens) + k];
        char *rows = arena_printf(&c->arena, "%s.context.%zu", name, i);
        float *want = golden_floats(c, c->file, rows, NULL);
        if (!want)
            return -1;
        *ARENA_PUSH(&c->arena, t->prompts, most) = (struct umt5_prompt){ own, n };
        *ARENA_PUSH(&c->arena, t->about, t->n) = (struct prompt){ rows, want };
    }
    return 0;
}

static int compare(void *ctx, size_t prompt, const float *rows, struct cairn_error *err)
{
    struct umt5_case *t = ctx;
    (void)err;
    golden_compare(t->c, t->about[prompt].name, rows, t->about[prompt].want, t->prompts[prompt].n * t->dim,
                   2e-5, 1);
    t->written++;
    return 0;
}

/* The least that it can do with. */
static uint64_t least_budget(const struct umt5_info *info, const struct nn *nn)
{
    struct umt5_layout l;
    struct cairn_error ignored;
    uint64_t no = 0, yes = UINT64_C(1) << 40;
    while (yes - no > 1) {
        uint64_t middle = no + (yes - no) / 2;
        *(umt5_plan(info, nn, middle, &l, &ignored) ? &no : &yes) = middle;
    }
    return yes;
}

static int try_budget(struct umt5_case *t, struct nn *nn, const char *path, bool least)
{
    struct umt5 *u = NULL;
    struct umt5_info info;
    struct cairn_error *err = &t->c->err;
    struct umt5_sink sink = { compare, t };
    if (umt5_read_info(path, &info, err))
        return -1;
    t->dim = info.dim;
    t->written = 0;
    int r = umt5_open(&u, nn, path, least ? least_budget(&info, nn) : UMT5_NO_LIMIT, err);
    if (!r && (umt5_layout(u)->resident == info.layers) == least)
        r = cairn_fail(err, CAIRN_EFORMAT, "the layers are not where they should be");
    if (!r)
        r = umt5_encode(u, t->prompts, t->n, &sink, NULL, err);
    if (!r && t->written != t->n)
        r = cairn_fail(err, CAIRN_EFORMAT, "%zu of %zu prompts came back", t->written, t->n);
    umt5_close(u);
    return r;
}

static int run(struct golden *c)
{
    struct umt5_case t = { .c = c };
    struct nn nn;
    const char *name = st_meta_find(c->file, "golden");
    size_t files = 0;
    c->share16 = 0.005;
    for (size_t i = 0; i < c->file->n_tensors; i++) {
        const char *tensor = c->file->tensors[i].name;
        if (strstr(tensor, ".ids") && add_prompts(&t, tensor))
            return -1;
    }
    if (check_buckets(c) || nn_open(&nn, c->g, c->storage, &c->err))
        return -1;
    int r = 0;
    for (size_t i = 0; i < c->n_others && !r; i++) {
        struct golden_other *o = &c->others[i];
        const char *other = o->file ? st_meta_find(o->file, "golden") : NULL;
        if (!other || !name || strcmp(other, name))
            continue;
        r = try_budget(&t, &nn, o->path, false) || try_budget(&t, &nn, o->path, true) ? -1 : 0;
        o->used = true;
        files++;
    }
    nn_close(&nn);
    return r || files ? r : cairn_fail(&c->err, CAIRN_EFORMAT, "a file of weights must go with it");
}

const struct golden_kind golden_umt5 = { "umt5", is_umt5, run };
