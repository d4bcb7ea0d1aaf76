/* SPDX-License-Identifier: Apache-2.0
 * GPT models to files and back, bit for bit; files of others; and files that must be refused. */
#include "nn/gpt_file.h"

#include "models.h"
#include <math.h>

static void check_shape(const struct gpt_shape *got, const struct gpt_shape *want)
{
    CHECK_INT(got->layers, want->layers);
    CHECK_INT(got->heads, want->heads);
    CHECK_INT(got->kv_heads, want->kv_heads);
    CHECK_INT(got->width, want->width);
    CHECK_INT(got->ffn, want->ffn);
    CHECK_INT(got->context, want->context);
    CHECK_INT(got->vocab, want->vocab);
    CHECK_INT(got->norm, want->norm);
    CHECK_INT(got->rope, want->rope);
    CHECK_INT(got->swiglu, want->swiglu);
    CHECK_INT(got->bias, want->bias);
    CHECK_INT(got->tied, want->tied);
    CHECK(got->norm_epsilon == want->norm_epsilon);
    CHECK(!want->rope || got->rope_theta == want->rope_theta);
}

/* ---- there and back ---- */

static void there_and_back(struct nn *nn, const struct gpt_shape *shape, enum dtype dtype, const char *type)
{
    struct cairn_error err = { 0 };
    const char *dir = new_folder();
    struct gpt_shape read = { 0 };
    struct param_report report = { 0 };
    struct gpt *m = open_model(nn, shape, NULL);
    fill(&m->params, &m->weights);
    if (gpt_file_save(m, dir, dtype, NULL, &err) || gpt_file_shape(dir, &read, &err)) {
        CHECK_FAIL_("%s", err.msg);
        gpt_close(m);
        return;
    }
    check_shape(&read, shape);
    size_t n;
    char *config = slurp(in_folder(dir, "config.json"), &n), line[64];
    snprintf(line, sizeof(line), "\"model_type\": \"%s\"", type);
    CHECK_HAS(config, line);
    free(config);
    struct gpt *again = open_model(nn, &read, NULL);
    if (gpt_file_load(again, dir, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    check_same(&m->params, &m->weights, &again->weights);
    CHECK_INT(report.strided, 0);
    CHECK_INT(report.skipped, 0);
    param_report_release(&report);
    gpt_close(again);
    gpt_close(m);
}

static void every_kind_comes_back(void)
{
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        int before = check_bad_here;
        there_and_back(&f32, &kinds[i].shape, DTYPE_F32, kinds[i].type);
        there_and_back(&f32, &kinds[i].shape, DTYPE_BF16, kinds[i].type);
        there_and_back(&f32, &kinds[i].shape, DTYPE_F16, kinds[i].type);
        there_and_back(&bf16, &kinds[i].shape, DTYPE_BF16, kinds[i].type);
        if (check_bad_here != before)
            printf("# that was %s\n", kinds[i].name);
    }
}

/* Matrices of several pieces, of which the last is shorter. */
static void large_matrices_come_back(void)
{
    struct gpt_shape s = kinds[0].shape;
    s.layers = 1;
    s.width = 256;
    s.ffn = 1100;
    s.vocab = 2100;
    there_and_back(&f32, &s, DTYPE_F32, "gpt2");
    struct gpt_shape l = kinds[2].shape;
    l.layers = 1;
    l.width = 256;
    l.ffn = 1100;
    l.vocab = 2100;
    there_and_back(&f32, &l, DTYPE_F32, "llama");
}

static void a_file_depends_on_the_weights_alone(void)
{
    struct cairn_error err = { 0 };
    struct gpt *m = open_model(&f32, &kinds[2].shape, NULL);
    char first[128], second[128];
    size_t n[2];
    fill(&m->params, &m->weights);
    snprintf(first, sizeof(first), "%s", new_folder());
    snprintf(second, sizeof(second), "%s", new_folder());
    CHECK(!gpt_file_save(m, first, DTYPE_F32, NULL, &err) &&
          !gpt_file_save(m, second, DTYPE_F32, NULL, &err));
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "config.json" : "model.safetensors";
        char *a = slurp(in_folder(first, name), &n[0]), *b = slurp(in_folder(second, name), &n[1]);
        CHECK(n[0] > 100 && n[0] == n[1] && !memcmp(a, b, n[0]));
        free(a);
        free(b);
    }
    gpt_close(m);
}

