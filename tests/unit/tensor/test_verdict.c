/* SPDX-License-Identifier: Apache-2.0
 * The verdict on made-up files: what is damage, and what looks like damage but is meant. */
#include "check.h"
#include "tensor/verdict.h"
#include "tree.h"
#include <math.h>

enum look {
    NORMAL,
    ZERO,
    ONES,
    ONE_NAN,
    ONE_INF,
    TAIL_ZERO,
    HEAD_ZERO,
    SOME_ZERO,
    TINY,
    HUGE_ONE,
    WIDE,
    FAR,
    MASK,
    SPARSE
};
enum { MOST = 8, ROWS = 32, COLUMNS = 64, N = ROWS * COLUMNS };

struct part {
    const char *name;
    enum dtype dtype;
    enum look look;
    int rank; /* 2: ROWS x COLUMNS; 1: N; 0: one number */
};

static float value(enum look look, size_t i)
{
    /* Sum of four uniforms: bell-shaped enough, deviation near 1. */
    uint32_t x = (uint32_t)i * 2654435761u + 12345;
    float v = 0;
    for (int k = 0; k < 4; k++) {
        x = x * 1664525u + 1013904223u;
        v += (float)(x >> 8) / (1 << 24) - 0.5f;
    }
    v *= 1.7f;
    switch (look) {
    case ZERO:
        return 0;
    case ONES:
        return 1;
    case ONE_NAN:
        return i == 77 ? NAN : v;
    case ONE_INF:
        return i == 78 ? -INFINITY : v;
    case TAIL_ZERO:
        return i >= N * 2 / 5 ? 0 : v;
    case HEAD_ZERO:
        return i < N * 3 / 5 ? 0 : v;
    case SOME_ZERO:
        return i % 20 ? v : 0;
    case TINY:
        return v * 1e-39f;
    case HUGE_ONE:
        return i == 5 ? 1e30f : v;
    case WIDE:
        return v * 50;
    case FAR:
        return v + 9;
    case MASK:
        return i < N / 5 ? 0 : v;
    case SPARSE:
        return i % 4 ? 0 : v;
    default:
        return v;
    }
}

struct made {
    struct arena arena;
    struct tensor_source src;
    struct st_tensor tensors[MOST];
    struct scan_stats stats[MOST];
    struct tensor_verdict verdicts[MOST];
    struct file_verdict file;
};

static void make_tensor(struct made *m, const struct part *p)
{
    static const uint64_t shape[] = { ROWS, COLUMNS }, flat[] = { N };
    size_t i = m->src.n_tensors++, n = p->rank ? N : 1;
    float v[N];
    char raw[N * 8];
    m->tensors[i] = (struct st_tensor){ .name = p->name,
                                        .dtype = p->dtype,
                                        .dtype_text = p->dtype ? dtype_safetensors(p->dtype) : "F6_E2M3",
                                        .shape = p->rank == 2 ? shape : flat,
                                        .rank = p->rank,
                                        .elements = n };
    scan_init(&m->stats[i]);
    if (!dtype_is_float(p->dtype)) {
        memset(raw, 0, sizeof(raw));
        if (p->dtype)
            scan_add(&m->stats[i], p->dtype, raw, n);
        return;
    }
    for (size_t k = 0; k < n; k++)
        v[k] = value(p->look, k);
    dtype_convert(raw, p->dtype, v, DTYPE_F32, n, &(struct dtype_how){ 0 });
    scan_add(&m->stats[i], p->dtype, raw, n);
}

static void judge(struct made *m, const struct part *parts)
{
    *m = (struct made){ .src.tensors = m->tensors, .src.path = "made" };
    for (size_t i = 0; i < MOST && parts[i].name; i++)
        make_tensor(m, &parts[i]);
    verdict_judge(&m->src, m->stats, &m->arena, m->verdicts, &m->file);
}

#define T(n, d, l, r)      \
    {                      \
        n, DTYPE_##d, l, r \
    }

