/* SPDX-License-Identifier: Apache-2.0
 * HSA_OVERRIDE_GFX_VERSION on one chip and one PyTorch: is it needed, which value fits, what is wrong
 * with the current one.  The plan, the checks and the diagnosis all use these functions
 * (docs/rules/override.md). */
#ifndef CAIRN_RULES_OVERRIDE_H
#define CAIRN_RULES_OVERRIDE_H

#include "base/arena.h"
#include "host/facts.h"
#include "chip/gfx_table.h"

/* The plain name renames every GPU; with "_" and a number it renames one KFD node. */
#define OVERRIDE_NAME "HSA_OVERRIDE_GFX_VERSION"
/* Either form. */
bool override_is_name(const char *name);

/* What a PyTorch has code for; `from` of either is NULL if unknown. */
struct override_wheel {
    struct targets code, rocblas;
};
/* NULL: unknown. If the device code comes in separate wheels, those count. */
struct override_wheel override_wheel_of(const struct torch_facts *t);
enum tri override_has_code(const struct override_wheel *w, const char *gfx);

/* The chips that pytorch.org's wheels supported before they supported this one: what a PyTorch without code
 * for it may have. */
struct targets override_code_before(const struct gfx_chip *real, struct arena *a);

/* The chip whose code can replace the GPU's own; NULL: not known to be needed, or none is available. */
const struct gfx_chip *override_stand_in(const struct override_wheel *w, const struct gfx_chip *real);

enum override_flaw {
    OVERRIDE_FINE,
    OVERRIDE_MALFORMED,          /* the runtime stops */
    OVERRIDE_NO_CHIP,            /* no chip has this version */
    OVERRIDE_SAME,               /* the chip's own version: no effect */
    OVERRIDE_OTHER_GENERATION,   /* its code faults here */
    OVERRIDE_NATIVE,             /* PyTorch has code for the chip, and for the other one too */
    OVERRIDE_NATIVE_ONLY,        /* it has code for the chip, but not for the other one */
    OVERRIDE_NO_CODE,            /* it has code for neither */
    OVERRIDE_NO_ROCBLAS,         /* it has code for the other one, but its rocBLAS does not, and aborts */
    OVERRIDE_OBSOLETE,           /* its list is unknown, but current wheels have code for the chip */
    OVERRIDE_TOO_MANY_REGISTERS, /* the other chip's code may need more registers than exist */
    OVERRIDE_NO_RELATIVE,        /* the other chip's code has instructions that this one lacks */
};
/* real NULL: the chip is unknown, and only the value itself is judged. */
enum override_flaw override_judge(const struct override_wheel *w, const char *value,
                                  const struct gfx_chip *real);
/* Nothing works with it: no GPU is found, or the first kernel stops the job. */
bool override_is_fatal(enum override_flaw flaw);
/* It is wrong because of what this PyTorch contains, and may be right with another one. */
bool override_is_by_wheel(enum override_flaw flaw);
/* Does the vendor of this PyTorch have a wheel with code for the chip, so that an upgrade is enough? */
bool override_has_own_wheel(const struct gfx_chip *c, const struct torch_facts *t);

/* The same in words, with torch as the name of the PyTorch; NULL for OVERRIDE_FINE. */
const char *override_flaw_text(enum override_flaw flaw, const char *torch, const char *value,
                               const struct gfx_chip *real, struct arena *a);

#endif
