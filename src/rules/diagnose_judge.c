/* SPDX-License-Identifier: Apache-2.0
 * From hits to one class.  Each class gets a score, its confidence in percent: that of its best rule, then
 * adjusted by rulings, which know what the rules cannot: which error came first, what the environment and the
 * chip say, and which errors are echoes of others. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "rules/log_windows.h"
#include "rules/override.h"
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BONUS = 6,  /* the first error explains those after it */
    KERNEL_BONUS = 8, /* the kernel's messages take precedence over Python's */
    SOFT_LOSS = 15,   /* a hard error beside it */
    UNSURE_LOSS = 8,  /* the GPU vendor is unknown */
    SURVIVED = 50,    /* with exit status 0 anything below this was caught */
    MAY_BE = 38,      /* too little to name it, enough to mention it */
    ELSEWHERE = 38,   /* the maximum for what another program may have suffered: it could also be this one */
};

const char *judge_var(const struct judgement *j, enum log_var v)
{
    if (j->ctx->env)
        return str_env(j->ctx->env, log_var_name(v));
    if (j->log->vars[v].set)
        return j->log->vars[v].value;
    return j->same_machine ? facts_env(j->ctx->facts, log_var_name(v)) : NULL;
}

bool judge_expandable(const struct judgement *j)
{
    for (int v = LOG_ALLOC_HIP; v <= LOG_ALLOC_NEW; v++) {
        const char *value = judge_var(j, v);
        if (value && match_any(value, strlen(value), "expandable_segments:True"))
            return true;
    }
    return false;
}

bool judge_is_other_build(const struct judgement *j)
{
    bool other = (j->log->build == TORCH_CUDA && !j->log->zluda) || j->log->build == TORCH_CPU;
    return other && j->n_chips > 0 && !j->nvidia_device;
}

bool judge_says(const struct judgement *j, enum issue i, const char *words)
{
    for (int w = 0; w < N_WEIGHTS; w++)
        for (int c = 0; c < N_WORDINGS; c++) {
            const struct hits *h = &j->d->hits[i][w][c];
            if (h->seen && (match_any(h->best.text, strlen(h->best.text), words) ||
                            match_any(h->first.text, strlen(h->first.text), words)))
                return true;
        }
    return false;
}

bool judge_is_loading(const struct judgement *j)
{
    return j->log->loading && j->log->progress.stage == LOG_STAGE_BUSY;
}

bool judge_stopped_by_person(int64_t exit_code)
{
    const int64_t ctrl_c = 0xC000013A; /* of Windows */
    return exit_code == 130 || exit_code == 143 || exit_code == 129 || exit_code == ctrl_c;
}

/* The part of each sign counts once, however often it was seen. */
static void find_vendor(struct judgement *j)
{
    enum { NAMED = -6, TOLD = 4, MACHINE = 3, LITTLE = 4 };
    int amd = j->ctx->gfx ? TOLD : j->same_machine ? MACHINE : 0, nvidia = 0;
    for (size_t i = 0; i < j->d->n_signs; i++) {
        int weight = j->d->signs[i] ? issue_signs[i].weight : 0;
        amd += weight > 0 ? weight : 0;
        nvidia -= weight < 0 ? weight : 0;
        j->nvidia_device |= weight <= NAMED;
    }
    amd += j->log->devices.n ? TOLD : 0;
    j->vendor = amd > nvidia ? VENDOR_AMD : nvidia ? VENDOR_NVIDIA : VENDOR_UNKNOWN;
    j->vendor_unsure = j->vendor != VENDOR_AMD && !j->nvidia_device && nvidia <= LITTLE;
}

/* Scores. */

static bool says_cuda(const struct hit *h)
{
    return match_any(h->text, strlen(h->text), "CUDA|NCCL|.cu");
}

