/* SPDX-License-Identifier: Apache-2.0
 * To preload: every folder is on NFS, as far as statfs tells. */
#define _GNU_SOURCE
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

int statfs(const char *path, struct statfs *out)
{
    long r = syscall(SYS_statfs, path, out);
    if (!r)
        out->f_type = 0x6969;
    return (int)r;
}

/* The name in programs with large files; on 64-bit machines the structures are the same. */
int statfs64(const char *path, struct statfs64 *out)
{
    return statfs(path, (struct statfs *)(void *)out);
}
