/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/checks.h"

#include "rules/looks.h"

const char *check_status_name(enum check_status s)
{
    static const char *const names[] = {
        [CHECK_SKIP] = "skip", [CHECK_OK] = "ok",           [CHECK_WARN] = "warn",
        [CHECK_FAIL] = "fail", [CHECK_UNKNOWN] = "unknown",
    };
    return names[s];
}

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {
        [VERDICT_WORKS] = "works",
        [VERDICT_DEGRADED] = "degraded",
        [VERDICT_BROKEN] = "broken",
        [VERDICT_UNKNOWN] = "unknown",
    };
    return names[v];
}

/* The first line of this status that counts for the verdict. */
static const struct doctor_line *first_line(const struct doctor *d, enum check_status s)
{
    for (size_t i = 0; i < d->n; i++) {
        unsigned flags = d->lines[i].check->flags;
        if (d->lines[i].found.status != s)
            continue;
        if ((s == CHECK_UNKNOWN && !(flags & CHECK_NEEDED)) || (s == CHECK_WARN && (flags & CHECK_ADVICE)))
            continue;
        return &d->lines[i];
    }
    return NULL;
}

/* A failure decides; then what is not known; then what is merely worse than it could be. */
static const struct doctor_line *decide(struct doctor *d)
{
    static const struct {
        enum check_status status;
        enum verdict verdict;
    } order[] = {
        { CHECK_FAIL, VERDICT_BROKEN },
        { CHECK_UNKNOWN, VERDICT_UNKNOWN },
        { CHECK_WARN, VERDICT_DEGRADED },
    };
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const struct doctor_line *line = first_line(d, order[i].status);
        d->verdict = order[i].verdict;
        if (line)
            return line;
    }
    d->verdict = VERDICT_WORKS;
    return NULL;
}

static const char *summarise(const struct look *l, enum verdict v, const struct doctor_line *line)
{
    const char *where = l->gpu ? say_gpu(l, l->gpu) : "this machine";
    switch (v) {
    case VERDICT_WORKS:
        return say(l, "Training with PyTorch will work on %s.", where);
    case VERDICT_DEGRADED:
        return say(l,
                   "Training with PyTorch will work on %s, below what it could do. Improve first: %s (%s).",
                   where, line->found.fact, line->check->id);
    case VERDICT_UNKNOWN:
        return say(l, "Whether training with PyTorch will work on %s is not known: %s (%s).", where,
                   line->found.fact, line->check->id);
    case VERDICT_BROKEN:
        break;
    }
    if (!l->gpu)
        return say(l, "Training with PyTorch on ROCm will not work on this machine: no AMD GPU was found.");
    return say(l, "Training with PyTorch will not work on %s. %s%s (%s).", where,
               line->found.remedy ? "Fix first: " : "Nothing can be done about it: ", line->found.fact,
               line->check->id);
}

void doctor_run(const struct facts *f, const struct plan *p, struct arena *a, struct doctor *out)
{
    struct look l = look_at(f, p, a);
    struct doctor d = { 0 };
    const struct check *table = checks_table(&d.n);
    d.lines = ARENA_NEW(a, struct doctor_line, d.n);
    for (size_t i = 0; i < d.n; i++) {
        d.lines[i] = (struct doctor_line){ &table[i], table[i].look(&l) };
        d.counts[d.lines[i].found.status]++;
    }
    d.gpu = l.gpu;
    d.target = look_target(&l);
    d.lacks_gpu = look_capable(&l) == 0;
    d.first = decide(&d);
    d.summary = summarise(&l, d.verdict, d.first);
    *out = d;
}
