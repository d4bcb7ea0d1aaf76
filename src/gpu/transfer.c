/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/transfer.h"

#include "base/arena.h"
#include "base/hash.h"
#include "base/int.h"
#include "base/thread.h"
#include "gpu/transfer_inside.h"
#include "os/thread.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4, SLOT_BYTES = 16 << 20, TASK_BYTES = 1 << 20, ALIGNED = 256, MOST_THREADS = 64 };

/* Parts are cut into tasks, which a thread does at once; tasks that fit into a slot are a piece.  Going up,
 * the tasks of a piece fill its slot, which then is copied; going down it is copied first. */
struct task {
    size_t part, piece;
    uint64_t at;
    size_t n;
    size_t offset; /* in the slot */
};
struct piece {
    size_t first, n; /* tasks */
    size_t left;     /* of them, not done yet */
    uint64_t bytes;
};

struct job {
    struct transfer *t;
    const struct transfer_part *parts;
    struct transfer_options o;
    bool down, direct;
    struct arena arena;
    struct task *tasks;
    size_t n_tasks;
    struct piece *pieces;
    size_t n_pieces;
    uint64_t total, done;

    /* Copies begin and end in the order of pieces; these two are changed by the caller's thread alone. */
    size_t issued, landed;

    pthread_mutex_t lock; /* for what follows, pieces[].left and `landed` */
    pthread_cond_t work, news;
    size_t next;
    bool over;
    size_t failed_task;
    struct cairn_error err; /* of the lowest task that failed */
};

/* ---- cutting ---- */

static size_t whole_units(size_t n, size_t unit)
{
    return n / unit * unit;
}

static bool is_neighbour(const struct job *j, const struct task *last, const struct transfer_part *part,
                         uint64_t at)
{
    return (char *)j->parts[last->part].device + last->at + last->n == (char *)part->device + at;
}

/* Where the next task begins in the slot of the last piece. */
static size_t offset_of(const struct job *j, const struct transfer_part *part, uint64_t at)
{
    const struct piece *p = &j->pieces[j->n_pieces - 1];
    if (!p->n)
        return 0;
    const struct task *last = &j->tasks[j->n_tasks - 1];
    size_t end = last->offset + last->n;
    return is_neighbour(j, last, part, at) ? end : align_up(end, ALIGNED);
}

static void begin_piece(struct job *j)
{
    struct piece *p = ARENA_PUSH(&j->arena, j->pieces, j->n_pieces);
    *p = (struct piece){ .first = j->n_tasks };
}

/* The bytes of the next task, at most `most`; 0: not even one unit fits. */
static size_t task_bytes(const struct transfer_part *part, uint64_t at, size_t most)
{
    size_t unit = part->unit ? part->unit : 1, n = unit > TASK_BYTES ? unit : whole_units(TASK_BYTES, unit);
    if (n > most)
        n = whole_units(most, unit);
    return part->bytes - at < n || (part->bytes - at < unit && part->bytes - at <= most)
               ? (size_t)(part->bytes - at)
               : n;
}

static void cut_part(struct job *j, size_t index, size_t slot)
{
    const struct transfer_part *part = &j->parts[index];
    for (uint64_t at = 0; at < part->bytes;) {
        size_t offset = offset_of(j, part, at);
        size_t n = offset < slot ? task_bytes(part, at, slot - offset) : 0;
        if (!n || (j->direct && offset >= SLOT_BYTES)) {
            begin_piece(j);
            continue;
        }
        struct piece *p = &j->pieces[j->n_pieces - 1];
        *ARENA_PUSH(&j->arena, j->tasks, j->n_tasks) =
            (struct task){ .part = index, .piece = j->n_pieces - 1, .at = at, .n = n, .offset = offset };
        p->n++;
        p->left++;
        p->bytes += n;
        at += n;
    }
}

static void cut(struct job *j, size_t n)
{
    begin_piece(j);
    for (size_t i = 0; i < n; i++)
        cut_part(j, i, j->direct ? SIZE_MAX : j->t->slot_bytes);
}

