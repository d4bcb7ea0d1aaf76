/* SPDX-License-Identifier: Apache-2.0 */
#include "record/run_log.h"

#include "os/fault.h"
#include "base/parse.h"
#include "record/tfevents.h"
#include "os/file.h"
#include "os/list.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Most bytes that wait in memory while the disk is full; steps beyond that are lost. */
enum { WAITING_MOST = 64 << 20 };
static const double flush_every_s = 1;

struct outlet {
    int fd;
    char *path;
    struct str waiting;
};

struct run_log {
    struct outlet log, board;
    double opened, flushed; /* monotonic */
    double elapsed_before;  /* seconds of training before this start */
    struct cairn_error trouble;
    bool said;
    uint64_t lost; /* steps and texts that did not fit into memory either */
};

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Where to truncate the log, and the last line that stays. */
struct cut {
    uint64_t at;
    struct step_record last;
};

static bool is_before(const char *line, size_t len, uint64_t first, struct step_record *m)
{
    struct cairn_error ignored = { 0 };
    if (step_record_parse(line, len, m, &ignored))
        return true; /* readers skip damaged lines in the middle */
    return m->step < first;
}

static struct cut find_cut(FILE *f, uint64_t first)
{
    CLEANUP(mem_free) char *line = NULL;
    size_t size = 0;
    ssize_t n;
    struct cut cut = { 0 };
    struct step_record m = { 0 };
    while ((n = getline(&line, &size, f)) > 0 && line[n - 1] == '\n' &&
           is_before(line, (size_t)n, first, &m)) {
        cut.at += (uint64_t)n;
        cut.last = m;
    }
    return cut;
}

static void file_close(FILE **f)
{
    if (*f)
        fclose(*f);
}

/* Truncating needs no disk space and cannot leave half a line. */
static int cut_back(struct run_log *m, uint64_t first, struct cairn_error *err)
{
    CLEANUP(file_close) FILE *f = os_stream(m->log.path, OS_READ);
    struct stat st;
    if (!f || fstat(fileno(f), &st))
        return cairn_fail_errno(err, "open %s", m->log.path);
    struct cut cut = find_cut(f, first);
    if (ferror(f))
        return cairn_fail_errno(err, "read %s", m->log.path);
    m->elapsed_before = cut.last.value[METRIC_ELAPSED_S];
    if (cut.at < (uint64_t)st.st_size && (fault_hit() || ftruncate(m->log.fd, (off_t)cut.at)))
        return cairn_fail_errno(err, "truncate %s to step %llu", m->log.path, (unsigned long long)first);
    return 0;
}

static char *log_path(const char *dir)
{
    char *path;
    if (asprintf(&path, "%s/log.jsonl", dir) < 0)
        abort();
    return path;
}

/* Some network file systems have no locks; then go on without one. */
static int lock(int fd, const char *dir, struct cairn_error *err)
{
    if (!os_lock(fd, false) || errno != EWOULDBLOCK)
        return 0;
    return cairn_fail(err, CAIRN_EUSAGE, "%s: another process is training in this folder", dir);
}

int run_log_check(const char *dir, struct cairn_error *err)
{
    CLEANUP(mem_free) char *path = log_path(dir);
    CLEANUP(fd_close) int fd = os_open(path, OS_READ);
    return fd < 0 ? 0 : lock(fd, dir, err);
}

/* A run from somebody else may contain links: never truncate or write what they point to. */
static int open_log(struct run_log *m, const char *dir, uint64_t first, struct cairn_error *err)
{
    m->log.path = log_path(dir);
    m->log.fd = os_open(m->log.path, OS_READ | OS_APPEND | OS_CREATE | OS_NO_LINK);
    if (m->log.fd < 0 && errno == ELOOP)
        return cairn_fail(err, CAIRN_EIO, "%s is a symbolic link, which cairn does not follow", m->log.path);
    if (m->log.fd < 0)
        return cairn_fail_errno(err, "open %s", m->log.path);
    return lock(m->log.fd, dir, err) ? -1 : cut_back(m, first, err);
}

static const char board_prefix[] = "events.out.tfevents.";

/* TensorBoard reads the files of a folder in the order of their names, so a new one must come last. */
static int board_time(const char *dir, long long *latest, struct cairn_error *err)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    if (!l)
        return cairn_fail_errno(err, "read %s", dir);
    *latest = time(NULL);
    for (const char *name; (name = os_list_next(l));)
        if (str_starts(name, board_prefix)) {
            long long t = strtoll(name + strlen(board_prefix), NULL, 10);
            *latest = t >= *latest ? t + 1 : *latest;
        }
    return 0;
}

