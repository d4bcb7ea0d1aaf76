/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_join.h"

#include "base/cleanup.h"
#include "check.h"
#include <string.h>

#define LONG "RuntimeError: HIP error: the operation was refused because an invalid ar"

static bool join(struct log_join *j, const char *line)
{
    return log_join_line(j, line, strlen(line), false);
}

static bool holds(const struct log_join *j, enum log_break b, const char *text)
{
    return j->n[b] == strlen(text) && !memcmp(j->text[b], text, j->n[b]);
}

static void a_long_line_goes_on_in_the_next(void)
{
    struct log_join j = { 0 };
    CHECK(!join(&j, LONG));
    CHECK(join(&j, "gument was given"));
    CHECK(holds(&j, LOG_BREAK_WORD, LONG "gument was given"));
    CHECK(holds(&j, LOG_BREAK_BLANK, LONG " gument was given"));
    CHECK(!join(&j, "short lines are not broken"));
}

static void an_entry_begins_anew(void)
{
    static const char *const entries[] = { "  File \"train.py\"", "[rank0]: next",
                                           "2025-06-11 next",     "10:02:55 next",
                                           "Traceback",           "{'loss': 1}",
                                           "RuntimeError: HIP",   "" };
    for (size_t i = 0; i < ARRAY_LEN(entries); i++) {
        struct log_join j = { 0 };
        CHECK(!join(&j, LONG));
        if (join(&j, entries[i]))
            CHECK_FAIL_("%s", entries[i]);
    }
}

static void a_figure_is_no_time(void)
{
    struct log_join j = { 0 };
    CHECK(!join(&j, LONG));
    CHECK(join(&j, "15.98 GiB of which"));
}

/* What is missing may stand in a sentence of its own. */
static void what_is_wanted_may_begin_a_sentence(void)
{
    struct log_join j = { 0 };
    static const char next[] = "Of the allocated memory 1 GiB is reserved";
    CHECK(!join(&j, LONG));
    CHECK(log_join_line(&j, next, strlen(next), true));
}

static void what_does_not_fit_is_left_out(void)
{
    struct log_join j = { 0 };
    for (int i = 0; i < 100; i++)
        join(&j, i % 2 ? LONG : "and" LONG);
    CHECK(j.n[LOG_BREAK_WORD] <= LOG_JOIN && j.n[LOG_BREAK_BLANK] <= LOG_JOIN);
}

int main(void)
{
    RUN(a_long_line_goes_on_in_the_next);
    RUN(an_entry_begins_anew);
    RUN(a_figure_is_no_time);
    RUN(what_is_wanted_may_begin_a_sentence);
    RUN(what_does_not_fit_is_left_out);
    return check_done();
}
