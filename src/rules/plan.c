/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/plan.h"

#include "base/str.h"
#include "host/memory.h"
#include "host/torch.h"
#include "rules/env_sources.h"
#include "rules/plan_work.h"
#include "rules/trainers.h"
#include <stdarg.h>
#include <string.h>

const struct plan_var *plan_find(const struct plan_var *vars, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(vars[i].name, name))
            return &vars[i];
    return NULL;
}

struct env_var *work_var(const struct work *w, const char *name)
{
    for (size_t i = 0; i < w->n_vars; i++)
        if (!strcmp(w->vars[i].name, name))
            return w->vars[i].state == VAR_REFUSED ? NULL : &w->vars[i];
    return NULL;
}

const char *work_value(const struct work *w, const char *name)
{
    const struct env_var *v = work_var(w, name);
    return v ? v->value : NULL;
}

bool work_refuse(struct work *w, struct env_var *v, const char *source, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    v->why = arena_vprintf(w->a, fmt, ap);
    va_end(ap);
    v->source = source;
    v->state = v->forced ? VAR_ACCEPTED : VAR_REFUSED;
    if (v->forced)
        work_warn(w, "%s=%s stays because of --%s, although: %s", v->name, v->value,
                  v->given ? "with" : "keep", v->why);
    return !v->forced;
}

bool work_refuse_by_torch(struct work *w, struct env_var *v, const char *source, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *why = arena_vprintf(w->a, fmt, ap);
    va_end(ap);
    if (!w->unsure || v->forced)
        return work_refuse(w, v, source, "%s", why);
    work_accept(w, v,
                "stays, because cairn does not know which PyTorch the command imports; otherwise cairn would "
                "remove it: %s",
                why);
    v->fatal = false;
    work_warn(w, "%s=%s %s (--torch DIR names it)", v->name, v->value, v->why);
    return false;
}

void work_accept(struct work *w, struct env_var *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    v->why = arena_vprintf(w->a, fmt, ap);
    va_end(ap);
    v->state = VAR_ACCEPTED;
    v->source = v->row ? v->row->source : NULL;
}

void work_warn(struct work *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    problems_add(&w->plan->warnings, w->a, "%s", arena_vprintf(w->a, fmt, ap));
    va_end(ap);
}

void work_set(struct work *w, const char *name, const char *value, const char *why, const char *source)
{
    if (!plan_find(w->plan->set, w->plan->n_set, name))
        *ARENA_PUSH(w->a, w->plan->set, w->plan->n_set) =
            (struct plan_var){ .name = name, .value = value, .why = why, .source = source };
}

const char *work_gpu_text(const struct work *w, const struct gpu_facts *g)
{
    return arena_printf(w->a, "GPU %d (%s)", g->hip_index, g->gfx.s ? g->gfx.s : "chip unknown");
}

const char *work_torch_text(const struct work *w)
{
    const struct torch_facts *t = w->s.lists;
    return t && t->version.s ? arena_printf(w->a, "torch %s", t->version.s) : "this PyTorch";
}

static bool is_forced(const struct plan_options *o, const char *name)
{
    for (const char *const *k = o->keep; k && *k; k++)
        if (!strcmp(*k, name))
            return true;
    return false;
}

static void add_var(struct work *w, const char *name, const char *value, bool given)
{
    const struct env_name *row = env_name_find(name);
    if (!row && !given)
        return;
    for (size_t i = 0; i < w->n_vars; i++)
        if (!strcmp(w->vars[i].name, name))
            return;
    *ARENA_PUSH(w->a, w->vars, w->n_vars) = (struct env_var){
        .name = name, .value = value, .row = row, .forced = given || is_forced(w->o, name), .given = given
    };
}

static int add_given(struct work *w, struct cairn_error *err)
{
    for (const char *const *g = w->o->with; g && *g; g++) {
        size_t n = strcspn(*g, "=");
        if (!(*g)[n])
            return cairn_fail(err, CAIRN_EUSAGE, "--with needs NAME=VALUE, not \"%s\"", *g);
        if (!str_is_variable(*g, n))
            return cairn_fail(err, CAIRN_EUSAGE, "--with: \"%.*s\" is not a valid variable name", (int)n, *g);
        add_var(w, arena_strndup(w->a, *g, n), arena_strdup(w->a, *g + n + 1), true);
    }
    return 0;
}

/* A name one or two letters off a known one is a typo that nothing else would report. */
static void warn_of_typo(struct work *w, const char *name)
{
    static const char *const prefixes[] = { "HSA_",     "HIP_",     "ROCR_",      "ROCM_",
                                            "PYTORCH_", "TORCH_",   "MIOPEN_",    "AMD_",
                                            "CUDA_VIS", "ROCBLAS_", "HIPBLASLT_", "FLASH_ATTENTION_" };
    const char *near = NULL;
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (str_starts(name, prefixes[i]) && env_name_nearest(name, &near, 1) &&
            env_name_distance(name, near) <= 2)
            work_warn(w, "%s is unknown to cairn; did you mean %s?", name, near);
}

