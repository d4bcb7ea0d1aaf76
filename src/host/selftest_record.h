/* SPDX-License-Identifier: Apache-2.0
 * The result of the last complete `cairn selftest` on each chip, in $XDG_STATE_HOME/cairn/selftest.  `cairn doctor` reads
 * it: only what computed correct results on this machine is proven there. */
#ifndef CAIRN_HOST_SELFTEST_RECORD_H
#define CAIRN_HOST_SELFTEST_RECORD_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>

struct selftest_record {
    const char *version; /* of cairn */
    const char *library; /* the runtime's file; "": not known */
    const char *date;    /* "2026-11-16" */
    bool passed;
};
/* arch is a target name, "gfx1151"; what follows a colon is ignored. */
int selftest_record_write(const char *arch, const struct selftest_record *r, struct cairn_error *err);
/* false: there is none that can be read. */
bool selftest_record_read(const char *arch, const char *const *env, struct arena *a,
                          struct selftest_record *out);

#endif
