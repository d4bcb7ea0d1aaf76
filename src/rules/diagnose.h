/* SPDX-License-Identifier: Apache-2.0
 * What went wrong: a log and the facts of the machine in, a class of failure with cause and fixes out.
 *
 * A diagnoser reads the bytes of one run's logs in any pieces, in memory that is bounded whatever is fed, and
 * remembers only what may matter.  diagnoser_finish weighs it.  What the log itself says of the machine (chip,
 * torch, variables) counts as a fact, and wins over the machine where they disagree: the log may come from
 * another one.  A file that starts with a UTF-16 mark is read as such.
 *
 * Fixes are a ladder: one change each, the most likely first; a supervisor takes the first automatic one that it has
 * not tried.  One thread at a time. */
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
    DIAGNOSE_ACT_RESUME,       /* go on from the last checkpoint; without one it would only fail again */
    DIAGNOSE_ACT_CLEAR_CACHES, /* move stale MIOpen and Triton caches into a backup folder */
    DIAGNOSE_ACT_OTHER_GPU,    /* the variables in `set` select it, where it is known */
    DIAGNOSE_ACT_CPU,          /* only where the user allowed it */
    DIAGNOSE_ACT_OPTIMIZER,    /* another optimizer: only where the user allowed it */
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
    const char *text; /* fit for a terminal */
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
    bool windows;      /* the log is of Windows: what is to be typed is for PowerShell */
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

/* What a supervisor saw of the host's memory while the program ran.  -1: not known, or there is no such limit. */
struct diagnose_memory {
    bool watched;                                   /* false: nothing was, and the rest means nothing */
    int64_t host_total_bytes, host_least_bytes;     /* least: available at any time */
    int64_t cgroup_limit_bytes, cgroup_least_bytes; /* of the limit with the least room */
    int64_t oom_kills,
        cgroup_oom_kills; /* by the kernel, meanwhile: on the machine; in the program's cgroup */
};

/* Had the processes that stood still anything to do with a GPU? */
enum diagnose_gpu_use { DIAGNOSE_GPU_UNKNOWN, DIAGNOSE_GPU_NEVER, DIAGNOSE_GPU_USED };
const char *diagnose_gpu_use_name(enum diagnose_gpu_use u);

struct diagnose_context {
    const struct facts *facts; /* NULL: nothing is known of the machine */
    const char *gfx;           /* told by hand: "gfx1031", "gfx1031+gfx90c", "gfx120X"; or NULL */
    bool own_torch;    /* the facts' PyTorch is the run's, also where the chip is another than theirs */
    int64_t exit_code; /* exit status, or 128 + signal; -1: not known */
    bool hung;         /* a watchdog stopped it */
    bool cut;          /* the end of the log is missing */
    bool memory_guard; /* a guard stopped it because the host's memory ran out */
    enum diagnose_gpu_use gpu_use; /* of one that hung */
    const char *hang_file;         /* where each process of one that hung was written down; or NULL */
    struct diagnose_memory memory;
    bool in_copy;     /* the GPU call that failed or did not return was a copy */
    uint64_t refused; /* allocations on the GPU, by the guard inside of it */
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
/* May be called once, after the last byte.  All strings live in the arena, in the context's facts, or in the program. */
void diagnoser_finish(struct diagnoser *d, const struct diagnose_context *ctx, struct arena *a,
                      struct diagnosis *out);
void diagnoser_free(struct diagnoser *d); /* NULL is fine */

/* Every class that a diagnosis may name, with a line that says what it is, by number; id is NULL behind the last. */
struct diagnose_class {
    const char *id, *about;
};
struct diagnose_class diagnose_class(size_t i);

#endif
