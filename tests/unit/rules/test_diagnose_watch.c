/* SPDX-License-Identifier: Apache-2.0
 * What a supervisor saw of a run counts beside its log: the host's memory, and whether a GPU was in use at all. */
#include "rules/diagnose.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>

static const int64_t gib = (int64_t)1 << 30;

struct answer {
    struct arena arena;
    struct diagnosis d;
};

static struct answer ask(const char *log, struct diagnose_context ctx)
{
    struct answer a = { 0 };
    struct cairn_error err = { 0 };
    struct diagnoser *d = NULL;
    if (diagnoser_new(&d, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    diagnoser_feed(d, log, strlen(log));
    diagnoser_finish(d, &ctx, &a.arena, &a.d);
    diagnoser_free(d);
    return a;
}

static void release(struct answer *a)
{
    arena_release(&a->arena);
}
#define ANSWER CLEANUP(release) struct answer

static const struct diagnose_memory plenty = { true, 32 * gib, 30 * gib, -1, -1, 0, 0 };

static void check_killed(const char *log, int64_t code, struct diagnose_memory memory, const char *want)
{
    ANSWER a = ask(log, (struct diagnose_context){ .exit_code = code, .memory = memory });
    CHECK_STR(a.d.class_id, want);
}

static void one_that_was_killed_is_judged_by_the_memory_that_was_left(void)
{
    struct diagnose_memory m = plenty;
    check_killed("step 1 loss 0.5\n", 137, plenty, "unknown");
    check_killed("step 1 loss 0.5\n", 137, (struct diagnose_memory){ 0 }, "host-oom"); /* nobody watched */
    m.oom_kills = m.cgroup_oom_kills = -1;
    check_killed("step 1 loss 0.5\n", 137, m, "unknown");
    m.host_least_bytes = gib;
    check_killed("step 1 loss 0.5\n", 137, m, "host-oom");
    m.oom_kills = 0; /* earlyoom and its like do not wait for the kernel */
    check_killed("step 1 loss 0.5\n", 137, m, "host-oom");
    m = plenty;
    m.host_least_bytes = -1;
    check_killed("step 1 loss 0.5\n", 137, m, "host-oom");
}

static void a_limit_of_the_cgroup_counts(void)
{
    struct diagnose_memory m = plenty;
    m.cgroup_limit_bytes = 8 * gib;
    m.cgroup_least_bytes = 7 * gib;
    check_killed("step 1 loss 0.5\n", 137, m, "unknown");
    m.cgroup_least_bytes = gib / 4;
    check_killed("step 1 loss 0.5\n", 137, m, "host-oom");
}

/* Between two looks much can happen; the kernel counts. */
static void the_kernels_count_is_proof(void)
{
    struct diagnose_memory m = plenty;
    m.oom_kills = 1;
    check_killed("step 1 loss 0.5\n", 137, m, "host-oom");
    m.cgroup_oom_kills = 1;
    check_killed("step 1 loss 0.5\n", 137, m, "host-oom");
    check_killed("KeyError: 'lr'\n", 1, m, "not-rocm"); /* another program's */
    ANSWER a = ask("step 1 loss 0.5\n", (struct diagnose_context){ .exit_code = 137, .memory = m });
    CHECK(a.d.confidence > 0.9);
}

static void words_of_a_kill_are_no_words_of_memory(void)
{
    check_killed("run.sh: line 3: 61044 Killed   python train.py\n", 137, plenty, "unknown");
    check_killed(
        "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL\n", 1,
        plenty, "unknown");
    check_killed("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 512. GiB for an array\n", 1,
                 plenty, "host-oom");
    check_killed("[ 1.0] Out of memory: Killed process 7 (python3) total-vm:1kB\n", 137, plenty, "host-oom");
}

static bool any_automatic(const struct diagnosis *d)
{
    for (size_t i = 0; i < d->n_fixes; i++)
        if (d->fixes[i].automatic)
            return true;
    return false;
}

static bool has_text(const struct diagnosis *d, const char *text)
{
    for (size_t i = 0; i < d->n_fixes; i++)
        if (strstr(d->fixes[i].text, text))
            return true;
    return false;
}

static void nothing_of_the_gpus_is_changed_for_one_that_had_none(void)
{
    struct diagnose_context ctx = { .exit_code = 124, .hung = true, .gpu_use = DIAGNOSE_GPU_NEVER };
    ANSWER never = ask("step 1 loss 0.5\n", ctx);
    CHECK_STR(never.d.class_id, "hang");
    CHECK(!any_automatic(&never.d));
    ctx.gpu_use = DIAGNOSE_GPU_USED;
    ANSWER used = ask("step 1 loss 0.5\n", ctx);
    CHECK_STR(used.d.class_id, "hang");
    CHECK(any_automatic(&used.d));
    CHECK(strcmp(used.d.cause, never.d.cause) != 0);
}

static void a_process_that_is_gone_is_not_dumped(void)
{
    struct diagnose_context ctx = { .exit_code = 124, .hung = true };
    ANSWER log = ask("step 1 loss 0.5\n", ctx);
    CHECK(has_text(&log.d, "--pid"));
    ctx.hang_file = "/runs/1/hang.txt";
    ANSWER dumped = ask("step 1 loss 0.5\n", ctx);
    CHECK(!has_text(&dumped.d, "--pid") && has_text(&dumped.d, "/runs/1/hang.txt"));
    ctx.gpu_use = DIAGNOSE_GPU_NEVER;
    ANSWER never = ask("step 1 loss 0.5\n", ctx);
    CHECK(!has_text(&never.d, "--pid") && has_text(&never.d, "/runs/1/hang.txt"));
}

int main(void)
{
    RUN(one_that_was_killed_is_judged_by_the_memory_that_was_left);
    RUN(a_limit_of_the_cgroup_counts);
    RUN(the_kernels_count_is_proof);
    RUN(words_of_a_kill_are_no_words_of_memory);
    RUN(nothing_of_the_gpus_is_changed_for_one_that_had_none);
    RUN(a_process_that_is_gone_is_not_dumped);
    return check_done();
}
