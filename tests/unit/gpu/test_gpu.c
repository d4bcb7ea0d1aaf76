/* SPDX-License-Identifier: Apache-2.0
 * Devices in general, on the CPU; tests/gpu has the way to a GPU. */
#include "gpu/gpu.h"

#include "check.h"
#include "gpu/backend.h"

static void an_unknown_name_lists_the_devices(void)
{
    static const struct {
        const char *name;
        enum cairn_code code;
    } wrong[] = {
        { "frob", CAIRN_EUSAGE },  { "", CAIRN_EUSAGE },        { "cp", CAIRN_EUSAGE },
        { "cpu:1", CAIRN_EUSAGE }, { "hip:99", CAIRN_ELACK },   { "hip:", CAIRN_EUSAGE },
        { "HIP", CAIRN_EUSAGE },   { "cuda:1x", CAIRN_EUSAGE },
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct gpu *g = NULL;
        struct cairn_error err = { 0 };
        if (gpu_open(wrong[i].name, &g, &err) != -1)
            CHECK_FAIL_("\"%s\" was opened", wrong[i].name);
        CHECK_INT(err.code, wrong[i].code);
        CHECK_HAS(err.hint, "available: ");
        CHECK_HAS(err.hint, "cpu");
        gpu_close(g);
    }
}

static void the_cpu_is_always_there_and_last(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_info *infos;
    char **reasons;
    size_t n, n_reasons;
    gpu_list(&a, &infos, &n, &reasons, &n_reasons);
    REQUIRE(n >= 1);
    CHECK_STR(infos[n - 1].name, "cpu");
    CHECK(infos[n - 1].units >= 1 && infos[n - 1].total_bytes > 0);
}

static void memory_and_copies(void)
{
    struct gpu *g;
    struct cairn_error err = { 0 };
    char text[] = "numbers", back[sizeof(text)] = "";
    void *p, *q, *none;
    REQUIRE(!gpu_open("cpu", &g, &err));
    REQUIRE(!gpu_alloc(g, GPU_MEM_DEVICE, sizeof(text), &p, &err));
    REQUIRE(!gpu_alloc(g, GPU_MEM_STAGING, sizeof(text), &q, &err));
    CHECK(!gpu_alloc(g, GPU_MEM_DEVICE, 0, &none, &err));
    CHECK_INT(gpu_alloc(g, GPU_MEM_DEVICE, SIZE_MAX / 2, &none, &err), -1);
    CHECK_INT(err.code, CAIRN_ENOMEM);
    CHECK(!gpu_upload(g, NULL, p, text, sizeof(text), &err));
    CHECK(!gpu_copy(g, NULL, q, p, sizeof(text), &err));
    CHECK(!gpu_clear(g, NULL, p, sizeof(text), &err));
    CHECK(!gpu_download(g, NULL, back, q, sizeof(text), &err) && !gpu_wait(g, NULL, &err));
    CHECK_STR(back, text);
    CHECK_STR(p, "");
    gpu_free(g, GPU_MEM_DEVICE, none);
    gpu_free(g, GPU_MEM_DEVICE, p);
    gpu_free(g, GPU_MEM_STAGING, q);
    gpu_free(g, GPU_MEM_STAGING, NULL);
    gpu_close(g);
}

static void taken_memory_is_counted(void)
{
    enum { PIECES = 600 }; /* more than the pool's table has room for at first */
    struct gpu *g;
    struct cairn_error err = { 0 };
    void *p[PIECES], *staging;
    REQUIRE(!gpu_open("cpu", &g, &err));
    for (size_t i = 0; i < PIECES; i++)
        REQUIRE(!gpu_alloc(g, GPU_MEM_DEVICE, 100 + i, &p[i], &err));
    REQUIRE(!gpu_alloc(g, GPU_MEM_STAGING, 1000, &staging, &err));
    CHECK_INT(gpu_allocated(g).bytes, PIECES * 100 + PIECES * (PIECES - 1) / 2);
    gpu_free(g, GPU_MEM_STAGING, staging);
    for (size_t i = 1; i < PIECES; i++)
        gpu_free(g, GPU_MEM_DEVICE, p[i]);
    CHECK_INT(gpu_allocated(g).bytes, 100);
    CHECK_INT(gpu_allocated(g).most_bytes, PIECES * 100 + PIECES * (PIECES - 1) / 2);
    gpu_free(g, GPU_MEM_DEVICE, p[0]);
    CHECK_INT(gpu_allocated(g).bytes, 0);
    gpu_close(g);
}

