/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/convert.h"

#include "base/progress.h"
#include "base/block_pool.h"
#include "base/thread.h"
#include "tensor/convert_plan.h"
#include "tensor/repair.h"
#include <pthread.h>
#include <stdlib.h>

/* Elements per piece: input and output stay in the L2 cache together.  Without the page cache there is no
 * read-ahead, which larger pieces make up for; and where elements are scattered, each piece reads a little
 * from everywhere. */
enum { PIECE = 128 * 1024, DIRECT_PIECE = 1024 * 1024, SCATTERED_PIECE = 2048 * 1024 };
/* With --direct, a piece is dropped from the page cache after this many later ones: by then it is on disk. */
enum { DROP_AFTER = 16 };

struct piece {
    size_t step;
    uint64_t first, n; /* elements; bytes for a copy */
};

/* Memory of one piece. */
struct buffers {
    char *in, *out;
    float *wide, *scales;
};

struct job {
    const struct tensor_source *src;
    const struct convert_options *o;
    struct convert_plan plan;
    struct repair_options repair;
    struct piece *pieces;
    size_t n_pieces;
    uint64_t longest; /* elements of the longest piece */
    float *absmax;    /* by step: of a tensor that gets one scale */
    struct st_writer writer;
    struct block_pool blocks;
    pthread_mutex_t lock; /* over absmax and counts */
    struct repair_counts counts;
};

static struct buffers buffers_in(void *block, size_t n)
{
    char *at = block;
    return (struct buffers){ at, at + n * 8, (float *)(at + n * 16), (float *)(at + n * 20) };
}

static void add_counts(struct job *j, const struct repair_counts *counts)
{
    pthread_mutex_lock(&j->lock);
    j->counts.overflowed += counts->overflowed;
    j->counts.underflowed += counts->underflowed;
    j->counts.clamped += counts->clamped;
    j->counts.nans_replaced += counts->nans_replaced;
    pthread_mutex_unlock(&j->lock);
}

static void job_release(struct job *j)
{
    block_pool_close(&j->blocks);
    free(j->pieces);
    free(j->absmax);
    st_writer_close(&j->writer);
    convert_plan_release(&j->plan);
}

/* What one piece works with. */
struct work {
    struct job *j;
    const struct convert_step *step;
    size_t index; /* of the step */
    uint64_t first, n;
    struct buffers mem;
    struct dtype_how how;
    struct repair_counts counts;
};

/* Bytes of one element as pieces count them. */
static uint64_t unit_of(const struct convert_step *s, enum dtype t)
{
    return s->action == CONVERT_COPY ? 1 : dtype_size(t);
}

/* Offset of a piece in the new file. */
static uint64_t place_of(const struct job *j, const struct piece *p, uint64_t *bytes)
{
    const struct convert_step *s = &j->plan.steps[p->step];
    uint64_t unit = unit_of(s, s->out.dtype);
    *bytes = p->n * unit;
    return j->writer.data_at + j->writer.at[p->step] + p->first * unit;
}

/* Start write-back early, so that most of the file is on disk before the last flush. */
static void settle(struct job *j, size_t piece)
{
    uint64_t bytes, at = place_of(j, &j->pieces[piece], &bytes);
    file_out_start_flush(&j->writer.out, at, bytes);
    if (j->o->direct && piece >= DROP_AFTER) {
        at = place_of(j, &j->pieces[piece - DROP_AFTER], &bytes);
        file_out_drop(&j->writer.out, at, bytes);
    }
}

static int put(struct work *w, const void *bytes, struct cairn_error *err)
{
    uint64_t unit = unit_of(w->step, w->step->out.dtype);
    return st_writer_put(&w->j->writer, w->index, w->first * unit, bytes, w->n * unit, err);
}

static int do_copy(struct work *w, struct cairn_error *err)
{
    if (source_read_bytes(w->j->src, w->step->from, w->first, w->n, w->mem.in, err))
        return -1;
    return put(w, w->mem.in, err);
}

static int do_cast(struct work *w, struct cairn_error *err)
{
    enum dtype from = w->step->from->dtype, to = w->step->out.dtype;
    if (source_read(w->j->src, w->step->from, w->first, w->n, w->mem.in, err))
        return -1;
    dtype_convert(w->mem.out, to, w->mem.in, from, w->n, &w->how);
    if (repair_is_needed(to, from, &w->j->repair))
        repair_values(w->mem.out, to, w->mem.in, from, w->n, &w->j->repair, &w->counts);
    return put(w, w->mem.out, err);
}

/* Calls fn for each run of elements that share a scale: `at` and `n` within the piece. */
static void each_run(struct work *w, void (*fn)(struct work *w, uint64_t scale, uint64_t at, uint64_t n))
{
    uint64_t block = w->step->block, first_scale = w->first / block;
    for (uint64_t at = 0; at < w->n;) {
        uint64_t in_block = (w->first + at) % block;
        uint64_t n = w->n - at < block - in_block ? w->n - at : block - in_block;
        fn(w, (w->first + at) / block - first_scale, at, n);
        at += n;
    }
}

