/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/parse.h"
#include "base/str.h"
#include "host/memory.h"
#include "host/torch.h"
#include "rules/env_rules.h"
#include <stdarg.h>
#include <string.h>

struct check_ctx check_ctx_of(const struct facts *f, const struct plan *p, struct arena *a)
{
    struct check_ctx l = { .facts = f, .plan = p, .arena = a };
    l.gpu = p ? p->gpu : NULL;
    if (!l.gpu && f->n_gpus)
        l.gpu = &f->gpus[f->default_gpu >= 0 ? f->default_gpu : 0];
    l.chip = l.gpu && l.gpu->gfx.s ? gfx_find(l.gpu->gfx.s) : NULL;
    l.torch = facts_torch(f);
    return l;
}

char *ctx_text(const struct check_ctx *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_vprintf(l->arena, fmt, ap);
    va_end(ap);
    return s;
}

const char *ctx_bytes(const struct check_ctx *l, int64_t bytes)
{
    if (bytes < GIB)
        return ctx_text(l, "%lld MiB", (long long)(bytes / MIB));
    /* Rounded to tenths; divided first, because a damaged file may hold the largest integer. */
    int64_t tenths = bytes / GIB * 10 + (bytes % GIB * 10 + GIB / 2) / GIB;
    if (tenths % 10 == 0 || tenths >= 1000)
        return ctx_text(l, "%lld GiB", (long long)((tenths + 5) / 10));
    return ctx_text(l, "%lld.%lld GiB", (long long)(tenths / 10), (long long)(tenths % 10));
}

const char *ctx_shell_word(const struct check_ctx *l, const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:+@,=-";
    if (*s && strspn(s, plain) == strlen(s))
        return s;
    CLEANUP(str_release) struct str t = { 0 };
    str_add(&t, "'");
    for (const char *p = s; *p; p++)
        str_addn(&t, *p == '\'' ? "'\\''" : p, *p == '\'' ? 4 : 1);
    str_add(&t, "'");
    return arena_strdup(l->arena, t.s);
}

const char *ctx_gpu(const struct check_ctx *l, const struct gpu_facts *g)
{
    const char *what = g->name.s ? g->name.s : g->pci.s ? g->pci.s : NULL;
    if (!what && g->gfx.s && g->hip_index >= 0)
        return ctx_text(l, "GPU %d (%s)", g->hip_index, g->gfx.s);
    what = what ? what : "the AMD GPU";
    const char *gfx = g->gfx.s ? ctx_text(l, ", %s", g->gfx.s) : "";
    if (g->hip_index < 0)
        return ctx_text(l, "%s%s", what, gfx);
    return ctx_text(l, "GPU %d (%s%s)", g->hip_index, what, gfx);
}

struct finding found(enum check_status status, const char *fact, const char *why, const char *remedy)
{
    return (struct finding){ status, fact, why, remedy };
}

struct finding found_ok(const struct check_ctx *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *fact = arena_vprintf(l->arena, fmt, ap);
    va_end(ap);
    return found(CHECK_OK, fact, NULL, NULL);
}

struct finding found_skip(const char *why)
{
    return found(CHECK_SKIP, why, NULL, NULL);
}

struct finding found_unknown(const char *fact, const char *why, const char *remedy)
{
    return found(CHECK_UNKNOWN, fact, why, remedy);
}

int64_t sum_bytes(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

bool ctx_gfx_given(const struct check_ctx *l)
{
    return l->gpu && str_eq(l->gpu->gfx.from, "--gfx") && !l->gpu->kfd_node.from && !l->gpu->pci.s;
}

bool ctx_integrated(const struct check_ctx *l)
{
    return l->gpu && l->gpu->kind == GPU_INTEGRATED;
}

size_t ctx_capable(const struct check_ctx *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->facts->n_gpus; i++)
        n += l->facts->gpus[i].rocm_capable;
    return n;
}

bool ctx_may_have_target(const struct check_ctx *l)
{
    for (size_t i = 0; i < l->facts->n_gpus; i++)
        if (l->facts->gpus[i].gfx.s || !l->facts->gpus[i].device_id.from)
            return true;
    return false;
}

bool ctx_is(const struct check_ctx *l, const char *gfx)
{
    return l->gpu && str_eq(l->gpu->gfx.s, gfx);
}

bool ctx_has_code(const struct targets *t, const char *gfx)
{
    return env_targets_cover(t, gfx) == TRI_YES;
}

const char *ctx_gpu_option(const struct check_ctx *l)
{
    const struct facts *f = l->facts;
    const struct plan *p = l->plan;
    if (!p->gpu)
        return "";
    bool own = f->default_gpu >= 0 && p->gpu == &f->gpus[f->default_gpu];
    for (size_t i = 0; i < PLAN_N_SELECTORS; i++)
        own |= plan_find(p->keep, p->n_keep, plan_selectors[i]) != NULL;
    const char *gpu = own ? "" : ctx_text(l, " --gpu %d", p->gpu->hip_index);
    return str_eq(p->gpu->gfx.from, "--gfx") ? ctx_text(l, "%s --gfx %s", gpu, p->gpu->gfx.s) : gpu;
}

const char *ctx_planned(const struct check_ctx *l, const char *name)
{
    const struct plan *p = l->plan;
    const struct plan_var *v = plan_find(p->set, p->n_set, name);
    if (v)
        return v->value;
    if (plan_find(p->unset, p->n_unset, name))
        return NULL;
    return facts_env(l->facts, name);
}

const char *ctx_target(const struct check_ctx *l)
{
    if (!l->gpu || !l->gpu->gfx.s)
        return NULL;
    const char *value = NULL;
    if (l->gpu->kfd_node.from)
        value = ctx_planned(l, ctx_text(l, "HSA_OVERRIDE_GFX_VERSION_%lld", (long long)l->gpu->kfd_node.v));
    if (!value)
        value = ctx_planned(l, "HSA_OVERRIDE_GFX_VERSION");
    const struct gfx_chip *as = value ? gfx_find_override(value) : NULL;
    return as ? as->gfx : l->gpu->gfx.s;
}

struct version ctx_torch_rocm(const struct check_ctx *l)
{
    return l->torch ? torch_rocm(l->torch) : (struct version){ 0 };
}

const struct rocm_facts *ctx_rocm_of(const struct check_ctx *l, const char *path, size_t len)
{
    for (size_t i = 0; i < l->facts->n_rocms; i++) {
        const struct rocm_facts *r = &l->facts->rocms[i];
        size_t n = strlen(r->path);
        if (n <= len && !strncmp(path, r->path, n) && (n == len || path[n] == '/'))
            return r;
    }
    return NULL;
}

bool ctx_param(const struct check_ctx *l, const char *module, const char *name, int64_t *out)
{
    const struct module_param *p = host_param(&l->facts->host, module, name);
    return p && cairn_parse_i64(p->value, out);
}

bool ctx_ttm_limit(const struct check_ctx *l, int64_t *bytes)
{
    struct num limit = memory_ttm_limit(&l->facts->host);
    /* GTT follows the page limit unless amdgpu.gttsize changed it. */
    if (!limit.from && l->gpu)
        limit = l->gpu->gtt_total_bytes;
    *bytes = limit.v;
    return limit.from != NULL;
}
