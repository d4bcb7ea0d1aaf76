/* SPDX-License-Identifier: Apache-2.0
 * Wan transformers in every form of file: all of them give the same weights; files that must be refused. */
#include "nn/wan_file.h"

#include "wan_models.h"
#include "os/fault.h"
#include <errno.h>
#include <math.h>

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

static void torch_files_are_read(void)
{
    struct wan *a = load_wan(&f32, check_data("wan/tiny.pth"), NULL);
    struct wan *b = load_wan(&f32, check_data("wan/tiny.safetensors"), NULL);
    CHECK_INT(a->shape.width, 8);
    CHECK_INT(a->shape.layers, 2);
    check_same(&a->params[0], &a->weights[0], &b->weights[0]);
    model_close(&a->model);
    model_close(&b->model);
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
    static const struct {
        struct changes changes;
        const char *missing, *unexpected;
        int said; /* how often the message has the missing name, or the nearest to what is left over */
    } rows[] = {
        { { .drop = "blocks.1.self_attn.q.weight" }, "blocks.1.self_attn.q.weight\n", NULL, 1 },
        { { .rename = "blocks.1.self_attn.q.weight", .to = "blocks.1.self_attn.qq.weight" },
          "blocks.1.self_attn.q.weight\n",
          "blocks.1.self_attn.qq.weight\n",
          2 },
        { { .add = "blocks.1.self_attn.qqq.weight" }, NULL, "blocks.1.self_attn.qqq.weight\n", 1 },
        { { .prefix = "model.diffusion_model.",
            .rename = "blocks.1.self_attn.q.weight",
            .to = "blocks.1.self_attn.qq.weight" },
          "model.diffusion_model.blocks.1.self_attn.q.weight\n",
          "model.diffusion_model.blocks.1.self_attn.qq.weight\n",
          2 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cairn_error err = { 0 };
        CLEANUP(param_report_release) struct param_report report = { 0 };
        char path[256];
        int said = 0;
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
        copy_changed(check_data(official), path, &rows[i].changes);
        CHECK(try_load(path, &report, &err));
        CHECK_INT(err.code, CAIRN_EFORMAT);
        CHECK_STR(report.missing.s, rows[i].missing);
        CHECK_STR(report.unexpected.s, rows[i].unexpected);
        for (const char *at = err.msg; (at = strstr(at, "blocks.1.self_attn.q.weight")); at++)
            said++;
        CHECK_INT(said, rows[i].said);
    }
}

/* A tensor of another shape, and files that end early. */
static void damaged_files_are_refused(void)
{
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    char path[256];
    size_t n;
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
    CLEANUP(param_report_release) struct param_report report = { 0 };
    copy_changed(
        check_data(official), path,
        &(struct changes){ .drop = "blocks.1.norm3.bias", .add = "blocks.1.norm3.bias", .add_n = 65 });
    CHECK(try_load(path, &report, &err));
    CHECK_HAS(err.msg, "blocks.1.norm3.bias");
    CHECK_INT(err.code, CAIRN_EFORMAT);
    char *bytes = slurp(check_data(official), &n);
    for (size_t cut = 0; cut < n; cut = cut * 3 + 5) {
        CHECK(!file_write(path, bytes, cut, &err));
        CHECK(wan_file_read_info(path, CLIP_HEADS, &info, &err));
        CHECK_HAS(err.msg, path);
    }
    free(bytes);
}

/* A NaN in a vector is refused like one in a matrix. */
static void nan_is_refused(void)
{
    struct cairn_error err = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    char path[256];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
    copy_changed(
        check_data(official), path,
        &(struct changes){
            .drop = "blocks.1.norm3.bias", .add = "blocks.1.norm3.bias", .add_n = 64, .value = NAN });
    CHECK(try_load(path, &report, &err));
    CHECK_HAS(err.msg, "blocks.1.norm3.bias");
}

/* Files of tensors of size 2 x 2 under one name, and what they are. */
static void other_files_are_called_by_their_name(void)
{
    static const struct {
        const char *tensor, *word;
        bool is_wan; /* beside the tensors of a Wan model */
    } rows[] = {
        { "diffusion_model.blocks.0.self_attn.q.lora_A.weight", "LoRA", false },
        { "lora_unet_blocks_0_self_attn_q.lora_down.weight", "LoRA", false },
        { "decoder.upsamples.0.residual.2.weight", "VAE", false },
        { "encoder.down_blocks.0.conv1.weight", "VAE", false },
        { "blocks.0.pos_embedding.embedding.weight", "text encoder", false },
        { "encoder.block.0.layer.0.SelfAttention.q.weight", "text encoder", false },
        { "visual.transformer.0.attn.to_qkv.weight", "CLIP", false },
        { "text_model.embeddings.token_embedding.weight", "CLIP", false },
        { "double_blocks.0.img_attn.qkv.weight", "Flux", false },
        { "model.diffusion_model.input_blocks.0.0.weight", "U-Net", false },
        { "model.layers.0.self_attn.q_proj.weight", "language model", false },
        { "latents_1x2x2_bfloat16", "cache", false },
        { "x.y", "head.modulation", false },
        { "vace_patch_embedding.weight", "VACE", true },
        { "img_emb.emb_pos", "FLF2V", true },
        { "face_adapter.fuser.weight", "Animate", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cairn_error err = { 0 };
        struct wan_file_info info;
        struct changes c = { .add = rows[i].tensor, .n = rows[i].is_wan ? 0 : 1 };
        char path[256];
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
        if (!rows[i].is_wan)
            c.drop = "patch_embedding.weight"; /* the first, so that none is left */
        copy_changed(check_data(official), path, &c);
        CHECK(wan_file_read_info(path, CLIP_HEADS, &info, &err));
        CHECK_INT(err.code, CAIRN_EFORMAT);
        CHECK_HAS(err.msg, rows[i].word);
        CHECK_HAS(err.msg, path);
        CHECK(err.hint[0]);
    }
}

/* fp8 does not make a text encoder a Wan. */
static void an_fp8_text_encoder_is_one(void)
{
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    char path[256];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "umt5.safetensors"));
    copy_changed(check_data(fp8_scaled), path,
                 &(struct changes){ .rename = "head.modulation", .to = "shared.weight" });
    CHECK(wan_file_read_info(path, CLIP_HEADS, &info, &err));
    CHECK_HAS(err.msg, "fp8");
    CHECK_HAS(err.msg, "text encoder");
}

