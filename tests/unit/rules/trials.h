/* SPDX-License-Identifier: Apache-2.0
 * Many machines to ask about: every capture, with PyTorches that have the chip's code, a relative's or neither, and the
 * left-overs of many guides; then at random, with more GPUs, any wheel, selections with mistakes and stale overrides. */
#ifndef CAIRN_TESTS_TRIALS_H
#define CAIRN_TESTS_TRIALS_H

#include "planning.h"

struct trial {
    struct planning p;
    const char *where, *torch, *code;
    size_t env;
};

/* The same at every call.  Ends when try says false; returns how many there were. */
size_t trials_run(bool (*try)(struct trial *t));
/* GPUs, wheel, environment and plan, as remarks. */
void trial_tell(const struct trial *t);

#endif
