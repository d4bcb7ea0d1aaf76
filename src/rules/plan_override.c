/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/plan_work.h"

#include "base/str.h"
#include "host/rocm_prefix.h"
#include "rules/env_sources.h"
#include <stdio.h>
#include <string.h>

#define PLAIN OVERRIDE_NAME

static struct override_wheel wheel_of(const struct work *w)
{
    return override_wheel_of(w->s.lists);
}

static enum tri has_code(const struct work *w, const char *gfx)
{
    const struct override_wheel wheel = wheel_of(w);
    return override_has_code(&wheel, gfx);
}

static const struct gfx_chip *chip_of(const struct gpu_facts *g)
{
    return g && g->gfx.s ? gfx_find(g->gfx.s) : NULL;
}

static enum override_flaw flaw_on(struct work *w, const char *value, const struct gpu_facts *g)
{
    const struct override_wheel wheel = wheel_of(w), any = override_wheel_of(NULL);
    enum override_flaw flaw = override_judge(&wheel, value, chip_of(g));
    if (!w->unsure || !override_is_by_wheel(flaw))
        return flaw;
    enum override_flaw always = override_judge(&any, value, chip_of(g));
    return always == OVERRIDE_FINE || override_is_by_wheel(always) ? flaw : always;
}

/* What is wrong with the user's override on one GPU; NULL: nothing. */
static const char *flaw_text(struct work *w, enum override_flaw flaw, const char *value,
                             const struct gpu_facts *g)
{
    return override_flaw_text(flaw, work_torch_text(w), value, chip_of(g), w->a);
}

static void refuse_flaw(struct work *w, struct env_var *v, enum override_flaw flaw, const struct gpu_facts *g)
{
    const char *text = flaw_text(w, flaw, v->value, g);
    v->flaw = flaw;
    if (override_is_by_wheel(flaw))
        work_refuse_by_torch(w, v, DOC_OVERRIDE, "%s", text);
    else
        work_refuse(w, v, DOC_OVERRIDE, "%s", text);
}

/* Appended to the reason for an override: the better way, if there is one. */
static const char *better_way(struct work *w, const struct gpu_facts *g)
{
    const struct gfx_chip *c = chip_of(g);
    if (!override_has_own_wheel(c, w->s.lists))
        return "";
    if (!c->wheel_major)
        return arena_printf(w->a,
                            "; code for another chip can hang or fault, and AMD's wheels have code for "
                            "%s",
                            c->gfx);
    return arena_printf(w->a,
                        "; code for another chip can hang or fault, and pytorch.org wheels have code "
                        "for %s since %s",
                        c->gfx, c->wheel);
}

static void accept_override(struct work *w, struct env_var *v, const struct gpu_facts *g)
{
    const struct gfx_chip *as = gfx_find_override(v->value);
    if (chip_of(g) && as && has_code(w, g->gfx.s) == TRI_NO)
        work_accept(w, v, "%s has no code for %s, but has code for %s, which runs on this chip%s",
                    work_torch_text(w), g->gfx.s, as->gfx, better_way(w, g));
    else
        work_accept(w, v, "your override; unknown whether this PyTorch needs it");
}

/* It renames all GPUs: the worst effect on one counts. A GPU that already has the name is not harmed. */
static int badness(const struct work *w, enum override_flaw flaw, const struct gpu_facts *g)
{
    if (flaw == OVERRIDE_SAME && g != w->plan->gpu)
        return 0;
    return flaw == OVERRIDE_FINE ? 1 : override_is_fatal(flaw) ? 3 : 2;
}

static enum override_flaw worst_flaw(struct work *w, const char *value, const struct gpu_facts **on)
{
    *on = w->n_visible ? w->visible[0] : NULL;
    enum override_flaw flaw = flaw_on(w, value, *on);
    for (size_t i = 1; i < w->n_visible; i++) {
        enum override_flaw one = flaw_on(w, value, w->visible[i]);
        if (badness(w, one, w->visible[i]) <= badness(w, flaw, *on))
            continue;
        flaw = one;
        *on = w->visible[i];
    }
    return flaw;
}

static void judge_plain(struct work *w, struct env_var *v)
{
    const struct gpu_facts *on;
    enum override_flaw flaw = worst_flaw(w, v->value, &on);
    v->fatal = override_is_fatal(flaw);
    if (flaw != OVERRIDE_FINE)
        refuse_flaw(w, v, flaw, on);
    else
        accept_override(w, v, w->plan->gpu);
}