static void fewer_channels_in_than_out_are_refused(void)
{
    struct wan_shape s = { .layers = 1,
                           .heads = 1,
                           .width = 128,
                           .ffn = 20,
                           .in = 8,
                           .out = 16,
                           .text_width = 10,
                           .time_width = 6,
                           .text_rows = 512,
                           .clip_rows = 257 };
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    char path[256];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
    struct wan *m = open_wan(&f32, &s, NULL);
    fill(&m->params[0], &m->weights[0]);
    save_wan(m, path);
    model_close(&m->model);
    CHECK(wan_file_read_info(path, 0, &info, &err));
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, "patch_embedding.weight");
}

static void control_models_are_recognised(void)
{
    struct wan_shape s = { .layers = 1,
                           .heads = 1,
                           .width = 128,
                           .ffn = 20,
                           .in = 48,
                           .out = 16,
                           .text_width = 10,
                           .time_width = 6,
                           .text_rows = 512,
                           .clip_rows = 257 };
    struct cairn_error err = { 0 };
    struct wan_file_info info;
    char path[256];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "m.safetensors"));
    struct wan *m = open_wan(&f32, &s, NULL);
    fill(&m->params[0], &m->weights[0]);
    save_wan(m, path);
    model_close(&m->model);
    CHECK(!wan_file_read_info(path, 0, &info, &err));
    CHECK(info.control && info.shape.in == 48 && info.shape.out == 16);
}

static void every_system_call_may_fail(void)
{
    bool reached = true;
    int failed = 0;
    for (int nth = 1; reached && nth < 10000; nth += nth < 30 ? 1 : 17) {
        struct cairn_error err = { 0 };
        CLEANUP(param_report_release) struct param_report report = { 0 };
        struct wan_shape s = { 0 };
        s = shape_of(check_data(official));
        struct wan *m = open_wan(&f32, &s, NULL);
        fault_arm(nth, EIO);
        int r = wan_file_load(m, 0, check_data(fp8_scaled), &report, &err);
        reached = fault_disarm();
        failed += r != 0;
        if (r)
            CHECK(err.code && err.msg[0] && reached);
        model_close(&m->model);
    }
    CHECK(!reached && failed > 10);
}

static void all(void)
{
    RUN(a_shape_follows_from_tensors);
    RUN(heads_must_be_told_or_128_wide);
    RUN(other_shapes_come_back);
    RUN(a_config_tells_the_heads);
    RUN(names_and_prefixes_are_stripped);
    RUN(torch_files_are_read);
    RUN(shards_are_found_by_one_of_them);
    RUN(missing_and_left_over_tensors_are_named);
    RUN(damaged_files_are_refused);
    RUN(nan_is_refused);
    RUN(other_files_are_called_by_their_name);
    RUN(an_fp8_text_encoder_is_one);
    RUN(fewer_channels_in_than_out_are_refused);
    RUN(control_models_are_recognised);
    RUN(every_system_call_may_fail);
}

int main(void)
{
    return run_on_cpu(all);
}
