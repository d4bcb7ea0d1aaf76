/* SPDX-License-Identifier: Apache-2.0
 * The whole way to an AMD GPU, with a HIP that is not one (fake_hip.c): open, memory, copies, kernels; and each outside
 * call of it failing in turn. */
#include "os/fault.h"
#include "check.h"
#include "chip/gfx_table.h"
#include "gpu/gpu.h"
#include "gpu/kernels/norm.h"
#include "gpu/pool.h"
#include "tree.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum { ROWS = 2, COLUMNS = 100, N = ROWS * COLUMNS };
static struct tree cache;

/* All memory of the way, so that it is given back wherever it ends. */
struct way {
    struct gpu *g;
    void *x, *y, *moments, *staging;
};

static void way_close(struct way *w)
{
    if (w->g) {
        gpu_free(w->g, GPU_MEM_DEVICE, w->x);
        gpu_free(w->g, GPU_MEM_DEVICE, w->y);
        gpu_free(w->g, GPU_MEM_DEVICE, w->moments);
        gpu_free(w->g, GPU_MEM_STAGING, w->staging);
    }
    gpu_close(w->g);
}

static int norm_rows(struct way *w, struct cairn_error *err)
{
    const struct gpu_kernel *k;
    struct norm_args args = { .y = w->y, .rstd = w->moments, .x = w->x, .rows = ROWS, .columns = COLUMNS };
    if (gpu_kernel(w->g, "rms_norm", GPU_F32, &k, err))
        return -1;
    return gpu_launch(w->g, NULL, k, (struct gpu_grid){ .x = ROWS }, &args, sizeof(args), err);
}

/* The root mean square of a row of equal numbers is that number: all become 1. */
static int go_all_the_way(float *out, struct cairn_error *err)
{
    CLEANUP(way_close) struct way w = { 0 };
    float x[N];
    for (int i = 0; i < N; i++)
        x[i] = 3;
    if (gpu_open("hip:0", &w.g, err) || gpu_alloc(w.g, GPU_MEM_DEVICE, sizeof(x), &w.x, err) ||
        gpu_alloc(w.g, GPU_MEM_DEVICE, sizeof(x), &w.y, err) ||
        gpu_alloc(w.g, GPU_MEM_DEVICE, ROWS * sizeof(float), &w.moments, err) ||
        gpu_alloc(w.g, GPU_MEM_STAGING, sizeof(x), &w.staging, err))
        return -1;
    memcpy(w.staging, x, sizeof(x));
    if (gpu_upload(w.g, NULL, w.x, w.staging, sizeof(x), err) || norm_rows(&w, err) ||
        gpu_download(w.g, NULL, out, w.y, sizeof(x), err))
        return -1;
    return gpu_wait(w.g, NULL, err);
}

static void the_whole_way(void)
{
    struct cairn_error err = { 0 };
    float out[N] = { 0 };
    if (go_all_the_way(out, &err))
        CHECK_FAIL_("%s", err.msg);
    for (int i = 0; i < N; i++)
        if (out[i] != 1) {
            CHECK_FAIL_("number %d is %g", i, (double)out[i]);
            break;
        }
}

/* Twice: with an empty cache, so that the compiler is started, and with a full one. */
static void fail_each_call(bool cached)
{
    int nth = 1;
    for (bool reached = true; reached; nth++) {
        struct cairn_error err = { 0 };
        float out[N];
        if (!cached) {
            tree_remove(&cache);
            tree_make(&cache);
            setenv("XDG_CACHE_HOME", cache.dir, 1);
        }
        fault_arm(nth, EIO);
        int r = go_all_the_way(out, &err);
        reached = fault_disarm();
        if (r && (!reached || !err.msg[0] || err.code == CAIRN_OK))
            CHECK_FAIL_("call %d: \"%s\"", nth, err.msg);
    }
    CHECK(nth > 8);
}

static void every_call_may_fail_once(void)
{
    fail_each_call(false);
}

static void every_call_may_fail_once_with_a_cache(void)
{
    float out[N];
    struct cairn_error err;
    go_all_the_way(out, &err);
    fail_each_call(true);
}