/* --with first: it replaces the user's own value of the same name. */
static int add_vars(struct work *w, struct cairn_error *err)
{
    if (add_given(w, err))
        return -1;
    for (const char *const *e = w->f->env; e && *e; e++) {
        size_t n = strcspn(*e, "=");
        if (!(*e)[n])
            continue;
        const char *name = arena_strndup(w->a, *e, n);
        add_var(w, name, arena_strdup(w->a, *e + n + 1), false);
        if (!env_name_find(name))
            warn_of_typo(w, name);
    }
    for (const char *const *k = w->o->keep; k && *k; k++)
        if (!work_var(w, *k))
            work_warn(w, "--keep %s: not set in the environment", *k);
    return 0;
}

/* The library's file name has the version; wheels from 2.12 on have 0.12 or newer, but which one is unknown.
 * */
static struct version aotriton_of_torch(const struct torch_facts *t)
{
    struct version v = { 0 };
    if (t->aotriton_version.s && version_parse(t->aotriton_version.s, &v))
        return v;
    if (version_at_least(t->parsed, 2, 12, 0))
        version_parse("0.12", &v);
    return v;
}

static void look_at_torch(struct work *w)
{
    const struct torch_facts *t = facts_torch(w->f);
    w->unsure = w->f->command.given && (!t || t->guess);
    if (t && (t->build == TORCH_ROCM || (t->build == TORCH_BUILD_UNKNOWN && t->hip.s))) {
        w->s.lists = t;
        w->s.torch = t->parsed;
        w->s.torch.pre = false; /* a nightly has the features of its release */
        w->s.rocm = torch_rocm(t);
        w->s.aotriton = aotriton_of_torch(t);
    } else if (w->f->n_rocms) {
        w->s.rocm = w->f->rocms[0].parsed;
    }
    /* AOTriton's tags end in a "b" without meaning. */
    w->s.rocm.pre = w->s.aotriton.pre = false;
}

static void warn_of_torch(struct work *w)
{
    const struct torch_facts *t = facts_torch(w->f);
    if (!t)
        work_warn(
            w, "no PyTorch was found (name its folder with --torch DIR): only rules that do not depend on it "
               "apply");
    else if (!w->s.lists)
        work_warn(w, "%s in %s is %s: it cannot use an AMD GPU; install a ROCm build",
                  t->version.s ? t->version.s : "the PyTorch", t->site,
                  t->build == TORCH_CUDA  ? "a CUDA build"
                  : t->build == TORCH_CPU ? "a CPU build"
                  : t->build == TORCH_XPU ? "a build for Intel GPUs"
                                          : "no ROCm build");
}

static void warn_of_gpu(struct work *w)
{
    const struct gpu_facts *g = w->plan->gpu;
    if (!g)
        work_warn(w,
                  w->f->n_gpus ? "ROCm can use none of the GPUs, so there is nothing to plan for"
                  : w->f->host.kfd_unreadable
                      ? "KFD's topology in /sys/class/kfd is not readable, so cairn knows no GPU to plan for"
                      : "there is no AMD GPU, so there is nothing to plan for");
    else if (!g->gfx.s)
        work_warn(w, "the chip of GPU %d is unknown (name it with --gfx NAME)", g->hip_index);
    else if (!gfx_find(g->gfx.s))
        work_warn(w, "%s is not in cairn's tables: no rule covers it", g->gfx.s);
}

static void warn_of_reserve(struct work *w)
{
    const struct gpu_facts *g = w->plan->gpu;
    if (w->s.unified != TRI_YES || memory_is_carve_out(g) || !g->usable_bytes.from || g->usable_bytes.v <= 0)
        return;
    if (w->o->windows) { /* cairn does not run there: the memory sizes are those of another machine */
        work_warn(w, "CPU and GPU share memory: leave some of it to the system (in the trainer: "
                     "torch.cuda.set_per_process_memory_fraction)");
        return;
    }
    const double gib = 1024.0 * 1024 * 1024;
    double usable = (double)g->usable_bytes.v, reserve = (double)memory_reserve(g->usable_bytes.v);
    double total = g->kfd_bank_bytes.from && g->kfd_bank_bytes.v > 0 ? (double)g->kfd_bank_bytes.v : usable;
    double share = (usable - reserve) / total;
    work_warn(w,
              "CPU and GPU share memory: of %.1f GiB usable, leave %.1f GiB to the system (in the trainer: "
              "torch.cuda.set_per_process_memory_fraction(%.2f))",
              usable / gib, reserve / gib, share < 1 ? share : 1.0);
}

static void apply_notes(struct work *w, const struct env_note *notes)
{
    for (const struct env_note *n = notes; n->text; n++)
        if (env_when_met(&n->when, &w->s))
            work_warn(w, "%s (%s)", n->text, n->source);
}

