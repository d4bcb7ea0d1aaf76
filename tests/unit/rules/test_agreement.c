/* SPDX-License-Identifier: Apache-2.0
 * The plan, the doctor and the diagnosis are asked about the same machine, and do not contradict each other:
 * every capture, PyTorches that have the chip's code, a relative's or neither, and the left-overs of many guides. */
#include "planning.h"

#include "base/str.h"
#include "check.h"
#include "rules/checks.h"
#include "rules/diagnose.h"
#include "rules/fast_paths.h"
#include "chip/gfx_table.h"
#include "rules/override.h"
#include <stdio.h>
#include <string.h>

/* "own": also the chip's own target; "alone": nothing but that; "near": only what could stand in for it; "far": nothing
 * that runs on it. */
static const struct {
    const char *version, *code;
    bool therock, kpack, flash;
} torches[] = {
    { NULL, NULL, false, false, false },
    { "2.9.1+cpu", NULL, false, false, false },
    { "2.9.1+cu128", NULL, false, false, false },
    { "2.5.1+rocm6.2", "wheel", false, false, false },
    { "2.9.1+rocm6.4", "wheel", false, false, true },
    { "2.10.0+rocm7.0", "own", false, false, false },
    { "2.12.0+rocm7.2", "own", false, false, true },
    { "2.12.0+rocm7.2", "near", false, false, false },
    { "2.11.0+rocm7.14", "alone", true, false, false },
    { "2.11.0+rocm7.14", "near", true, true, false },
    { "2.11.0+rocm7.14", "alone", true, true, false },
    { "2.9.1+rocm6.4", "far", false, false, false },
    { "2.9.1+rocm6.4", "unknown", false, false, false },
};

#define ENV(...)          \
    {                     \
        __VA_ARGS__, NULL \
    }
static const char *const environments[][8] = {
    { NULL },
    ENV("@halo-start-script.env"),
    ENV("@halo-windows.env"),
    ENV("@rx6750xt-by-hand.env"),
    ENV("@rx6750xt-debugging.env"),
    ENV("@rx6750xt-wrapper.env"),
    ENV("HSA_OVERRIDE_GFX_VERSION=10.3.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=11.0.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=11.5.1"),
    ENV("HSA_OVERRIDE_GFX_VERSION=9.0.0"),
    ENV("HSA_OVERRIDE_GFX_VERSION=gfx1030"),
    ENV("HSA_OVERRIDE_GFX_VERSION_1=10.3.0", "HSA_OVERRIDE_GFX_VERSION_2=11.0.0"),
    ENV("ROCR_VISIBLE_DEVICES=0"),
    ENV("ROCR_VISIBLE_DEVICES=1", "HSA_OVERRIDE_GFX_VERSION=10.3.0"),
    ENV("HIP_VISIBLE_DEVICES=0,1"),
    ENV("HIP_VISIBLE_DEVICES=1"),
    ENV("HIP_VISIBLE_DEVICES=7"),
    ENV("CUDA_VISIBLE_DEVICES=0, 1"),
    ENV("HIP_VISIBLE_DEVICES="),
    ENV("ROCR_VISIBLE_DEVICES=1,0", "HIP_VISIBLE_DEVICES=1"),
    ENV("LD_LIBRARY_PATH=/opt/rocm/lib:/usr/local/lib", "LD_PRELOAD=/opt/rocm/lib/librocblas.so.4"),
    ENV("PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:8", "PYTORCH_NO_HIP_MEMORY_CACHING=1"),
    ENV("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,garbage_collection_threshold:0.7"),
    ENV("TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=0", "FLASH_ATTENTION_TRITON_AMD_ENABLE=true"),
    ENV("FLASH_ATTENTION_TRITON_AMD_ENABLE=0", "MIOPEN_FIND_MODE=QUICK", "HSA_XNACK=1"),
    ENV("ROCBLAS_USE_HIPBLASLT=1", "AMD_SERIALIZE_KERNEL=3", "HIP_LAUNCH_BLOCKING=1"),
};

struct trial {
    struct planning p;
    const char *where, *torch, *code;
    size_t env;
};

#define BAD(t, ...)                                                                                     \
    do {                                                                                                \
        CHECK_FAIL_("%s, torch %s (%s), environment %zu", (t)->where, (t)->torch ? (t)->torch : "none", \
                    (t)->code ? (t)->code : "-", (t)->env);                                             \
        printf("#   " __VA_ARGS__);                                                                     \
        putchar('\n');                                                                                  \
        tell(t);                                                                                        \
    } while (0)

