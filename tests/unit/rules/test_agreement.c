/* SPDX-License-Identifier: Apache-2.0
 * The plan, the doctor and the diagnosis are asked about the same machine, and do not contradict each other. */
#include "trials.h"

#include "base/str.h"
#include "check.h"
#include "rules/checks.h"
#include "rules/diagnose.h"
#include "rules/fast_paths.h"
#include <stdio.h>
#include <string.h>

enum { MOST_BAD = 20 };

#define BAD(t, ...)                                                                                     \
    do {                                                                                                \
        CHECK_FAIL_("%s, torch %s (%s), environment %zu", (t)->where, (t)->torch ? (t)->torch : "none", \
                    (t)->code ? (t)->code : "-", (t)->env);                                             \
        printf("#   " __VA_ARGS__);                                                                     \
        putchar('\n');                                                                                  \
        trial_tell(t);                                                                                  \
    } while (0)

static const struct finding *finding_of(const struct doctor *d, const char *id)
{
    for (size_t i = 0; i < d->n; i++)
        if (!strcmp(d->lines[i].check->id, id))
            return &d->lines[i].found;
    return NULL;
}

/* The lines of a remedy that are an "export NAME=…" or "unset NAME"; the next one, or NULL. */
static const char *next_change(const char *at, char *name, size_t size, bool *sets)
{
    for (const char *line = at; line && *line; line = str_next_line(line)) {
        *sets = str_starts(line, "export ");
        const char *word = *sets ? line + 7 : str_starts(line, "unset ") ? line + 6 : NULL;
        if (!word)
            continue;
        snprintf(name, size, "%.*s", (int)strcspn(word, "= \n"), word);
        return str_next_line(line) ? str_next_line(line) : "";
    }
    return NULL;
}

/* What the doctor tells to type is what the plan does. */
static void remedies_are_the_plan(struct trial *t, const struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++) {
        char name[64];
        bool sets;
        const struct plan *p = &t->p.plan;
        for (const char *at = d->lines[i].found.remedy;
             (at = next_change(at, name, sizeof(name), &sets)) != NULL;) {
            bool planned = sets ? plan_find(p->set, p->n_set, name) != NULL
                                : plan_find(p->unset, p->n_unset, name) != NULL;
            if (!planned)
                BAD(t, "%s: %s %s is not in the plan", d->lines[i].check->id, sets ? "export" : "unset",
                    name);
        }
    }
}

/* What the plan takes out is a finding, and what it sets is missing. */
static void the_plan_is_in_the_findings(struct trial *t, const struct doctor *d)
{
    static const char *const ids[] = { "override", "visible-devices", "env-harmful", "ld-library-path",
                                       "ld-preload" };
    const struct plan *p = &t->p.plan;
    for (size_t i = 0; i < p->n_unset; i++) {
        const struct finding *f = NULL;
        for (size_t k = 0; k < ARRAY_LEN(ids) && !f; k++) {
            f = finding_of(d, ids[k]);
            f = f && f->fact && strstr(f->fact, p->unset[i].name) ? f : NULL;
        }
        if (!f || (f->status != CHECK_WARN && f->status != CHECK_FAIL))
            BAD(t, "the doctor has nothing on %s", p->unset[i].name);
        else if (p->unset[i].fatal && p->gpu && f->status != CHECK_FAIL)
            BAD(t, "%s ends every run, and the doctor only warns", p->unset[i].name);
    }
    const struct finding *missing = finding_of(d, "env-planned");
    if (p->gpu && (missing->status == CHECK_OK) != !p->n_set)
        BAD(t, "env-planned is %s, and %zu variables are to be set", check_status_name(missing->status),
            p->n_set);
}

static void the_verdict_is_the_worst(struct trial *t, const struct doctor *d)
{
    bool fail = d->counts[CHECK_FAIL];
    if (fail != (d->verdict == VERDICT_BROKEN))
        BAD(t, "the verdict is %s, with %zu failures", verdict_name(d->verdict), d->counts[CHECK_FAIL]);
    if (d->verdict == VERDICT_WORKS && (t->p.plan.n_set || t->p.plan.n_unset) && t->p.plan.gpu)
        BAD(t, "it works, and yet the environment is to be changed");
    if (d->gpu && t->p.plan.gpu && d->gpu != t->p.plan.gpu)
        BAD(t, "the doctor judges another GPU than the plan is for");
}

