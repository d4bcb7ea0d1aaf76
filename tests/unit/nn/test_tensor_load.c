/* SPDX-License-Identifier: Apache-2.0
 * Tensors and models to a device that is not the CPU, and to the CPU: the same bits, whatever the way. */
#include "nn/tensor_load.h"

#include "models.h"
#include <unistd.h>

enum { NUMBERS = 700001, SMALL = 5 };

static const enum dtype dtypes[] = { DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_F8_E4M3 };
static float *numbers; /* of each tensor, before they were narrowed */

/* A large and a small tensor of each kind. */
static void write_file(const char *path)
{
    struct st_tensor list[2 * ARRAY_LEN(dtypes)];
    uint64_t shapes[2] = { NUMBERS, SMALL };
    char names[ARRAY_LEN(list)][16];
    struct cairn_error err = { 0 };
    CLEANUP(st_writer_close) struct st_writer w = { .out = FILE_OUT_NONE };
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        enum dtype t = dtypes[i / 2];
        snprintf(names[i], sizeof(names[i]), "t%zu", i);
        list[i] = (struct st_tensor){ .name = names[i],
                                      .dtype = t,
                                      .dtype_text = dtype_safetensors(t),
                                      .shape = &shapes[i % 2],
                                      .rank = 1,
                                      .elements = shapes[i % 2],
                                      .bytes = shapes[i % 2] * dtype_size(t) };
    }
    CHECK(!st_writer_open(
        &w, path, &(struct st_contents){ .tensors = list, .n = ARRAY_LEN(list), .order = ST_ORDER_GIVEN },
        true, &err));
    char *bytes = malloc(NUMBERS * sizeof(float));
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        dtype_convert(bytes, list[i].dtype, numbers + i, DTYPE_F32, list[i].elements,
                      &(struct dtype_how){ 0 });
        CHECK(!st_writer_put(&w, i, 0, bytes, list[i].bytes, &err));
    }
    free(bytes);
    CHECK(!st_writer_commit(&w, &err));
}

static void check_tensor(const char *got, const struct st_tensor *t, size_t i, enum dtype as)
{
    char *narrow = malloc(NUMBERS * sizeof(float)), *want = malloc(NUMBERS * sizeof(float));
    dtype_convert(narrow, t->dtype, numbers + i, DTYPE_F32, t->elements, &(struct dtype_how){ 0 });
    dtype_convert(want, as, narrow, t->dtype, t->elements, &(struct dtype_how){ 0 });
    if (memcmp(got, want, t->elements * dtype_size(as)))
        CHECK_FAIL_("%s as %s differs", t->name, dtype_name(as));
    free(narrow);
    free(want);
}