/* ---- worker threads ---- */

static bool is_up(const struct job *j)
{
    return !j->down;
}

static bool is_host(const struct transfer *t)
{
    return t->g->info.api == GPU_API_HOST;
}

static size_t slots_of(const struct job *j)
{
    return j->direct ? j->n_pieces : j->t->n_slots;
}

static char *place_of(const struct job *j, const struct task *task)
{
    if (j->direct)
        return (char *)j->parts[task->part].device + task->at;
    return j->t->slots[task->piece % j->t->n_slots].bytes + task->offset;
}

/* Whether threads may work in a piece: its slot is free, or its bytes are there.  With the lock. */
static bool is_open(const struct job *j, size_t piece)
{
    return piece < j->landed + (is_up(j) || j->direct ? slots_of(j) : 0);
}

/* With the lock. */
static void fail_task(struct job *j, size_t task, const struct cairn_error *why)
{
    if (!j->over || task < j->failed_task) {
        j->failed_task = task;
        j->err = *why;
    }
    j->over = true;
    pthread_cond_broadcast(&j->work);
    pthread_cond_signal(&j->news);
}

static int do_task(struct job *j, const struct task *task, struct cairn_error *err)
{
    const struct transfer_part *part = &j->parts[task->part];
    if (j->o.stop && *j->o.stop)
        return cairn_fail(err, CAIRN_EIO, "interrupted");
    if (!j->direct || part->on_host || is_host(j->t))
        return part->move(part->context, task->at, task->n, place_of(j, task), err);
    /* Reading GPU memory may be slow for the CPU, even if it is shared: only write it, once. */
    CLEANUP(mem_free) char *made = malloc(task->n);
    if (!made)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu bytes", task->n);
    if (part->move(part->context, task->at, task->n, made, err))
        return -1;
    memcpy(place_of(j, task), made, task->n);
    return 0;
}

/* Does the next task; false: there is none, or none that can be done without waiting. */
static bool do_next(struct job *j, bool may_wait)
{
    pthread_mutex_lock(&j->lock);
    while (may_wait && !j->over && j->next < j->n_tasks && !is_open(j, j->tasks[j->next].piece))
        pthread_cond_wait(&j->work, &j->lock);
    bool has = !j->over && j->next < j->n_tasks && is_open(j, j->tasks[j->next].piece);
    size_t i = has ? j->next++ : 0;
    pthread_mutex_unlock(&j->lock);
    if (!has)
        return false;
    struct cairn_error err = { 0 };
    int r = do_task(j, &j->tasks[i], &err);
    pthread_mutex_lock(&j->lock);
    if (r)
        fail_task(j, i, &err);
    else if (!--j->pieces[j->tasks[i].piece].left)
        pthread_cond_signal(&j->news);
    pthread_mutex_unlock(&j->lock);
    return true;
}

static void *do_all(void *job)
{
    while (do_next(job, true))
        ;
    return NULL;
}

/* Signals are for the caller's thread. */
static int start_threads(struct job *j, pthread_t threads[MOST_THREADS])
{
    size_t want = (size_t)(j->o.threads > 0 ? j->o.threads : parallel_threads());
    want = want < j->n_tasks ? want : j->n_tasks;
    want = want < MOST_THREADS ? want : MOST_THREADS;
    int n = 0;
    if (want < 2 && j->n_tasks < 2)
        return 0;
    while (n < (int)want && !os_thread_start(&threads[n], do_all, j))
        n++;
    return n;
}

/* ---- the caller's thread: all calls to the device ---- */

/* The next range of a piece that is contiguous on the device; *task is moved past it. */
static struct transfer_run next_run(const struct job *j, size_t *task)
{
    const struct task *first = &j->tasks[*task];
    const struct piece *p = &j->pieces[first->piece];
    struct transfer_run run = { (char *)j->parts[first->part].device + first->at, place_of(j, first), 0 };
    size_t i = *task;
    do
        run.n += j->tasks[i++].n;
    while (i < p->first + p->n &&
           is_neighbour(j, &j->tasks[i - 1], &j->parts[j->tasks[i].part], j->tasks[i].at));
    *task = i;
    return run;
}

