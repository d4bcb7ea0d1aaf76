/* SPDX-License-Identifier: Apache-2.0 */
#include "run/shown_before.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/own.h"
#include "base/str.h"
#include <string.h>
#include <unistd.h>

enum { LINE = 33 /* a hash, and the end of its line */ };

static void line_of(const char *trainer, const char *text, char out[LINE + 1])
{
    struct hash h;
    hash_init(&h);
    hash_add_text(&h, trainer);
    hash_add_text(&h, text);
    hash_end_text(&h, out);
    out[LINE - 1] = '\n';
    out[LINE] = '\0';
}

/* Reads the file; returns its length, 0 if it cannot be read. */
static size_t read_lines(const struct own_dir *d, char *into, size_t size)
{
    CLEANUP(fd_close) int fd = -1;
    struct cairn_error ignored = { 0 };
    if (own_file_open(d, "told", OS_READ, &fd, &ignored))
        return 0;
    ssize_t n = read(fd, into, size - 1);
    into[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

bool shown_before(const char *state, const char *trainer, const char *text)
{
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    struct cairn_error ignored = { 0 };
    char line[LINE + 1], lines[(SHOWN_KEEP + 1) * LINE + 1];
    if (!state || own_dir_open(&d, PLACE_STATE, state, NULL, true, &ignored))
        return false;
    line_of(trainer, text, line);
    size_t n = read_lines(&d, lines, SHOWN_KEEP * LINE + 1);
    if (strstr(n ? lines : "", line))
        return true;
    size_t skip = n % LINE ? n : n > (SHOWN_KEEP - 1) * LINE ? n - (SHOWN_KEEP - 1) * LINE : 0;
    memcpy(lines + n, line, LINE);
    own_file_write(&d, "told", lines + skip, n + LINE - skip, &ignored);
    return false;
}
