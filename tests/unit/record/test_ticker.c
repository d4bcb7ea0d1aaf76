/* SPDX-License-Identifier: Apache-2.0 */
#include "record/ticker.h"

#include "check.h"
#include "terminal.h"
#include <math.h>
#include <pty.h>
#include <stdlib.h>

static struct step_record at_step(uint64_t step, double loss)
{
    struct step_record m = { .step = step };
    step_record_set(&m, METRIC_LOSS, loss);
    step_record_set(&m, METRIC_TOKENS_PER_S, 1850);
    step_record_set(&m, METRIC_MEM_ALLOCATED, 1.2e9);
    return m;
}

static void the_line(void)
{
    struct ticker t = { .first = 1, .total = 1000, .last = at_step(120, 3.214) };
    char line[TICKER_LINE];
    ticker_text(&t, 58.9, 80, line);
    CHECK_STR(line, "step 120/1000  loss 3.214  1,850 tok/s  mem 1.1 GiB  ETA 7:12");
    t.first = 101; /* resumed: only the steps of this start tell the speed */
    ticker_text(&t, 200, 80, line);
    CHECK_STR(line, "step 120/1000  loss 3.214  1,850 tok/s  mem 1.1 GiB  ETA 2:26:40");
    ticker_text(&t, 200, 30, line);
    CHECK_STR(line, "step 120/1000  loss 3.214  1,");
    t.last = (struct step_record){ .step = 1000 };
    step_record_set(&t.last, METRIC_LOSS, 0.02134);
    step_record_set(&t.last, METRIC_S_PER_IT, 3.456);
    step_record_set(&t.last, METRIC_MEM_ALLOCATED, 512e6);
    ticker_text(&t, 200, 80, line);
    CHECK_STR(line, "step 1000/1000  loss 0.0213  3.46 s/it  mem 488 MiB");
    t.last = at_step(1000, NAN);
    step_record_set(&t.last, METRIC_TOKENS_PER_S, 1234567);
    ticker_text(&t, 200, 80, line);
    CHECK_STR(line, "step 1000/1000  loss nan  1,234,567 tok/s  mem 1.1 GiB");
}

/* The whole run in a few characters, however long it is. */
static void the_sparkline_spans_the_run(void)
{
    struct ticker t;
    char line[TICKER_LINE];
    FILE *f = tmpfile();
    ticker_start(&t, f, 100000);
    t.utf8 = false;
    for (uint64_t i = 1; i <= 5000; i++) {
        struct step_record m = at_step(i, i <= 1000 ? 8 : 1);
        ticker_step(&t, &m);
    }
    CHECK(t.bins > TICKER_BINS / 2 && t.bins <= TICKER_BINS);
    t.terminal = true;
    ticker_text(&t, 10, 120, line);
    CHECK_HAS(line, "  ###+__");
    CHECK(str_ends(line, "____"));
    ticker_text(&t, 10, 66, line);
    CHECK(!strchr(line, '#') && !strchr(line, '_'));
    fclose(f);
}

/* What is left is told by the steps after the first. */
static void the_first_step_is_not_timed(void)
{
    struct ticker t;
    char line[TICKER_LINE];
    FILE *f = tmpfile();
    ticker_start(&t, f, 1000);
    struct step_record m = at_step(101, 3);
    ticker_step(&t, &m);
    ticker_text(&t, 30, 80, line);
    CHECK(!strstr(line, "ETA"));
    m = at_step(103, 3);
    ticker_step(&t, &m);
    ticker_text(&t, 2, 80, line);
    CHECK_HAS(line, "ETA 14:57");
    fclose(f);
}

/* Two steps of work 1 and 9 took 20 s; 30 of it is left. */
static void work_decides_what_is_left(void)
{
    struct ticker t;
    char line[TICKER_LINE];
    FILE *f = tmpfile();
    ticker_start(&t, f, 1000);
    for (int i = 0; i < 3; i++) {
        struct step_record m = at_step((uint64_t)i + 1, 3);
        ticker_work(&t, i == 1 ? 1 : 9, i == 2 ? 30 : 50); /* the first is not timed */
        ticker_step(&t, &m);
    }
    ticker_text(&t, 20, 80, line);
    CHECK_HAS(line, "ETA 1:00");
    fclose(f);
}

static void plain_lines_are_few(void)
{
    struct ticker t;
    char text[1024];
    FILE *f = tmpfile();
    ticker_start(&t, f, 3);
    for (uint64_t i = 1; i <= 3; i++) {
        struct step_record m = at_step(i, (double)i);
        ticker_step(&t, &m);
    }
    ticker_say(&t, "saved %s", "step-3");
    ticker_end(&t);
    rewind(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    CHECK_HAS(text, "step 1/3  loss 1.000");
    CHECK(!strstr(text, "step 2/3"));
    CHECK_HAS(text, "saved step-3\nstep 3/3  loss 3.000");
    CHECK(!strchr(text, '\r') && !strchr(text, '\033'));
    CHECK(str_ends(text, "GiB\n"));
}

static void one_line_on_a_terminal(void)
{
    int master, slave;
    char seen[2048] = "";
    if (openpty(&master, &slave, NULL, NULL, NULL))
        SKIP("no terminal can be had here (/dev/pts)");
    FILE *f = fdopen(slave, "w");
    struct ticker t;
    ticker_start(&t, f, 9);
    for (uint64_t i = 1; i <= 3; i++) {
        struct step_record m = at_step(i, (double)i);
        ticker_step(&t, &m);
    }
    ticker_say(&t, "saved");
    ticker_end(&t);
    read_until(master, "\033[K\r\n", seen, sizeof(seen));
    CHECK_HAS(seen, "\rstep 1/9");
    CHECK(!strstr(seen, "step 2/9"));
    CHECK_HAS(seen, "\r\033[Ksaved\r\n\rstep 3/9");
    CHECK(str_ends(seen, "\033[K\r\n")); /* the last line stays */
    fclose(f);
    close(master);
}

int main(void)
{
    setenv("TERM", "xterm", 1);
    RUN(the_line);
    RUN(the_sparkline_spans_the_run);
    RUN(the_first_step_is_not_timed);
    RUN(work_decides_what_is_left);
    RUN(plain_lines_are_few);
    RUN(one_line_on_a_terminal);
    return check_done();
}
