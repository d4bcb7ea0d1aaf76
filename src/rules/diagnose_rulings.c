/* SPDX-License-Identifier: Apache-2.0
 * Rulings: what the rows of the tables cannot know.  Each is one sentence of the order of judgement in
 * docs/diagnose.md. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "rules/log_see.h"
#include <string.h>

/* No card has such a size; those of 48, 64 and 192 GiB and more exist. */
static bool is_shared_size(double total)
{
    const double gib = 1 << 30;
    return (total > 49 * gib && total < 63.5 * gib) || (total > 65 * gib && total < 185 * gib);
}

/* The reserved but unused memory of the allocator would have been enough. */
static bool is_reserved(const struct log_oom *o)
{
    const double much = 2.0 * (1 << 30);
    return o->want > 0 && o->total > 0 && o->unused >= o->want &&
           (o->unused > 0.05 * o->total || o->unused > much); /* a full card always has a little left */
}

/* The same, or together with the free memory it would have been, or much was free. */
static bool is_fragmented(const struct log_oom *o)
{
    if (o->want <= 0 || o->total <= 0)
        return false;
    return is_reserved(o) || (o->unused > 0.1 * o->total && o->unused + o->free >= o->want) ||
           (o->free > 2 * o->want && o->free > 0.25 * o->total);
}

/* The BIOS carve-out of an APU is so large that the kernel's limit was not reached; and it is in use. */
static bool is_full_carve_out(const struct log_oom *o)
{
    static const double sizes[] = { 32, 48, 64, 96 }; /* GiB */
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (o->total > (sizes[i] - 0.1) * (1 << 30) && o->total < (sizes[i] + 0.1) * (1 << 30))
            return o->free >= 0 && o->want > o->free && o->used > 0.5 * o->total;
    return false;
}

static enum issue kind_of_oom(const struct judgement *j)
{
    enum { TINY = 2 }; /* GiB: only the carve-out of an integrated GPU is so small */
    const struct log_oom *o = &j->log->oom;
    bool integrated = judge_is_integrated(j->chip);
    if (j->ctx->refused)
        return ISSUE_OOM_UNIFIED;
    if (o->seen && o->capped)
        return ISSUE_OOM_VRAM;
    if (o->seen && o->total > 0 && o->total <= TINY * (double)(1 << 30) && (j->igpu || !integrated))
        return ISSUE_WRONG_GPU;
    /* Free memory of an APU may not really be available, but what PyTorch holds is, on any GPU. */
    if (o->seen && is_reserved(o))
        return ISSUE_OOM_FRAGMENTATION;
    if (o->seen && (integrated || !j->chip) && is_full_carve_out(o))
        return ISSUE_OOM_VRAM;
    if (integrated || (!j->chip && o->seen && is_shared_size(o->total)))
        return ISSUE_OOM_UNIFIED;
    return o->seen && is_fragmented(o) ? ISSUE_OOM_FRAGMENTATION : ISSUE_OOM_VRAM;
}

/* The sizes decide the class of "out of memory". */
static void rule_out_of_memory(struct judgement *j)
{
    int score = j->score[ISSUE_OOM_VRAM];
    enum issue kind = kind_of_oom(j);
    if (score < JUDGE_LEAST)
        return;
    if (kind == ISSUE_OOM_VRAM) {
        if (judge_is_integrated(j->chip))
            judge_raise(j, ISSUE_OOM_UNIFIED, score - 5);
        return;
    }
    judge_raise(j, kind, j->log->oom.seen ? score + 2 : score);
    j->score[ISSUE_OOM_VRAM] = score / 2 + 10;
}

/* The best score among some classes. */
static int best_of(const struct judgement *j, const enum issue *group, size_t n)
{
    int best = 0;
    for (size_t k = 0; k < n; k++)
        best = j->score[group[k]] > best ? j->score[group[k]] : best;
    return best;
}

