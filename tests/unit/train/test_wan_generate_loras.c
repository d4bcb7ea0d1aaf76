/* SPDX-License-Identifier: Apache-2.0
 * LoRAs of files for samples alone: what they do, over which weights, and that they leave no trace. */
#include "nn/wan_adapters.h"
#include "nn/wan_lora_file.h"
#include "tensor/safetensors.h"
#include "tree.h"
#include "wan_rig.h"

static struct tree tmp;

static const char *in_tmp(const char *name)
{
    static char path[2][512];
    static int turn;
    char *out = path[turn++ % 2];
    snprintf(out, sizeof(path[0]), "%s/%s", tmp.dir, name);
    return out;
}

static const char *save_lora(const struct rig *r, const char *name, enum lora_dialect d)
{
    const char *path = in_tmp(name);
    struct wan_lora_save o = { .path = path, .dialect = d, .dtype = DTYPE_F32 };
    if (wan_lora_save(r->m, 0, &o, &err))
        CHECK_FAIL_("%s", err.msg);
    return path;
}

static void use(struct rig *r, const char *path, double strength)
{
    err = (struct cairn_error){ 0 };
    if (wan_generate_use_loras(&r->task, &path, &strength, 1, &err))
        CHECK_FAIL_("%s", err.msg);
}

static void drop(struct rig *r)
{
    CHECK(!wan_generate_drop_loras(&r->task, &err) && !r->m->adapters);
}

/* The LoRA of a file does what the same LoRA does that is trained, beside one that is, and leaves no trace. */
static void extra_loras(void)
{
    static const enum lora_dialect dialects[] = { LORA_COMFY, LORA_MUSUBI, LORA_DIFFUSERS };
    struct rig trained, base;
    struct wan_clip c = usual();
    float want[VALUES], half[VALUES], x[VALUES], before[VALUES];
    open_rig(&trained, &tiny, &with_lora, NULL);
    open_rig(&base, &tiny, &plain, NULL);
    generate(&base, &c, before);
    generate(&trained, &c, want);
    c.lora_scale = 0.5;
    generate(&trained, &c, half);
    c.lora_scale = 1;
    for (size_t i = 0; i < ARRAY_LEN(dialects); i++) {
        const char *path = save_lora(&trained, "extra.safetensors", dialects[i]);
        use(&base, path, 1);
        generate(&base, &c, x);
        CHECK(difference(x, want) < 1e-4 && difference(x, before) > 1e-3);
        drop(&base);
        use(&base, path, 0.5);
        generate(&base, &c, x);
        CHECK(difference(x, half) < 1e-4);
        drop(&base);
        generate(&base, &c, x);
        CHECK(!memcmp(x, before, sizeof(x)));
        use(&trained, path, -1); /* takes away what the trained one adds */
        generate(&trained, &c, x);
        CHECK(difference(x, before) < 1e-3);
        drop(&trained);
    }
    generate(&trained, &c, x);
    CHECK(!memcmp(x, want, sizeof(x)));
    close_rig(&trained);
    close_rig(&base);
}

/* Over weights of any form and place. */
static void extra_loras_over(void)
{
    static const struct wan_options options[] = {
        { .experts = 1, .lora = &rank2 },
        { .experts = 1, .lora = &rank2, .quantize = true, .format = WEIGHTS_INT8 },
        { .experts = 1, .lora = &rank2, .quantize = true, .format = WEIGHTS_FP8 },
    };
    static const struct lora_options rank3 = { .rank = 3, .alpha = 2 };
    static const struct wan_options other = { .experts = 1, .lora = &rank3 };
    struct wan_clip c = usual();
    struct rig r;
    open_rig(&r, &tiny, &other, NULL);
    const char *path = save_lora(&r, "extra.safetensors", LORA_COMFY);
    close_rig(&r);
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        float before[VALUES], with[2][VALUES], x[VALUES];
        for (size_t streamed = 0; streamed < 2; streamed++) {
            open_rig(&r, &tiny, &options[i],
                     &(struct model_layout){ .streamed = streamed ? MODEL_ALL_BLOCKS : 0 });
            generate(&r, &c, before);
            use(&r, path, 1);
            CHECK_INT(wan_adapters_rank(r.m), 3);
            generate(&r, &c, with[streamed]);
            CHECK(difference(before, with[streamed]) > 1e-3);
            drop(&r);
            generate(&r, &c, x);
            CHECK(!memcmp(x, before, sizeof(x)));
            close_rig(&r);
        }
        CHECK(!memcmp(with[0], with[1], sizeof(with[0])));
    }
}

