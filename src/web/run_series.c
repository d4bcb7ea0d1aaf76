/* SPDX-License-Identifier: Apache-2.0 */
#include "web/run_series.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "os/file.h"
#include "web/run_series_inside.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 }; /* also the longest line */

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- points ---- */

static void cut_events(struct run_series *s, uint64_t from)
{
    while (s->n_events && s->event[s->n_events - 1].step >= from)
        free(s->event[--s->n_events].note);
}

/* Forgets the points from index n on. */
static void cut(struct run_series *s, size_t n)
{
    if (n < s->n)
        cut_events(s, s->step[n]);
    s->n = n < s->n ? n : s->n;
    for (int i = 0; i < METRIC_COUNT; i++)
        pyramid_cut(&s->metric[i], s->n);
}

static void forget(struct run_series *s)
{
    cut_events(s, 0);
    cut(s, 0);
    s->info = (struct os_info){ 0 };
    s->offset = 0;
    s->n_check = 0;
    s->is_long = false;
}

static void halve(struct run_series *s)
{
    for (int i = 0; i < METRIC_COUNT; i++) {
        struct pyramid *p = &s->metric[i];
        if (p->n)
            pyramid_halve(p);
    }
    for (size_t i = 0; i < s->n; i += 2)
        s->step[i / 2] = s->step[i + 1 < s->n ? i + 1 : i];
    s->n = (s->n + 1) / 2;
}

/* The point of that step, which is then the last one: all that come after it go. */
static int point_at(struct run_series *s, uint64_t step, size_t *at, struct cairn_error *err)
{
    size_t n = s->n;
    while (n && s->step[n - 1] > step)
        n--;
    if (n < s->n)
        cut(s, n);
    if (n && s->step[n - 1] == step) {
        *at = n - 1;
        return 0;
    }
    if (s->n == RUN_SERIES_POINTS)
        halve(s);
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 256;
        uint64_t *bigger = realloc(s->step, room * sizeof(*bigger));
        if (!bigger)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu steps", room);
        s->step = bigger;
        s->room = room;
    }
    s->step[s->n] = step;
    *at = s->n++;
    return 0;
}

/* Of too many the oldest goes. */
static void add_event(struct run_series *s, uint64_t step, const char *event, const char *note)
{
    if (s->n_events == RUN_SERIES_EVENTS) {
        free(s->event[0].note);
        memmove(s->event, s->event + 1, --s->n_events * sizeof(*s->event));
    }
    if (s->n_events == s->events_room) {
        s->events_room = s->events_room ? 2 * s->events_room : 32;
        s->event = need(realloc(s->event, s->events_room * sizeof(*s->event)));
    }
    s->event[s->n_events++] = (struct run_series_event){ step, event, note ? need(strdup(note)) : NULL };
}

/* ---- lines ---- */

/* Events are rare, so the library may read their notes. */
static void take_event(struct run_series *s, const char *line, size_t n, const struct step_record *m)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    add_event(s, m->step, m->event,
              json_parse(line, n, &v, &ignored) ? NULL : json_text(json_get(v, "note")));
}

/* Readers skip lines that are none of ours. */
static int take_line(struct run_series *s, const char *line, size_t n, struct cairn_error *err)
{
    struct cairn_error ignored;
    struct step_record m;
    size_t at;
    if (n < 2 || step_record_parse_some(line, n, s->metrics, &m, &ignored))
        return 0;
    if (point_at(s, m.step, &at, err))
        return -1;
    for (unsigned left = m.has & s->metrics; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (pyramid_set(&s->metric[i], at, m.value[i], err))
            return -1;
    }
    if (m.event)
        take_event(s, line, n, &m);
    return 0;
}

/* Takes the whole lines; *used: their bytes. */
static int take_lines(struct run_series *s, const char *bytes, size_t n, size_t *used,
                      struct cairn_error *err)
{
    *used = 0;
    for (const char *end; (end = memchr(bytes + *used, '\n', n - *used));) {
        size_t line = (size_t)(end + 1 - bytes) - *used;
        if (!s->is_long && take_line(s, bytes + *used, line, err))
            return -1;
        s->is_long = false;
        *used += line;
    }
    if (!*used && n == CHUNK) { /* a line that no trainer wrote */
        s->is_long = true;
        *used = n;
    }
    return 0;
}

/* ---- the file ---- */

/* Whether the file still has what was read. */
static bool is_same(const struct run_series *s, int fd, const struct os_info *now)
{
    char bytes[RUN_SERIES_CHECK];
    return !s->offset || (os_info_is_same(&s->info, now) && now->size >= s->offset &&
                          os_read_at(fd, bytes, s->n_check, s->offset - s->n_check) == (ssize_t)s->n_check &&
                          !memcmp(bytes, s->check, s->n_check));
}

static int read_new(struct run_series *s, int fd, const char *path, uint64_t size, struct cairn_error *err)
{
    CLEANUP(mem_free) char *buffer = s->offset < size ? need(malloc(CHUNK)) : NULL;
    while (s->offset < size) {
        size_t used;
        ssize_t n = os_read_at(fd, buffer, CHUNK, s->offset);
        if (n < 0)
            return cairn_fail_errno(err, "read %s", path);
        if (take_lines(s, buffer, (size_t)n, &used, err))
            return -1;
        if (!used)
            return 0; /* the last line is not complete */
        s->n_check = used < RUN_SERIES_CHECK ? used : RUN_SERIES_CHECK;
        memcpy(s->check, buffer + used - s->n_check, s->n_check);
        s->offset += used;
    }
    return 0;
}

int run_series_read(struct run_series *s, const char *path, unsigned metrics, struct cairn_error *err)
{
    CLEANUP(fd_close) int fd = os_open(path, OS_READ | OS_NO_WAIT);
    struct os_info now;
    if (fd < 0) {
        forget(s);
        return errno == ENOENT || errno == ENOTDIR ? 0 : cairn_fail_errno(err, "open %s", path);
    }
    if (os_info_fd(fd, &now))
        return cairn_fail_errno(err, "read %s", path);
    if (now.kind != OS_KIND_FILE)
        return cairn_fail(err, CAIRN_EIO, "%s is not a file", path);
    if (metrics & ~s->metrics || !is_same(s, fd, &now))
        forget(s);
    s->metrics |= metrics;
    if (read_new(s, fd, path, now.size, err)) {
        forget(s);
        return -1;
    }
    s->info = now;
    return 0;
}

/* ---- life ---- */

struct run_series *run_series_new(void)
{
    return need(calloc(1, sizeof(struct run_series)));
}

void run_series_free(struct run_series *s)
{
    if (!s)
        return;
    forget(s);
    for (int i = 0; i < METRIC_COUNT; i++)
        pyramid_release(&s->metric[i]);
    free(s->step);
    free(s->event);
    free(s);
}

size_t run_series_bytes(const struct run_series *s)
{
    size_t bytes = sizeof(*s) + s->room * sizeof(*s->step) + s->events_room * sizeof(*s->event);
    for (int i = 0; i < METRIC_COUNT; i++)
        bytes += pyramid_bytes(&s->metric[i]);
    return bytes;
}
