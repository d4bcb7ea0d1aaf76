/* SPDX-License-Identifier: Apache-2.0
 * Sentences for a person, from the tables' texts and what is known of the machine. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "host/memory.h"
#include "rules/env_rules.h"
#include "rules/looks.h"
#include "rules/remedy.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Values of keys; NULL: not known. */

static const char *key_gfx(const struct judgement *j)
{
    return j->chip && !j->family ? j->chip->gfx : NULL;
}

static const char *key_igpu(const struct judgement *j)
{
    return j->igpu ? j->igpu->gfx : judge_is_integrated(j->chip) ? j->chip->gfx : NULL;
}

static const char *key_torch(const struct judgement *j)
{
    const struct torch_facts *t = j->same_machine ? facts_torch(j->ctx->facts) : NULL;
    if (j->log->torch[0])
        return j->log->torch;
    return t ? t->version.s : NULL;
}

/* Does a printed list, the installed torch, or a wheel have code for it? */
static bool is_listed(const void *data, const struct gfx_chip *c)
{
    const struct judgement *j = data;
    const struct torch_facts *t = j->same_machine ? facts_torch(j->ctx->facts) : NULL;
    for (size_t i = 0; i < j->log->listed.n; i++)
        if (str_eq(j->log->listed.name[i], c->gfx))
            return true;
    if (j->verdict == ISSUE_TENSILE_MISSING && j->log->listed.n)
        return false;
    if (t && t->build == TORCH_ROCM && t->compiled.from)
        return env_targets_cover(&t->compiled, c->gfx) == TRI_YES;
    return c->wheel_major;
}

const struct gfx_chip *judge_stand_in(const struct judgement *j)
{
    return j->chip && !j->family && !j->windows ? gfx_stand_in(j->chip, is_listed, j) : NULL;
}

static const char *key_as(const struct judgement *j)
{
    const struct gfx_chip *c = judge_stand_in(j);
    return c ? c->gfx : NULL;
}

static const char *key_override(const struct judgement *j)
{
    const struct gfx_chip *c = judge_stand_in(j);
    char value[16];
    return c && gfx_override_value(c->gfx, value) ? arena_strdup(j->a, value) : NULL;
}

