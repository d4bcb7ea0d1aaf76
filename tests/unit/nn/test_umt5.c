/* SPDX-License-Identifier: Apache-2.0
 * umT5 from every form of file, within every budget: the same weights give the same rows.  And files that are wrong, prompts
 * that are wrong, and numbers that are. */
#include "nn/umt5_file.h"
#include "os/fault.h"
#include "umt5_models.h"
#include <errno.h>
#include <math.h>

enum { DIM = 16, LAYERS = 3, VOCAB = 40, PROMPTS = 5, MOST = 60 };
static const size_t lengths[PROMPTS] = { 7, 1, 60, 7, 33 };

static struct rows {
    float at[PROMPTS][MOST * DIM];
    size_t written[PROMPTS];
} wanted;

static struct gpu *gpu;
static struct nn nn32, nn_bf16, nn_f16;
static struct umt5_prompt prompts[PROMPTS];
static uint32_t ids[PROMPTS][MOST];

static int take(void *ctx, size_t prompt, const float *rows, struct cairn_error *err)
{
    struct rows *r = ctx;
    (void)err;
    r->written[prompt]++;
    memcpy(r->at[prompt], rows, lengths[prompt] * DIM * sizeof(float));
    return 0;
}

static int encode(struct nn *nn, const char *path, uint64_t budget, struct rows *out, struct cairn_error *err)
{
    struct umt5 *u = NULL;
    struct umt5_sink sink = { take, out };
    memset(out, 0, sizeof(*out));
    int r =
        umt5_open(&u, nn, path, budget, err) || umt5_encode(u, prompts, PROMPTS, &sink, NULL, err) ? -1 : 0;
    umt5_close(u);
    return r;
}

static bool same(const struct rows *a, const struct rows *b)
{
    for (size_t i = 0; i < PROMPTS; i++)
        if (a->written[i] != b->written[i] || memcmp(a->at[i], b->at[i], lengths[i] * DIM * sizeof(float)))
            return false;
    return true;
}

static double distance(const struct rows *a, const struct rows *b)
{
    double most = 0, error = 0;
    for (size_t i = 0; i < PROMPTS; i++)
        for (size_t k = 0; k < lengths[i] * DIM; k++) {
            most = fmax(most, fabs((double)b->at[i][k]));
            error = fmax(error, fabs((double)a->at[i][k] - (double)b->at[i][k]));
        }
    return error / most;
}

static uint64_t least_budget(const struct umt5_info *info, const struct nn *nn)
{
    struct umt5_layout l;
    struct cairn_error ignored;
    uint64_t no = 0, yes = UINT64_C(1) << 40;
    while (yes - no > 1) {
        uint64_t middle = no + (yes - no) / 2;
        *(umt5_plan(info, nn, middle, &l, &ignored) ? &no : &yes) = middle;
    }
    return yes;
}

static void check_form(const char *what, const char *path)
{
    struct cairn_error err = { 0 };
    static struct rows got;
    struct umt5_info info;
    if (encode(&nn32, path, UMT5_NO_LIMIT, &got, &err))
        CHECK_FAIL_("%s: %s", what, err.msg);
    else if (!same(&got, &wanted))
        CHECK_FAIL_("%s: other rows, by %g", what, distance(&got, &wanted));
    REQUIRE(!umt5_read_info(path, &info, &err));
    CHECK(info.layers == LAYERS && info.dim == DIM && info.vocab == VOCAB && info.heads == 2);
    CHECK(info.attention_dim == 12 && info.ffn == 20);
    if (encode(&nn32, path, least_budget(&info, &nn32), &got, &err))
        CHECK_FAIL_("%s, streamed: %s", what, err.msg);
    else if (!same(&got, &wanted))
        CHECK_FAIL_("%s, streamed: other rows, by %g", what, distance(&got, &wanted));
}

