/* SPDX-License-Identifier: Apache-2.0 */
#include "run/idle_reason.h"

#include "run/gpu_calls.h"
#include "run/guardian.h"

static bool has_pid(const struct tree *t, int pid)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->process[i].pid == pid)
            return true;
    return false;
}

/* Some living process. */
static bool is_inside_call(const struct tree *t, const char *prefix, double seconds)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_calls calls;
    gpu_calls_read(prefix, &a, &calls);
    for (size_t i = 0; i < calls.n; i++)
        for (size_t k = 0; k < calls.process[i].n; k++) {
            const struct gpu_call *c = &calls.process[i].call[k];
            if (!c->returned && c->begun_s >= seconds && has_pid(t, calls.process[i].pid))
                return true;
        }
    return false;
}

bool idle_is_expected(const struct tree *t, const char *calls, double seconds)
{
    if (tree_has_name(t, GUARDIAN_NAME))
        return true; /* a nested run watches, and sees more */
    if (tree_waits_for_input(t, "/proc"))
        return true;
    return tree_serves(t, "/proc") && !tree_has_variable(t, "/proc", "MASTER_PORT") &&
           !is_inside_call(t, calls, seconds);
}
