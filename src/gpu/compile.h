/* SPDX-License-Identifier: Apache-2.0
 * Compiles kernel source for one chip, in a child process, and caches the result on disk.
 *
 * The vendors' compilers may abort (hiprtc does on a chip it does not know) and load a whole LLVM.  So they
 * run in a small program of their own, cairn-kc, with a time limit; whatever happens there is an ordinary
 * error here.  The result is cached in $XDG_CACHE_HOME/cairn/kernels under a hash of everything it depends
 * on: source, chip, the version of the runtime that the compiler comes with, and cairn's own, which implies
 * the options.  A damaged file is compiled again; a cache that cannot be written, or that is not the user's
 * alone (base/own.h), only costs time. */
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
/* Hash of all source of a kernel file: equal hashes, equal kernels.  In hexadecimal. */
void compile_text_hash(const struct kernel_text *t, char out[33]);
/* Whether a library that may abort the process ("rocblas", "hipblaslt") can be opened on an AMD device: tried
 * in the same child process.  The answer, good or bad, is cached for the chip and the driver's version, until
 * the library or its folder of kernels changes. */
int compile_probe(const struct gpu_info *info, const char *library, struct cairn_error *err);
/* Whether the compiler of the chosen ROCm (libraries.h) can be opened, tried in the same way; if it cannot be
 * tried, the answer is yes. */
int compile_opens(struct cairn_error *err);

#endif
