/* SPDX-License-Identifier: Apache-2.0
 * Which files a path of a Wan model leads to, which model they are, and what is told about it. */
#include "nn/wan_find.h"

#include "os/fault.h"
#include "wan_models.h"
#include <errno.h>

static const struct wan_shape t2v = {
    .layers = 2,
    .heads = 1,
    .width = 128,
    .ffn = 20,
    .in = 16,
    .out = 16,
    .text_width = 10,
    .time_width = 6,
    .text_rows = 512,
    .clip_rows = 257,
};
static char t2v_file[256], i2v_file[256];

/* A file of a shape that others can be linked to. */
static void make(const struct wan_shape *s, char path[256])
{
    snprintf(path, 256, "%s", in_folder(new_folder(), "model.safetensors"));
    struct wan *m = open_wan(&f32, s, NULL);
    fill(&m->params[0], &m->weights[0]);
    save_wan(m, path);
    model_close(&m->model);
}

/* root/relative -> file */
static void put(const char *root, const char *relative, const char *file)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", root, relative);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        mkdir(path, 0755);
    }
    CHECK(!symlink(file, path));
}

static const char *new_root(void)
{
    static char root[4][256];
    static int turn;
    char *r = root[turn++ % 4];
    snprintf(r, 256, "%s", new_folder());
    return r;
}

/* ---- names ---- */