/* The figure of the report is that of the facts. */
static void memory_is_one_figure(struct trial *t, const struct doctor *d)
{
    const struct finding *f = finding_of(d, "gpu-memory");
    if (d->gpu && (f->status == CHECK_UNKNOWN) == (d->gpu->usable_bytes.from != NULL))
        BAD(t, "the doctor and cairn gpu do not agree on whether the memory is known");
    if (d->gpu && d->gpu->usable_bytes.from && !strstr(f->fact, d->gpu->usable_reason))
        BAD(t, "the doctor has another reason for the memory: %s", f->fact);
}

/* Both have the same overrides, by name and value. */
static bool same_overrides(const struct plan_var *a, size_t n_a, const struct plan_var *b, size_t n_b)
{
    size_t count = 0;
    for (size_t i = 0; i < n_b; i++)
        count += override_is_name(b[i].name);
    for (size_t i = 0; i < n_a; i++) {
        const struct plan_var *twin = plan_find(b, n_b, a[i].name);
        if (override_is_name(a[i].name) && (!count-- || !twin || !str_eq(twin->value, a[i].value)))
            return false;
    }
    return count == 0;
}

/* A fix that sets an override sets what the plan would set, and the plan leaves it as it is then. */
static void the_fix_fits(struct trial *t, const struct diagnosis *d, const struct diagnose_fix *fix)
{
    struct planning *p = &t->p;
    struct cairn_error err = { 0 };
    struct plan after;
    struct facts changed = p->facts;
    if (same_overrides(fix->set, fix->n_set, NULL, 0)) /* none */
        return;
    if (!same_overrides(fix->set, fix->n_set, p->plan.set, p->plan.n_set))
        BAD(t, "diagnose (%s) offers %s=%s, which is not what the plan sets", d->class_id, fix->set[0].name,
            fix->set[0].value);
    changed.env = plan_change(p->env, fix->set, fix->n_set, fix->unset, fix->n_unset, &p->arena);
    if (plan_build(&changed, &p->options, &p->arena, &after, &err))
        return;
    for (size_t i = 0; i < after.n_set; i++)
        if (override_is_name(after.set[i].name))
            BAD(t, "after the fix of diagnose (%s) the plan sets %s=%s", d->class_id, after.set[i].name,
                after.set[i].value);
    for (size_t i = 0; i < after.n_unset; i++)
        if (override_is_name(after.unset[i].name))
            BAD(t, "after the fix of diagnose (%s) the plan removes %s: %s", d->class_id, after.unset[i].name,
                after.unset[i].why);
}

static bool offers(const struct diagnosis *d, const struct plan_var *v)
{
    for (size_t i = 0; i < d->n_fixes; i++) {
        const struct plan_var *one = plan_find(d->fixes[i].set, d->fixes[i].n_set, v->name);
        if (one && str_eq(one->value, v->value))
            return true;
    }
    return false;
}

/* Takes it out, or puts another value in its place. */
static bool takes_out(const struct diagnosis *d, const struct plan_var *v)
{
    for (size_t i = 0; i < d->n_fixes; i++) {
        const struct plan_var *one = plan_find(d->fixes[i].set, d->fixes[i].n_set, v->name);
        if (one && !str_eq(one->value, v->value))
            return true;
        for (size_t k = 0; k < d->fixes[i].n_unset; k++)
            if (str_eq(d->fixes[i].unset[k], v->name))
                return true;
        const char *line = strstr(d->fixes[i].text, "\nunset "); /* with a wheel, for a person */
        if (line && str_list_has(line + strlen("\nunset "), ' ', v->name))
            return true;
    }
    return false;
}

/* PyTorch has code for none of the GPUs that the program saw, or, where it saw none, was meant to see. */
static bool lacks_code(struct trial *t)
{
    const struct facts *f = &t->p.facts;
    const struct override_wheel wheel = override_wheel_of(facts_torch(f));
    const char *hip = facts_env(f, plan_selectors[1]);
    const struct gpu_facts **seen = NULL;
    size_t n = plan_visible(f, facts_env(f, plan_selectors[0]), hip ? hip : facts_env(f, plan_selectors[2]),
                            &t->p.arena, &seen);
    bool lacks = true;
    for (size_t i = 0; i < n; i++)
        lacks &= seen[i]->gfx.s && override_has_code(&wheel, seen[i]->gfx.s) == TRI_NO;
    for (size_t i = 0; !n && i < t->p.plan.n_visible; i++)
        lacks &=
            t->p.plan.visible[i]->gfx.s && override_has_code(&wheel, t->p.plan.visible[i]->gfx.s) == TRI_NO;
    return lacks;
}

