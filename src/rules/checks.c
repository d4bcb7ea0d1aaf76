/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/checks.h"

#include "base/str.h"
#include "rules/check_ctx.h"

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

/* The first line of this status that counts for the verdict, among those with all of these flags. */
static const struct doctor_line *first_line(const struct doctor *d, enum check_status s, unsigned want)
{
    for (size_t i = 0; i < d->n; i++) {
        unsigned flags = d->lines[i].check->flags;
        if (d->lines[i].found.status != s || (flags & want) != want)
            continue;
        if (s == CHECK_WARN && (flags & CHECK_ADVICE))
            continue;
        return &d->lines[i];
    }
    return NULL;
}

/* A failure decides first; then an unknown; then what may stop a job later; then what only makes it slower.
 * */
static const struct doctor_line *decide(struct doctor *d)
{
    static const struct {
        enum check_status status;
        unsigned flags;
        enum verdict verdict;
    } order[] = {
        { CHECK_FAIL, 0, VERDICT_BROKEN },
        { CHECK_UNKNOWN, CHECK_NEEDED, VERDICT_UNKNOWN },
        { CHECK_WARN, CHECK_HANGS, VERDICT_DEGRADED },
        { CHECK_WARN, 0, VERDICT_DEGRADED },
    };
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const struct doctor_line *line = first_line(d, order[i].status, order[i].flags);
        d->verdict = order[i].verdict;
        if (line)
            return line;
    }
    d->verdict = VERDICT_WORKS;
    return NULL;
}

static void add_names(struct str *s, const struct plan_var *vars, size_t n)
{
    for (size_t i = 0; i < n; i++)
        str_addf(s, "%s%s", i ? ", " : "", vars[i].name);
}

/* " `cairn run -- COMMAND` sets what is missing (A, B) and removes what harms (C)."; "" if the plan changes
 * nothing. */
static const char *say_what_run_does(const struct check_ctx *l)
{
    const struct plan *p = l->plan;
    CLEANUP(str_release) struct str s = { 0 };
    if (!p->gpu || (!p->n_set && !p->n_unset))
        return "";
    str_addf(&s, " `cairn run%s -- COMMAND`", ctx_gpu_option(l));
    if (p->n_set) {
        str_add(&s, " sets what is missing (");
        add_names(&s, p->set, p->n_set);
        str_add(&s, ")");
    }
    if (p->n_unset) {
        str_addf(&s, "%s removes what harms (", p->n_set ? " and" : "");
        add_names(&s, p->unset, p->n_unset);
        str_add(&s, ")");
    }
    return ctx_text(l, "%s.", s.s);
}

static const char *summarise_broken(const struct check_ctx *l, const struct doctor *d, const char *where)
{
    const struct doctor_line *line = d->first;
    if (!l->gpu)
        return ctx_text(l,
                        "Training with PyTorch on ROCm will not work on this machine: no AMD GPU was found.");
    if (d->plan_cures)
        return ctx_text(l, "Training with PyTorch will not work on %s as it is: %s (%s).%s", where,
                        line->found.fact, line->check->id, say_what_run_does(l));
    return ctx_text(l, "Training with PyTorch will not work on %s. %s%s (%s).", where,
                    line->found.remedy ? "Fix first: " : "cairn knows no fix: ", line->found.fact,
                    line->check->id);
}

static const char *summarise(const struct check_ctx *l, const struct doctor *d)
{
    const char *where = l->gpu ? ctx_gpu(l, l->gpu) : "this machine";
    const struct doctor_line *line = d->first;
    switch (d->verdict) {
    case VERDICT_WORKS:
        return ctx_text(l, "Training with PyTorch will work on %s.", where);
    case VERDICT_DEGRADED:
        if (line->check->flags & CHECK_HANGS)
            return ctx_text(
                l, "Training with PyTorch will start on %s, but can hang or crash. Fix first: %s (%s).%s",
                where, line->found.fact, line->check->id, say_what_run_does(l));
        return ctx_text(
            l,
            "Training with PyTorch will work on %s, but below its best speed or memory use. Improve "
            "first: %s (%s).%s",
            where, line->found.fact, line->check->id, say_what_run_does(l));
    case VERDICT_UNKNOWN:
        return ctx_text(l, "Unknown whether training with PyTorch will work on %s: %s (%s).", where,
                        line->found.fact, line->check->id);
    case VERDICT_BROKEN:
        break;
    }
    return summarise_broken(l, d, where);
}