static void test_forms(void)
{
    static const struct {
        const char *what;
        struct form form;
        bool scaled, keeps_fp8;
    } forms[] = {
        { "f32, official", { .matrices = DTYPE_F32, .others = DTYPE_F32 }, false, false },
        { "f16, Hugging Face", { .hf = true, .matrices = DTYPE_F16, .others = DTYPE_F16 }, false, false },
        { "a prefix", { .hf = true, .prefix = "text_encoders.umt5xxl.transformer." }, false, false },
        { "an official prefix", { .prefix = "model." }, false, false },
        { "embed_tokens alone", { .hf = true, .embedding = "encoder.embed_tokens.weight" }, false, false },
        { "embed_tokens too", { .hf = true, .second_embedding = true }, false, false },
        { "a whole umT5", { .hf = true, .decoder = true, .second_embedding = true }, false, false },
        { "ComfyUI f16", { .hf = true, .tokenizer = true, .matrices = DTYPE_F16 }, false, false },
        { "fp8 scaled",
          { .hf = true, .matrices = DTYPE_F8_E4M3, .scale = 0.5f, .tokenizer = true },
          true,
          true },
        { "fp8 with scales by row",
          { .hf = true,
            .matrices = DTYPE_F8_E4M3,
            .scale = 0.5f,
            .scale_rows = true,
            .weight_scale = "weight_scale" },
          true,
          true },
        { "fp8 without scales",
          { .hf = true, .matrices = DTYPE_F8_E4M3, .others = DTYPE_F8_E4M3 },
          false,
          true },
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        struct cairn_error err = { 0 };
        struct umt5_info info;
        char path[300];
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "umt5.safetensors"));
        write_form(path, &forms[i].form);
        check_form(forms[i].what, path);
        REQUIRE(!umt5_read_info(path, &info, &err));
        CHECK(info.scaled == forms[i].scaled && info.keeps_fp8 == forms[i].keeps_fp8);
        CHECK(info.official == !forms[i].form.hf && info.has_tokenizer == forms[i].form.tokenizer);
    }
    check_form("a .pth file", check_data("umt5/tiny.pth"));
}

/* Shards with and without an index, and folders of folders. */
static void test_folders(void)
{
    char root[200], dir[300], path[400];
    struct form f = { .hf = true, .first = 0, .n = 12 };
    snprintf(root, sizeof(root), "%s", new_folder());
    snprintf(dir, sizeof(dir), "%s/text_encoder", root);
    mkdir(dir, 0755);
    snprintf(path, sizeof(path), "%s/model-00001-of-00002.safetensors", dir);
    write_form(path, &f);
    f.first = 12;
    f.n = 100;
    snprintf(path, sizeof(path), "%s/model-00002-of-00002.safetensors", dir);
    write_form(path, &f);
    check_form("a shard", path);
    check_form("a folder of shards", dir);
    check_form("diffusers' root", root);

    char official[200], vae[300];
    snprintf(official, sizeof(official), "%s", new_folder());
    snprintf(path, sizeof(path), "%s/models_t5_umt5-xxl-enc-bf16.safetensors", official);
    write_form(path, &(struct form){ 0 });
    snprintf(vae, sizeof(vae), "%s/other.safetensors", official);
    write_form(vae, &(struct form){ .n = 1 }); /* not an encoder */
    check_form("an official folder", official);

    struct cairn_error err = { 0 };
    static struct rows got;
    snprintf(vae, sizeof(vae), "%s/second.safetensors", official);
    write_form(vae, &(struct form){ .hf = true });
    CHECK(encode(&nn32, official, UMT5_NO_LIMIT, &got, &err) && err.code == CAIRN_EUSAGE);
    CHECK(encode(&nn32, new_folder(), UMT5_NO_LIMIT, &got, &err) && err.code == CAIRN_EUSAGE);
    CHECK(encode(&nn32, "/there/is/none", UMT5_NO_LIMIT, &got, &err) && err.code == CAIRN_EIO);
}

static void test_tokenizer(void)
{
    struct cairn_error err = { 0 };
    CLEANUP(str_release) struct str spiece = { 0 };
    char path[300];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "umt5.safetensors"));
    write_form(path, &(struct form){ .hf = true, .tokenizer = true });
    REQUIRE(!umt5_read_tokenizer(path, &spiece, &err));
    CHECK(spiece.len == 9 && !memcmp(spiece.s, "tokenizer", 9));
    CHECK(umt5_read_tokenizer(check_data(tiny), &spiece, &err) && err.code == CAIRN_ELACK);
}

