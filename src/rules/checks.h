/* SPDX-License-Identifier: Apache-2.0
 * The doctor: every check of the training stack as a row of one table, and the verdict over all of them.
 *
 * A check reads facts and the planned environment and returns a finding; it reads no file and runs nothing.
 * The rows are in the order of dependency (the card before its driver, the driver before PyTorch), so the
 * first failure is the first thing to fix.  Strings in a finding live in the arena given to doctor_run, in
 * facts, or in the program. */
#ifndef CAIRN_RULES_CHECKS_H
#define CAIRN_RULES_CHECKS_H

#include "base/arena.h"
#include "host/facts.h"
#include "chip/gfx_table.h"
#include "rules/plan.h"
#include <stdbool.h>
#include <stddef.h>

enum check_status {
    CHECK_SKIP, /* does not apply to this machine */
    CHECK_OK,
    CHECK_WARN,
    CHECK_FAIL,
    CHECK_UNKNOWN, /* the facts it needs are unknown */
};
const char *check_status_name(enum check_status s);

struct finding {
    enum check_status status;
    const char *fact; /* what was found */
    const char *why;  /* why it matters; NULL if the fact is self-explanatory */
    /* What to type, with this machine's own values; NULL: nothing to do. These are shell lines, so that all
     * of it can be pasted: what a person has to do by hand is a comment. */
    const char *remedy;
};

/* What a check may read. gpu is the one planned for, else the first one, else NULL; chip and torch are NULL
 * if absent or unknown. */
struct check_ctx {
    const struct facts *facts;
    const struct plan *plan;
    const struct gpu_facts *gpu;
    const struct gfx_chip *chip;
    const struct torch_facts *torch;
    const char *python; /* the Python of the environment in question, if known from elsewhere; else NULL */
    bool foreign;       /* it is about another machine's environment, which is unknown */
    struct arena *arena;
};

enum check_flags {
    CHECK_NEEDED = 1, /* while it is unknown, so is the verdict */
    CHECK_ADVICE = 2, /* a warning here is worth reading but does not make the machine "degraded" */
    CHECK_HANGS = 4,  /* a warning here means that a job starts, and may hang or crash later */
};

struct check {
    const char *id, *group, *what, *source;
    unsigned flags;
    struct finding (*run)(const struct check_ctx *l);
};
const struct check *checks_table(size_t *n);
bool checks_has_group(const char *group);

enum verdict { VERDICT_WORKS, VERDICT_DEGRADED, VERDICT_BROKEN, VERDICT_UNKNOWN };
const char *verdict_name(enum verdict v);

struct doctor_line {
    const struct check *check;
    struct finding found;
};
/* A way to train on the GPU, and what is known of it. */
struct doctor_way {
    const char *name;    /* "pytorch", "native" */
    const char *command; /* with words in capitals to fill in */
    const char *known;   /* a sentence */
    bool is_proven;      /* it computed correct results on this GPU */
};
enum { DOCTOR_WAYS = 2 };
struct doctor {
    struct doctor_line *lines; /* one per row of the table, in its order */
    size_t n;
    size_t counts[CHECK_UNKNOWN + 1]; /* by enum check_status */
    enum verdict verdict;
    const struct gpu_facts *gpu;     /* the GPU that was checked; NULL: none */
    const char *target;              /* whose code it will load: its own, or an override's; NULL: unknown */
    const struct doctor_line *first; /* what decided: the first thing to fix; NULL if all is well */
    const char *summary;             /* one or two sentences, without first's remedy */
    bool lacks_gpu;                  /* no GPU that KFD supports */
    const char *gpu_option;          /* " --gpu 1", " --gfx gfx1031", or "": for commands to type */
    struct doctor_way ways[DOCTOR_WAYS]; /* what is proven comes first */
    size_t n_ways;                       /* 0: there is no GPU */
    bool plan_cures;                     /* something fails, and nothing does once the plan is applied */
};

void doctor_run(const struct facts *f, const struct plan *p, struct arena *a, struct doctor *out);

#endif