/* A file for one expert does not change the other; both are read from one file that has both. */
static void extra_loras_of_experts(void)
{
    struct rig r;
    struct wan_clip c = usual();
    float high[VALUES], low[VALUES], x[VALUES];
    open_rig(&r, &tiny, &two, NULL);
    save_lora(&r, "few_steps_high_noise.safetensors", LORA_COMFY);
    c.boundary = 0;
    generate(&r, &c, high);
    c.boundary = 2;
    generate(&r, &c, low);
    use(&r, in_tmp("few_steps_high_noise.safetensors"), 1);
    generate(&r, &c, x);
    CHECK(!memcmp(x, low, sizeof(x)));
    c.boundary = 0;
    generate(&r, &c, x);
    CHECK(difference(x, high) > 1e-3);
    drop(&r);
    generate(&r, &c, x);
    CHECK(!memcmp(x, high, sizeof(x)));
    close_rig(&r);
}

/* A file of f32 tensors of one value each. */
struct added {
    const char *name;
    uint64_t rows, columns; /* columns 0: one dimension */
    float value;
};

static void write_file(const char *path, const struct added *list, size_t n)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    struct st_tensor *t = ARENA_NEW(&a, struct st_tensor, n);
    float **values = ARENA_NEW(&a, float *, n);
    for (size_t i = 0; i < n; i++) {
        uint64_t *shape = ARENA_NEW(&a, uint64_t, 2), elements = list[i].rows;
        shape[0] = list[i].rows;
        shape[1] = list[i].columns;
        elements *= list[i].columns ? list[i].columns : 1;
        values[i] = ARENA_NEW(&a, float, elements);
        for (size_t k = 0; k < elements; k++)
            values[i][k] = list[i].value;
        t[i] = (struct st_tensor){ .name = list[i].name,
                                   .dtype = DTYPE_F32,
                                   .dtype_text = "F32",
                                   .shape = shape,
                                   .rank = list[i].columns ? 2 : 1,
                                   .elements = elements,
                                   .bytes = 4 * elements };
    }
    REQUIRE(!st_writer_open(&w, path, &(struct st_contents){ .tensors = t, .n = n }, true, &err));
    for (size_t i = 0; i < n; i++)
        CHECK(!st_writer_put(&w, i, 0, values[i], t[i].bytes, &err));
    CHECK(!st_writer_commit(&w, &err));
}

static float *parameter(const struct rig *r, const char *name, size_t *n)
{
    const struct param *p = params_find(&r->m->params[0], name);
    *n = p->rows * p->columns;
    float *v = calloc(*n, sizeof(*v));
    CHECK(!weights_get(&r->m->weights[0], p, v, &err));
    return v;
}

/* Norms, biases and linears before and behind the blocks, as files for few steps have them. */
static void extra_differences(void)
{
    static const struct added list[] = {
        { "diffusion_model.blocks.1.self_attn.norm_k.diff", 16, 0, 0.25f },
        { "diffusion_model.blocks.0.ffn.0.diff_b", 24, 0, 0.5f },
        { "diffusion_model.blocks.0.ffn.0.lora_down.weight", 5, 16, 0.125f },
        { "diffusion_model.blocks.0.ffn.0.lora_up.weight", 24, 5, 0.25f },
        { "diffusion_model.head.head.lora_down.weight", 2, 16, 0.5f },
        { "diffusion_model.head.head.lora_up.weight", 16, 2, 0.25f },
        { "diffusion_model.blocks.0.cross_attn.k_img.lora_down.weight", 2, 16, 1 },
        { "diffusion_model.blocks.0.cross_attn.k_img.lora_up.weight", 16, 2, 1 },
    };
    static const struct {
        const char *name;
        float by;
    } wants[] = { { "blocks.1.self_attn.norm_k.weight", 0.5f },
                  { "blocks.0.ffn.0.bias", 1 },
                  { "head.head.weight", 0.5f } };
    struct rig r;
    struct wan_clip c = usual();
    float before[VALUES], x[VALUES], *values[ARRAY_LEN(wants)];
    size_t n;
    open_rig(&r, &tiny, &plain, NULL);
    generate(&r, &c, before);
    for (size_t i = 0; i < ARRAY_LEN(wants); i++)
        values[i] = parameter(&r, wants[i].name, &n);
    write_file(in_tmp("few.safetensors"), list, ARRAY_LEN(list));
    said = 0;
    use(&r, in_tmp("few.safetensors"), 2);
    CHECK_INT(said, 1); /* of k_img, which the model lacks */
    for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
        float *now = parameter(&r, wants[i].name, &n);
        for (size_t k = 0; k < n; k++)
            CHECK(fabsf(now[k] - values[i][k] - wants[i].by) < 1e-5f);
        free(now);
    }
    generate(&r, &c, x);
    CHECK(difference(x, before) > 1e-3);
    drop(&r);
    for (size_t i = 0; i < ARRAY_LEN(wants); i++) {
        float *now = parameter(&r, wants[i].name, &n);
        CHECK(!memcmp(now, values[i], n * sizeof(*now)));
        free(now);
        free(values[i]);
    }
    generate(&r, &c, x);
    CHECK(!memcmp(x, before, sizeof(x)));
    close_rig(&r);
}

