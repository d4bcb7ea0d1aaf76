/* SPDX-License-Identifier: Apache-2.0
 * What it costs a trainer to be recorded: it prints 100 MB, and its own time from the first byte to the last is
 * compared with the same into `cat >/dev/null`, which is what any pipeline would cost, and with `tee FILE` before
 * that, which keeps a log as cairn does.
 *
 *     bench_run CAIRN FOLDER [ROUNDS]
 *     bench_run --talk HOW SECONDS_FILE      the trainer: prints, then writes its seconds to the file */
#include "bench.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TALK_BYTES = 100 * 1000 * 1000, BLOCK = 64 << 10 };

static char block[BLOCK];
/* Takes part in the result, so that the work is done. */
static volatile double sink;

/* A step of a training that has something to compute. */
static void work(void)
{
    double x = sink + 1;
    for (int i = 0; i < 200; i++)
        x = x * 1.0000001 + 1e-9;
    sink = x;
}

static int talk(const char *how, const char *file)
{
    size_t piece = !strcmp(how, "blocks") ? BLOCK : 100;
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = i % 100 == 99 ? '\n' : (char)('a' + i % 26);
    double start = bench_now();
    for (size_t done = 0; done < TALK_BYTES; done += piece) {
        if (!strcmp(how, "steps"))
            work();
        if (write(STDOUT_FILENO, block, piece) != (ssize_t)piece)
            return 1;
    }
    double seconds = bench_now() - start;
    FILE *f = fopen(file, "w");
    return !f || fprintf(f, "%.9f\n", seconds) < 0 || fclose(f);
}

struct pipeline {
    const char *name, *before, *after;
};

/* The child's own seconds in a pipeline; 0 if it did not end well. */
static double run_once(const char *self, const struct pipeline *p, const char *folder, const char *how)
{
    char line[4096], file[1024];
    double seconds = 0;
    snprintf(file, sizeof(file), "%s/seconds", folder);
    snprintf(line, sizeof(line),
             "cd '%s' && XDG_STATE_HOME=. %s '%s' --talk %s seconds 2>/dev/null %s | cat >/dev/null", folder,
             p->before, self, how, p->after);
    unlink(file);
    if (system(line))
        return 0;
    FILE *f = fopen(file, "r");
    if (!f || fscanf(f, "%lf", &seconds) != 1)
        seconds = 0;
    if (f)
        fclose(f);
    return seconds;
}

/* The first pipeline is ours. */
static int compare(const char *self, const struct pipeline *p, size_t n, const char *folder, const char *how,
                   int rounds)
{
    double best[3] = { 0 };
    for (int i = 0; i < rounds; i++)
        for (size_t k = 0; k < n; k++) {
            double seconds = run_once(self, &p[k], folder, how);
            if (seconds <= 0)
                return fprintf(stderr, "bench_run: a run failed\n"), 1;
            best[k] = i == 0 || seconds < best[k] ? seconds : best[k];
        }
    for (size_t k = 1; k < n; k++)
        printf("%s,%s,run: 100 MB in %s,-,%.2f,%s,%.2f,%.3f\n", bench_machine(), bench_commit(), how,
               TALK_BYTES / best[0] / 1e9, p[k].name, TALK_BYTES / best[k] / 1e9, best[k] / best[0]);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const cases[] = { "steps", "lines", "blocks" };
    if (argc == 4 && !strcmp(argv[1], "--talk"))
        return talk(argv[2], argv[3]);
    if (argc < 3)
        return fprintf(stderr, "usage: bench_run CAIRN FOLDER [ROUNDS]\n"), 2;
    int rounds = argc > 3 ? atoi(argv[3]) : 7, failed = 0;
    char folder[1024], remove[1100], ours[PATH_MAX + 64], self[PATH_MAX], cairn[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s/bench-run-XXXXXX", argv[2]);
    if (!realpath("/proc/self/exe", self) || !realpath(argv[1], cairn))
        return perror(argv[1]), 1;
    if (!mkdtemp(folder))
        return perror(folder), 1;
    snprintf(ours, sizeof(ours), "'%s' run --no-preflight --no-env --", cairn);
    const struct pipeline pipelines[] = {
        { "cairn run", ours, "" },
        { "cat", "", "" },
        { "tee FILE", "", "| tee log" },
    };
    puts("machine,commit,case,threads,gb_per_s,peer,peer_gb_per_s,share");
    for (int i = 0; i < 3; i++)
        failed |= compare(self, pipelines, 3, folder, cases[i], rounds);
    snprintf(remove, sizeof(remove), "rm -rf '%s'", folder);
    return failed | (system(remove) != 0);
}
