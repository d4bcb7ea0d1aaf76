/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/merge_tensor.h"

#include "base/int.h"
#include "base/progress.h"
#include "base/thread.h"
#include "tensor/fp8_scaled.h"
#include "tensor/lowrank.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a piece: as f32 and as they are in the file they stay in the second-level cache. */
enum { PIECE = 128 * 1024 };

struct work;
struct buffers;
typedef int piece_action(struct work *w, const struct buffers *b, uint64_t first, size_t n,
                         struct cairn_error *err);

struct work {
    struct merge_run *run;
    const struct merge_job *job;
    uint64_t unit; /* pieces are whole multiples of it: a row where rows count, else one element */
    uint64_t length, per_piece;
    piece_action *action;
    float *down, *up; /* of the module; down is packed */
    float *scales;    /* fp8: one for each `block` elements, as they are in the base; then as they will be */
    float *old_scales;
    uint32_t *most; /* bits of the largest magnitude under each scale; atomic */
    size_t n_scales;
    uint64_t block;
    uint64_t cols;               /* of the tensor, where it has a module */
    uint64_t nan_made, inf_made; /* atomic */
};

static void work_release(struct work *w)
{
    free(w->down);
    free(w->up);
    free(w->scales);
    free(w->old_scales);
    free(w->most);
}

static int no_memory(const struct work *w, struct cairn_error *err)
{
    return cairn_fail(err, CAIRN_ENOMEM, "no memory to merge %s", w->job->from->name);
}

static int load_wide(const struct work *w, const struct tensor_source *s, const struct st_tensor *t,
                     float **out, struct cairn_error *err)
{
    size_t bytes;
    if (__builtin_mul_overflow(t->elements, sizeof(float), &bytes) || !(*out = malloc(bytes)))
        return no_memory(w, err);
    return source_read_as(s, t, 0, t->elements, DTYPE_F32, *out, err);
}

static int load_scales(struct work *w, struct cairn_error *err)
{
    const struct st_tensor *scale = w->job->scale;
    if (fp8_block_of(w->job->from, scale, &w->block, err) ||
        load_wide(w, w->run->base, scale, &w->old_scales, err))
        return -1;
    w->n_scales = scale->elements;
    w->scales = malloc(w->n_scales * sizeof(float));
    w->most = calloc(w->n_scales, sizeof(*w->most));
    if (!w->scales || !w->most)
        return no_memory(w, err);
    memcpy(w->scales, w->old_scales, w->n_scales * sizeof(float));
    return 0;
}

static void transpose(float *to, const float *from, size_t rows, size_t cols)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            to[c * rows + r] = from[r * cols + c];
}

/* (up * down)^T is down^T * up^T: the two change places. */
static int turn_module(struct work *w, float **down, const struct lora_module *m, struct cairn_error *err)
{
    CLEANUP(mem_free) float *left = malloc((size_t)(m->in * m->rank) * sizeof(float));
    CLEANUP(mem_free) float *right = malloc((size_t)(m->out * m->rank) * sizeof(float));
    if (!left || !right)
        return no_memory(w, err);
    transpose(left, *down, (size_t)m->rank, (size_t)m->in);
    transpose(right, w->up, (size_t)m->out, (size_t)m->rank);
    free(*down);
    free(w->up);
    *down = TAKE(right);
    w->up = TAKE(left);
    return 0;
}

static int load_module(struct work *w, const struct lora_module *m, struct cairn_error *err)
{
    CLEANUP(mem_free) float *down = NULL;
    if (load_wide(w, w->run->lora, m->part[LORA_DOWN], &down, err) ||
        load_wide(w, w->run->lora, m->part[LORA_UP], &w->up, err))
        return -1;
    if (w->job->transposed && turn_module(w, &down, m, err))
        return -1;
    w->down = malloc(lowrank_packed(w->cols, m->rank) * sizeof(float));
    if (!w->down)
        return no_memory(w, err);
    lowrank_pack(w->down, down, w->cols, m->rank);
    return 0;
}

static uint64_t cols_of(const struct merge_job *j)
{
    return j->transposed ? j->module->out : j->module->in;
}

static int work_init(struct work *w, struct cairn_error *err)
{
    const struct lora_module *m = w->job->module;
    w->cols = m ? cols_of(w->job) : 0;
    if (w->job->scale && load_scales(w, err))
        return -1;
    if (m && load_module(w, m, err))
        return -1;
    w->unit = m ? w->cols : w->block && w->block < PIECE ? w->block : 1;
    w->per_piece = w->unit < PIECE ? PIECE / w->unit * w->unit : w->unit;
    return 0;
}