static uint64_t scales_of(const struct work *w)
{
    return (w->first + w->n - 1) / w->step->block - w->first / w->step->block + 1;
}

static void unscale_run(struct work *w, uint64_t scale, uint64_t at, uint64_t n)
{
    enum dtype to = w->step->out.dtype;
    struct dtype_how how = w->how;
    how.first += at;
    fp8_dequantise(w->mem.out + at * dtype_size(to), to, w->mem.in + at, w->step->from->dtype, n,
                   w->mem.scales[scale], &how);
}

static int do_unscale(struct work *w, struct cairn_error *err)
{
    const struct tensor_source *src = w->j->src;
    enum dtype from = w->step->from->dtype, to = w->step->out.dtype;
    if (source_read_as(src, w->step->scale, w->first / w->step->block, scales_of(w), DTYPE_F32, w->mem.scales,
                       err) ||
        source_read(src, w->step->from, w->first, w->n, w->mem.in, err))
        return -1;
    each_run(w, unscale_run);
    repair_values(w->mem.out, to, w->mem.in, from, w->n, &w->j->repair, &w->counts);
    return put(w, w->mem.out, err);
}

static int read_wide(struct work *w, struct cairn_error *err)
{
    if (source_read(w->j->src, w->step->from, w->first, w->n, w->mem.in, err))
        return -1;
    dtype_convert(w->mem.wide, DTYPE_F32, w->mem.in, w->step->from->dtype, w->n, &(struct dtype_how){ 0 });
    if (fp8_absmax(w->mem.wide, w->n) <= dtype_max(DTYPE_F32))
        return 0;
    cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s has NaN or Inf, which scaled fp8 cannot represent",
               source_path_of(w->j->src, w->step->from), w->step->from->name);
    return cairn_hint(err, "repair it first: cairn tensor convert IN OUT --clamp --nan 0");
}

static void scale_run(struct work *w, uint64_t scale, uint64_t at, uint64_t n)
{
    enum dtype to = w->step->out.dtype;
    float *wide = w->mem.wide + at;
    bool whole = w->step->block == w->step->from->elements;
    float absmax = whole ? w->j->absmax[w->index] : fp8_absmax(wide, n);
    struct dtype_how how = w->how;
    how.first += at;
    w->mem.scales[scale] = fp8_scale_for(absmax, to);
    fp8_quantise(w->mem.out + at, to, wide, n, w->mem.scales[scale], &how);
}

static int put_scales(struct work *w, struct cairn_error *err)
{
    enum dtype to = w->j->plan.steps[w->step->scale_step].out.dtype;
    uint64_t n = scales_of(w), first = w->first / w->step->block;
    dtype_convert(w->mem.in, to, w->mem.scales, DTYPE_F32, n, &(struct dtype_how){ 0 });
    return st_writer_put(&w->j->writer, w->step->scale_step, first * dtype_size(to), w->mem.in,
                         n * dtype_size(to), err);
}

static int do_scale(struct work *w, struct cairn_error *err)
{
    if (read_wide(w, err))
        return -1;
    each_run(w, scale_run);
    return put_scales(w, err) || put(w, w->mem.out, err) ? -1 : 0;
}

static int (*const actions[])(struct work *w, struct cairn_error *err) = {
    [CONVERT_COPY] = do_copy,
    [CONVERT_CAST] = do_cast,
    [CONVERT_UNSCALE] = do_unscale,
    [CONVERT_SCALE] = do_scale,
};

static int run_piece(struct job *j, size_t index, int (*action)(struct work *w, struct cairn_error *err),
                     struct cairn_error *err)
{
    const struct piece *p = &j->pieces[index];
    const struct convert_step *step = &j->plan.steps[p->step];
    if (j->o->stop && *j->o->stop)
        return cairn_fail(err, CAIRN_EIO, "interrupted");
    void *block = block_pool_get(&j->blocks, err);
    if (!block)
        return -1;
    struct work w = { .j = j, .step = step, .index = p->step, .first = p->first, .n = p->n };
    w.mem = buffers_in(block, j->longest);
    w.how = (struct dtype_how){ .round = j->o->stochastic ? DTYPE_STOCHASTIC : DTYPE_NEAREST,
                                .seed = j->o->seed,
                                .first = step->counter + p->first };
    int r = action ? action(&w, err) : actions[step->action](&w, err);
    block_pool_put(&j->blocks, block);
    add_counts(j, &w.counts);
    return r;
}

static int convert_piece(void *context, size_t index, struct cairn_error *err)
{
    struct job *j = context;
    uint64_t bytes;
    if (run_piece(j, index, NULL, err))
        return -1;
    settle(j, index);
    place_of(j, &j->pieces[index], &bytes);
    progress_add(j->o->progress, bytes);
    return 0;
}

static int measure(struct work *w, struct cairn_error *err)
{
    if (read_wide(w, err))
        return -1;
    float most = fp8_absmax(w->mem.wide, w->n);
    pthread_mutex_lock(&w->j->lock);
    if (most > w->j->absmax[w->index])
        w->j->absmax[w->index] = most;
    pthread_mutex_unlock(&w->j->lock);
    return 0;
}