static void run_checks(const struct check_ctx *l, struct doctor *d)
{
    const struct check *table = checks_table(&d->n);
    d->lines = ARENA_NEW(l->arena, struct doctor_line, d->n);
    for (size_t i = 0; i < d->n; i++) {
        d->lines[i] = (struct doctor_line){ &table[i], table[i].run(l) };
        d->counts[d->lines[i].found.status]++;
    }
}

/* Does anything still fail in the planned environment? */
static bool fails_as_planned(const struct facts *f, const struct plan *p, struct arena *a)
{
    const struct plan_options o = { .gpu = -1 };
    struct facts planned = *f;
    struct plan again = { 0 };
    struct cairn_error ignored = { 0 };
    struct doctor d = { 0 };
    planned.env = plan_environment(f, p, a);
    if (plan_build(&planned, &o, a, &again, &ignored))
        return true;
    struct check_ctx l = check_ctx_of(&planned, &again, a);
    run_checks(&l, &d);
    return d.counts[CHECK_FAIL];
}

/* cairn's own training runs on AMD GPUs of nobody whom cairn knows: it is proven where its selftest passed. */
static struct doctor_way native_way(const struct check_ctx *l)
{
    struct doctor_way w = { .name = "native", .command = "cairn train JOB.yaml" };
    const struct selftest_record *r = &l->facts->selftest;
    if (!l->facts->has_selftest)
        w.known = "not proven on this GPU; `cairn selftest` tests it";
    else if (!r->passed)
        w.known =
            ctx_text(l, "the selftest found wrong results on this GPU (cairn %s, %s)", r->version, r->date);
    else
        w.known = ctx_text(l, "the selftest passed on this GPU (cairn %s, %s)", r->version, r->date);
    w.is_proven = l->facts->has_selftest && r->passed;
    return w;
}

static struct doctor_way pytorch_way(const struct check_ctx *l, const struct doctor *d)
{
    static const char *const known[] = {
        [VERDICT_WORKS] = "works, by these checks; --probe tries it",
        [VERDICT_DEGRADED] = "works with limits, by these checks; --probe tries it",
        [VERDICT_BROKEN] = "does not work yet",
        [VERDICT_UNKNOWN] = "unknown, by these checks; --probe tries it",
    };
    return (struct doctor_way){ .name = "pytorch",
                                .command = ctx_text(l, "cairn run%s -- COMMAND", d->gpu_option),
                                .known = known[d->verdict] };
}

static void add_ways(const struct check_ctx *l, struct doctor *d)
{
    if (!l->gpu || d->lacks_gpu)
        return;
    struct doctor_way native = native_way(l);
    d->ways[!native.is_proven] = native;
    d->ways[native.is_proven] = pytorch_way(l, d);
    d->n_ways = DOCTOR_WAYS;
}

void doctor_run(const struct facts *f, const struct plan *p, struct arena *a, struct doctor *out)
{
    struct check_ctx l = check_ctx_of(f, p, a);
    struct doctor d = { 0 };
    run_checks(&l, &d);
    d.gpu = l.gpu;
    d.target = ctx_target(&l);
    d.gpu_option = ctx_gpu_option(&l);
    d.lacks_gpu = ctx_capable(&l) == 0;
    d.first = decide(&d);
    d.plan_cures = d.verdict == VERDICT_BROKEN && (p->n_set || p->n_unset) && !fails_as_planned(f, p, a);
    d.summary = summarise(&l, &d);
    add_ways(&l, &d);
    *out = d;
}
