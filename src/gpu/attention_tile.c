/* SPDX-License-Identifier: Apache-2.0
 * Compiled once for each K_STORAGE and K_VARIANT. */
#include "gpu/attention_cpu.h"

#include "gpu/cpu_tile.h"
#include "base/int.h"
#include <string.h>

enum { BLOCK = ATTENTION_CPU_BLOCK, COLUMNS = PANEL_COLUMNS, SIZE = ATTENTION_SIZE };

/* Head number `head` of all samples' together. */
static const k_store *find_head(const void *p, struct attention_stride by, size_t head, k_i64 heads)
{
    return K_CONST(p) + (k_i64)head / heads * by.sample + (k_i64)head % heads * by.head;
}

static void pack(void *context, size_t piece)
{
    const struct attention_job *j = context;
    k_i64 heads = j->keys_stream ? j->a->kv_heads : j->a->heads;
    size_t tokens = (size_t)(j->keys_stream ? j->a->keys : j->a->queries), size = (size_t)j->a->size;
    size_t blocks = div_up(tokens, BLOCK), head = piece / blocks, first = piece % blocks * BLOCK;
    size_t n = at_most(tokens - first, BLOCK), sharing = (size_t)(heads / j->a->kv_heads);
    size_t which = (j->first + head / j->n_shares) * sharing + j->share + head % j->n_shares;
    for (size_t m = 0; m < j->n_streamed; m++) {
        const struct attention_streamed *s = &j->streamed[m];
        const k_store *from = find_head(s->at, s->by, which, heads) + (k_i64)first * s->by.token;
        float *to = j->packed + (head * j->n_streamed + m) * j->pitch;
        size_t stride = (size_t)s->by.token;
        if (s->turned)
            for (size_t d = 0; d < size; d += PANEL_ROWS)
                pack_wide(from + d, stride, n, at_most(size - d, PANEL_ROWS), PANEL_ROWS,
                          to + d * tokens + first * PANEL_ROWS);
        else
            for (size_t t = 0; t < n; t += PANEL_ROWS)
                pack_deep(from + t * stride, stride, size, at_most(n - t, PANEL_ROWS), PANEL_ROWS,
                          to + (first + t) * size);
    }
}

/* A panel of columns: tokens first … of a head. */
struct own {
    size_t head, first, n;
};

static struct own find_own(const struct attention_job *j, size_t piece)
{
    size_t tokens = (size_t)(j->keys_stream ? j->a->queries : j->a->keys), panels = div_up(tokens, COLUMNS);
    size_t each = j->keys_stream ? (size_t)(j->a->heads / j->a->kv_heads) : 1,
           first = piece % panels * COLUMNS;
    return (struct own){ j->first * each + piece / panels, first, at_most(tokens - first, COLUMNS) };
}

/* times: of every number. */
static void pack_own(const struct own *own, const void *p, struct attention_stride by, k_i64 heads,
                     k_i64 size, float times, float *panel)
{
    const k_store *from = find_head(p, by, own->head, heads) + (k_i64)own->first * by.token;
    pack_deep(from, (size_t)by.token, (size_t)size, own->n, COLUMNS, panel);
    for (size_t i = 0; i < (size_t)size * COLUMNS; i++)
        panel[i] *= times;
}

/* The panel's tokens from [number][column], times what each column has. */
static void save_own(const struct own *own, void *p, struct attention_stride by, k_i64 heads, k_i64 size,
                     const float *results, const float *times)
{
    k_store *to = (k_store *)find_head(p, by, own->head, heads) + (k_i64)own->first * by.token;
    float turned[COLUMNS * SIZE];
    for (size_t d = 0; d < (size_t)size; d += 4)
        for (size_t c = 0; c < COLUMNS; c += 4)
            turn(results + d * COLUMNS + c, COLUMNS, turned + c * SIZE + d, SIZE);
    for (size_t c = 0; c < own->n; c++)
        for (size_t d = 0; d < (size_t)size; d++)
            to[(k_i64)c * by.token + (k_i64)d] = k_narrow(turned[c * SIZE + d] * times[c]);
}

