/* SPDX-License-Identifier: Apache-2.0 */
#include "host/logfile.h"

#include "base/cleanup.h"
#include "base/str.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 1 << 16 };

static void gz_done(gzFile *f)
{
    if (*f)
        gzclose_r(*f);
}

/* zlib gives what is no gzip as it is, so one loop reads both. */
static int read_all(gzFile f, const char *path, void (*take)(void *to, const char *bytes, size_t n), void *to,
                    struct cairn_error *err)
{
    char buf[PIECE];
    int n, code = Z_OK;
    while ((n = gzread(f, buf, sizeof(buf))) > 0)
        take(to, buf, (size_t)n);
    const char *why = gzerror(f, &code);
    if (n == 0 || code == Z_BUF_ERROR)
        return 0;
    if (code == Z_ERRNO)
        return cairn_fail_errno(err, "read %s", path);
    cairn_fail(err, CAIRN_EFORMAT, "%s: damaged gzip file: %s", path, why);
    return cairn_hint(err, "unpack what is left with gzip -dc, and give that");
}

int logfile_read(const char *path, void (*take)(void *to, const char *bytes, size_t n), void *to,
                 struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = str_eq(path, "-") ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cairn_fail_errno(err, "open %s", path);
    CLEANUP(gz_done) gzFile f = gzdopen(fd, "rb");
    if (!f)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read %s", path);
    fd = -1; /* f has it now */
    gzbuffer(f, PIECE);
    return read_all(f, path, take, to, err);
}

void logfile_into_str(void *to, const char *bytes, size_t n)
{
    str_addn(to, bytes, n);
}
