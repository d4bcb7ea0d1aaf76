/* SPDX-License-Identifier: Apache-2.0
 * What `cairn env` would do about HSA_OVERRIDE_GFX_VERSION for the program of the log: the same plan, with
 * what is known about its GPUs, its PyTorch and its environment.  For another machine only the chip is known,
 * not the numbering of its GPUs. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include <string.h>

/* As the program had them; the log takes precedence over this shell. */
static const char *const *program_env(const struct judgement *j, bool selectors)
{
    static const enum log_var vars[] = { LOG_OVERRIDE, LOG_ROCR_VISIBLE, LOG_HIP_VISIBLE, LOG_CUDA_VISIBLE };
    struct plan_var *set = NULL;
    size_t n = 0;
    for (size_t i = 0; i < (selectors ? ARRAY_LEN(vars) : 1); i++)
        if (judge_var(j, vars[i]))
            *ARENA_PUSH(j->a, set, n) =
                (struct plan_var){ .name = log_var_name(vars[i]), .value = judge_var(j, vars[i]) };
    const char *const *env = j->ctx->env ? j->ctx->env : j->same_machine ? j->ctx->facts->env : NULL;
    return plan_change(selectors ? env : NULL, set, n, NULL, 0, j->a);
}

static struct torch_facts program_torch(const struct judgement *j, const struct override_wheel *wheel)
{
    const char *said = j->log->torch;
    struct torch_facts t = { .site = "" };
    if (j->torch && (!said[0] || str_eq(j->torch->version.s, said)))
        t = *j->torch;
    else if (said[0])
        t.version = (struct text){ said, "the log" };
    if (t.version.s)
        version_parse(t.version.s, &t.parsed);
    t.build = TORCH_ROCM;
    t.compiled = t.device_wheels = wheel->code;
    t.rocblas = wheel->rocblas;
    return t;
}

static struct plan plan_for(const struct judgement *j, struct facts *f, int gpu)
{
    const struct plan_options o = { .gpu = gpu };
    struct cairn_error err = { 0 };
    struct plan p = { 0 };
    return plan_build(f, &o, j->a, &p, &err) ? (struct plan){ 0 } : p;
}

/* The GPU of this machine that the log or the user means; -1: the plan's own choice. */
static int named_gpu(const struct judgement *j, const struct facts *f, const struct plan *p)
{
    bool named = j->chip && (j->log->failing[0] || j->ctx->gfx) && !judge_is_integrated(j->chip);
    if (!named || !p->gpu || str_eq(p->gpu->gfx.s, j->chip->gfx))
        return -1;
    for (size_t i = 0; i < f->n_gpus; i++)
        if (f->gpus[i].rocm_capable && str_eq(f->gpus[i].gfx.s, j->chip->gfx))
            return f->gpus[i].hip_index;
    return -1;
}

static struct plan plan_here(const struct judgement *j, struct torch_facts *torch)
{
    struct facts f = *j->ctx->facts;
    f.torches = torch;
    f.n_torches = 1;
    f.command = (struct command_facts){ 0 };
    f.env = program_env(j, true);
    struct plan p = plan_for(j, &f, -1);
    int gpu = named_gpu(j, &f, &p);
    return gpu >= 0 ? plan_for(j, &f, gpu) : p;
}

static struct plan plan_elsewhere(const struct judgement *j, struct torch_facts *torch)
{
    struct facts f = { .default_gpu = -1, .torches = torch, .n_torches = 1, .env = program_env(j, false) };
    if (j->chip && !j->family) {
        struct gpu_facts *g = ARENA_PUSH(j->a, f.gpus, f.n_gpus);
        *g = (struct gpu_facts){ .gfx = { j->chip->gfx, "the log" },
                                 .kind = gfx_kind(j->chip->gfx, 0),
                                 .rocm_capable = true };
        f.default_gpu = 0;
    }
    return plan_for(j, &f, -1);
}

static struct plan make_plan(const struct judgement *j, const struct override_wheel *wheel)
{
    struct plan p = { 0 };
    struct torch_facts *torch = ARENA_NEW(j->a, struct torch_facts, 1);
    *torch = program_torch(j, wheel);
    torch->guess = false; /* it failed, and this is the best that is known */
    if (j->windows)
        return p;
    if (j->same_machine)
        p = plan_here(j, torch);
    return p.gpu ? p : plan_elsewhere(j, torch);
}

/* Of the active ones, the most harmful; NULL: none is active. */
static const struct plan_var *find_override(const struct plan *p)
{
    const struct plan_var *worst = NULL;
    for (size_t i = 0; i < p->n_unset; i++)
        if (override_is_name(p->unset[i].name) && (!worst || (p->unset[i].fatal && !worst->fatal)))
            worst = &p->unset[i];
    for (size_t i = 0; i < p->n_keep && !worst; i++)
        if (override_is_name(p->keep[i].name))
            worst = &p->keep[i];
    return worst;
}

void judge_plan(struct judgement *j)
{
    j->plan = make_plan(j, &j->wheel);
    j->override = find_override(&j->plan);
}