static void names_are_hugging_faces(void)
{
    static const struct {
        size_t kind;
        const char *name;
        uint64_t rows, columns;
    } want[] = {
        { 0, "transformer.wte.weight", 21, 32 },
        { 0, "transformer.wpe.weight", 8, 32 },
        { 0, "transformer.h.1.attn.c_attn.weight", 32, 96 },
        { 0, "transformer.h.1.attn.c_attn.bias", 96, 0 },
        { 0, "transformer.h.1.mlp.c_proj.weight", 128, 32 },
        { 0, "transformer.ln_f.bias", 32, 0 },
        { 1, "lm_head.weight", 21, 32 },
        { 2, "model.embed_tokens.weight", 21, 32 },
        { 2, "model.layers.1.self_attn.q_proj.weight", 32, 32 },
        { 2, "model.layers.1.self_attn.v_proj.weight", 16, 32 },
        { 2, "model.layers.0.mlp.gate_proj.weight", 48, 32 },
        { 2, "model.layers.0.mlp.down_proj.weight", 32, 48 },
        { 2, "model.layers.0.post_attention_layernorm.weight", 32, 0 },
        { 2, "model.norm.weight", 32, 0 },
        { 2, "lm_head.weight", 21, 32 },
        { 3, "model.layers.0.self_attn.k_proj.bias", 8, 0 },
    };
    static const int tensors[] = { 28, 29, 21, 0 };
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct cairn_error err = { 0 };
        struct st_file f;
        const char *dir = new_folder();
        struct gpt *m = open_model(&f32, &kinds[want[i].kind].shape, NULL);
        fill(&m->params, &m->weights);
        CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
        gpt_close(m);
        REQUIRE(!st_open(&f, in_folder(dir, "model.safetensors"), &err));
        const struct st_tensor *t = st_find(&f, want[i].name);
        if (!t || t->rank != (want[i].columns ? 2 : 1) || t->shape[0] != want[i].rows ||
            (t->rank == 2 && t->shape[1] != want[i].columns))
            CHECK_FAIL_("%s is not there or has another shape", want[i].name);
        CHECK_STR(st_meta_find(&f, "format"), "pt");
        CHECK_INT(f.n_meta, 1);
        if (tensors[want[i].kind])
            CHECK_INT(f.n_tensors, tensors[want[i].kind]);
        st_close(&f);
    }
}

static int get_sevens(void *context, const struct param *p, float *into, struct cairn_error *err)
{
    (void)err;
    ++*(size_t *)context;
    for (size_t i = 0; i < p->rows * p->columns; i++)
        into[i] = 7;
    return 0;
}

static void an_average_is_saved_instead(void)
{
    struct cairn_error err = { 0 };
    struct param_report report;
    size_t calls = 0;
    float number = 0;
    const struct param_getter sevens = { get_sevens, &calls };
    const char *dir = new_folder();
    struct gpt *m = open_model(&f32, &kinds[0].shape, NULL);
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, &sevens, &err));
    CHECK_INT(calls, m->params.n);
    CHECK(!gpt_file_load(m, dir, &report, &err));
    float *numbers = calloc(m->params.list[m->wte].rows * m->params.list[m->wte].columns, sizeof(float));
    CHECK(!weights_get(&m->weights, &m->params.list[m->wte], numbers, &err));
    number = numbers[17];
    CHECK(number == 7);
    free(numbers);
    param_report_release(&report);
    gpt_close(m);
}

static void bytes_are_made_on_the_way(void)
{
    static const struct gpt_options options[] = { { .quantize = GPT_QUANTIZE_INT8 },
                                                  { .quantize = GPT_QUANTIZE_FP8 } };
    const char *dir = new_folder();
    struct cairn_error err = { 0 };
    struct gpt *m = open_model(&f32, &kinds[2].shape, NULL);
    fill(&m->params, &m->weights);
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        struct param_report report;
        struct gpt *direct = open_model(&f32, &kinds[2].shape, &options[i]);
        struct gpt *loaded = open_model(&f32, &kinds[2].shape, &options[i]);
        fill(&direct->params, &direct->weights);
        CHECK(!gpt_file_load(loaded, dir, &report, &err));
        check_same(&direct->params, &direct->weights, &loaded->weights);
        param_report_release(&report);
        gpt_close(direct);
        gpt_close(loaded);
    }
    gpt_close(m);
}

/* ---- files of others ---- */

static const struct gpt_shape nano = {
    .layers = 2,
    .heads = 2,
    .kv_heads = 2,
    .width = 8,
    .ffn = 32,
    .context = 6,
    .vocab = 11,
    .bias = true,
    .tied = true,
    .norm_epsilon = 1e-5f,
};

