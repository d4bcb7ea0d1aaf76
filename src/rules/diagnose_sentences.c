/* SPDX-License-Identifier: Apache-2.0
 * The {keys} of the tables' texts that are whole sentences, or parts of one, depending on the facts. */
#include "rules/diagnose_work.h"

#include "base/cleanup.h"
#include "base/str.h"
#include <string.h>

static const char *value(const struct judgement *j, const char *key)
{
    return diagnose_key(j, key, strlen(key));
}

/* Only if the sizes in the log show it. */
static const char *key_no_fragments(const struct judgement *j)
{
    const struct log_oom *o = &j->log->oom;
    if (!o->seen || o->unused < 0 || o->total <= 0 || o->unused >= o->want || o->unused > 0.05 * o->total)
        return NULL;
    return "PyTorch's advice about fragmentation in this message does not apply: little was reserved but "
           "unused.";
}

static const char *key_loading(const struct judgement *j)
{
    return judge_is_loading(j)
               ? "The log ends while the program loads weights. HIP pins the pages of a mapped file for each "
                 "copy, which can take hours or never end."
               : NULL;
}

static const char *key_no_device(const struct judgement *j)
{
    return j->windows
               ? "The HIP runtime offers no GPU to this process: the driver is missing, too old or from "
                 "another vendor, or this PyTorch has no code for the chip."
               : "KFD, the kernel's compute driver, offers no GPU to this process: the user has no "
                 "permission for its device node, its module is not loaded, the container was started "
                 "without /dev/kfd, the chip is not supported, or the slot has no PCIe atomics.";
}

static const char *key_driver_alike(const struct judgement *j)
{
    return j->windows ? NULL
                      : "Missing permissions and an empty override look the same, so rule those out first.";
}

static const char *key_out_of_ram(const struct judgement *j)
{
    return j->windows
               ? "Windows could not commit more memory: RAM and paging file are used up."
               : "The host ran out of memory (OOM), or the container reached its limit, and the system "
                 "killed the process.";
}

static const char *key_kill_unsure(const struct judgement *j)
{
    return j->windows ? NULL
                      : "Without a line from the kernel, a kill by a person or a scheduler looks the same.";
}

static const char *key_card_hidden(const struct judgement *j)
{
    return j->card_hidden && value(j, "visible")
               ? arena_printf(j->a, "the variables that select GPUs (%s) hide the card.", value(j, "visible"))
               : NULL;
}

static const char *key_both_listed(const struct judgement *j)
{
    return key_card_hidden(j) ? NULL : "ROCm lists both, and libraries have no code for the integrated one.";
}

/* What is known about the missing code. */
static const char *key_no_code(const struct judgement *j)
{
    const char *torch = value(j, "torch") ? arena_printf(j->a, " (%s)", value(j, "torch")) : "",
               *gfx = value(j, "gfx");
    if (!gfx)
        return arena_printf(
            j->a, "PyTorch%s or one of its extensions was built without code for the GPU it runs on.", torch);
    if (j->carried == TRI_YES)
        return arena_printf(
            j->a,
            "PyTorch%s has code for %s, so one of its extensions (bitsandbytes, flash-attn, a custom node) "
            "was built without%s.",
            torch, gfx, j->igpu ? ", or the program also used the integrated GPU, which has no code" : "");
    if (j->carried == TRI_NO)
        return arena_printf(j->a, "PyTorch%s was built without code for %s, the GPU it runs on.", torch, gfx);
    return arena_printf(
        j->a, "PyTorch%s or one of its extensions was built without code for %s, the GPU it runs on.", torch,
        gfx);
}

/* The library's call that crashed. */
static const char *key_crash_in(const struct judgement *j)
{
    const struct log_stack *t = &j->log->stack;
    return t->call ? arena_printf(j->a, "in %s, while %s was starting", t->call, t->library) : NULL;
}

static const char *key_stack(const struct judgement *j)
{
    const struct log_stack *t = &j->log->stack;
    CLEANUP(str_release) struct str s = { 0 };
    for (size_t i = 0; i < t->n; i++)
        str_addf(&s, "%s%s", i ? ", called from " : "", t->frame[i]);
    return s.len ? arena_strdup(j->a, s.s) : NULL;
}

static const char *key_not_rocm(const struct judgement *j)
{
    if (j->if_amd != ISSUE_UNKNOWN)
        return arena_printf(
            j->a,
            "Nothing in the log identifies the GPU vendor. On an NVIDIA GPU this is not a ROCm problem; on "
            "an AMD GPU it is %s.",
            issue_classes[j->if_amd].id);
    return j->vendor == VENDOR_NVIDIA && !j->vendor_unsure
               ? "This is not a ROCm problem: the log is from an NVIDIA GPU."
               : "This is not a ROCm problem.";
}

