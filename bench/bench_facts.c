/* SPDX-License-Identifier: Apache-2.0
 * How long it takes to tell the truth about a machine: `cairn gpu`, `cairn doctor` and `cairn env` on a tree of
 * true sizes, beside `python3 -c pass` in the same run.
 *
 *     bench_facts CAIRN TREE [RUNS]
 *
 * Prints CSV: what, median and least wall time of a whole process in ms, and the share of Python's start. */
#include "base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST_RUNS = 1000 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Exit status of argv, run with its output thrown away; -1 if it could not be run or was killed. */
static int run_once(const char **argv, double *ms)
{
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int status = -1;
    double start = now_ms();
    int failed = posix_spawnp(&pid, argv[0], &quiet, NULL, (char *const *)(uintptr_t)argv, environ);
    if (!failed)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    *ms = now_ms() - start;
    posix_spawn_file_actions_destroy(&quiet);
    return !failed && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of runs, or -1 if a run ended with a status that is not expected. */
static double measure(const char **argv, int want_low, int want_high, int runs, double *least)
{
    double ms[MOST_RUNS], first;
    run_once(argv, &first); /* fills the page cache */
    for (int i = 0; i < runs; i++) {
        int status = run_once(argv, &ms[i]);
        if (status < want_low || status > want_high) {
            fprintf(stderr, "bench_facts: %s %s ended with %d\n", argv[0], argv[1], status);
            return -1;
        }
    }
    qsort(ms, (size_t)runs, sizeof(ms[0]), compare);
    *least = ms[0];
    return ms[runs / 2];
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: bench_facts CAIRN TREE [RUNS]\n", stderr);
        return 2;
    }
    int runs = argc > 3 ? atoi(argv[3]) : 50;
    if (runs < 1 || runs > MOST_RUNS)
        runs = 50;
    /* A version manager's python3 may be a shell script; the real one starts faster. */
    const char *python_name = access("/usr/bin/python3", X_OK) ? "python3" : "/usr/bin/python3";
    const char *python[] = { python_name, "-c", "pass", NULL };
    const char *gpu[] = { argv[1], "gpu", "--json", "--root", argv[2], NULL };
    const char *doctor[] = { argv[1], "doctor", "--json", "--root", argv[2], NULL };
    const char *env[] = { argv[1], "env", "--json", "--root", argv[2], NULL };
    const struct {
        const char *what, **argv;
        int most; /* doctor ends with 1 when it finds trouble */
    } cases[] = { { "python3 -c pass", python, 0 },
                  { "cairn gpu", gpu, 0 },
                  { "cairn doctor", doctor, 1 },
                  { "cairn env", env, 0 } };
    double base = 0;
    puts("case,median_ms,least_ms,share_of_python");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double least, median = measure(cases[i].argv, 0, cases[i].most, runs, &least);
        if (median < 0)
            return 1;
        if (i == 0)
            base = median;
        printf("%s,%.2f,%.2f,%.3f\n", cases[i].what, median, least, median / base);
    }
    return 0;
}