static struct gpt *load_nano(const char *file, struct param_report *report)
{
    struct cairn_error err = { 0 };
    struct gpt_shape shape = { .heads = 2 };
    if (gpt_file_shape(check_data(file), &shape, &err)) {
        CHECK_FAIL_("%s", err.msg);
        shape = nano;
    }
    check_shape(&shape, &nano);
    struct gpt *m = open_model(&f32, &nano, NULL);
    if (gpt_file_load(m, check_data(file), report, &err))
        CHECK_FAIL_("%s", err.msg);
    return m;
}

static void nanogpt_and_hugging_face_are_one(void)
{
    struct param_report torch, twin;
    CLEANUP(str_release) struct str said = { 0 };
    struct gpt *a = load_nano("gpt/nano.pt", &torch), *b = load_nano("gpt/nano.safetensors", &twin);
    check_same(&a->params, &a->weights, &b->weights);
    CHECK_INT(torch.tensors, a->params.n);
    CHECK_INT(torch.strided, 6);
    CHECK_INT(torch.skipped, 1);
    CHECK_INT(twin.strided, 0);
    CHECK_INT(twin.skipped, 4);
    param_report_say(&torch, &said);
    CHECK_STR(said.s, "28 tensors; 6 were strided, made contiguous; 1 unused, skipped");
    param_report_release(&torch);
    param_report_release(&twin);
    gpt_close(a);
    gpt_close(b);
}

static void heads_must_be_told(void)
{
    struct cairn_error err = { 0 };
    struct gpt_shape shape = { 0 };
    CHECK(gpt_file_shape(check_data("gpt/nano.pt"), &shape, &err));
    CHECK_HAS(err.msg, "heads");
    CHECK_HAS(err.hint, "model.heads");
    CHECK_HAS(err.hint, "config.json");
}

/* nanoGPT's layout, and without biases, which GPT-2 always has. */
static void nanogpt_may_have_no_biases(void)
{
    static const size_t tried[] = { 0, 6 };
    for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
        struct cairn_error err = { 0 };
        struct param_tensors t = { 0 };
        struct param_report report = { 0 };
        struct gpt_shape s = { .heads = 4 };
        const char *path = in_folder(new_folder(), "ckpt.safetensors");
        struct gpt *m = open_model(&f32, &kinds[tried[i]].shape, NULL);
        struct gpt *again = open_model(&f32, &kinds[tried[i]].shape, NULL);
        fill(&m->params, &m->weights);
        for (size_t k = 0; k < m->params.n; k++) {
            struct param_tensor whole = param_tensor_whole(&m->params.list[k]);
            param_tensors_add(&t, &whole, "%s", whole.param->name);
        }
        CHECK(!param_file_write(&t, &m->weights, NULL, DTYPE_F32, path, &err));
        if (gpt_file_shape(path, &s, &err) || gpt_file_load(again, path, &report, &err))
            CHECK_FAIL_("%s", err.msg);
        check_shape(&s, &kinds[tried[i]].shape);
        check_same(&m->params, &m->weights, &again->weights);
        param_report_release(&report);
        param_tensors_release(&t);
        gpt_close(again);
        gpt_close(m);
    }
}

/* Whether a head is another than the embedding, its numbers tell; of Llama's shape too little is in the tensors. */
static void tensors_tell_what_they_can(void)
{
    static const size_t tried[] = { 1, 2 };
    for (size_t i = 0; i < ARRAY_LEN(tried); i++) {
        struct cairn_error err = { 0 };
        const char *dir = new_folder();
        struct gpt_shape s = { .heads = 4 };
        struct gpt *m = open_model(&f32, &kinds[tried[i]].shape, NULL);
        fill(&m->params, &m->weights);
        CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
        CHECK(!unlink(in_folder(dir, "config.json")));
        CHECK_INT(gpt_file_shape(dir, &s, &err), i == 0 ? 0 : -1);
        if (i == 0)
            check_shape(&s, &kinds[tried[i]].shape);
        else
            CHECK_HAS(err.msg, "needs its config.json");
        gpt_close(m);
    }
}

/* ---- refusals ---- */

/* A file of a model, and what to do to its tensors first. */
struct damage {
    const char *leave_out, *rename, *to; /* of names */
    const char *turn;                    /* swap the two sizes of a shape */
    const char *whole;                   /* store it as i32 */
    bool broken;                         /* a NaN in the last tensor */
};

