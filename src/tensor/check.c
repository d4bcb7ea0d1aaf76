/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/check.h"

#include "base/progress.h"
#include "base/str.h"
#include "base/thread.h"
#include <stdlib.h>

/* Larger files are scanned one after the other with all threads, smaller ones side by side. */
enum { LARGE_BYTES = 64 << 20 };

struct work {
    const struct check_options *o;
    struct checked_files *out;
};

static void keep_tensors(struct checked_file *c, const struct tensor_source *s)
{
    c->tensors = ARENA_NEW(&c->arena, struct st_tensor, s->n_tensors + 1);
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct st_tensor *t = &s->tensors[i];
        uint64_t *shape = ARENA_NEW(&c->arena, uint64_t, t->rank + 1);
        for (int k = 0; k < t->rank; k++)
            shape[k] = t->shape[k];
        c->tensors[i] = *t;
        c->tensors[i].name = arena_strdup(&c->arena, t->name);
        c->tensors[i].dtype_text = arena_strdup(&c->arena, t->dtype_text);
        c->tensors[i].shape = shape;
    }
}

static int scan(struct work *j, struct checked_file *c, const struct tensor_source *s, int threads,
                struct cairn_error *err)
{
    CLEANUP(mem_free) struct scan_stats *stats = calloc(s->n_tensors + 1, sizeof(*stats));
    if (!stats)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to check the file", s->path);
    if (scan_source(s, threads, stats, j->o->progress, err))
        return -1;
    c->verdicts = ARENA_NEW(&c->arena, struct tensor_verdict, s->n_tensors + 1);
    verdict_judge(s, stats, &c->arena, c->verdicts, &c->verdict);
    if (!c->verdict.damaged && !j->o->details)
        return 0;
    keep_tensors(c, s);
    c->stats = ARENA_NEW(&c->arena, struct scan_stats, s->n_tensors + 1);
    for (size_t i = 0; i < s->n_tensors; i++)
        c->stats[i] = stats[i];
    return 0;
}

/* The shards of an index that lies in a folder are files of the folder too: of the index only the header
 * counts. */
static bool is_index(const struct found_file *f)
{
    return !f->named && str_ends(f->path, ".index.json");
}

static int check_source(struct work *j, struct checked_file *c, const struct found_file *f, int threads,
                        struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    if (f->error)
        return cairn_fail(err, CAIRN_EIO, "%s", f->error);
    if (source_open(&s, f->path, err))
        return -1;
    if (j->o->direct && !source_set_direct(&s))
        __atomic_fetch_add(&j->out->not_direct, 1, __ATOMIC_RELAXED);
    c->format = s.format;
    c->n_tensors = is_index(f) ? 0 : s.n_tensors;
    for (size_t i = 0; i < c->n_tensors; i++)
        c->data_bytes += s.tensors[i].bytes;
    return is_index(f) ? 0 : scan(j, c, &s, threads, err);
}

static void check_file(struct work *j, size_t i, int threads)
{
    const struct found_file *f = &j->out->found.file[i];
    struct checked_file *c = &j->out->file[i];
    struct cairn_error err = { 0 };
    c->path = f->path;
    c->named = f->named;
    if (check_source(j, c, f, threads, &err)) {
        c->n_tensors = 0;
        verdict_unread(f->path, &err, &c->arena, &c->verdict);
    }
    /* A healthy file that will not be shown needs no memory: there may be a hundred thousand. */
    if (c->verdict.verdict == TENSOR_OK && !c->tensors)
        arena_release(&c->arena);
}

static int check_small(void *context, size_t i, struct cairn_error *err)
{
    struct work *j = context;
    (void)err;
    if (j->out->found.file[i].bytes < LARGE_BYTES)
        check_file(j, i, 1);
    return 0;
}

/* A file with unchecked values is not called healthy. */
static void count(struct checked_files *out)
{
    for (size_t i = 0; i < out->n; i++) {
        const struct file_verdict *v = &out->file[i].verdict;
        out->damaged += v->damaged;
        out->skipped += !v->damaged && v->n_skipped;
    }
    out->healthy = out->n - out->damaged - out->skipped;
}

int check_files(char *const *paths, size_t n, const struct check_options *o, struct checked_files *out,
                struct cairn_error *err)
{
    struct work j = { o, out };
    struct cairn_error ignored;
    for (size_t i = 0; i < n; i++)
        find_tensor_files(paths[i], &out->arena, &out->found);
    const struct found_files *found = &out->found;
    if (!found->n)
        return cairn_fail(err, CAIRN_EFORMAT, "no tensor files (.safetensors, .pt, .pth) below %s", paths[0]);
    out->file = calloc(found->n, sizeof(*out->file));
    if (!out->file)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to check %zu files", found->n);
    out->n = found->n;
    for (size_t i = 0; o->progress && i < found->n; i++)
        o->progress->total += found->file[i].bytes;
    parallel_for(found->n, o->threads, check_small, &j, &ignored);
    for (size_t i = 0; i < found->n; i++)
        if (found->file[i].bytes >= LARGE_BYTES)
            check_file(&j, i, o->threads);
    count(out);
    return 0;
}

void check_release(struct checked_files *c)
{
    for (size_t i = 0; i < c->n; i++)
        arena_release(&c->file[i].arena);
    free(c->file);
    arena_release(&c->arena);
}
