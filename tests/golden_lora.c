/* SPDX-License-Identifier: Apache-2.0
 * One LoRA in the files of several programs.  A file of weights alone is what it adds to some of them; every
 * LoRA file of the folder must add it, as it is and rewritten in each dialect. */
#include "base/str.h"
#include "golden.h"
#include "tensor/lora.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A delta: matrices of blocks, and nothing else. */
static bool is_delta(const struct st_file *f)
{
    bool is = f->n_tensors;
    for (size_t i = 0; i < f->n_tensors && is; i++) {
        char module[LORA_NAME_MAX];
        bool bias;
        is = f->tensors[i].rank == 2 && str_starts(f->tensors[i].name, "blocks.") &&
             lora_base_name(f->tensors[i].name, module, &bias) && !bias;
    }
    return is;
}

static bool is_lora(const struct st_file *f)
{
    struct lora_name name;
    struct cairn_error ignored;
    return f->n_tensors && !lora_name_parse(f->tensors[0].name, &name, &ignored);
}

static float *read_part(struct golden *c, const struct lora_file *l, const struct st_tensor *t)
{
    float *v = ARENA_NEW(&c->arena, float, t->elements);
    return source_read_as(&l->source, t, 0, t->elements, DTYPE_F32, v, &c->err) ? NULL : v;
}

static int compare_module(struct golden *c, const struct lora_file *l, const struct lora_module *m,
                          const char *name)
{
    size_t n;
    float *want = golden_floats(c, c->file, name, &n);
    float *down = read_part(c, l, m->part[LORA_DOWN]), *up = read_part(c, l, m->part[LORA_UP]);
    if (!want || !down || !up)
        return -1;
    if (n != m->in * m->out)
        return cairn_fail(&c->err, CAIRN_EFORMAT, "%s: %s has another shape", l->source.path, m->name);
    float *got = ARENA_NEW(&c->arena, float, n);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t k = 0; k < m->rank; k++)
            sum += (double)up[i / m->in * m->rank + k] * (double)down[k * m->in + i % m->in];
        got[i] = (float)(m->scale * sum);
    }
    golden_compare(c, arena_printf(&c->arena, "%s of %s", name, l->source.path), got, want, n, 1e-6, 0);
    return 0;
}

static int compare_file(struct golden *c, const char *path)
{
    CLEANUP(lora_close) struct lora_file l = { 0 };
    size_t found = 0;
    if (lora_open(&l, path, &c->err))
        return -1;
    for (size_t i = 0; i < l.n_modules; i++) {
        char *name = arena_printf(&c->arena, "%s.weight", l.modules[i].name);
        if (!st_find(c->file, name))
            continue;
        found++;
        if (compare_module(c, &l, &l.modules[i], name))
            return -1;
    }
    return found == c->file->n_tensors ? 0
                                       : cairn_fail(&c->err, CAIRN_EFORMAT, "%s: has %zu of %zu modules",
                                                    path, found, c->file->n_tensors);
}

static int compare_rewritten(struct golden *c, const char *path)
{
    char out[] = "/tmp/cairn-golden-XXXXXX";
    int fd = mkstemp(out), r = fd < 0 ? cairn_fail_errno(&c->err, "make %s", out) : close(fd);
    for (int to = LORA_MUSUBI; to < LORA_DIALECT_COUNT && !r; to++) {
        struct lora_report report;
        struct lora_rewrite o = { .to = (enum lora_dialect)to, .dtype = DTYPE_OTHER, .replace = true };
        r = lora_convert(path, out, &o, &report, &c->err) || compare_file(c, out) ? -1 : 0;
    }
    unlink(out);
    return r;
}

static int run_lora(struct golden *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n_others; i++) {
        const struct st_file *f = c->others[i].file;
        if (!f || !is_lora(f))
            continue;
        c->others[i].used = true;
        n++;
        if (compare_file(c, f->shards[0].path) || compare_rewritten(c, f->shards[0].path))
            return -1;
    }
    return n ? 0 : cairn_fail(&c->err, CAIRN_EFORMAT, "there is no LoRA in its folder");
}

const struct golden_kind golden_lora = { "lora", is_delta, run_lora };
