/* SPDX-License-Identifier: Apache-2.0
 * Parameters whose tensors have more dimensions in the file than in memory, there and back; and those that are multiples
 * of their tensors. */
#include "nn/param_file.h"

#include "models.h"

enum { WIDTH = 6 };
static const struct {
    const char *name;
    enum param_kind kind;
    size_t rows, columns;
    int rank;
    uint64_t shape[PARAM_DIMS];
} rows[] = {
    { "patch_embedding.weight", PARAM_MATRIX, WIDTH, 12, 5, { WIDTH, 3, 1, 2, 2 } },
    { "patch_embedding.bias", PARAM_VECTOR, 1, WIDTH, 0, { 0 } },
    { "blocks.0.modulation", PARAM_VECTOR, 1, 6 * WIDTH, 3, { 1, 6, WIDTH } },
    { "head.modulation", PARAM_MATRIX, 2, WIDTH, 3, { 1, 2, WIDTH } },
    { "head.head.weight", PARAM_MATRIX, 8, WIDTH, 0, { 0 } },
    { "conv.weight", PARAM_QUANTIZED, 4, 16, 4, { 4, 4, 2, 2 } },
    { "deep", PARAM_MATRIX, 4, 4, 8, { 1, 2, 1, 2, 1, 2, 2, 1 } },
};
enum { N = sizeof(rows) / sizeof(rows[0]) };

static void add_params(struct params *p)
{
    for (size_t i = 0; i < N; i++)
        params_add(p, rows[i].kind, rows[i].rows, rows[i].columns, "%s", rows[i].name);
}

static void add_tensor(struct param_tensors *t, const struct params *p, size_t i)
{
    struct param_tensor whole = param_tensor_whole(&p->list[i]);
    whole.rank = rows[i].rank;
    memcpy(whole.shape, rows[i].shape, sizeof(whole.shape));
    param_tensors_add(t, &whole, "%s", rows[i].name);
}

static void add_tensors(struct param_tensors *t, const struct params *p)
{
    for (size_t i = 0; i < N; i++)
        add_tensor(t, p, i);
}

static void check_file(const char *path, enum dtype dtype)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    struct cairn_error err = { 0 };
    REQUIRE(!source_open(&s, path, &err));
    CHECK_INT(s.n_tensors, N);
    for (size_t i = 0; i < N; i++) {
        const struct st_tensor *t = source_find(&s, rows[i].name);
        bool vector = rows[i].kind == PARAM_VECTOR;
        const uint64_t plain[] = { vector ? rows[i].columns : rows[i].rows, rows[i].columns };
        const uint64_t *shape = rows[i].rank ? rows[i].shape : plain;
        int rank = rows[i].rank ? rows[i].rank : vector ? 1 : 2;
        REQUIRE(t);
        CHECK_INT(t->dtype, dtype);
        CHECK_INT(t->rank, rank);
        CHECK(!memcmp(t->shape, shape, (size_t)rank * sizeof(*shape)));
        CHECK_INT(t->elements, rows[i].rows * rows[i].columns);
    }
}