static void load_as(struct gpu *g, const struct tensor_source *s, enum dtype as)
{
    struct tensor_want wants[2 * ARRAY_LEN(dtypes)];
    struct cairn_error err = { 0 };
    void *device;
    size_t room = NUMBERS * sizeof(float), n = s->n_tensors;
    char *back = malloc(n * room);
    CHECK(!gpu_alloc(g, GPU_MEM_DEVICE, n * room, &device, &err));
    for (size_t i = 0; i < n; i++)
        wants[i] = (struct tensor_want){ &s->tensors[i], as == DTYPE_OTHER ? s->tensors[i].dtype : as,
                                         (char *)device + i * room, false };
    if (tensor_load(g, s, wants, n, &(struct transfer_options){ .verify = true }, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK(!gpu_download(g, NULL, back, device, n * room, &err) && !gpu_wait(g, NULL, &err));
    for (size_t i = 0; i < n; i++)
        check_tensor(back + i * room, wants[i].tensor, i, wants[i].as);
    gpu_free(g, GPU_MEM_DEVICE, device);
    free(back);
}

static struct gpu *hip;

static void tensors_are_converted_on_the_way(void)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    struct cairn_error err = { 0 };
    char path[128];
    snprintf(path, sizeof(path), "%s/all.safetensors", tmp.dir);
    write_file(path);
    REQUIRE(!source_open(&s, path, &err));
    const enum dtype kinds_of[] = { DTYPE_OTHER, DTYPE_F32, DTYPE_BF16, DTYPE_F16 };
    for (size_t i = 0; i < ARRAY_LEN(kinds_of); i++) {
        load_as(cpu, &s, kinds_of[i]);
        load_as(hip, &s, kinds_of[i]);
    }
}

/* ---- files that change ---- */

struct spoiler {
    const char *path;
    bool shrink;
};

static void spoil(void *to, uint64_t done, uint64_t total)
{
    const struct spoiler *s = to;
    (void)done, (void)total;
    if (s->shrink) {
        CHECK(!truncate(s->path, 1 << 20));
        return;
    }
    FILE *f = fopen(s->path, "r+");
    fseek(f, -1, SEEK_END);
    fputc(0, f);
    fclose(f);
}

static void while_it_is_read(struct gpu *g, bool shrink, const char *words)
{
    CLEANUP(source_close) struct tensor_source s = { 0 };
    struct tensor_want wants[2 * ARRAY_LEN(dtypes)];
    struct cairn_error err = { 0 };
    struct spoiler spoiler = { in_folder(tmp.dir, "spoilt.safetensors"), shrink };
    void *device;
    write_file(spoiler.path);
    REQUIRE(!source_open(&s, spoiler.path, &err));
    REQUIRE(!gpu_alloc(g, GPU_MEM_DEVICE, 16 << 20, &device, &err));
    transfer_set_ring(gpu_transfer(g), 2, 256 << 10);
    char *at = device;
    for (size_t i = 0; i < s.n_tensors; i++, at += (s.tensors[i - 1].bytes + 255) / 256 * 256)
        wants[i] = (struct tensor_want){ &s.tensors[i], s.tensors[i].dtype, at, false };
    struct transfer_options o = { .progress = spoil, .to = &spoiler, .threads = 1 };
    CHECK_INT(tensor_load(g, &s, wants, s.n_tensors, &o, &err), -1);
    CHECK_HAS(err.msg, spoiler.path);
    CHECK_HAS(err.msg, words);
    CHECK(err.code != CAIRN_EDEVICE);
    gpu_free(g, GPU_MEM_DEVICE, device);
    transfer_set_ring(gpu_transfer(g), 4, 16 << 20);
}

static void a_file_that_shrinks_is_an_error(void)
{
    while_it_is_read(hip, true, "truncated");
}

static void a_file_that_is_written_to_is_an_error(void)
{
    while_it_is_read(hip, false, "spoilt.safetensors changed");
    while_it_is_read(cpu, false, "spoilt.safetensors changed");
}

/* ---- models ---- */

/* All bytes of the weights, with what lies between parameters. */
static char *bytes_of(const struct gpt *m, size_t *n)
{
    struct cairn_error err = { 0 };
    const struct params *p = &m->params;
    size_t matrices = p->numbers[PARAM_MATRIX] * storage_size(m->weights.storage);
    size_t vectors = p->numbers[PARAM_VECTOR] * sizeof(float);
    char *bytes = calloc(1, matrices + vectors + 1);
    struct gpu *g = m->weights.g;
    CHECK(!gpu_download(g, NULL, bytes, m->weights.matrices, matrices, &err));
    CHECK(!gpu_download(g, NULL, bytes + matrices, m->weights.vectors, vectors, &err));
    CHECK(!gpu_wait(g, NULL, &err));
    *n = matrices + vectors;
    return bytes;
}

static void load_model(struct gpt *m, const char *dir)
{
    struct cairn_error err = { 0 };
    struct param_report report = { 0 };
    if (gpt_file_load(m, dir, &report, &err))
        CHECK_FAIL_("%s", err.msg);
    CHECK(report.tensors > 10);
    param_report_release(&report);
}

static void check_master(const struct gpt *m, const struct gpt *want)
{
    struct cairn_error err = { 0 };
    const struct params *p = &m->params;
    size_t bytes = p->numbers[PARAM_MATRIX] * sizeof(float);
    float *copy = malloc(bytes), *x = malloc(bytes);
    CHECK(!gpu_download(m->weights.g, NULL, copy, m->weights.master, bytes, &err) &&
          !gpu_wait(m->weights.g, NULL, &err));
    for (size_t i = 0; i < p->n; i++) {
        const struct param *one = &p->list[i];
        if (one->kind != PARAM_MATRIX)
            continue;
        CHECK(!weights_get(&want->weights, &want->params.list[i], x, &err));
        if (memcmp(x, copy + one->at, one->rows * one->columns * sizeof(float)))
            CHECK_FAIL_("%s: the f32 copy differs", one->name);
    }
    free(copy);
    free(x);
}

/* The same file to the CPU and to the device, in a ring of pieces of so many bytes. */
static void compare_models(const struct gpt_shape *shape, struct nn *here, struct nn *there, size_t ring)
{
    struct cairn_error err = { 0 };
    const char *dir = new_folder();
    struct gpt *from = open_model(&f32, shape, NULL);
    fill(&from->params, &from->weights);
    CHECK(!gpt_file_save(from, dir, DTYPE_F32, NULL, &err));
    struct gpt *a = open_model(here, shape, NULL), *b = open_model(there, shape, NULL);
    void *master;
    CHECK(!gpu_alloc(hip, GPU_MEM_DEVICE, b->params.numbers[PARAM_MATRIX] * sizeof(float), &master, &err));
    b->weights.master = master;
    transfer_set_ring(gpu_transfer(hip), 3, ring);
    load_model(a, dir);
    load_model(b, dir);
    size_t n, k;
    char *x = bytes_of(a, &n), *y = bytes_of(b, &k);
    CHECK(n == k && !memcmp(x, y, n));
    check_master(b, from);
    free(x);
    free(y);
    gpu_free(hip, GPU_MEM_DEVICE, master);
    gpt_close(from);
    gpt_close(a);
    gpt_close(b);
}

static void models_have_the_same_bits_everywhere(void)
{
    struct cairn_error err = { 0 };
    struct nn wide, narrow;
    REQUIRE(!nn_open(&wide, hip, GPU_F32, &err) && !nn_open(&narrow, hip, GPU_BF16, &err));
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        compare_models(&kinds[i].shape, &f32, &wide, 16 << 20);
        compare_models(&kinds[i].shape, &bf16, &narrow, 16 << 20);
        compare_models(&kinds[i].shape, &bf16, &narrow, 4 << 10); /* some matrices do not fit */
    }
    nn_close(&wide);
    nn_close(&narrow);
}

static void all(void)
{
    struct cairn_error err = { 0 };
    if (gpu_open("hip:0", &hip, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(99);
    }
    numbers = malloc((NUMBERS + 64) * sizeof(*numbers));
    for (size_t i = 0; i < NUMBERS + 64; i++)
        numbers[i] = (float)(i * 2654435761u >> 20 & 4095) / 512 - 4;
    RUN(tensors_are_converted_on_the_way);
    RUN(a_file_that_shrinks_is_an_error);
    RUN(a_file_that_is_written_to_is_an_error);
    RUN(models_have_the_same_bits_everywhere);
    free(numbers);
    gpu_close(hip);
}

int main(void)
{
    return run_on_cpu(all);
}
