/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/comm.h"

#include "base/clock.h"
#include "base/int.h"
#include "dist/mpi.h"
#include "os/memory.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TAG_DATA = 1, TAG_FAILED };
enum { PIECE = 1 << 18 };     /* numbers that are added while the next ones travel */
enum { SMALL = 1 << 12 };     /* numbers that are sent whole: fewer messages */
enum { LINE = 16 };           /* numbers of a cache line: ranges begin at them */
enum { END_WAIT_S = 120 };    /* for rank 0 to save and speak after a failure */
enum { TELL_WAIT_MS = 2000 }; /* for others to hear of it */

/* What a rank that failed sends to all others. */
struct failure {
    int rank;
    enum cairn_code code;
    char msg[400], hint[200];
};

struct comm {
    struct world world;
    struct mpi *mpi;
    char (*hosts)[WORLD_HOST];
    float *pieces[2];
    double limit_s, seconds;
    struct comm_late late;

    struct mpi_request failing; /* receives `failure` */
    struct failure failure;
    bool failed;
};

/* ---- waiting ---- */

/* 0: nobody has failed. */
static int hear_failure(struct comm *c, struct cairn_error *err)
{
    bool heard = false;
    if (!c->failed && mpi_test(c->mpi, &c->failing, &heard, err))
        return -1;
    if (!heard && !c->failed)
        return 0;
    const struct failure *f = &c->failure;
    c->failed = true;
    /* This rank has memory: nothing is to be repeated. */
    cairn_fail(err, f->code == CAIRN_ENOMEM ? CAIRN_EIO : f->code, "rank %d of %d on %s: %s", f->rank,
               c->world.size, comm_host(c, f->rank), f->msg);
    return f->hint[0] ? cairn_hint(err, "%s", f->hint) : -1;
}

/* Most waits are short.  A core may be shared with the rank that is waited for. */
static void pause_between(unsigned tries, double waited_s)
{
    enum { SPINS = 100 };
    const struct timespec moment = { .tv_nsec = 100000 };
    if (tries < SPINS)
        return;
    if (waited_s < 0.05)
        sched_yield();
    else
        nanosleep(&moment, NULL);
}

/* One rank is waited for, by the calls of this process. */
struct wait {
    int rank;
    double begin;
    bool said;
};

static int check_time(struct comm *c, struct wait *w, double waited_s, struct cairn_error *err)
{
    if (!w->said && c->late.say && waited_s > c->late.after_s) {
        w->said = true;
        c->late.say(c->late.to, w->rank, waited_s);
    }
    if (waited_s <= c->limit_s)
        return 0;
    cairn_fail(err, CAIRN_EIO, "rank %d of %d (%s) has not come for %.0f s", w->rank, c->world.size,
               comm_host(c, w->rank), waited_s);
    return cairn_hint(err, "dist.timeout is how long a step waits for another rank");
}

static int finish(struct comm *c, struct mpi_request *r, struct wait *w, struct cairn_error *err)
{
    bool done = false;
    for (unsigned tries = 0;; tries++) {
        if (mpi_test(c->mpi, r, &done, err))
            return -1;
        if (done)
            return 0;
        double waited = clock_s() - w->begin;
        if (hear_failure(c, err) || check_time(c, w, waited, err))
            return -1;
        pause_between(tries, waited);
    }
}

/* ---- messages ---- */

/* Sends to one rank while receiving from another; either may have nothing to do (0 bytes). */
struct exchange {
    int to, from;
    const void *send;
    void *receive;
    size_t n_send, n_receive;
    struct mpi_request sending, receiving;
};

static int begin(struct comm *c, struct exchange *x, struct cairn_error *err)
{
    if (x->n_receive && mpi_receive(c->mpi, x->from, TAG_DATA, x->receive, x->n_receive, &x->receiving, err))
        return -1;
    return x->n_send ? mpi_send(c->mpi, x->to, TAG_DATA, x->send, x->n_send, &x->sending, err) : 0;
}

static int end(struct comm *c, struct exchange *x, struct cairn_error *err)
{
    struct wait from = { .rank = x->from, .begin = clock_s() }, to = { .rank = x->to, .begin = from.begin };
    if (x->n_receive && finish(c, &x->receiving, &from, err)) {
        mpi_cancel(c->mpi, &x->receiving); /* its memory may be gone soon */
        return -1;
    }
    return x->n_send ? finish(c, &x->sending, &to, err) : 0;
}