/* Do these hits support their own class, and not another vendor's GPU? */
static bool counts(const struct judgement *j, enum issue i, const struct hits *h, enum wording words)
{
    if (issue_classes[i].any_machine)
        return true;
    if (j->vendor == VENDOR_NVIDIA)
        return i == ISSUE_TORCH_NOT_ROCM && !j->nvidia_device;
    return words == WORDING_ROCM || j->vendor == VENDOR_AMD || !says_cuda(&h->best);
}

static bool is_hard(const struct judgement *j, enum issue i, enum wording words)
{
    const struct hits *h = &j->d->hits[i][WEIGHT_HARD][words];
    return h->seen && !h->recovered && counts(j, i, h, words) && !kernel_reports_another(j, i);
}

static uint64_t first_order(const struct judgement *j)
{
    uint64_t first = UINT64_MAX;
    for (int i = 0; i < N_ISSUES; i++)
        for (int c = 0; c < N_WORDINGS; c++) {
            const struct hits *h = &j->d->hits[i][WEIGHT_HARD][c];
            if (is_hard(j, i, c) && h->first.order < first)
                first = h->first.order;
        }
    return first;
}

void judge_raise(struct judgement *j, enum issue i, int score)
{
    j->score[i] = score > j->score[i] ? score : j->score[i];
}

static bool hard_beside(const struct judgement *j, enum issue but)
{
    for (int i = 0; i < N_ISSUES; i++)
        if (i != (int)but && (is_hard(j, i, WORDING_ROCM) || is_hard(j, i, WORDING_SHARED)))
            return true;
    return false;
}

/* A guess needs a failure to explain; the vague ones need a known failure. */
static bool is_idle_guess(const struct judgement *j, const struct hits *h)
{
    return h->all & RULE_GUESS && (j->ctx->exit_code == 0 || (j->ctx->exit_code < 0 && h->all & RULE_VAGUE));
}

static void score_hits(struct judgement *j, enum issue i, enum weight w, enum wording words, uint64_t first)
{
    const struct hits *h = &j->d->hits[i][w][words];
    if (!h->seen || w >= WEIGHT_WARN || is_idle_guess(j, h))
        return;
    int score = h->best.score;
    if (w == WEIGHT_HARD)
        score += (h->first.order == first ? FIRST_BONUS : 0) + (h->best.kernel ? KERNEL_BONUS : 0);
    else if (hard_beside(j, i))
        score -= SOFT_LOSS;
    bool caught = w == WEIGHT_SOFT && h->outlived && j->ctx->exit_code <= 0;
    if (h->recovered || caught)
        score /= 3;
    if (score > ELSEWHERE && kernel_reports_another(j, i))
        score = ELSEWHERE;
    if (!counts(j, i, h, words)) {
        judge_raise(j, ISSUE_NOT_ROCM, score);
        if (j->vendor == VENDOR_UNKNOWN) /* nothing names an NVIDIA GPU: the second answer */
            judge_raise(j, i, score - 2 * UNSURE_LOSS);
        return;
    }
    bool unsure = words == WORDING_SHARED && j->vendor == VENDOR_UNKNOWN;
    /* Nothing says that the machine has an AMD GPU, and this happens on any. */
    bool any_gpu = i == ISSUE_TORCH_NOT_ROCM || i == ISSUE_NAN || i == ISSUE_NATIVE_CRASH;
    if (any_gpu && j->vendor != VENDOR_AMD)
        judge_raise(j, ISSUE_NOT_ROCM, score - 3 * UNSURE_LOSS);
    judge_raise(j, i, unsure ? score - UNSURE_LOSS : score);
}

static bool any_score(const struct judgement *j, int least)
{
    for (int i = 0; i < N_ISSUES; i++)
        if (j->score[i] >= least)
            return true;
    return false;
}

bool judge_any_error(const struct judgement *j)
{
    return any_score(j, JUDGE_LEAST);
}