static void there_and_back(struct nn *nn, enum dtype dtype)
{
    struct cairn_error err = { 0 };
    CLEANUP(params_release) struct params p = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    CLEANUP(weights_close) struct weights w = { 0 }, again = { 0 };
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    const char *path = in_folder(new_folder(), "model.safetensors");
    add_params(&p);
    add_tensors(&t, &p);
    REQUIRE(!weights_open(&w, cpu, &p, nn->storage, WEIGHTS_INT8, &err));
    REQUIRE(!weights_open(&again, cpu, &p, nn->storage, WEIGHTS_INT8, &err));
    fill(&p, &w);
    if (param_file_write(&t, &w, NULL, dtype, path, &err))
        CHECK_FAIL_("%s", err.msg);
    check_file(path, dtype);
    REQUIRE(!source_open(&s, path, &err));
    if (param_file_read(&t, &again, &s, &(struct param_file_rules){ .under = "" }, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK_INT(report.tensors, N);
    check_same(&p, &w, &again);
}

static void every_rank_comes_back(void)
{
    there_and_back(&f32, DTYPE_F32);
    there_and_back(&bf16, DTYPE_BF16);
}

/* Two halves of one matrix, each a tensor of three dimensions. */
static void parts_have_shapes_too(void)
{
    struct cairn_error err = { 0 };
    CLEANUP(params_release) struct params p = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors t = { 0 };
    CLEANUP(weights_close) struct weights w = { 0 }, again = { 0 };
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    const char *path = in_folder(new_folder(), "parts.safetensors");
    params_add(&p, PARAM_MATRIX, 8, 6, "both");
    for (size_t i = 0; i < 2; i++) {
        struct param_tensor part = {
            .param = &p.list[0], .first = 4 * i, .rows = 4, .rank = 3, .shape = { 2, 4, 3 }
        };
        param_tensors_add(&t, &part, "part.%zu", i);
    }
    REQUIRE(!weights_open(&w, cpu, &p, GPU_F32, WEIGHTS_INT8, &err));
    REQUIRE(!weights_open(&again, cpu, &p, GPU_F32, WEIGHTS_INT8, &err));
    fill(&p, &w);
    REQUIRE(!param_file_write(&t, &w, NULL, DTYPE_F32, path, &err));
    REQUIRE(!source_open(&s, path, &err));
    CHECK(s.tensors[0].rank == 3 && s.tensors[0].shape[1] == 4);
    CHECK(!param_file_read(&t, &again, &s, &(struct param_file_rules){ .under = "" }, &report, &err));
    check_same(&p, &w, &again);
}

/* The file has `rank` dimensions of `shape`, and the list those of rows[0]; the message must show both. */
static void read_other_shape(int rank, const uint64_t *shape, const char *text)
{
    struct cairn_error err = { 0 };
    CLEANUP(params_release) struct params p = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors saved = { 0 }, wanted = { 0 };
    CLEANUP(weights_close) struct weights w = { 0 };
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    const char *path = in_folder(new_folder(), "other.safetensors");
    params_add(&p, rows[0].kind, rows[0].rows, rows[0].columns, "%s", rows[0].name);
    struct param_tensor other = param_tensor_whole(&p.list[0]);
    other.rank = rank;
    memcpy(other.shape, shape, (size_t)rank * sizeof(*shape));
    param_tensors_add(&saved, &other, "%s", rows[0].name);
    add_tensor(&wanted, &p, 0);
    REQUIRE(!weights_open(&w, cpu, &p, GPU_F32, WEIGHTS_INT8, &err));
    REQUIRE(!param_file_write(&saved, &w, NULL, DTYPE_F32, path, &err));
    REQUIRE(!source_open(&s, path, &err));
    CHECK(param_file_read(&wanted, &w, &s, &(struct param_file_rules){ .under = "" }, &report, &err) == -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, rows[0].name);
    CHECK_HAS(err.msg, "[6, 3, 1, 2, 2]");
    CHECK_HAS(err.msg, text);
}

static void another_shape_is_refused(void)
{
    read_other_shape(2, (const uint64_t[]){ 6, 12 }, "[6, 12]");
    read_other_shape(4, (const uint64_t[]){ 6, 3, 2, 2 }, "[6, 3, 2, 2]");
    read_other_shape(5, (const uint64_t[]){ 6, 3, 2, 1, 2 }, "[6, 3, 2, 1, 2]");
    read_other_shape(6, (const uint64_t[]){ 6, 3, 1, 2, 2, 1 }, "[6, 3, 1, 2, 2, 1]");
}

/* A matrix and a vector of 4 numbers from `first` on; a file of them is read by parameters of another factor. */
static int read_multiplied(enum gpu_storage storage, float first, float factor, float got[2][4],
                           struct cairn_error *err)
{
    CLEANUP(params_release) struct params p = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors saved = { 0 }, wanted = { 0 };
    CLEANUP(weights_close) struct weights w = { 0 };
    CLEANUP(source_close) struct tensor_source s = { 0 };
    CLEANUP(param_report_release) struct param_report report = { 0 };
    const char *path = in_folder(new_folder(), "multiplied.safetensors");
    const float numbers[] = { first, -0.5f, 0, 3 };
    params_add(&p, PARAM_MATRIX, 2, 2, "w");
    params_add(&p, PARAM_VECTOR, 1, 4, "b");
    if (weights_open(&w, cpu, &p, storage, WEIGHTS_INT8, err))
        return -1;
    for (size_t i = 0; i < 2; i++) {
        struct param_tensor t = param_tensor_whole(&p.list[i]);
        param_tensors_add(&saved, &t, "%s", p.list[i].name);
        t.factor = factor;
        param_tensors_add(&wanted, &t, "%s", p.list[i].name);
        CHECK(!weights_put(&w, &p.list[i], numbers, err));
    }
    if (param_file_write(&saved, &w, NULL, storage_dtype(storage), path, err) || source_open(&s, path, err) ||
        param_file_read(&wanted, &w, &s, &(struct param_file_rules){ .under = "" }, &report, err))
        return -1;
    for (size_t i = 0; i < 2; i++)
        CHECK(!weights_get(&w, &p.list[i], got[i], err));
    return 0;
}

static void parameters_are_multiples(void)
{
    static const enum gpu_storage storages[] = { GPU_F32, GPU_F16, GPU_BF16 };
    struct cairn_error err = { 0 };
    float got[2][4] = { { 0 } };
    for (size_t k = 0; k < ARRAY_LEN(storages); k++) {
        CHECK(!read_multiplied(storages[k], 2, 16, got, &err));
        for (size_t i = 0; i < 2; i++)
            CHECK(got[i][0] == 32 && got[i][1] == -8 && got[i][2] == 0 && got[i][3] == 48);
        CHECK(!read_multiplied(storages[k], 2, 0, got, &err));
        CHECK(got[0][0] == 2 && got[1][3] == 3);
    }
    /* 16 times 5000 is no f16. */
    CHECK(!read_multiplied(GPU_F16, 4000, 16, got, &err));
    CHECK(read_multiplied(GPU_F16, 5000, 16, got, &err) == -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, "too large");
}

static void all(void)
{
    RUN(every_rank_comes_back);
    RUN(parts_have_shapes_too);
    RUN(another_shape_is_refused);
    RUN(parameters_are_multiples);
}

int main(void)
{
    return run_on_cpu(all);
}