/* Where PyTorch has no code for the GPU, to do without an override is no fix. */
static void nothing_is_left_without_code(struct trial *t, const struct diagnosis *d)
{
    if (!lacks_code(t))
        return;
    for (size_t i = 0; i < d->n_fixes; i++) {
        const struct diagnose_fix *f = &d->fixes[i];
        for (size_t k = 0; k < f->n_unset && f->automatic; k++)
            if (override_is_name(f->unset[k]) && same_overrides(f->set, f->n_set, NULL, 0))
                BAD(t, "diagnose (%s) only removes %s, and no code is left that runs", d->class_id,
                    f->unset[k]);
    }
}

/* A wheel with the chip's own code stands before the override, or is not named: the same in both. */
static void the_order_is_one(struct trial *t, const struct diagnosis *d, const struct doctor *doctor)
{
    const struct finding *f = finding_of(doctor, "torch-target");
    const char *wheel = f->remedy ? strstr(f->remedy, "pip install") : NULL;
    const char *line = f->remedy ? strstr(f->remedy, "export " OVERRIDE_NAME) : NULL;
    if (!line || !str_eq(d->class_id, "no-kernel-image"))
        return;
    size_t first = 0, second = 0; /* of the wheel, of the override; from 1, 0: not there */
    for (size_t i = 0; i < d->n_fixes; i++) {
        if (!second && !same_overrides(d->fixes[i].set, d->fixes[i].n_set, NULL, 0))
            second = i + 1;
        if (!first && strstr(d->fixes[i].text, "pip install"))
            first = i + 1;
    }
    if (!second || (wheel != NULL) != (first != 0) || (first && (first < second) != (wheel < line)))
        BAD(t, "doctor: %s, diagnose has the wheel at %zu and the override at %zu", f->remedy, first, second);
}

static bool diagnose(struct trial *t, const char *log, struct diagnosis *out)
{
    struct diagnoser *d;
    struct cairn_error err = { 0 };
    const struct diagnose_context ctx = { .facts = &t->p.facts, .exit_code = 1, .env = t->p.env };
    if (diagnoser_new(&d, &err))
        return false;
    diagnoser_feed(d, log, strlen(log));
    diagnoser_finish(d, &ctx, &t->p.arena, out);
    diagnoser_free(d);
    return true;
}

/* "invalid device function": what the plan would do about overrides is among the fixes. */
static void the_diagnosis_follows(struct trial *t, const struct diagnosis *d)
{
    const struct plan *p = &t->p.plan;
    struct doctor doctor;
    for (size_t i = 0; i < p->n_set; i++)
        if (override_is_name(p->set[i].name) && !offers(d, &p->set[i]))
            BAD(t, "diagnose (%s) does not offer %s=%s", d->class_id, p->set[i].name, p->set[i].value);
    /* What ran on the integrated GPU did not get as far as the card's override. */
    for (size_t i = 0; i < p->n_unset && !str_eq(d->class_id, "wrong-gpu"); i++)
        if (override_is_name(p->unset[i].name) && p->unset[i].fatal && !takes_out(d, &p->unset[i]))
            BAD(t, "diagnose (%s) does not take %s=%s out", d->class_id, p->unset[i].name, p->unset[i].value);
    doctor_run(&t->p.facts, p, &t->p.arena, &doctor);
    the_order_is_one(t, d, &doctor);
}

/* Whatever happened, nothing in the fixes is against the plan. */
static void the_diagnoses_agree(struct trial *t)
{
    static const char *const logs[] = {
        "RuntimeError: HIP error: invalid device function\n",
        "RuntimeError: No HIP GPUs are available\n",
        "Fatal Python error: Segmentation fault\n",
        "Memory access fault by GPU node-1 (Agent handle: 0x1) on address 0x7f00. Reason: Page not present.\n",
        "amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n",
        "rocBLAS error: Cannot read TensileLibrary.dat: No such file or directory\n",
    };
    struct diagnosis d;
    /* Where the wheel's code is not known, the log itself says more than the plan knows. */
    if (!t->p.plan.gpu || !override_wheel_of(facts_torch(&t->p.facts)).code.from)
        return;
    size_t other = 1 + t->env % (ARRAY_LEN(logs) - 1);
    for (size_t i = 0; i <= other; i += other) {
        if (!diagnose(t, logs[i], &d))
            continue;
        for (size_t k = 0; k < d.n_fixes; k++)
            the_fix_fits(t, &d, &d.fixes[k]);
        nothing_is_left_without_code(t, &d);
        if (i == 0)
            the_diagnosis_follows(t, &d);
    }
}