static void a_kernel_wants_its_own_arguments(void)
{
    struct gpu *g;
    struct cairn_error err = { 0 };
    const struct gpu_kernel *k, *again;
    char args[8] = { 0 };
    REQUIRE(!gpu_open("cpu", &g, &err));
    REQUIRE(!gpu_kernel(g, "rms_norm", GPU_BF16, &k, &err));
    REQUIRE(!gpu_kernel(g, "rms_norm", GPU_BF16, &again, &err));
    CHECK(k == again);
    CHECK_INT(gpu_launch(g, NULL, k, (struct gpu_grid){ 0, 0, 0 }, args, sizeof(args), &err), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK_HAS(err.msg, "rms_norm ");
    CHECK_INT(gpu_kernel(g, "nosuch", GPU_F32, &k, &err), -1);
    CHECK_STR(err.msg, "no kernel named nosuch");
    gpu_close(g);
}

/* Its name is known everywhere, but only its chip has it. */
static void a_kernel_of_one_chip_is_for_no_other(void)
{
    struct gpu *g;
    struct cairn_error err = { 0 };
    const struct gpu_kernel *k;
    const struct kernel_row *row = kernel_find("attention_wgmma_128");
    REQUIRE(row && row->text->chip && row->shared > 0);
    REQUIRE(!gpu_open("cpu", &g, &err));
    CHECK(!kernel_is_for(row, g, GPU_BF16));
    CHECK(kernel_is_for(kernel_find("attention_mma_128"), g, GPU_BF16));
    CHECK(!kernel_is_for(kernel_find("attention_mma_128"), g, GPU_F32));
    CHECK_INT(gpu_kernel(g, row->name, GPU_BF16, &k, &err), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK_HAS(err.msg, row->text->chip);
    static const struct {
        const char *arch;
        bool has;
    } rows[] = {
        { "sm_90", true }, { "sm_9", false }, { "sm_100", false }, { "sm_80", false }, { "gfx1100", false }
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct gpu other = { .info.api = GPU_API_CUDA };
        snprintf(other.info.arch, sizeof(other.info.arch), "%s", rows[i].arch);
        CHECK_INT(kernel_is_for(row, &other, GPU_F16), rows[i].has);
        CHECK(!kernel_is_for(row, &other, GPU_F32));
        struct k_fault fault;
        other.fault = &fault;
        CHECK(!kernel_is_for(row, &other, GPU_F16));
    }
    gpu_close(g);
}

/* Not there in a build with plain kernels only. */
extern kernel_fn layer_norm_f32_debug, layer_norm_f32_plain;
extern kernel_fn layer_norm_f32_avx2 __attribute__((weak)), layer_norm_f32_avx512 __attribute__((weak));

static void each_version_of_a_kernel_is_in_its_place(void)
{
    const struct kernel_row *row = kernel_find("layer_norm");
    REQUIRE(row);
    CHECK(row->host[GPU_F32][KERNEL_DEBUG] == layer_norm_f32_debug);
    CHECK(row->host[GPU_F32][KERNEL_PLAIN] == layer_norm_f32_plain);
    CHECK(row->host[GPU_F32][KERNEL_AVX2] == layer_norm_f32_avx2);
    CHECK(row->host[GPU_F32][KERNEL_AVX512] == layer_norm_f32_avx512);
}

int main(void)
{
    RUN(an_unknown_name_lists_the_devices);
    RUN(the_cpu_is_always_there_and_last);
    RUN(memory_and_copies);
    RUN(taken_memory_is_counted);
    RUN(a_kernel_wants_its_own_arguments);
    RUN(a_kernel_of_one_chip_is_for_no_other);
    RUN(each_version_of_a_kernel_is_in_its_place);
    return check_done();
}
