/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_history.h"

#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "host/logfile.h"
#include "report/runs.h"
#include "run/history.h"
#include "run/run_list.h"
#include "run/state_dir.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST_ROWS = 20, WIDE = 100, CLASS = 22, FOLDER = 24, LEFT = 59 /* columns before what comes last */ };

/* "2026-11-15 06:05" in local time; "?" if the journal does not have it. */
static const char *local_time(const char *utc, char *buf, size_t size)
{
    struct tm tm = { 0 };
    const char *end = utc ? strptime(utc, "%Y-%m-%dT%H:%M:%SZ", &tm) : NULL;
    time_t t = end && !*end ? timegm(&tm) : -1;
    if (t == -1 || !localtime_r(&t, &tm) || !strftime(buf, size, "%Y-%m-%d %H:%M", &tm))
        snprintf(buf, size, "?");
    return buf;
}

static const char *duration(double s, char *buf, size_t size)
{
    long long minutes = (long long)(s / 60);
    if (s < 60)
        snprintf(buf, size, "%.1f s", s);
    else if (minutes < 60)
        snprintf(buf, size, "%lld min", minutes);
    else
        snprintf(buf, size, "%lld:%02lld h", minutes / 60, minutes % 60);
    return buf;
}

/* On one line; cut with "...", unless width is 0. */
static void print_last(const char *text, int width)
{
    CLEANUP(str_release) struct str line = { 0 };
    for (const char *p = text; *p; p += strcspn(p, "\n"), p += strspn(p, "\n"))
        str_addf(&line, "%s%.*s", line.len ? " " : "", (int)strcspn(p, "\n"), p);
    str_add(&line, "");
    if (width > 0 && print_columns(line.s) > width)
        print_cut(stdout, line.s, width);
    else
        print_padded(stdout, line.s, 0);
    putchar('\n');
}

static void print_run(const struct run_entry *h, size_t number, bool folder, int last)
{
    char mark[16], when[32], took[32], code[16];
    snprintf(mark, sizeof(mark), "#%zu", number);
    snprintf(code, sizeof(code), "%lld", (long long)h->code);
    printf("%-5s%-17s%8s %4s  ", mark, local_time(h->started_text, when, sizeof(when)),
           h->ended ? duration(h->seconds, took, sizeof(took)) : "-", h->ended ? code : "-");
    print_cell(stdout,
               h->state == RUN_RUNNING ? "running"
               : !h->ended             ? "incomplete"
               : h->verdict            ? h->verdict
                                       : "",
               CLASS);
    if (folder)
        print_padded(stdout, h->id, FOLDER);
    print_last(h->name ? h->name : "", last);
    if (!h->change)
        return;
    printf("%5s", "");
    print_last(h->change, last ? last + LEFT - 5 : 0);
}

static void print_runs(const struct run_entry *runs, size_t n, bool all, const char *state)
{
    bool terminal = isatty(STDOUT_FILENO);
    int width = print_width();
    bool folder = width >= WIDE;
    int last = terminal ? width - LEFT - (folder ? FOLDER : 0) : 0;
    size_t shown = all || n < MOST_ROWS ? n : MOST_ROWS;
    if (!n) {
        puts("no runs yet");
        return;
    }
    printf("%-5s%-17s%8s %4s  %-*s", "#", "STARTED", "TOOK", "EXIT", CLASS, "CLASS");
    printf("%-*s%s\n", folder ? FOLDER : 0, folder ? "FOLDER" : "", "COMMAND");
    for (size_t i = 0; i < shown; i++)
        print_run(&runs[i], i + 1, folder, last);
    if (shown < n)
        printf("\n%zu of %zu runs; --all lists every one.", shown, n);
    printf("\nThe folders are in %s/runs.\n", state);
    puts("Explain a run: cairn diagnose last, or cairn diagnose '#1'.\n"
         "Print its log: cairn run --log '#1'.");
}

int run_history(bool all, bool json)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *state;
    struct cairn_error err = { 0 };
    struct run_entry *runs;
    size_t n;
    if (state_dir((const char *const *)environ, &a, &state, &err))
        return print_error(&err);
    const struct run_list_options o = { .supervised = true, .state = state };
    if (run_list(&o, &a, &runs, &n, &err))
        return print_error(&err);
    if (json)
        print_report(report_run_history(runs, n));
    else
        print_runs(runs, n, all, state);
    return EXIT_FINE;
}

static void print_bytes_of(void *context, const char *bytes, size_t n)
{
    (void)context;
    fwrite(bytes, 1, n, stdout);
}

/* Of a rotated log, the first and the last parts exist. */
int run_log(const char *name)
{
    static const char *const parts[] = { "log.first", "log.previous", "log" };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    const char *dir;
    struct stat st;
    if (history_dir(name, &a, &dir, &err))
        return print_error(&err);
    if (!dir) {
        cairn_fail(&err, CAIRN_EUSAGE,
                   "--log takes last, the #number of a run or its folder's name, not \"%s\"", name);
        cairn_hint(&err, "cairn run --history lists the runs");
        return print_error(&err);
    }
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const char *path = arena_printf(&a, "%s/%s", dir, parts[i]);
        bool is_log = i + 1 == ARRAY_LEN(parts);
        bool is_there = !lstat(path, &st);
        if (!is_log && !is_there)
            continue;
        if (is_there && !S_ISREG(st.st_mode)) {
            cairn_fail(&err, CAIRN_EFORMAT, "%s is not a regular file", path);
            return print_error(&err);
        }
        if (logfile_read(path, print_bytes_of, NULL, NULL, &err))
            return print_error(&err);
        if (is_log)
            fprintf(stderr, "cairn: %s\n", path);
    }
    return EXIT_FINE;
}
