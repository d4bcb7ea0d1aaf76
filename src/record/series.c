/* SPDX-License-Identifier: Apache-2.0 */
#include "record/series.h"

#include "base/file.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int add_point(struct series *s, const struct step_record *m, struct cairn_error *err)
{
    if (s->n == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 256;
        struct step_record *bigger = realloc(s->point, capacity * sizeof(*bigger));
        if (!bigger)
            return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu steps", capacity);
        s->point = bigger;
        s->capacity = capacity;
    }
    s->point[s->n++] = *m;
    return 0;
}

static void merge(struct step_record *into, const struct step_record *m)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (step_record_has(m, i))
            step_record_set(into, i, m->value[i]);
    into->event = m->event ? m->event : into->event;
}

static int take_line(struct series *s, const char *line, size_t len, struct cairn_error *err)
{
    struct cairn_error ignored = { 0 };
    struct step_record m;
    if (step_record_parse(line, len, &m, &ignored)) {
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

static int read_lines(struct series *s, FILE *f, struct cairn_error *err)
{
    CLEANUP(mem_free) char *line = NULL;
    size_t allocated = 0;
    ssize_t n;
    while ((n = getline(&line, &allocated, f)) > 0) {
        if (line[n - 1] != '\n')
            s->bad_lines++; /* torn */
        else if (n > 1 && take_line(s, line, (size_t)n, err))
            return -1;
    }
    return 0;
}

/* The rest of the line in the middle of which reading starts. */
static void skip_line(FILE *f)
{
    for (int c = getc(f); c != EOF && c != '\n';)
        c = getc(f);
}

static void file_close(FILE **f)
{
    if (*f)
        fclose(*f);
}

static int read_from(const char *path, uint64_t bytes, struct series *out, struct cairn_error *err)
{
    CLEANUP(series_release) struct series s = { 0 };
    uint64_t size;
    int fd;
    if (file_open(path, &fd, &size, err))
        return -1;
    CLEANUP(file_close) FILE *f = fdopen(fd, "r");
    if (!f) {
        close(fd);
        return cairn_fail_errno(err, "open %s", path);
    }
    if (bytes < size && !fseeko(f, (off_t)(size - bytes), SEEK_SET))
        skip_line(f);
    if (read_lines(&s, f, err))
        return -1;
    if (ferror(f))
        return cairn_fail_errno(err, "read %s", path);
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

const struct step_record *series_last(const struct series *s, enum metric which)
{
    for (size_t i = s->n; i-- > 0;)
        if (step_record_has(&s->point[i], which))
            return &s->point[i];
    return NULL;
}

static bool is_number(const struct step_record *m, enum metric which)
{
    return step_record_has(m, which) && isfinite(m->value[which]);
}

static const struct step_record *extreme(const struct series *s, enum metric which, double sign)
{
    const struct step_record *best = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (is_number(&s->point[i], which) &&
            (!best || sign * s->point[i].value[which] < sign * best->value[which]))
            best = &s->point[i];
    return best;
}

const struct step_record *series_least(const struct series *s, enum metric which)
{
    return extreme(s, which, 1);
}

const struct step_record *series_most(const struct series *s, enum metric which)
{
    return extreme(s, which, -1);
}

size_t series_next_event(const struct series *s, size_t from)
{
    while (from < s->n && !s->point[from].event)
        from++;
    return from;
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
