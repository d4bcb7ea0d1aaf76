/* SPDX-License-Identifier: Apache-2.0
 * What the {keys} of the tables' texts stand for, from the log and from this machine. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "rules/check_ctx.h"
#include <assert.h>
#include <string.h>

/* Values of keys; NULL: unknown. */

static const char *key_gfx(const struct judgement *j)
{
    return j->chip && !j->family ? j->chip->gfx : NULL;
}

static const char *key_igpu(const struct judgement *j)
{
    return j->igpu ? j->igpu->gfx : judge_is_integrated(j->chip) ? j->chip->gfx : NULL;
}

static const char *key_shared(const struct judgement *j)
{
    return judge_is_integrated(j->chip) ? key_gfx(j) : NULL;
}

static const char *key_torch(const struct judgement *j)
{
    if (j->log->torch[0])
        return j->log->torch;
    return j->torch ? j->torch->version.s : NULL;
}

/* As in cairn doctor and cairn env: a concern if a wheel with code for the chip is available. */
static const char *key_foreign_code(const struct judgement *j)
{
    return override_has_own_wheel(j->chip, j->torch) ? "code of another chip" : NULL;
}

/* The chip, if no wheel supports it and no other chip's code runs on it. */
static const char *key_wheelless(const struct judgement *j)
{
    const struct gfx_chip *c = j->family ? NULL : j->chip;
    return c && !c->wheel_major && !c->therock && !judge_stand_in(j) ? c->gfx : NULL;
}

static struct version torch_version(const struct judgement *j)
{
    struct version v = { 0 };
    const char *text = key_torch(j);
    if (text)
        version_parse(text, &v);
    return v;
}

static const char *key_alloc(const struct judgement *j)
{
    return plan_allocator_name(torch_version(j));
}

static const char *key_alloc_names(const struct judgement *j)
{
    CLEANUP(str_release) struct str s = { 0 };
    for (int v = LOG_ALLOC_HIP; v <= LOG_ALLOC_NEW; v++)
        if (judge_var(j, v))
            str_addf(&s, "%s%s", s.len ? " " : "", log_var_name(v));
    return s.len ? arena_strdup(j->a, s.s) : NULL;
}

const char *diagnose_size(const struct judgement *j, double bytes)
{
    const struct check_ctx l = { .arena = j->a };
    return bytes >= 0 ? ctx_bytes(&l, (int64_t)bytes) : NULL;
}

static const char *key_refused(const struct judgement *j)
{
    return arena_printf(j->a, "%llu allocation%s (%s in all)", (unsigned long long)j->ctx->refused,
                        j->ctx->refused == 1 ? "" : "s", diagnose_size(j, (double)j->ctx->refused_bytes));
}

static const char *key_want(const struct judgement *j)
{
    return j->log->oom.seen ? diagnose_size(j, j->log->oom.want) : NULL;
}

static const char *key_total(const struct judgement *j)
{
    return j->log->oom.seen ? diagnose_size(j, j->log->oom.total) : NULL;
}

static const char *key_free(const struct judgement *j)
{
    return j->log->oom.seen ? diagnose_size(j, j->log->oom.free) : NULL;
}

static const char *key_unused(const struct judgement *j)
{
    return j->log->oom.seen ? diagnose_size(j, j->log->oom.unused) : NULL;
}

static const char *key_bnb(const struct judgement *j)
{
    const struct torch_facts *t = j->torch;
    bool reads_it =
        t && !version_below(t->bitsandbytes.parsed, 0, 50, 0); /* older versions do not read the variable */
    return reads_it ? t->bnb_rocm : NULL;
}

/* On Linux the earlier filter is the stronger one. */
static const char *key_visible_name(const struct judgement *j)
{
    return j->windows ? "HIP_VISIBLE_DEVICES" : "ROCR_VISIBLE_DEVICES";
}

static const char *key_best_gpu(const struct judgement *j)
{
    const struct facts *f = j->ctx->facts;
    if (j->same_machine && f->default_gpu >= 0 && f->gpus[f->default_gpu].kind == GPU_DISCRETE)
        return arena_printf(j->a, "%d", f->gpus[f->default_gpu].hip_index);
    for (size_t i = 0; j->igpu && !j->same_machine && i < j->n_chips; i++)
        if (!judge_is_integrated(j->chips[i]))
            return arena_printf(j->a, "%zu", i);
    return NULL;
}

static const char *key_visible(const struct judgement *j)
{
    CLEANUP(str_release) struct str s = { 0 };
    for (int v = LOG_ROCR_VISIBLE; v <= LOG_CUDA_VISIBLE; v++)
        if (judge_var(j, v))
            str_addf(&s, "%s%s=%s", s.len ? ", " : "", log_var_name(v), judge_var(j, v));
    return s.len ? arena_strdup(j->a, s.s) : NULL;
}

/* The other variables that select GPUs, which the one that cairn sets replaces. */
static const char *key_visible_others(const struct judgement *j)
{
    CLEANUP(str_release) struct str s = { 0 };
    for (int v = LOG_ROCR_VISIBLE; v <= LOG_CUDA_VISIBLE; v++)
        if (judge_var(j, v) && !str_eq(log_var_name(v), key_visible_name(j)))
            str_addf(&s, "%s%s", s.len ? " " : "", log_var_name(v));
    return s.len ? arena_strdup(j->a, s.s) : "";
}

