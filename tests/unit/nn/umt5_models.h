/* SPDX-License-Identifier: Apache-2.0
 * Copies of a small umT5 encoder in every form of file. */
#ifndef CAIRN_TESTS_UNIT_NN_UMT5_MODELS_H
#define CAIRN_TESTS_UNIT_NN_UMT5_MODELS_H

#include "on_cpu.h"
#include "tensor/safetensors.h"

static const char tiny[] = "umt5/tiny.safetensors";

/* How a copy of the model is written. */
struct form {
    bool hf;
    enum dtype matrices, others; /* 0: as they are */
    float scale;                 /* of fp8 matrices; 0: they have none */
    bool scale_rows;             /* a scale for each row */
    const char *weight_scale;    /* how scales are called; NULL: scale_weight */
    const char *prefix, *embedding;
    bool decoder, tokenizer, second_embedding;
    const char *drop, *rename, *to; /* of the official names */
    const char *poison;             /* gets a NaN */
    float poison_with;
    size_t first, n; /* tensors; n 0: all */
};

static const struct {
    const char *official, *hf;
} ends[] = {
    { "attn.q.weight", "0.SelfAttention.q.weight" },
    { "attn.k.weight", "0.SelfAttention.k.weight" },
    { "attn.v.weight", "0.SelfAttention.v.weight" },
    { "attn.o.weight", "0.SelfAttention.o.weight" },
    { "ffn.gate.0.weight", "1.DenseReluDense.wi_0.weight" },
    { "ffn.fc1.weight", "1.DenseReluDense.wi_1.weight" },
    { "ffn.fc2.weight", "1.DenseReluDense.wo.weight" },
    { "norm1.weight", "0.layer_norm.weight" },
    { "norm2.weight", "1.layer_norm.weight" },
    { "pos_embedding.embedding.weight", "0.SelfAttention.relative_attention_bias.weight" },
};

static inline const char *name_in(const struct form *f, struct arena *a, const char *name)
{
    const char *prefix = f->prefix ? f->prefix : "";
    char end[64];
    unsigned layer;
    if (f->rename && !strcmp(name, f->rename))
        return arena_printf(a, "%s%s", prefix, f->to);
    if (!f->hf)
        return arena_printf(a, "%s%s", prefix, name);
    if (!strcmp(name, "norm.weight"))
        return arena_printf(a, "%sencoder.final_layer_norm.weight", prefix);
    if (!strcmp(name, "token_embedding.weight"))
        return arena_printf(a, "%s%s", prefix, f->embedding ? f->embedding : "shared.weight");
    CHECK(sscanf(name, "blocks.%u.%63s", &layer, end) == 2);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        if (!strcmp(end, ends[i].official))
            return arena_printf(a, "%sencoder.block.%u.layer.%s", prefix, layer, ends[i].hf);
    return name;
}

struct writing {
    struct arena arena;
    struct st_tensor *list;
    void **bytes;
    size_t n;
};

static inline void *add(struct writing *w, const char *name, enum dtype t, int rank, const uint64_t *shape)
{
    size_t n = w->n;
    struct st_tensor s = {
        .name = name, .dtype = t, .dtype_text = dtype_safetensors(t), .rank = rank, .elements = 1
    };
    uint64_t *own = ARENA_NEW(&w->arena, uint64_t, 2);
    for (int i = 0; i < rank; i++) {
        own[i] = shape[i];
        s.elements *= shape[i];
    }
    s.shape = own;
    s.bytes = s.elements * dtype_size(t);
    *ARENA_PUSH(&w->arena, w->list, n) = s;
    void *bytes = arena_alloc(&w->arena, s.bytes + 1);
    *ARENA_PUSH(&w->arena, w->bytes, w->n) = bytes;
    return bytes;
}

static inline void add_numbers(struct writing *w, const char *name, enum dtype t, int rank,
                               const uint64_t *shape, const float *numbers)
{
    void *bytes = add(w, name, t, rank, shape);
    dtype_convert(bytes, t, numbers, DTYPE_F32, w->list[w->n - 1].elements, &(struct dtype_how){ 0 });
}

