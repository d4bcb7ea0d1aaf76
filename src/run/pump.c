/* SPDX-License-Identifier: Apache-2.0 */
#include "run/pump.h"

#include "os/fault.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_BYTES = 256 << 10, PIPE_BYTES = 1 << 20, MOST_LATE_BYTES = 8 << 20 };
/* A flood: this many reads smaller than that within this time. */
enum { FLOOD_PIECES = 32, FLOOD_PIECE_BYTES = 4096, FLOOD_MS = 2, PAUSE_MS = 1 };

struct pump {
    int from, to, done, hurry;
    struct recorder *recorder;
    bool is_pipe, in_flood;
    int small; /* pieces, since since_ns */
    int64_t since_ns;
    pthread_t thread;
    atomic_uint_fast64_t bytes;
    atomic_int error;
    atomic_bool left;    /* the reader has */
    atomic_bool writing; /* blocks as long as the reader does */
    char piece[PIECE_BYTES];
};

static bool write_whole(int fd, const char *bytes, size_t n)
{
    while (n) {
        ssize_t done = write(fd, bytes, n);
        if (done < 0 && errno == EAGAIN)
            poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, -1); /* another process made it non-blocking */
        else if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            bytes += done;
            n -= (size_t)done;
        }
    }
    return true;
}

static bool pass_on(struct pump *p, size_t n)
{
    atomic_store(&p->writing, true);
    bool done = write_whole(p->to, p->piece, n);
    atomic_store(&p->writing, false);
    return done;
}

/* Waits for bytes; false if hurried and there are none. */
static bool wait_for_bytes(const struct pump *p, bool *hurried)
{
    struct pollfd fds[] = { { p->from, POLLIN, 0 }, { *hurried ? -1 : p->hurry, POLLIN, 0 } };
    while (poll(fds, 2, *hurried ? 0 : -1) < 0 && errno == EINTR)
        ;
    *hurried |= fds[1].revents != 0;
    return fds[0].revents || !*hurried;
}

/* Reads without polling first, since there is mostly something to read; -1 or 0: the end. */
static ssize_t next_piece(struct pump *p, bool *hurried)
{
    for (;;) {
        ssize_t n = read(p->from, p->piece, sizeof(p->piece));
        if (n >= 0 || (errno != EAGAIN && errno != EINTR)) /* EIO: no process has the terminal open */
            return n;
        if (errno == EAGAIN && !wait_for_bytes(p, hurried))
            return -1;
    }
}

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

/* Lines arrive faster than they can be copied. */
static bool is_flood(struct pump *p, size_t n)
{
    if (p->in_flood || n >= FLOOD_PIECE_BYTES)
        return p->in_flood && n >= FLOOD_PIECE_BYTES;
    if (++p->small < FLOOD_PIECES)
        return false;
    int64_t now = now_ns(), before = p->since_ns;
    p->small = 0;
    p->since_ns = now;
    return now - before < FLOOD_MS * 1000000;
}

/* Each wake-up costs the writer more than the bytes do, so in a flood let them gather.  The buffer of a
 * terminal is too small for that. */
static void let_gather(struct pump *p, size_t n)
{
    p->in_flood = p->is_pipe && is_flood(p, n);
    if (p->in_flood)
        poll(&(struct pollfd){ p->hurry, POLLIN, 0 }, 1, PAUSE_MS);
}

/* cairn's next message must start on a new line.  A raw terminal needs \r for that. */
static void end_line(const struct pump *p, char last)
{
    if (last != '\n' && !p->error && isatty(p->to))
        write_whole(p->to, "\r\n", 2);
}

static void *carry(void *context)
{
    struct pump *p = context;
    bool hurried = false;
    size_t late = 0;
    char last = '\n';
    for (ssize_t n; late < MOST_LATE_BYTES && (n = next_piece(p, &hurried)) > 0;) {
        late += hurried ? (size_t)n : 0;
        atomic_fetch_add(&p->bytes, (uint64_t)n);
        recorder_put(p->recorder, p, p->piece, (size_t)n);
        if (!p->error && !pass_on(p, (size_t)n)) {
            atomic_store(&p->left, errno == EPIPE);
            if (p->left)
                break;
            atomic_store(&p->error, errno);
        }
        last = p->piece[n - 1];
        if (!hurried)
            let_gather(p, (size_t)n);
    }
    end_line(p, last);
    close(p->from);
    p->from = -1;
    eventfd_write(p->done, 1);
    return NULL;
}

int pump_start(struct pump **out, int from, int to, struct recorder *r, int done, struct cairn_error *err)
{
    struct pump *p = calloc(1, sizeof(*p));
    if (!p)
        return cairn_fail(err, CAIRN_ENOMEM, "out of memory for a buffer for the trainer's output");
    *p = (struct pump){ .from = from, .to = to, .done = done, .recorder = r };
    /* Fewer turns; what is no pipe refuses, which is fine. */
    p->is_pipe = fcntl(from, F_SETPIPE_SZ, PIPE_BYTES) > 0;
    fcntl(from, F_SETFL, O_NONBLOCK);
    if (fcntl(to, F_GETPIPE_SZ) > 0)
        fcntl(to, F_SETPIPE_SZ, PIPE_BYTES);
    p->hurry = fault_hit() ? -1 : eventfd(0, EFD_CLOEXEC);
    /* Not os_thread_start: after `stty tostop` the terminal stops those who write from the background, by
     * SIGTTOU. */
    int e = p->hurry < 0 || fault_hit() ? errno : pthread_create(&p->thread, NULL, carry, p);
    if (e) {
        fd_close(&p->hurry);
        free(p);
        errno = e;
        return cairn_fail_errno(err, "start a thread");
    }
    *out = p;
    return 0;
}

uint64_t pump_bytes(const struct pump *p)
{
    return p ? atomic_load(&p->bytes) : 0;
}

int pump_error(const struct pump *p)
{
    return p ? atomic_load(&p->error) : 0;
}

bool pump_reader_left(const struct pump *p)
{
    return p && atomic_load(&p->left);
}

bool pump_is_held_up(const struct pump *p)
{
    return p && atomic_load(&p->writing);
}

void pump_hurry(struct pump *p)
{
    if (p)
        eventfd_write(p->hurry, 1);
}

void pump_join(struct pump *p)
{
    if (!p)
        return;
    pthread_join(p->thread, NULL);
    close(p->hurry);
    free(p);
}
