/* SPDX-License-Identifier: Apache-2.0
 * Text from a model with random weights. */
#include "train/sample.h"

#include "base/str.h"
#include "check.h"

enum { CONTEXT = 8, VOCAB = 256 };

static struct gpu *g;
static struct nn nn;
static struct gpt *m;
static struct tokenizer *bytes;
static struct sampler *sampler;
static struct cairn_error err;

static struct str text_of(const char *prompt, size_t tokens, double temperature, size_t top_k, uint64_t seed)
{
    struct str out = { 0 };
    struct sample_options o = { .tokens = tokens, .temperature = temperature, .top_k = top_k, .seed = seed };
    if (sampler_run(sampler, prompt, &o, &out, &err))
        CHECK_FAIL_("%s", err.msg);
    return out;
}

static bool is_same(const struct str *a, const struct str *b)
{
    return a->len == b->len && !memcmp(a->s, b->s, a->len);
}

/* What the model finds likeliest after all of the ids, computed from the start. */
static int best_after(struct gpt_work *room, const int *ids, size_t n)
{
    float scores[VOCAB];
    int best = 0;
    if (gpt_next(room, ids, n, 0, scores, &err))
        CHECK_FAIL_("%s", err.msg);
    for (int i = 1; i < VOCAB; i++)
        best = scores[i] > scores[best] ? i : best;
    return best;
}

static void without_temperature_it_is_the_best(void)
{
    struct gpt_work_options o = { .samples = 1, .tokens = CONTEXT };
    struct gpt_work *room = NULL;
    struct str got = text_of("ab", CONTEXT - 2, 0, 0, 1);
    int ids[CONTEXT] = { 'a', 'b' };
    REQUIRE(!gpt_work_open(m, &o, &room, &err));
    CHECK_INT(got.len, CONTEXT);
    for (size_t n = 2; n < CONTEXT && got.len == CONTEXT; n++) {
        ids[n] = best_after(room, ids, n);
        CHECK_INT((unsigned char)got.s[n], ids[n]);
    }
    struct str one = text_of("ab", CONTEXT - 2, 5, 1, 9);
    CHECK(is_same(&got, &one)); /* one to choose from */
    gpt_work_close(room);
    str_release(&got);
    str_release(&one);
}

static void a_seed_is_a_text(void)
{
    struct str a = text_of("x", 40, 1, 0, 3), b = text_of("x", 40, 1, 0, 3), c = text_of("x", 40, 1, 0, 4);
    CHECK_INT(a.len, 41);
    CHECK(is_same(&a, &b));
    CHECK(!is_same(&a, &c));
    str_release(&a);
    str_release(&b);
    str_release(&c);
}

/* Half of the room is left for what follows. */
static void a_prompt_longer_than_the_context(void)
{
    static const char prompt[] = "a path over stones, and moss";
    size_t n = sizeof(prompt) - 1, kept = CONTEXT / 2;
    struct str all = text_of(prompt, 30, 0.9, 0, 5), end = text_of(prompt + n - kept, 30, 0.9, 0, 5);
    CHECK_INT(all.len, n + 30);
    CHECK_INT(end.len, kept + 30);
    CHECK(!memcmp(all.s, prompt, n));
    CHECK(!memcmp(all.s + n, end.s + kept, 30));
    str_release(&all);
    str_release(&end);
}

/* When the room is full its younger half stays. */
static void more_tokens_than_the_context(void)
{
    enum { TOKENS = 5 * CONTEXT };
    struct gpt_work_options o = { .samples = 1, .tokens = CONTEXT };
    struct gpt_work *room = NULL;
    struct str got = text_of("ab", TOKENS, 0, 0, 1);
    int ids[CONTEXT + 1] = { 'a', 'b' };
    size_t n = 2;
    REQUIRE(!gpt_work_open(m, &o, &room, &err));
    CHECK_INT(got.len, 2 + TOKENS);
    for (size_t i = 2; i < got.len; i++) {
        int next = best_after(room, ids, n);
        CHECK_INT((unsigned char)got.s[i], next);
        if (n == CONTEXT) {
            n = CONTEXT / 2;
            memmove(ids, ids + CONTEXT - n, n * sizeof(*ids));
        }
        ids[n++] = next;
    }
    gpt_work_close(room);
    str_release(&got);
}

static void an_empty_prompt(void)
{
    struct str a = text_of("", 12, 0.7, 20, 3);
    CHECK_INT(a.len, 12);
    str_release(&a);
}

int main(void)
{
    static const struct gpt_shape shape = { .layers = 1,
                                            .heads = 2,
                                            .kv_heads = 2,
                                            .width = 32,
                                            .ffn = 64,
                                            .context = CONTEXT,
                                            .vocab = VOCAB,
                                            .bias = true,
                                            .norm_epsilon = 1e-5f };
    static const struct gpt_options none;
    if (gpu_open("cpu", &g, &err) || nn_open(&nn, g, GPU_F32, &err) ||
        gpt_open(&nn, &shape, &none, &m, &err) || gpt_init(m, 0.5f, 11, &err) ||
        tokenizer_new_bytes(&bytes, &err) || sampler_open(m, bytes, CONTEXT, &sampler, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    RUN(without_temperature_it_is_the_best);
    RUN(a_seed_is_a_text);
    RUN(a_prompt_longer_than_the_context);
    RUN(more_tokens_than_the_context);
    RUN(an_empty_prompt);
    sampler_close(sampler);
    tokenizer_free(bytes);
    gpt_close(m);
    nn_close(&nn);
    gpu_close(g);
    return check_done();
}
