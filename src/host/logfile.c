/* SPDX-License-Identifier: Apache-2.0 */
#include "host/logfile.h"

#include "base/deflate.h"
#include "base/str.h"
#include "os/file.h"
#include <unistd.h>

int logfile_read(const char *path, void (*take)(void *to, const char *bytes, size_t n), void *to, bool *cut,
                 struct cairn_error *err)
{
    int fd = str_eq(path, "-") ? dup(STDIN_FILENO) : os_open(path, OS_READ);
    if (fd < 0)
        return cairn_fail_errno(err, "open %s", path);
    return inflate_gzip(fd, path, take, to, cut, err);
}

void logfile_into_str(void *to, const char *bytes, size_t n)
{
    str_addn(to, bytes, n);
}
