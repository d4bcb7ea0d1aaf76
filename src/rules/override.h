/* SPDX-License-Identifier: Apache-2.0
 * HSA_OVERRIDE_GFX_VERSION on one chip and one PyTorch: is it needed, which value fits, what is wrong with one that is
 * set.  The plan, the checks and the diagnosis all ask here (docs/rules/override.md). */
#ifndef CAIRN_RULES_OVERRIDE_H
#define CAIRN_RULES_OVERRIDE_H

#include "base/arena.h"
#include "host/facts.h"
#include "chip/gfx_table.h"

/* The plain name renames every GPU; behind a "_" stands the number of one KFD node. */
#define OVERRIDE_NAME "HSA_OVERRIDE_GFX_VERSION"
/* Either form. */
bool override_is_name(const char *name);

/* What a PyTorch has code for; `from` of either is NULL where that is not known. */
struct override_wheel {
    struct targets code, rocblas;
};
/* NULL: nothing is known.  Where the device code comes in wheels of its own, those count. */
struct override_wheel override_wheel_of(const struct torch_facts *t);
enum tri override_carries(const struct override_wheel *w, const char *gfx);

/* The chips that pytorch.org's wheels had before they carried this one: what a PyTorch without code for it may have. */
struct targets override_code_before(const struct gfx_chip *real, struct arena *a);

/* The chip whose code can stand in for the GPU's own; NULL: none is known to be needed, or none is there. */
const struct gfx_chip *override_stand_in(const struct override_wheel *w, const struct gfx_chip *real);

enum override_flaw {
    OVERRIDE_FINE,
    OVERRIDE_MALFORMED,          /* the runtime stops */
    OVERRIDE_NO_CHIP,            /* no chip has this version */
    OVERRIDE_SAME,               /* the chip's own version: it changes nothing */
    OVERRIDE_OTHER_GENERATION,   /* its code faults here */
    OVERRIDE_NATIVE,             /* PyTorch carries the chip itself, and the other one too */
    OVERRIDE_NATIVE_ONLY,        /* it carries the chip, and not the other one */
    OVERRIDE_NO_CODE,            /* it carries neither */
    OVERRIDE_NO_ROCBLAS,         /* it carries the other one, but its rocBLAS does not, and aborts */
    OVERRIDE_OBSOLETE,           /* its list is not known, but wheels of today carry the chip */
    OVERRIDE_TOO_MANY_REGISTERS, /* the other chip's code may need more than there are */
    OVERRIDE_NO_RELATIVE,        /* the other chip's code has instructions that this one lacks */
};
/* real NULL: the chip is not known, and only the value itself is judged. */
enum override_flaw override_judge(const struct override_wheel *w, const char *value,
                                  const struct gfx_chip *real);
/* Nothing works with it: no GPU is seen, or the first kernel stops the job. */
bool override_is_fatal(enum override_flaw flaw);
/* It is wrong because of what the PyTorch carries, and with another one may be right. */
bool override_is_by_wheel(enum override_flaw flaw);
/* Is there a wheel of this PyTorch's maker with the chip's own code, so that a newer one is all it takes? */
bool override_has_own_wheel(const struct gfx_chip *c, const struct torch_facts *t);

/* The same in words, with torch as the name of the PyTorch; NULL for OVERRIDE_FINE. */
const char *override_flaw_text(enum override_flaw flaw, const char *torch, const char *value,
                               const struct gfx_chip *real, struct arena *a);

#endif
