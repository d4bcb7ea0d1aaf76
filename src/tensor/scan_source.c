/* SPDX-License-Identifier: Apache-2.0
 * Scanning the tensors of a file on all cores, and the sums that it has of its bytes. */
#include "tensor/scan.h"

#include "base/progress.h"
#include "base/block_pool.h"
#include "base/thread.h"
#include "tensor/crc32.h"
#include <stdlib.h>

/* A piece is one thread's work; it is read a buffer at a time, small enough to be scanned while it is in L2.
 * Both are whole chunks of every dtype. */
enum { PIECE_BYTES = 8 << 20, BUFFER_BYTES = 256 << 10, DIRECT_BUFFER_BYTES = 4 << 20 };
/* Scattered elements are gathered a whole piece at once. */
enum { SCATTERED_BYTES = PIECE_BYTES };

struct piece {
    const struct st_tensor *tensor; /* NULL: bytes that are only summed */
    struct scan_kind kind;
    const struct st_sum *sum; /* or NULL: not summed */
    uint64_t first, n;        /* bytes, of the tensor or of the sum's part */
    struct scan_stats stats;
    uint32_t crc;
};

struct job {
    const struct tensor_source *src;
    struct arena arena;
    struct st_sum *sums;
    size_t n_sums;
    struct piece *pieces;
    size_t n_pieces;
    struct progress *progress;
    size_t buffer_bytes;
    struct block_pool blocks;
};

static void job_release(struct job *j)
{
    arena_release(&j->arena);
    free(j->pieces);
}

static int scan_into(struct job *j, struct piece *p, char *buffer, size_t size, struct cairn_error *err)
{
    for (uint64_t done = 0; done < p->n;) {
        size_t n = p->n - done < size ? (size_t)(p->n - done) : size;
        if (progress_is_stopped(j->progress))
            return cairn_fail(err, CAIRN_EIO, "%s: stopped before the end of the file", j->src->path);
        int r = p->tensor ? source_read_bytes(j->src, p->tensor, p->first + done, n, buffer, err)
                          : source_read_sum(j->src, p->sum, p->first + done, n, buffer, err);
        if (r)
            return -1;
        if (p->sum)
            p->crc = crc32_add(p->crc, buffer, n);
        if (p->tensor)
            scan_add_kind(&p->stats, &p->kind, buffer, n);
        progress_add(j->progress, p->tensor ? n : 0);
        done += n;
    }
    return 0;
}

static int scan_piece(void *context, size_t i, struct cairn_error *err)
{
    struct job *j = context;
    char *buffer = block_pool_get(&j->blocks, err);
    int r = buffer ? scan_into(j, &j->pieces[i], buffer, j->buffer_bytes, err) : -1;
    if (buffer)
        block_pool_put(&j->blocks, buffer);
    return r;
}

static uint64_t count_pieces(uint64_t bytes)
{
    return bytes / PIECE_BYTES + (bytes % PIECE_BYTES != 0);
}

static void cut(struct job *j, struct piece whole)
{
    for (uint64_t first = 0; first < whole.n; first += PIECE_BYTES) {
        struct piece *p = &j->pieces[j->n_pieces++];
        *p = whole;
        p->first = first;
        p->n = whole.n - first < PIECE_BYTES ? whole.n - first : PIECE_BYTES;
        scan_init(&p->stats);
    }
}

/* Each tensor that can be scanned, with the sum of its bytes where there is one; then the sums of other
 * bytes. */
static int cut_all(struct job *j, struct cairn_error *err)
{
    const struct tensor_source *src = j->src;
    const struct st_sum **sum_of = ARENA_NEW(&j->arena, const struct st_sum *, src->n_tensors + 1);
    struct scan_kind kind;
    uint64_t n = 0;
    for (size_t i = 0; i < j->n_sums; i++) {
        const struct st_tensor *t = j->sums[i].tensor;
        bool scanned = t && scan_kind_of(t, &kind);
        if (scanned)
            sum_of[t - src->tensors] = &j->sums[i];
        n += scanned ? 0 : count_pieces(j->sums[i].bytes);
    }
    for (size_t i = 0; i < src->n_tensors; i++)
        n += scan_kind_of(&src->tensors[i], &kind) ? count_pieces(src->tensors[i].bytes) : 0;
    j->pieces = calloc(n + 1, sizeof(*j->pieces));
    if (!j->pieces)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory to scan the file", src->path);
    for (size_t i = 0; i < src->n_tensors; i++) {
        const struct st_tensor *t = &src->tensors[i];
        if (scan_kind_of(t, &kind))
            cut(j, (struct piece){ .tensor = t, .kind = kind, .sum = sum_of[i], .n = t->bytes });
    }
    for (size_t i = 0; i < j->n_sums; i++)
        if (!j->sums[i].tensor || !scan_kind_of(j->sums[i].tensor, &kind))
            cut(j, (struct piece){ .sum = &j->sums[i], .n = j->sums[i].bytes });
    return 0;
}

/* A wrong sum is a matter of the tensors that lie in those bytes; where none does, of the file. */
static int judge_sum(const struct job *j, const struct st_sum *sum, struct scan_stats *out,
                     struct cairn_error *err)
{
    bool told = false;
    for (size_t i = 0; i < j->src->n_tensors; i++) {
        bool in = source_lies_in(j->src, &j->src->tensors[i], sum);
        out[i].wrong_sum = in ? sum->name : out[i].wrong_sum;
        told |= in;
    }
    return told ? 0
                : cairn_fail(err, CAIRN_EFORMAT, "%s: the entry %s does not match its CRC-32 %08x",
                             j->src->path, sum->name, sum->crc);
}

static int join(const struct job *j, struct scan_stats *out, struct cairn_error *err)
{
    for (size_t i = 0; i < j->src->n_tensors; i++)
        scan_init(&out[i]);
    for (size_t i = 0; i < j->n_pieces;) {
        const struct piece *p = &j->pieces[i];
        uint32_t crc = 0;
        for (; i < j->n_pieces && j->pieces[i].sum == p->sum && j->pieces[i].tensor == p->tensor; i++) {
            crc = crc32_join(crc, j->pieces[i].crc, j->pieces[i].n);
            if (p->tensor)
                scan_merge(&out[p->tensor - j->src->tensors], &j->pieces[i].stats);
        }
        if (p->sum && crc != p->sum->crc && judge_sum(j, p->sum, out, err))
            return -1;
    }
    return 0;
}

int scan_source(const struct tensor_source *src, int threads, struct scan_stats *out,
                struct progress *progress, struct cairn_error *err)
{
    CLEANUP(job_release) struct job job = { .src = src, .progress = progress };
    if (source_sums(src, &job.arena, &job.sums, &job.n_sums, err) || cut_all(&job, err))
        return -1;
    job.buffer_bytes = src->scattered ? SCATTERED_BYTES : src->direct ? DIRECT_BUFFER_BYTES : BUFFER_BYTES;
    if (src->direct && threads <= 0)
        threads = 2 * parallel_threads(); /* half of them wait for the disk */
    block_pool_init(&job.blocks, job.buffer_bytes);
    int r = parallel_for(job.n_pieces, threads, scan_piece, &job, err);
    block_pool_close(&job.blocks);
    if (r || source_unchanged(src, err))
        return -1;
    return join(&job, out, err);
}