void judge_plan_again(struct judgement *j)
{
    struct override_wheel w = j->wheel;
    const struct log_gfx *listed = &j->log->listed;
    const struct gfx_chip *chip = j->family ? NULL : j->chip;
    if (!chip && j->plan.gpu && j->plan.gpu->gfx.s)
        chip = gfx_find(j->plan.gpu->gfx.s);
    bool by_list = j->verdict == ISSUE_TENSILE_MISSING && listed->n;
    if (j->windows || !chip || (w.code.from && !by_list))
        return;
    if (by_list) {
        w.rocblas = (struct targets){ .from = "the log" };
        for (size_t i = 0; i < listed->n; i++)
            *ARENA_PUSH(j->a, w.rocblas.name, w.rocblas.n) = listed->name[i];
    }
    if (!w.code.from)
        w.code = by_list ? w.rocblas : override_code_before(chip, j->a);
    j->plan = make_plan(j, &w);
}

bool judge_needs_override(const struct judgement *j)
{
    for (size_t i = 0; i < j->plan.n_set; i++)
        if (override_is_name(j->plan.set[i].name))
            return true;
    return false;
}

const struct gfx_chip *judge_stand_in(const struct judgement *j)
{
    for (size_t i = 0; j->chip && i < j->plan.n_visible; i++) {
        const struct gpu_facts *g = j->plan.visible[i];
        const struct plan_var *v = plan_override(&j->plan, g);
        if (v && str_eq(g->gfx.s, j->chip->gfx))
            return gfx_find_override(v->value);
    }
    return NULL;
}

void diagnose_add_override(const struct judgement *j, struct diagnose_fix *fix)
{
    const struct plan *p = &j->plan;
    for (size_t i = 0; i < p->n_set; i++)
        if (override_is_name(p->set[i].name) || plan_is_selector(p->set[i].name))
            *ARENA_PUSH(j->a, fix->set, fix->n_set) =
                (struct plan_var){ .name = p->set[i].name, .value = p->set[i].value, .why = fix->text };
    for (size_t i = 0; i < p->n_unset; i++) {
        const char *name = p->unset[i].name;
        if ((override_is_name(name) || plan_is_selector(name)) && !plan_find(p->set, p->n_set, name))
            *ARENA_PUSH(j->a, fix->unset, fix->n_unset) = name;
    }
}

/* The keys. */

/* diagnose_add_override provides all of it. */
static const char *key_override(const struct judgement *j)
{
    return judge_needs_override(j) ? OVERRIDE_NAME : NULL;
}

/* The active ones. If the log only complains about one, the usual name. */
static const char *key_overrides(const struct judgement *j)
{
    CLEANUP(str_release) struct str s = { 0 };
    const struct plan_var *const lists[] = { j->plan.unset, j->plan.keep };
    const size_t n[] = { j->plan.n_unset, j->plan.n_keep };
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        for (size_t i = 0; i < n[k]; i++)
            if (override_is_name(lists[k][i].name))
                str_addf(&s, "%s%s", s.len ? " " : "", lists[k][i].name);
    return s.len ? arena_strdup(j->a, s.s) : j->verdict == ISSUE_OVERRIDE_BAD ? OVERRIDE_NAME : NULL;
}

/* "gfx1031 as gfx1030" */
static const char *key_taken_for(const struct judgement *j)
{
    CLEANUP(str_release) struct str s = { 0 };
    for (size_t i = 0; i < j->plan.n_visible; i++) {
        const struct gpu_facts *g = j->plan.visible[i];
        const struct plan_var *v = plan_override(&j->plan, g);
        const struct gfx_chip *as = v ? gfx_find_override(v->value) : NULL;
        const char *pair = as ? arena_printf(j->a, "%s as %s", g->gfx.s, as->gfx) : NULL;
        if (pair && !(s.len && strstr(s.s, pair)))
            str_addf(&s, "%s%s", s.len ? " and " : "", pair);
    }
    return s.len ? arena_strdup(j->a, s.s) : NULL;
}

static const char *key_as(const struct judgement *j)
{
    const struct gfx_chip *c = judge_stand_in(j);
    return c ? c->gfx : NULL;
}

static const char *key_override_name(const struct judgement *j)
{
    return j->override ? j->override->name : OVERRIDE_NAME;
}

static const char *key_override_value(const struct judgement *j)
{
    return j->override ? j->override->value : NULL;
}

static const char *key_override_flaw(const struct judgement *j)
{
    return j->override && j->override->flaw != OVERRIDE_FINE
               ? j->override->why
               : "it makes the runtime fail, or load code of another chip, which then faults or hangs";
}

const struct diagnose_key_row diagnose_plan_keys[] = {
    { "override", key_override },           { "overrides", key_overrides },
    { "taken_for", key_taken_for },         { "as", key_as },
    { "override_name", key_override_name }, { "override_value", key_override_value },
    { "override_flaw", key_override_flaw }, { NULL, NULL },
};