/* Bytes of any length, in pieces that a message can hold. */
static int exchange(struct comm *c, struct exchange all, struct cairn_error *err)
{
    size_t sent = 0, received = 0;
    while (sent < all.n_send || received < all.n_receive) {
        struct exchange x = all;
        x.send = (const char *)all.send + sent;
        x.receive = (char *)all.receive + received;
        x.n_send = at_most(all.n_send - sent, MPI_MESSAGE_MOST);
        x.n_receive = at_most(all.n_receive - received, MPI_MESSAGE_MOST);
        if (begin(c, &x, err) || end(c, &x, err))
            return -1;
        sent += x.n_send;
        received += x.n_receive;
    }
    return 0;
}

static void add(float *x, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] += y[i];
}

/* Piece i of an exchange of numbers, of which what is received goes into a buffer. */
static struct exchange piece_of(const struct comm *c, const struct exchange *all, size_t i)
{
    struct exchange x = *all;
    size_t at = i * PIECE, size = sizeof(float);
    size_t n_send = all->n_send / size, n_receive = all->n_receive / size;
    x.send = (const float *)all->send + at;
    x.receive = c->pieces[i % 2];
    x.n_send = at < n_send ? at_most(n_send - at, PIECE) * size : 0;
    x.n_receive = at < n_receive ? at_most(n_receive - at, PIECE) * size : 0;
    return x;
}

/* Adds what is received to the numbers at x.receive. */
static int exchange_and_add(struct comm *c, const struct exchange *all, struct cairn_error *err)
{
    size_t most = at_least(all->n_send, all->n_receive) / sizeof(float), n = div_up(most, PIECE);
    struct exchange now, next = { 0 };
    if (!n)
        return 0;
    now = piece_of(c, all, 0);
    if (begin(c, &now, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n) {
            next = piece_of(c, all, i + 1);
            if (begin(c, &next, err))
                return -1;
        }
        if (end(c, &now, err))
            return -1;
        add((float *)all->receive + i * PIECE, now.receive, now.n_receive / sizeof(float));
        now = next;
    }
    return 0;
}

/* ---- sums ---- */

/* Part i of n numbers in `parts` parts. */
struct range {
    size_t at, n;
};

static struct range part_of(size_t n, int parts, int i)
{
    size_t lines = div_up(n, LINE);
    size_t from = lines * (size_t)i / (size_t)parts * LINE,
           to = lines * (size_t)(i + 1) / (size_t)parts * LINE;
    from = at_most(from, n);
    return (struct range){ from, at_most(to, n) - from };
}

static int sum_small(struct comm *c, float *x, size_t n, struct cairn_error *err)
{
    for (int distance = 1; distance < c->world.size; distance *= 2) {
        int peer = c->world.rank ^ distance;
        float *theirs = c->pieces[0];
        if (exchange(c,
                     (struct exchange){ peer, peer, x, theirs, n * sizeof(*x), n * sizeof(*x), { 0 }, { 0 } },
                     err))
            return -1;
        add(x, theirs, n);
    }
    return 0;
}

/* 2, 4, 8 … ranks: each level sums half of what the one before did, with the neighbour first; then the sums come back. */
static int sum_by_halves(struct comm *c, float *x, size_t n, struct cairn_error *err)
{
    enum { LEVELS = 32 };
    struct range mine[LEVELS] = { { 0, n } };
    const size_t size = sizeof(*x);
    int level = 0;
    for (int distance = 1; distance < c->world.size; distance *= 2, level++) {
        int peer = c->world.rank ^ distance;
        bool upper = c->world.rank & distance;
        struct range lower_half = part_of(mine[level].n, 2, 0), upper_half = part_of(mine[level].n, 2, 1);
        struct range keep = upper ? upper_half : lower_half, give = upper ? lower_half : upper_half;
        float *base = x + mine[level].at;
        struct exchange e = { .to = peer,
                              .from = peer,
                              .send = base + give.at,
                              .receive = base + keep.at,
                              .n_send = give.n * size,
                              .n_receive = keep.n * size };
        if (exchange_and_add(c, &e, err))
            return -1;
        mine[level + 1] = (struct range){ mine[level].at + keep.at, keep.n };
    }
    for (int distance = c->world.size / 2; distance; distance /= 2, level--) {
        int peer = c->world.rank ^ distance;
        struct range whole = mine[level - 1], have = mine[level];
        bool upper = c->world.rank & distance;
        size_t other_at = upper ? whole.at : have.at + have.n, other_n = whole.n - have.n;
        struct exchange e = { .to = peer,
                              .from = peer,
                              .send = x + have.at,
                              .receive = x + other_at,
                              .n_send = have.n * size,
                              .n_receive = other_n * size };
        if (exchange(c, e, err))
            return -1;
    }
    return 0;
}

