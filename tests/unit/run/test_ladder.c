/* SPDX-License-Identifier: Apache-2.0 */
#include "run/ladder.h"

#include "check.h"

static struct plan_var override = { .name = "HSA_OVERRIDE_GFX_VERSION", .value = "10.3.0" };
static struct plan_var sdma = { .name = "HSA_ENABLE_SDMA", .value = "0" };
static const char *no_caching[] = { "PYTORCH_NO_HIP_MEMORY_CACHING" };
static struct diagnose_fix fixes[] = {
    { .text = "install a wheel", .automatic = false, .action = DIAGNOSE_ACT_NONE },
    { .text = "override", .automatic = true, .action = DIAGNOSE_ACT_ENV, .set = &override, .n_set = 1 },
    { .text = "no caching",
      .automatic = true,
      .action = DIAGNOSE_ACT_ENV,
      .unset = no_caching,
      .n_unset = 1 },
    { .text = "sdma", .automatic = true, .action = DIAGNOSE_ACT_ENV, .set = &sdma, .n_set = 1 },
    { .text = "caches", .automatic = true, .action = DIAGNOSE_ACT_CLEAR_CACHES },
    { .text = "optimizer", .automatic = true, .action = DIAGNOSE_ACT_OPTIMIZER },
    { .text = "cpu", .automatic = true, .action = DIAGNOSE_ACT_CPU },
};
static const struct diagnosis diagnosis = {
    .class_id = "no-kernel-image", .severity = DIAGNOSE_ERROR, .fixes = fixes, .n_fixes = 7
};
static const char *const plain[] = { "HOME=/home/a", NULL };

static void takes_the_first_that_is_automatic_and_changes_something(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    const struct ladder_input look = { .diagnosis = &diagnosis, .env = plain, .retries_left = 2 };
    struct ladder_step s = ladder_next(&l, &look, &a);
    CHECK_INT(s.word, LADDER_RETRY);
    CHECK_STR(s.fix->text, "override");
    ladder_note(&l, s.fix, plain, &a);
    s = ladder_next(&l, &look,
                    &a); /* PYTORCH_NO_HIP_MEMORY_CACHING is not set, so removing it is no change */
    CHECK_STR(s.fix->text, "sdma");
    ladder_note(&l, s.fix, plain, &a);
    s = ladder_next(&l, &look, &a);
    CHECK_INT(s.word, LADDER_SUGGEST);
    CHECK_STR(s.fix->text, "cpu");
    CHECK_HAS(s.why, "--allow-cpu");
    arena_release(&a);
}

static void a_value_that_is_set_already_is_no_change(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    static const char *const env[] = { "HSA_OVERRIDE_GFX_VERSION=10.3.0", "PYTORCH_NO_HIP_MEMORY_CACHING=1",
                                       NULL };
    const struct ladder_input look = { .diagnosis = &diagnosis, .env = env, .retries_left = 2 };
    CHECK_STR(ladder_next(&l, &look, &a).fix->text, "no caching");
    arena_release(&a);
}

static void what_the_user_keeps_stays(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    static const char *const keep[] = { "HSA_OVERRIDE_GFX_VERSION", NULL };
    const struct ladder_input look = {
        .diagnosis = &diagnosis, .env = plain, .keep = keep, .retries_left = 2
    };
    CHECK_STR(ladder_next(&l, &look, &a).fix->text, "sdma");
    arena_release(&a);
}

static void some_steps_need_leave(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    struct ladder_input look = { .diagnosis = &diagnosis, .env = plain, .retries_left = 9 };
    ladder_note(&l, &fixes[1], plain, &a);
    ladder_note(&l, &fixes[3], plain, &a);
    CHECK_INT(ladder_next(&l, &look, &a).word, LADDER_SUGGEST);
    look.allow_cpu = true;
    struct ladder_step s = ladder_next(&l, &look, &a);
    CHECK_INT(s.word, LADDER_RETRY);
    CHECK_STR(s.fix->text, "cpu");
    look.can_optimize = true;
    CHECK_STR(ladder_next(&l, &look, &a).fix->text, "optimizer");
    look.has_caches = true;
    CHECK_STR(ladder_next(&l, &look, &a).fix->text, "caches");
    ladder_note(&l, s.fix, plain, &a); /* the CPU */
    CHECK_INT(ladder_next(&l, &look, &a).word, LADDER_STOP);
    arena_release(&a);
}

