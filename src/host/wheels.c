/* SPDX-License-Identifier: Apache-2.0 */
#include "host/wheels.h"

#include "base/str.h"
#include "chip/gfxname.h"
#include "host/prefix.h"
#include <stdio.h>
#include <string.h>

/* PYTORCH_ROCM_ARCH in https://github.com/pytorch/pytorch, .ci/docker/manywheel/build.sh of the release
 * branches, and https://github.com/pytorch/pytorch/pull/167299.  The last row that is not newer counts. */
static const struct {
    int major, minor;
    int rocm; /* the row is for builds with this major version of ROCm or newer */
    const char *targets;
} build_lists[] = {
    { 2, 5, 6, "gfx900 gfx906 gfx908 gfx90a gfx1030 gfx1100 gfx942" },
    { 2, 6, 6, "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101" },
    { 2, 7, 6, "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201" },
    { 2, 9, 7,
      "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201 gfx950 gfx1150 "
      "gfx1151" },
    { 2, 10, 6,
      "gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201 gfx950 gfx1150 "
      "gfx1151" },
};

/* pytorch.org's own releases are "2.9.1+rocm6.4"; other builders add more, or have none of it.  Gives the
 * text behind "+rocm", or NULL. */
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
    size_t best = ARRAY_LEN(build_lists);
    const char *local = upstream_rocm(version);
    if (!local || !version_parse(local, &rocm) || !version_parse(version, &v))
        return;
    for (size_t i = 0; i < ARRAY_LEN(build_lists); i++)
        if (version_at_least(v, build_lists[i].major, build_lists[i].minor, 0) &&
            rocm.part[0] >= build_lists[i].rocm)
            best = i;
    if (best == ARRAY_LEN(build_lists))
        return;
    for (const char *p = build_lists[best].targets; *p; p += *p == ' ') {
        size_t n = strcspn(p, " ");
        targets_add(out, a, p, n);
        p += n;
    }
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

/* From which AOTriton on a target has images; families share a directory ("gfx11xx", later "gfx110x" and
 * "gfx115x").  https://github.com/ROCm/aotriton, gpu_targets.py at each tag. */
static const struct {
    const char *gfx;
    int since[3];
} aotriton_targets[] = {
    { "gfx90a", { 0, 4, 0 } },   { "gfx942", { 0, 4, 0 } },   { "gfx950", { 0, 9, 0 } },
    { "gfx1100", { 0, 6, 0 } },  { "gfx1101", { 0, 10, 0 } }, { "gfx1102", { 0, 11, 0 } },
    { "gfx1103", { 0, 11, 1 } }, { "gfx1150", { 0, 10, 0 } }, { "gfx1151", { 0, 10, 0 } },
    { "gfx1152", { 0, 11, 2 } }, { "gfx1153", { 0, 11, 2 } }, { "gfx1200", { 0, 10, 0 } },
    { "gfx1201", { 0, 9, 0 } },
};

/* Does "gfx1151" fit "gfx115x"?  Each x stands for one character. */
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
    if (len) { /* a target by its own name, perhaps with a module behind it: "gfx942_mod0" */
        targets_add(out, a, pattern, len);
        return;
    }
    char family[16];
    snprintf(family, sizeof(family), "%.*s", (int)strcspn(pattern, "_"), pattern);
    for (size_t i = 0; i < ARRAY_LEN(aotriton_targets); i++) {
        const int *since = aotriton_targets[i].since;
        bool there = !aotriton.n || version_at_least(aotriton, since[0], since[1], since[2]);
        /* The first three letters are "gfx", whose x is no placeholder. */
        if (there && fits(aotriton_targets[i].gfx + 3, family + 3))
            targets_add(out, a, aotriton_targets[i].gfx, strlen(aotriton_targets[i].gfx));
    }
}