/* Each is refused, and the message names what is wrong. */
static void test_bad_files(void)
{
    static const struct {
        struct form form;
        const char *says[2];
    } bad[] = {
        { { .drop = "blocks.1.attn.k.weight" }, { "blocks.1.attn.k.weight", "missing" } },
        { { .hf = true,
            .rename = "blocks.2.ffn.fc2.weight",
            .to = "encoder.block.2.layer.1.DenseReluDense.wO.weight" },
          { "encoder.block.2.layer.1.DenseReluDense.wo.weight", "wO" } },
        { { .drop = "blocks.0.pos_embedding.embedding.weight" }, { "pos_embedding", "missing" } },
        { { .drop = "token_embedding.weight" }, { "token_embedding.weight", "missing" } },
        { { .drop = "norm.weight" }, { "norm.weight", "missing" } },
        { { .rename = "norm.weight", .to = "blocks.7.norm1.weight" }, { "missing", "blocks.3" } },
        { { .poison = "blocks.1.ffn.fc1.weight", .poison_with = NAN }, { "blocks.1.ffn.fc1.weight", "" } },
        { { .poison = "blocks.2.norm1.weight", .poison_with = INFINITY }, { "blocks.2.norm1.weight", "" } },
        { { .hf = true, .matrices = DTYPE_F8_E4M3, .scale = 0.5f, .weight_scale = "wrong_scale" },
          { "scale", "" } },
        { { .n = 1 }, { "token_embedding.weight", "" } },
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        static struct rows got;
        struct cairn_error err = { 0 };
        char path[300];
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "umt5.safetensors"));
        write_form(path, &bad[i].form);
        CHECK(encode(&nn32, path, UMT5_NO_LIMIT, &got, &err) && err.code == CAIRN_EFORMAT);
        for (int k = 0; k < 2; k++)
            if (!strstr(err.msg, bad[i].says[k]))
                CHECK_FAIL_("case %zu: \"%s\" has no \"%s\"", i, err.msg, bad[i].says[k]);
    }
}

/* T5 has a bias in its first block alone; a Wan transformer and a VAE are no text encoders. */
static void test_others(void)
{
    static struct rows got;
    struct cairn_error err = { 0 };
    char path[300];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "t5.safetensors"));
    write_form(path, &(struct form){ .hf = true, .drop = "blocks.1.pos_embedding.embedding.weight" });
    CHECK(encode(&nn32, path, UMT5_NO_LIMIT, &got, &err) && err.code == CAIRN_EFORMAT &&
          strstr(err.msg, "T5"));
    CHECK(encode(&nn32, check_data("wan/tiny.safetensors"), UMT5_NO_LIMIT, &got, &err) &&
          err.code == CAIRN_EFORMAT);
    CHECK(strstr(err.msg, "Wan transformer") != NULL);
}

/* From all on the device down to one layer at a time, and peak memory obeys. */
static void test_budgets(void)
{
    struct cairn_error err = { 0 };
    struct umt5_info info;
    struct umt5_layout l;
    static struct rows got;
    char path[300];
    snprintf(path, sizeof(path), "%s", check_data(tiny));
    size_t seen = 0;
    REQUIRE(!umt5_read_info(path, &info, &err));
    uint64_t least = least_budget(&info, &nn32);
    REQUIRE(!umt5_plan(&info, &nn32, UMT5_NO_LIMIT, &l, &err));
    uint64_t most = l.weights + l.work;
    CHECK(l.resident == LAYERS && l.embedding && l.windows == 0);
    for (uint64_t budget = least; budget <= most; budget += budget < 2 * least ? 1000 : least) {
        struct umt5 *u = NULL;
        struct umt5_sink sink = { take, &got };
        memset(&got, 0, sizeof(got));
        uint64_t before = gpu_allocated(gpu).bytes;
        if (umt5_open(&u, &nn32, path, budget, &err) || umt5_encode(u, prompts, PROMPTS, &sink, NULL, &err))
            CHECK_FAIL_("%llu bytes: %s", (unsigned long long)budget, err.msg);
        CHECK(same(&got, &wanted));
        CHECK(gpu_allocated(gpu).bytes - before <= budget);
        seen |= (size_t)1 << (umt5_layout(u)->resident + 4 * umt5_layout(u)->windows);
        umt5_close(u);
        CHECK(gpu_allocated(gpu).bytes == before);
    }
    CHECK(seen & ((size_t)1 << (0 + 4 * 1))); /* one layer at a time */
    CHECK(seen & ((size_t)1 << (0 + 4 * 2)));
    CHECK(seen & ((size_t)1 << 3));
    CHECK(encode(&nn32, path, least - 1, &got, &err) && err.code == CAIRN_ENOMEM);
}