static int issue(struct job *j, size_t piece, struct cairn_error *err)
{
    const struct piece *p = &j->pieces[piece];
    struct gpu_stream *s = j->t->slots[piece % j->t->n_slots].stream;
    for (size_t i = p->first; i < p->first + p->n;) {
        struct transfer_run run = next_run(j, &i);
        j->t->stats.copies++;
        if (j->down ? gpu_download(j->t->g, s, run.host, run.device, run.n, err)
                    : gpu_upload(j->t->g, s, run.device, run.host, run.n, err))
            return -1;
    }
    return 0;
}

static int verify(struct job *j, size_t piece, struct cairn_error *err)
{
    const struct piece *p = &j->pieces[piece];
    for (size_t i = p->first; i < p->first + p->n;) {
        struct hash before = j->t->verified, *h = j->down ? NULL : &j->t->verified;
        struct transfer_run run = next_run(j, &i);
        if (!transfer_compare(j->t, &run, h, err))
            continue;
        if (j->direct || gpu_lost(j->t->g))
            return -1;
        transfer_note(j->t, TRANSFER_STEPS, err);
        j->t->verified = before;
        if (transfer_again(j->t, &run, j->down, err))
            return -1;
        if (h)
            hash_add(h, run.host, run.n);
    }
    return 0;
}

/* Tells threads that a piece was copied. */
static int land(struct job *j, struct cairn_error *err)
{
    size_t piece = j->landed;
    if (j->o.verify && verify(j, piece, err))
        return -1;
    pthread_mutex_lock(&j->lock);
    j->landed++;
    pthread_cond_broadcast(&j->work);
    pthread_mutex_unlock(&j->lock);
    j->done += j->pieces[piece].bytes;
    if (j->o.progress)
        j->o.progress(j->o.to, j->o.before + j->done, j->o.all ? j->o.all : j->total);
    return 0;
}

static int copy_again(struct job *j, size_t piece, struct cairn_error *err)
{
    const struct piece *p = &j->pieces[piece];
    for (size_t i = p->first; i < p->first + p->n;) {
        struct transfer_run run = next_run(j, &i);
        if (transfer_again(j->t, &run, j->down, err))
            return -1;
    }
    return 0;
}

/* A copy failed, and the device does not always say which: repeats all copies in flight. */
static int rescue(struct job *j, size_t end, struct cairn_error *err)
{
    struct transfer *t = j->t;
    struct cairn_error ignored;
    if (gpu_lost(t->g))
        return -1;
    transfer_note(t, TRANSFER_STEPS, err);
    for (size_t i = 0; i < t->n_slots; i++)
        (void)transfer_wait(t, &t->slots[i], &ignored);
    while (j->landed < end)
        if (copy_again(j, j->landed, err) || land(j, err))
            return -1;
    j->issued = end;
    return 0;
}

static int issue_next(struct job *j, struct cairn_error *err)
{
    size_t piece = j->issued++;
    if (j->direct)
        return land(j, err);
    return issue(j, piece, err) ? rescue(j, j->issued, err) : 0;
}

static int land_next(struct job *j, struct cairn_error *err)
{
    if (transfer_wait(j->t, &j->t->slots[j->landed % j->t->n_slots], err))
        return rescue(j, j->issued, err);
    return land(j, err);
}

/* With the lock. */
static bool may_issue(const struct job *j)
{
    size_t p = j->issued, slots = slots_of(j);
    if (p == j->n_pieces)
        return false;
    if (is_up(j) || j->direct)
        return !j->pieces[p].left;
    return p < slots || !j->pieces[p - slots].left;
}