static void tell(const struct trial *t)
{
    for (size_t i = 0; i < t->p.n_env; i++)
        printf("#   user %s\n", t->p.env[i]);
    for (size_t i = 0; i < t->p.plan.n_set; i++)
        printf("#   set %s=%s\n", t->p.plan.set[i].name, t->p.plan.set[i].value);
    for (size_t i = 0; i < t->p.plan.n_unset; i++)
        printf("#   unset %s: %s\n", t->p.plan.unset[i].name, t->p.plan.unset[i].why);
}

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

static bool is_override(const char *name)
{
    return str_starts(name, "HSA_OVERRIDE_GFX_VERSION");
}

/* The value that the plan wants, under the plain name or for one GPU; NULL: none. */
static const char *planned_override(const struct plan *p)
{
    for (size_t i = 0; i < p->n_set; i++)
        if (is_override(p->set[i].name))
            return p->set[i].value;
    return NULL;
}

/* A fix sets the override that the plan would set, and the plan takes nothing of it out again. */
static void the_fix_fits(struct trial *t, const struct diagnosis *d, const struct diagnose_fix *fix)
{
    struct planning *p = &t->p;
    struct cairn_error err = { 0 };
    struct plan after;
    struct facts changed = p->facts;
    changed.env = plan_change(p->env, fix->set, fix->n_set, fix->unset, fix->n_unset, &p->arena);
    /* Where the wheel's code is not known, the log itself says more than the plan knows. */
    if (!override_wheel_of(facts_torch(&p->facts)).code.from ||
        plan_build(&changed, &p->options, &p->arena, &after, &err))
        return;
    for (size_t i = 0; i < fix->n_set; i++) {
        const struct plan_var *v = &fix->set[i], *gone = plan_find(after.unset, after.n_unset, v->name);
        if (is_override(v->name) && gone)
            BAD(t, "diagnose (%s) offers %s=%s, and the plan removes it: %s", d->class_id, v->name, v->value,
                gone->why);
        /* One that is in force and did not help may be changed for another. */
        bool keeps = false;
        for (size_t k = 0; k < p->plan.n_keep; k++)
            keeps |= is_override(p->plan.keep[k].name);
        if (is_override(v->name) && !keeps && !str_eq(planned_override(&p->plan), v->value))
            BAD(t, "diagnose (%s) offers %s=%s, the plan has %s", d->class_id, v->name, v->value,
                planned_override(&p->plan) ? planned_override(&p->plan) : "none");
    }
}

static bool offers(const struct diagnosis *d, const char *name, const char *value)
{
    for (size_t i = 0; i < d->n_fixes; i++) {
        for (size_t k = 0; k < d->fixes[i].n_set; k++)
            if (value && str_eq(d->fixes[i].set[k].name, name) && str_eq(d->fixes[i].set[k].value, value))
                return true;
        for (size_t k = 0; k < d->fixes[i].n_unset; k++)
            if (!value && str_eq(d->fixes[i].unset[k], name))
                return true;
    }
    return false;
}