static size_t reloads;

static int reload_base(struct task *t, size_t base, struct cairn_error *e)
{
    reloads++;
    return wan_init((struct wan *)t->model, base, 5 + base, e);
}

/* Weights that come again from their file, once for each expert, are changed again. */
static void extra_after_reload(void)
{
    static const struct added list[] = {
        { "diffusion_model.blocks.1.self_attn.norm_k.diff", 16, 0, 0.25f },
        { "diffusion_model.blocks.0.ffn.0.diff_b", 24, 0, 0.5f },
    };
    static const struct task_ops ops = { .reload_base = reload_base };
    struct rig r;
    struct wan_clip c = usual();
    float before[VALUES], want[VALUES], x[VALUES];
    const char *path = in_tmp("norms.safetensors");
    write_file(path, list, ARRAY_LEN(list));
    open_rig(&r, &tiny, &two, NULL);
    generate(&r, &c, before);
    use(&r, path, 1);
    generate(&r, &c, want);
    CHECK(difference(before, want) > 1e-3);
    CHECK(!model_move_blocks(&r.m->model, &(struct model_layout){ .idle = MODEL_IDLE_FILE }, &err));
    r.task.ops = &ops;
    for (int i = 0; i < 2; i++) {
        reloads = 0;
        generate(&r, &c, x);
        CHECK_INT(reloads, 2);
        CHECK(!memcmp(x, want, sizeof(x)));
    }
    drop(&r);
    generate(&r, &c, x);
    CHECK(!memcmp(x, before, sizeof(x)));
    close_rig(&r);
}

/* Of another model, with values that are not finite, or for a whole matrix: refused, and nothing has changed. */
static void extra_refused(void)
{
    static const struct {
        struct added list[2];
        size_t n;
    } bad[] = {
        { { { "diffusion_model.blocks.7.ffn.0.diff_b", 24, 0, 1 } }, 1 },
        { { { "diffusion_model.blocks.0.ffn.0.diff_b", 23, 0, 1 } }, 1 },
        { { { "diffusion_model.blocks.0.ffn.0.diff", 24, 16, 1 } }, 1 },
        { { { "diffusion_model.blocks.0.ffn.0.lora_down.weight", 2, 16, NAN },
            { "diffusion_model.blocks.0.ffn.0.lora_up.weight", 24, 2, 1 } },
          2 },
        { { { "diffusion_model.blocks.0.ffn.0.lora_down.weight", 2, 18, 1 },
            { "diffusion_model.blocks.0.ffn.0.lora_up.weight", 24, 2, 1 } },
          2 },
    };
    struct rig r;
    struct wan_clip c = usual();
    float before[VALUES], x[VALUES];
    double one = 1;
    open_rig(&r, &tiny, &plain, NULL);
    generate(&r, &c, before);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *path = in_tmp("bad.safetensors");
        write_file(path, bad[i].list, bad[i].n);
        CHECK(wan_generate_use_loras(&r.task, &path, &one, 1, &err) && err.code == CAIRN_EFORMAT);
        CHECK_HAS(err.msg, "bad.safetensors");
        CHECK(!r.m->adapters);
    }
    generate(&r, &c, x);
    CHECK(!memcmp(x, before, sizeof(x)));
    close_rig(&r);
}

int main(int argc, char **argv)
{
    open_device(argc, argv);
    tree_make(&tmp);
    RUN(extra_loras);
    RUN(extra_loras_over);
    RUN(extra_loras_of_experts);
    RUN(extra_differences);
    RUN(extra_after_reload);
    RUN(extra_refused);
    tree_remove(&tmp);
    return close_device();
}