/* The classes that an override with such a flaw explains. */
static int best_explained(const struct judgement *j, enum override_flaw flaw)
{
    static const enum issue broken[] = { ISSUE_MEMORY_FAULT,    ISSUE_HANG,           ISSUE_GPU_RESET,
                                         ISSUE_NATIVE_CRASH,    ISSUE_NO_DEVICE,      ISSUE_DRIVER_OLD,
                                         ISSUE_NO_KERNEL_IMAGE, ISSUE_TENSILE_MISSING };
    static const enum issue foreign[] = { ISSUE_MEMORY_FAULT, ISSUE_HANG, ISSUE_GPU_RESET,
                                          ISSUE_NO_KERNEL_IMAGE, ISSUE_TENSILE_MISSING };
    static const enum issue faults[] = { ISSUE_MEMORY_FAULT, ISSUE_HANG, ISSUE_GPU_RESET };
    int best = best_of(j, broken, ARRAY_LEN(broken));
    switch (flaw) {
    case OVERRIDE_MALFORMED: /* no GPU is left, so even the first index is too high */
        return j->score[ISSUE_VISIBLE_DEVICES] > best ? j->score[ISSUE_VISIBLE_DEVICES] : best;
    case OVERRIDE_NO_CHIP:
    case OVERRIDE_OTHER_GENERATION:
        return best;
    case OVERRIDE_NATIVE:
    case OVERRIDE_NATIVE_ONLY:
    case OVERRIDE_NO_CODE:
    case OVERRIDE_NO_ROCBLAS:
    case OVERRIDE_OBSOLETE:
        return best_of(j, foreign, ARRAY_LEN(foreign));
    case OVERRIDE_TOO_MANY_REGISTERS:
    case OVERRIDE_NO_RELATIVE:
        return best_of(j, faults, ARRAY_LEN(faults));
    case OVERRIDE_FINE:
    case OVERRIDE_SAME:
        break;
    }
    return 0;
}

/* If the chip is unknown, any override is a suspect, like one that does not fit. */
static enum override_flaw suspect_override(const struct judgement *j)
{
    enum override_flaw flaw = j->override->flaw;
    return flaw == OVERRIDE_FINE && (j->family || !j->chip) ? OVERRIDE_NO_RELATIVE : flaw;
}

/* The environment takes precedence over the message. */
static void rule_override(struct judgement *j)
{
    static const enum issue crashes[] = { ISSUE_NATIVE_CRASH, ISSUE_NO_KERNEL_IMAGE };
    int best = 0;
    if (j->windows)
        return;
    if (!j->override && j->log->override_asked)
        best = best_of(j, crashes, ARRAY_LEN(crashes)); /* it was meant to be set, but is not exported */
    else if (j->override)
        best = best_explained(j, suspect_override(j));
    if (j->log->misnamed) {
        int misnamed = best_explained(j, OVERRIDE_OTHER_GENERATION);
        best = misnamed > best ? misnamed : best;
    }
    if (best >= JUDGE_LEAST)
        judge_raise(j, ISSUE_OVERRIDE_BAD, best + 5);
}

/* Did the program run on this chip? Decided by the device that failed, or else by what the program listed. */
static bool runs_on(const struct judgement *j, const char *gfx)
{
    const struct log_facts *log = j->log;
    size_t current = (size_t)log->current;
    if (current)
        return current <= log->devices.n && str_eq(log->devices.name[current - 1], gfx);
    for (size_t i = 0; i < log->used.n; i++)
        if (str_eq(log->used.name[i], gfx))
            return true;
    return false;
}

/* Every PyTorch for ROCm that may be in use has code for it. */
static bool is_always_carried(const struct judgement *j, const struct gfx_chip *c)
{
    enum tri carried = override_has_code(&j->wheel, c->gfx);
    return carried == TRI_YES || (carried == TRI_UNKNOWN && c->wheel_major == 2 && c->wheel_minor <= 5);
}

/* The device without code is the integrated one. Its presence beside a card proves nothing: the log has to
 * name it, the program has to see nothing else or take it first, or the card has to be ruled out. */
static bool lacks_code_for_integrated(const struct judgement *j)
{
    const struct gfx_chip *failing = j->log->failing[0] ? gfx_find(j->log->failing) : NULL;
    const struct gfx_chip *suspect = failing ? failing : j->chip;
    /* A desktop processor's integrated GPU is assumed beside a card, unless the machine is known to have
     * none. */
    bool desktop = suspect && suspect->desktop_igpu && !j->same_machine;
    if (failing)
        return judge_is_integrated(failing) && (j->igpu || j->has_card || j->card_hidden || desktop);
    if (!j->igpu)
        return j->card_hidden || desktop;
    if (override_has_code(&j->wheel, j->igpu->gfx) == TRI_YES || j->log->current || j->log->used.n)
        return false;
    if (j->same_machine && j->igpu_first)
        return true;
    bool any_visible = judge_says(j, ISSUE_NO_KERNEL_IMAGE, "shared object initialization failed");
    return is_always_carried(j, j->chip) && (any_visible || !j->same_machine);
}

