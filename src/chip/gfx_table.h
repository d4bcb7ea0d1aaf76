/* SPDX-License-Identifier: Apache-2.0
 * What is known about each gfx target: one row a chip.  `cairn gpu --chips` and docs/chips.md are this table. */
#ifndef CAIRN_CHIP_GFX_TABLE_H
#define CAIRN_CHIP_GFX_TABLE_H

#include "base/parse.h"
#include <stdbool.h>
#include <stddef.h>

enum gfx_family {
    GFX_GCN,
    GFX_VEGA,
    GFX_CDNA,
    GFX_CDNA2,
    GFX_CDNA3,
    GFX_CDNA4,
    GFX_RDNA1,
    GFX_RDNA2,
    GFX_RDNA3,
    GFX_RDNA35,
    GFX_RDNA4,
};
const char *gfx_family_name(enum gfx_family f);

struct gfx_chip {
    const char *gfx;      /* "gfx1151" */
    const char *codename; /* "Strix Halo" */
    const char *products;
    enum gfx_family family;
    int wave;
    int vgpr_kib;        /* vector registers per compute unit: code tuned for 384 must not run on 256 */
    const char *generic; /* "gfx11-generic", or NULL */
    const char *bf16;    /* "none", "emulated", "native" */
    bool fp16_dot;
    const char *matrix_core;                /* "WMMA", "MFMA", or NULL */
    const char *fp8;                        /* "OCP", "FNUZ", or NULL */
    const char *wheel;                      /* first pytorch.org wheel that lists it, in words; NULL: none */
    int wheel_major, wheel_minor;           /* the same as a torch version; 0: none */
    bool wheel_rocm7;                       /* before torch 2.10 only in wheels built with ROCm >= 7.0 */
    const char *therock;                    /* "ready", "build", or NULL */
    int rocm_major, rocm_minor, rocm_patch; /* ROCm from which AMD supports it; 0: never, or not known */
    const char *support;                    /* AMD's support in words */
    const char *problems;                   /* what is known to break, in words; NULL: nothing known */
    const char *source;
};

/* NULL for a target that is not in the table. */
const struct gfx_chip *gfx_find(const char *gfx);
/* The whole table; ends with a row whose gfx is NULL. */
const struct gfx_chip *gfx_table(void);
/* Can code compiled for `code` run on the chip `gfx`?  Exact, or its generic target.  A code object that
 * demands page-fault retry ("gfx90a:xnack+") does not run in an ordinary process. */
bool gfx_code_runs(const char *code, const char *gfx);
/* The value for HSA_OVERRIDE_GFX_VERSION ("10.3.0") that stands for a target; out holds 16 bytes. */
bool gfx_override_value(const char *gfx, char *out);
/* Is it a value that the runtime reads?  Anything else stops it. */
bool gfx_override_is_valid(const char *value);
/* The target that such a value stands for; NULL if it is not valid, or none in the table has this version. */
const struct gfx_chip *gfx_find_override(const char *value);

/* May code for `code` run on `real`, as far as instructions and registers go? */
bool gfx_is_safe_relative(const struct gfx_chip *code, const struct gfx_chip *real);
/* The nearest chip whose code may run in place of the chip's own, among those that serve; NULL: none. */
const struct gfx_chip *gfx_stand_in(const struct gfx_chip *real,
                                    bool (*serves)(const void *data, const struct gfx_chip *c),
                                    const void *data);

#endif