static const char *key_override_value(const struct judgement *j)
{
    return judge_var(j, LOG_OVERRIDE);
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

static struct look look_of(const struct judgement *j)
{
    return look_at(j->ctx->facts, j->ctx->plan, j->a);
}

static const char *say_size(const struct judgement *j, double bytes)
{
    const struct look l = { .arena = j->a };
    return bytes >= 0 ? say_bytes(&l, (int64_t)bytes) : NULL;
}

static const char *key_want(const struct judgement *j)
{
    return j->log->oom.seen ? say_size(j, j->log->oom.want) : NULL;
}

static const char *key_total(const struct judgement *j)
{
    return j->log->oom.seen ? say_size(j, j->log->oom.total) : NULL;
}

static const char *key_free(const struct judgement *j)
{
    return j->log->oom.seen ? say_size(j, j->log->oom.free) : NULL;
}

static const char *key_unused(const struct judgement *j)
{
    return j->log->oom.seen ? say_size(j, j->log->oom.unused) : NULL;
}

/* What neither this process nor the free list has. */
static const char *key_others(const struct judgement *j)
{
    const struct log_oom *o = &j->log->oom;
    if (o->capped)
        return "The program had limited itself to less than the card has.";
    if (!o->seen || o->total <= 0 || o->free < 0 || o->used < 0 || o->unused < 0)
        return NULL;
    double others = o->total - o->free - o->used - o->unused;
    return others > 0.1 * o->total
               ? arena_printf(j->a, "About %s of it belong to other processes.", say_size(j, others))
               : NULL;
}

static const char *key_expandable(const struct judgement *j)
{
    return judge_expandable(j) ? "Expandable segments are on, which are known to do this." : NULL;
}

static int64_t ram_bytes(const struct judgement *j)
{
    const struct host_facts *h = j->same_machine ? &j->ctx->facts->host : NULL;
    return h && h->memory_total_bytes.from ? h->memory_total_bytes.v : 0;
}

static const char *key_ram(const struct judgement *j)
{
    return ram_bytes(j) ? say_size(j, (double)ram_bytes(j)) : NULL;
}

static const char *key_limit(const struct judgement *j)
{
    return ram_bytes(j) ? say_size(j, (double)memory_wanted_limit(ram_bytes(j))) : NULL;
}

static const char *key_pages(const struct judgement *j)
{
    if (!ram_bytes(j))
        return NULL;
    return arena_printf(j->a, "%lld", (long long)(memory_wanted_limit(ram_bytes(j)) / PAGE_BYTES));
}

static const char *key_cmd_pages(const struct judgement *j)
{
    struct look l = { 0 };
    if (!ram_bytes(j))
        return NULL;
    l = look_of(j);
    return remedy_limit(&l, memory_wanted_limit(ram_bytes(j)));
}

static const struct dev_node *denied_node(const struct judgement *j)
{
    const struct facts *f = j->ctx->facts;
    if (!j->same_machine)
        return NULL;
    if (f->host.kfd_node.access == NODE_DENIED)
        return &f->host.kfd_node;
    for (size_t i = 0; i < f->n_gpus; i++)
        if (f->gpus[i].render.access == NODE_DENIED)
            return &f->gpus[i].render;
    return NULL;
}

static const char *key_user(const struct judgement *j)
{
    return denied_node(j) ? j->ctx->facts->host.user : NULL;
}

static const char *key_group(const struct judgement *j)
{
    return denied_node(j) ? denied_node(j)->group : NULL;
}

static const char *key_cmd_node(const struct judgement *j)
{
    struct look l = { 0 };
    if (!denied_node(j))
        return NULL;
    l = look_of(j);
    return remedy_node_access(&l, denied_node(j));
}

static const char *key_cmd_container(const struct judgement *j)
{
    static const struct facts nobody = { .host = { .render_gid = -1 } };
    struct look l = j->ctx->facts ? look_of(j) : look_at(&nobody, NULL, j->a);
    return remedy_container(&l);
}

static const char *key_cmd_torch(const struct judgement *j)
{
    static const struct facts nobody;
    struct look l = j->same_machine ? look_of(j) : look_at(&nobody, NULL, j->a);
    l.chip = j->family ? NULL : j->chip;
    return remedy_torch(&l);
}

static const char *key_cmd_bnb(const struct judgement *j)
{
    static const struct facts nobody;
    struct look l = j->same_machine ? look_of(j) : look_at(&nobody, NULL, j->a);
    return remedy_pip(&l, "--upgrade bitsandbytes");
}

static const char *key_cmd_kernel(const struct judgement *j)
{
    struct look l = { 0 };
    if (!j->same_machine)
        return NULL;
    l = look_of(j);
    return remedy_kernel_newer(&l);
}

static const char *key_cmd_firmware(const struct judgement *j)
{
    struct look l = { 0 };
    if (!j->same_machine)
        return NULL;
    l = look_of(j);
    return remedy_firmware_newer(&l);
}

static const char *key_bnb(const struct judgement *j)
{
    const struct torch_facts *t = j->same_machine ? facts_torch(j->ctx->facts) : NULL;
    return t ? t->bnb_rocm : NULL;
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

static const char *key_vendor(const struct judgement *j)
{
    return j->vendor == VENDOR_NVIDIA ? "the log is of an NVIDIA GPU" : NULL;
}

static const char *key_progress(const struct judgement *j)
{
    return j->log->steps ? "Training was making progress." : NULL;
}

static const char *key_reason(const struct judgement *j)
{
    return j->reason;
}

static const struct {
    const char *name;
    const char *(*value)(const struct judgement *j);
} keys[] = {
    { "gfx", key_gfx },
    { "igpu", key_igpu },
    { "torch", key_torch },
    { "as", key_as },
    { "override", key_override },
    { "override_value", key_override_value },
    { "alloc", key_alloc },
    { "alloc_names", key_alloc_names },
    { "want", key_want },
    { "total", key_total },
    { "free", key_free },
    { "unused", key_unused },
    { "others", key_others },
    { "expandable", key_expandable },
    { "ram", key_ram },
    { "limit", key_limit },
    { "pages", key_pages },
    { "cmd_pages", key_cmd_pages },
    { "user", key_user },
    { "group", key_group },
    { "cmd_node", key_cmd_node },
    { "cmd_container", key_cmd_container },
    { "cmd_torch", key_cmd_torch },
    { "cmd_bnb", key_cmd_bnb },
    { "cmd_kernel", key_cmd_kernel },
    { "cmd_firmware", key_cmd_firmware },
    { "bnb", key_bnb },
    { "visible_name", key_visible_name },
    { "best_gpu", key_best_gpu },
    { "visible", key_visible },
    { "vendor", key_vendor },
    { "progress", key_progress },
    { "reason", key_reason },
};

static const char *value_of(const struct judgement *j, const char *name, size_t n)
{
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        if (strlen(keys[i].name) == n && !memcmp(keys[i].name, name, n))
            return keys[i].value(j);
    assert(!"a text of the tables has a key that does not exist");
    return NULL;
}

/* A value may come from the log; a remedy may have several lines. */
static void add_value(struct str *to, const char *value)
{
    for (;;) {
        size_t n = strcspn(value, "\n");
        str_add_clean(to, value, n);
        if (!value[n])
            return;
        str_add(to, "\n");
        value += n + 1;
    }
}

/* Adds the text with its {keys} filled in; false when one is not known. */
static bool fill(const struct judgement *j, struct str *to, const char *text, size_t n)
{
    for (const char *end = text + n; text < end;) {
        const char *open = memchr(text, '{', (size_t)(end - text));
        const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
        if (!close) {
            str_addn(to, text, (size_t)(end - text));
            return true;
        }
        const char *value = value_of(j, open + 1, (size_t)(close - open - 1));
        if (!value)
            return false;
        str_addn(to, text, (size_t)(open - text));
        add_value(to, value);
        text = close + 1;
    }
    return true;
}

/* NULL when a key is not known. */
static const char *filled(const struct judgement *j, const char *text)
{
    CLEANUP(str_release) struct str s = { 0 };
    return fill(j, &s, text, strlen(text)) ? arena_strdup(j->a, s.s) : NULL;
}

/* What stands in brackets is left out when a key in it is not known. */
static const char *sentence(const struct judgement *j, const char *text)
{
    CLEANUP(str_release) struct str s = { 0 };
    while (*text) {
        size_t plain = strcspn(text, "[");
        str_addn(&s, text, plain);
        text += plain;
        if (!*text)
            break;
        size_t inner = strcspn(text, "]");
        size_t before = s.len;
        if (!fill(j, &s, text + 1, inner - 1) && s.s)
            s.s[s.len = before] = '\0';
        text += inner + (text[inner] == ']');
    }
    return arena_strdup(j->a, s.s);
}

/* Fixes. */

static bool is_on(const char *value)
{
    return value && !str_eq(value, "0") && *value;
}

static bool attention_waits(const struct judgement *j)
{
    return !is_on(judge_var(j, LOG_AOTRITON)) && j->d->hits[ISSUE_ATTENTION][WEIGHT_WARN][0].seen;
}

static bool fix_applies(const struct judgement *j, const struct issue_fix *f)
{
    bool hsa = f->set && str_starts(f->set, "HSA_");
    if (j->windows && hsa)
        return false;
    switch (f->when) {
    case FIX_LINUX:
        return !j->windows;
    case FIX_EXPANDABLE:
        return judge_expandable(j);
    case FIX_NO_CACHING:
        return judge_var(j, LOG_NO_CACHING_HIP) || judge_var(j, LOG_NO_CACHING_CUDA);
    case FIX_SDMA_ON:
        return !str_eq(judge_var(j, LOG_SDMA), "0");
    case FIX_INTERRUPT_ON:
        return !str_eq(judge_var(j, LOG_INTERRUPT), "0");
    case FIX_AOTRITON_ON:
        return is_on(judge_var(j, LOG_AOTRITON));
    case FIX_AOTRITON_OFF:
        return attention_waits(j) || (j->verdict == ISSUE_ATTENTION && !is_on(judge_var(j, LOG_AOTRITON)));
    case FIX_OVERRIDE_SET:
        return judge_var(j, LOG_OVERRIDE) != NULL;
    case FIX_LIBRARY_PATH:
        return judge_var(j, LOG_LIBRARY_PATH) != NULL;
    case FIX_SEVERAL_GPUS:
        return j->igpu != NULL;
    case FIX_HIPBLASLT_ON:
        return !str_eq(judge_var(j, LOG_HIPBLASLT), "0");
    case FIX_P2P_ON:
        return !is_on(judge_var(j, LOG_P2P));
    case FIX_ALWAYS:
        break;
    }
    return true;
}

static void add_set(const struct judgement *j, struct diagnose_fix *fix, const char *assignment,
                    const char *why)
{
    const char *eq = strchr(assignment, '=');
    *ARENA_PUSH(j->a, fix->set, fix->n_set) = (struct plan_var){
        .name = arena_strndup(j->a, assignment, (size_t)(eq - assignment)),
        .value = eq + 1,
        .why = why,
    };
}

static void add_unset(const struct judgement *j, struct diagnose_fix *fix, const char *names)
{
    for (const char *p = names; *p;) {
        size_t n = strcspn(p, " ");
        *ARENA_PUSH(j->a, fix->unset, fix->n_unset) = arena_strndup(j->a, p, n);
        p += n + (p[n] == ' ');
    }
}

static void add_fix(const struct judgement *j, const struct issue_fix *row, struct diagnosis *out)
{
    const char *text = filled(j, row->text), *set = row->set ? filled(j, row->set) : NULL;
    const char *unset = row->unset ? filled(j, row->unset) : NULL;
    if (!text || (row->set && !set) || (row->unset && !unset) || !fix_applies(j, row))
        return;
    struct diagnose_fix *fix = ARENA_PUSH(j->a, out->fixes, out->n_fixes);
    *fix = (struct diagnose_fix){ .text = text,
                                  .action = row->action,
                                  .automatic = row->action != DIAGNOSE_ACT_NONE };
    if (set)
        add_set(j, fix, set, text);
    if (unset)
        add_unset(j, fix, unset);
}

/* Evidence. */

static void add_evidence(const struct judgement *j, struct diagnosis *out, const struct hit *h)
{
    const char *file = h->file ? j->d->files[h->file - 1] : NULL;
    for (size_t i = 0; i < out->n_evidence; i++)
        if (out->evidence[i].line == h->line && str_eq(out->evidence[i].file, file))
            return;
    CLEANUP(str_release) struct str clean = { 0 };
    str_add_clean(&clean, h->text, strlen(h->text));
    *ARENA_PUSH(j->a, out->evidence, out->n_evidence) =
        (struct diagnose_evidence){ h->line, arena_strdup(j->a, clean.s ? clean.s : ""), file };
}

static bool speaks_for(const struct judgement *j, int issue, enum weight w)
{
    bool quiet = w == WEIGHT_WARN || w == WEIGHT_ECHO;
    return issue == (int)j->verdict ||
           (j->verdict == ISSUE_NOT_ROCM && !quiet && !issue_classes[issue].any_machine);
}

static void find_evidence(const struct judgement *j, struct diagnosis *out)
{
    for (int w = 0; w < N_WEIGHTS; w++)
        for (int i = 0; i < N_ISSUES; i++)
            for (int c = 0; c < 2; c++) {
                const struct hits *h = &j->d->hits[i][w][c];
                if (!h->seen || !speaks_for(j, i, w))
                    continue;
                add_evidence(j, out, &h->first);
                add_evidence(j, out, &h->best);
            }
}

/* Of a verdict that a ruling made, the evidence is that of the class it was made from. */
static void borrow_evidence(const struct judgement *j, struct diagnosis *out)
{
    const struct hits *best = NULL;
    for (int i = 0; i < N_ISSUES; i++)
        for (int w = 0; w < N_WEIGHTS; w++)
            for (int c = 0; c < 2; c++) {
                const struct hits *h = &j->d->hits[i][w][c];
                if (h->seen && (!best || h->best.score > best->best.score))
                    best = h;
            }
    if (best)
        add_evidence(j, out, &best->best);
}

/* The runners-up. */

static int compare_other(const void *a, const void *b)
{
    const struct diagnose_other *x = a, *y = b;
    return (x->confidence < y->confidence) - (x->confidence > y->confidence);
}

static void add_other(const struct judgement *j, struct diagnosis *out, enum issue i, double confidence)
{
    *ARENA_PUSH(j->a, out->also, out->n_also) = (struct diagnose_other){ issue_classes[i].id, confidence };
}

static void find_others(const struct judgement *j, struct diagnosis *out)
{
    enum { MOST = 3, WORTH = 35 };
    if (j->severity == DIAGNOSE_WARNING)
        add_other(j, out, ISSUE_NO_FAILURE, 1 - j->confidence);
    for (int i = 0; i < ISSUE_NO_FAILURE; i++)
        if (i != (int)j->verdict && j->score[i] >= WORTH)
            add_other(j, out, i, (1 - j->confidence) * j->score[i] / 100.0);
    if (out->n_also)
        qsort(out->also, out->n_also, sizeof(out->also[0]), compare_other);
    out->n_also = out->n_also < MOST ? out->n_also : MOST;
}

static void use_fact(const struct judgement *j, struct diagnosis *out, const char *text)
{
    if (text)
        *ARENA_PUSH(j->a, out->facts_used, out->n_facts_used) = text;
}

static const char *exit_text(const struct judgement *j)
{
    long long code = j->ctx->exit_code;
    if (code > 128 && code < 192)
        return arena_printf(j->a, "exit status %lld (signal %lld)", code, code - 128);
    return code > 255 ? arena_printf(j->a, "exit status %lld (0x%llX)", code, code)
                      : arena_printf(j->a, "exit status %lld", code);
}

static void find_facts(const struct judgement *j, struct diagnosis *out)
{
    if (j->ctx->exit_code >= 0)
        use_fact(j, out, exit_text(j));
    if (j->verdict == ISSUE_NO_FAILURE || j->verdict == ISSUE_UNKNOWN)
        return;
    for (size_t i = 0; i < j->n_chips; i++)
        use_fact(j, out, j->chips[i]->gfx);
    if (key_torch(j))
        use_fact(j, out, arena_printf(j->a, "torch %s", key_torch(j)));
    if (judge_var(j, LOG_OVERRIDE))
        use_fact(j, out, arena_printf(j->a, "HSA_OVERRIDE_GFX_VERSION=%s", judge_var(j, LOG_OVERRIDE)));
    const struct facts *f = j->ctx->facts;
    if (f && f->n_gpus && j->log->devices.n && !j->same_machine && !j->ctx->gfx)
        use_fact(j, out,
                 arena_printf(j->a, "the log names %s, which this machine does not have: the log counts",
                              j->log->devices.name[0]));
}

void diagnose_say(const struct judgement *j, struct diagnosis *out)
{
    *out = (struct diagnosis){
        .class_id = issue_classes[j->verdict].id,
        .severity = j->severity,
        .confidence = j->confidence,
        .cause = sentence(j, issue_classes[j->verdict].cause),
    };
    find_evidence(j, out);
    if (!out->n_evidence && j->severity != DIAGNOSE_NONE)
        borrow_evidence(j, out);
    for (const struct issue_fix *f = issue_fixes; f->text; f++)
        if (f->issue == j->verdict && (j->severity != DIAGNOSE_WARNING || f->action != DIAGNOSE_ACT_CPU))
            add_fix(j, f, out);
    find_others(j, out);
    find_facts(j, out);
}
