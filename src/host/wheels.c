/* SPDX-License-Identifier: Apache-2.0 */
#include "host/wheels.h"

#include "base/str.h"
#include "chip/gfx_table.h"
#include "chip/gfxname.h"
#include "host/rocm_prefix.h"
#include <stdio.h>
#include <string.h>

/* pytorch.org's own releases are "2.9.1+rocm6.4"; other builders add more, or omit it. Returns the text after
 * "+rocm", or NULL. */
static const char *upstream_rocm(const char *version)
{
    const char *plus = strchr(version, '+');
    if (!plus || strspn(version, "0123456789.") != (size_t)(plus - version) || !str_starts(plus, "+rocm"))
        return NULL;
    const char *rest = plus + strlen("+rocm");
    return rest[strspn(rest, "0123456789.")] == '\0' ? rest : NULL;
}

void wheels_targets(struct arena *a, const char *version, struct targets *out)
{
    struct version v, rocm;
    const char *local = upstream_rocm(version);
    if (!local || !version_parse(local, &rocm) || !version_parse(version, &v))
        return;
    if (rocm.part[0] < 6 || !version_at_least(v, 2, 5, 0)) /* the oldest lists that the table is made of */
        return;
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (gfx_in_wheel(c, v, rocm.part[0]))
            targets_add(out, a, c->gfx, strlen(c->gfx));
    out->from = arena_printf(a, FROM_VERSION "what pytorch.org builds torch %d.%d for", v.part[0], v.part[1]);
}

/* cmake/External/aotriton.cmake of the release branches of https://github.com/pytorch/pytorch. */
static const struct {
    int major, minor;
    const char *aotriton;
} aotriton_releases[] = {
    { 2, 3, "0.4.0" },  { 2, 4, "0.6.0" },  { 2, 5, "0.7.0" },   { 2, 6, "0.8.0" },   { 2, 7, "0.9.0" },
    { 2, 8, "0.10.0" }, { 2, 9, "0.11.0" }, { 2, 10, "0.11.1" }, { 2, 11, "0.11.2" },
};

struct text wheels_aotriton(struct arena *a, struct version torch)
{
    for (size_t i = 0; torch.n >= 2 && i < ARRAY_LEN(aotriton_releases); i++)
        if (aotriton_releases[i].major == torch.part[0] && aotriton_releases[i].minor == torch.part[1])
            return (struct text){ aotriton_releases[i].aotriton,
                                  arena_printf(a, FROM_VERSION "AOTriton of torch %d.%d", torch.part[0],
                                               torch.part[1]) };
    return (struct text){ 0 };
}

/* Does "gfx1151" match "gfx115x"? Each x matches one character. */
static bool fits(const char *gfx, const char *pattern)
{
    for (; *gfx && *pattern; gfx++, pattern++)
        if (*gfx != *pattern && *pattern != 'x')
            return false;
    return !*gfx && !*pattern;
}

void wheels_aotriton_targets(struct arena *a, const char *dir, struct version aotriton, struct targets *out)
{
    if (!str_starts(dir, "amd-gfx"))
        return;
    const char *pattern = dir + strlen("amd-");
    size_t len = gfxname_span(pattern, strlen(pattern));
    if (len) { /* a target by its own name, perhaps with a module suffix: "gfx942_mod0" */
        targets_add(out, a, pattern, len);
        return;
    }
    char family[16];
    snprintf(family, sizeof(family), "%.*s", (int)strcspn(pattern, "_"), pattern);
    /* Families share a directory. The first three letters are "gfx", whose x is not a placeholder. */
    for (const struct gfx_chip *c = gfx_table(); c->gfx; c++)
        if (gfx_in_aotriton(c, aotriton) && fits(c->gfx + 3, family + 3))
            targets_add(out, a, c->gfx, strlen(c->gfx));
}