/* scores[token][column] of a block of n streamed tokens whose panels begin at `streamed`. */
static void score(float *scores, const float *streamed, const float *own, size_t columns, size_t n,
                  size_t size)
{
    for (size_t t = 0; t < n; t += PANEL_ROWS)
        multiply(columns, size, streamed + t * size, own, scores + t * COLUMNS, COLUMNS, false);
}

/* results[number][column] += the block's turned panels, one every `pitch` numbers, times
 * weights[token][column]. */
static void gather(float *results, const float *streamed, size_t pitch, const float *weights, size_t columns,
                   size_t n, size_t size)
{
    for (size_t d = 0; d < size; d += PANEL_ROWS)
        multiply(columns, n, streamed + d * pitch, weights, results + d * COLUMNS, COLUMNS, true);
}

/* Rows are keys: column c sees those up to row c - behind. */
static void hide_keys(float *scores, size_t n, k_i64 behind)
{
    for (k_i64 t = behind < 0 ? -behind : 0; t < (k_i64)n; t++)
        for (k_i64 c = 0; c < COLUMNS && c < t + behind; c++)
            scores[t * COLUMNS + c] = -K_INFINITY;
}

/* Columns are keys: row t sees those up to column t + ahead. */
static void hide_columns(float *scores, size_t n, k_i64 ahead)
{
    for (k_i64 t = 0; t < (k_i64)n && t + ahead < COLUMNS - 1; t++)
        for (k_i64 c = t + ahead < -1 ? 0 : t + ahead + 1; c < COLUMNS; c++)
            scores[t * COLUMNS + c] = -K_INFINITY;
}

/* Adds to scores[key][query], keys from `key` on, what their distance has. */
static void add_bias(float *scores, const float *bias, k_i64 span, k_i64 key, k_i64 query, size_t n)
{
    for (k_i64 t = 0; t < (k_i64)n; t++)
        for (k_i64 c = 0; c < COLUMNS; c++) {
            k_i64 d = key + t - query - c;
            scores[t * COLUMNS + c] += bias[span + (d < -span ? -span : d > span ? span : d)];
        }
}

/* Keys that some query of the panel sees. */
static size_t keys_seen(const struct attention_backward_args *a, const struct own *own)
{
    k_i64 end = (k_i64)(own->first + own->n) + a->causal_shift;
    return !a->causal || end >= a->keys ? (size_t)a->keys : end > 0 ? (size_t)end : 0;
}

/* What softmax has of each column so far. */
struct softmax {
    float most[COLUMNS], sum[COLUMNS], shrink[COLUMNS];
};

/* Scores become weights by the largest one so far; `shrink` is what this makes of earlier results. */
static void weigh(struct softmax *x, float *scores, size_t n)
{
    float base[COLUMNS], sum[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++)
        base[c] = x->most[c];
    for (size_t t = 0; t < n; t++)
        for (size_t c = 0; c < COLUMNS; c++)
            base[c] = scores[t * COLUMNS + c] > base[c] ? scores[t * COLUMNS + c] : base[c];
    for (size_t c = 0; c < COLUMNS; c++) {
        float old = x->most[c];
        x->most[c] = base[c];
        base[c] = base[c] == -K_INFINITY ? 0.0f : base[c];
        x->shrink[c] = k_exp_below(old - base[c]);
        sum[c] = x->sum[c] * x->shrink[c];
    }
    for (size_t t = 0; t < n; t++)
        for (size_t c = 0; c < COLUMNS; c++) {
            float e = k_exp_below(scores[t * COLUMNS + c] - base[c]);
            scores[t * COLUMNS + c] = e;
            sum[c] += e;
        }
    for (size_t c = 0; c < COLUMNS; c++)
        x->sum[c] = sum[c];
}