static void write_damaged(const char *from, const char *to, const struct damage *d)
{
    struct cairn_error err = { 0 };
    struct st_file f;
    struct st_writer w;
    REQUIRE(!st_open(&f, from, &err));
    struct st_tensor *list = calloc(f.n_tensors, sizeof(*list));
    const struct st_tensor **source = calloc(f.n_tensors, sizeof(*source));
    uint64_t shapes[64][2];
    size_t n = 0;
    for (size_t i = 0; i < f.n_tensors; i++) {
        struct st_tensor t = f.tensors[i];
        if (str_eq(t.name, d->leave_out))
            continue;
        source[n] = &f.tensors[i];
        if (str_eq(t.name, d->turn)) {
            shapes[n][0] = t.shape[1];
            shapes[n][1] = t.shape[0];
            t.shape = shapes[n];
        }
        if (str_eq(t.name, d->whole))
            t.dtype = DTYPE_I32, t.dtype_text = "I32";
        if (str_eq(t.name, d->rename))
            t.name = d->to;
        list[n++] = t;
    }
    CHECK(!st_writer_open(&w, to, &(struct st_contents){ .tensors = list, .n = n, .order = ST_ORDER_GIVEN },
                          true, &err));
    for (size_t i = 0; i < n; i++) {
        float *numbers = malloc(source[i]->bytes);
        CHECK(!st_read(&f, source[i], 0, source[i]->elements, numbers, &err));
        if (d->broken && i == n - 1)
            numbers[source[i]->elements - 1] = NAN;
        CHECK(!st_writer_put(&w, i, 0, numbers, source[i]->bytes, &err));
        free(numbers);
    }
    CHECK(!st_writer_commit(&w, &err));
    st_writer_close(&w);
    st_close(&f);
    free(list);
    free(source);
}

static void damaged_files_are_refused_by_name(void)
{
    static const struct {
        struct damage damage;
        const char *said, *also;
    } rows[] = {
        { { .leave_out = "model.layers.1.self_attn.k_proj.weight" },
          "1 missing: model.layers.1.self_attn.k_proj.weight",
          "missing" },
        { { .rename = "model.norm.weight", .to = "model.norm.scale" },
          "1 missing: model.norm.weight",
          "1 not of this model: model.norm.scale" },
        { { .turn = "model.layers.0.mlp.up_proj.weight" },
          "model.layers.0.mlp.up_proj.weight is [32, 48]",
          "[48, 32]" },
        { { .whole = "lm_head.weight" }, "lm_head.weight is I32", "f16" },
        { { .broken = true }, "lm_head.weight has non-finite values", "damaged.safetensors" },
    };
    struct cairn_error err = { 0 };
    char from[256], to[256];
    const char *dir = new_folder();
    struct gpt *m = open_model(&f32, &kinds[2].shape, NULL);
    fill(&m->params, &m->weights);
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
    snprintf(from, sizeof(from), "%s/model.safetensors", dir);
    snprintf(to, sizeof(to), "%s/damaged.safetensors", dir);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct param_report report;
        err = (struct cairn_error){ 0 };
        write_damaged(from, to, &rows[i].damage);
        CHECK_INT(gpt_file_load(m, to, &report, &err), -1);
        CHECK_HAS(err.msg, rows[i].said);
        CHECK_HAS(err.msg, rows[i].also);
        param_report_release(&report);
    }
    gpt_close(m);
}

static void all_missing_names_are_in_the_report(void)
{
    struct cairn_error err = { 0 };
    struct param_report report;
    struct gpt_shape more = nano;
    more.layers = 4;
    struct gpt *m = open_model(&f32, &more, NULL);
    CHECK(gpt_file_load(m, check_data("gpt/nano.safetensors"), &report, &err));
    CHECK_HAS(err.msg, "24 missing: transformer.h.2.ln_1.weight, ");
    size_t lines = 0;
    for (const char *l = report.missing.s; l && *l; l = str_next_line(l))
        lines++;
    CHECK_INT(lines, 24);
    CHECK_HAS(report.missing.s, "transformer.h.3.mlp.c_proj.bias\n");
    CHECK_INT(report.unexpected.len, 0);
    param_report_release(&report);
    gpt_close(m);
}