/* Neither is proven. */
static bool may_be_integrated(const struct judgement *j)
{
    return j->igpu && !j->log->failing[0] && !j->log->current && !j->log->used.n &&
           override_has_code(&j->wheel, j->igpu->gfx) != TRI_YES;
}

static void rule_wrong_gpu(struct judgement *j)
{
    enum { UNEXPLAINED = 58 };
    static const enum issue missing[] = { ISSUE_TENSILE_MISSING, ISSUE_NO_KERNEL_IMAGE };
    int best = best_of(j, missing, ARRAY_LEN(missing));
    /* A wheel of the family has code for the card, so the device without code is another one. */
    bool invalid = j->family && judge_says(j, ISSUE_NO_KERNEL_IMAGE, "kernel image is invalid");
    if (best >= JUDGE_LEAST && (lacks_code_for_integrated(j) || invalid))
        judge_raise(j, ISSUE_WRONG_GPU, best + 3);
    else if (best >= JUDGE_LEAST && may_be_integrated(j))
        judge_raise(j, ISSUE_WRONG_GPU, best / 2);
    enum issue worst = judge_top(j, N_ISSUES);
    if (j->igpu && runs_on(j, j->igpu->gfx) && worst < ISSUE_NO_FAILURE && !issue_classes[worst].any_machine)
        judge_raise(j, ISSUE_WRONG_GPU, j->score[worst] + 3);
    else if (j->igpu && runs_on(j, j->igpu->gfx) && worst == ISSUE_UNKNOWN && j->ctx->exit_code > 0)
        judge_raise(j, ISSUE_WRONG_GPU, UNEXPLAINED);
}

/* How many GPUs such a variable lists. */
static size_t listed(const char *value)
{
    size_t n = value && *value;
    for (; value && *value; value++)
        n += *value == ',';
    return n;
}

/* GPUs disappear if more than one variable selects, or one that does not select the first GPU. */
static void rule_visible(struct judgement *j)
{
    const char *rocr = judge_var(j, LOG_ROCR_VISIBLE), *hip = judge_var(j, LOG_HIP_VISIBLE);
    const char *cuda = judge_var(j, LOG_CUDA_VISIBLE);
    const char *inner = hip ? hip : cuda;
    bool odd = (rocr && inner) || (rocr && !str_eq(rocr, "0")) || (inner && !str_eq(inner, "0"));
    int score = j->score[ISSUE_NO_DEVICE];
    bool explained = j->d->hits[ISSUE_NO_DEVICE][WEIGHT_HARD][WORDING_ROCM].any & RULE_NO_GPU;
    if (odd && score >= JUDGE_LEAST && !explained)
        judge_raise(j, ISSUE_VISIBLE_DEVICES, score + 4);
    /* HIP selects among those that ROCR leaves: a longer list names some that do not exist. */
    if (rocr && listed(inner) > listed(rocr) && j->ctx->exit_code != 0)
        judge_raise(j, ISSUE_VISIBLE_DEVICES, 70);
}

/* A device node that exists but cannot be opened explains why there is no GPU. */
static void rule_permission(struct judgement *j)
{
    bool denied = j->same_machine && j->ctx->facts->host.kfd_node.access == NODE_DENIED;
    if ((denied || log_lacks_render(j->log)) && j->score[ISSUE_NO_DEVICE] >= JUDGE_LEAST)
        judge_raise(j, ISSUE_PERMISSION, j->score[ISSUE_NO_DEVICE] + 5);
}

/* A PyTorch that cannot use this GPU explains every later error. */
static void rule_build(struct judgement *j)
{
    if (judge_is_other_build(j) && (judge_any_error(j) || j->ctx->exit_code > 0)) {
        judge_raise(j, ISSUE_TORCH_NOT_ROCM, 88);
        j->score[ISSUE_NO_DEVICE] /= 2;
    }
    if (j->log->build == TORCH_ROCM && j->score[ISSUE_TORCH_NOT_ROCM] < 88)
        j->score[ISSUE_TORCH_NOT_ROCM] /= 2;
}

