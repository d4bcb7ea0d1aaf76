/* SPDX-License-Identifier: Apache-2.0 */
#include "run/log_parts.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/parse.h"
#include "os/file.h"
#include "os/info.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { FIRST, PREVIOUS, LAST, TRIES = 4 };

/* ---- what was dropped: a number in "log.dropped" ---- */

static uint64_t read_dropped(const char *path)
{
    char name[PATH_MAX], text[32];
    uint64_t out;
    snprintf(name, sizeof(name), "%s.dropped", path);
    ssize_t n = os_read_start(name, text, sizeof(text) - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return cairn_parse_u64(text, &out) && out < UINT64_MAX / 4 ? out : 0;
}

void log_parts_drop(const char *path, uint64_t bytes)
{
    char name[PATH_MAX], text[32];
    struct cairn_error ignored;
    snprintf(name, sizeof(name), "%s.dropped", path);
    int n = snprintf(text, sizeof(text), "%" PRIu64 "\n", read_dropped(path) + bytes);
    file_write(name, text, (size_t)n, &ignored);
}

/* ---- opening ---- */

static int open_part(struct log_parts *p, struct os_info *info, int i, const char *path, const char *end)
{
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s%s", path, end);
    *info = (struct os_info){ 0 };
    p->fd[i] = os_open(name, OS_READ | OS_NO_WAIT);
    if (p->fd[i] < 0)
        return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    if (os_info_fd(p->fd[i], info))
        return -1;
    if (info->kind != OS_KIND_FILE) {
        errno = EINVAL;
        return -1;
    }
    p->size[i] = info->size;
    return 0;
}

/* *moved: the recorder renamed a part meanwhile. */
static int open_once(struct log_parts *p, const char *path, bool *moved)
{
    struct os_info info[LOG_PARTS], now;
    *p = (struct log_parts)LOG_PARTS_NONE;
    p->dropped = read_dropped(path);
    if (open_part(p, &info[FIRST], FIRST, path, ".first") ||
        open_part(p, &info[PREVIOUS], PREVIOUS, path, ".previous") ||
        open_part(p, &info[LAST], LAST, path, ""))
        return -1;
    char name[PATH_MAX];
    snprintf(name, sizeof(name), "%s.previous", path);
    bool has = !os_info(name, &now);
    *moved = p->dropped != read_dropped(path) || has != (p->fd[PREVIOUS] >= 0) ||
             (has && !os_info_is_same(&now, &info[PREVIOUS])) ||
             (p->fd[FIRST] >= 0 && p->fd[LAST] >= 0 && os_info_is_same(&info[FIRST], &info[LAST])) ||
             (p->fd[FIRST] < 0 && p->fd[PREVIOUS] >= 0);
    return 0;
}

static void say_dropped(struct log_parts *p)
{
    if (!p->dropped)
        return;
    p->line_n = (size_t)snprintf(p->line, sizeof(p->line),
                                 "\n[cairn: %" PRIu64 " bytes of the log were dropped here]\n", p->dropped);
    p->line_n = p->line_n < p->dropped ? p->line_n : (size_t)p->dropped;
}

int log_parts_open(struct log_parts *p, const char *path)
{
    bool moved = true;
    for (int i = 0; i < TRIES && moved; i++) {
        if (i)
            log_parts_close(p);
        if (open_once(p, path, &moved)) {
            int why = errno;
            log_parts_close(p);
            errno = why;
            return -1;
        }
    }
    say_dropped(p);
    p->total = p->size[FIRST] + p->dropped + p->size[PREVIOUS] + p->size[LAST];
    return 0;
}

void log_parts_close(struct log_parts *p)
{
    for (int i = 0; i < LOG_PARTS; i++) {
        fd_close(&p->fd[i]);
        p->fd[i] = -1;
    }
}

/* ---- reading ---- */

/* The text, piece by piece: a file, or memory. */
struct piece {
    uint64_t from, n;
    int fd; /* -1: the line */
};

static struct piece piece_of(const struct log_parts *p, int i)
{
    uint64_t gap_end = p->size[FIRST] + p->dropped;
    switch (i) {
    case 0:
        return (struct piece){ 0, p->size[FIRST], p->fd[FIRST] };
    case 1:
        return (struct piece){ gap_end - p->line_n, p->line_n, -1 };
    case 2:
        return (struct piece){ gap_end, p->size[PREVIOUS], p->fd[PREVIOUS] };
    default:
        return (struct piece){ gap_end + p->size[PREVIOUS], p->size[LAST], p->fd[LAST] };
    }
}
enum { PIECES = 4 };

uint64_t log_parts_at(const struct log_parts *p, uint64_t offset)
{
    uint64_t line = p->size[FIRST] + p->dropped - p->line_n;
    if (offset >= p->size[FIRST] && offset < line)
        return line;
    return offset < p->total ? offset : p->total;
}

uint64_t log_parts_length(const struct log_parts *p, uint64_t offset, uint64_t n)
{
    bool before_hole = offset < p->size[FIRST] && p->dropped > p->line_n;
    uint64_t left = (before_hole ? p->size[FIRST] : p->total) - offset;
    return n < left ? n : left;
}

static ssize_t read_piece(const struct log_parts *p, const struct piece *k, uint64_t at, char *to, size_t n)
{
    n = n < k->n - at ? n : (size_t)(k->n - at);
    if (k->fd >= 0)
        return os_read_at(k->fd, to, n, at);
    memcpy(to, p->line + at, n);
    return (ssize_t)n;
}

ssize_t log_parts_read(const struct log_parts *p, uint64_t offset, char *to, size_t n)
{
    size_t got = 0;
    for (int i = 0; i < PIECES; i++) {
        struct piece k = piece_of(p, i);
        while (got < n && offset >= k.from && offset - k.from < k.n) {
            ssize_t r = read_piece(p, &k, offset - k.from, to + got, n - got);
            if (r <= 0)
                return r < 0 ? -1 : (ssize_t)got;
            got += (size_t)r;
            offset += (uint64_t)r;
        }
    }
    return (ssize_t)got;
}

int log_parts_find(const struct log_parts *p, uint64_t offset, uint64_t n, uint64_t *at)
{
    for (int i = 0; i < PIECES; i++) {
        struct piece k = piece_of(p, i);
        if (k.fd < 0 || offset < k.from || offset - k.from > k.n || n > k.n - (offset - k.from))
            continue;
        *at = offset - k.from;
        return k.fd;
    }
    return -1;
}
