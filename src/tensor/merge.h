/* SPDX-License-Identifier: Apache-2.0
 * Merges a LoRA into its base model: W += scale * (alpha / rank) * up * down, or the transpose if the base
 * stores its weights as [in, out], as GPT-2's Conv1D does.  A non-square matrix shows which.  For a square
 * one, the base's other matrices of that name decide, then the LoRA's configuration, then the rest of the
 * base.  If nothing decides, [out, in] is assumed and counted as a guess.
 *
 * The base may be f32, f16, bf16 or fp8, plain or with scales, with any of the usual prefixes and in the
 * model's own or diffusers' names.  Sums are in f32 and rounded once.  An fp8 weight keeps its scale unless
 * the sum would overflow; then the scale grows.  Without scales it saturates.  Tensors that the LoRA does not
 * change are copied bit for bit.  Tensors are processed one by one, on all cores, with a few MiB per thread.
 * The new file appears under its name only when it is complete. */
#ifndef CAIRN_TENSOR_MERGE_H
#define CAIRN_TENSOR_MERGE_H

#include "tensor/lora.h"
#include <signal.h>

struct progress;

struct merge_options {
    double scale;              /* 1: as trained */
    enum dtype dtype;          /* of the new file's floating tensors; DTYPE_OTHER: each keeps its own */
    bool replace;              /* an existing file may be replaced */
    bool allow_nan;            /* continue if finite values become NaN or Inf, instead of failing */
    int threads;               /* 0: all */
    struct progress *progress; /* or NULL; counts bytes written, the total is set here */
    const volatile sig_atomic_t *stop; /* or NULL; when it becomes true, merging fails */
};

struct merge_report {
    enum lora_dialect dialect;
    struct lora_basis basis;
    size_t modules;    /* of the LoRA; all of them were merged */
    size_t changed;    /* tensors of the base */
    size_t copied;     /* tensors left as they were, or given the new dtype only */
    size_t rescaled;   /* fp8 weights whose scale had to grow */
    size_t replaced;   /* tensors of the base that the LoRA's file replaces as a whole; counted in changed */
    size_t transposed; /* modules merged into a weight of [in, out] */
    size_t orientation_guessed;  /* modules of a square weight of unknown orientation */
    bool guessed_transposed;     /* those were assumed to be [in, out], as most of the base is */
    size_t orientation_against;  /* modules whose orientation contradicts the configuration */
    uint64_t nan_made, inf_made; /* values that were finite before; 0 unless allow_nan */
    uint64_t bytes;              /* of the new file */
};

/* Fails before anything is written if a module of the LoRA is not in the base or has another shape there;
 * and, without leaving a file, if values become NaN or Inf, unless that is allowed. */
int merge_lora(const struct tensor_source *base, const struct lora_file *lora, const char *out,
               const struct merge_options *o, struct merge_report *report, struct cairn_error *err);

#endif
