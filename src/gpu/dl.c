/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/dl.h"

#include "os/fault.h"
#include "base/str.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

static void *open_one(const char *folder, const char *name, char *path, size_t path_size)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    void *library = fault_hit() ? NULL : dlopen(full, RTLD_NOW | RTLD_LOCAL);
    struct link_map *map;
    if (library && !dlinfo(library, RTLD_DI_LINKMAP, &map) && map->l_name[0])
        snprintf(path, path_size, "%s", map->l_name);
    else
        snprintf(path, path_size, "%s", full);
    return library;
}

int dl_open(const char *const *names, const char *const *folders, void **library, char *path,
            size_t path_size, struct cairn_error *err)
{
    char found[512];
    for (int f = -1; f < 0 || (folders && folders[f]); f++)
        for (int i = 0; names[i]; i++) {
            void *l = open_one(f < 0 ? NULL : folders[f], names[i], found, sizeof(found));
            if (!l)
                continue;
            *library = l;
            snprintf(path, path_size, "%s", found);
            return 0;
        }
    const char *why = dlerror();
    return cairn_fail(err, CAIRN_ELACK, "%s was not found (%s)", names[0], why ? why : "no reason given");
}

int dl_open_file(const char *file, void **library, struct cairn_error *err)
{
    char path[512];
    *library = open_one(NULL, file, path, sizeof(path));
    if (*library)
        return 0;
    const char *why = dlerror();
    return cairn_fail(err, CAIRN_ELACK, "%s cannot be opened (%s)", file, why ? why : "no reason given");
}

int dl_resolve(void *library, const char *path, const struct dl_symbol *symbols, size_t n, void *into,
               struct cairn_error *err)
{
    CLEANUP(str_release) struct str missing = { 0 };
    for (size_t i = 0; i < n; i++) {
        void *p = dlsym(library, symbols[i].name);
        if (!p && !symbols[i].optional)
            str_addf(&missing, "%s%s", missing.len ? ", " : "", symbols[i].name);
        memcpy((char *)into + symbols[i].at, &p, sizeof(p));
    }
    if (missing.len)
        return cairn_fail(err, CAIRN_ELACK, "%s lacks %s", path, missing.s);
    return 0;
}