/* A consequence of another finding ranks below it, whatever their order in the log: a program often reports
 * the symptom first, and a tool that the user ran afterwards names the cause. */
static void rule_consequences(struct judgement *j)
{
    static const struct {
        enum issue cause;
        int least; /* the confidence that the cause needs */
        enum issue consequence;
    } rows[] = {
        { ISSUE_SDMA, 84, ISSUE_GPU_RESET }, /* a failing copy engine takes the GPU down with it */
        { ISSUE_GPU_RESET, 85, ISSUE_MEMORY_FAULT }, { ISSUE_GPU_RESET, 80, ISSUE_HANG },
        { ISSUE_RCCL, 80, ISSUE_INVALID_ARGUMENT },  { ISSUE_PERMISSION, 90, ISSUE_NO_DEVICE },
        { ISSUE_LIB_LOAD, 88, ISSUE_TRITON },        { ISSUE_DISK_FULL, 85, ISSUE_SAFETENSORS },
    };
    bool gone = j->d->hits[ISSUE_GPU_RESET][WEIGHT_HARD][WORDING_ROCM].any & RULE_GPU_GONE;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int score = j->score[rows[i].cause], *after = &j->score[rows[i].consequence];
        if (score >= rows[i].least && *after >= score && !(gone && rows[i].consequence == ISSUE_GPU_RESET))
            *after = score - 5;
    }
    if (j->log->progress.loss_fine && j->score[ISSUE_NAN] < 88)
        j->score[ISSUE_NAN] /= 2;
}

/* WSL has neither /dev/kfd nor /dev/dri: their absence means nothing there. */
static void rule_wsl(struct judgement *j)
{
    enum { SOUND = 70 };
    if (j->log->wsl && j->score[ISSUE_DRIVER_OLD] >= SOUND &&
        j->score[ISSUE_NO_DEVICE] >= j->score[ISSUE_DRIVER_OLD])
        j->score[ISSUE_NO_DEVICE] = j->score[ISSUE_DRIVER_OLD] - 5;
}

/* Sampling has gaps, so "never short" keeps a margin. If the kernel killed nothing, only user-space OOM
 * killers remain, and they act when less is free. */
static bool had_room(int64_t total, int64_t least, bool kernel_denies)
{
    return least >= 0 && total > 0 && least > total / (kernel_denies ? 8 : 4);
}

static bool memory_was_fine(const struct diagnose_memory *m)
{
    bool denies = m->oom_kills == 0;
    return had_room(m->host_total_bytes, m->host_least_bytes, denies) &&
           (m->cgroup_limit_bytes < 0 || had_room(m->cgroup_limit_bytes, m->cgroup_least_bytes, denies));
}

/* A line names memory, not only that something was killed. */
static bool names_memory(const struct judgement *j)
{
    for (int w = WEIGHT_HARD; w <= WEIGHT_SOFT; w++) {
        const struct hits *h = &j->d->hits[ISSUE_HOST_OOM][w][WORDING_ROCM];
        if (h->seen && !(h->all & RULE_SIGKILL))
            return true;
    }
    return false;
}

/* SIGKILL looks the same whoever sent it; the host memory monitor decides. */
static void rule_killed(struct judgement *j)
{
    enum { REFUTED = 20 };
    const struct diagnose_memory *m = &j->ctx->memory;
    if (!m->watched || j->ctx->memory_guard || !j->score[ISSUE_HOST_OOM])
        return;
    if (m->cgroup_oom_kills > 0)
        judge_raise(j, ISSUE_HOST_OOM, 95);
    else if (m->oom_kills > 0)
        judge_raise(j, ISSUE_HOST_OOM, 90);
    else if (memory_was_fine(m) && !names_memory(j) && j->score[ISSUE_HOST_OOM] > REFUTED) {
        j->score[ISSUE_HOST_OOM] = REFUTED;
        j->killed = true;
    }
}

static void (*const rulings[])(struct judgement *) = {
    rule_killed,     rule_build, rule_out_of_memory, rule_consequences, rule_visible,
    rule_permission, rule_wsl,   rule_wrong_gpu,     rule_override,
};

void rulings_apply(struct judgement *j)
{
    for (size_t i = 0; i < ARRAY_LEN(rulings); i++)
        rulings[i](j);
}
