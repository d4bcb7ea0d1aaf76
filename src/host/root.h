/* SPDX-License-Identifier: Apache-2.0
 * The file tree that is looked at: this machine's /, or a captured tree given with --root.
 *
 * All paths are absolute ("/sys/class/kfd") and are resolved inside the tree: absolute symbolic links in a
 * capture stay in it.  Nothing is ever written.  Sizes are bounded and file types checked, so that a fifo,
 * a device or a 10 GB file where a line of text should be cannot stall or exhaust the reader.  Every call
 * passes the fault seam.  On failure functions return NULL or -1 and set errno; deciding whether a missing
 * file matters is the caller's business. */
#ifndef CAIRN_HOST_ROOT_H
#define CAIRN_HOST_ROOT_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct root {
    int fd;
    bool live;        /* the tree is this machine's own */
    const char *path; /* as given; "/" when live; for messages */
};

enum { ROOT_TEXT_MAX = 64 * 1024 };

/* dir NULL or "/" is this machine. */
int root_open(struct root *r, const char *dir, struct cairn_error *err);
void root_close(struct root *r);

/* A regular file, read-only; EISDIR, or EINVAL for a fifo, socket or device. */
int root_open_file(const struct root *r, const char *path);
int root_stat(const struct root *r, const char *path, struct stat *st); /* follows links */
bool root_exists(const struct root *r, const char *path);
bool root_is_dir(const struct root *r, const char *path);
/* The text of a small file, truncated at ROOT_TEXT_MAX, NUL-terminated, trailing white space removed. *len
 * (may be NULL) is the length, which differs from strlen if the file contains NUL bytes. */
char *root_read(const struct root *r, struct arena *a, const char *path, size_t *len);
/* The names in a directory in natural order ("node2" before "node10"), without . and .. */
int root_list(const struct root *r, struct arena *a, const char *path, char ***names, size_t *n);
/* In the order of the file system: for folders of thousands of files, where sorting is most of the time. */
int root_list_unsorted(const struct root *r, struct arena *a, const char *path, char ***names, size_t *n);
/* The path with all symbolic links resolved, inside the tree; NULL if it does not exist. */
char *root_resolve(const struct root *r, struct arena *a, const char *path);
/* The same for a directory that the user named, perhaps from the working directory; NULL if there is none. */
char *root_resolve_dir(const struct root *r, struct arena *a, const char *given);
/* The target of a link, unresolved; NULL if it is not one. */
char *root_link(const struct root *r, struct arena *a, const char *path);
/* "<dir>/<name>", with one slash between. */
char *path_join(struct arena *a, const char *dir, const char *name);
/* The folder that an absolute path is in; that of "/" is "/". */
const char *path_parent(struct arena *a, const char *path);

#endif
