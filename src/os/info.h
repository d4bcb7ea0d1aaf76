/* SPDX-License-Identifier: Apache-2.0
 * Information about a file, and whether it has changed. */
#ifndef CAIRN_OS_INFO_H
#define CAIRN_OS_INFO_H

#include <stdbool.h>
#include <stdint.h>

enum os_kind { OS_KIND_OTHER, OS_KIND_FILE, OS_KIND_FOLDER, OS_KIND_LINK };

struct os_info {
    enum os_kind kind;
    uint64_t size;
    int64_t modified_ns;     /* since 1970 */
    uint64_t device, number; /* together they identify a file */
};

/* stat, lstat and fstat.  -1 with errno. */
int os_info(const char *path, struct os_info *out);
int os_info_link(const char *path, struct os_info *out);
int os_info_fd(int fd, struct os_info *out);

/* Whether the file was not written to between the two calls. */
bool os_info_is_unchanged(const struct os_info *before, const struct os_info *now);
/* Whether the two are the same file or folder. */
bool os_info_is_same(const struct os_info *one, const struct os_info *other);

/* False also if unknown; without fault injection. */
bool os_is_file(const char *path);
bool os_is_folder(const char *path);

#endif