/* Warnings and echoes count if nothing better explains a failure. */
static void score_rest(struct judgement *j)
{
    bool better = judge_any_error(j);
    for (int i = 0; i < N_ISSUES; i++)
        for (int w = WEIGHT_WARN; w <= WEIGHT_ECHO; w++)
            for (int c = 0; c < N_WORDINGS; c++) {
                const struct hits *h = &j->d->hits[i][w][c];
                if (h->seen && counts(j, i, h, c))
                    judge_raise(j, i, better ? JUDGE_LEAST / 2 : h->best.score);
            }
}

/* A status that a signal left; those of Windows are in log_windows.c. */
static const struct {
    int64_t code;
    enum issue issue;
    int score;
} exits[] = {
    { 124, ISSUE_HANG, 60 },         /* timeout(1) */
    { 127, ISSUE_NOT_ROCM, 60 },     /* a shell could not find the command */
    { 132, ISSUE_NATIVE_CRASH, 60 }, /* SIGILL */
    { 134, ISSUE_NATIVE_CRASH, 30 }, /* SIGABRT */
    { 135, ISSUE_NATIVE_CRASH, 60 }, /* SIGBUS */
    { 136, ISSUE_NATIVE_CRASH, 60 }, /* SIGFPE */
    { 137, ISSUE_HOST_OOM, 74 },     /* SIGKILL */
    { 139, ISSUE_NATIVE_CRASH, 64 }, /* SIGSEGV */
};

/* Code that ran on the GPU had its libraries: what was missing earlier was optional. */
static void excuse_loader(struct judgement *j)
{
    static const enum issue ran[] = { ISSUE_NO_KERNEL_IMAGE, ISSUE_TENSILE_MISSING, ISSUE_INVALID_ARGUMENT,
                                      ISSUE_OOM_VRAM,        ISSUE_GPU_RESET,       ISSUE_MEMORY_FAULT,
                                      ISSUE_MIOPEN,          ISSUE_HIPBLASLT,       ISSUE_SDMA };
    static const enum issue loads[] = { ISSUE_LIB_LOAD, ISSUE_TORCH_NOT_ROCM };
    for (size_t l = 0; l < ARRAY_LEN(loads); l++) {
        const struct hits *load = &j->d->hits[loads[l]][WEIGHT_HARD][WORDING_ROCM];
        for (size_t r = 0; load->seen && r < ARRAY_LEN(ran); r++)
            for (int c = 0; c < N_WORDINGS; c++)
                if (is_hard(j, ran[r], c) &&
                    j->d->hits[ran[r]][WEIGHT_HARD][c].first.order > load->first.order &&
                    j->score[loads[l]] > JUDGE_LEAST)
                    j->score[loads[l]] = JUDGE_LEAST;
    }
}

static void score_exit(struct judgement *j)
{
    const struct windows_status *w = log_windows_status(j->ctx->exit_code);
    for (size_t i = 0; i < ARRAY_LEN(exits); i++)
        if (exits[i].code == j->ctx->exit_code)
            judge_raise(j, exits[i].issue, hard_beside(j, exits[i].issue) ? JUDGE_LEAST : exits[i].score);
    if (w && w->score)
        judge_raise(j, w->issue, hard_beside(j, w->issue) ? JUDGE_LEAST : w->score);
    if (j->ctx->hung)
        judge_raise(j, ISSUE_HANG, 85);
    if (j->ctx->memory_guard)
        judge_raise(j, ISSUE_HOST_OOM, 95);
}

bool judge_by_guard(const struct judgement *j)
{
    return (j->verdict == ISSUE_HOST_OOM && j->ctx->memory_guard) ||
           (j->verdict == ISSUE_OOM_UNIFIED && j->ctx->refused);
}

bool judge_may_hang(const struct judgement *j)
{
    return j->verdict == ISSUE_HANG && j->severity == DIAGNOSE_WARNING;
}

bool judge_by_watch(const struct judgement *j)
{
    return (j->verdict == ISSUE_UNKNOWN && j->killed) ||
           (j->verdict == ISSUE_HANG && j->ctx->gpu_use == DIAGNOSE_GPU_NEVER);
}

