/* SPDX-License-Identifier: Apache-2.0
 * A LoRA made part of its base model: W += scale * (alpha / rank) * up * down, or its transpose where the base keeps its
 * weights as [in, out], as GPT-2's Conv1D does.  A matrix that is not square shows which; for a square one the base's other
 * matrices of that name tell, then the LoRA's configuration, then the rest of the base.  Where nothing tells, [out, in]
 * is taken, and counted as a guess.
 *
 * The base may be f32, f16, bf16 or fp8, plain or with scales, under any of the usual prefixes and in the model's own
 * or diffusers' names.  Sums are in f32 and rounded once.  An fp8 weight keeps its scale unless the sum would no
 * longer fit, then the scale grows; without scales it saturates.  Tensors that the LoRA does not touch are copied bit
 * for bit.  Work goes tensor by tensor, on all cores, with a few MiB a thread.  The new file appears under its name
 * only when it is whole. */
#ifndef CAIRN_TENSOR_MERGE_H
#define CAIRN_TENSOR_MERGE_H

#include "tensor/lora.h"
#include <signal.h>

struct progress;

struct merge_options {
    double scale;              /* 1: as trained */
    enum dtype dtype;          /* of the new file's floating tensors; DTYPE_OTHER: each keeps its own */
    bool replace;              /* an existing file may be replaced */
    bool allow_nan;            /* go on where finite values become NaN or Inf, instead of failing */
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
    size_t replaced;   /* tensors of the base that the LoRA's file holds as a whole; among the changed ones */
    size_t transposed; /* modules merged into a weight of [in, out] */
    size_t orientation_guessed;  /* modules of a square weight, of which nothing tells how it lies */
    bool guessed_transposed;     /* those were taken as [in, out], as most of the base is */
    size_t orientation_against;  /* modules whose weight lies otherwise than the configuration says */
    uint64_t nan_made, inf_made; /* values that were finite before; 0 unless allow_nan */
    uint64_t bytes;              /* of the new file */
};

/* Fails before anything is written when a module of the LoRA is not in the base, or has another shape there; and without
 * a file when values become NaN or Inf, unless that is allowed. */
int merge_lora(const struct tensor_source *base, const struct lora_file *lora, const char *out,
               const struct merge_options *o, struct merge_report *report, struct cairn_error *err);

#endif
