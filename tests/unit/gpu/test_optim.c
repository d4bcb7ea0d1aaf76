/* SPDX-License-Identifier: Apache-2.0
 * The tables of 8-bit numbers, and steps of the optimizers on the CPU, against numbers of independent programs. */
#include "gpu/optim8.h"

#include "check.h"
#include "gpu/gpu.h"
#include "gpu/kernels/optim.h"
#include "tensor/safetensors.h"
#include <math.h>

enum { N = 1000, STEPS = 5, BLOCKS = (N + OPTIM8_BLOCK - 1) / OPTIM8_BLOCK };

static struct gpu *g;
static struct cairn_error err;

/* rate, beta1, beta2, epsilon, decay of the files' runs a and b */
struct run {
    const char *name;
    double rate, beta1, beta2, epsilon, decay;
};

static void open_file(struct st_file *f, const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/optim/%s", getenv("CAIRN_TEST_DATA"), name);
    if (st_open(f, path, &err))
        CHECK_FAIL_("%s", err.msg);
}

static void read_tensor(const struct st_file *f, const char *name, uint64_t first, uint64_t n, void *into)
{
    const struct st_tensor *t = st_find(f, name);
    if (!t || st_read(f, t, first, n, into, &err))
        CHECK_FAIL_("%s: %s", name, t ? err.msg : "not there");
}

static void read_step(const struct st_file *f, const struct run *r, const char *what, int step, uint64_t n,
                      void *into)
{
    char name[64];
    snprintf(name, sizeof(name), "%s.%s.step%d", r->name, what, step);
    read_tensor(f, name, 0, n, into);
}

static void *on_device(const void *bytes, size_t n)
{
    void *p = NULL;
    if (gpu_alloc(g, GPU_MEM_DEVICE, n, &p, &err) || gpu_upload(g, NULL, p, bytes, n, &err) ||
        gpu_wait(g, NULL, &err))
        CHECK_FAIL_("%s", err.msg);
    return p;
}

static void from_device(void *into, const void *p, size_t n)
{
    if (gpu_download(g, NULL, into, p, n, &err) || gpu_wait(g, NULL, &err))
        CHECK_FAIL_("%s", err.msg);
}

static void launch(const char *kernel, unsigned groups, const void *args, size_t size)
{
    const struct gpu_kernel *k;
    if (gpu_kernel(g, kernel, GPU_F32, &k, &err) ||
        gpu_launch(g, NULL, k, (struct gpu_grid){ .x = groups }, args, size, &err))
        CHECK_FAIL_("%s", err.msg);
}

/* |got - want| at most `share` of the largest |want|. */
static void compare(const char *what, int step, const void *device, const float *want, size_t n, double share)
{
    float got[N];
    double largest = 0, worst = 0;
    from_device(got, device, n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs(want[i]));
        worst = fmax(worst, fabs((double)got[i] - want[i]));
    }
    if (!(worst <= share * largest))
        CHECK_FAIL_("%s of step %d is off by %g of %g", what, step, worst, largest);
}

static void run_adamw(const struct st_file *f, const struct run *r)
{
    float numbers[N], zero[N] = { 0 };
    read_tensor(f, "param", 0, N, numbers);
    struct adamw_args args = { .to = { .w = on_device(numbers, sizeof(numbers)),
                                       .n = N,
                                       .rate = (float)r->rate,
                                       .decay = (float)r->decay },
                               .m = on_device(zero, sizeof(zero)),
                               .v = on_device(zero, sizeof(zero)),
                               .beta1 = (float)r->beta1,
                               .beta2 = (float)r->beta2,
                               .rest1 = (float)(1 - r->beta1),
                               .rest2 = (float)(1 - r->beta2),
                               .epsilon = (float)r->epsilon };
    void *w = args.to.w;
    for (int step = 1; step <= STEPS; step++) {
        read_tensor(f, "grads", (uint64_t)(step - 1) * N, N, numbers);
        void *grad = on_device(numbers, sizeof(numbers));
        args.to.g = grad;
        args.correction1 = (float)(1 - pow(r->beta1, step)),
        args.correction2 = (float)(1 - pow(r->beta2, step));
        launch("adamw", K_GROUPS(N), &args, sizeof(args));
        read_step(f, r, "param", step, N, numbers);
        compare("param", step, w, numbers, N, 1e-6);
        read_step(f, r, "m", step, N, numbers);
        compare("m", step, args.m, numbers, N, 1e-6);
        read_step(f, r, "v", step, N, numbers);
        compare("v", step, args.v, numbers, N, 1e-6);
        gpu_free(g, GPU_MEM_DEVICE, grad);
    }
    gpu_free(g, GPU_MEM_DEVICE, w);
    gpu_free(g, GPU_MEM_DEVICE, args.m);
    gpu_free(g, GPU_MEM_DEVICE, args.v);
}

