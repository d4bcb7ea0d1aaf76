/* SPDX-License-Identifier: Apache-2.0
 * A LoRA made part of its base model: W += scale * (alpha / rank) * up * down.
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
    int threads;               /* 0: all */
    struct progress *progress; /* or NULL; counts bytes written, the total is set here */
    const volatile sig_atomic_t *stop; /* or NULL; when it becomes true, merging fails */
};

struct merge_report {
    enum lora_dialect dialect;
    size_t modules;  /* of the LoRA; all of them were merged */
    size_t changed;  /* tensors of the base */
    size_t copied;   /* tensors left as they were, or given the new dtype only */
    size_t rescaled; /* fp8 weights whose scale had to grow */
    uint64_t bytes;  /* of the new file */
};

/* Fails before anything is written when a module of the LoRA is not in the base, or has another shape there. */
int merge_lora(const struct tensor_source *base, const struct lora *lora, const char *out,
               const struct merge_options *o, struct merge_report *report, struct cairn_error *err);

#endif
