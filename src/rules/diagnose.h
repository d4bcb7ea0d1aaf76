/* SPDX-License-Identifier: Apache-2.0
 * What went wrong: a log and the facts of the machine in, a class of failure with cause and fixes out.
 *
 * A diagnoser reads the logs of one run in chunks of any size, in bounded memory, and keeps only what may
 * matter.  diagnoser_finish weighs it.  What the log itself says about the machine (chip, torch, variables)
 * counts as a fact, and takes precedence over the local machine: the log may come from another one.  A file
 * that starts with a UTF-16 byte order mark is read as such.
 *
 * Fixes are a ladder: one change each, the most likely first; a supervisor applies the first automatic one
 * that it has not tried.  One thread at a time. */
#ifndef CAIRN_RULES_DIAGNOSE_H
#define CAIRN_RULES_DIAGNOSE_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "rules/plan.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum diagnose_severity { DIAGNOSE_NONE, DIAGNOSE_WARNING, DIAGNOSE_ERROR };
const char *diagnose_severity_name(enum diagnose_severity s);

/* What a supervisor does to apply a fix. */
enum diagnose_action {
    DIAGNOSE_ACT_NONE,         /* only a person can */
    DIAGNOSE_ACT_ENV,          /* set and unset variables of the child */
    DIAGNOSE_ACT_RESTART,      /* start again, or resume, without a change */
    DIAGNOSE_ACT_RESUME,       /* resume from the last checkpoint; without one it would only fail again */
    DIAGNOSE_ACT_CLEAR_CACHES, /* move stale MIOpen and Triton caches into a backup folder */
    DIAGNOSE_ACT_OTHER_GPU,    /* the variables in `set` select it, if it is known */
    DIAGNOSE_ACT_CPU,          /* only if the user allowed it */
    DIAGNOSE_ACT_OPTIMIZER,    /* another optimizer: only if the user allowed it */
};
const char *diagnose_action_name(enum diagnose_action a);

struct diagnose_fix {
    const char *text; /* a sentence for a person */
    bool automatic;
    enum diagnose_action action;
    struct plan_var *set;
    size_t n_set;
    const char **unset;
    size_t n_unset;
};

struct diagnose_evidence {
    uint64_t line;    /* from 1, in its file */
    const char *text; /* printable on a terminal */
    const char *file; /* as given to diagnoser_mark_file, or NULL */
};

struct diagnose_other {
    const char *class_id;
    double confidence;
};

struct diagnosis {
    const char *class_id; /* one of diagnose_class; never NULL */
    enum diagnose_severity severity;
    double confidence; /* 0 to 1 */
    bool windows;      /* the log is from Windows: commands are for PowerShell */
    const char *cause; /* sentences for a person */
    struct diagnose_evidence *evidence;
    size_t n_evidence;
    struct diagnose_fix *fixes;
    size_t n_fixes;
    struct diagnose_other *also; /* the runners-up, best first */
    size_t n_also;
    const char **facts_used; /* "gfx1031", "torch 2.9.1+rocm6.4" */
    size_t n_facts_used;
};

/* What a supervisor observed of the host's memory while the program ran. -1: unknown, or there is no such
 * limit. */
struct diagnose_memory {
    bool watched;                                   /* false: nothing was observed, and the other fields are
                                                     * meaningless */
    int64_t host_total_bytes, host_least_bytes;     /* the minimum that was available at any time */
    int64_t cgroup_limit_bytes, cgroup_least_bytes; /* of the cgroup limit with the least headroom */
    int64_t oom_kills,
        cgroup_oom_kills; /* OOM kills by the kernel meanwhile: on the machine; in the program's cgroup */
};

/* Did the hung processes use a GPU at all? */
enum diagnose_gpu_use { DIAGNOSE_GPU_UNKNOWN, DIAGNOSE_GPU_NEVER, DIAGNOSE_GPU_USED };
const char *diagnose_gpu_use_name(enum diagnose_gpu_use u);

struct diagnose_context {
    const struct facts *facts; /* NULL: the machine is unknown */
    const char *gfx;           /* given by the user: "gfx1031", "gfx1031+gfx90c", "gfx120X"; or NULL */
    bool own_torch;            /* the PyTorch of the facts is the run's, even if the chip is another one */
    int64_t exit_code;         /* exit status, or 128 + signal; -1: unknown */
    bool hung;                 /* a watchdog stopped it */
    bool cut;                  /* the end of the log is missing */
    bool memory_guard;         /* a guard stopped it because the host ran out of memory */
    enum diagnose_gpu_use gpu_use; /* of a hung run */
    const char *hang_file;         /* the file with the stacks of a hung run; or NULL */
    struct diagnose_memory memory;
    bool in_copy;     /* the GPU call that failed or did not return was a copy */
    uint64_t refused; /* GPU allocations that the guard in the process refused */
    uint64_t refused_bytes;
    const char *const *env;  /* the child's environment, "NAME=value", NULL-terminated; or NULL */
    const struct plan *plan; /* what it was started with; or NULL */
};

struct diagnoser; /* opaque */

int diagnoser_new(struct diagnoser **out, struct cairn_error *err);
void diagnoser_feed(struct diagnoser *d, const char *bytes, size_t n);
/* What follows comes from another file; lines count from 1 again. */
void diagnoser_mark_file(struct diagnoser *d, const char *name);
/* A training step was seen: a progress bar, loss or step line of a known trainer. */
bool diagnoser_saw_step(const struct diagnoser *d);
/* May be called once, after the last byte. All strings live in the arena, in the context's facts, or in the
 * program. */
void diagnoser_finish(struct diagnoser *d, const struct diagnose_context *ctx, struct arena *a,
                      struct diagnosis *out);
void diagnoser_free(struct diagnoser *d); /* NULL is fine */

/* Every class that a diagnosis may name, with a one-line description, by index; id is NULL after the last. */
struct diagnose_class {
    const char *id, *about;
};
struct diagnose_class diagnose_class(size_t i);

#endif
