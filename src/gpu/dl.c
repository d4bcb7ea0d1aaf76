/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/dl.h"

#include "base/str.h"
#include "os/library.h"
#include <stdio.h>
#include <string.h>

static void *open_one(const char *folder, const char *name, char *path, size_t path_size)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s%s", folder ? folder : "", folder ? "/" : "", name);
    return os_library_open(full, path, path_size);
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
    return cairn_fail(err, CAIRN_ELACK, "%s was not found (%s)", names[0], os_library_reason());
}

int dl_open_file(const char *file, void **library, struct cairn_error *err)
{
    char path[512];
    *library = open_one(NULL, file, path, sizeof(path));
    if (*library)
        return 0;
    return cairn_fail(err, CAIRN_ELACK, "cannot open %s (%s)", file, os_library_reason());
}

int dl_resolve(void *library, const char *path, const struct dl_symbol *symbols, size_t n, void *into,
               struct cairn_error *err)
{
    CLEANUP(str_release) struct str missing = { 0 };
    for (size_t i = 0; i < n; i++) {
        void *p = os_library_symbol(library, symbols[i].name);
        if (!p && !symbols[i].optional)
            str_addf(&missing, "%s%s", missing.len ? ", " : "", symbols[i].name);
        memcpy((char *)into + symbols[i].at, &p, sizeof(p));
    }
    if (missing.len)
        return cairn_fail(err, CAIRN_ELACK, "%s has no %s", path, missing.s);
    return 0;
}
