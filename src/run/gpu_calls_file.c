/* SPDX-License-Identifier: Apache-2.0 */
#include "run/gpu_calls_file.h"

#include "preload/record.h"
#include "os/file.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gpu_calls_file_is(const char *path)
{
    struct stat st;
    char magic[sizeof(RECORD_MAGIC) - 1];
    if (stat(path, &st) || !S_ISREG(st.st_mode)) /* do not open a pipe: closing it would break its writer */
        return false;
    CLEANUP(fd_close) int fd = os_open(path, OS_READ | OS_NO_WAIT);
    return fd >= 0 && os_read_at(fd, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
           !memcmp(magic, RECORD_MAGIC, sizeof(magic));
}

int gpu_calls_file_read(const char *path, struct arena *a, struct gpu_calls *out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *real = realpath(path, NULL); /* no link is followed where many are read */
    const char *dot = real ? strrchr(real, '.') : NULL;
    int pid = dot ? atoi(dot + 1) : 0;
    struct gpu_calls all = { 0 };
    if (pid > 0)
        gpu_calls_read(arena_strndup(a, real, (size_t)(dot - real)), a, &all);
    for (size_t i = 0; i < all.n; i++)
        if (all.process[i].pid == pid) {
            *out = (struct gpu_calls){ .process = &all.process[i], .n = 1 };
            return 0;
        }
    cairn_fail(err, CAIRN_EFORMAT, "%s is a record of GPU calls that this cairn cannot read", path);
    return cairn_hint(
        err, "the record must be of the same cairn version, and its name must still end in the process ID");
}