bool diagnose_lacks_cxx_header(const struct judgement *j)
{
    return j->log->header[0] && !strchr(j->log->header, '.');
}

static const char *key_cxx_header(const struct judgement *j)
{
    return diagnose_lacks_cxx_header(j) ? arena_printf(j->a, "<%s>", j->log->header) : NULL;
}

static const char *key_c_header(const struct judgement *j)
{
    return j->log->header[0] && !diagnose_lacks_cxx_header(j) ? j->log->header : NULL;
}

static const char *key_miopen_guess(const struct judgement *j)
{
    return diagnose_lacks_cxx_header(j) ? NULL
           : value(j, "gfx")
               ? arena_printf(
                     j->a,
                     "its cache is broken or not writable, a header or compiler is missing, or one solver "
                     "does not work on this chip (%s)",
                     value(j, "gfx"))
               : "its cache is broken or not writable, a header or compiler is missing, or one solver does not work on "
                 "this chip";
}

static const char *key_bnb_flaw(const struct judgement *j)
{
    return diagnose_lacks_bitsandbytes(j) ? "is not installed beside this PyTorch"
                                          : "has no library that fits the ROCm of this PyTorch";
}

static const char *key_triton_guess(const struct judgement *j)
{
    return key_c_header(j) ? NULL
           : diagnose_lacks_triton(j)
               ? "Triton is not installed"
               : "it was tuned for more shared memory than the 64 KiB that AMD GPUs have, Triton does not "
                 "match PyTorch, or the linker, compiler or headers are missing";
}

static const char *key_no_attention_package(const struct judgement *j)
{
    const char *package = diagnose_lacks_attention(j);
    return package ? arena_printf(
                         j->a,
                         "The program requires the package %s, which is not installed or does not work here. "
                         "PyTorch's own attention (SDPA) does the same on AMD GPUs without it.",
                         package)
                   : NULL;
}

static const char *key_slow_attention(const struct judgement *j)
{
    if (diagnose_lacks_attention(j))
        return NULL;
    return arena_printf(
        j->a,
        "Fused attention is missing from this PyTorch, or disabled on this chip%s. Attention falls back to "
        "the slow math path, whose memory grows with the square of the sequence length. It fails only where "
        "a fused kernel is required.",
        value(j, "gfx") ? arena_printf(j->a, " (%s)", value(j, "gfx")) : "");
}

static const char *key_stopped(const struct judgement *j)
{
    if (diagnose_has_evidence(j))
        return "The line below says what stopped the program.";
    return j->ctx->exit_code == 127 ? "The shell could not find the command." : NULL;
}

static const char *key_progress(const struct judgement *j)
{
    return j->log->progress.steps ? "Training was making progress." : NULL;
}

static const char *key_reason(const struct judgement *j)
{
    return j->reason;
}

static const char *key_expandable(const struct judgement *j)
{
    return judge_expandable(j) ? "Expandable segments are on; they are known to cause this." : NULL;
}

/* What neither this process nor the free list holds. */
static const char *key_others(const struct judgement *j)
{
    const struct log_oom *o = &j->log->oom;
    if (o->capped)
        return "The program had limited itself to less memory than the card has.";
    if (!o->seen || o->total <= 0 || o->free < 0 || o->used < 0 || o->unused < 0)
        return NULL;
    double others = o->total - o->free - o->used - o->unused;
    return others > 0.1 * o->total
               ? arena_printf(j->a, "Other processes hold about %s of it.", diagnose_size(j, others))
               : NULL;
}

const struct diagnose_key_row diagnose_sentence_keys[] = {
    { "no_fragments", key_no_fragments },
    { "loading", key_loading },
    { "no_device", key_no_device },
    { "driver_alike", key_driver_alike },
    { "out_of_ram", key_out_of_ram },
    { "kill_unsure", key_kill_unsure },
    { "card_hidden", key_card_hidden },
    { "both_listed", key_both_listed },
    { "no_code", key_no_code },
    { "crash_in", key_crash_in },
    { "stack", key_stack },
    { "not_rocm", key_not_rocm },
    { "cxx_header", key_cxx_header },
    { "c_header", key_c_header },
    { "miopen_guess", key_miopen_guess },
    { "bnb_flaw", key_bnb_flaw },
    { "triton_guess", key_triton_guess },
    { "no_attention_package", key_no_attention_package },
    { "slow_attention", key_slow_attention },
    { "stopped", key_stopped },
    { "progress", key_progress },
    { "reason", key_reason },
    { "expandable", key_expandable },
    { "others", key_others },
    { NULL, NULL },
};