static void a_file_cut_short_is_refused(void)
{
    struct cairn_error err = { 0 };
    const char *dir = new_folder();
    struct gpt *m = open_model(&f32, &kinds[0].shape, NULL);
    fill(&m->params, &m->weights);
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
    size_t n;
    char *bytes = slurp(in_folder(dir, "model.safetensors"), &n), name[64];
    snprintf(name, sizeof(name), "%s/model.safetensors", str_file_name(dir));
    static const size_t cuts[] = { 1, 1000 };
    size_t lengths[] = { 0, 7, 500, n - cuts[0], n - cuts[1] };
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct param_report report;
        err = (struct cairn_error){ 0 };
        tree_put_bytes(&tmp, name, bytes, lengths[i]);
        CHECK_INT(gpt_file_load(m, dir, &report, &err), -1);
        CHECK_HAS(err.msg, "model.safetensors");
        param_report_release(&report);
    }
    free(bytes);
    gpt_close(m);
}

static void a_folder_without_weights_is_refused(void)
{
    struct cairn_error err = { 0 };
    struct gpt_shape s = { 0 };
    CHECK(gpt_file_shape(new_folder(), &s, &err));
    CHECK_HAS(err.msg, "has no model.safetensors");
    CHECK(gpt_file_shape("/nowhere/at/all", &s, &err));
    CHECK_HAS(err.msg, "/nowhere/at/all does not exist");
}

static void numbers_too_large_for_the_model_are_refused(void)
{
    struct cairn_error err = { 0 };
    struct param_report report;
    struct nn f16;
    const char *dir = new_folder();
    struct gpt *m = open_model(&f32, &kinds[0].shape, NULL);
    const struct param *p = &m->params.list[m->wpe];
    float numbers[8 * 32] = { [7] = 65504 };
    REQUIRE(!nn_open(&f16, cpu, GPU_F16, &err));
    struct gpt *small = open_model(&f16, &kinds[0].shape, NULL);
    CHECK(!weights_put(&m->weights, p, numbers, &err));
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
    CHECK(!gpt_file_load(small, dir, &report, &err));
    numbers[7] = -65536;
    CHECK(!weights_put(&m->weights, p, numbers, &err));
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
    CHECK_INT(gpt_file_load(small, dir, &report, &err), -1);
    CHECK_HAS(err.msg, "transformer.wpe.weight has non-finite values");
    param_report_release(&report);
    gpt_close(small);
    gpt_close(m);
    nn_close(&f16);
}

static void numbers_that_are_not_finite_are_not_saved(void)
{
    struct cairn_error err = { 0 };
    const char *dir = new_folder();
    struct gpt *m = open_model(&f32, &kinds[0].shape, NULL);
    fill(&m->params, &m->weights);
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
    size_t before, after;
    char *old = slurp(in_folder(dir, "model.safetensors"), &before);
    float numbers[32] = { 1e6f };
    const struct param *p = &m->params.list[m->norm.w];
    CHECK(!weights_put(&m->weights, p, numbers, &err));
    CHECK(gpt_file_save(m, dir, DTYPE_F16, NULL, &err));
    CHECK_HAS(err.msg, "transformer.ln_f.weight has values that f16 cannot represent");
    numbers[0] = INFINITY;
    CHECK(!weights_put(&m->weights, p, numbers, &err));
    CHECK(gpt_file_save(m, dir, DTYPE_BF16, NULL, &err));
    CHECK_HAS(err.msg, "transformer.ln_f.weight has non-finite values");
    char *now = slurp(in_folder(dir, "model.safetensors"), &after);
    CHECK(before == after && !memcmp(old, now, before));
    CHECK_INT(tree_count(dir), 2);
    free(old);
    free(now);
    gpt_close(m);
}

static void all(void)
{
    RUN(every_kind_comes_back);
    RUN(large_matrices_come_back);
    RUN(a_file_depends_on_the_weights_alone);
    RUN(names_are_hugging_faces);
    RUN(an_average_is_saved_instead);
    RUN(bytes_are_made_on_the_way);
    RUN(nanogpt_and_hugging_face_are_one);
    RUN(heads_must_be_told);
    RUN(nanogpt_may_have_no_biases);
    RUN(tensors_tell_what_they_can);
    RUN(damaged_files_are_refused_by_name);
    RUN(all_missing_names_are_in_the_report);
    RUN(a_file_cut_short_is_refused);
    RUN(a_folder_without_weights_is_refused);
    RUN(numbers_too_large_for_the_model_are_refused);
    RUN(numbers_that_are_not_finite_are_not_saved);
}

int main(void)
{
    return run_on_cpu(all);
}