static const struct {
    const char *what;
    struct part parts[MOST];
    bool damaged;
    const char *verdict; /* of the file, or of its first tensor when it is healthy */
    const char *todo;    /* words of it */
} cases[] = {
    /* Damage. */
    { "a zero latent by any name", { T("lat", BF16, ZERO, 2) }, true, "all-zero", "again" },
    { "a zero cache", { T("latents_1x4x4_bfloat16", BF16, ZERO, 2) }, true, "all-zero", "re-encode" },
    { "a zero text cache", { T("varlen_t5_bfloat16", BF16, ZERO, 2) }, true, "all-zero", "re-encode" },
    { "a zero cache beside a good one",
      { T("latents_1x4x4_float32", F32, NORMAL, 2), T("latents_image_1x4x4_float32", F32, ZERO, 2) },
      true,
      "all-zero",
      "re-encode" },
    { "a constant cache", { T("clip_float16", F16, ONES, 2) }, true, "constant", "re-encode" },
    { "a NaN in a weight",
      { T("a.weight", F16, NORMAL, 2), T("b.weight", F16, ONE_NAN, 2) },
      true,
      "has-nan",
      "--nan 0" },
    { "a NaN in a bias",
      { T("a.weight", F32, NORMAL, 2), T("a.bias", F32, ONE_NAN, 1) },
      true,
      "has-nan",
      "--nan 0" },
    { "a NaN in a LoRA", { T("x.lora_down.weight", F32, ONE_NAN, 2) }, true, "has-nan", "diverged" },
    { "an Inf", { T("w", F32, ONE_INF, 1) }, true, "has-inf", "--clamp" },
    { "an Inf in fp8", { T("w", F8_E5M2, ONE_INF, 1) }, true, "has-inf", "--clamp" },
    { "NaN is worse than Inf",
      { T("w", F32, ONE_INF, 1), T("v", F32, ONE_NAN, 1) },
      true,
      "has-nan",
      "--nan 0" },
    { "every weight zero",
      { T("a.weight", F32, ZERO, 2), T("a.bias", F32, NORMAL, 1), T("b.weight", F32, ZERO, 1) },
      true,
      "all-zero",
      "again" },
    { "every weight constant",
      { T("a.weight", F32, ONES, 2), T("b.weight", F32, ONES, 2) },
      true,
      "constant",
      "again" },
    { "one block zero, its twins not",
      { T("blocks.0.q.weight", BF16, NORMAL, 2), T("blocks.1.q.weight", BF16, NORMAL, 2),
        T("blocks.12.q.weight", BF16, ZERO, 2) },
      true,
      "all-zero",
      "again" },
    { "the end of a weight is zero", { T("a.weight", BF16, TAIL_ZERO, 2) }, true, "suspicious", "again" },
    { "the start of a weight is zero", { T("a.weight", F32, HEAD_ZERO, 2) }, true, "suspicious", "again" },
    { "half a latent is zero",
      { T("latents_1x4x4_bfloat16", BF16, TAIL_ZERO, 2) },
      true,
      "suspicious",
      "re-encode" },
    { "zeros here and there in a latent",
      { T("latents_1x4x4_bfloat16", BF16, SOME_ZERO, 2) },
      true,
      "suspicious",
      "re-encode" },
    { "a latent that was not normalised",
      { T("latents_1x4x4_float32", F32, WIDE, 2) },
      true,
      "suspicious",
      "re-encode" },
    { "a latent far from zero",
      { T("latents_1x4x4_float32", F32, FAR, 2) },
      true,
      "suspicious",
      "re-encode" },
    { "an absurd number", { T("a.weight", BF16, HUGE_ONE, 2) }, true, "suspicious", "again" },
    { "subnormals everywhere", { T("a.weight", F32, TINY, 2) }, true, "suspicious", "again" },
    /* Health. */
    { "a weight", { T("w", F32, NORMAL, 1) }, false, "ok", NULL },
    { "caches",
      { T("latents_1x4x4_bfloat16", BF16, NORMAL, 2), T("varlen_t5_bfloat16", BF16, NORMAL, 2) },
      false,
      "ok",
      NULL },
    { "mask channels of an image latent",
      { T("latents_image_1x4x4_bfloat16", BF16, MASK, 2) },
      false,
      "ok",
      NULL },
    { "a zero bias", { T("a.bias", F32, ZERO, 1), T("a.weight", F32, NORMAL, 2) }, false, "all-zero", NULL },
    { "a fresh LoRA",
      { T("x.lora_up.weight", F32, ZERO, 2), T("x.lora_down.weight", F32, NORMAL, 2),
        T("x.alpha", F32, ONES, 0) },
      false,
      "all-zero",
      NULL },
    { "a fresh PEFT LoRA",
      { T("x.lora_B.weight", BF16, ZERO, 2), T("x.lora_A.weight", BF16, NORMAL, 2) },
      false,
      "all-zero",
      NULL },
    { "a zero output layer",
      { T("proj_out.weight", F32, ZERO, 2), T("a.weight", F32, NORMAL, 2), T("b.weight", F32, NORMAL, 2) },
      false,
      "all-zero",
      NULL },
    { "fresh norms",
      { T("blocks.0.norm.weight", F32, ONES, 1), T("blocks.1.norm.weight", F32, NORMAL, 1),
        T("blocks.2.norm.weight", F32, NORMAL, 1) },
      false,
      "constant",
      NULL },
    { "a fresh optimizer",
      { T("a.exp_avg", F32, ZERO, 2), T("a.exp_avg_sq", F32, TINY, 2) },
      false,
      "all-zero",
      NULL },
    { "an attention mask",
      { T("attn.mask", F32, ONE_INF, 2), T("w", F32, NORMAL, 2) },
      false,
      "has-inf",
      NULL },
    { "a scalar zero", { T("step", F32, ZERO, 0), T("w", F32, NORMAL, 2) }, false, "ok", NULL },
    { "whole numbers", { T("ids", I64, ZERO, 2) }, false, "ok", NULL },
    { "a dtype of the future", { T("q", OTHER, ZERO, 2) }, false, "skipped", NULL },
    { "a pruned weight", { T("a.weight", F32, SPARSE, 2) }, false, "ok", NULL },
    { "a zero bias with a cache's word in its name",
      { T("context_embedder.bias", F32, ZERO, 1), T("latents_proj.weight", F32, NORMAL, 2) },
      false,
      "all-zero",
      NULL },
    { "padded text", { T("in.context", F32, TAIL_ZERO, 2) }, false, "ok", NULL },
    { "small fp8 weights", { T("a.weight", F8_E4M3, SOME_ZERO, 2) }, false, "ok", NULL },
    { "nothing", { { NULL, DTYPE_OTHER, NORMAL, 0 } }, false, "ok", NULL },
};