/* "invalid device function": what the plan would do about an override is among the fixes, and nothing against it. */
static void the_diagnosis_follows(struct trial *t)
{
    static const char log[] = "RuntimeError: HIP error: invalid device function\n";
    static const char name[] = "HSA_OVERRIDE_GFX_VERSION";
    struct planning *p = &t->p;
    struct diagnoser *diagnoser;
    struct cairn_error err = { 0 };
    struct diagnosis d;
    if (!p->plan.gpu || diagnoser_new(&diagnoser, &err))
        return;
    const struct diagnose_context ctx = { .facts = &p->facts, .exit_code = 1, .env = p->env };
    diagnoser_feed(diagnoser, log, strlen(log));
    diagnoser_finish(diagnoser, &ctx, &p->arena, &d);
    for (size_t i = 0; i < d.n_fixes; i++)
        the_fix_fits(t, &d, &d.fixes[i]);
    const struct plan_var *bad = plan_find(p->plan.unset, p->plan.n_unset, name);
    const char *want = planning_set(p, name);
    /* Who chose the integrated GPU himself is told to choose the card. */
    bool other = p->plan.gpu != &p->facts.gpus[p->facts.default_gpu] && str_eq(d.class_id, "wrong-gpu");
    if (want && facts_torch(&p->facts) && !other && !offers(&d, name, want))
        BAD(t, "diagnose (%s) does not offer %s=%s", d.class_id, name, want);
    if (bad && bad->fatal && !want && !offers(&d, name, NULL))
        BAD(t, "diagnose (%s) does not take %s=%s out", d.class_id, name, bad->value);
    diagnoser_free(diagnoser);
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

static void fill_targets(struct trial *t, const char *code)
{
    struct planning *p = &t->p;
    const char *gfx = p->facts.default_gpu >= 0 ? p->facts.gpus[p->facts.default_gpu].gfx.s : NULL;
    const struct gfx_chip *chip = gfx ? gfx_find(gfx) : NULL;
    const char *near = "gfx900";
    for (const struct gfx_chip *c = gfx_table(); c->gfx && chip; c++)
        if (c != chip && gfx_is_safe_relative(c, chip))
            near = c->gfx;
    if (str_eq(code, "own"))
        planning_targets(
            p, arena_printf(&p->arena, "gfx906 gfx1030 gfx1100 gfx1101 gfx1201 %s", gfx ? gfx : ""));
    else if (str_eq(code, "alone"))
        planning_targets(p, gfx ? gfx : "gfx1030");
    else if (str_eq(code, "near"))
        planning_targets(p, near);
    else if (str_eq(code, "far"))
        planning_targets(p, gfx && str_starts(gfx, "gfx9") ? "gfx1201" : "gfx906");
    else if (str_eq(code, "unknown"))
        p->torch.compiled = (struct targets){ 0 };
}

static void put_torch(struct trial *t, size_t i)
{
    struct planning *p = &t->p;
    planning_torch(p, torches[i].version);
    if (!torches[i].code)
        return;
    fill_targets(t, torches[i].code);
    /* Its libraries: those of AMD's own wheels have all that PyTorch has; others lack MIOpen's database, and one of them
     * rocBLAS' kernels too. */
    p->torch.rocblas = p->torch.hipblaslt = p->torch.aotriton = p->torch.miopen = p->torch.compiled;
    if (!torches[i].therock)
        p->torch.miopen = (struct targets){ .from = "test" };
    if (torches[i].flash)
        p->torch.rocblas = (struct targets){ .from = "test" };
    p->torch.therock = torches[i].therock;
    p->torch.kpack = torches[i].kpack;
    if (torches[i].kpack)
        p->torch.device_wheels = p->torch.compiled;
    if (torches[i].flash)
        p->torch.flash_attn = (struct package_facts){ .version = { "2.8.3", "test" }, .fits = TRI_YES };
}

static void put_env(struct trial *t, size_t e)
{
    struct planning *p = &t->p;
    p->n_env = 0;
    memset(p->env, 0, sizeof(p->env));
    for (size_t i = 0; environments[e][i]; i++)
        if (environments[e][i][0] == '@')
            CHECK(planning_env_file(p, environments[e][i] + 1));
        else
            planning_env(p, environments[e][i]);
}

static void try_one(struct trial *t)
{
    struct cairn_error err = { 0 };
    struct doctor d;
    if (planning_run(&t->p, &err)) {
        BAD(t, "no plan: %s", err.msg);
        return;
    }
    doctor_run(&t->p.facts, &t->p.plan, &t->p.arena, &d);
    remedies_are_the_plan(t, &d);
    the_plan_is_in_the_findings(t, &d);
    the_verdict_is_the_worst(t, &d);
    memory_is_one_figure(t, &d);
    the_plan_is_final(t);
}

/* At random only where one GPU is in sight: of several, with a selection that has a mistake, the plan mends that first. */
static void try_diagnosis(struct trial *t)
{
    struct cairn_error err = { 0 };
    const struct plan *p = &t->p.plan;
    if (planning_run(&t->p, &err))
        return;
    bool chosen = false;
    for (size_t i = 0; i < PLAN_N_SELECTORS; i++)
        chosen |= facts_env(&t->p.facts, plan_selectors[i]) != NULL;
    if (!str_eq(t->code, "at random") || (p->n_visible == 1 && !chosen))
        the_diagnosis_follows(t);
}

static size_t sweep(const char *where, void (*try)(struct trial *t))
{
    struct trial t = { .where = where };
    size_t n = 0;
    if (!planning_open(&t.p, where)) {
        CHECK_FAIL_("cannot read %s", where);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(torches); i++)
        for (size_t e = 0; e < ARRAY_LEN(environments) && check_bad_here < 20; e++) {
            t.torch = torches[i].version;
            t.code = torches[i].code;
            t.env = e;
            put_torch(&t, i);
            put_env(&t, e);
            try(&t);
            arena_release(&t.p.arena);
            n++;
        }
    planning_release(&t.p);
    return n;
}

/* Values that nobody thought of: any override, any selection, and a wheel of any targets. */
static const char *some_assignment(struct trial *t, uint32_t r)
{
    static const char *const others[] = {
        "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:128",
        "PYTORCH_ALLOC_CONF=backend:malloc",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "TORCH_BLAS_PREFER_HIPBLASLT=yes",
        "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1",
        "FLASH_ATTENTION_TRITON_AMD_ENABLE=1",
        "ROCBLAS_USE_HIPBLASLT=1",
        "ROCBLAS_TENSILE_LIBPATH=/opt/rocm/lib/rocblas/library",
        "LD_LIBRARY_PATH=/opt/rocm-6.4.0/lib:",
        "LD_PRELOAD=libamdhip64.so",
        "AMD_SERIALIZE_KERNEL=0",
        "HSA_XNACK=true",
        "HSA_ENABLE_SDMA=0",
        "MIOPEN_FIND_MODE=FAST",
        "HIP_LAUNCH_BLOCKING=yes",
        "GPU_MAX_HW_QUEUES=two",
    };
    static const char *const lists[] = {
        "0", "1", "0,1", "1,0", "0, 1", "", "9", "-1", "GPU-0123456789abcdef"
    };
    size_t chips = 0;
    char value[16] = "10.3";
    while (gfx_table()[chips].gfx)
        chips++;
    uint32_t pick = r >> 3;
    switch (r & 7) {
    case 0:
    case 1:
        gfx_override_value(gfx_table()[pick % chips].gfx, value);
        return arena_printf(&t->p.arena, "HSA_OVERRIDE_GFX_VERSION%s=%s",
                            r & 1        ? ""
                            : pick & 256 ? "_1"
                                         : "_2",
                            value);
    case 2:
        return arena_printf(&t->p.arena, "ROCR_VISIBLE_DEVICES=%s", lists[pick % ARRAY_LEN(lists)]);
    case 3:
        return arena_printf(&t->p.arena, "HIP_VISIBLE_DEVICES=%s", lists[pick % ARRAY_LEN(lists)]);
    case 4:
        return arena_printf(&t->p.arena, "CUDA_VISIBLE_DEVICES=%s", lists[pick % ARRAY_LEN(lists)]);
    default:
        return others[pick % ARRAY_LEN(others)];
    }
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static const char *some_targets(struct trial *t, uint32_t *seed)
{
    const char *list = "";
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (next_random(seed) % 4 == 0)
            list = arena_printf(&t->p.arena, "%s%s ", list, c->gfx);
    return list;
}

static void put_random(struct trial *t, uint32_t *seed)
{
    struct planning *p = &t->p;
    put_torch(t, next_random(seed) % ARRAY_LEN(torches));
    if (p->torch.compiled.from && next_random(seed) % 2) {
        planning_targets(p, some_targets(t, seed));
        p->torch.rocblas = p->torch.compiled;
        p->torch.device_wheels = p->torch.kpack ? p->torch.compiled : p->torch.device_wheels;
    }
    if (p->torch.compiled.from && next_random(seed) % 4 == 0) {
        struct targets code = p->torch.compiled;
        planning_targets(p, some_targets(t, seed));
        p->torch.rocblas = p->torch.compiled;
        p->torch.compiled = code;
    }
    p->n_env = 0;
    memset(p->env, 0, sizeof(p->env));
    for (uint32_t n = next_random(seed) % 5; n > 0; n--) {
        const char *one = some_assignment(t, next_random(seed));
        size_t len = strcspn(one, "="), k = 0;
        while (k < p->n_env && strncmp(p->env[k], one, len + 1))
            k++;
        if (k == p->n_env)
            planning_env(p, one);
    }
}

static size_t sweep_at_random(const char *where, void (*try)(struct trial *t), uint32_t *seed)
{
    struct trial t = { .where = where, .code = "at random" };
    size_t n = 0;
    if (!planning_open(&t.p, where))
        return 0;
    for (; n < 400 && check_bad_here < 20; n++) {
        put_random(&t, seed);
        t.torch = t.p.facts.n_torches ? t.p.torch.version.s : NULL;
        t.env = n;
        try(&t);
        arena_release(&t.p.arena);
    }
    planning_release(&t.p);
    return n;
}

struct course {
    void (*try)(struct trial *t);
    uint32_t seed;
};

static size_t sweep_capture(const char *capture, void *context)
{
    struct course *c = context;
    if (check_bad_here >= 20)
        return 0;
    return sweep(capture, c->try) + sweep_at_random(capture, c->try, &c->seed);
}

static void sweep_all(void (*try)(struct trial *t))
{
    struct course c = { try, 1 };
    CHECK(planning_captures(sweep_capture, &c) > 5000 || check_bad_here);
}

static void plan_and_doctor_agree(void)
{
    sweep_all(try_one);
}

static void diagnosis_and_plan_agree(void)
{
    sweep_all(try_diagnosis);
}

int main(void)
{
    RUN(plan_and_doctor_agree);
    RUN(diagnosis_and_plan_agree);
    return check_done();
}
