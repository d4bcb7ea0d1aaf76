/* SPDX-License-Identifier: Apache-2.0
 * Kernel text to code for one chip, in a child process, kept on disk.
 *
 * The vendors' compilers may abort (hiprtc does on a chip it does not know), and bring a whole LLVM with them:
 * so they live in a small program of their own, cairn-kc, with a time limit.  Whatever happens there is an
 * ordinary error here.  The result is kept in $XDG_CACHE_HOME/cairn/kernels under a hash of all that went into it:
 * text, chip, the version of the runtime that the compiler comes with, and cairn's own, which has the options.  A file
 * that is damaged is made anew; a cache that cannot be written, or that is not the user's alone (base/own.h), costs time
 * only. */
#ifndef CAIRN_GPU_COMPILE_H
#define CAIRN_GPU_COMPILE_H

#include "gpu/kernel_rows.h"

struct compile_job {
    enum gpu_api api;
    const char *arch; /* "gfx1151", "sm_90" */
    const struct kernel_text *text;
    enum gpu_storage storage;
    bool debug;
    int version; /* of the runtime; 0: not known */
};

/* *code is malloced. */
int compile_kernels(const struct compile_job *job, void **code, size_t *size, struct cairn_error *err);
/* Of all the text that a kernel of this file is made of: equal hashes, equal kernels.  In hexadecimal. */
void compile_text_hash(const struct kernel_text *t, char out[33]);
/* Whether a library that may end the process ("rocblas", "hipblaslt") can be opened on an AMD device: tried in the
 * same child.  The answer, good or bad, is kept for the chip and the driver's version, until the library or its
 * folder of kernels changes. */
int compile_probe(const struct gpu_info *info, const char *library, struct cairn_error *err);
/* Whether the compiler of the ROCm that is chosen (libraries.h) opens, tried in the same way; one that cannot be tried
 * counts as good. */
int compile_opens(struct cairn_error *err);

#endif