enum issue judge_top(const struct judgement *j, enum issue but)
{
    enum issue best = ISSUE_UNKNOWN;
    for (int i = 0; i < ISSUE_NO_FAILURE; i++)
        if (i != (int)but && j->score[i] > (best == ISSUE_UNKNOWN ? 0 : j->score[best]))
            best = (enum issue)i;
    return best;
}

/* The verdict. */

static enum issue top_warning(const struct judgement *j)
{
    enum { WORTH_SAYING = 50 };
    enum issue best = ISSUE_UNKNOWN;
    int score = WORTH_SAYING - 1;
    for (int i = 0; i < N_ISSUES; i++) {
        if (i == ISSUE_TORCH_NOT_ROCM && j->log->build == TORCH_ROCM)
            continue; /* one ROCm build replaced another */
        for (int w = issue_classes[i].often_caught ? WEIGHT_SOFT : WEIGHT_WARN; w <= WEIGHT_WARN; w++) {
            const struct hits *h = &j->d->hits[i][w][WORDING_ROCM];
            if (h->seen && counts(j, i, h, WORDING_ROCM) && h->best.score > score) {
                best = (enum issue)i;
                score = h->best.score;
            }
        }
    }
    return best;
}

static void conclude(struct judgement *j, enum issue i, enum diagnose_severity s, double confidence)
{
    j->verdict = i;
    j->severity = s;
    j->confidence = confidence;
}

/* If two scores are close, neither is certain. */
static double confidence_of(const struct judgement *j, enum issue best)
{
    enum { NEAR = 10 };
    enum issue second = judge_top(j, best);
    int gap = second == ISSUE_UNKNOWN ? NEAR : j->score[best] - j->score[second];
    double c = j->score[best] / 100.0 - (gap < NEAR ? (NEAR - gap) * 0.02 : 0);
    return c > 0.97 ? 0.97 : c < 0.05 ? 0.05 : c;
}

/* A line that looks like an error, matches no rule, and that training did not survive. */
static bool looks_bad(const struct judgement *j)
{
    const struct hits *h = &j->d->hits[ISSUE_UNKNOWN][WEIGHT_ECHO][WORDING_ROCM];
    return h->seen && !h->recovered;
}

/* The same, and its words are neither about a GPU nor a parent's about the end of a child. */
static bool looks_bad_on_its_own(const struct judgement *j)
{
    static const char echoes[] =
        "root cause|exit status|exited with|exit code|exitcode|error_file|error code|CalledProcessError|"
        "ChildFailedError|worker|refused";
    const char *text = j->d->hits[ISSUE_UNKNOWN][WEIGHT_ECHO][WORDING_ROCM].best.text;
    return looks_bad(j) && !log_trace_speaks_of_gpu(text, strlen(text)) &&
           !match_any(text, strlen(text), echoes);
}

/* Whatever the outcome: with this value no program runs on this chip. */
static bool override_cannot_work(const struct judgement *j)
{
    if (!j->override)
        return false;
    const struct override_wheel none = { 0 };
    enum override_flaw flaw =
        override_judge(&none, j->override->value, j->chip); /* a family belongs to one generation */
    return flaw == OVERRIDE_MALFORMED || flaw == OVERRIDE_NO_CHIP || flaw == OVERRIDE_OTHER_GENERATION ||
           flaw == OVERRIDE_NO_RELATIVE;
}