/* What run names as fast paths is what the checks find. */
static void the_fast_paths_are_the_checks(struct trial *t, const struct facts *f, const struct plan *p,
                                          const struct doctor *d)
{
    const struct fast_paths paths = fast_paths_find(f, p, &t->p.arena);
    const struct finding *attention = finding_of(d, "aotriton"), *blas = finding_of(d, "rocblas");
    if (paths.target && attention->status == CHECK_OK && paths.attention == TRI_NO)
        BAD(t, "run says that there is no fused attention, the doctor: %s", attention->fact);
    if (paths.target && attention->status == CHECK_WARN && paths.attention == TRI_YES)
        BAD(t, "run says that fused attention is on, the doctor: %s", attention->fact);
    if (paths.target && (blas->status == CHECK_OK) != (paths.rocblas == TRI_YES))
        BAD(t, "run and doctor do not agree on rocBLAS: %s", blas->fact);
    if (paths.target && !str_eq(paths.target, d->target))
        BAD(t, "run says %s, the doctor %s", paths.target, d->target);
}

/* The environment that the plan leaves is one in which nothing is left to do. */
static void the_plan_is_final(struct trial *t)
{
    struct planning *p = &t->p;
    struct cairn_error err = { 0 };
    struct plan again;
    struct doctor d;
    char name[64];
    bool sets;
    struct facts after = p->facts;
    after.env = plan_environment(&p->facts, &p->plan, &p->arena);
    if (plan_build(&after, &p->options, &p->arena, &again, &err)) {
        BAD(t, "no plan for what the plan left: %s", err.msg);
        return;
    }
    for (size_t i = 0; i < again.n_set; i++)
        BAD(t, "the second plan still sets %s=%s", again.set[i].name, again.set[i].value);
    for (size_t i = 0; i < again.n_unset; i++)
        BAD(t, "the second plan still removes %s: %s", again.unset[i].name, again.unset[i].why);
    if (again.gpu != p->plan.gpu)
        BAD(t, "the second plan is for another GPU");
    doctor_run(&after, &again, &p->arena, &d);
    if (again.gpu)
        the_fast_paths_are_the_checks(t, &after, &again, &d);
    for (size_t i = 0; i < d.n; i++) {
        const struct finding *f = &d.lines[i].found;
        bool open = f->status == CHECK_WARN || f->status == CHECK_FAIL;
        bool cures = f->remedy && next_change(f->remedy, name, sizeof(name), &sets);
        /* The second line may offer what is in force already. */
        if (open && (cures || str_eq(f->remedy, "eval \"$(cairn env)\"")))
            BAD(t, "after the plan, %s is still to be cured by: %s", d.lines[i].check->id, f->remedy);
    }
}

static bool try_one(struct trial *t)
{
    struct cairn_error err = { 0 };
    struct doctor d;
    if (planning_run(&t->p, &err)) {
        BAD(t, "no plan: %s", err.msg);
        return check_bad_here < MOST_BAD;
    }
    doctor_run(&t->p.facts, &t->p.plan, &t->p.arena, &d);
    remedies_are_the_plan(t, &d);
    the_plan_is_in_the_findings(t, &d);
    the_verdict_is_the_worst(t, &d);
    memory_is_one_figure(t, &d);
    the_plan_is_final(t);
    return check_bad_here < MOST_BAD;
}

static bool try_diagnosis(struct trial *t)
{
    struct cairn_error err = { 0 };
    if (!planning_run(&t->p, &err))
        the_diagnoses_agree(t);
    return check_bad_here < MOST_BAD;
}

static void plan_and_doctor_agree(void)
{
    CHECK(trials_run(try_one) > 5000 || check_bad_here);
}

static void diagnosis_and_plan_agree(void)
{
    CHECK(trials_run(try_diagnosis) > 5000 || check_bad_here);
}

int main(void)
{
    RUN(plan_and_doctor_agree);
    RUN(diagnosis_and_plan_agree);
    return check_done();
}