static int open_board(struct run_log *m, const char *dir, uint64_t first, struct cairn_error *err)
{
    char host[65] = "localhost";
    long long when;
    if (board_time(dir, &when, err))
        return -1;
    gethostname(host, sizeof(host) - 1);
    if (asprintf(&m->board.path, "%s/%s%010lld.%s.%d", dir, board_prefix, when, host, (int)getpid()) < 0)
        abort();
    m->board.fd = os_open(m->board.path, OS_APPEND | OS_NEW);
    if (m->board.fd < 0)
        return cairn_fail_errno(err, "create %s", m->board.path);
    tfevents_add_version(&m->board.waiting, now(CLOCK_REALTIME));
    tfevents_add_start(&m->board.waiting, now(CLOCK_REALTIME), first);
    return 0;
}

static void outlet_close(struct outlet *o)
{
    fd_close(&o->fd);
    free(o->path);
    str_release(&o->waiting);
}

static void run_log_free(struct run_log *m)
{
    outlet_close(&m->log);
    outlet_close(&m->board);
    free(m);
}

int run_log_open(const char *dir, uint64_t first, struct run_log **out, struct cairn_error *err)
{
    struct run_log *m = calloc(1, sizeof(*m));
    if (!m)
        abort();
    m->log.fd = m->board.fd = -1;
    m->opened = m->flushed = now(CLOCK_MONOTONIC);
    if (open_log(m, dir, first, err) || open_board(m, dir, first, err)) {
        run_log_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

/* Removes from the buffer what was written, even if the rest failed: a line is never written twice. */
static int drain(struct outlet *o, struct cairn_error *err)
{
    size_t done = 0;
    int r = 0;
    while (!r && done < o->waiting.len) {
        ssize_t w = fault_hit() ? -1 : write(o->fd, o->waiting.s + done, o->waiting.len - done);
        if (w > 0)
            done += (size_t)w;
        else if (errno != EINTR)
            r = cairn_fail_errno(err, "write %s", o->path);
    }
    if (done)
        memmove(o->waiting.s, o->waiting.s + done, o->waiting.len - done);
    o->waiting.len -= done;
    return r;
}

void run_log_flush(struct run_log *m)
{
    if (!m)
        return;
    struct cairn_error err = { 0 };
    bool bad = drain(&m->log, &err);
    bad |= drain(&m->board, &err) != 0;
    if (!bad)
        m->said = false;
    if (!bad || !m->trouble.code)
        m->trouble = err;
    m->flushed = now(CLOCK_MONOTONIC);
}

static bool has_room(struct run_log *m)
{
    if (m->log.waiting.len < WAITING_MOST && m->board.waiting.len < WAITING_MOST)
        return true;
    m->lost++;
    return false;
}

static void add_scalars(struct run_log *m, const struct step_record *step)
{
    struct tfevents_scalar values[METRIC_COUNT];
    size_t n = 0;
    for (int i = 0; i < METRIC_COUNT; i++)
        if (step_record_has(step, i) && i != METRIC_ELAPSED_S)
            values[n++] = (struct tfevents_scalar){ metric_key(i), step->value[i] };
    if (n)
        tfevents_add_scalars(&m->board.waiting, now(CLOCK_REALTIME), step->step, values, n);
}

void run_log_add(struct run_log *m, const struct step_record *step)
{
    if (!m)
        return;
    struct step_record line = *step;
    double at = now(CLOCK_MONOTONIC);
    step_record_set(&line, METRIC_ELAPSED_S, m->elapsed_before + at - m->opened);
    if (has_room(m)) {
        step_record_add_line(&line, &m->log.waiting);
        add_scalars(m, &line);
    }
    if (step->event || at - m->flushed >= flush_every_s)
        run_log_flush(m);
}

void run_log_add_text(struct run_log *m, uint64_t step, const char *tag, const char *text)
{
    if (!m)
        return;
    if (has_room(m))
        tfevents_add_text(&m->board.waiting, now(CLOCK_REALTIME), step, tag, text);
    run_log_flush(m);
}

const struct cairn_error *run_log_trouble(struct run_log *m)
{
    if (!m || !m->trouble.code || m->said)
        return NULL;
    m->said = true;
    return &m->trouble;
}

int run_log_close(struct run_log *m, struct cairn_error *err)
{
    if (!m)
        return 0;
    run_log_flush(m);
    int r = 0;
    if (m->trouble.code) {
        *err = m->trouble;
        r = -1;
    } else if (m->lost) {
        r = cairn_fail(err, CAIRN_EIO, "%s is missing %llu steps: the disk was full for too long",
                       m->log.path, (unsigned long long)m->lost);
    }
    run_log_free(m);
    return r;
}