static inline void add_scale(struct writing *w, const struct form *f, const char *name, uint64_t rows)
{
    const char *end = f->weight_scale ? f->weight_scale : "scale_weight";
    const char *scale = arena_printf(&w->arena, "%.*s%s", (int)(strlen(name) - strlen("weight")), name, end);
    uint64_t shape[2] = { f->scale_rows ? rows : 1, 1 };
    float *numbers = add(w, scale, DTYPE_F32, f->scale_rows ? 2 : 1, shape);
    for (size_t i = 0; i < shape[0]; i++)
        numbers[i] = f->scale;
}

static inline void add_tensor(struct writing *w, const struct form *f, const struct st_file *file,
                              const struct st_tensor *t)
{
    bool matrix = t->rank == 2 && (strstr(t->name, "attn.") || strstr(t->name, "ffn."));
    enum dtype to = matrix && f->matrices ? f->matrices : !matrix && f->others ? f->others : t->dtype;
    float *numbers = ARENA_NEW(&w->arena, float, t->elements);
    void *raw = arena_alloc(&w->arena, t->bytes);
    struct cairn_error err = { 0 };
    REQUIRE(!st_read(file, t, 0, t->elements, raw, &err));
    dtype_convert(numbers, DTYPE_F32, raw, t->dtype, t->elements, &(struct dtype_how){ 0 });
    for (size_t i = 0; matrix && f->scale > 0 && i < t->elements; i++)
        numbers[i] /= f->scale;
    if (f->poison && !strcmp(f->poison, t->name))
        numbers[3] = f->poison_with;
    const char *name = name_in(f, &w->arena, t->name);
    add_numbers(w, name, to, t->rank, t->shape, numbers);
    if (matrix && f->scale > 0)
        add_scale(w, f, name, t->shape[0]);
    if (f->second_embedding && !strcmp(t->name, "token_embedding.weight"))
        add_numbers(w, "encoder.embed_tokens.weight", to, t->rank, t->shape, numbers);
}

static inline void add_rest(struct writing *w, const struct form *f)
{
    static const float zeros[64];
    const uint64_t shape[2] = { 4, 4 }, none[1] = { 0 }, bytes[1] = { 9 };
    if (f->scale > 0)
        add(w, "scaled_fp8", DTYPE_F8_E4M3, 1, none);
    if (f->decoder) {
        add_numbers(w, "decoder.block.0.layer.0.SelfAttention.q.weight", DTYPE_F32, 2, shape, zeros);
        add_numbers(w, "decoder.final_layer_norm.weight", DTYPE_F32, 1, shape, zeros);
        add_numbers(w, "lm_head.weight", DTYPE_F32, 2, shape, zeros);
    }
    if (f->tokenizer)
        memcpy(add(w, "spiece_model", DTYPE_U8, 1, bytes), "tokenizer", 9);
}

static inline void write_form(const char *path, const struct form *f)
{
    struct cairn_error err = { 0 };
    struct st_file file;
    CLEANUP(st_writer_close) struct st_writer out = { .out = FILE_OUT_NONE };
    struct writing w = { 0 };
    REQUIRE(!st_open(&file, check_data(tiny), &err));
    size_t end = f->n ? f->first + f->n : file.n_tensors;
    for (size_t i = f->first; i < end && i < file.n_tensors; i++)
        if (!f->drop || strcmp(file.tensors[i].name, f->drop))
            add_tensor(&w, f, &file, &file.tensors[i]);
    add_rest(&w, f);
    const struct st_contents contents = { .tensors = w.list, .n = w.n, .order = ST_ORDER_GIVEN };
    REQUIRE(!st_writer_open(&out, path, &contents, true, &err));
    for (size_t i = 0; i < w.n; i++)
        CHECK(!st_writer_put(&out, i, 0, w.bytes[i], w.list[i].bytes, &err));
    CHECK(!st_writer_commit(&out, &err));
    arena_release(&w.arena);
    st_close(&file);
}

#endif
