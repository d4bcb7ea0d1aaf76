/* SPDX-License-Identifier: Apache-2.0
 * Scanning the tensors of a file on all cores. */
#include "tensor/scan.h"

#include "base/progress.h"
#include "base/scratch.h"
#include "base/thread.h"
#include <stdlib.h>

/* A piece is one thread's work; it is read a buffer at a time, small enough to be scanned while it is in L2.  Both
 * are whole chunks of every dtype. */
enum { PIECE_BYTES = 8 << 20, BUFFER_BYTES = 256 << 10, DIRECT_BUFFER_BYTES = 4 << 20 };

struct piece {
    const struct st_tensor *tensor;
    uint64_t first, n;
    struct scan_stats stats;
};

struct job {
    const struct tensor_source *src;
    struct piece *pieces;
    struct progress *progress;
    size_t buffer_bytes;
    struct scratch scratch;
};

static uint64_t pieces_of(const struct st_tensor *t)
{
    return dtype_size(t->dtype) ? t->bytes / PIECE_BYTES + (t->bytes % PIECE_BYTES != 0) : 0;
}

static int scan_into(struct job *j, struct piece *p, void *buffer, struct cairn_error *err)
{
    size_t size = dtype_size(p->tensor->dtype);
    uint64_t most = j->buffer_bytes / size;
    for (uint64_t done = 0; done < p->n;) {
        uint64_t n = p->n - done < most ? p->n - done : most;
        if (source_read(j->src, p->tensor, p->first + done, n, buffer, err))
            return -1;
        scan_add(&p->stats, p->tensor->dtype, buffer, n);
        progress_add(j->progress, n * size);
        done += n;
    }
    return 0;
}

static int scan_piece(void *context, size_t i, struct cairn_error *err)
{
    struct job *j = context;
    void *buffer = scratch_take(&j->scratch, err);
    int r = buffer ? scan_into(j, &j->pieces[i], buffer, err) : -1;
    if (buffer)
        scratch_give(&j->scratch, buffer);
    return r;
}

static void cut(const struct tensor_source *src, struct piece *pieces)
{
    for (size_t i = 0; i < src->n_tensors; i++) {
        const struct st_tensor *t = &src->tensors[i];
        uint64_t n = pieces_of(t), most = n ? PIECE_BYTES / dtype_size(t->dtype) : 0;
        for (uint64_t k = 0; k < n; k++, pieces++) {
            uint64_t first = k * most;
            *pieces =
                (struct piece){ t, first, t->elements - first < most ? t->elements - first : most, { 0 } };
            scan_init(&pieces->stats);
        }
    }
}

int scan_source(const struct tensor_source *src, int threads, struct scan_stats *out,
                struct progress *progress, struct cairn_error *err)
{
    uint64_t n = 0;
    for (size_t i = 0; i < src->n_tensors; i++)
        n += pieces_of(&src->tensors[i]);
    CLEANUP(mem_free) struct piece *pieces = calloc(n + 1, sizeof(*pieces));
    if (!pieces)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to scan it", src->path);
    cut(src, pieces);
    struct job job = { .src = src, .pieces = pieces, .progress = progress };
    job.buffer_bytes = src->direct ? DIRECT_BUFFER_BYTES : BUFFER_BYTES;
    if (src->direct && threads <= 0)
        threads = 2 * parallel_threads(); /* half of them wait for the disk */
    scratch_init(&job.scratch, job.buffer_bytes);
    int r = parallel_for(n, threads, scan_piece, &job, err);
    scratch_release(&job.scratch);
    if (r || source_unchanged(src, err))
        return -1;
    for (size_t i = 0; i < src->n_tensors; i++)
        scan_init(&out[i]);
    for (uint64_t i = 0; i < n; i++)
        scan_merge(&out[pieces[i].tensor - src->tensors], &pieces[i].stats);
    return 0;
}