/* The attempt without it is the one that failed before. */
static void does_not_go_back(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    static const char *names[] = { "HSA_OVERRIDE_GFX_VERSION" };
    struct diagnose_fix away = {
        .text = "away", .automatic = true, .action = DIAGNOSE_ACT_ENV, .unset = names, .n_unset = 1
    };
    const struct diagnosis d = {
        .class_id = "memory-fault", .severity = DIAGNOSE_ERROR, .fixes = &away, .n_fixes = 1
    };
    static const char *const env[] = { "HSA_OVERRIDE_GFX_VERSION=10.3.0", NULL };
    const struct ladder_input look = { .diagnosis = &d, .env = env, .retries_left = 2 };
    CHECK_INT(ladder_next(&l, &look, &a).word, LADDER_RETRY); /* the user's */
    ladder_note(&l, &fixes[1], env, &a);
    CHECK_INT(ladder_next(&l, &look, &a).word, LADDER_RETRY); /* it was there, with another value */
    ladder_note(&l, &fixes[1], plain, &a);
    CHECK_INT(ladder_next(&l, &look, &a).word, LADDER_STOP);
    arena_release(&a);
}

static void never_destroys_work(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    struct ladder_input look = { .diagnosis = &diagnosis, .env = plain, .retries_left = 2, .saw_step = true };
    struct ladder_step s = ladder_next(&l, &look, &a);
    CHECK_INT(s.word, LADDER_SUGGEST);
    CHECK_STR(s.fix->text, "override");
    CHECK_HAS(s.why, "lose the steps");
    look.can_resume = true;
    CHECK_INT(ladder_next(&l, &look, &a).word, LADDER_RETRY);
    arena_release(&a);
}

static void ends_with_the_retries(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    const struct ladder_input look = { .diagnosis = &diagnosis, .env = plain };
    struct ladder_step s = ladder_next(&l, &look, &a);
    CHECK_INT(s.word, LADDER_SUGGEST);
    CHECK_HAS(s.why, "no retries left");
    arena_release(&a);
}

static void a_warning_is_no_reason(void)
{
    struct arena a = { 0 };
    struct ladder l = { 0 };
    struct diagnosis mild = diagnosis;
    mild.severity = DIAGNOSE_WARNING;
    const struct ladder_input look = { .diagnosis = &mild, .env = plain, .retries_left = 2 };
    CHECK_INT(ladder_next(&l, &look, &a).word, LADDER_STOP);
    arena_release(&a);
}

static void describes_changes(void)
{
    struct arena a = { 0 };
    struct plan_var both[] = { override, sdma };
    const struct diagnose_fix fix = {
        .action = DIAGNOSE_ACT_ENV, .set = both, .n_set = 2, .unset = no_caching, .n_unset = 1
    };
    CHECK_STR(ladder_describe(&fix, &a),
              "HSA_OVERRIDE_GFX_VERSION=10.3.0, HSA_ENABLE_SDMA=0, without PYTORCH_NO_HIP_MEMORY_CACHING");
    CHECK_STR(ladder_describe(&fixes[6], &a), "the CPU");
    arena_release(&a);
}

int main(void)
{
    RUN(takes_the_first_that_is_automatic_and_changes_something);
    RUN(a_value_that_is_set_already_is_no_change);
    RUN(what_the_user_keeps_stays);
    RUN(some_steps_need_leave);
    RUN(does_not_go_back);
    RUN(never_destroys_work);
    RUN(ends_with_the_retries);
    RUN(a_warning_is_no_reason);
    RUN(describes_changes);
    return check_done();
}