/* The ending is unknown: neither the user nor the log states it. */
static void conclude_silent(struct judgement *j)
{
    enum { LAST = 2 }; /* lines that may follow the one that says what takes long */
    bool busy = j->log->progress.stage == LOG_STAGE_BUSY && j->log->progress.behind_busy <= LAST,
         passed = j->log->progress.stage == LOG_STAGE_BUSY && !busy;
    j->reason = !j->d->any_text ? "the log is empty"
                : busy          ? "the log ends while the program loads or compiles something, without an "
                                  "error"
                                : "the log has no error, and does not say how the run ended";
    if (busy || passed)
        judge_raise(j, ISSUE_HANG, MAY_BE);
    if (j->override)
        judge_raise(j, ISSUE_OVERRIDE_BAD, MAY_BE);
    if (judge_is_other_build(j))
        conclude(j, ISSUE_TORCH_NOT_ROCM, DIAGNOSE_WARNING, 0.6);
    else if (j->vendor == VENDOR_NVIDIA)
        conclude(j, ISSUE_NOT_ROCM, DIAGNOSE_NONE, 0.5);
    else if (override_cannot_work(j))
        conclude(j, ISSUE_OVERRIDE_BAD, DIAGNOSE_WARNING, 0.6);
    else if (busy)
        conclude(j, ISSUE_HANG, DIAGNOSE_WARNING, 0.45);
    else if (passed || j->log->ready)
        conclude(j, ISSUE_NO_FAILURE, DIAGNOSE_NONE, 0.55);
    else
        conclude(j, ISSUE_UNKNOWN, DIAGNOSE_NONE, j->d->any_text ? 0.5 : 0.9);
}

static bool went_on(const struct judgement *j)
{
    return j->log->progress.stage >= LOG_STAGE_STEPS;
}

/* Did it end normally, as far as is known? */
static void conclude_quiet(struct judgement *j)
{
    enum issue warning = top_warning(j);
    bool renamed = j->log->misnamed && judge_var(j, LOG_OVERRIDE);
    bool ended = j->ctx->exit_code == 0, bad = looks_bad(j) && j->log->progress.stage != LOG_STAGE_DONE;
    /* MIOpen's warnings are in every log with convolutions: ignore them while training makes progress. */
    bool noise = warning == ISSUE_MIOPEN && went_on(j);
    if (renamed) {
        conclude(j, ISSUE_OVERRIDE_BAD, DIAGNOSE_WARNING, 0.75);
    } else if (warning != ISSUE_UNKNOWN && !noise) {
        conclude(j, warning, DIAGNOSE_WARNING, 0.75);
    } else if (judge_is_other_build(j) &&
               !went_on(j)) { /* nothing ran, and nothing could have run on the GPU */
        conclude(j, ISSUE_TORCH_NOT_ROCM, DIAGNOSE_WARNING, 0.6);
    } else if (!ended && bad) {
        j->reason = "a line looks like an error, but no rule matches it";
        if (looks_bad_on_its_own(j))
            judge_raise(j, ISSUE_NOT_ROCM, MAY_BE);
        conclude(j, ISSUE_UNKNOWN, DIAGNOSE_ERROR, 0.45);
    } else if (bad) {
        conclude(j, ISSUE_NO_FAILURE, DIAGNOSE_NONE, 0.6);
    } else if (!ended && j->ctx->cut) {
        j->reason = "the log is truncated: its end is missing";
        conclude(j, ISSUE_UNKNOWN, DIAGNOSE_NONE, 0.5);
    } else if (ended || went_on(j)) {
        conclude(j, ISSUE_NO_FAILURE, DIAGNOSE_NONE, ended ? 0.95 : 0.85);
    } else {
        conclude_silent(j);
    }
}

/* It failed, and nothing else explains it: an error that training seemed to survive is the best candidate.
 * Reports quote the error before the log, and a progress bar may count loading. */
static void score_recovered(struct judgement *j)
{
    enum { DOUBT = 12 };
    for (int i = 0; i < N_ISSUES; i++)
        for (int w = WEIGHT_HARD; w <= WEIGHT_SOFT; w++)
            for (int c = 0; c < N_WORDINGS; c++) {
                const struct hits *h = &j->d->hits[i][w][c];
                if (h->seen && h->recovered && counts(j, i, h, c))
                    judge_raise(j, i, h->best.score - DOUBT);
            }
}

