/* SPDX-License-Identifier: Apache-2.0
 * Paths of this system.  A path of a captured Linux machine is text: host/root.h. */
#ifndef CAIRN_OS_PATH_H
#define CAIRN_OS_PATH_H

#include <stdbool.h>
#include <stddef.h>

bool path_is_absolute(const char *path);
/* The last part of a path; empty if it ends with a separator. */
const char *path_name(const char *path);
/* The parent folder of a path: "." for a bare name.  The caller frees it. */
char *path_folder(const char *path);
/* The next separator; NULL: none. */
char *path_separator(const char *from);

/* The path of the running program; -1 with errno. */
int path_program(char *out, size_t size);
/* The same for starting it again, by this process or its children: it works although the file is gone. */
int path_program_to_start(char *out, size_t size);
/* A name in a folder relative to the program's: "" is that folder itself. */
int path_beside_program(const char *folder, const char *name, char *out, size_t size);

/* Base folders of the XDG Base Directory Specification. */
enum path_place { PLACE_STATE, PLACE_CACHE };
struct path_place_rule {
    const char *variable; /* names the folder, if its value is absolute */
    const char *home;     /* else the folder is below the value of this variable */
    const char *below;
};
const struct path_place_rule *path_place(enum path_place place);

#endif
