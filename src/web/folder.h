/* SPDX-License-Identifier: Apache-2.0
 * The folders that clients may see, by the names of --folder, and the paths below them.
 *
 * A client names a folder and a path below it, never a path of this machine.  A path has no empty part, no "." or
 * "..", no part that begins with a dot, no control character; each part has at most 200 bytes.  It is opened so
 * that no link leads out of the folder (os_open_beneath). */
#ifndef CAIRN_WEB_FOLDER_H
#define CAIRN_WEB_FOLDER_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include <stdbool.h>
#include <stddef.h>

enum { FOLDER_MOST = 64, FOLDER_NAME_BYTES = 200, FOLDER_PATH_BYTES = 1024 };

struct folder {
    const char *name;
    const char *path; /* absolute */
    bool read_only;
    int fd;
};

struct folders {
    struct folder folder[FOLDER_MOST];
    size_t n;
};

/* Opens NAME=DIR or NAME=DIR:ro.  The texts live in the arena. */
int folders_add_option(struct folders *f, const char *option, struct arena *a, struct cairn_error *err);
/* The same from its parts; the name must be new. */
int folders_add(struct folders *f, const char *name, const char *path, bool read_only, struct arena *a,
                struct cairn_error *err);
const struct folder *folders_find(const struct folders *f, const char *name);
void folders_write(const struct folders *f, struct json *parent); /* "folders":[…] */
void folders_close(struct folders *f);

/* Whether it is a path that may be asked for; *why otherwise. */
bool folder_path_is_valid(const char *path, const char **why);
/* Whether it can be the name of a folder: letters, digits, '-', '_' and '.', at most 64, no dot first. */
bool folder_name_is_valid(const char *name);

#endif