static void device_memory_is_not_ours(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct cairn_error err;
        struct way w = { 0 };
        signal(SIGSEGV, SIG_DFL);
        if (gpu_open("hip:0", &w.g, &err) || gpu_alloc(w.g, GPU_MEM_DEVICE, 64, &w.x, &err))
            _exit(1);
        *(volatile char *)w.x = 1;
        _exit(0);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void a_download_is_not_there_before_it_is_waited_for(void)
{
    CLEANUP(way_close) struct way w = { 0 };
    struct cairn_error err = { 0 };
    char out[16] = "before";
    REQUIRE(!gpu_open("hip:0", &w.g, &err));
    REQUIRE(!gpu_alloc(w.g, GPU_MEM_DEVICE, sizeof(out), &w.x, &err));
    REQUIRE(!gpu_clear(w.g, NULL, w.x, sizeof(out), &err));
    REQUIRE(!gpu_download(w.g, NULL, out, w.x, sizeof(out), &err));
    CHECK_STR(out, "before");
    REQUIRE(!gpu_wait(w.g, NULL, &err));
    CHECK_STR(out, "");
}

static void too_much_memory_is_an_ordinary_error(void)
{
    CLEANUP(way_close) struct way w = { 0 };
    struct cairn_error err = { 0 };
    uint64_t before, after, total;
    REQUIRE(!gpu_open("hip:0", &w.g, &err));
    REQUIRE(!gpu_memory(w.g, &before, &total, &err));
    CHECK_INT(gpu_alloc(w.g, GPU_MEM_DEVICE, total + 1, &w.x, &err), -1);
    CHECK_INT(err.code, CAIRN_ENOMEM);
    CHECK_HAS(err.msg, "hip:0: allocate 536875008 bytes: out of memory");
    CHECK(!w.x);
    REQUIRE(!gpu_alloc(w.g, GPU_MEM_DEVICE, 1 << 20, &w.x, &err));
    REQUIRE(!gpu_memory(w.g, &after, &total, &err));
    CHECK_INT(before - after, 32 << 20); /* a block for it and others */
    gpu_free(w.g, GPU_MEM_DEVICE, w.x);
    w.x = NULL;
    CHECK_INT(pool_release(gpu_pool(w.g)), 32 << 20);
    REQUIRE(!gpu_memory(w.g, &after, &total, &err));
    CHECK_INT(before, after);
}

/* Ones into x, and its norm into y, kept and then done as often as asked. */
static int record_norm(struct way *w, struct gpu_graph **out, struct cairn_error *err)
{
    if (gpu_graph_begin(w->g, NULL, err))
        return -1;
    int r = gpu_upload(w->g, NULL, w->x, w->staging, N * sizeof(float), err) || norm_rows(w, err);
    if (!gpu_graph_end(w->g, NULL, out, err) && r) {
        gpu_graph_close(w->g, *out);
        *out = NULL;
    }
    return r || !*out ? -1 : 0;
}

static int launch_and_read(struct way *w, struct gpu_graph *graph, float *out, struct cairn_error *err)
{
    return gpu_graph_launch(w->g, graph, NULL, err) ||
                   gpu_download(w->g, NULL, out, w->y, N * sizeof(float), err) || gpu_wait(w->g, NULL, err)
               ? -1
               : 0;
}

static int way_open(struct way *w, struct cairn_error *err)
{
    size_t n = N * sizeof(float);
    return gpu_open("hip:0", &w->g, err) || gpu_alloc(w->g, GPU_MEM_DEVICE, n, &w->x, err) ||
                   gpu_alloc(w->g, GPU_MEM_DEVICE, n, &w->y, err) ||
                   gpu_alloc(w->g, GPU_MEM_DEVICE, ROWS * sizeof(float), &w->moments, err) ||
                   gpu_alloc(w->g, GPU_MEM_STAGING, n, &w->staging, err) ||
                   gpu_clear(w->g, NULL, w->y, n, err)
               ? -1
               : 0;
}

static int go_by_graph(float *out, struct cairn_error *err)
{
    CLEANUP(way_close) struct way w = { 0 };
    const struct gpu_kernel *k;
    struct gpu_graph *graph = NULL;
    if (way_open(&w, err) || gpu_kernel(w.g, "rms_norm", GPU_F32, &k, err))
        return -1;
    for (int i = 0; i < N; i++)
        ((float *)w.staging)[i] = 5;
    int r = record_norm(&w, &graph, err) || launch_and_read(&w, graph, out, err);
    gpu_graph_close(w.g, graph);
    return r ? -1 : 0;
}

static void a_graph_does_what_was_kept(void)
{
    CLEANUP(way_close) struct way w = { 0 };
    struct cairn_error err = { 0 };
    struct gpu_graph *graph = NULL;
    float out[N];
    REQUIRE(!way_open(&w, &err));
    float *in = w.staging;
    for (int i = 0; i < N; i++)
        in[i] = 5;
    REQUIRE(!record_norm(&w, &graph, &err));
    REQUIRE(!gpu_download(w.g, NULL, out, w.y, sizeof(out), &err) && !gpu_wait(w.g, NULL, &err));
    CHECK(out[0] == 0 && out[N - 1] == 0); /* nothing was done yet */
    REQUIRE(!launch_and_read(&w, graph, out, &err));
    CHECK(out[0] == 1 && out[N - 1] == 1);
    for (int i = 0; i < N; i++)
        in[i] = -5; /* the same places, other numbers */
    REQUIRE(!launch_and_read(&w, graph, out, &err));
    CHECK(out[0] == -1 && out[N - 1] == -1);
    gpu_graph_close(w.g, graph);
}

static void a_wait_inside_a_graph_is_refused(void)
{
    CLEANUP(way_close) struct way w = { 0 };
    struct cairn_error err = { 0 };
    struct gpu_graph *graph = NULL;
    REQUIRE(!way_open(&w, &err));
    REQUIRE(!gpu_graph_begin(w.g, NULL, &err));
    CHECK_INT(gpu_wait(w.g, NULL, &err), -1);
    CHECK_HAS(err.msg, "(900)");
    CHECK_INT(gpu_graph_end(w.g, NULL, &graph, &err), -1);
    CHECK_HAS(err.msg, "end a graph");
    CHECK(!graph && !gpu_lost(w.g));
    CHECK_INT(gpu_wait(w.g, NULL, &err), 0); /* the stream is well again */
}

static void every_call_of_a_graph_may_fail_once(void)
{
    bool reached = true;
    int nth = 1;
    for (; reached; nth++) {
        struct cairn_error err = { 0 };
        float out[N];
        fault_arm(nth, EIO);
        int r = go_by_graph(out, &err);
        reached = fault_disarm();
        if (r && (!reached || !err.msg[0]))
            CHECK_FAIL_("call %d: \"%s\"", nth, err.msg);
        if (!r && out[0] != 1)
            CHECK_FAIL_("call %d: %g", nth, (double)out[0]);
    }
    CHECK(nth > 12);
}

static void arguments_of_another_size_are_refused(void)
{
    CLEANUP(way_close) struct way w = { 0 };
    struct cairn_error err = { 0 };
    const struct gpu_kernel *k;
    REQUIRE(!gpu_open("hip", &w.g, &err));
    REQUIRE(!gpu_kernel(w.g, "rms_norm", GPU_F16, &k, &err));
    CHECK_INT(gpu_launch(w.g, NULL, k, (struct gpu_grid){ 1, 1, 1 }, &w, 8, &err), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK_INT(gpu_kernel(w.g, "no_such", GPU_F16, &k, &err), -1);
    CHECK_STR(err.msg, "no kernel named no_such");
}

/* The name may carry features; a chip that no row knows has none that cairn could use. */
static void matrix_cores_are_a_fact_of_the_chip(void)
{
    static const struct {
        const char *arch;
        bool mma, f16;
    } rows[] = {
        { "gfx1151", true, false }, { "gfx1201", true, false },
        { "gfx1031", false, true }, { "gfx90a:sramecc+:xnack-", false, false },
        { "gfx906", false, false }, { "gfx1999", false, false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct cairn_error err = { 0 };
        struct gpu *g = NULL;
        setenv("FAKE_GFX", rows[i].arch, 1);
        REQUIRE(!gpu_open("hip:0", &g, &err));
        const struct gfx_chip *c = gpu_info(g)->chip;
        if (gpu_has_mma(g) != rows[i].mma || (c && c->train_f16) != rows[i].f16)
            CHECK_FAIL_("%s", rows[i].arch);
        gpu_close(g);
    }
    unsetenv("FAKE_GFX");
}

int main(void)
{
    tree_make(&cache);
    setenv("XDG_CACHE_HOME", cache.dir, 1);
    RUN(the_whole_way);
    RUN(matrix_cores_are_a_fact_of_the_chip);
    RUN(device_memory_is_not_ours);
    RUN(a_download_is_not_there_before_it_is_waited_for);
    RUN(too_much_memory_is_an_ordinary_error);
    RUN(arguments_of_another_size_are_refused);
    RUN(a_graph_does_what_was_kept);
    RUN(a_wait_inside_a_graph_is_refused);
    RUN(every_call_of_a_graph_may_fail_once);
    RUN(every_call_may_fail_once);
    RUN(every_call_may_fail_once_with_a_cache);
    tree_remove(&cache);
    return check_done();
}
