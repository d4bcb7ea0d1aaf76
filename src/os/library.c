/* SPDX-License-Identifier: Apache-2.0 */
#include "os/library.h"

#include "os/fault.h"
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

void *os_library_open(const char *name, char *file, size_t size)
{
    void *library = fault_hit() ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    struct link_map *map;
    bool known = library && !dlinfo(library, RTLD_DI_LINKMAP, &map) && map->l_name[0];
    snprintf(file, size, "%s", known ? map->l_name : name);
    return library;
}

void *os_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

const char *os_library_reason(void)
{
    const char *why = dlerror();
    return why ? why : "no reason given";
}
