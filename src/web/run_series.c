/* SPDX-License-Identifier: Apache-2.0 */
#include "web/run_series.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "job/progress.h"
#include "os/file.h"
#include "run/log_parts.h"
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
    job_progress_lines_free(s->lines);
    s->lines = NULL;
    s->bar_step = s->bar_steps = 0;
    s->before = 0;
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

static int add_record(struct run_series *s, const struct step_record *m, struct cairn_error *err)
{
    size_t at;
    if (point_at(s, m->step, &at, err))
        return -1;
    for (unsigned left = m->has & s->metrics; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (pyramid_set(&s->metric[i], at, m->value[i], err))
            return -1;
    }
    return 0;
}

/* Readers skip lines that are none of ours. */
static int take_line(struct run_series *s, const char *line, size_t n, struct cairn_error *err)
{
    struct cairn_error ignored;
    struct step_record m;
    if (n < 2 || step_record_parse_some(line, n, s->metrics, &m, &ignored))
        return 0;
    if (add_record(s, &m, err))
        return -1;
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

/* ---- the output of another trainer ---- */

/* A bar that starts over after it was full counts the next epoch; one that was not belongs to a trainer that started
 * over. */
static int take_progress(struct run_series *s, const struct job_progress *p, struct cairn_error *err)
{
    if (p->step < s->bar_step && s->bar_step >= s->bar_steps && p->steps == s->bar_steps)
        s->before += (uint64_t)s->bar_steps;
    s->bar_step = p->step;
    s->bar_steps = p->steps;
    if (!p->has_loss)
        return 0;
    struct step_record m = { .step = s->before + (uint64_t)p->step };
    step_record_set(&m, METRIC_LOSS, p->loss);
    if (p->s_per_it > 0)
        step_record_set(&m, METRIC_S_PER_IT, p->s_per_it);
    return add_record(s, &m, err);
}

/* Takes the whole lines of a text that ends with a NUL; a bar ends its line with a carriage return. */
static int take_output(struct run_series *s, char *text, size_t n, size_t *used, struct cairn_error *err)
{
    *used = 0;
    for (char *line = text, *end; (size_t)(line - text) < n; line = end + 1) {
        struct job_progress p;
        end = line;
        while (end < text + n && *end != '\r' && *end != '\n')
            end++;
        if (end == text + n)
            break;
        *end = '\0';
        if (job_progress_line(s->lines, line, &p) && take_progress(s, &p, err))
            return -1;
        *used = (size_t)(end + 1 - text);
    }
    if (!*used && n == CHUNK)
        *used = n; /* a line that is too long to say anything */
    return 0;
}

int run_series_read_output(struct run_series *s, const char *path, struct cairn_error *err)
{
    CLEANUP(log_parts_close) struct log_parts p = LOG_PARTS_NONE;
    if (log_parts_open(&p, path))
        return cairn_fail_errno(err, "open %s", path);
    if (p.total < s->offset)
        forget(s);
    s->metrics = RUN_SERIES_ALL;
    s->lines = s->lines ? s->lines : job_progress_lines_new();
    CLEANUP(mem_free) char *text = s->offset < p.total ? need(malloc(CHUNK + 1)) : NULL;
    for (size_t used = 1; used && (s->offset = log_parts_at(&p, s->offset)) < p.total; s->offset += used) {
        ssize_t n = log_parts_read(&p, s->offset, text, (size_t)log_parts_length(&p, s->offset, CHUNK));
        if (n < 0) {
            cairn_fail_errno(err, "read %s", path);
            forget(s);
            return -1;
        }
        text[n] = '\0';
        if (take_output(s, text, (size_t)n, &used, err))
            return -1;
    }
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
