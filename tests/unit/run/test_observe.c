/* SPDX-License-Identifier: Apache-2.0 */
#include "run/observe.h"

#include "base/str.h"
#include "check.h"
#include "run/mismatch.h"
#include "scratch.h"

enum { MOST = 8 };
struct record {
    struct observed item[MOST];
    size_t n;
};

static void keep(void *context, const struct observed *o)
{
    struct record *r = context;
    if (r->n < MOST)
        r->item[r->n++] = *o;
}

static void put(int pid, const char *file, const char *bytes, size_t n)
{
    char path[64];
    snprintf(path, sizeof(path), "proc/%d/%s", pid, file);
    scratch_file(path, "");
    FILE *f = fopen(scratch(path), "w");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f))
        abort();
}

static void process(int pid, const char *exe, const char *maps, const char *env, size_t n)
{
    char path[64];
    put(pid, "maps", maps, strlen(maps));
    put(pid, "environ", env, n);
    snprintf(path, sizeof(path), "proc/%d/exe", pid);
    unlink(scratch(path));
    if (symlink(exe, scratch(path)))
        abort();
}

#define ENV(text) text, sizeof(text)
#define MAPS "7f00-7f10 r--p 00000000 08:01 42   /usr/lib/libc.so.6\n"
#define TORCH "7f10-7f20 r-xp 00000000 08:01 43   /v/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so\n"
#define HIP "7f20-7f30 r-xp 00000000 08:01 44   /v/lib/libs/libamdhip64-1a2b3c4d.so\n"

static void look(struct observe *o, const int *pids, size_t n)
{
    struct tree_process p[MOST] = { 0 };
    for (size_t i = 0; i < n; i++)
        p[i] = (struct tree_process){ .pid = pids[i], .state = 'S' };
    const struct tree t = { p, n };
    observe_look(o, &t, scratch("proc"));
}

static void a_python_and_then_the_trainer(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct record r = { .n = 0 };
    struct observe o = { .a = &a, .notice = keep, .context = &r };
    process(5, "/bin/bash", MAPS, ENV("AMD_SERIALIZE_KERNEL=3"));
    process(6, "/usr/bin/python3.11", MAPS, ENV("HF_TOKEN=secret\0HSA_OVERRIDE_GFX_VERSION=11.0.0\0BAD\0=x"));
    look(&o, (int[]){ 5, 6, 99 }, 3);
    look(&o, (int[]){ 5, 6, 99 }, 3);
    REQUIRE(r.n == 1);
    CHECK_INT(r.item[0].pid, 6);
    CHECK(!r.item[0].on_gpu && !r.item[0].torch);
    CHECK_STR(r.item[0].env[0], "HSA_OVERRIDE_GFX_VERSION=11.0.0");
    CHECK(!r.item[0].env[1]);
    process(6, "/usr/bin/python3.11", MAPS HIP TORCH, ENV("HSA_OVERRIDE_GFX_VERSION=11.0.0"));
    look(&o, (int[]){ 5, 6 }, 2);
    look(&o, (int[]){ 5, 6 }, 2);
    REQUIRE(r.n == 2);
    CHECK(r.item[1].on_gpu);
    CHECK_STR(r.item[1].torch, "/v/lib/python3.11/site-packages");
    observe_begin(&o);
    look(&o, (int[]){ 6 }, 1);
    CHECK_INT(r.n, 3);
    process(8, "/v/bin/train", MAPS HIP, ENV("HSA_ENABLE_SDMA=0")); /* a wheel's own */
    look(&o, (int[]){ 8 }, 1);
    REQUIRE(r.n == 4);
    CHECK(r.item[3].on_gpu && !r.item[3].torch);
}

static void a_process_that_is_gone_is_nothing(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct record r = { .n = 0 };
    struct observe o = { .a = &a, .notice = keep, .context = &r };
    process(7, "/usr/bin/python3.11", MAPS TORCH, "", 0);
    look(&o, (int[]){ 7 }, 1);
    CHECK_INT(r.n, 0);
}

/* Compilers, or the checks of a start script: the trainer comes when they are gone. */
static void many_programs_before_the_trainer(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct record r = { .n = 0 };
    struct observe o = { .a = &a, .notice = keep, .context = &r };
    for (int i = 0; i < 2 * OBSERVE_MOST; i++) {
        process(100 + i, i % 2 ? "/usr/bin/cc1plus" : "/usr/bin/python3.11", MAPS, ENV("HSA_ENABLE_SDMA=0"));
        look(&o, (int[]){ 100 + i }, 1);
    }
    r.n = 0;
    process(9, "/usr/bin/python3.11", MAPS TORCH, ENV("HSA_ENABLE_SDMA=0"));
    look(&o, (int[]){ 9 }, 1);
    REQUIRE(r.n == 1);
    CHECK_STR(r.item[0].torch, "/v/lib/python3.11/site-packages");
}

static void the_environment_that_it_had(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *const given[] = { "PATH=/bin", "HSA_ENABLE_SDMA=0", "MINE=1", NULL };
    const char *const seen[] = { "PATH=/bin", "AMD_SERIALIZE_KERNEL=3", NULL };
    const struct observed o = { .pid = 1, .env = seen };
    const char *const *env = mismatch_env(given, &o, &a);
    CHECK_STR(str_env(env, "AMD_SERIALIZE_KERNEL"), "3");
    CHECK_STR(str_env(env, "MINE"), "1");
    CHECK(!str_env(env, "HSA_ENABLE_SDMA"));
}

static void places(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    scratch_file("start.sh", "#!/bin/sh\n# HSA_X=1 is old\nexport HSA_X_Y=2\nexport HSA_X=3\n");
    scratch_file("train.py", "import os\nos.environ[\"HSA_Y\"] = '1'\nprint('HSA_Z')\n");
    char sh[512], py[512];
    snprintf(sh, sizeof(sh), "%s", scratch("start.sh"));
    snprintf(py, sizeof(py), "%s", scratch("train.py"));
    char text[] = "export HSA_W=1; x";
    char *const argv[] = { sh, py, text, NULL };
    CHECK_HAS(mismatch_place(argv, "HSA_X", &a), "start.sh, line 4");
    CHECK_HAS(mismatch_place(argv, "HSA_Y", &a), "train.py, line 2");
    CHECK_HAS(mismatch_place(argv, "HSA_W", &a), "command line");
    CHECK(!mismatch_place(argv, "HSA_Z", &a));
    CHECK(!mismatch_place(argv, "SA_X", &a));
}

int main(void)
{
    RUN(a_python_and_then_the_trainer);
    RUN(a_process_that_is_gone_is_nothing);
    RUN(many_programs_before_the_trainer);
    RUN(the_environment_that_it_had);
    RUN(places);
    return check_done();
}
