/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include "base/str.h"
#include "check.h"
#include "terminal.h"
#include <pty.h>
#include <stdlib.h>

static void the_line(void)
{
    static const struct {
        uint64_t done, total;
        double seconds;
        const char *text;
    } rows[] = {
        { 0, 4000000000, 0, "work   0%  0.0 of 4.0 GB  0.00 GB/s  " },
        { 1000000000, 4000000000, 0.25, "work  25%  1.0 of 4.0 GB  4.00 GB/s  " }, /* too early to guess */
        { 1000000000, 4000000000, 2, "work  25%  1.0 of 4.0 GB  0.50 GB/s  0:06 left" },
        { 1000000000, 29000000000, 30, "work   3%  1.0 of 29.0 GB  0.03 GB/s  14:00 left" },
        { 1000000000, 1000000000000, 10, "work   0%  1.0 of 1000.0 GB  0.10 GB/s  2:46:30 left" },
        { 4000000000, 4000000000, 8, "work 100%  4.0 of 4.0 GB  0.50 GB/s  " },
        { 16000000, 81000000, 0.1, "work  19%  16 of 81 MB  160 MB/s  " },
        { 0, 0, 1, "work 100%  0 of 0 MB  0 MB/s  " },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct progress p = { .what = "work", .total = rows[i].total };
        char buf[128];
        progress_text(&p, rows[i].done, rows[i].seconds, buf, sizeof(buf));
        CHECK_STR(buf, rows[i].text);
    }
}

static void silent_without_a_terminal(void)
{
    FILE *f = tmpfile();
    struct progress p;
    progress_start(&p, f, "work", 10);
    p.shown = 0; /* long ago */
    progress_add(&p, 5);
    progress_end(&p);
    progress_add(NULL, 5);
    fseek(f, 0, SEEK_END);
    CHECK_INT(ftell(f), 0);
    fclose(f);
}

static void counted(void)
{
    static const struct {
        uint64_t done;
        double seconds;
        const char *text;
    } rows[] = {
        { 0, 0, "sample  step 0 of 20" },
        { 1, 0, "sample  step 1 of 20" }, /* the first says nothing of the others */
        { 2, 1.5, "sample  step 2 of 20  1.50 s/step  0:27 left" },
        { 11, 3000, "sample  step 11 of 20  300.00 s/step  45:00 left" },
        { 20, 19, "sample  step 20 of 20  1.00 s/step  " },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct progress p = { .what = "sample", .unit = "step", .total = 20 };
        char buf[128];
        progress_text(&p, rows[i].done, rows[i].seconds, buf, sizeof(buf));
        CHECK_STR(buf, rows[i].text);
    }
}

/* Where there is no terminal, what is counted gets a line now and then. */
static void counted_plainly(void)
{
    FILE *f = tmpfile();
    char seen[256] = "";
    struct progress p;
    progress_start_count(&p, f, "sample", "step", 4);
    progress_add(&p, 1);
    p.shown -= 11; /* as many seconds pass */
    progress_add(&p, 1);
    progress_add(&p, 1);
    progress_end(&p);
    rewind(f);
    CHECK(fread(seen, 1, sizeof(seen) - 1, f) > 0);
    CHECK(str_starts(seen, "sample  step 2 of 4  ") && str_ends(seen, " left\n") && !strchr(seen, '\r'));
    CHECK(strchr(seen, '\n') == strrchr(seen, '\n'));
    fclose(f);
    progress_start_count(&p, NULL, "sample", "step", 4);
    progress_add(&p, 1);
    progress_end(&p);
}

static void counted_on_a_terminal(void)
{
    int master, slave;
    char seen[512] = "";
    if (openpty(&master, &slave, NULL, NULL, NULL))
        SKIP("no terminal can be had here (/dev/pts)");
    FILE *f = fdopen(slave, "w");
    struct progress p;
    progress_start_count(&p, f, "sample", "step", 4);
    p.shown -= 1;
    progress_add(&p, 1);
    progress_end(&p);
    read_until(master, "step 1 of 4\033[K\r\033[K", seen, sizeof(seen));
    CHECK_STR(seen, "\rsample  step 0 of 4\033[K\rsample  step 1 of 4\033[K\r\033[K");
    fclose(f);
    close(master);
}

/* On a terminal the line is written, not too often, and taken away at the end. */
static void rewrites_its_line(void)
{
    int master, slave;
    char seen[512] = "";
    if (openpty(&master, &slave, NULL, NULL, NULL))
        SKIP("no terminal can be had here (/dev/pts)");
    FILE *f = fdopen(slave, "w");
    struct progress p;
    progress_start(&p, f, "work", 1000);
    progress_add(&p, 100);
    p.shown -= 1; /* a second passes */
    progress_add(&p, 400);
    progress_add(&p, 400);
    progress_end(&p);
    read_until(master, "\r\033[K", seen, sizeof(seen));
    CHECK_HAS(seen, "\rwork  50%");
    CHECK(!strstr(seen, "10%") && !strstr(seen, "90%"));
    CHECK(str_ends(seen, "\r\033[K"));
    fclose(f);
    close(master);
}

static void fits_the_terminal(void)
{
    int master, slave;
    char seen[512] = "";
    const struct winsize narrow = { .ws_row = 24, .ws_col = 20 };
    if (openpty(&master, &slave, NULL, NULL, &narrow))
        SKIP("no terminal can be had here (/dev/pts)");
    FILE *f = fdopen(slave, "w");
    struct progress p;
    progress_start(&p, f, "work", 1000);
    p.shown -= 1;
    progress_add(&p, 500);
    progress_end(&p);
    read_until(master, "\033[K\r\033[K", seen, sizeof(seen));
    CHECK_STR(seen, "\rwork  50%  0 of 0 M\033[K\r\033[K");
    fclose(f);
    close(master);
}

static void silent_on_a_dumb_terminal(void)
{
    int master, slave;
    if (openpty(&master, &slave, NULL, NULL, NULL))
        SKIP("no terminal can be had here (/dev/pts)");
    FILE *f = fdopen(slave, "w");
    struct progress p;
    setenv("TERM", "dumb", 1);
    progress_start(&p, f, "work", 1000);
    CHECK(!p.out);
    setenv("TERM", "xterm", 1);
    progress_start(&p, f, "work", 1000);
    CHECK(p.out == f);
    fclose(f);
    close(master);
}

int main(void)
{
    setenv("TERM", "xterm", 1);
    RUN(the_line);
    RUN(silent_without_a_terminal);
    RUN(counted);
    RUN(counted_plainly);
    RUN(counted_on_a_terminal);
    RUN(rewrites_its_line);
    RUN(fits_the_terminal);
    RUN(silent_on_a_dumb_terminal);
    return check_done();
}