/* With the lock: the slots of the last pieces may still be read. */
static bool is_done(const struct job *j)
{
    for (size_t i = 1; i <= slots_of(j) && i <= j->n_pieces; i++)
        if (j->pieces[j->n_pieces - i].left)
            return false;
    return j->landed == j->n_pieces;
}

enum next { ISSUE, LAND, TASK, END };
static enum next choose(struct job *j, bool alone)
{
    enum next next;
    pthread_mutex_lock(&j->lock);
    for (;;) {
        bool busy = j->landed < j->issued, issues = may_issue(j);
        next = j->over || is_done(j) ? END : issues ? ISSUE : busy ? LAND : TASK;
        if (next != TASK || alone)
            break;
        pthread_cond_wait(&j->news, &j->lock);
    }
    pthread_mutex_unlock(&j->lock);
    return next;
}

static int drive(struct job *j, bool alone, struct cairn_error *err)
{
    for (enum next next; (next = choose(j, alone)) != END;)
        if (next == TASK)
            do_next(j, false);
        else if (next == ISSUE ? issue_next(j, err) : land_next(j, err))
            return -1;
    return 0;
}

static int run(struct job *j, struct cairn_error *err)
{
    pthread_t threads[MOST_THREADS];
    struct cairn_error ignored;
    int n = start_threads(j, threads);
    int r = drive(j, !n, err);
    pthread_mutex_lock(&j->lock);
    bool failed = j->over;
    j->over = true;
    pthread_cond_broadcast(&j->work);
    pthread_mutex_unlock(&j->lock);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = j->landed; i < j->issued && !j->direct; i++) /* nothing may come into a slot later */
        (void)transfer_wait(j->t, &j->t->slots[i % j->t->n_slots], &ignored);
    if (!r && failed)
        *err = j->err;
    return r || failed ? -1 : 0;
}

/* ---- interface ---- */

static int begin(struct job *j, const struct transfer_part *parts, size_t n, struct cairn_error *err)
{
    struct transfer *t = j->t;
    j->parts = parts;
    for (size_t i = 0; i < n; i++)
        j->total += parts[i].bytes;
    if (gpu_wait(t->g, NULL, err) || (j->o.after && gpu_wait(t->g, j->o.after, err)))
        return -1;
    bool here = n && parts[0].on_host; /* which needs no comparing */
    j->o.verify = (j->o.verify || t->g->fault) && !here;
    j->direct = here || (transfer_is_direct(t) && (is_up(j) || is_host(t)));
    if (!j->direct && transfer_ring(t, j->total, err))
        return -1;
    for (size_t i = 0; i < n && !j->direct; i++)
        if (parts[i].unit > t->slot_bytes)
            return cairn_fail(err, CAIRN_EUSAGE, "a unit of %zu bytes exceeds the limit of %zu",
                              parts[i].unit, t->slot_bytes);
    cut(j, n);
    return 0;
}

static int transfer(struct job *j, const struct transfer_part *parts, size_t n, struct cairn_error *err)
{
    int r = begin(j, parts, n, err) || (j->n_tasks && run(j, err)) ? -1 : 0;
    *(j->down ? &j->t->stats.down_bytes : &j->t->stats.up_bytes) += j->done;
    arena_release(&j->arena);
    pthread_cond_destroy(&j->news);
    pthread_cond_destroy(&j->work);
    pthread_mutex_destroy(&j->lock);
    return r;
}

void transfer_watch(struct transfer *t, void (*progress)(void *to, uint64_t done, uint64_t total), void *to,
                    const volatile sig_atomic_t *stop)
{
    t->watch = (struct transfer_options){ .progress = progress, .to = to, .stop = stop };
}

static struct transfer_options options_of(const struct transfer *t, const struct transfer_options *asked)
{
    struct transfer_options o = asked ? *asked : (struct transfer_options){ 0 };
    if (!o.progress) {
        o.progress = t->watch.progress;
        o.to = t->watch.to;
    }
    o.stop = o.stop ? o.stop : t->watch.stop;
    return o;
}

