/* SPDX-License-Identifier: Apache-2.0
 * Paths of this system.  A path of a captured Linux machine is text: host/root.h. */
#ifndef CAIRN_OS_PATH_H
#define CAIRN_OS_PATH_H

#include <stdbool.h>
#include <stddef.h>

bool path_is_absolute(const char *path);
/* The last part of a path; empty if it ends with a separator. */
const char *path_name(const char *path);
/* The folder that a path lies in: "." for a bare name.  To be freed. */
char *path_folder(const char *path);
/* The next separator, from here on; NULL: there is none. */
char *path_separator(const char *from);

/* The running program; -1 with errno. */
int path_program(char *out, size_t size);
/* A name in a folder relative to the program's: "" is that folder itself. */
int path_beside_program(const char *folder, const char *name, char *out, size_t size);

/* Where a program keeps what is the user's, by the XDG Base Directory Specification. */
enum path_place { PLACE_STATE, PLACE_CACHE };
struct path_place_rule {
    const char *variable; /* names the place, if its value is absolute */
    const char *home;     /* else it is below the folder that this one names */
    const char *below;
};
const struct path_place_rule *path_place(enum path_place place);

#endif