/* Any number of ranks: parts go round, and each rank adds its own. */
static int sum_by_ring(struct comm *c, float *x, size_t n, struct cairn_error *err)
{
    int size = c->world.size, rank = c->world.rank;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int round = 0; round < 2 * (size - 1); round++) {
        bool adds = round < size - 1;
        struct range out = part_of(n, size, (rank + 2 * size - round) % size);
        struct range in = part_of(n, size, (rank + 2 * size - round - 1) % size);
        struct exchange e = { .to = to,
                              .from = from,
                              .send = x + out.at,
                              .receive = x + in.at,
                              .n_send = out.n * sizeof(*x),
                              .n_receive = in.n * sizeof(*x) };
        if (adds ? exchange_and_add(c, &e, err) : exchange(c, e, err))
            return -1;
    }
    return 0;
}

static bool is_power_of_two(int n)
{
    return !(n & (n - 1));
}

/* The time of a call is counted. */
static int counted(struct comm *c, double begin_s, int r)
{
    c->seconds += clock_s() - begin_s;
    return r;
}

int comm_sum(struct comm *c, float *x, size_t n, struct cairn_error *err)
{
    if (!c)
        return 0;
    double begin_s = clock_s();
    if (!is_power_of_two(c->world.size))
        return counted(c, begin_s, sum_by_ring(c, x, n, err));
    return counted(c, begin_s, n <= SMALL ? sum_small(c, x, n, err) : sum_by_halves(c, x, n, err));
}

/* ---- other calls ---- */

int comm_gather(struct comm *c, const void *mine, size_t n, void *all, struct cairn_error *err)
{
    if (!c) {
        memcpy(all, mine, n);
        return 0;
    }
    double begin_s = clock_s();
    int size = c->world.size, rank = c->world.rank;
    char *to = all;
    memcpy(to + (size_t)rank * n, mine, n);
    for (int round = 1; round < size; round++) {
        int peer_to = (rank + round) % size, peer_from = (rank + size - round) % size;
        struct exchange e = { .to = peer_to,
                              .from = peer_from,
                              .send = mine,
                              .receive = to + (size_t)peer_from * n,
                              .n_send = n,
                              .n_receive = n };
        if (exchange(c, e, err))
            return counted(c, begin_s, -1);
    }
    return counted(c, begin_s, 0);
}

int comm_broadcast(struct comm *c, void *bytes, size_t n, struct cairn_error *err)
{
    if (!c)
        return 0;
    double begin_s = clock_s();
    int size = c->world.size, rank = c->world.rank, reach = 1;
    while (reach < size)
        reach *= 2;
    for (int distance = reach / 2; distance; distance /= 2) {
        bool sends = rank % (2 * distance) == 0 && rank + distance < size;
        bool receives = rank % (2 * distance) == distance;
        struct exchange e = { .to = rank + distance,
                              .from = rank - distance,
                              .send = bytes,
                              .receive = bytes,
                              .n_send = sends ? n : 0,
                              .n_receive = receives ? n : 0 };
        if (exchange(c, e, err))
            return counted(c, begin_s, -1);
    }
    return counted(c, begin_s, 0);
}

int comm_merge(struct comm *c, double *x, size_t n, struct cairn_error *err)
{
    if (!c)
        return 0;
    size_t size = (size_t)c->world.size;
    CLEANUP(mem_free) double *all = calloc(size, n * sizeof(*x) + 1);
    if (!all)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu numbers of %zu ranks", n, size);
    if (comm_gather(c, x, n * sizeof(*x), all, err))
        return -1;
    for (size_t i = 0; i < n; i++) {
        x[i] = 0;
        for (size_t r = 0; r < size; r++)
            x[i] += all[r * n + i];
    }
    return 0;
}

/* ---- failing ---- */

/* The others may be in no state to listen. */
static void tell(struct comm *c, int to, int tag, const void *bytes, size_t n)
{
    struct cairn_error ignored;
    struct mpi_request r;
    bool done = false;
    if (mpi_send(c->mpi, to, tag, bytes, n, &r, &ignored))
        return;
    for (int ms = 0; !done && ms < TELL_WAIT_MS; ms++) {
        if (mpi_test(c->mpi, &r, &done, &ignored))
            return;
        if (!done)
            usleep(1000);
    }
}