static const struct gpu_facts *gpu_at_node(const struct work *w, const char *digits, bool *visible)
{
    int64_t node;
    if (!cairn_parse_i64(digits, &node))
        return NULL;
    for (size_t i = 0; i < w->f->n_gpus; i++) {
        const struct gpu_facts *g = &w->f->gpus[i];
        if (!g->kfd_node.from || g->kfd_node.v != node)
            continue;
        *visible = false;
        for (size_t k = 0; k < w->n_visible; k++)
            *visible |= w->visible[k] == g;
        return g;
    }
    return NULL;
}

static void judge_node(struct work *w, struct env_var *v)
{
    bool visible = false;
    const char *digits = v->name + strlen(PLAIN "_");
    const struct gpu_facts *g = gpu_at_node(w, digits, &visible);
    enum override_flaw flaw = flaw_on(w, v->value, g);
    v->fatal = visible && override_is_fatal(flaw); /* a hidden GPU may have any name */
    if (flaw != OVERRIDE_FINE)
        refuse_flaw(w, v, flaw, g);
    else if (w->s.rocm.n && version_below(w->s.rocm, 6, 3, 0))
        work_refuse_by_torch(w, v, DOC_OVERRIDE, "not read before ROCm 6.3");
    else if (w->plan->gpu && !g)
        work_refuse(w, v, DOC_OVERRIDE, "KFD node %s is not a GPU (nodes include CPUs: %s is node %lld)",
                    digits, work_gpu_text(w, w->plan->gpu), (long long)w->plan->gpu->kfd_node.v);
    else if (g && !visible)
        work_refuse(w, v, DOC_OVERRIDE, "%s is hidden, so renaming it does nothing", work_gpu_text(w, g));
    else
        accept_override(w, v, g);
}

static bool is_node_name(const char *name)
{
    return str_starts(name, PLAIN "_");
}

static const char *node_name(struct work *w, const struct gpu_facts *g)
{
    return arena_printf(w->a, PLAIN "_%lld", (long long)g->kfd_node.v);
}

/* The target whose code the GPU can run instead of its own; NULL: none needed, none available, or unknown. */
static const struct gfx_chip *stand_in(const struct work *w, const struct gpu_facts *g)
{
    const struct override_wheel wheel = wheel_of(w);
    return chip_of(g) ? override_stand_in(&wheel, chip_of(g)) : NULL;
}

/* What the user had set, if it was refused. */
static const char *refused_value(const struct work *w, const char *name)
{
    for (size_t i = 0; i < w->n_vars; i++)
        if (!strcmp(w->vars[i].name, name) && w->vars[i].state == VAR_REFUSED)
            return w->vars[i].value;
    return NULL;
}

/* Without a PyTorch nothing can be decided, but a hint about current wheels is possible; a user who tried an
 * override gets the intended value. */
static void plan_without_torch(struct work *w)
{
    const struct gfx_chip *real = w->plan->gpu->gfx.s ? gfx_find(w->plan->gpu->gfx.s) : NULL;
    if (!real || real->wheel_major)
        return;
    const struct override_wheel usual = { .code = override_code_before(real, w->a) };
    const struct gfx_chip *as = override_stand_in(&usual, real);
    const char *therock = real->therock ? "; AMD's TheRock wheels have it, and need no override" : "";
    const char *tried = refused_value(w, PLAIN);
    const struct gpu_facts *on;
    char value[16];
    if (!as || !gfx_override_value(as->gfx, value)) {
        work_warn(w, "pytorch.org wheels have no code for %s, nor for a related chip%s", real->gfx, therock);
    } else if (tried && worst_flaw(w, value, &on) == OVERRIDE_FINE) {
        w->computed[ENV_VALUE_OVERRIDE] = (struct computed){
            .value = arena_strdup(w->a, value),
            .why = arena_printf(
                w->a,
                "replaces your \"%s\": cairn found no PyTorch to inspect, but pytorch.org wheels have no "
                "code for %s, and code for %s runs on it",
                tried, real->gfx, as->gfx),
        };
    } else {
        work_warn(w, "pytorch.org wheels have no code for %s: with one of them, " PLAIN "=%s is needed%s",
                  real->gfx, value, therock);
    }
}

static void warn_no_code(struct work *w, const struct gpu_facts *g)
{
    const struct gfx_chip *c = g->gfx.s ? gfx_find(g->gfx.s) : NULL;
    bool split = w->s.lists->kpack;
    const char *wheel =
        c && c->wheel_major && !split ? arena_printf(w->a, "pytorch.org wheels (since %s)", c->wheel) : NULL;
    const char *therock = c && c->therock ? "AMD's TheRock wheels" : NULL;
    if (split)
        therock = arena_printf(w->a, "the device wheels rocm-sdk-device-%s and amd-torch-device-%s", g->gfx.s,
                               g->gfx.s);
    work_warn(w, "%s has no code for %s, nor for a related chip whose code it could run; %s%s%s%s",
              work_torch_text(w), work_gpu_text(w, g), wheel ? wheel : "", wheel && therock ? " or " : "",
              therock ? therock : "",
              wheel || therock ? " have code for it" : "no known wheel has code for it");
}

