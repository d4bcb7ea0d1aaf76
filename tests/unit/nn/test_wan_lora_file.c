/* SPDX-License-Identifier: Apache-2.0
 * LoRAs of Wan to files of each dialect and back; files of other models, ranks and experts; and each outside
 * call of saving and loading fails once. */
#include "nn/wan_lora_file.h"

#include "on_cpu.h"
#include "os/fault.h"
#include "tensor/lora.h"
#include <errno.h>
#include <math.h>

static const enum lora_dialect dialects[] = { LORA_COMFY, LORA_MUSUBI, LORA_DIFFUSERS };
static const char *const only_q[] = { "self_attn.q" };
static const struct lora_options half = { .rank = 4, .alpha = 2 };
static const struct lora_options third = { .rank = 3, .alpha = 1 };
static const struct lora_options q_of_half = { .rank = 4, .alpha = 2, .targets = only_q, .n_targets = 1 };

static struct wan_shape shape_of(size_t layers, bool clip)
{
    struct wan_shape s = wan_shape_common();
    s.layers = layers;
    s.heads = 2;
    s.width = 16;
    s.ffn = 24;
    s.in = s.out = 4;
    s.text_width = 8;
    s.clip_width = clip ? 6 : 0;
    return s;
}

static struct wan *open_wan(struct nn *nn, const struct wan_shape *s, const struct lora_options *lora,
                            size_t experts)
{
    struct cairn_error err = { 0 };
    struct wan *m = NULL;
    struct wan_options o = { .experts = experts, .lora = lora, .lora_per_expert = experts > 1 };
    if (wan_new(nn, s, &o, &m, &err) || model_alloc(&m->model, NULL, &err) || wan_init_lora(m, 1, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    return m;
}

static void fill_lora(struct wan *m)
{
    for (size_t i = 0; i < m->model.n_loras; i++)
        fill(&m->loras[i].params, &m->loras[i].weights);
}

static const char *save_as(const struct wan *m, size_t set, enum lora_dialect d, enum dtype dtype)
{
    struct cairn_error err = { 0 };
    const char *path = in_folder(new_folder(), "lora.safetensors");
    struct wan_lora_save o = { .path = path, .dialect = d, .dtype = dtype };
    if (wan_lora_save(m, set, &o, &err))
        CHECK_FAIL_("%s", err.msg);
    return path;
}

/* ---- round trips ---- */

static void every_dialect_comes_back(void)
{
    struct wan_shape s = shape_of(2, true);
    for (size_t i = 0; i < 2 * ARRAY_LEN(dialects); i++) {
        struct cairn_error err = { 0 };
        struct param_report report = { 0 };
        struct nn *nn = i % 2 ? &bf16 : &f32;
        struct wan *m = open_wan(nn, &s, &half, 1), *again = open_wan(nn, &s, &half, 1);
        fill_lora(m);
        const char *path = save_as(m, 0, dialects[i / 2], storage_dtype(nn->storage));
        if (wan_lora_load(again, 0, path, &report, &err))
            CHECK_FAIL_("%s", err.msg);
        check_same(&m->loras[0].params, &m->loras[0].weights, &again->loras[0].weights);
        CHECK_INT(report.tensors, 2 * 12 * 2);
        CHECK_INT(report.rescaled, dialects[i / 2] == LORA_DIFFUSERS ? 12 * 2 : 0);
        CHECK(!report.missing.len);
        param_report_release(&report);
        model_close(&m->model);
        model_close(&again->model);
    }
}

static void check_alpha(const struct st_file *f, const char *name, float want)
{
    struct cairn_error err = { 0 };
    float alpha = 0;
    const struct st_tensor *t = st_find(f, name);
    REQUIRE(t && t->rank == 0 && t->dtype == DTYPE_F32 && !st_read(f, t, 0, 1, &alpha, &err));
    CHECK(alpha == want);
}

static void files_have_the_names_of_their_dialect(void)
{
    static const struct {
        const char *down, *up, *alpha;
    } rows[] = {
        { "diffusion_model.blocks.1.self_attn.q.lora_A.weight",
          "diffusion_model.blocks.1.self_attn.q.lora_B.weight",
          "diffusion_model.blocks.1.self_attn.q.alpha" },
        { "lora_unet_blocks_1_self_attn_q.lora_down.weight", "lora_unet_blocks_1_self_attn_q.lora_up.weight",
          "lora_unet_blocks_1_self_attn_q.alpha" },
        { "transformer.blocks.1.attn1.to_q.lora_A.weight", "transformer.blocks.1.attn1.to_q.lora_B.weight",
          NULL },
    };
    struct wan_shape s = shape_of(2, false);
    struct wan *m = open_wan(&f32, &s, &half, 1);
    for (size_t i = 0; i < ARRAY_LEN(dialects); i++) {
        struct cairn_error err = { 0 };
        struct st_file f;
        REQUIRE(!st_open(&f, save_as(m, 0, dialects[i], DTYPE_F16), &err));
        const struct st_tensor *down = st_find(&f, rows[i].down), *up = st_find(&f, rows[i].up);
        CHECK_INT(f.n_tensors, (rows[i].alpha ? 3 : 2) * 10 * 2);
        REQUIRE(down && up);
        CHECK(down->dtype == DTYPE_F16 && down->shape[0] == 4 && down->shape[1] == 16);
        CHECK(up->dtype == DTYPE_F16 && up->shape[0] == 16 && up->shape[1] == 4);
        if (rows[i].alpha)
            check_alpha(&f, rows[i].alpha, 2);
        st_close(&f);
    }
    model_close(&m->model);
}

static void metadata_of_the_caller_wins(void)
{
    static const struct st_meta meta[] = { { "ss_steps", "7" }, { "ss_base_model_version", "wan2.2" } };
    struct cairn_error err = { 0 };
    struct wan_shape s = shape_of(1, false);
    struct wan *m = open_wan(&f32, &s, &third, 1);
    struct wan_lora_save o = { .dtype = DTYPE_BF16, .meta = meta, .n_meta = ARRAY_LEN(meta) };
    size_t n[2];
    char *bytes[2];
    for (int i = 0; i < 2; i++) {
        o.path = in_folder(new_folder(), "lora.safetensors");
        CHECK(!wan_lora_save(m, 0, &o, &err));
        bytes[i] = slurp(o.path, &n[i]);
    }
    CHECK(n[0] && n[0] == n[1] && !memcmp(bytes[0], bytes[1], n[0]));
    struct st_file f;
    REQUIRE(!st_open(&f, o.path, &err));
    CHECK_STR(st_meta_find(&f, "ss_steps"), "7");
    CHECK_STR(st_meta_find(&f, "ss_base_model_version"), "wan2.2");
    CHECK_STR(st_meta_find(&f, "ss_network_module"), "networks.lora_wan");
    CHECK_STR(st_meta_find(&f, "ss_network_dim"), "3");
    CHECK_STR(st_meta_find(&f, "ss_network_alpha"), "1");
    CHECK_STR(st_meta_find(&f, "format"), "pt");
    st_close(&f);
    free(bytes[0]);
    free(bytes[1]);
    model_close(&m->model);
}

/* ---- the same change ---- */

/* scale * b * a of a module, rows × columns. */
static double *delta_of(const struct wan *m, const struct lora_site *site, size_t *n)
{
    struct cairn_error err = { 0 };
    const struct lora *l = &m->loras[0];
    const struct param *a = &l->params.list[site->pairs[0].a], *b = &l->params.list[site->pairs[0].b];
    float *down = malloc(a->rows * a->columns * sizeof(*down)),
          *up = malloc(b->rows * b->columns * sizeof(*up));
    double *delta = calloc(b->rows * a->columns, sizeof(*delta));
    CHECK(!weights_get(&l->weights, a, down, &err) && !weights_get(&l->weights, b, up, &err));
    for (size_t r = 0; r < b->rows; r++)
        for (size_t c = 0; c < a->columns; c++)
            for (size_t k = 0; k < l->rank; k++)
                delta[r * a->columns + c] +=
                    (double)(l->scale * up[r * l->rank + k]) * (double)down[k * a->columns + c];
    *n = b->rows * a->columns;
    free(down);
    free(up);
    return delta;
}

static void check_same_delta(const struct wan *x, const struct wan *y)
{
    for (int i = 0; i < WAN_MATRICES; i++) {
        size_t n = 0;
        double worst = 0, size = 0;
        if (!wan_has_matrix(&x->shape, (enum wan_matrix)i))
            continue;
        double *p = delta_of(x, &x->blocks[0].lora[0][i], &n), *q = delta_of(y, &y->blocks[0].lora[0][i], &n);
        for (size_t k = 0; k < n; k++) {
            worst = fmax(worst, fabs(p[k] - q[k]));
            size = fmax(size, fabs(p[k]));
        }
        CHECK(size > 0.1 && worst <= 1e-6 * size);
        free(p);
        free(q);
    }
}

/* From a file of one alpha into a model of another, through each dialect. */
static void another_alpha_is_rescaled(void)
{
    static const struct lora_options others[] = { { .rank = 3, .alpha = 1 },
                                                  { .rank = 3, .alpha = 3 },
                                                  { .rank = 3, .alpha = 0.1f },
                                                  { .rank = 3, .alpha = 48 } };
    struct wan_shape s = shape_of(1, false);
    struct wan *m = open_wan(&f32, &s, &third, 1);
    fill_lora(m);
    for (size_t i = 0; i < ARRAY_LEN(others) * ARRAY_LEN(dialects); i++) {
        struct cairn_error err = { 0 };
        struct param_report report = { 0 };
        const struct lora_options *o = &others[i / ARRAY_LEN(dialects)];
        enum lora_dialect d = dialects[i % ARRAY_LEN(dialects)];
        struct wan *other = open_wan(&f32, &s, o, 1);
        CHECK(!wan_lora_load(other, 0, save_as(m, 0, d, DTYPE_F32), &report, &err));
        float scale = d == LORA_DIFFUSERS ? 1 : m->loras[0].scale;
        CHECK_INT(report.rescaled, other->loras[0].scale == scale ? 0 : 10);
        check_same_delta(m, other);
        param_report_release(&report);
        model_close(&other->model);
    }
    model_close(&m->model);
}

/* The values of a moving average, say. */
static int all_fives(void *context, const struct param *p, float *into, struct cairn_error *err)
{
    (void)context, (void)err;
    for (size_t i = 0; i < p->rows * p->columns; i++)
        into[i] = 5;
    return 0;
}

static void values_may_come_from_elsewhere(void)
{
    struct cairn_error err = { 0 };
    struct param_report report = { 0 };
    struct wan_shape s = shape_of(1, false);
    struct wan *m = open_wan(&f32, &s, &half, 1);
    struct param_getter from = { all_fives, NULL };
    const char *path = in_folder(new_folder(), "lora-ema.safetensors");
    struct wan_lora_save o = { .path = path, .dtype = DTYPE_F32, .from = &from };
    CHECK(!wan_lora_save(m, 0, &o, &err) && !wan_lora_load(m, 0, path, &report, &err));
    const struct param *p = &m->loras[0].params.list[1];
    float value[16 * 4];
    CHECK(!weights_get(&m->loras[0].weights, p, value, &err) && value[0] == 5 && value[63] == 5);
    param_report_release(&report);
    model_close(&m->model);
}

/* ---- files that do not fit ---- */

/* Loading must fail, and say this. */
static void check_refused(const char *path, const struct wan_shape *s, const struct lora_options *o,
                          const char *const said[3])
{
    struct cairn_error err = { 0 };
    struct param_report report = { 0 };
    struct wan *m = open_wan(&f32, s, o, 1);
    CHECK_INT(wan_lora_load(m, 0, path, &report, &err), -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    for (int i = 0; i < 3 && said[i]; i++)
        CHECK_HAS(err.msg, said[i]);
    param_report_release(&report);
    model_close(&m->model);
}

static void another_lora_is_refused(void)
{
    struct wan_shape small = shape_of(1, false), more = shape_of(2, false), image = shape_of(1, true);
    struct wan_shape wide = small;
    wide.width = 32;
    struct wan *m = open_wan(&f32, &more, &half, 1), *i2v = open_wan(&f32, &image, &half, 1);
    const char *path = save_as(m, 0, LORA_MUSUBI, DTYPE_F32);
    check_refused(path, &more, &third, (const char *const[3]){ "blocks.0.", "rank 4", "lora.rank is 3" });
    check_refused(path, &wide, &half, (const char *const[3]){ "blocks.0.", "32", "hidden size 16" });
    check_refused(path, &small, &half, (const char *const[3]){ "blocks.1.", "hidden size 16" });
    check_refused(path, &more, &q_of_half, (const char *const[3]){ "blocks.0.", "lora.targets" });
    path = save_as(i2v, 0, LORA_COMFY, DTYPE_F32);
    check_refused(path, &small, &half, (const char *const[3]){ "cross_attn.k_img" });
    model_close(&m->model);
    model_close(&i2v->model);
}

/* A file of matrices of 4 × 16 and 16 × 4 under these names. */
static const char *write_file(const char *const *names, size_t n, const struct st_meta *meta)
{
    static const uint64_t down[] = { 4, 16 }, up[] = { 16, 4 };
    static float values[64];
    struct cairn_error err = { 0 };
    struct st_writer w = { .out = FILE_OUT_NONE };
    struct st_tensor tensors[8];
    const char *path = in_folder(new_folder(), "lora.safetensors");
    for (size_t i = 0; i < n; i++)
        tensors[i] = (struct st_tensor){ .name = names[i],
                                         .dtype = DTYPE_F32,
                                         .dtype_text = "F32",
                                         .shape = i % 2 ? up : down,
                                         .rank = 2,
                                         .elements = 64,
                                         .bytes = sizeof(values) };
    const struct st_contents c = {
        .tensors = tensors, .n = n, .meta = meta, .n_meta = meta ? 1 : 0, .order = ST_ORDER_GIVEN
    };
    CHECK(!st_writer_open(&w, path, &c, true, &err));
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 64; k++)
            values[k] = (float)(i + 1);
        CHECK(!st_writer_put(&w, i, 0, values, sizeof(values), &err));
    }
    CHECK(!st_writer_commit(&w, &err));
    st_writer_close(&w);
    return path;
}

static void a_lora_of_another_model_is_refused(void)
{
    static const char *const gpt[] = { "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight",
                                       "base_model.model.transformer.h.0.attn.c_attn.lora_B.weight" };
    static const char *const norm[] = { "diffusion_model.blocks.0.self_attn.q.lora_A.weight",
                                        "diffusion_model.blocks.0.self_attn.q.lora_B.weight",
                                        "diffusion_model.blocks.0.norm3.diff" };
    static const struct st_meta version = { "ss_base_model_version", "gpt2" };
    struct wan_shape s = shape_of(1, false);
    check_refused(write_file(gpt, 2, &version), &s, &half,
                  (const char *const[3]){ "h.0.attn.c_attn", "gpt2" });
    check_refused(write_file(gpt, 2, NULL), &s, &half, (const char *const[3]){ "h.0.attn.c_attn" });
    check_refused(write_file(norm, 3, NULL), &s, &half, (const char *const[3]){ "norm3.diff" });
}

/* The LoRA of a text-to-video model has no layers of the image: they start as new ones. */
static void modules_that_a_file_lacks_stay(void)
{
    struct cairn_error err = { 0 };
    struct param_report report = { 0 };
    struct wan_shape text = shape_of(1, false), image = shape_of(1, true);
    struct wan *t2v = open_wan(&f32, &text, &half, 1), *i2v = open_wan(&f32, &image, &half, 1);
    float before[64], after[64];
    const struct lora *l = &i2v->loras[0];
    const struct param *a = params_find(&l->params, "blocks.0.cross_attn.k_img.lora_A.weight");
    fill_lora(t2v);
    REQUIRE(a && !weights_get(&l->weights, a, before, &err));
    CHECK(!wan_lora_load(i2v, 0, save_as(t2v, 0, LORA_COMFY, DTYPE_F32), &report, &err));
    CHECK_STR(report.missing.s, "blocks.0.cross_attn.k_img\nblocks.0.cross_attn.v_img\n");
    CHECK(!weights_get(&l->weights, a, after, &err) && before[0] != 0 &&
          !memcmp(before, after, sizeof(after)));
    param_report_release(&report);
    model_close(&t2v->model);
    model_close(&i2v->model);
}

static void only_partial_musubi_files_need_a_note(void)
{
    struct wan_shape s = shape_of(2, true);
    struct wan *whole = open_wan(&f32, &s, &half, 1), *some = open_wan(&f32, &s, &q_of_half, 1);
    CHECK(!wan_lora_note(whole, 0, LORA_MUSUBI));
    CHECK(wan_lora_note(some, 0, LORA_MUSUBI));
    CHECK(!wan_lora_note(some, 0, LORA_COMFY) && !wan_lora_note(some, 0, LORA_DIFFUSERS));
    model_close(&whole->model);
    model_close(&some->model);
}

/* ---- experts ---- */

/* The first value of a set's q matrix after a file was loaded; 0: refused. */
static float load_expert(struct wan *m, size_t set, const char *path)
{
    struct cairn_error err = { 0 };
    struct param_report report = { 0 };
    float values[64] = { 0 };
    const struct lora *l = &m->loras[set];
    int r = wan_lora_load(m, set, path, &report, &err);
    param_report_release(&report);
    if (r)
        return 0;
    CHECK(!weights_get(&l->weights, params_find(&l->params, "blocks.0.self_attn.q.lora_A.weight"), values,
                       &err));
    return values[0];
}

/* The scale of the files is 1 and the model's 1/2: A is multiplied by 2. */
static void a_file_may_hold_both_experts(void)
{
    static const char *const toolkit[] = {
        "diffusion_model.transformer_1.blocks.0.self_attn.q.lora_A.weight",
        "diffusion_model.transformer_1.blocks.0.self_attn.q.lora_B.weight",
        "diffusion_model.transformer_2.blocks.0.self_attn.q.lora_A.weight",
        "diffusion_model.transformer_2.blocks.0.self_attn.q.lora_B.weight",
    };
    static const char *const diffusers[] = {
        "transformer_2.blocks.0.attn1.to_q.lora_A.weight",
        "transformer_2.blocks.0.attn1.to_q.lora_B.weight",
        "transformer.blocks.0.attn1.to_q.lora_A.weight",
        "transformer.blocks.0.attn1.to_q.lora_B.weight",
    };
    struct wan_shape s = shape_of(1, false);
    struct wan *two = open_wan(&f32, &s, &half, 2), *one = open_wan(&f32, &s, &half, 1);
    const char *path = write_file(toolkit, 4, NULL);
    CHECK(load_expert(two, 0, path) == 2 * 3); /* low noise: transformer_2 */
    CHECK(load_expert(two, 1, path) == 2 * 1);
    CHECK(load_expert(one, 0, path) == 0); /* which of them? */
    path = write_file(diffusers, 4, NULL);
    CHECK(load_expert(two, 0, path) == 2 * 1);
    CHECK(load_expert(two, 1, path) == 2 * 3);
    path = write_file(toolkit, 2, NULL); /* high noise alone */
    CHECK(load_expert(two, 0, path) == 0);
    CHECK(load_expert(two, 1, path) == 2 * 1);
    CHECK(load_expert(one, 0, path) == 2 * 1);
    model_close(&two->model);
    model_close(&one->model);
}

static void each_expert_has_its_file(void)
{
    struct wan_shape s = shape_of(1, false);
    struct wan *two = open_wan(&f32, &s, &half, 2), *again = open_wan(&f32, &s, &half, 2);
    fill(&two->loras[1].params, &two->loras[1].weights);
    for (size_t set = 0; set < 2; set++) {
        struct cairn_error err = { 0 };
        struct param_report report = { 0 };
        CHECK(!wan_lora_load(again, set, save_as(two, set, LORA_ANY, DTYPE_F32), &report, &err));
        check_same(&two->loras[set].params, &two->loras[set].weights, &again->loras[set].weights);
        param_report_release(&report);
    }
    model_close(&two->model);
    model_close(&again->model);
}

/* ---- faults ---- */

static void every_call_may_fail(void)
{
    struct cairn_error err = { 0 };
    struct wan_shape s = shape_of(1, false);
    struct wan *m = open_wan(&f32, &s, &q_of_half, 1);
    const char *dir = new_folder();
    struct wan_lora_save o = { .path = in_folder(dir, "lora.safetensors"), .dtype = DTYPE_F32 };
    CHECK(!wan_lora_save(m, 0, &o, &err));
    for (int loading = 0; loading < 2; loading++) {
        int nth = 0;
        for (bool reached = true; reached && nth < 200;) {
            struct param_report report = { 0 };
            err = (struct cairn_error){ 0 };
            fault_arm(++nth, EIO);
            int r = loading ? wan_lora_load(m, 0, o.path, &report, &err) : wan_lora_save(m, 0, &o, &err);
            reached = fault_disarm();
            if (r ? !err.msg[0] : reached && err.msg[0])
                CHECK_FAIL_("call %d: returned %d, message \"%s\"", nth, r, err.msg);
            CHECK_INT(tree_count(dir), 1);
            param_report_release(&report);
        }
        CHECK(nth > 3 && nth < 200);
    }
    model_close(&m->model);
}

static void all(void)
{
    RUN(every_dialect_comes_back);
    RUN(files_have_the_names_of_their_dialect);
    RUN(metadata_of_the_caller_wins);
    RUN(another_alpha_is_rescaled);
    RUN(values_may_come_from_elsewhere);
    RUN(another_lora_is_refused);
    RUN(a_lora_of_another_model_is_refused);
    RUN(modules_that_a_file_lacks_stay);
    RUN(only_partial_musubi_files_need_a_note);
    RUN(a_file_may_hold_both_experts);
    RUN(each_expert_has_its_file);
    RUN(every_call_may_fail);
}

int main(void)
{
    return run_on_cpu(all);
}