static void names_tell_experts(void)
{
    static const struct {
        const char *path;
        enum wan_expert expert;
        int version;
    } rows[] = {
        { "wan2.2_t2v_high_noise_14B_fp8_scaled.safetensors", WAN_EXPERT_HIGH, 22 },
        { "wan2.2_t2v_low_noise_14B_fp16.safetensors", WAN_EXPERT_LOW, 22 },
        { "Wan2_2-T2V-A14B_HIGH_fp8_e4m3fn_scaled_KJ.safetensors", WAN_EXPERT_HIGH, 22 },
        { "Wan2_2-I2V-A14B-LOW_bf16.safetensors", WAN_EXPERT_LOW, 22 },
        { "Wan2.2-T2V-A14B-HighNoise.safetensors", WAN_EXPERT_HIGH, 22 },
        { "wan22T2VLowNoise.safetensors", WAN_EXPERT_LOW, 22 },
        { "myWAN2214BT2VHigh.safetensors", WAN_EXPERT_HIGH, 22 },
        { "T2V-HIGHNOISE.safetensors", WAN_EXPERT_HIGH, 0 },
        { "/m/Wan2.2-T2V-A14B/high_noise_model/diffusion_pytorch_model-00001-of-00006.safetensors",
          WAN_EXPERT_HIGH, 22 },
        { "/m/wan/transformer_2/diffusion_pytorch_model.safetensors", WAN_EXPERT_LOW, 0 },
        { "/m/high/model.safetensors", WAN_EXPERT_HIGH, 0 },
        { "/m/high-speed/model.safetensors", WAN_EXPERT_NONE, 0 },
        { "/m/high_noise/low_noise.safetensors", WAN_EXPERT_LOW, 0 },
        { "Wan2_1-T2V-14B_fp8.safetensors", WAN_EXPERT_NONE, 21 },
        { "wan2.1_t2v_14B_bf16.safetensors", WAN_EXPERT_NONE, 21 },
        { "Wan2.1-low-vram.safetensors", WAN_EXPERT_NONE, 21 },
        { "wan_2_14B_flow_yellow_highres.safetensors", WAN_EXPERT_NONE, 0 },
        { "wan21_slow.safetensors", WAN_EXPERT_NONE, 21 },
        { "high_low_merge.safetensors", WAN_EXPERT_NONE, 0 },
        { "taiwan.safetensors", WAN_EXPERT_NONE, 0 },
        { "", WAN_EXPERT_NONE, 0 },
        { "///", WAN_EXPERT_NONE, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (wan_expert_by_name(rows[i].path) != rows[i].expert)
            CHECK_FAIL_("%s: another expert: %d", rows[i].path, wan_expert_by_name(rows[i].path));
        if (wan_version_by_name(rows[i].path) != rows[i].version)
            CHECK_FAIL_("%s: another version: %d", rows[i].path, wan_version_by_name(rows[i].path));
    }
}

/* ---- layouts of folders ---- */

static void expect(const struct wan_request *r, const char *low, const char *high)
{
    struct cairn_error err = { 0 };
    CLEANUP(wan_files_release) struct wan_files f = { 0 };
    const char *want[] = { low ? low : high, low ? high : NULL };
    if (wan_find(r, &f, &err)) {
        CHECK_FAIL_("%s", err.msg);
        return;
    }
    CHECK_INT(f.n, want[1] ? 2 : 1);
    for (size_t i = 0; i < f.n && want[i]; i++)
        if (!str_ends(f.bases[i].path, want[i]))
            CHECK_FAIL_("%s is not %s", f.bases[i].path, want[i]);
    CHECK_INT(f.n_warnings, 0);
    if (f.n == 2) {
        CHECK_INT(f.bases[0].kind.expert, WAN_EXPERT_LOW);
        CHECK_INT(f.bases[1].kind.expert, WAN_EXPERT_HIGH);
        CHECK_INT(f.bases[0].kind.task, WAN_T2V_A14B);
    } else {
        CHECK_INT(f.bases[0].kind.expert, low ? WAN_EXPERT_LOW : WAN_EXPERT_HIGH);
    }
}

static void check_layout(const char *root, const char *low, const char *high)
{
    expect(&(struct wan_request){ .path = root }, low, high);
    expect(&(struct wan_request){ .path = root, .expert = "both" }, low, high);
    expect(&(struct wan_request){ .path = root, .expert = "low" }, low, NULL);
    expect(&(struct wan_request){ .path = root, .expert = "high" }, NULL, high);
}

static void folders_have_two_experts(void)
{
    const char *root = new_root();
    put(root, "transformer/diffusion_pytorch_model.safetensors", t2v_file);
    put(root, "transformer_2/diffusion_pytorch_model.safetensors", t2v_file);
    put(root, "model_index.json", "/dev/null");
    check_layout(root, "transformer_2/diffusion_pytorch_model.safetensors",
                 "transformer/diffusion_pytorch_model.safetensors");
    /* One of its folders. */
    char below[300];
    snprintf(below, sizeof(below), "%s/transformer", root);
    expect(&(struct wan_request){ .path = below }, NULL, "transformer/diffusion_pytorch_model.safetensors");
    snprintf(below, sizeof(below), "%s/transformer_2/", root);
    expect(&(struct wan_request){ .path = below }, "transformer_2/diffusion_pytorch_model.safetensors", NULL);
    root = new_root();
    put(root, "high_noise_model/diffusion_pytorch_model-00001-of-00001.safetensors", t2v_file);
    put(root, "low_noise_model/diffusion_pytorch_model-00001-of-00001.safetensors", t2v_file);
    put(root, "Wan2.1_VAE.pth", "/dev/null");
    check_layout(root, "low_noise_model/diffusion_pytorch_model-00001-of-00001.safetensors",
                 "high_noise_model/diffusion_pytorch_model-00001-of-00001.safetensors");
    root = new_root();
    put(root, "wan2.2_t2v_high_noise.safetensors", t2v_file);
    put(root, "wan2.2_t2v_low_noise.safetensors", t2v_file);
    check_layout(root, "wan2.2_t2v_low_noise.safetensors", "wan2.2_t2v_high_noise.safetensors");
}

static void a_folder_has_one_model(void)
{
    struct cairn_error err = { 0 };
    struct wan_files f;
    const char *root = new_root();
    put(root, "transformer/diffusion_pytorch_model.safetensors", t2v_file);
    CHECK(!wan_find(&(struct wan_request){ .path = root }, &f, &err));
    CHECK_INT(f.n, 1);
    CHECK_INT(f.bases[0].kind.expert, WAN_EXPERT_NONE);
    CHECK(str_ends(f.bases[0].path, "transformer/diffusion_pytorch_model.safetensors"));
    wan_files_release(&f);
    /* Beside other things. */
    root = new_root();
    put(root, "m.safetensors", t2v_file);
    CHECK(!file_write(in_folder(root, "vae.safetensors"), "\2\0\0\0\0\0\0\0{}", 10, &err));
    CHECK(!wan_find(&(struct wan_request){ .path = root }, &f, &err));
    CHECK(f.n == 1 && str_ends(f.bases[0].path, "/m.safetensors"));
    wan_files_release(&f);
}

static void shards_need_no_index(void)
{
    struct cairn_error err = { 0 };
    struct wan_files f;
    const char *root = new_root();
    for (size_t i = 0; i < 2; i++) {
        char name[300];
        snprintf(name, sizeof(name), "%s/diffusion_pytorch_model-0000%zu-of-00002.safetensors", root, i + 1);
        copy_changed(t2v_file, name, &(struct changes){ .first = i * 40, .n = i ? 1000 : 40 });
    }
    CHECK(!wan_find(&(struct wan_request){ .path = root }, &f, &err));
    CHECK(f.n == 1 && f.bases[0].info.files == 2);
    wan_files_release(&f);
    static const char index[] =
        "{\"weight_map\": {\"head.modulation\": "
        "\"diffusion_pytorch_model-00002-of-00002.safetensors\", "
        "\"patch_embedding.bias\": \"diffusion_pytorch_model-00001-of-00002.safetensors\"}}";
    const char *path = in_folder(root, "diffusion_pytorch_model.safetensors.index.json");
    CHECK(!file_write(path, index, strlen(index), &err));
    if (wan_find(&(struct wan_request){ .path = root }, &f, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK(f.n == 1 && f.bases[0].info.files == 2 && str_ends(f.bases[0].path, ".index.json"));
    wan_files_release(&f);
}

static void two_paths_are_two_experts(void)
{
    struct cairn_error err = { 0 };
    struct wan_files f;
    const char *root = new_root();
    put(root, "a_low.safetensors", t2v_file);
    put(root, "b_high.safetensors", t2v_file);
    put(root, "plain.safetensors", t2v_file);
    char a[300], b[300], plain[300];
    snprintf(a, sizeof(a), "%s/a_low.safetensors", root);
    snprintf(b, sizeof(b), "%s/b_high.safetensors", root);
    snprintf(plain, sizeof(plain), "%s/plain.safetensors", root);
    expect(&(struct wan_request){ .path = a, .high_noise_path = b }, "a_low.safetensors",
           "b_high.safetensors");
    expect(&(struct wan_request){ .path = a, .high_noise_path = b, .expert = "high" }, NULL,
           "b_high.safetensors");
    expect(&(struct wan_request){ .path = plain, .high_noise_path = b }, "plain.safetensors",
           "b_high.safetensors");
    expect(&(struct wan_request){ .path = b }, NULL, "b_high.safetensors");
    expect(&(struct wan_request){ .path = plain, .expert = "high", .task = "t2v-A14B" }, NULL,
           "plain.safetensors");
    expect(&(struct wan_request){ .path = "", .high_noise_path = b }, NULL, "b_high.safetensors");
    /* Swapped; both named alike; one alone that is named otherwise. */
    const struct wan_request odd[] = { { .path = b, .high_noise_path = a },
                                       { .path = b, .high_noise_path = b },
                                       { .path = b, .expert = "low" },
                                       { .path = a, .expert = "high" } };
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        CHECK(!wan_find(&odd[i], &f, &err));
        CHECK_INT(f.n_warnings, 1);
        if (f.n_warnings)
            CHECK_HAS(f.warnings[0], i == 3 ? a : b);
        CHECK_STR(f.bases[0].path, odd[i].path);
        wan_files_release(&f);
    }
}

/* ---- kinds ---- */

static void kinds_are_told_by_what_decides(void)
{
    static const struct {
        const char *name;
        bool i2v;
        const char *task, *expert;
        enum wan_task want;
        enum wan_known by;
        enum wan_expert want_expert;
        size_t warnings;
    } rows[] = {
        { "m.safetensors", false, NULL, NULL, WAN_T2V_1_3B, WAN_BY_NOTHING, WAN_EXPERT_NONE, 0 },
        { "m.safetensors", false, "T2V-14b", NULL, WAN_T2V_14B, WAN_BY_SETTING, WAN_EXPERT_NONE, 0 },
        { "m.safetensors", false, "t2v-A14B", "low", WAN_T2V_A14B, WAN_BY_SETTING, WAN_EXPERT_LOW, 0 },
        { "m.safetensors", false, "t2v-A14B", NULL, WAN_T2V_A14B, WAN_BY_SETTING, WAN_EXPERT_NONE, 0 },
        { "m.safetensors", false, "t2v-14B", "low", WAN_T2V_14B, WAN_BY_SETTING, WAN_EXPERT_NONE, 1 },
        { "m_high_noise.safetensors", false, NULL, NULL, WAN_T2V_A14B, WAN_BY_NAME, WAN_EXPERT_HIGH, 0 },
        { "m_high_noise.safetensors", false, "", "auto", WAN_T2V_A14B, WAN_BY_NAME, WAN_EXPERT_HIGH, 0 },
        { "wan2.1_t2v.safetensors", false, NULL, NULL, WAN_T2V_1_3B, WAN_BY_NAME, WAN_EXPERT_NONE, 0 },
        { "wan2.2_low.safetensors", false, NULL, NULL, WAN_T2V_A14B, WAN_BY_NAME, WAN_EXPERT_LOW, 0 },
        { "wan2.2.safetensors", false, NULL, NULL, WAN_T2V_A14B, WAN_BY_NAME, WAN_EXPERT_NONE, 0 },
        { "i2v-low.safetensors", true, NULL, NULL, WAN_I2V_A14B, WAN_BY_TENSORS, WAN_EXPERT_LOW, 0 },
        { "i2v.safetensors", true, NULL, "high", WAN_I2V_A14B, WAN_BY_TENSORS, WAN_EXPERT_HIGH, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cairn_error err = { 0 };
        CLEANUP(wan_files_release) struct wan_files f = { 0 };
        CLEANUP(str_release) struct str said = { 0 };
        const char *root = new_root();
        char path[300];
        put(root, rows[i].name, rows[i].i2v ? i2v_file : t2v_file);
        snprintf(path, sizeof(path), "%s/%s", root, rows[i].name);
        if (wan_find(&(struct wan_request){ .path = path, .task = rows[i].task, .expert = rows[i].expert },
                     &f, &err)) {
            CHECK_FAIL_("%zu: %s", i, err.msg);
            continue;
        }
        const struct wan_kind *k = &f.bases[0].kind;
        if (k->task != rows[i].want || k->by != rows[i].by || k->expert != rows[i].want_expert ||
            f.n_warnings != rows[i].warnings)
            CHECK_FAIL_("row %zu: %s, known by %d, expert %d, %zu warnings", i, wan_task_info(k->task)->name,
                        k->by, k->expert, f.n_warnings);
        wan_kind_say(k, &f.bases[0].info, &said);
        CHECK_HAS(said.s, wan_task_info(rows[i].want)->title);
        CHECK_HAS(said.s, "hidden size 128");
    }
}

static void the_tensors_show_the_rest(void)
{
    struct cairn_error err = { 0 };
    CLEANUP(wan_files_release) struct wan_files f = { 0 };
    CHECK(!wan_find(&(struct wan_request){ .path = check_data(official), .heads = CLIP_HEADS }, &f, &err));
    CHECK_INT(f.bases[0].kind.task, WAN_I2V_14B);
    CHECK_INT(f.bases[0].kind.by, WAN_BY_TENSORS);
    CHECK_INT(f.n_warnings, 0);
    CHECK_INT(wan_task_info(WAN_TI2V_5B)->shape.in, 48);
    CHECK(wan_task_info(WAN_T2V_A14B)->boundary == 0.875f && !wan_task_info(WAN_T2V_14B)->boundary);
    for (int i = 0; i < WAN_TASKS; i++)
        CHECK(!wan_shape_check(&wan_task_info((enum wan_task)i)->shape, &err));
}

/* ---- what must be refused ---- */

static void check_refused(const struct wan_request *r, enum cairn_code code, const char *object)
{
    struct cairn_error err = { 0 };
    CLEANUP(wan_files_release) struct wan_files f = { 0 };
    CHECK(wan_find(r, &f, &err));
    CHECK_INT(err.code, code);
    CHECK_HAS(err.msg, object);
    CHECK(err.hint[0]);
}

static void what_does_not_fit_is_refused(void)
{
    const char *root = new_root(), *empty = new_root(), *many = new_root();
    check_refused(&(struct wan_request){ .path = "" }, CAIRN_EUSAGE, "model.path");
    check_refused(&(struct wan_request){ .path = "/no/such/file" }, CAIRN_EIO, "/no/such/file");
    check_refused(&(struct wan_request){ .path = t2v_file, .high_noise_path = "/no/such" }, CAIRN_EIO,
                  "/no/such");
    check_refused(&(struct wan_request){ .path = t2v_file, .expert = "both" }, CAIRN_EUSAGE, "model.expert");
    check_refused(&(struct wan_request){ .path = t2v_file, .high_noise_path = i2v_file }, CAIRN_EFORMAT,
                  i2v_file);
    check_refused(&(struct wan_request){ .path = t2v_file, .task = "i2v-A14B" }, CAIRN_EUSAGE, "i2v-A14B");
    check_refused(&(struct wan_request){ .path = i2v_file, .task = "i2v-14B" }, CAIRN_EUSAGE, "i2v-14B");
    check_refused(&(struct wan_request){ .path = t2v_file, .task = "t2v-A15B" }, CAIRN_EUSAGE, "model.task");
    check_refused(&(struct wan_request){ .path = t2v_file, .high_noise_path = t2v_file, .task = "t2v-14B" },
                  CAIRN_EUSAGE, "t2v-14B");
    check_refused(&(struct wan_request){ .path = empty }, CAIRN_EUSAGE, empty);
    put(many, "a.safetensors", t2v_file);
    put(many, "b.safetensors", t2v_file);
    put(many, "c.safetensors", t2v_file);
    check_refused(&(struct wan_request){ .path = many }, CAIRN_EUSAGE, "b.safetensors");
    put(root, "low_noise_model/m.safetensors", t2v_file);
    expect(&(struct wan_request){ .path = root }, "low_noise_model/m.safetensors", NULL);
    check_refused(&(struct wan_request){ .path = root, .expert = "high" }, CAIRN_EUSAGE, "high");
    check_refused(&(struct wan_request){ .path = root, .expert = "both" }, CAIRN_EUSAGE, "high");
    check_refused(&(struct wan_request){ .path = t2v_file, .high_noise_path = root }, CAIRN_EUSAGE, root);
}

/* A failed system call is an error of its own, or is survived with the same result. */
static void every_system_call_may_fail(void)
{
    const char *root = new_root();
    put(root, "transformer/diffusion_pytorch_model.safetensors", t2v_file);
    put(root, "transformer_2/diffusion_pytorch_model.safetensors", t2v_file);
    bool reached = true;
    for (int nth = 1; reached && nth < 1000; nth++) {
        struct cairn_error err = { 0 };
        CLEANUP(wan_files_release) struct wan_files f = { 0 };
        fault_arm(nth, EIO);
        int r = wan_find(&(struct wan_request){ .path = root }, &f, &err);
        reached = fault_disarm();
        if (r)
            CHECK(err.code && err.msg[0]);
        else
            CHECK(f.n == 2);
        if (!reached)
            CHECK(!r);
    }
    CHECK(!reached);
}

/* Without files: which experts a plan is for. */
static void files_that_are_missing_are_assumed(void)
{
    static const struct {
        struct wan_request r;
        size_t n;
        enum wan_expert first;
    } rows[] = {
        { { .task = "t2v-A14B" }, 2, WAN_EXPERT_LOW },
        { { .task = "t2v-A14B", .path = "/none/wan" }, 2, WAN_EXPERT_LOW },
        { { .task = "t2v-A14B", .path = "/none/low_noise.safetensors", .expert = "auto" },
          1,
          WAN_EXPERT_LOW },
        { { .task = "i2v-A14B", .path = "/none/high_noise.safetensors" }, 1, WAN_EXPERT_HIGH },
        { { .task = "t2v-A14B", .high_noise_path = "/none/b.safetensors" }, 1, WAN_EXPERT_HIGH },
        { { .task = "t2v-A14B", .path = "/none/low_noise.pth", .high_noise_path = "/none/b.pth" },
          2,
          WAN_EXPERT_LOW },
        { { .task = "t2v-A14B", .path = "/none/low_noise.pth", .expert = "high" }, 1, WAN_EXPERT_HIGH },
        { { .task = "t2v-14B", .path = "/none/low_noise.pth" }, 1, WAN_EXPERT_NONE },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cairn_error err = { 0 };
        CLEANUP(wan_files_release) struct wan_files f = { 0 };
        CHECK(!wan_assume(&rows[i].r, &f, &err) && f.n == rows[i].n &&
              f.bases[0].kind.expert == rows[i].first);
    }
}

static void all(void)
{
    struct wan_shape i2v = t2v;
    i2v.in = 36;
    make(&t2v, t2v_file);
    make(&i2v, i2v_file);
    RUN(names_tell_experts);
    RUN(folders_have_two_experts);
    RUN(a_folder_has_one_model);
    RUN(shards_need_no_index);
    RUN(two_paths_are_two_experts);
    RUN(kinds_are_told_by_what_decides);
    RUN(the_tensors_show_the_rest);
    RUN(what_does_not_fit_is_refused);
    RUN(files_that_are_missing_are_assumed);
    RUN(every_system_call_may_fail);
}

int main(void)
{
    return run_on_cpu(all);
}