static void every_case(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct made m;
        judge(&m, cases[i].parts);
        enum tensor_health got =
            cases[i].damaged || !m.src.n_tensors ? m.file.verdict : m.verdicts[0].verdict;
        if (m.file.damaged != cases[i].damaged || strcmp(tensor_health_name(got), cases[i].verdict))
            CHECK_FAIL_("%s: %s, %s; want %s, %s", cases[i].what, tensor_health_name(got),
                        m.file.damaged ? "damaged" : "healthy", cases[i].verdict,
                        cases[i].damaged ? "damaged" : "healthy");
        CHECK(m.file.damaged == (m.file.todo != NULL));
        if (cases[i].todo)
            CHECK_HAS(m.file.todo, cases[i].todo);
        arena_release(&m.arena);
    }
}

static void the_tensor_is_named_and_counted(void)
{
    struct made m;
    judge(&m,
          (struct part[MOST]){ T("a", F32, NORMAL, 1), T("b", F32, ONE_NAN, 1), T("c", F32, ONE_NAN, 1) });
    CHECK_STR(m.file.name, "b");
    CHECK_INT(m.file.n_damaged, 2);
    CHECK_STR(m.file.why, "1 of 2048 values is NaN");
    arena_release(&m.arena);
}

/* The words that the readers use for it are known here; this fails when they change. */
static void cut_files_are_called_truncated(void)
{
    static const char header[] = "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}";
    char bytes[8 + sizeof(header) - 1 + 16] = { sizeof(header) - 1 };
    struct tree t;
    tree_make(&t);
    memcpy(bytes + 8, header, sizeof(header) - 1);
    for (size_t n = 0; n < sizeof(bytes); n++) {
        struct arena a = { 0 };
        struct tensor_source src;
        struct cairn_error err = { 0 };
        struct file_verdict v;
        tree_put_bytes(&t, "x.safetensors", bytes, n);
        CHECK(source_open(&src, tree_path(&t, "x.safetensors"), &err) == -1);
        verdict_unread("x.safetensors", &err, &a, &v);
        CHECK_STR(tensor_health_name(v.verdict), "truncated");
        CHECK_HAS(v.todo, "end is missing");
        verdict_unread("a_0512x0512_wan.safetensors", &err, &a, &v);
        CHECK_HAS(v.todo, "re-encode");
        arena_release(&a);
    }
    tree_remove(&t);
}

static void what_cannot_be_opened_is_unreadable(void)
{
    struct arena a = { 0 };
    struct tensor_source src;
    struct cairn_error err = { 0 };
    struct file_verdict v;
    CHECK(source_open(&src, "/no/such/file_wan.safetensors", &err) == -1);
    verdict_unread("/no/such/file_wan.safetensors", &err, &a, &v);
    CHECK_STR(tensor_health_name(v.verdict), "unreadable");
    CHECK(v.damaged);
    CHECK_HAS(v.why, "No such file");
    arena_release(&a);
}

int main(void)
{
    RUN(every_case);
    RUN(the_tensor_is_named_and_counted);
    RUN(cut_files_are_called_truncated);
    RUN(what_cannot_be_opened_is_unreadable);
    return check_done();
}
