/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/override.h"

#include "chip/gfxname.h"
#include "rules/env_rules.h"
#include <string.h>

bool override_is_name(const char *name)
{
    size_t n = strlen(OVERRIDE_NAME);
    if (strncmp(name, OVERRIDE_NAME, n))
        return false;
    return !name[n] || (name[n] == '_' && name[n + 1] && !name[n + 1 + strspn(name + n + 1, "0123456789")]);
}

struct override_wheel override_wheel_of(const struct torch_facts *t)
{
    if (!t)
        return (struct override_wheel){ 0 };
    return (struct override_wheel){
        .code = t->kpack && t->device_wheels.from ? t->device_wheels : t->compiled,
        .rocblas = t->rocblas,
    };
}

enum tri override_has_code(const struct override_wheel *w, const char *gfx)
{
    return env_targets_cover(&w->code, gfx);
}

/* rocBLAS aborts on a target that its files lack. */
static bool is_carried(const void *data, const struct gfx_chip *c)
{
    const struct override_wheel *w = data;
    return override_has_code(w, c->gfx) == TRI_YES && env_targets_cover(&w->rocblas, c->gfx) != TRI_NO;
}

/* In a release of pytorch.org's wheels older than the chip. */
static bool was_carried_before(const struct gfx_chip *real, const struct gfx_chip *c)
{
    if (!c->wheel_major || !real->wheel_major)
        return c->wheel_major;
    return c->wheel_major < real->wheel_major ||
           (c->wheel_major == real->wheel_major && c->wheel_minor < real->wheel_minor);
}

struct targets override_code_before(const struct gfx_chip *real, struct arena *a)
{
    struct targets t = { .from = "wheels older than the chip" };
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (was_carried_before(real, c))
            targets_add(&t, a, c->gfx, strlen(c->gfx));
    return t;
}

const struct gfx_chip *override_stand_in(const struct override_wheel *w, const struct gfx_chip *real)
{
    return override_has_code(w, real->gfx) == TRI_NO ? gfx_stand_in(real, is_carried, w) : NULL;
}

static bool same_generation(const struct gfx_chip *a, const struct gfx_chip *b)
{
    int major, other, minor, stepping;
    return !gfxname_split(a->gfx, &major, &minor, &stepping) ||
           !gfxname_split(b->gfx, &other, &minor, &stepping) || major == other;
}

static enum override_flaw judge_by_wheel(const struct override_wheel *w, const struct gfx_chip *as,
                                         const struct gfx_chip *real)
{
    enum tri native = override_has_code(w, real->gfx), foreign = override_has_code(w, as->gfx);
    if (native == TRI_YES)
        return foreign == TRI_NO ? OVERRIDE_NATIVE_ONLY : OVERRIDE_NATIVE;
    if (foreign == TRI_NO)
        return OVERRIDE_NO_CODE;
    if (native == TRI_UNKNOWN && real->wheel_major)
        return OVERRIDE_OBSOLETE;
    return env_targets_cover(&w->rocblas, as->gfx) == TRI_NO ? OVERRIDE_NO_ROCBLAS : OVERRIDE_FINE;
}

enum override_flaw override_judge(const struct override_wheel *w, const char *value,
                                  const struct gfx_chip *real)
{
    if (!gfx_override_is_valid(value))
        return OVERRIDE_MALFORMED;
    const struct gfx_chip *as = gfx_find_override(value);
    if (!as)
        return OVERRIDE_NO_CHIP;
    if (!real)
        return OVERRIDE_FINE;
    if (as == real)
        return OVERRIDE_SAME;
    if (!same_generation(as, real))
        return OVERRIDE_OTHER_GENERATION;
    enum override_flaw flaw = judge_by_wheel(w, as, real);
    if (flaw != OVERRIDE_FINE)
        return flaw;
    if (as->vgpr_kib > real->vgpr_kib)
        return OVERRIDE_TOO_MANY_REGISTERS;
    return gfx_is_safe_relative(as, real) ? OVERRIDE_FINE : OVERRIDE_NO_RELATIVE;
}

bool override_is_by_wheel(enum override_flaw flaw)
{
    return flaw >= OVERRIDE_NATIVE && flaw <= OVERRIDE_OBSOLETE;
}

bool override_is_fatal(enum override_flaw flaw)
{
    switch (flaw) {
    case OVERRIDE_MALFORMED:
    case OVERRIDE_NO_CHIP:
    case OVERRIDE_OTHER_GENERATION:
    case OVERRIDE_NATIVE_ONLY:
    case OVERRIDE_NO_CODE:
    case OVERRIDE_NO_ROCBLAS:
    case OVERRIDE_NO_RELATIVE:
        return true;
    case OVERRIDE_FINE:
    case OVERRIDE_SAME:
    case OVERRIDE_NATIVE:
    case OVERRIDE_OBSOLETE:
    case OVERRIDE_TOO_MANY_REGISTERS:
        break;
    }
    return false;
}

bool override_has_own_wheel(const struct gfx_chip *c, const struct torch_facts *t)
{
    return c && (c->wheel_major || (t && t->therock && c->therock));
}

const char *override_flaw_text(enum override_flaw flaw, const char *torch, const char *value,
                               const struct gfx_chip *real, struct arena *a)
{
    const struct gfx_chip *as = gfx_find_override(value);
    switch (flaw) {
    case OVERRIDE_MALFORMED:
        return "malformed: the HSA runtime accepts only three numbers such as 10.3.0; anything else stops "
               "it, and PyTorch finds no GPU";
    case OVERRIDE_NO_CHIP:
        return "no chip has this version: the GPU would disappear";
    case OVERRIDE_SAME:
        return arena_printf(a, "%s is the real version of %s: no effect", value, real->gfx);
    case OVERRIDE_OTHER_GENERATION:
        return arena_printf(a, "%s belongs to another generation than %s: its code faults here", as->gfx,
                            real->gfx);
    case OVERRIDE_NATIVE_ONLY:
        return arena_printf(
            a, "%s has code for %s but not for %s: every kernel lookup would fail (invalid device function)",
            torch, real->gfx, as->gfx);
    case OVERRIDE_NATIVE:
        return arena_printf(a, "%s has code for %s; the override replaces its kernels with those for %s",
                            torch, real->gfx, as->gfx);
    case OVERRIDE_NO_CODE:
        return arena_printf(a,
                            "%s has no code for %s: every kernel lookup would fail (invalid device function)",
                            torch, as->gfx);
    case OVERRIDE_NO_ROCBLAS:
        return arena_printf(a,
                            "the rocBLAS of %s has no kernels for %s: it aborts at the first matrix product",
                            torch, as->gfx);
    case OVERRIDE_OBSOLETE:
        return arena_printf(
            a,
            "obsolete: pytorch.org wheels have code for %s since %s, and with such a wheel the override "
            "breaks or replaces every kernel",
            real->gfx, real->wheel);
    case OVERRIDE_TOO_MANY_REGISTERS:
        return arena_printf(
            a,
            "%s has a larger register file than %s (%d and %d KiB per compute unit): its kernels may need "
            "registers that do not exist, and hang",
            as->gfx, real->gfx, as->vgpr_kib, real->vgpr_kib);
    case OVERRIDE_NO_RELATIVE:
        return arena_printf(a, "%s is not similar enough to %s to run its code", real->gfx, as->gfx);
    case OVERRIDE_FINE:
        break;
    }
    return NULL;
}