static void adamw_steps_as_pytorch(void)
{
    static const struct run runs[] = { { "a", 1e-3, 0.9, 0.999, 1e-8, 0.01 },
                                       { "b", 0.02, 0.8, 0.95, 1e-6, 0 } };
    struct st_file f;
    open_file(&f, "adamw.safetensors");
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        run_adamw(&f, &runs[i]);
    st_close(&f);
}

static void tables_are_the_published_maps(void)
{
    struct st_file f;
    float tables[OPTIM8_TABLES], want[512];
    optim8_tables(tables);
    open_file(&f, "adam8bit.safetensors");
    read_tensor(&f, "map.signed", 0, 256, want);
    read_tensor(&f, "map.unsigned", 0, 256, want + 256);
    for (int i = 0; i < 512; i++) {
        float got = i < 256 ? tables[i] : tables[i + 256];
        if (!(fabs((double)got - want[i]) <= 3e-7 * fabs(want[i])))
            CHECK_FAIL_("value %d is %.9g, not %.9g", i, (double)got, (double)want[i]);
    }
    CHECK(tables[OPTIM8_ZERO_M] == 0 && tables[512 + OPTIM8_ZERO_V] == 0);
    st_close(&f);
}

/* A code may be the next one where a number lies between two, nearly. */
static void compare_codes(const char *what, int step, const void *device, const uint8_t *want)
{
    uint8_t got[N];
    int off = 0;
    from_device(got, device, N);
    for (int i = 0; i < N; i++) {
        off += got[i] != want[i];
        if (abs(got[i] - want[i]) > 1)
            CHECK_FAIL_("code %d of %s of step %d is %d, not %d", i, what, step, got[i], want[i]);
    }
    if (off > N / 100)
        CHECK_FAIL_("%d codes of %s of step %d are next to what they should be", off, what, step);
}

static void compare_step8(const struct st_file *f, const struct run *r, int step, const struct adamw8_args *a)
{
    float numbers[N];
    uint8_t codes[N];
    read_step(f, r, "param", step, N, numbers);
    compare("param", step, a->to.w, numbers, N, 1e-4); /* a neighbouring code moves its number a little */
    read_step(f, r, "am1", step, BLOCKS, numbers);
    compare("am1", step, a->m_max, numbers, BLOCKS, 1e-6);
    read_step(f, r, "am2", step, BLOCKS, numbers);
    compare("am2", step, a->v_max, numbers, BLOCKS, 1e-6);
    read_step(f, r, "c1", step, N, codes);
    compare_codes("m", step, a->m, codes);
    read_step(f, r, "c2", step, N, codes);
    compare_codes("v", step, a->v, codes);
}

static void run_adamw8(const struct st_file *f, const struct run *r)
{
    float numbers[N], zero[BLOCKS] = { 0 }, tables[OPTIM8_TABLES];
    uint8_t codes[N] = { 0 };
    optim8_tables(tables);
    read_tensor(f, "adam8.param0", 0, N, numbers);
    struct adamw8_args args = { .to = { .w = on_device(numbers, sizeof(numbers)),
                                        .n = N,
                                        .rate = (float)r->rate,
                                        .decay = (float)r->decay },
                                .m = on_device(codes, N),
                                .v = on_device(codes, N),
                                .m_max = on_device(zero, sizeof(zero)),
                                .v_max = on_device(zero, sizeof(zero)),
                                .beta1 = (float)r->beta1,
                                .beta2 = (float)r->beta2,
                                .rest1 = 1 - (float)r->beta1, /* in f32, as there */
                                .rest2 = 1 - (float)r->beta2,
                                .epsilon = (float)r->epsilon };
    void *table = on_device(tables, sizeof(tables));
    args.tables = table;
    for (int step = 1; step <= STEPS; step++) {
        read_tensor(f, "adam8.grads", (uint64_t)(step - 1) * N, N, numbers);
        void *grad = on_device(numbers, sizeof(numbers));
        args.to.g = grad;
        args.correction1 = (float)(1 - pow(r->beta1, step)),
        args.correction2 = (float)(1 - pow(r->beta2, step));
        launch("adamw8", BLOCKS, &args, sizeof(args));
        compare_step8(f, r, step, &args);
        gpu_free(g, GPU_MEM_DEVICE, grad);
    }
    void *all[] = { args.to.w, args.m, args.v, args.m_max, args.v_max, table };
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        gpu_free(g, GPU_MEM_DEVICE, all[i]);
}

static void adamw8_steps_as_bitsandbytes(void)
{
    static const struct run runs[] = { { "a", 1e-3, 0.9, 0.999, 1e-8, 0.01 },
                                       { "b", 0.01, 0.9, 0.999, 1e-6, 1e-4 } };
    struct st_file f;
    open_file(&f, "adam8bit.safetensors");
    for (size_t i = 0; i < ARRAY_LEN(runs); i++)
        run_adamw8(&f, &runs[i]);
    st_close(&f);
}

int main(void)
{
    if (gpu_open("cpu", &g, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    RUN(tables_are_the_published_maps);
    RUN(adamw_steps_as_pytorch);
    RUN(adamw8_steps_as_bitsandbytes);
    gpu_close(g);
    return check_done();
}