/* v times or divided by the scales that cover it, run by run. */
static void each_scale(const struct work *w, float *v, uint64_t first, size_t n,
                       void (*fn)(const struct work *w, float *v, size_t n, size_t scale))
{
    for (size_t done = 0; done < n;) {
        uint64_t at = first + done, left = w->block - at % w->block;
        size_t m = left < n - done ? (size_t)left : n - done;
        fn(w, v + done, m, (size_t)(at / w->block));
        done += m;
    }
}

static void apply_scale(const struct work *w, float *v, size_t n, size_t scale)
{
    for (size_t i = 0; i < n; i++)
        v[i] *= w->old_scales[scale];
}

static void remove_scale(const struct work *w, float *v, size_t n, size_t scale)
{
    for (size_t i = 0; i < n; i++)
        v[i] /= w->scales[scale];
}

/* Magnitudes order like their bits. */
static void note_most(const struct work *w, float *v, size_t n, size_t scale)
{
    float most = fp8_absmax(v, n);
    uint32_t bits, seen = __atomic_load_n(&w->most[scale], __ATOMIC_RELAXED);
    memcpy(&bits, &most, sizeof(bits));
    while (bits > seen && !__atomic_compare_exchange_n(&w->most[scale], &seen, bits, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

/* Memory of one piece: as f32, as in a file (before or after), and a difference. */
struct buffers {
    float *v, *diff;
    char *raw;
};

static struct buffers buffers_in(void *block, size_t n)
{
    char *at = block;
    return (struct buffers){ block, (float *)(at + n * sizeof(float)), at + 2 * n * sizeof(float) };
}

void merge_run_init(struct merge_run *run, const struct merge_job *jobs, size_t n)
{
    run->longest = PIECE;
    for (size_t i = 0; i < n; i++)
        if (jobs[i].module && cols_of(&jobs[i]) > run->longest)
            run->longest = cols_of(&jobs[i]);
    block_pool_init(&run->blocks, run->longest * (2 * sizeof(float) + sizeof(double)));
}

static int add_diff(const struct work *w, const struct buffers *b, uint64_t first, size_t n,
                    struct cairn_error *err)
{
    float scale = (float)(w->run->options->scale * w->job->diff_scale);
    if (source_read_as(w->run->lora, w->job->diff, first, n, DTYPE_F32, b->diff, err))
        return -1;
    for (size_t i = 0; i < n; i++)
        b->v[i] += scale * b->diff[i];
    return 0;
}

/* The weights of one piece before the change, in f32. */
static int read_piece(const struct work *w, const struct buffers *b, uint64_t first, size_t n,
                      struct cairn_error *err)
{
    const struct st_tensor *from = w->job->from;
    if (w->job->whole)
        return source_read_as(w->run->lora, w->job->whole, first, n, DTYPE_F32, b->v, err);
    if (source_read(w->run->base, from, first, n, b->raw, err))
        return -1;
    dtype_convert(b->v, DTYPE_F32, b->raw, from->dtype, n, &(struct dtype_how){ 0 });
    if (w->scales)
        each_scale(w, b->v, first, n, apply_scale);
    return 0;
}

struct oddities {
    uint64_t nan, inf;
};

/* All ones in the exponent; the mantissa tells NaN from Inf. */
static struct oddities count_odd(const float *v, size_t n)
{
    uint64_t nan = 0, odd = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof(bits));
        bits &= 0x7fffffff;
        odd += bits >= 0x7f800000;
        nan += bits > 0x7f800000;
    }
    return (struct oddities){ nan, odd - nan };
}

/* Finite values that the dtype makes infinite. */
static uint64_t count_beyond(const float *v, size_t n, enum dtype to)
{
    uint64_t beyond = 0;
    double most = dtype_max(to);
    for (size_t i = 0; !fp8_is(to) && i < n; i++)
        beyond += isfinite(v[i]) && fabs((double)v[i]) > most;
    return beyond;
}

/* What the base had already is not the LoRA's doing, so it is read once more; but that is rare.  Nothing
 * leaves NaN again, and an Inf may become NaN. */
static int note_made(struct work *w, const struct buffers *b, uint64_t first, size_t n,
                     struct cairn_error *err)
{
    struct buffers other = { .v = b->diff, .diff = b->v, .raw = b->raw };
    struct oddities before = { 0 }, after = count_odd(b->v, n);
    after.inf += w->run->options->allow_nan ? count_beyond(b->v, n, w->job->dtype) : 0;
    if (!after.nan && !after.inf)
        return 0;
    if (!w->job->whole && read_piece(w, &other, first, n, err))
        return -1;
    if (!w->job->whole)
        before = count_odd(other.v, n);
    __atomic_fetch_add(&w->nan_made, after.nan - before.nan, __ATOMIC_RELAXED);
    __atomic_fetch_add(&w->inf_made, after.inf > before.inf ? after.inf - before.inf : 0, __ATOMIC_RELAXED);
    return 0;
}

/* The new weights of one piece, in f32. */
static int merge_piece(const struct work *w, const struct buffers *b, uint64_t first, size_t n,
                       struct cairn_error *err)
{
    const struct lora_module *m = w->job->module;
    if (read_piece(w, b, first, n, err))
        return -1;
    if (m)
        lowrank_add(b->v, &(struct lowrank){ .rows = (size_t)(n / w->cols),
                                             .cols = (size_t)w->cols,
                                             .rank = (size_t)m->rank,
                                             .up = w->up + first / w->cols * m->rank,
                                             .packed = w->down,
                                             .scale = (float)(w->run->options->scale * m->scale) });
    return w->job->diff ? add_diff(w, b, first, n, err) : 0;
}

static int check_stop(const struct work *w, struct cairn_error *err)
{
    const volatile sig_atomic_t *stop = w->run->options->stop;
    return stop && *stop ? cairn_fail(err, CAIRN_EIO, "stopped") : 0;
}

static int measure_piece(struct work *w, const struct buffers *b, uint64_t first, size_t n,
                         struct cairn_error *err)
{
    if (merge_piece(w, b, first, n, err))
        return -1;
    each_scale(w, b->v, first, n, note_most);
    return 0;
}

static int put(struct work *w, uint64_t at, const void *bytes, size_t n, struct cairn_error *err)
{
    struct st_writer *to = w->run->writer;
    if (st_writer_put(to, w->job->out, at, bytes, n, err))
        return -1;
    file_out_start_flush(&to->out, to->data_at + to->at[w->job->out] + at, n);
    progress_add(w->run->options->progress, n);
    return 0;
}

static int change_piece(struct work *w, const struct buffers *b, uint64_t first, size_t n,
                        struct cairn_error *err)
{
    const struct merge_job *j = w->job;
    size_t size = dtype_size(j->dtype);
    if (merge_piece(w, b, first, n, err))
        return -1;
    bool odd = isinf(fp8_absmax(b->v, n));
    if ((odd || w->run->options->allow_nan) && note_made(w, b, first, n, err))
        return -1;
    if (j->keep_scale)
        each_scale(w, b->v, first, n, remove_scale);
    bool may_overflow = fp8_is(j->dtype) || w->run->options->allow_nan; /* fp8 saturates by custom */
    if (!may_overflow && lora_check_fits(j->from, b->v, n, j->dtype, err))
        return -1;
    dtype_convert(b->raw, j->dtype, b->v, DTYPE_F32, n, &(struct dtype_how){ .saturate = fp8_is(j->dtype) });
    return put(w, first * size, b->raw, n * size, err);
}

/* `first` and n count bytes. */
static int copy_piece(struct work *w, const struct buffers *b, uint64_t first, size_t n,
                      struct cairn_error *err)
{
    if (source_read_bytes(w->run->base, w->job->from, first, n, b->raw, err))
        return -1;
    return put(w, first, b->raw, n, err);
}

static int run_piece(void *context, size_t piece, struct cairn_error *err)
{
    struct work *w = context;
    uint64_t first = piece * w->per_piece, left = w->length - first;
    if (check_stop(w, err))
        return -1;
    void *block = block_pool_get(&w->run->blocks, err);
    if (!block)
        return -1;
    size_t n = (size_t)(left < w->per_piece ? left : w->per_piece);
    struct buffers b = buffers_in(block, w->run->longest);
    int r = w->action(w, &b, first, n, err);
    block_pool_put(&w->run->blocks, block);
    return r;
}

static int run_pieces(struct work *w, piece_action *action, struct cairn_error *err)
{
    w->action = action;
    return parallel_for(div_up(w->length, w->per_piece), w->run->options->threads, run_piece, w, err);
}

/* What still rounds to the largest code: half a step beyond it.  Saturating there costs no more than
 * rounding. */
static float largest_that_fits(enum dtype fp8)
{
    return fp8 == DTYPE_F8_E4M3 ? 464 : 61440;
}

/* As the file will hold it. */
static float stored_scale(float scale, enum dtype kept_as)
{
    char bytes[sizeof(double)];
    float back;
    dtype_convert(bytes, kept_as, &scale, DTYPE_F32, 1, &(struct dtype_how){ 0 });
    dtype_convert(&back, DTYPE_F32, bytes, kept_as, 1, &(struct dtype_how){ 0 });
    return back;
}

/* A scale that still fits is kept: a new one would round again every weight it covers. */
static void grow_scales(struct work *w)
{
    bool grown = false;
    for (size_t i = 0; i < w->n_scales; i++) {
        float most;
        memcpy(&most, &w->most[i], sizeof(most));
        if (isinf(most) || most <= fabsf(w->old_scales[i]) * largest_that_fits(w->job->dtype))
            continue;
        float scale = stored_scale(fp8_scale_for(most, w->job->dtype), w->job->scale->dtype);
        if (!isfinite(scale) || scale == 0)
            continue;
        w->scales[i] = scale;
        grown = true;
    }
    w->run->rescaled += grown;
}

static int write_scales(struct work *w, struct cairn_error *err)
{
    enum dtype kept_as = w->job->scale->dtype;
    size_t bytes = w->n_scales * dtype_size(kept_as);
    CLEANUP(mem_free) char *stored = malloc(bytes);
    if (!stored)
        return no_memory(w, err);
    dtype_convert(stored, kept_as, w->scales, DTYPE_F32, w->n_scales, &(struct dtype_how){ 0 });
    progress_add(w->run->options->progress, bytes);
    return st_writer_put(w->run->writer, w->job->scale_out, 0, stored, bytes, err);
}

/* The part of the LoRA that has a NaN or Inf itself, or NULL. */
static const struct st_tensor *odd_part(const struct work *w, const struct st_tensor *t,
                                        struct cairn_error *err)
{
    CLEANUP(mem_free) float *v = NULL;
    if (!t || load_wide(w, w->run->lora, t, &v, err))
        return NULL;
    struct oddities odd = count_odd(v, (size_t)t->elements);
    return odd.nan || odd.inf ? t : NULL;
}

static const struct st_tensor *find_culprit(const struct work *w, struct cairn_error *err)
{
    const struct lora_module *m = w->job->module;
    const struct st_tensor *parts[] = { m ? m->part[LORA_DOWN] : NULL, m ? m->part[LORA_UP] : NULL,
                                        w->job->diff, w->job->whole };
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (odd_part(w, parts[i], err))
            return parts[i];
    return NULL;
}

/* A model with such a weight is destroyed, and nothing would tell before it is used. */
static int check_made(struct work *w, struct cairn_error *err)
{
    const struct st_tensor *t = w->job->from;
    uint64_t made = w->nan_made + w->inf_made;
    w->run->nan_made += w->nan_made;
    w->run->inf_made += w->inf_made;
    if (!made || w->run->options->allow_nan)
        return 0;
    const struct st_tensor *culprit = find_culprit(w, err);
    if (culprit)
        cairn_fail(err, CAIRN_EFORMAT,
                   "%s: %.150s has NaN or Inf, which would spread to %" PRIu64 " of %" PRIu64
                   " values of %.150s",
                   w->run->lora->path, culprit->name, made, t->elements, t->name);
    else
        cairn_fail(err, CAIRN_EFORMAT, "%.200s: %" PRIu64 " of %" PRIu64 " values would become NaN or Inf",
                   t->name, made, t->elements);
    return cairn_hint(err, "--allow-nan writes the file anyway");
}

static int change_tensor(struct work *w, struct cairn_error *err)
{
    if (work_init(w, err))
        return -1;
    if (w->job->keep_scale) {
        if (run_pieces(w, measure_piece, err))
            return -1;
        grow_scales(w);
        if (write_scales(w, err))
            return -1;
    }
    return run_pieces(w, change_piece, err) || check_made(w, err) ? -1 : 0;
}

int merge_tensor(struct merge_run *run, const struct merge_job *job, struct cairn_error *err)
{
    CLEANUP(work_release) struct work w = { .run = run, .job = job, .length = job->from->elements };
    if (!job->from->bytes)
        return 0;
    if (job->module || job->diff || job->whole || job->dtype != job->from->dtype)
        return change_tensor(&w, err);
    w.length = job->from->bytes;
    w.per_piece = PIECE * sizeof(double);
    return run_pieces(&w, copy_piece, err);
}
