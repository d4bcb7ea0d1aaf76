/* SPDX-License-Identifier: Apache-2.0
 * Shared libraries at run time: opened by a list of names, their functions resolved by a table.
 *
 * A library stays open until the process ends: GPU runtimes do not survive dlclose. */
#ifndef CAIRN_GPU_DL_H
#define CAIRN_GPU_DL_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct dl_symbol {
    const char *name;
    size_t at;     /* of a function pointer in the caller's struct */
    bool optional; /* stays NULL when the library is older than the function */
};

/* Tries each name as it is and in each folder (both lists end with NULL; folders may be NULL); path becomes
 * the file that was opened.  The error names what was searched for. */
int dl_open(const char *const *names, const char *const *folders, void **library, char *path,
            size_t path_size, struct cairn_error *err);
/* One file, by its path. */
int dl_open_file(const char *file, void **library, struct cairn_error *err);
/* Fills the struct `into`; fails with the names of all that are missing. */
int dl_resolve(void *library, const char *path, const struct dl_symbol *symbols, size_t n, void *into,
               struct cairn_error *err);

#endif
