/* SPDX-License-Identifier: Apache-2.0 */
#include "media/dataset_probe.h"

#include "base/hash.h"
#include "base/int.h"
#include "base/thread.h"
#include "os/info.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct prober {
    const struct dataset_options *o;
    struct dataset_file **file; /* by path; each path once */
    size_t n, next;             /* next is atomic */
    struct arena *arenas;
    pthread_mutex_t lock; /* of what follows */
    size_t done;
};

static int drop_pixels(void *context, size_t frame, const struct picture *p, struct cairn_error *err)
{
    (void)context, (void)frame, (void)p, (void)err;
    return 0;
}

static int look_into(const struct dataset_options *o, struct media *m, const char *path, struct arena *a,
                     struct media_info *out, struct cairn_error *err)
{
    static const size_t first;
    if (o->probe)
        return o->probe(o->probe_context, path, a, out, err);
    if (media_probe(m, path, a, out, err))
        return -1;
    return o->decode && !out->clip ? media_read(m, path, &first, 1, drop_pixels, NULL, err) : 0;
}

static int probe_one(struct prober *p, struct media *m, struct arena *a, struct dataset_file *f,
                     struct cairn_error *fatal)
{
    struct cairn_error err = { 0 };
    struct os_info info;
    if (!os_info(f->path, &info) && info.kind == OS_KIND_FILE)
        f->size = info.size;
    int failed = look_into(p->o, m, f->path, a, &f->media, &err);
    if (failed && err.code == CAIRN_ELACK) {
        *fatal = err;
        return -1;
    }
    if (!failed && (!f->media.width || !f->media.height || !f->media.frames))
        failed = cairn_fail(&err, CAIRN_EFORMAT, "%s: it has no %s", f->path,
                            f->media.frames ? "pixels" : "frames");
    if (failed) {
        f->media = (struct media_info){ 0 };
        f->broken = dataset_why(a, f->path, err.msg);
    }
    pthread_mutex_lock(&p->lock);
    p->done++;
    if (p->o->progress.step)
        p->o->progress.step(p->o->progress.context, p->done, p->n);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

/* One thread, with a cairn-media of its own. */
static int probe_some(void *context, size_t piece, struct cairn_error *err)
{
    static const struct media_options defaults;
    struct prober *p = context;
    struct media *m = NULL;
    int failed = 0;
    if (!p->o->probe && media_open(&m, p->o->media ? p->o->media : &defaults, err))
        return -1;
    for (size_t i; !failed && (i = __atomic_fetch_add(&p->next, 1, __ATOMIC_RELAXED)) < p->n;)
        failed = probe_one(p, m, &p->arenas[piece], p->file[i], err);
    media_close(m);
    return failed;
}

/* ---- files with the same bytes ---- */

static int by_size(const void *a, const void *b)
{
    const struct dataset_file *p = *(struct dataset_file *const *)a, *q = *(struct dataset_file *const *)b;
    if (p->size != q->size)
        return p->size < q->size ? -1 : 1;
    return strcmp(p->path, q->path);
}

static bool hash_file(const struct dataset_file *f, uint64_t out[2])
{
    enum { PIECE = 1 << 20 };
    CLEANUP(fd_close) int fd = -1;
    CLEANUP(mem_free) char *buffer = malloc(PIECE);
    struct cairn_error err;
    struct hash h;
    uint64_t size;
    if (!buffer || file_open(f->path, &fd, &size, &err) || size != f->size)
        return false;
    hash_init(&h);
    for (uint64_t at = 0; at < size; at += PIECE) {
        size_t n = at_most((size_t)(size - at), PIECE);
        if (file_read_at(fd, f->path, buffer, n, at, &err))
            return false;
        hash_add(&h, buffer, n);
    }
    hash_end(&h, out);
    return true;
}

struct same_sizes {
    struct dataset_file **file;
    uint64_t (*hash)[2];
    bool *has_hash;
};

static int hash_piece(void *context, size_t i, struct cairn_error *err)
{
    struct same_sizes *s = context;
    (void)err;
    s->has_hash[i] = hash_file(s->file[i], s->hash[i]);
    return 0;
}

static void find_duplicates(struct dataset_file **sorted, size_t n, int threads, struct arena *a)
{
    struct same_sizes s = { .file = ARENA_NEW(a, struct dataset_file *, n + 1) };
    size_t count = 0;
    qsort(sorted, n, sizeof(*sorted), by_size);
    for (size_t i = 0; i < n; i++)
        if (sorted[i]->size && ((i && sorted[i - 1]->size == sorted[i]->size) ||
                                (i + 1 < n && sorted[i + 1]->size == sorted[i]->size)))
            s.file[count++] = sorted[i];
    s.hash = arena_alloc(a, (count + 1) * sizeof(*s.hash));
    s.has_hash = ARENA_NEW(a, bool, count + 1);
    struct cairn_error err;
    parallel_for(count, threads, hash_piece, &s, &err);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j-- > 0 && s.file[j]->size == s.file[i]->size;)
            if (s.has_hash[i] && s.has_hash[j] && !memcmp(s.hash[i], s.hash[j], sizeof(s.hash[i])))
                s.file[i]->same_as = s.file[j]->path;
}

/* ---- all ---- */

static int by_path(const void *a, const void *b)
{
    return strcmp((*(struct dataset_file *const *)a)->path, (*(struct dataset_file *const *)b)->path);
}

/* A file of several datasets is probed once. */
static void copy_results(struct dataset_file **all, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (by_path(&all[i - 1], &all[i]))
            continue;
        all[i]->media = all[i - 1]->media;
        all[i]->broken = all[i - 1]->broken;
        all[i]->size = all[i - 1]->size;
        all[i]->same_as = all[i - 1]->same_as;
    }
}

int dataset_probe_files(struct dataset_probed *out, const struct dataset_options *o,
                        struct dataset_files *files, size_t n, struct arena *a, struct cairn_error *err)
{
    enum { MOST_CHILDREN = 8 };
    struct dataset_file **all = NULL;
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < files[i].n; k++)
            *ARENA_PUSH(a, all, total) = &files[i].file[k];
    if (!total)
        return 0;
    qsort(all, total, sizeof(*all), by_path);
    struct prober p = { .o = o, .lock = PTHREAD_MUTEX_INITIALIZER };
    p.file = ARENA_NEW(a, struct dataset_file *, total);
    for (size_t i = 0; i < total; i++)
        if (!i || by_path(&all[i - 1], &all[i]))
            p.file[p.n++] = all[i];
    size_t threads = o->threads > 0 ? (size_t)o->threads : at_most((size_t)parallel_threads(), MOST_CHILDREN);
    out->n = at_most(threads, p.n);
    p.arenas = out->arenas = calloc(out->n, sizeof(*out->arenas));
    if (!p.arenas)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for a dataset");
    if (parallel_for(out->n, (int)out->n, probe_some, &p, err))
        return -1;
    find_duplicates(p.file, p.n, (int)threads, a);
    copy_results(all, total);
    return 0;
}

void dataset_probed_release(struct dataset_probed *p)
{
    for (size_t i = 0; i < p->n && p->arenas; i++)
        arena_release(&p->arenas[i]);
    free(p->arenas);
    *p = (struct dataset_probed){ 0 };
}
