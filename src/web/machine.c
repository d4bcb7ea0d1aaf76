/* SPDX-License-Identifier: Apache-2.0 */
#include "web/machine.h"

#include "base/clock.h"
#include "base/str.h"
#include "os/thread.h"
#include "report/gpu.h"
#include "rules/gpu_libraries.h"
#include "web/answer.h"
#include "web/machine_sample.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { WAITING = 32, EAGER_S = 15 };

/* What the thread and the server share is below `lock`. */
struct machine {
    struct loop *loop;
    struct events *events;
    const char *root;
    struct request *waiting[WAITING]; /* for a report */
    size_t n_waiting;
    struct loop_timer *patience;
    int done; /* the thread has something */
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop, watched, wants_report;
    double eager_until; /* somebody fetched the history a moment ago */
    struct machine_ring *ring;
    char *sample, *report; /* JSON, for the server to take */
};

/* ---- the thread ---- */

static int64_t wall_clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static char *text_of(struct json *v)
{
    char *text = json_to_short(v);
    json_free(v);
    return text;
}

/* Returns false when it is time to end. */
static bool wait_for_work(struct machine *m, double next)
{
    pthread_mutex_lock(&m->lock);
    for (;;) {
        double now = clock_s();
        bool eager = m->watched || now < m->eager_until;
        double at = eager ? next : next + MACHINE_SLOW_S - 1;
        if (m->stop || m->wants_report || now >= at)
            break;
        struct timespec until = { (time_t)at, (long)((at - (double)(time_t)at) * 1e9) };
        pthread_cond_timedwait(&m->wake, &m->lock, &until);
    }
    bool go_on = !m->stop;
    pthread_mutex_unlock(&m->lock);
    return go_on;
}

static void hand_over(struct machine *m, struct machine_sample *s, char *sample, char *report)
{
    pthread_mutex_lock(&m->lock);
    machine_ring_add(m->ring, s);
    free(m->sample);
    m->sample = sample;
    if (report) {
        free(m->report);
        m->report = report;
        m->wants_report = false;
    }
    pthread_mutex_unlock(&m->lock);
    eventfd_write(m->done, 1);
}

/* The report of `cairn gpu`, with the figures. */
static char *make_report(const struct facts *f, const struct machine_sample *s)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct json *v = report_gpus(f, gpu_libraries_find(f, &a));
    json_add(v, "live", machine_sample_report(s, f));
    return text_of(v);
}

static void look(struct machine *m, bool eager, bool report, struct machine_cpu *cpu)
{
    CLEANUP(facts_release) struct facts f;
    struct cairn_error ignored = { 0 };
    struct machine_sample s;
    struct facts_options o = { .root = m->root,
                               .env = (const char *const *)environ,
                               .parts = report ? FACTS_ALL : FACTS_HARDWARE,
                               .still = !eager && !report };
    if (facts_read(&f, &o, &ignored))
        return;
    machine_sample_take(&s, &f, cpu, wall_clock_ms());
    char *sample = text_of(machine_sample_report(&s, &f));
    hand_over(m, &s, sample, report ? make_report(&f, &s) : NULL);
}

static void *run(void *context)
{
    struct machine *m = context;
    struct machine_cpu cpu = { 0 };
    double next = clock_s() - MACHINE_SLOW_S; /* the first at once */
    while (wait_for_work(m, next)) {
        pthread_mutex_lock(&m->lock);
        bool report = m->wants_report, eager = m->watched || clock_s() < m->eager_until;
        pthread_mutex_unlock(&m->lock);
        look(m, eager, report, &cpu);
        double now = clock_s();
        next = now > next + 1 ? now + 1 : next + 1;
    }
    return NULL;
}

/* ---- the server ---- */

static void answer_waiting(struct machine *m, const char *report)
{
    size_t n = m->n_waiting;
    m->n_waiting = 0;
    loop_cancel(m->loop, m->patience);
    m->patience = NULL;
    for (size_t i = 0; i < n; i++) {
        struct request *r = m->waiting[i];
        if (report)
            answer_json_text(r, 200, arena_strdup(&r->arena, report), strlen(report), NULL);
        else
            answer_problem_hint(r, 504, "the machine's files were not read within 10 s",
                                "a driver may hang: sudo dmesg shows its messages", 0);
        request_wake(r);
    }
}

static void thread_is_done(void *context)
{
    struct machine *m = context;
    eventfd_t ignored;
    eventfd_read(m->done, &ignored);
    pthread_mutex_lock(&m->lock);
    CLEANUP(mem_free) char *sample = TAKE(m->sample);
    CLEANUP(mem_free) char *report = TAKE(m->report);
    pthread_mutex_unlock(&m->lock);
    if (sample && events_is_watched(m->events, "machine"))
        events_publish(m->events, "machine", "machine", sample, EVENTS_FLEETING);
    if (report && m->n_waiting)
        answer_waiting(m, report);
}

static void out_of_patience(void *context)
{
    struct machine *m = context;
    m->patience = NULL;
    answer_waiting(m, NULL);
}

static void watch_changed(void *context, const char *topic, bool watched)
{
    struct machine *m = context;
    if (strcmp(topic, "machine"))
        return;
    pthread_mutex_lock(&m->lock);
    m->watched = watched;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

void machine_answer(struct machine *m, struct request *r)
{
    if (m->n_waiting == WAITING) {
        answer_problem(r, 503, "too many requests for the machine's report wait");
        return;
    }
    m->waiting[m->n_waiting++] = r;
    request_later(r);
    if (!m->patience)
        m->patience = loop_after(m->loop, MACHINE_PATIENCE_S, out_of_patience, m);
    pthread_mutex_lock(&m->lock);
    m->wants_report = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
}

void machine_answer_history(struct machine *m, struct request *r, int seconds)
{
    pthread_mutex_lock(&m->lock);
    struct json *v = machine_ring_report(m->ring, wall_clock_ms() - seconds * 1000);
    m->eager_until = clock_s() + EAGER_S;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    answer_json(r, 200, v);
}

/* ---- its life ---- */

static void init_lock(struct machine *m)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC); /* that of clock_s */
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->wake, &a);
    pthread_condattr_destroy(&a);
}

int machine_open(struct loop *l, struct events *e, const char *root, struct machine **out,
                 struct cairn_error *err)
{
    struct machine *m = calloc(1, sizeof(*m));
    struct machine_ring *ring = calloc(1, sizeof(*ring));
    if (!m || !ring)
        abort();
    *m = (struct machine){ .loop = l, .events = e, .root = root, .ring = ring };
    init_lock(m);
    m->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    errno = m->done < 0 ? errno : os_thread_start(&m->thread, run, m);
    if (errno) {
        cairn_fail_errno(err, "start a thread that reads the machine");
        fd_close(&m->done);
        free(ring);
        free(m);
        return -1;
    }
    loop_read(l, m->done, thread_is_done, m);
    events_on_watch(e, watch_changed, m);
    *out = m;
    return 0;
}

void machine_close(struct machine *m)
{
    struct timespec until;
    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    m->stop = true;
    pthread_cond_signal(&m->wake);
    pthread_mutex_unlock(&m->lock);
    loop_forget(m->loop, m->done);
    loop_cancel(m->loop, m->patience);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    if (pthread_timedjoin_np(m->thread, NULL, &until))
        return; /* it hangs in the driver, and keeps what it uses */
    machine_ring_release(m->ring);
    free(m->ring);
    free(m->sample);
    free(m->report);
    fd_close(&m->done);
    free(m);
}