/* umT5-XXL on the cards that people have: nothing is allocated for a plan. */
static void test_full_size(void)
{
    struct umt5_info xxl = {
        .vocab = 256384, .dim = 4096, .attention_dim = 4096, .heads = 64, .ffn = 10240, .layers = 24
    };
    struct umt5_layout l;
    struct cairn_error err = { 0 };
    CHECK(!umt5_plan(&xxl, &nn_bf16, UINT64_C(7) << 30, &l, &err) && l.resident < 24 && l.windows == 2);
    CHECK(l.weights + l.work <= UINT64_C(7) << 30 && l.rows >= 512);
    CHECK(!umt5_plan(&xxl, &nn_bf16, UINT64_C(2) << 30, &l, &err) && l.weights + l.work <= UINT64_C(2) << 30);
    CHECK(l.host_most <= UINT64_C(2) << 30);
    CHECK(!umt5_plan(&xxl, &nn_bf16, UINT64_C(24) << 30, &l, &err) && l.resident == 24 && l.embedding);
    CHECK(umt5_plan(&xxl, &nn_bf16, 100 << 20, &l, &err) && err.code == CAIRN_ENOMEM);
    xxl.keeps_fp8 = true;
    CHECK(!umt5_plan(&xxl, &nn_bf16, UINT64_C(7) << 30, &l, &err) && l.resident == 24);
}

/* 16-bit storage, also with fp8 on the device.  bf16 is computed in f16. */
static void test_narrow(void)
{
    struct cairn_error err = { 0 };
    static struct rows got, other;
    char path[300];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "umt5.safetensors"));
    write_form(path, &(struct form){ .hf = true, .matrices = DTYPE_F8_E4M3, .scale = 0.5f });
    const char *const paths[] = { check_data(tiny), path };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        CHECK(!encode(&nn_f16, paths[i], UMT5_NO_LIMIT, &got, &err) && distance(&got, &wanted) < 0.01);
        CHECK(!encode(&nn_bf16, paths[i], UMT5_NO_LIMIT, &other, &err) && same(&got, &other));
        CHECK(nn_bf16.storage == GPU_BF16);
        printf("# %.3g\n", distance(&got, &wanted));
    }
}

static size_t many_written;
static int take_many(void *ctx, size_t prompt, const float *rows, struct cairn_error *err)
{
    (void)err;
    (void)ctx;
    size_t which = prompt % PROMPTS;
    for (size_t i = 0; i < lengths[which] * DIM; i++)
        CHECK(fabsf(rows[i] - wanted.at[which][i]) < 1e-4f);
    many_written++;
    return 0;
}

static uint64_t last_done, last_total;
static void note(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    CHECK(done > last_done || !last_done);
    last_done = done;
    last_total = total;
}
static bool stop(void *ctx)
{
    (void)ctx;
    return true;
}

/* Many passes, resident and streamed: hidden states go through the host then. */
static void test_many(void)
{
    enum { TURNS = 100 };
    struct cairn_error err = { 0 };
    static struct umt5_prompt many[TURNS * PROMPTS];
    struct umt5_info info;
    for (size_t i = 0; i < ARRAY_LEN(many); i++)
        many[i] = prompts[i % PROMPTS];
    REQUIRE(!umt5_read_info(check_data(tiny), &info, &err));
    for (int least = 0; least < 2; least++) {
        struct umt5 *u = NULL;
        struct umt5_sink sink = { take_many, NULL };
        struct umt5_hooks hooks = { .progress = note };
        many_written = last_done = 0;
        REQUIRE(!umt5_open(&u, &nn32, check_data(tiny), least ? least_budget(&info, &nn32) : UMT5_NO_LIMIT,
                           &err));
        CHECK(!umt5_encode(u, many, ARRAY_LEN(many), &sink, &hooks, &err));
        CHECK(many_written == ARRAY_LEN(many) && last_done == last_total && last_total);
        hooks = (struct umt5_hooks){ .stop = stop };
        CHECK(umt5_encode(u, many, ARRAY_LEN(many), &sink, &hooks, &err));
        umt5_close(u);
    }
}

static void test_bad_prompts(void)
{
    struct cairn_error err = { 0 };
    struct umt5 *u = NULL;
    static struct rows got;
    struct umt5_sink sink = { take, &got };
    uint32_t large[] = { 3, VOCAB, 1 };
    static uint32_t endless[1 << 13];
    REQUIRE(!umt5_open(&u, &nn32, check_data(tiny), UMT5_NO_LIMIT, &err));
    CHECK(umt5_encode(u, &(struct umt5_prompt){ large, 3 }, 1, &sink, NULL, &err) &&
          err.code == CAIRN_EUSAGE);
    CHECK(umt5_encode(u, &(struct umt5_prompt){ large, 0 }, 1, &sink, NULL, &err) &&
          err.code == CAIRN_EUSAGE);
    CHECK(umt5_encode(u, &(struct umt5_prompt){ endless, 1 << 13 }, 1, &sink, NULL, &err) &&
          err.code == CAIRN_EUSAGE);
    CHECK(!umt5_encode(u, NULL, 0, &sink, NULL, &err));
    umt5_close(u);
}

