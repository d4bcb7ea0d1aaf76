/* SPDX-License-Identifier: Apache-2.0
 * Wan transformers in every form of file: all of them give the same weights; files that must be refused. */
#include "nn/wan_file.h"

#include "wan_models.h"
#include <errno.h>
#include "os/fault.h"

/* ---- shapes ---- */

static void a_shape_follows_from_tensors(void)
{
    static const char *const files[] = { official, diffusers, fp8_scaled };
    static const enum dtype types[] = { DTYPE_F32, DTYPE_BF16, DTYPE_F8_E4M3 };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct cairn_error err = { 0 };
        struct wan_file_info info;
        if (wan_file_read_info(check_data(files[i]), CLIP_HEADS, &info, &err))
            CHECK_FAIL_("%s", err.msg);
        CHECK_INT(info.shape.layers, 2);
        CHECK_INT(info.shape.heads, CLIP_HEADS);
        CHECK_INT(info.shape.width, 64);
        CHECK_INT(info.shape.ffn, 128);
        CHECK_INT(info.shape.in, 36);
        CHECK_INT(info.shape.out, 16);
        CHECK_INT(info.shape.text_width, 64);
        CHECK_INT(info.shape.text_rows, 512);
        CHECK_INT(info.shape.time_width, 256);
        CHECK_INT(info.shape.clip_width, 64);
        CHECK_INT(info.shape.clip_rows, 257);
        CHECK_INT(info.dtype, types[i]);
        CHECK_INT(info.scaled, i == 2);
        CHECK_INT(info.diffusers, i == 1);
        CHECK_INT(info.files, 1);
    }
}

static void heads_must_be_told_or_128_wide(void)
{
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    CHECK(wan_file_read_info(check_data(official), 0, &info, &err));
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK_HAS(err.hint, "model.heads");
    CHECK(wan_file_read_info(check_data(official), 3, &info, &err));
    CHECK_HAS(err.hint, "model.heads");
}

/* Text and time, CLIP, channels and blocks of other sizes; heads of 128. */
static void other_shapes_come_back(void)
{
    static const struct wan_shape shapes[] = {
        { .layers = 3,
          .heads = 2,
          .width = 256,
          .ffn = 32,
          .in = 48,
          .out = 48,
          .text_width = 16,
          .text_rows = 512,
          .time_width = 8,
          .clip_rows = 257 },
        { .layers = 12,
          .heads = 1,
          .width = 128,
          .ffn = 20,
          .in = 36,
          .out = 16,
          .text_width = 10,
          .text_rows = 512,
          .time_width = 6,
          .clip_width = 24,
          .clip_rows = 257 },
    };
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        struct cairn_error err = { 0 };
        struct wan_file_info info;
        char path[256];
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
        struct wan *m = open_wan(&f32, &shapes[i], NULL);
        fill(&m->params[0], &m->weights[0]);
        save_wan(m, path);
        if (wan_file_read_info(path, 0, &info, &err))
            CHECK_FAIL_("%s", err.msg);
        CHECK(!memcmp(&info.shape, &shapes[i], sizeof(info.shape)));
        struct wan *again = load_wan(&f32, path, NULL);
        check_same(&m->params[0], &m->weights[0], &again->weights[0]);
        model_close(&m->model);
        model_close(&again->model);
    }
}

static void a_config_tells_the_heads(void)
{
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    const char *dir = new_folder();
    char path[256];
    snprintf(path, sizeof(path), "%s", in_folder(dir, "diffusion_pytorch_model.safetensors"));
    copy_changed(check_data(diffusers), path, &(struct changes){ 0 });
    CHECK(!file_write(in_folder(dir, "config.json"), "{\"num_attention_heads\": 4}", 26, &err));
    if (wan_file_read_info(path, 0, &info, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK_INT(info.shape.heads, 4);
}

/* ---- the same weights from every form ---- */

static void check_form(const char *path)
{
    struct wan *a = load_wan(&f32, check_data(official), NULL), *b = load_wan(&f32, path, NULL);
    check_same(&a->params[0], &a->weights[0], &b->weights[0]);
    model_close(&a->model);
    model_close(&b->model);
}

static void names_and_prefixes_are_stripped(void)
{
    static const char *const prefixes[] = {
        "model.diffusion_model.", "diffusion_model.", "model.model.", "net.", "model.", "state_dict."
    };
    check_form(check_data(diffusers));
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
        copy_changed(check_data(i % 2 ? diffusers : official), path,
                     &(struct changes){ .prefix = prefixes[i] });
        check_form(path);
    }
}

static void shards_are_found_by_one_of_them(void)
{
    enum { SHARDS = 3, PART = 30 };
    char path[SHARDS][256];
    const char *dir = new_folder();
    for (size_t i = 0; i < SHARDS; i++) {
        snprintf(path[i], sizeof(path[i]), "%s/w-x-%05zu-of-%05d.safetensors", dir, i + 1, SHARDS);
        copy_changed(check_data(official), path[i], &(struct changes){ .first = i * PART, .n = PART });
    }
    for (size_t i = 0; i < SHARDS; i++)
        check_form(path[i]);
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    CHECK(!wan_file_read_info(path[1], CLIP_HEADS, &info, &err));
    CHECK_INT(info.files, SHARDS);
    unlink(path[2]);
    CHECK(wan_file_read_info(path[0], CLIP_HEADS, &info, &err));
    CHECK_HAS(err.msg, "w-x-00003-of-00003");
}

/* ---- what must be refused ---- */

static int try_load(const char *path, struct param_report *report, struct cairn_error *err)
{
    struct wan_shape s = shape_of(check_data(official));
    struct wan *m = open_wan(&f32, &s, NULL);
    int r = wan_file_load(m, 0, path, report, err);
    model_close(&m->model);
    return r;
}

static void missing_and_left_over_tensors_are_named(void)
{
    static const struct changes tried[] = {
        { .drop = "blocks.1.self_attn.q.weight" },
        { .rename = "blocks.1.self_attn.q.weight", .to = "blocks.1.self_attn.qq.weight" },
        { .add = "blocks.1.self_attn.z.weight" },
    };
    for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
        struct cairn_error err = { 0 };
        struct param_report report;
        char path[256];
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
        copy_changed(check_data(official), path, &tried[i]);
        CHECK(try_load(path, &report, &err));
        CHECK_INT(err.code, CAIRN_EFORMAT);
        if (i < 2)
            CHECK_STR(report.missing.s, "blocks.1.self_attn.q.weight\n");
        if (i)
            CHECK_HAS(err.msg, i == 1 ? tried[i].to : tried[i].add);
        param_report_release(&report);
    }
}

static void all(void)
{
    RUN(a_shape_follows_from_tensors);
    RUN(heads_must_be_told_or_128_wide);
    RUN(other_shapes_come_back);
    RUN(a_config_tells_the_heads);
    RUN(names_and_prefixes_are_stripped);
    RUN(shards_are_found_by_one_of_them);
    RUN(missing_and_left_over_tensors_are_named);
}

int main(void)
{
    return run_on_cpu(all);
}
