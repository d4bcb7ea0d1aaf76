/* SPDX-License-Identifier: Apache-2.0 */
#include "train/series.h"

#include "base/file.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int add_point(struct series *s, const struct measure *m, struct cairn_error *err)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 256;
        struct measure *bigger = realloc(s->point, room * sizeof(*bigger));
        if (!bigger)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu steps", room);
        s->point = bigger;
        s->room = room;
    }
    s->point[s->n++] = *m;
    return 0;
}

static void merge(struct measure *into, const struct measure *m)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (measure_has(m, i))
            measure_set(into, i, m->value[i]);
}

static int take_line(struct series *s, const char *line, size_t len, struct cairn_error *err)
{
    struct cairn_error ignored = { 0 };
    struct measure m;
    if (measure_parse(line, len, &m, &ignored)) {
        s->bad_lines++;
        return 0;
    }
    while (s->n && s->point[s->n - 1].step > m.step)
        s->n--;
    if (!s->n || s->point[s->n - 1].step < m.step)
        return add_point(s, &m, err);
    merge(&s->point[s->n - 1], &m);
    return 0;
}

static int take_lines(struct series *s, const char *text, size_t len, struct cairn_error *err)
{
    for (const char *end = text + len; text < end;) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        size_t n = feed ? (size_t)(feed - text) + 1 : (size_t)(end - text);
        if (!feed)
            s->bad_lines++; /* torn */
        else if (n > 1 && take_line(s, text, n, err))
            return -1;
        text += n;
    }
    return 0;
}

/* From a place on; the line that it lies in the middle of is left out. */
static int read_from(const char *path, uint64_t bytes, struct series *out, struct cairn_error *err)
{
    CLEANUP(series_release) struct series s = { 0 };
    CLEANUP(fd_close) int fd = -1;
    uint64_t size;
    if (file_open(path, &fd, &size, err))
        return -1;
    uint64_t at = bytes < size ? size - bytes : 0;
    CLEANUP(mem_free) char *text = malloc(size - at + 1);
    if (!text)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory for %llu bytes", path,
                          (unsigned long long)(size - at));
    if (file_read_at(fd, path, text, size - at, at, err))
        return -1;
    const char *feed = at ? memchr(text, '\n', size - at) : NULL, *begin = feed ? feed + 1 : text;
    if (take_lines(&s, begin, size - at - (size_t)(begin - text), err))
        return -1;
    *out = s;
    s = (struct series){ 0 };
    return 0;
}

int series_read(const char *path, struct series *out, struct cairn_error *err)
{
    return read_from(path, UINT64_MAX, out, err);
}

int series_read_tail(const char *path, uint64_t bytes, struct series *out, struct cairn_error *err)
{
    return read_from(path, bytes, out, err);
}

void series_release(struct series *s)
{
    free(s->point);
    *s = (struct series){ 0 };
}

const struct measure *series_last(const struct series *s, enum metric which)
{
    for (size_t i = s->n; i-- > 0;)
        if (measure_has(&s->point[i], which))
            return &s->point[i];
    return NULL;
}

static bool is_number(const struct measure *m, enum metric which)
{
    return measure_has(m, which) && isfinite(m->value[which]);
}

static const struct measure *extreme(const struct series *s, enum metric which, double sign)
{
    const struct measure *best = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (is_number(&s->point[i], which) &&
            (!best || sign * s->point[i].value[which] < sign * best->value[which]))
            best = &s->point[i];
    return best;
}

const struct measure *series_least(const struct series *s, enum metric which)
{
    return extreme(s, which, 1);
}

const struct measure *series_most(const struct series *s, enum metric which)
{
    return extreme(s, which, -1);
}

double series_mean(const struct series *s, enum metric which)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (is_number(&s->point[i], which)) {
            sum += s->point[i].value[which];
            n++;
        }
    return n ? sum / (double)n : NAN;
}
