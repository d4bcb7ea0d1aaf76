/* SPDX-License-Identifier: Apache-2.0
 * The kernel log covers all programs, and everything since boot.  What only the kernel reports counts if the
 * program ended in a matching way. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"

static bool is_one_of(enum issue i, const enum issue *list, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (list[k] == i)
            return true;
    return false;
}

/* What ends one program, visible in its exit status. */
static bool ends_one(enum issue i)
{
    return i == ISSUE_HOST_OOM || i == ISSUE_NATIVE_CRASH;
}

/* What affects all programs on the GPU, or only one of them. */
static bool is_of_gpu(enum issue i)
{
    static const enum issue list[] = { ISSUE_GPU_RESET, ISSUE_MEMORY_FAULT, ISSUE_SDMA, ISSUE_HANG };
    return is_one_of(i, list, ARRAY_LEN(list));
}

/* How a program may show that it lost its GPU. */
static bool answers(enum issue i)
{
    static const enum issue list[] = { ISSUE_NO_DEVICE, ISSUE_INVALID_ARGUMENT, ISSUE_NATIVE_CRASH,
                                       ISSUE_RCCL,      ISSUE_MIOPEN,           ISSUE_HIPBLASLT };
    return is_of_gpu(i) || is_one_of(i, list, ARRAY_LEN(list));
}

/* The program printed it, and did not survive it. */
static bool stands(const struct hits *h)
{
    return h->seen && !(h->all & RULE_KERNEL) && !h->recovered;
}

static bool is_in_log(const struct judgement *j, enum issue i)
{
    for (int w = 0; w < N_WEIGHTS; w++)
        for (int c = 0; c < N_WORDINGS; c++)
            if (w != WEIGHT_WARN && stands(&j->d->hits[i][w][c]))
                return true;
    return false;
}

/* It ended for a reason of its own, unrelated to this one. A lost child or GPU shows in many vague
 * exceptions. */
static bool has_other_end(const struct judgement *j, enum issue event, bool vague_counts)
{
    bool other = false;
    for (int i = 0; i < ISSUE_NO_FAILURE; i++)
        for (int w = 0; w < N_WEIGHTS; w++)
            for (int c = 0; c < N_WORDINGS; c++) {
                const struct hits *h = &j->d->hits[i][w][c];
                if (w == WEIGHT_WARN || !stands(h))
                    continue;
                if (is_of_gpu(event) && (answers(i) || h->any & RULE_LOST))
                    return false;
                other |=
                    w != WEIGHT_ECHO && !(h->all & RULE_GUESS) && (vague_counts || !(h->all & RULE_VAGUE));
            }
    return other;
}

static bool exit_fits(const struct judgement *j, enum issue event)
{
    int64_t code = j->ctx->exit_code;
    bool signal = code > 128 && !judge_stopped_by_person(code);
    if (event == ISSUE_HOST_OOM)
        return code == 137;
    return (signal && (code != 137 || is_of_gpu(event))) || (j->ctx->hung && is_of_gpu(event));
}

/* A child is gone, and its parent does not know why; those are the echoes of this class. */
static bool lost_child(const struct judgement *j)
{
    return stands(&j->d->hits[ISSUE_HOST_OOM][WEIGHT_ECHO][WORDING_ROCM]);
}

/* The killed process may belong to the program, and the status may be a parent's. */
static bool killed_own(const struct judgement *j)
{
    enum { LAST_SIGNAL = 128 + 64 };
    int64_t code = j->ctx->exit_code;
    if (code == 0 || (code > 128 && code <= LAST_SIGNAL))
        return false;
    return log_killed_told(&j->log->killed) ||
           (j->log->killed.trainer && !has_other_end(j, ISSUE_HOST_OOM, false));
}

bool kernel_reports_another(const struct judgement *j, enum issue event)
{
    int64_t code = j->ctx->exit_code;
    if ((!ends_one(event) && !is_of_gpu(event)) || is_in_log(j, event) || exit_fits(j, event))
        return false;
    if ((ends_one(event) && lost_child(j)) || (event == ISSUE_HOST_OOM && killed_own(j)))
        return false;
    if (code < 0 || (is_of_gpu(event) && code > 0))
        return has_other_end(j, event, !is_of_gpu(event));
    return true;
}