static void apply_rule(struct work *w, const struct env_rule *r)
{
    const struct computed *c = &w->computed[r->computed];
    const char *value = r->computed ? c->value : r->value;
    const struct env_var *v = work_var(w, r->name);
    if (r->computed == ENV_VALUE_NODES) {
        for (size_t i = 0; i < w->n_nodes; i++)
            work_set(w, w->nodes[i].name, w->nodes[i].value, w->nodes[i].why, w->nodes[i].source);
        return;
    }
    if (value && (!v || v->state == VAR_QUIET))
        work_set(w, r->name, value, c->why && r->computed ? c->why : r->why,
                 c->source && r->computed ? c->source : r->source);
}

static void apply_rules(struct work *w)
{
    for (const struct env_rule *r = env_rules(); r->name && w->plan->gpu; r++)
        if (env_when_met(&r->when, &w->s))
            apply_rule(w, r);
}

static void emit(struct work *w)
{
    struct plan *p = w->plan;
    for (size_t i = 0; i < w->n_vars; i++) {
        const struct env_var *v = &w->vars[i];
        struct plan_var out = { v->name, v->value, v->why ? v->why : "yours", v->source, v->fatal, v->flaw };
        if (v->given)
            work_set(w, v->name, v->value, "set with --with", v->source ? v->source : "--with");
        else if (v->state == VAR_REFUSED)
            *ARENA_PUSH(w->a, p->unset, p->n_unset) = out;
        else if (v->state != VAR_QUIET)
            *ARENA_PUSH(w->a, p->keep, p->n_keep) = out;
    }
}

/* Windows has no HSA runtime and no ld.so, so their variables have no effect there. */
static void refuse_for_windows(struct work *w)
{
    for (size_t i = 0; i < w->n_vars && w->o->windows; i++)
        if (w->vars[i].row && w->vars[i].row->linux_only)
            work_refuse(w, &w->vars[i], SRC_WINDOWS, "not read on Windows");
}

static int find_trainer(struct work *w, struct cairn_error *err)
{
    if (!w->o->trainer)
        return 0;
    const struct trainer *t = trainer_find(w->o->trainer);
    const char *near = trainer_nearest(w->o->trainer), *all = "";
    if (t) {
        w->s.trainer = t->name;
        return 0;
    }
    cairn_fail(err, CAIRN_EUSAGE, "trainer \"%s\" is unknown", w->o->trainer);
    if (near)
        return cairn_hint(err, "did you mean %s?", near);
    for (size_t i = 0; (t = trainer_at(i)); i++)
        all = arena_printf(w->a, "%s%s%s", all, i ? ", " : "", t->name);
    return cairn_hint(err, "known trainers: %s; or omit --trainer", all);
}

int plan_build(const struct facts *f, const struct plan_options *o, struct arena *a, struct plan *out,
               struct cairn_error *err)
{
    struct plan plan = { 0 };
    struct work w = { .f = f, .o = o, .a = a, .plan = &plan };
    w.s.windows = o->windows;
    w.s.debug = o->debug;
    w.s.kernel = o->windows ? (struct version){ 0 } : f->host.kernel_version;
    if (find_trainer(&w, err) || add_vars(&w, err))
        return -1;
    look_at_torch(&w);
    refuse_for_windows(&w);
    if (devices_plan(&w, err))
        return -1;
    w.s.n_visible = w.n_visible;
    plan.visible = w.visible;
    plan.n_visible = w.n_visible;
    if (plan.gpu && plan.gpu->kind != GPU_KIND_UNKNOWN)
        w.s.unified = plan.gpu->kind == GPU_INTEGRATED ? TRI_YES : TRI_NO;
    override_plan(&w);
    allocator_plan(&w);
    paths_plan(&w);
    judge_rest(&w);
    apply_rules(&w);
    emit(&w);
    warn_of_gpu(&w);
    warn_of_torch(&w);
    if (plan.gpu) {
        warn_of_reserve(&w);
        apply_notes(&w, env_notes());
        apply_notes(&w, trainer_notes());
    }
    *out = plan;
    return 0;
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

const char *const *plan_change(const char *const *env, const struct plan_var *set, size_t n_set,
                               const char *const *unset, size_t n_unset, struct arena *a)
{
    const char **out = NULL;
    size_t n = 0;
    for (const char *const *e = env; e && *e; e++) {
        const char *name = arena_strndup(a, *e, strcspn(*e, "="));
        if (!has_name(unset, n_unset, name) && !plan_find(set, n_set, name))
            *ARENA_PUSH(a, out, n) = *e;
    }
    for (size_t i = 0; i < n_set; i++)
        *ARENA_PUSH(a, out, n) = arena_printf(a, "%s=%s", set[i].name, set[i].value);
    *ARENA_PUSH(a, out, n) = NULL;
    return out;
}

const char *const *plan_environment(const struct facts *f, const struct plan *p, struct arena *a)
{
    const char **unset = ARENA_NEW(a, const char *, p->n_unset + 1);
    for (size_t i = 0; i < p->n_unset; i++)
        unset[i] = p->unset[i].name;
    return plan_change(f->env, p->set, p->n_set, unset, p->n_unset, a);
}
