/* SPDX-License-Identifier: Apache-2.0
 * How fast a log is read: a typical one (progress bars, records of the loss, warnings) in memory, beside memchr, which
 * looks at every byte once, and memmem, which looks for one string, in the same run.
 *
 *     bench_diagnose [MB]
 *
 * Prints CSV: machine, commit, what, best of five in MB per second of CPU, and the share of memmem's speed. */
#include "base/cleanup.h"
#include "base/str.h"
#include "bench.h"
#include "rules/diagnose.h"

enum { RUNS = 5, PIECE = 1 << 16 };

/* Of this thread: other work on the machine does not count. */
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void add_line(struct str *s, size_t i)
{
    if (i % 40 == 0)
        str_addf(
            s,
            "/home/user/venv/lib/python3.12/site-packages/torch/utils/checkpoint.py:%zu: FutureWarning: "
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast` instead.\n",
            i % 900);
    else if (i % 7 == 0)
        str_addf(
            s,
            "INFO | 2026-08-27 13:04:%02zu | trainer:log:225 - {'loss': 0.%03zu, 'grad_norm': 0.4, 'epoch': 0.0%zu}\n",
            i % 60, i % 900 + 1, i % 100);
    else
        str_addf(s, "\rsteps:  %zu%%|####      | %zu/5820000 [1:12:10<18:27:50, 12.17s/it, avr_loss=0.0%zu]",
                 i % 100, i, 600 + i % 50);
}

static double time_diagnose(const struct str *log)
{
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct diagnoser *d = NULL;
    struct diagnosis out;
    const struct diagnose_context ctx = { .exit_code = 0 };
    double start = cpu_now();
    if (diagnoser_new(&d, &err))
        exit(1);
    for (size_t at = 0; at < log->len; at += PIECE)
        diagnoser_feed(d, log->s + at, log->len - at < PIECE ? log->len - at : PIECE);
    diagnoser_finish(d, &ctx, &a, &out);
    double seconds = cpu_now() - start;
    if (!str_eq(out.class_id, "no-failure") || !diagnoser_saw_step(d)) {
        fprintf(stderr, "bench_diagnose: the log was read as %s\n", out.class_id);
        exit(1);
    }
    diagnoser_free(d);
    return seconds;
}

static double time_memchr(const struct str *log)
{
    size_t lines = 0;
    double start = cpu_now();
    for (const char *p = log->s, *end = log->s + log->len; (p = memchr(p, '\n', (size_t)(end - p))) != NULL;
         p++)
        lines++;
    return lines ? cpu_now() - start : 0;
}

static double time_memmem(const struct str *log)
{
    double start = cpu_now();
    bool found = memmem(log->s, log->len, "HIP out of memory", 17);
    return found ? 0 : cpu_now() - start;
}

static double best(double (*measure)(const struct str *), const struct str *log)
{
    double least = measure(log);
    for (int i = 1; i < RUNS; i++) {
        double t = measure(log);
        least = t < least ? t : least;
    }
    return (double)log->len / 1e6 / least;
}

int main(int argc, char **argv)
{
    CLEANUP(str_release) struct str log = { 0 };
    size_t want = (argc > 1 ? strtoull(argv[1], NULL, 10) : 256) * 1000000;
    for (size_t i = 1; log.len < want; i++)
        add_line(&log, i);
    double one = best(time_memmem, &log), lines = best(time_memchr, &log), all = best(time_diagnose, &log);
    puts("machine,commit,what,MB/s,share of memmem");
    printf("%s,%s,diagnose,%.0f,%.2f\n", bench_machine(), bench_commit(), all, all / one);
    printf("%s,%s,memmem of one string,%.0f,1.00\n", bench_machine(), bench_commit(), one);
    printf("%s,%s,memchr of line feeds,%.0f,%.2f\n", bench_machine(), bench_commit(), lines, lines / one);
    return 0;
}
