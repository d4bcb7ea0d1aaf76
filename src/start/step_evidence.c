/* SPDX-License-Identifier: Apache-2.0 */
#include "start/step_evidence.h"

#include "host/facts.h"
#include "os/thread.h"
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern char **environ;

enum { PATIENCE_S = 2 };

/* ---- the GPU ---- */

static void add_num(struct str *out, struct num n, double unit, const char *words)
{
    if (n.from)
        str_addf(out, "%s%.*f %s", out->len ? ", " : "", unit > 1e6 ? 1 : 0, (double)n.v / unit, words);
}

static void add_gpu(const char *root, const char *pci, struct str *out)
{
    const struct facts_options fo = { .root = root,
                                      .env = (const char *const *)environ,
                                      .parts = FACTS_HARDWARE };
    struct cairn_error err = { 0 };
    CLEANUP(facts_release) struct facts f;
    if (facts_read(&f, &fo, &err))
        return;
    for (size_t i = 0; i < f.n_gpus; i++) {
        const struct gpu_facts *g = &f.gpus[i];
        if (!str_eq(g->pci.s, pci))
            continue;
        add_num(out, g->busy_percent, 1, "% busy");
        add_num(out, g->clock_mhz, 1, "MHz");
        add_num(out, g->memory_clock_mhz, 1, "MHz memory clock");
        add_num(out, g->temperature_mc, 1000, "C");
        add_num(out, g->power_uw, 1e6, "W");
        add_num(out, g->vram_used_bytes, 1e9, "GB of VRAM in use");
        add_num(out, g->gtt_used_bytes, 1e9, "GB of GTT in use");
    }
}

/* If the firmware hangs, a read of the GPU's files may never return.  So a detached thread does it. */
struct question {
    char *root, *pci;
    struct str answer;
    sem_t done;
    int users; /* atomic */
};

static void question_drop(struct question *q)
{
    if (__atomic_sub_fetch(&q->users, 1, __ATOMIC_ACQ_REL))
        return;
    free(q->root);
    free(q->pci);
    str_release(&q->answer);
    sem_destroy(&q->done);
    free(q);
}

static void *ask(void *of)
{
    struct question *q = of;
    add_gpu(q->root, q->pci, &q->answer);
    sem_post(&q->done);
    question_drop(q);
    return NULL;
}

static bool is_answered(struct question *q)
{
    struct timespec until;
    int r;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    while ((r = sem_timedwait(&q->done, &until)) && errno == EINTR)
        ;
    return !r;
}

static void ask_gpu(const char *root, const char *pci, struct str *brief, struct str *full)
{
    struct question *q = calloc(1, sizeof(*q));
    pthread_t thread;
    if (!q)
        return;
    q->root = root ? strdup(root) : NULL;
    q->pci = strdup(pci);
    q->users = 2;
    sem_init(&q->done, 0, 0);
    if (os_thread_start(&thread, ask, q)) {
        question_drop(q);
    } else {
        pthread_detach(thread);
        bool answered = is_answered(q);
        const char *words = answered ? q->answer.s : "driver does not respond";
        if (words) {
            str_addf(brief, "; GPU %s", words);
            str_addf(full, "GPU %s: %s\n", pci, words);
        }
    }
    question_drop(q);
}

/* ---- the host ---- */

static void add_load(const struct root *r, struct arena *a, struct str *brief, struct str *full)
{
    const char *text = root_read(r, a, "/proc/loadavg", NULL);
    if (!text)
        return;
    str_addf(brief, "; load %.*s", (int)strcspn(text, " "), text);
    str_addf(full, "load: %s\n", text);
}

/* Percentage of the last 10 s in which some task was stalled: "some avg10=1.50 avg60=…". */
static void add_pressure(const struct root *r, struct arena *a, struct str *brief, struct str *full)
{
    static const char *const kinds[] = { "cpu", "memory", "io" };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        const char *text = root_read(r, a, arena_printf(a, "/proc/pressure/%s", kinds[i]), NULL);
        double share;
        if (!text)
            continue;
        if (sscanf(text, "some avg10=%lf", &share) == 1 && share >= 1)
            str_addf(brief, "; %.0f %% %s pressure", share, kinds[i]);
        for (const char *line = text; line && *line; line = str_next_line(line))
            str_addf(full, "%s pressure: %.*s\n", kinds[i], (int)strcspn(line, "\n"), line);
    }
}

static double kib(const char *text, const char *name)
{
    unsigned long long n = 0;
    const char *at = strstr(text, name);
    return at && sscanf(at + strlen(name), ": %llu kB", &n) == 1 ? (double)n * 1024 : -1;
}

static void add_memory(const struct root *r, struct arena *a, struct str *brief, struct str *full)
{
    const char *text = root_read(r, a, "/proc/meminfo", NULL);
    if (!text)
        return;
    double total = kib(text, "MemTotal"), left = kib(text, "MemAvailable");
    double swap = kib(text, "SwapTotal"), swapped = swap - kib(text, "SwapFree");
    if (total >= 0 && left >= 0) {
        str_addf(brief, "; %.1f of %.1f GB host memory available", left / 1e9, total / 1e9);
        str_addf(full, "host memory: %.1f of %.1f GB available\n", left / 1e9, total / 1e9);
    }
    if (swap > 0 && swapped > 0)
        str_addf(brief, ", %.1f GB swapped", swapped / 1e9);
    if (swap >= 0)
        str_addf(full, "swap: %.1f of %.1f GB in use\n", swapped / 1e9, swap / 1e9);
}

/* "12 (a name) S …": the state follows the last parenthesis. */
static void add_threads(const struct root *r, struct arena *a, struct str *full)
{
    enum { MOST = 32 };
    char **ids;
    size_t n;
    if (root_list(r, a, "/proc/self/task", &ids, &n))
        return;
    for (size_t i = 0; i < n && i < MOST; i++) {
        const char *stat = root_read(r, a, arena_printf(a, "/proc/self/task/%s/stat", ids[i]), NULL);
        const char *where = root_read(r, a, arena_printf(a, "/proc/self/task/%s/wchan", ids[i]), NULL);
        const char *end = stat ? strrchr(stat, ')') : NULL;
        if (end)
            str_addf(full, "thread %.*s: state %c, %s\n", (int)(end + 1 - stat), stat, end[1] ? end[2] : '?',
                     where && *where && !str_eq(where, "0") ? where : "-");
    }
}

void step_evidence(const char *root, const char *pci, struct str *brief, struct str *full)
{
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct root r;
    if (pci[0])
        ask_gpu(root, pci, brief, full);
    if (root_open(&r, root, &err))
        return;
    add_load(&r, &a, brief, full);
    add_memory(&r, &a, brief, full);
    add_pressure(&r, &a, brief, full);
    add_threads(&r, &a, full);
    root_close(&r);
}
