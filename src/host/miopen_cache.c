/* SPDX-License-Identifier: Apache-2.0 */
#include "host/miopen_cache.h"

#include "base/parse.h"

/* MIOpen's src/binary_cache.cpp: one folder per version, "3.4.0.a85ca8a54", below the user's cache. */
static const char *miopen_folder(struct facts *f)
{
    const char *own = facts_env(f, "MIOPEN_CUSTOM_CACHE_DIR"), *home = facts_env(f, "HOME");
    if (own && *own == '/')
        return own;
    return home && *home == '/' ? arena_printf(&f->arena, "%s/.cache/miopen", home) : NULL;
}

void miopen_cache_read(struct facts *f)
{
    const char *dir = f->root.live ? miopen_folder(f) : NULL;
    char **names = NULL;
    size_t n = 0;
    if (!dir)
        return;
    struct miopen_cache *c = &f->miopen_cache;
    c->dir = dir;
    if (root_list(&f->root, &f->arena, dir, &names, &n))
        return; /* no cache yet */
    struct version v;
    for (size_t i = 0; i < n; i++)
        if (version_parse(names[i], &v))
            *ARENA_PUSH(&f->arena, c->version, c->n_versions) = names[i];
}
