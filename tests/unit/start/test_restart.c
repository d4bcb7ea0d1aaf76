/* SPDX-License-Identifier: Apache-2.0 */
#include "start/restart.h"

#include "check.h"
#include "record/runs.h"
#include "tree.h"

static void check_next(struct restart_rung *p, double lived_s, enum gpu_api api, bool cpu, int times,
                       int workaround)
{
    CHECK(restart_next(p, lived_s, true, api, cpu));
    CHECK_INT(p->times, times);
    CHECK_INT(p->workaround, workaround);
}

static void one_workaround_more_each_time(void)
{
    struct restart_rung p = { 0 };
    for (int i = 0; i < 4; i++)
        check_next(&p, 10, GPU_API_HIP, false, i + 1, i);
    CHECK(!restart_next(&p, 10, true, GPU_API_HIP, false));
    check_next(&p, 10, GPU_API_HIP, true, 5, 4);
    CHECK(!restart_next(&p, 10, true, GPU_API_HIP, true));
}

static void what_is_for_amd_is_left_out_elsewhere(void)
{
    struct restart_rung p = { 0 };
    check_next(&p, 10, GPU_API_CUDA, true, 1, 0);
    check_next(&p, 10, GPU_API_CUDA, true, 2, 1);
    check_next(&p, 10, GPU_API_CUDA, true, 3, 4);
    CHECK(!restart_next(&p, 10, true, GPU_API_CUDA, true));
}

static void after_a_good_hour_it_counts_anew(void)
{
    struct restart_rung p = { 4, 3 };
    CHECK(!restart_next(&p, 3599, true, GPU_API_HIP, false));
    CHECK(!restart_next(&p, 7200, false, GPU_API_HIP, false)); /* it came no further */
    check_next(&p, 3600, GPU_API_HIP, false, 1, 3);
    CHECK(!restart_next(&p, 10, true, GPU_API_HIP, false));
}

static int said;
static void count_message(void *context, const char *text)
{
    (void)context;
    said += *text != '\0';
}
static const struct message_sink counting = { .say = count_message };

static void remember(const char *dir, const char *workaround, enum run_state state)
{
    const struct run_info info = { .name = "a", .workaround = workaround, .state = state };
    struct cairn_error err = { 0 };
    CHECK(!run_info_write(dir, &info, &err));
}

/* Each part of this is another process in life; the places are those that a resume finds. */
static void a_resume_knows_what_the_run_needed(void)
{
    char train[] = "train", resume[] = "--resume", *argv[] = { train, resume, NULL };
    struct tree t;
    struct arena a = { 0 };
    tree_make(&t);
    restart_prepare(2, argv, true, t.dir, &counting, &a); /* no run.json */
    CHECK(!restart_workaround() && !restart_why() && !said);
    remember(t.dir, "no-sdma", RUN_STOPPED);
    restart_prepare(2, argv, true, t.dir, &counting, &a);
    CHECK(!restart_workaround() && said == 1); /* that it was, and is tried without */
    remember(t.dir, "nonsense", RUN_CRASHED);
    restart_prepare(2, argv, true, t.dir, &counting, &a);
    CHECK(!restart_workaround());
    remember(t.dir, "no-sdma", RUN_RUNNING);
    restart_prepare(2, argv, true, t.dir, &counting, &a);
    CHECK_STR(restart_workaround(), "no-sdma");
    CHECK(!restart_wants_cpu() && !restart_why());
    unsetenv("CAIRN_BLAS");
    setenv("HSA_ENABLE_SDMA", "1", 1);
    restart_apply();
    CHECK_STR(getenv("CAIRN_BLAS"), "own");
    CHECK_STR(getenv("HSA_ENABLE_SDMA"), "0");
    remember(t.dir, "cpu", RUN_CRASHED);
    restart_prepare(2, argv, true, t.dir, &counting, &a);
    CHECK(restart_wants_cpu());
    arena_release(&a);
    tree_remove(&t);
}

static void only_its_own_process_is_meant(void)
{
    char train[] = "train", *argv[] = { train, NULL };
    struct arena a = { 0 };
    char text[64];
    setenv("CAIRN_TRAIN_RESTARTS", "1:2:1:0:why", 1);
    restart_prepare(1, argv, false, "/nowhere", &counting, &a);
    CHECK(!restart_why());
    snprintf(text, sizeof(text), "%d:2:99:0:why", (int)getpid());
    setenv("CAIRN_TRAIN_RESTARTS", text, 1);
    restart_prepare(1, argv, false, "/nowhere", &counting, &a);
    CHECK(!restart_why());
    snprintf(text, sizeof(text), "%d:2:1:0:a: b; c", (int)getpid());
    setenv("CAIRN_TRAIN_RESTARTS", text, 1);
    restart_prepare(1, argv, false, "/nowhere", &counting, &a);
    CHECK_STR(restart_why(), "a: b; c");
    CHECK_STR(restart_workaround(), "own-kernels");
    arena_release(&a);
}

int main(void)
{
    RUN(one_workaround_more_each_time);
    RUN(what_is_for_amd_is_left_out_elsewhere);
    RUN(after_a_good_hour_it_counts_anew);
    RUN(a_resume_knows_what_the_run_needed);
    RUN(only_its_own_process_is_meant);
    return check_done();
}