static void forward(void *context, size_t piece)
{
    const struct attention_job *j = context;
    const struct attention_backward_args *a = j->a;
    struct own own = find_own(j, piece);
    size_t size = (size_t)a->size, keys = (size_t)a->keys, end = keys_seen(a, &own);
    size_t sharing = (size_t)(a->heads / a->kv_heads);
    const float *packed = j->packed + (own.head / sharing - j->first) * 2 * j->pitch;
    const float *bias = j->forward->bias;
    if (bias)
        bias += (k_i64)own.head % a->heads * (2 * j->forward->bias_span + 1);
    float q[SIZE * COLUMNS], scores[BLOCK * COLUMNS], o[SIZE * COLUMNS] = { 0 };
    struct softmax x = { .sum = { 0 } };
    for (size_t c = 0; c < COLUMNS; c++)
        x.most[c] = -K_INFINITY;
    pack_own(&own, a->q, a->q_by, a->heads, a->size, a->scale, q);
    for (size_t key = 0; key < end; key += BLOCK) {
        size_t n = at_most(end - key, BLOCK);
        score(scores, packed + key * size, q, own.n, n, size);
        if (bias)
            add_bias(scores, bias, j->forward->bias_span, (k_i64)key, (k_i64)own.first, n);
        if (a->causal)
            hide_keys(scores, n, (k_i64)key - (k_i64)own.first - a->causal_shift);
        weigh(&x, scores, n);
        for (size_t d = 0; d < size && key; d++)
            for (size_t c = 0; c < COLUMNS; c++)
                o[d * COLUMNS + c] *= x.shrink[c];
        gather(o, packed + j->pitch + key * PANEL_ROWS, keys, scores, own.n, n, size);
    }
    for (size_t c = 0; c < COLUMNS; c++)
        x.shrink[c] = x.sum[c] == 0.0f ? 0.0f : 1.0f / x.sum[c];
    save_own(&own, j->forward->o, j->forward->o_by, a->heads, a->size, o, x.shrink);
    for (size_t c = 0; c < own.n; c++)
        j->forward->lse[own.head * (size_t)a->queries + own.first + c] = x.most[c] + k_log(x.sum[c]);
}

/* A row that sees nothing has a lse of minus infinity; its weights are 0. */
static float usable(float lse)
{
    return lse == -K_INFINITY ? K_INFINITY : lse;
}

static void dq(void *context, size_t piece)
{
    const struct attention_job *j = context;
    const struct attention_backward_args *a = j->a;
    struct own own = find_own(j, piece);
    size_t size = (size_t)a->size, keys = (size_t)a->keys, end = keys_seen(a, &own);
    size_t rows = own.head * (size_t)a->queries + own.first, sharing = (size_t)(a->heads / a->kv_heads);
    const float *packed = j->packed + (own.head / sharing - j->first) * 3 * j->pitch;
    float q[SIZE * COLUMNS], d_o[SIZE * COLUMNS], scores[BLOCK * COLUMNS], slopes[BLOCK * COLUMNS];
    float results[SIZE * COLUMNS] = { 0 }, lse[COLUMNS], delta[COLUMNS], times[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) {
        lse[c] = c < own.n ? usable(a->lse[rows + c]) : K_INFINITY;
        delta[c] = c < own.n ? a->delta[rows + c] : 0.0f;
        times[c] = a->scale;
    }
    pack_own(&own, a->q, a->q_by, a->heads, a->size, a->scale, q);
    pack_own(&own, a->d_o, a->d_o_by, a->heads, a->size, 1.0f, d_o);
    for (size_t key = 0; key < end; key += BLOCK) {
        size_t n = at_most(end - key, BLOCK);
        score(scores, packed + key * size, q, own.n, n, size);
        score(slopes, packed + j->pitch + key * size, d_o, own.n, n, size);
        if (a->causal)
            hide_keys(scores, n, (k_i64)key - (k_i64)own.first - a->causal_shift);
        for (size_t t = 0; t < n; t++)
            for (size_t c = 0; c < COLUMNS; c++) {
                size_t i = t * COLUMNS + c;
                slopes[i] = k_exp_below(scores[i] - lse[c]) * (slopes[i] - delta[c]);
            }
        gather(results, packed + 2 * j->pitch + key * PANEL_ROWS, keys, slopes, own.n, n, size);
    }
    save_own(&own, a->dq, a->dq_by, a->heads, a->size, results, times);
}

