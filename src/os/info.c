/* SPDX-License-Identifier: Apache-2.0 */
#include "os/info.h"

#include "os/fault.h"
#include <sys/stat.h>

static int fill(int failed, const struct stat *st, struct os_info *out)
{
    if (failed)
        return -1;
    *out = (struct os_info){
        .kind = S_ISREG(st->st_mode)   ? OS_KIND_FILE
                : S_ISDIR(st->st_mode) ? OS_KIND_FOLDER
                : S_ISLNK(st->st_mode) ? OS_KIND_LINK
                                       : OS_KIND_OTHER,
        .size = (uint64_t)st->st_size,
        .modified_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
        .device = st->st_dev,
        .number = st->st_ino,
    };
    return 0;
}

int os_info(const char *path, struct os_info *out)
{
    struct stat st;
    return fill(fault_hit() || stat(path, &st), &st, out);
}

int os_info_link(const char *path, struct os_info *out)
{
    struct stat st;
    return fill(fault_hit() || lstat(path, &st), &st, out);
}

int os_info_fd(int fd, struct os_info *out)
{
    struct stat st;
    return fill(fault_hit() || fstat(fd, &st), &st, out);
}

bool os_info_is_unchanged(const struct os_info *before, const struct os_info *now)
{
    return before->size == now->size && before->modified_ns == now->modified_ns;
}

bool os_info_is_same(const struct os_info *one, const struct os_info *other)
{
    return one->device == other->device && one->number == other->number;
}

bool os_is_file(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

bool os_is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}