static struct job job_of(struct transfer *t, const struct transfer_options *o, bool down)
{
    return (struct job){
        .t = t,
        .o = options_of(t, o),
        .down = down,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .work = PTHREAD_COND_INITIALIZER,
        .news = PTHREAD_COND_INITIALIZER,
    };
}

/* Those on the host, or the others: one run has one way. */
static int transfer_some(struct transfer *t, const struct transfer_part *parts, size_t n,
                         const struct transfer_options *o, bool down, bool on_host, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    struct transfer_part *some = ARENA_NEW(&arena, struct transfer_part, n + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (parts[i].on_host == on_host)
            some[k++] = parts[i];
    if (on_host && !k)
        return 0;
    struct job j = job_of(t, o, down);
    return transfer(&j, some, k, err);
}

int transfer_up(struct transfer *t, const struct transfer_part *parts, size_t n,
                const struct transfer_options *o, struct cairn_error *err)
{
    return transfer_some(t, parts, n, o, false, true, err) || transfer_some(t, parts, n, o, false, false, err)
               ? -1
               : 0;
}

int transfer_down(struct transfer *t, const struct transfer_part *parts, size_t n,
                  const struct transfer_options *o, struct cairn_error *err)
{
    return transfer_some(t, parts, n, o, true, true, err) || transfer_some(t, parts, n, o, true, false, err)
               ? -1
               : 0;
}

int transfer_move_from(void *memory, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    (void)err;
    memcpy(bytes, (const char *)memory + at, n);
    return 0;
}

int transfer_move_into(void *memory, uint64_t at, size_t n, void *bytes, struct cairn_error *err)
{
    (void)err;
    memcpy((char *)memory + at, bytes, n);
    return 0;
}

size_t transfer_unit_most(struct transfer *t)
{
    struct cairn_error ignored;
    if (transfer_is_direct(t))
        return SIZE_MAX;
    return transfer_ring(t, 1, &ignored) ? 0 : t->slot_bytes;
}

void transfer_stats_get(const struct transfer *t, struct transfer_stats *out)
{
    *out = t->stats;
    out->verified_bytes = t->verified.length;
    hash_end(&t->verified, out->verified_hash);
}

bool transfer_news(struct transfer *t, struct str *out)
{
    static const char *const words[TRANSFER_RUNGS] = {
        [TRANSFER_SMALL_RING] = "the driver grants less pinned memory for copies than requested",
        [TRANSFER_PAGEABLE] =
            "the driver grants no pinned memory: copying through pageable memory, which is slower",
        [TRANSFER_STEPS] = "a copy failed: repeated it step by step and verified it",
        [TRANSFER_PIECES] = "large copies fail: copying in small pieces, which is slow",
        [TRANSFER_REFUSED] = "the device refuses a copy, even in small pieces",
    };
    for (int i = 0; i < TRANSFER_RUNGS; i++)
        if (t->stats.rungs[i] && !t->told[i]) {
            t->told[i] = true;
            str_addf(out, "%s (%s)", words[i], t->why[i]);
            return true;
        }
    return false;
}

struct transfer *transfer_open(struct gpu *g)
{
    struct transfer *t = calloc(1, sizeof(*t));
    if (t) {
        t->g = g;
        hash_init(&t->verified);
        transfer_set_ring(t, SLOTS, SLOT_BYTES);
    }
    return t;
}

void transfer_close(struct transfer *t)
{
    if (t)
        transfer_ring_close(t);
    free(t);
}

void transfer_set_ring(struct transfer *t, size_t pieces, size_t bytes)
{
    transfer_ring_close(t);
    t->want_slots = pieces < TRANSFER_SLOTS ? pieces : TRANSFER_SLOTS;
    t->want_bytes = bytes;
}

void transfer_tell(struct transfer *t, enum transfer_rung rung, const struct cairn_error *why)
{
    transfer_note(t, rung, why);
}