/* Weights in place of scores, and slopes of them. */
static void weigh_rows(const struct attention_backward_args *a, size_t row, size_t n, float *scores,
                       float *slopes)
{
    for (size_t t = 0; t < n; t++) {
        float lse = usable(a->lse[row + t]), delta = a->delta[row + t];
        for (size_t c = 0; c < COLUMNS; c++) {
            size_t i = t * COLUMNS + c;
            scores[i] = k_exp_below(scores[i] - lse);
            slopes[i] = scores[i] * (slopes[i] - delta);
        }
    }
}

static void dkv(void *context, size_t piece)
{
    const struct attention_job *j = context;
    const struct attention_backward_args *a = j->a;
    struct own own = find_own(j, piece);
    size_t size = (size_t)a->size, queries = (size_t)a->queries, sharing = (size_t)(a->heads / a->kv_heads);
    k_i64 unseen =
        a->causal ? (k_i64)own.first - a->causal_shift : 0; /* queries before the first that sees a key */
    size_t begin = unseen > 0 ? (size_t)unseen / PANEL_ROWS * PANEL_ROWS : 0;
    float k[SIZE * COLUMNS], v[SIZE * COLUMNS], scores[BLOCK * COLUMNS], slopes[BLOCK * COLUMNS];
    float dk[SIZE * COLUMNS] = { 0 }, dv[SIZE * COLUMNS] = { 0 }, times[COLUMNS], once[COLUMNS];
    for (size_t c = 0; c < COLUMNS; c++) {
        times[c] = a->scale;
        once[c] = 1.0f;
    }
    pack_own(&own, a->k, a->k_by, a->kv_heads, a->size, a->scale, k);
    pack_own(&own, a->v, a->v_by, a->kv_heads, a->size, 1.0f, v);
    float *sums = j->sums ? j->sums + piece * (2 * SIZE * COLUMNS) : NULL;
    if (j->share) {
        memcpy(dk, sums, sizeof(dk));
        memcpy(dv, sums + SIZE * COLUMNS, sizeof(dv));
    }
    for (size_t h = 0; h < j->n_shares; h++) {
        const float *packed = j->packed + ((own.head - j->first) * j->n_shares + h) * 4 * j->pitch;
        for (size_t query = begin; query < queries; query += BLOCK) {
            size_t n = at_most(queries - query, BLOCK);
            score(scores, packed + query * size, k, own.n, n, size);
            score(slopes, packed + j->pitch + query * size, v, own.n, n, size);
            if (a->causal)
                hide_columns(scores, n, (k_i64)query + a->causal_shift - (k_i64)own.first);
            weigh_rows(a, (own.head * sharing + j->share + h) * queries + query, n, scores, slopes);
            gather(dk, packed + 2 * j->pitch + query * PANEL_ROWS, queries, slopes, own.n, n, size);
            gather(dv, packed + 3 * j->pitch + query * PANEL_ROWS, queries, scores, own.n, n, size);
        }
    }
    if (j->share + j->n_shares < sharing) {
        memcpy(sums, dk, sizeof(dk));
        memcpy(sums + SIZE * COLUMNS, dv, sizeof(dv));
        return;
    }
    save_own(&own, a->dk, a->dk_by, a->kv_heads, a->size, dk, times);
    save_own(&own, a->dv, a->dv_by, a->kv_heads, a->size, dv, once);
}

extern const struct attention_cpu K_NAME(attention_cpu);
const struct attention_cpu K_NAME(attention_cpu) = { PANEL_ROWS, COLUMNS, pack, forward, dq, dkv };