/* The first of two passes: one scale per tensor needs its largest value before anything is written. */
static int measure_piece(void *context, size_t index, struct cairn_error *err)
{
    struct job *j = context;
    const struct convert_step *step = &j->plan.steps[j->pieces[index].step];
    bool whole = step->action == CONVERT_SCALE && step->block == step->from->elements;
    return whole ? run_piece(j, index, measure, err) : 0;
}

static uint64_t usual_piece(const struct tensor_source *src)
{
    return src->scattered ? SCATTERED_PIECE : src->direct ? DIRECT_PIECE : PIECE;
}

/* Whole blocks if scales are computed, so that each is computed once. */
static uint64_t piece_length(const struct job *j, const struct convert_step *s)
{
    uint64_t piece = usual_piece(j->src);
    if (s->action == CONVERT_COPY)
        return piece * 8;
    if (s->action == CONVERT_SCALE && s->block < s->from->elements)
        return s->block < piece ? piece / s->block * s->block : s->block;
    return piece;
}

static uint64_t step_length(const struct convert_step *s)
{
    return s->action == CONVERT_NOTHING ? 0 : s->action == CONVERT_COPY ? s->from->bytes : s->from->elements;
}

static int make_pieces(struct job *j, struct cairn_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < j->plan.n; i++)
        n += step_length(&j->plan.steps[i]) / piece_length(j, &j->plan.steps[i]) + 1;
    j->pieces = calloc(n + 1, sizeof(*j->pieces));
    j->absmax = calloc(j->plan.n + 1, sizeof(*j->absmax));
    if (!j->pieces || !j->absmax)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu pieces", n);
    j->longest = usual_piece(j->src);
    for (size_t i = 0; i < j->plan.n; i++) {
        uint64_t length = step_length(&j->plan.steps[i]), most = piece_length(j, &j->plan.steps[i]);
        for (uint64_t at = 0; at < length; at += most)
            j->pieces[j->n_pieces++] = (struct piece){ i, at, length - at < most ? length - at : most };
        if (j->plan.steps[i].action != CONVERT_COPY && most > j->longest)
            j->longest = most;
    }
    block_pool_init(&j->blocks, j->longest * 24);
    return 0;
}

static int open_writer(struct job *j, const char *path, struct cairn_error *err)
{
    CLEANUP(mem_free) struct st_tensor *out = calloc(j->plan.n + 1, sizeof(*out));
    if (!out)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu tensors", j->plan.n);
    for (size_t i = 0; i < j->plan.n; i++)
        out[i] = j->plan.steps[i].out;
    const struct st_contents contents = { .tensors = out,
                                          .n = j->plan.n,
                                          .meta = j->plan.meta,
                                          .n_meta = j->plan.n_meta,
                                          .order = ST_ORDER_ALIGNED };
    return st_writer_open(&j->writer, path, &contents, j->o->replace, err);
}

static void fill_report(const struct job *j, struct convert_report *r)
{
    r->overflowed = j->counts.overflowed;
    r->underflowed = j->counts.underflowed;
    r->clamped = j->counts.clamped;
    r->nans_replaced = j->counts.nans_replaced;
    r->bytes_out = j->writer.size;
    for (size_t i = 0; i < j->plan.n; i++) {
        const struct convert_step *s = &j->plan.steps[i];
        r->reordered |= i && j->writer.at[i] < j->writer.at[i - 1];
        r->bytes_in += s->from ? s->from->bytes : 0;
        r->values += s->action != CONVERT_COPY && s->from ? s->from->elements : 0;
    }
}

static uint64_t data_bytes(const struct convert_plan *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->n; i++)
        sum += p->steps[i].out.bytes;
    return sum;
}

static int run_job(struct job *j, const char *path, struct convert_report *report, struct cairn_error *err)
{
    bool two_readings = j->o->scaled != FP8_PLAIN && report->scaled;
    if (make_pieces(j, err) ||
        (two_readings && parallel_for(j->n_pieces, j->o->threads, measure_piece, j, err)) ||
        open_writer(j, path, err))
        return -1;
    if (j->o->progress)
        j->o->progress->total = data_bytes(&j->plan);
    if (parallel_for(j->n_pieces, j->o->threads, convert_piece, j, err) || source_unchanged(j->src, err))
        return -1;
    if (j->o->direct)
        file_out_drop(&j->writer.out, 0, j->writer.size);
    fill_report(j, report);
    return st_writer_commit(&j->writer, err);
}

int convert_file(const struct tensor_source *src, const char *path, const struct convert_options *o,
                 struct convert_report *report, struct cairn_error *err)
{
    CLEANUP(job_release) struct job j = { .src = src, .o = o, .lock = PTHREAD_MUTEX_INITIALIZER };
    struct convert_report r = { 0 };
    j.writer.out = (struct file_out)FILE_OUT_NONE;
    j.repair = (struct repair_options){ o->clamp, o->replace_nan, o->nan, o->limit };
    if (convert_plan_make(&j.plan, src, o, &r, err) || run_job(&j, path, &r, err))
        return -1;
    *report = r;
    return 0;
}
