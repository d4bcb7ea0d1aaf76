/* SPDX-License-Identifier: Apache-2.0 */
#include "os/terminal.h"

#include "os/file.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool tty_obeys(FILE *f)
{
    const char *term = getenv("TERM");
    return isatty(fileno(f)) && !(term && !strcmp(term, "dumb"));
}

int tty_width(FILE *f)
{
    struct winsize w;
    return !ioctl(fileno(f), TIOCGWINSZ, &w) && w.ws_col ? w.ws_col : 80;
}

bool tty_knows_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && *value) /* the first that is set decides */
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

int os_open_tty(void)
{
    return os_open("/dev/tty", OS_READ | OS_WRITE);
}

static bool is_wrong_way_round(int fd)
{
    return (fcntl(fd, F_GETFL) & O_ACCMODE) == (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

void os_fill_standard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return;
}

void os_null_standard(void)
{
    int null = os_open_null();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++)
        if (is_wrong_way_round(fd))
            dup2(null, fd);
    if (null >= 0)
        close(null);
}
