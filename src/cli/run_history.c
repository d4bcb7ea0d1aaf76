/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run_history.h"

#include "base/json.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "host/logfile.h"
#include "run/history.h"
#include "run/state.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { MOST_ROWS = 20, WIDE = 100, CLASS = 22, FOLDER = 24, LEFT = 59 /* columns before what comes last */ };

/* "2026-11-15 06:05", as the clock on the wall shows it; "?" where the journal does not tell. */
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

/* In one line; cut with a mark, unless width is 0. */
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

static void print_run(const struct history_run *h, size_t number, bool folder, int last)
{
    char mark[16], when[32], took[32], code[16];
    snprintf(mark, sizeof(mark), "#%zu", number);
    snprintf(code, sizeof(code), "%lld", (long long)h->code);
    printf("%-5s%-17s%8s %4s  ", mark, local_time(h->started, when, sizeof(when)),
           h->ended ? duration(h->seconds, took, sizeof(took)) : "-", h->ended ? code : "-");
    print_cell(stdout,
               h->running    ? "running"
               : !h->ended   ? "cut short"
               : h->class_id ? h->class_id
                             : "",
               CLASS);
    if (folder)
        print_padded(stdout, h->name, FOLDER);
    print_last(h->command ? h->command : "", last);
    if (!h->change)
        return;
    printf("%5s", "");
    print_last(h->change, last ? last + LEFT - 5 : 0);
}

static void print_runs(const struct history_run *runs, size_t n, bool all, const char *state)
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
    puts("Explain a run: cairn diagnose last, or cairn diagnose '#2'.\n"
         "Print its log: cairn run --log '#2'.");
}

static void add_run(struct json *list, const struct history_run *h, size_t number)
{
    struct json *v = json_add_object(list, NULL);
    json_add_int(v, "index", (int64_t)number);
    json_add_text(v, "id", h->name);
    json_add_text(v, "dir", h->dir);
    json_add_text(v, "started", h->started);
    json_add_text(v, "command", h->command);
    json_add_text(v, "state", h->ended ? "ended" : h->running ? "running" : "cut-short");
    if (h->ended)
        json_add_int(v, "code", h->code);
    else
        json_add_null(v, "code");
    json_add_int(v, "attempts", h->attempts);
    json_add_real(v, "seconds", h->seconds);
    json_add_text(v, "class", h->class_id);
    json_add_text(v, "change", h->change);
}

static void print_json(const struct history_run *runs, size_t n)
{
    CLEANUP(json_cleanup) struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    struct json *list = json_add_array(root, "runs");
    for (size_t i = 0; i < n; i++)
        add_run(list, &runs[i], i + 1);
    json_print(root, stdout);
}

int run_history(bool all, bool json)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *state;
    struct cairn_error err = { 0 };
    struct history_run *runs;
    if (state_dir((const char *const *)environ, &a, &state, &err))
        return print_error(&err);
    size_t n = history_read(state, &a, &runs);
    if (json)
        print_json(runs, n);
    else
        print_runs(runs, n, all, state);
    return EXIT_FINE;
}

int run_history_dir(const char *name, struct arena *a, const char **dir, struct cairn_error *err)
{
    const char *state;
    *dir = NULL;
    if (!history_is_name(name))
        return 0;
    if (state_dir((const char *const *)environ, a, &state, err))
        return -1;
    *dir = history_find(state, name, a);
    if (*dir)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "there is no run %s", name);
    return cairn_hint(err, "cairn run --history lists the runs");
}

static void print_bytes_of(void *context, const char *bytes, size_t n)
{
    (void)context;
    fwrite(bytes, 1, n, stdout);
}

/* The first and the last parts are there of one that was rotated. */
int run_log(const char *name)
{
    static const char *const parts[] = { "log.first", "log.previous", "log" };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    const char *dir;
    struct stat st;
    if (run_history_dir(name, &a, &dir, &err))
        return print_error(&err);
    if (!dir) {
        cairn_fail(&err, CAIRN_EUSAGE,
                   "--log wants last, the #number of a run or its folder's name, not \"%s\"", name);
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