static void conclude_failed(struct judgement *j)
{
    enum { TIMED_OUT = 124 }; /* from here on the status means a signal, or comes from a launcher */
    score_rest(j);
    if (!judge_any_error(j))
        score_recovered(j);
    rulings_apply(j);
    enum issue best = judge_top(j, N_ISSUES);
    if (best != ISSUE_UNKNOWN && j->score[best] >= JUDGE_LEAST) {
        conclude(j, best, DIAGNOSE_ERROR, confidence_of(j, best));
        return;
    }
    j->reason = j->d->any_text ? "no rule matches any line of the log" : "the log is empty";
    if (j->killed)
        conclude(j, ISSUE_UNKNOWN, DIAGNOSE_ERROR, 0.8);
    else if (override_cannot_work(j))
        conclude(j, ISSUE_OVERRIDE_BAD, DIAGNOSE_ERROR, 0.55);
    else if (j->vendor == VENDOR_NVIDIA)
        conclude(j, ISSUE_NOT_ROCM, DIAGNOSE_ERROR, 0.7);
    else if (j->ctx->exit_code > 0 && j->ctx->exit_code < TIMED_OUT && looks_bad_on_its_own(j))
        conclude(j, ISSUE_NOT_ROCM, DIAGNOSE_ERROR, 0.42);
    else
        conclude(j, ISSUE_UNKNOWN, DIAGNOSE_ERROR, 0.5);
    if (j->verdict == ISSUE_UNKNOWN && j->log->trace.cut && !j->killed)
        judge_raise(j, ISSUE_NOT_ROCM, MAY_BE);
}

/* Messages that both vendors' libraries print: then "not ROCm" is a guess. */
static void doubt_vendor(struct judgement *j)
{
    int best = 0;
    for (int i = 0; i < ISSUE_NO_FAILURE && j->vendor_unsure; i++)
        for (int w = WEIGHT_HARD; w <= WEIGHT_SOFT; w++) {
            const struct hits *h = &j->d->hits[i][w][WORDING_SHARED];
            if (h->seen && !h->recovered && !issue_classes[i].any_machine && h->best.score > best) {
                best = h->best.score;
                j->if_amd = (enum issue)i;
            }
        }
    if (j->if_amd != ISSUE_UNKNOWN)
        j->confidence *= 0.65;
}

void judge(struct judgement *j)
{
    j->if_amd = ISSUE_UNKNOWN;
    /* Programs that cairn started run on Linux, whatever they print. */
    j->windows = !j->ctx->env && ((j->log->windows && !j->log->wsl) || log_windows_status(j->ctx->exit_code));
    judge_machine(j);
    find_vendor(j);
    uint64_t first = first_order(j);
    for (int i = 0; i < N_ISSUES; i++)
        for (int w = 0; w < N_WEIGHTS; w++)
            for (int c = 0; c < N_WORDINGS; c++)
                score_hits(j, i, w, c, first);
    excuse_loader(j);
    score_exit(j);
    bool ended = j->ctx->exit_code == 0;
    bool errors = any_score(j, ended ? SURVIVED : JUDGE_LEAST);
    for (int c = 0; !errors && c < N_WORDINGS; c++)
        errors = j->d->hits[ISSUE_NATIVE_CRASH][WEIGHT_ECHO][c].seen;
    errors |= j->log->trace.cut && !ended;
    if (j->ctx->exit_code <= 0 && !errors) {
        conclude_quiet(j);
    } else if (!errors && judge_stopped_by_person(j->ctx->exit_code)) {
        conclude(j, ISSUE_NO_FAILURE, DIAGNOSE_NONE, 0.6);
    } else {
        conclude_failed(j);
        if (j->verdict == ISSUE_NOT_ROCM)
            doubt_vendor(j);
        /* It was printed, and the program continued. */
        if (ended && j->verdict != ISSUE_NAN) {
            j->severity = DIAGNOSE_WARNING;
            j->confidence *= 0.85;
        }
    }
    judge_plan_again(j);
}
