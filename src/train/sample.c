/* SPDX-License-Identifier: Apache-2.0 */
#include "train/sample.h"

#include "base/splitmix.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sampler {
    struct gpt *m;
    const struct tokenizer *t;
    struct gpt_work *work;
    size_t window; /* tokens that fit */
    int *ids;      /* those in the window */
    size_t n;
    float *scores;
    struct choice {
        float score;
        int id;
    } * choices;
};

struct gpt_work_options sampler_work_options(const struct gpt *m, size_t tokens)
{
    size_t window = tokens < m->shape.context ? tokens : m->shape.context;
    return (struct gpt_work_options){ .samples = 1, .tokens = window < 2 ? m->shape.context : window };
}

int sampler_open(struct gpt *m, const struct tokenizer *t, size_t tokens, struct sampler **out,
                 struct cairn_error *err)
{
    struct sampler *s = calloc(1, sizeof(*s));
    if (!s)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    struct gpt_work_options o = sampler_work_options(m, tokens);
    *s = (struct sampler){ .m = m, .t = t, .window = o.tokens };
    s->ids = malloc(s->window * sizeof(*s->ids));
    s->scores = malloc(m->shape.vocab * sizeof(*s->scores));
    s->choices = malloc(m->shape.vocab * sizeof(*s->choices));
    if (!s->ids || !s->scores || !s->choices || gpt_work_open(m, &o, &s->work, err)) {
        if (!s->ids || !s->scores || !s->choices)
            cairn_fail(err, CAIRN_ENOMEM, "no memory");
        sampler_close(s);
        return -1;
    }
    *out = s;
    return 0;
}

void sampler_close(struct sampler *s)
{
    if (!s)
        return;
    gpt_work_close(s->work);
    free(s->ids);
    free(s->scores);
    free(s->choices);
    free(s);
}

uint64_t sample_seed(uint64_t seed, size_t index)
{
    return seed * 1000003 + index;
}

static int by_score(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return x->id - y->id;
}

/* A model may have more ids than its tokenizer. */
static int draw(struct sampler *s, const struct sample_options *o, uint64_t *state)
{
    size_t n = 0;
    for (size_t i = 0; i < s->m->shape.vocab; i++)
        if (tokenizer_has(s->t, (uint32_t)i))
            s->choices[n++] = (struct choice){ s->scores[i], (int)i };
    size_t kept = o->top_k && o->top_k < n ? o->top_k : n;
    qsort(s->choices, n, sizeof(*s->choices), by_score);
    if (o->temperature <= 0)
        return s->choices[0].id;
    double sum = 0, most = (double)s->choices[0].score;
    for (size_t i = 0; i < kept; i++)
        sum += exp(((double)s->choices[i].score - most) / o->temperature);
    double at = (double)(splitmix_next(state) >> 11) * 0x1p-53 * sum;
    for (size_t i = 0; i < kept; i++) {
        at -= exp(((double)s->choices[i].score - most) / o->temperature);
        if (at < 0)
            return s->choices[i].id;
    }
    return s->choices[kept - 1].id;
}

/* Computes the scores after the window's last token; only the last `fresh` tokens are new. */
static int score_window(struct sampler *s, size_t fresh, struct cairn_error *err)
{
    size_t past = s->n - fresh;
    return gpt_next(s->work, s->ids + past, fresh, past, s->scores, err);
}

static int start(struct sampler *s, const char *prompt, struct cairn_error *err)
{
    struct token_list l = { 0 };
    if (tokenizer_encode(s->t, prompt, strlen(prompt), &l, err))
        return -1;
    int64_t end = tokenizer_end_of_text(s->t);
    s->n = 0;
    size_t most = s->window / 2 ? s->window / 2 : 1, first = l.n > most ? l.n - most : 0;
    for (size_t i = first; i < l.n; i++)
        s->ids[s->n++] = (int)l.ids[i];
    if (!s->n) /* start of a text */
        s->ids[s->n++] = end >= 0 ? (int)end : 0;
    token_list_release(&l);
    return score_window(s, s->n, err);
}

static int add_token(struct sampler *s, int id, struct cairn_error *err)
{
    size_t fresh = 1;
    if (s->n == s->window) {
        size_t kept = s->window / 2;
        memmove(s->ids, s->ids + s->n - kept, kept * sizeof(*s->ids));
        s->n = kept;
        fresh = kept + 1;
    }
    s->ids[s->n++] = id;
    return score_window(s, fresh, err);
}

int sampler_run(struct sampler *s, const char *prompt, const struct sample_options *o, struct str *out,
                struct cairn_error *err)
{
    uint64_t state = o->seed;
    CLEANUP(mem_free) uint32_t *made = malloc((o->tokens + 1) * sizeof(*made));
    size_t n = 0;
    if (!made)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu tokens", o->tokens);
    if (start(s, prompt, err))
        return -1;
    while (n < o->tokens) {
        if (o->stop && *o->stop)
            return cairn_fail(err, CAIRN_EIO, "interrupted");
        int id = draw(s, o, &state);
        if (id == tokenizer_end_of_text(s->t) && n)
            break;
        made[n++] = (uint32_t)id;
        if (n < o->tokens && add_token(s, id, err))
            return -1;
    }
    str_add(out, prompt);
    return tokenizer_decode(s->t, made, n, out, err);
}