static struct version torch_rocm(const struct judgement *j)
{
    struct version v = { 0 };
    const char *text = key_torch(j), *rocm = text ? strstr(text, "+rocm") : NULL;
    if (rocm && version_parse(rocm + strlen("+rocm"), &v))
        return v;
    return j->torch && !j->log->torch[0] ? j->torch->hip_parsed : v;
}

/* The first ROCm that supports the chip, if this PyTorch was built with an older one. */
static const char *key_rocm_floor(const struct judgement *j)
{
    const struct gfx_chip *c = j->family ? NULL : j->chip;
    struct version rocm = torch_rocm(j);
    int patch = c && rocm.n > 2 ? c->rocm_patch : 0; /* "6.4" may be any 6.4.x */
    if (!c || !c->rocm_major || !rocm.n || !version_below(rocm, c->rocm_major, c->rocm_minor, patch))
        return NULL;
    return c->rocm_patch ? arena_printf(j->a, "%d.%d.%d", c->rocm_major, c->rocm_minor, c->rocm_patch)
                         : arena_printf(j->a, "%d.%d", c->rocm_major, c->rocm_minor);
}

static const char *key_rocm(const struct judgement *j)
{
    struct version v = torch_rocm(j);
    return v.n >= 2 ? arena_printf(j->a, "%d.%d", v.part[0], v.part[1]) : NULL;
}

static const char *key_versions(const struct judgement *j)
{
    CLEANUP(str_release) struct str s = { 0 };
    const char *kernel = j->same_machine ? j->ctx->facts->host.kernel.s : NULL;
    if (kernel && !j->windows)
        str_addf(&s, "kernel %s", kernel);
    if (key_torch(j))
        str_addf(&s, "%storch %s", s.len ? ", " : "", key_torch(j));
    return s.len ? arena_strdup(j->a, s.s) : NULL;
}

/* What the preload library already does, plus one feature. */
static const char *preload_with(const struct judgement *j, const char *more)
{
    const char *list = j->ctx->env ? str_env(j->ctx->env, "CAIRN_PRELOAD") : NULL;
    if (!list || str_list_has(list, ',', more))
        return list;
    return *list ? arena_printf(j->a, "%s,%s", list, more) : more;
}

static const char *key_preload_stage(const struct judgement *j)
{
    const char *list = preload_with(j, "stage");
    return !list || str_list_has(list, ',', "retry") ? list : arena_printf(j->a, "%s,retry", list);
}

static const char *key_preload_memory(const struct judgement *j)
{
    return preload_with(j, "memory");
}

static const char *key_hang_file(const struct judgement *j)
{
    CLEANUP(str_release) struct str word = { 0 };
    if (j->ctx->hang_file)
        str_add_word(&word, j->ctx->hang_file);
    return word.len ? arena_strdup(j->a, word.s) : NULL;
}

/* "22.5 GiB of 23.5 GiB were free all the time, and the kernel killed nobody for memory" */
static const char *key_memory_seen(const struct judgement *j)
{
    const struct diagnose_memory *m = &j->ctx->memory;
    const char *free_ = NULL, *kernel = m->oom_kills ? NULL : "the kernel's OOM killer killed nothing";
    if (m->host_total_bytes > 0 && m->host_least_bytes >= 0)
        free_ = arena_printf(j->a, "%s of the host's %s were available throughout",
                             diagnose_size(j, (double)m->host_least_bytes),
                             diagnose_size(j, (double)m->host_total_bytes));
    if (free_ && kernel)
        return arena_printf(j->a, "%s, and %s", free_, kernel);
    return free_ ? free_ : kernel;
}

static const struct diagnose_key_row keys[] = {
    { "gfx", key_gfx },
    { "igpu", key_igpu },
    { "shared", key_shared },
    { "torch", key_torch },
    { "foreign_code", key_foreign_code },
    { "wheelless", key_wheelless },
    { "alloc", key_alloc },
    { "alloc_names", key_alloc_names },
    { "refused", key_refused },
    { "want", key_want },
    { "total", key_total },
    { "free", key_free },
    { "unused", key_unused },
    { "bnb", key_bnb },
    { "visible_name", key_visible_name },
    { "best_gpu", key_best_gpu },
    { "visible", key_visible },
    { "visible_others", key_visible_others },
    { "rocm", key_rocm },
    { "rocm_floor", key_rocm_floor },
    { "versions", key_versions },
    { "hang_file", key_hang_file },
    { "memory_seen", key_memory_seen },
    { "preload_stage", key_preload_stage },
    { "preload_memory", key_preload_memory },
    { NULL, NULL },
};

const char *diagnose_key(const struct judgement *j, const char *name, size_t n)
{
    const struct diagnose_key_row *const tables[] = { keys, diagnose_command_keys, diagnose_plan_keys,
                                                      diagnose_sentence_keys };
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (const struct diagnose_key_row *k = tables[t]; k->name; k++)
            if (strlen(k->name) == n && !memcmp(k->name, name, n))
                return k->value(j);
    assert(!"a template in the tables uses an unknown key");
    return NULL;
}
