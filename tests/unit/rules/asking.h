/* SPDX-License-Identifier: Apache-2.0
 * A question to the diagnosis, for its tests. */
#ifndef CAIRN_TESTS_ASKING_H
#define CAIRN_TESTS_ASKING_H

#include "base/cleanup.h"
#include "check.h"
#include "rules/diagnose.h"

struct answer {
    struct arena arena;
    struct diagnosis d;
    bool saw_step;
};

static inline struct answer ask(const char *log, struct diagnose_context ctx)
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
    a.saw_step = diagnoser_saw_step(d);
    diagnoser_free(d);
    return a;
}

static inline void release(struct answer *a)
{
    arena_release(&a->arena);
}
#define ANSWER CLEANUP(release) struct answer

static inline void check_class(const char *log, struct diagnose_context ctx, const char *want)
{
    ANSWER a = ask(log, ctx);
    CHECK_STR(a.d.class_id, want);
}

#endif