/* Weights that overflow, first to NaN and then to rows of zeros: the error names the prompt and the layer. */
static void test_odd_rows(void)
{
    static const struct {
        const char *tensor;
        float value;
    } odd[] = {
        { "blocks.1.ffn.gate.0.weight", 3.3e38f },
        { "blocks.1.ffn.fc2.weight", 1e30f },
        { "blocks.1.norm2.weight", 3e38f },
    };
    static struct rows got;
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        struct cairn_error err = { 0 };
        char path[300];
        snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "umt5.safetensors"));
        write_form(path, &(struct form){ .matrices = DTYPE_F32,
                                         .others = DTYPE_F32,
                                         .poison = odd[i].tensor,
                                         .poison_with = odd[i].value });
        CHECK(encode(&nn32, path, UMT5_NO_LIMIT, &got, &err) && err.code == CAIRN_EFORMAT);
        if (!strstr(err.msg, "prompt ") || !strstr(err.msg, "layer "))
            CHECK_FAIL_("case %zu: %s", i, err.msg);
        printf("# %s\n", err.msg);
    }
}

/* f32 may be able to do what f16 is not. */
static void test_beyond_f16(void)
{
    static struct rows got;
    struct nn *narrow[] = { &nn_bf16, &nn_f16 };
    char path[300];
    snprintf(path, sizeof(path), "%s", in_folder(new_folder(), "umt5.safetensors"));
    write_form(path, &(struct form){ .matrices = DTYPE_F32,
                                     .others = DTYPE_F32,
                                     .poison = "blocks.1.attn.v.weight",
                                     .poison_with = 6e4f });
    for (size_t i = 0; i < ARRAY_LEN(narrow); i++) {
        struct cairn_error err = { 0 };
        CHECK(encode(narrow[i], path, UMT5_NO_LIMIT, &got, &err) && err.code == CAIRN_EDEVICE);
        CHECK(strstr(err.msg, "NaN or Inf") && strstr(err.msg, "layer 1"));
        printf("# %s\n", err.msg);
    }
    struct cairn_error err = { 0 };
    CHECK(!encode(&nn32, path, UMT5_NO_LIMIT, &got, &err));
}

/* Each of the calls of the system fails once: an error, or the same rows. */
static void test_every_system_call_may_fail(void)
{
    static struct rows got;
    struct cairn_error err = { 0 };
    struct umt5_info info;
    REQUIRE(!umt5_read_info(check_data(tiny), &info, &err));
    uint64_t least = least_budget(&info, &nn32);
    bool reached = true;
    size_t failed = 0;
    for (int nth = 1; reached && nth < 2000; nth += nth < 40 ? 1 : 23) {
        err = (struct cairn_error){ 0 };
        fault_arm(nth, EIO);
        int r = encode(&nn32, check_data(tiny), nth % 2 ? least : UMT5_NO_LIMIT, &got, &err);
        reached = fault_disarm();
        CHECK(r ? err.code && err.msg[0] : same(&got, &wanted));
        failed += r != 0;
    }
    CHECK(failed > 0);
}