void comm_fail(struct comm *c, const struct cairn_error *why)
{
    if (!c || c->failed)
        return;
    c->failure = (struct failure){ .rank = c->world.rank, .code = why->code };
    snprintf(c->failure.msg, sizeof(c->failure.msg), "%s", why->msg);
    snprintf(c->failure.hint, sizeof(c->failure.hint), "%s", why->hint);
    c->failed = true;
    for (int rank = 0; rank < c->world.size; rank++)
        if (rank != c->world.rank)
            tell(c, rank, TAG_FAILED, &c->failure, sizeof(c->failure));
}

bool comm_has_failed(const struct comm *c)
{
    return c && c->failed;
}

void comm_await_end(struct comm *c)
{
    double end = clock_s() + (c && c->limit_s > END_WAIT_S ? c->limit_s : END_WAIT_S);
    while (c && c->world.rank && clock_s() < end)
        sleep(1);
}

/* ---- opening ---- */

static void free_comm(struct comm *c)
{
    free(c->hosts);
    for (int i = 0; i < 2; i++)
        os_free_aligned(c->pieces[i]);
    free(c);
}

void comm_close(struct comm *c, int exit_code)
{
    if (!c)
        return;
    if (c->failed) /* messages are still under way, for which MPI's own end would wait for ever */
        mpi_abort(c->mpi, exit_code ? exit_code : 1);
    mpi_cancel(c->mpi, &c->failing);
    mpi_close(c->mpi);
    free_comm(c);
}

/* Which of the machine's ranks this is, where the launcher has not said. */
static void count_local(struct comm *c)
{
    int before = 0, all = 0;
    if (c->world.local_size)
        return;
    for (int r = 0; r < c->world.size; r++) {
        bool here = !strcmp(c->hosts[r], c->world.host);
        before += here && r < c->world.rank;
        all += here;
    }
    c->world.local_rank = before;
    c->world.local_size = all;
}

static int prepare(struct comm *c, struct cairn_error *err)
{
    c->hosts = calloc((size_t)c->world.size, sizeof(*c->hosts));
    for (int i = 0; i < 2; i++)
        c->pieces[i] = os_aligned(64, PIECE * sizeof(float));
    if (!c->hosts || !c->pieces[0] || !c->pieces[1])
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %d ranks", c->world.size);
    if (mpi_receive(c->mpi, MPI_FROM_ANY, TAG_FAILED, &c->failure, sizeof(c->failure), &c->failing, err) ||
        comm_gather(c, c->world.host, sizeof(c->world.host), c->hosts, err))
        return -1;
    count_local(c);
    return 0;
}

int comm_open(const struct world *w, struct comm **out, struct cairn_error *err)
{
    enum { LIMIT_S = 600 };
    *out = NULL;
    if (w->size == 1)
        return 0;
    struct comm *c = calloc(1, sizeof(*c));
    if (!c)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    c->world = *w;
    c->limit_s = LIMIT_S;
    if (mpi_open(w, &c->mpi, err)) {
        free_comm(c);
        return -1;
    }
    *out = c; /* the others wait for it: a failure is told with comm_fail */
    return prepare(c, err);
}

/* ---- questions ---- */

int comm_rank(const struct comm *c)
{
    return c ? c->world.rank : 0;
}

int comm_size(const struct comm *c)
{
    return c ? c->world.size : 1;
}

int comm_local_rank(const struct comm *c)
{
    return c ? c->world.local_rank : 0;
}

int comm_local_size(const struct comm *c)
{
    return c ? c->world.local_size : 1;
}

const char *comm_host(const struct comm *c, int rank)
{
    return c && c->hosts[rank][0] ? c->hosts[rank] : "this machine";
}

const char *comm_engine(const struct comm *c)
{
    return c ? "mpi" : "self";
}

const char *comm_version(const struct comm *c)
{
    return c ? mpi_version(c->mpi) : "";
}

void comm_set_limit(struct comm *c, double seconds)
{
    if (c)
        c->limit_s = seconds;
}

void comm_set_late(struct comm *c, struct comm_late late)
{
    if (c)
        c->late = late;
}

double comm_seconds(const struct comm *c)
{
    return c ? c->seconds : 0;
}
