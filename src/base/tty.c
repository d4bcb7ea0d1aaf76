/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tty.h"

#include "base/cleanup.h"
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
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value) /* the first that is set decides */
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}