/* Calls of the driver fail, and then the device is lost: errors, and everything can be closed. */
static void test_every_device_call_may_fail(void)
{
    static const char *const calls[] = {
        "hipModuleLaunchKernel", "hipMemcpyHtoDAsync", "hipMemcpyDtoHAsync",
        "hipStreamSynchronize",  "hipEventRecord",     "hipStreamWaitEvent"
    };
    static struct rows got;
    struct cairn_error err = { 0 };
    struct umt5_info info;
    if (gpu_info(gpu)->api != GPU_API_HIP)
        SKIP("this is not the fake HIP");
    REQUIRE(!umt5_read_info(check_data(tiny), &info, &err));
    uint64_t least = least_budget(&info, &nn32);
    for (size_t i = 0; i < 4 * ARRAY_LEN(calls); i++) {
        char words[64];
        err = (struct cairn_error){ 0 };
        snprintf(words, sizeof(words), "fail=%s:%zu:1", calls[i / 4], 1 + i % 4 * 3);
        setenv("CAIRN_FAKE_HIP", words, 1);
        int r = encode(&nn32, check_data(tiny), i % 2 ? least : UMT5_NO_LIMIT, &got, &err);
        setenv("CAIRN_FAKE_HIP", "", 1);
        if (r ? !err.code || !err.msg[0] : !same(&got, &wanted))
            CHECK_FAIL_("%s: %d, \"%s\", rows differ by %g", words, r, err.msg, distance(&got, &wanted));
    }
    struct gpu *other = NULL;
    struct nn nn = { 0 };
    struct umt5 *u = NULL;
    struct umt5_sink sink = { take, &got };
    REQUIRE(!gpu_open("hip:0", &other, &err) && !nn_open(&nn, other, GPU_F32, &err));
    REQUIRE(!umt5_open(&u, &nn, check_data(tiny), least, &err));
    setenv("CAIRN_FAKE_HIP", "fail=hipStreamSynchronize:3:719", 1);
    CHECK(umt5_encode(u, prompts, PROMPTS, &sink, NULL, &err) && err.code == CAIRN_EDEVICE);
    setenv("CAIRN_FAKE_HIP", "", 1);
    CHECK(gpu_lost(other) != NULL);
    umt5_close(u);
    nn_close(&nn);
    gpu_close(other);
}

/* On a device of its own: the peak is within the budget. */
static void test_peak(void)
{
    static struct rows got;
    struct cairn_error err = { 0 };
    struct umt5_info info;
    struct gpu *other = NULL;
    struct nn nn = { 0 };
    REQUIRE(!umt5_read_info(check_data(tiny), &info, &err));
    REQUIRE(!gpu_open(gpu_info(gpu)->name, &other, &err) && !nn_open(&nn, other, GPU_F32, &err));
    uint64_t least = least_budget(&info, &nn), before = gpu_allocated(other).bytes;
    CHECK(!encode(&nn, check_data(tiny), least, &got, &err));
    uint64_t scratch = gpu_allocated(other).bytes - before; /* of the CPU's matmuls */
    CHECK(gpu_info(gpu)->api == GPU_API_HOST || !scratch);
    CHECK(gpu_allocated(other).most_bytes - before - scratch <= least);
    nn_close(&nn);
    gpu_close(other);
}

static void test_buckets(void)
{
    CHECK(umt5_bucket(0) == 0 && umt5_bucket(-7) == 7 && umt5_bucket(7) == 23);
    CHECK(umt5_bucket(-8) == 8 && umt5_bucket(-11) == 8 && umt5_bucket(-12) == 9);
    CHECK(umt5_bucket(-90) == 14 && umt5_bucket(-91) == 15 && umt5_bucket(-100000) == 15 &&
          umt5_bucket(100000) == 31);
}

int main(int argc, char **argv)
{
    struct cairn_error err = { 0 };
    uint32_t state = 7;
    if (gpu_open(argc > 1 ? argv[1] : "cpu", &gpu, &err) || nn_open(&nn32, gpu, GPU_F32, &err) ||
        nn_open(&nn_bf16, gpu, GPU_BF16, &err) || nn_open(&nn_f16, gpu, GPU_F16, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    tree_make(&tmp);
    for (size_t i = 0; i < PROMPTS; i++) {
        for (size_t k = 0; k < lengths[i]; k++) {
            state = state * 1664525 + 1013904223;
            ids[i][k] = k + 1 == lengths[i] ? 1 : 2 + (state >> 20) % (VOCAB - 2);
        }
        prompts[i] = (struct umt5_prompt){ ids[i], lengths[i] };
    }
    if (encode(&nn32, check_data(tiny), UMT5_NO_LIMIT, &wanted, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 99;
    }
    RUN(test_buckets);
    RUN(test_forms);
    RUN(test_folders);
    RUN(test_tokenizer);
    RUN(test_bad_files);
    RUN(test_others);
    RUN(test_budgets);
    RUN(test_full_size);
    RUN(test_narrow);
    RUN(test_many);
    RUN(test_bad_prompts);
    RUN(test_odd_rows);
    RUN(test_beyond_f16);
    RUN(test_peak);
    RUN(test_every_system_call_may_fail);
    RUN(test_every_device_call_may_fail);
    tree_remove(&tmp);
    nn_close(&nn32);
    nn_close(&nn_bf16);
    nn_close(&nn_f16);
    gpu_close(gpu);
    return check_done();
}