static void set_plain(struct work *w, const struct gfx_chip *as, const struct gpu_facts *g)
{
    char value[16];
    bool by_version = str_starts(wheel_of(w).code.from, FROM_VERSION);
    struct computed *c = &w->computed[ENV_VALUE_OVERRIDE];
    gfx_override_value(as->gfx, value);
    c->value = arena_strdup(w->a, value);
    c->why = arena_printf(w->a, "%s has no code for %s, but has code for %s, which runs on this chip%s%s",
                          work_torch_text(w), g->gfx.s, as->gfx,
                          by_version ? " (judged by its version: its own list is not readable)" : "",
                          better_way(w, g));
}

static void set_node(struct work *w, const struct gfx_chip *as, const struct gpu_facts *g)
{
    char value[16];
    gfx_override_value(as->gfx, value);
    *ARENA_PUSH(w->a, w->nodes, w->n_nodes) = (struct plan_var){
        .name = node_name(w, g),
        .value = arena_strdup(w->a, value),
        .why = arena_printf(w->a,
                            "%s has no code for %s, but has code for %s; only this GPU is renamed, because "
                            "another one stays visible",
                            work_torch_text(w), g->gfx.s, as->gfx),
        .source = DOC_OVERRIDE,
    };
}

static void choose(struct work *w)
{
    const struct gfx_chip *first = NULL;
    size_t n = 0;
    bool alike = true;
    for (size_t i = 0; i < w->n_visible; i++) {
        const struct gfx_chip *as =
            work_value(w, node_name(w, w->visible[i])) ? NULL : stand_in(w, w->visible[i]);
        if (!as) {
            alike = false;
            if (has_code(w, w->visible[i]->gfx.s) == TRI_NO && !work_value(w, node_name(w, w->visible[i])))
                warn_no_code(w, w->visible[i]);
            continue;
        }
        alike &= !n++ || as == first;
        first = first ? first : as;
    }
    if (n && alike)
        set_plain(w, first, w->plan->gpu);
    else if (n && !version_at_least(w->s.rocm, 6, 3, 0))
        work_warn(w,
                  "the visible GPUs need different overrides, which ROCm supports from 6.3 on: show only one "
                  "of them");
    else
        for (size_t i = 0; i < w->n_visible; i++) {
            const struct gfx_chip *as = stand_in(w, w->visible[i]);
            if (as && w->visible[i]->kfd_node.from && !work_value(w, node_name(w, w->visible[i])))
                set_node(w, as, w->visible[i]);
        }
}

const struct plan_var *plan_override(const struct plan *p, const struct gpu_facts *g)
{
    char name[64];
    snprintf(name, sizeof(name), PLAIN "_%lld", (long long)g->kfd_node.v);
    const struct plan_var *own = g->kfd_node.from ? plan_find(p->set, p->n_set, name) : NULL;
    return own ? own : plan_find(p->set, p->n_set, PLAIN);
}

/* The target that torch will see for the GPU. */
static const char *seen_target(struct work *w)
{
    const char *value = work_value(w, node_name(w, w->plan->gpu));
    const struct plan_var *ours = plan_find(w->nodes, w->n_nodes, node_name(w, w->plan->gpu));
    value = value ? value : ours ? ours->value : work_value(w, PLAIN);
    value = value ? value : w->computed[ENV_VALUE_OVERRIDE].value;
    const struct gfx_chip *as = value ? gfx_find_override(value) : NULL;
    return as ? as->gfx : w->plan->gpu->gfx.s;
}

void override_plan(struct work *w)
{
    struct env_var *plain = work_var(w, PLAIN);
    if (plain)
        judge_plain(w, plain);
    for (size_t i = 0; i < w->n_vars; i++)
        if (is_node_name(w->vars[i].name) && w->vars[i].row && w->vars[i].state == VAR_OPEN)
            judge_node(w, &w->vars[i]);
    if (!w->plan->gpu)
        return;
    if (!w->s.lists && !work_value(w, PLAIN) && !w->o->windows)
        plan_without_torch(w);
    if (w->o->windows && has_code(w, w->plan->gpu->gfx.s) == TRI_NO)
        warn_no_code(w, w->plan->gpu);
    else if (!w->o->windows && !work_value(w, PLAIN))
        choose(w);
    w->s.gfx = seen_target(w);
    w->s.chip = w->s.gfx ? gfx_find(w->s.gfx) : NULL;
}
