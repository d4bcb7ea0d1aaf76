/* SPDX-License-Identifier: Apache-2.0
 * One log in many forms: the class must not depend on prefixes, colors, case, line ends, or where lines are broken.
 *
 * Each form is applied to all records; the test states the share whose answer stays the same. */
#include "base/str.h"
#include "check.h"
#include "records.h"
#include "rules/diagnose.h"
#include <ctype.h>
#include <string.h>

enum { LEAST_PERCENT = 98, WORD_WIDTH = 100, TERMINAL_WIDTH = 120 };

static void each_line(const char *log, struct str *out, const char *before, const char *after)
{
    while (*log) {
        size_t n = strcspn(log, "\n");
        str_addf(out, "%s%.*s%s\n", before, (int)n, log, after);
        log += n + (log[n] == '\n');
    }
}

static void crlf(const char *log, struct str *out)
{
    each_line(log, out, "", "\r");
}

static void quoted(const char *log, struct str *out)
{
    each_line(log, out, "> ", "");
}

static void indented(const char *log, struct str *out)
{
    each_line(log, out, "    ", "");
}

static void with_times(const char *log, struct str *out)
{
    each_line(log, out, "2025-06-11T10:02:07.118Z ", "");
}

static void by_docker(const char *log, struct str *out)
{
    each_line(log, out, "trainer-1  | ", "");
}

static void by_a_rank(const char *log, struct str *out)
{
    each_line(log, out, "[rank3]: ", "");
}

static void by_journald(const char *log, struct str *out)
{
    each_line(log, out, "Jun 11 10:02:55 host python3[4711]: ", "");
}

static void colored(const char *log, struct str *out)
{
    each_line(log, out, "\x1b[1;31m", "\x1b[0m");
}

static void with_blanks_behind(const char *log, struct str *out)
{
    each_line(log, out, "", "   ");
}

static void in_a_block(const char *log, struct str *out)
{
    str_addf(out, "```\n%s\n```\n", log);
}

static void behind_a_prompt(const char *log, struct str *out)
{
    str_addf(out, "user@host:~/train$ python3 train.py\n%s\nuser@host:~/train$ ", log);
}

static void in_small_letters(const char *log, struct str *out)
{
    for (; *log; log++)
        str_addf(out, "%c", tolower((unsigned char)*log));
}

static void in_capitals(const char *log, struct str *out)
{
    for (; *log; log++)
        str_addf(out, "%c", toupper((unsigned char)*log));
}

/* As a terminal of this width does, whose text somebody copied. */
static void broken_by_a_terminal(const char *log, struct str *out)
{
    int column = 0;
    for (; *log; log++) {
        if (*log != '\n' && column == TERMINAL_WIDTH) {
            str_addf(out, "\n");
            column = 0;
        }
        str_addf(out, "%c", *log);
        column = *log == '\n' ? 0 : column + 1;
    }
}

/* As an editor does. */
static void broken_at_blanks(const char *log, struct str *out)
{
    while (*log) {
        size_t n = strcspn(log, "\n"), len = n;
        if (n > WORD_WIDTH) {
            for (len = WORD_WIDTH; len && log[len] != ' ';)
                len--;
            len = len ? len : n; /* a long word stays whole */
        }
        str_addf(out, "%.*s\n", (int)len, log);
        log += len;
        log += *log == ' ' || *log == '\n';
    }
}

static const struct form {
    const char *name;
    void (*apply)(const char *log, struct str *out);
} forms[] = {
    { "CRLF", crlf },
    { "quoted in Markdown", quoted },
    { "indented", indented },
    { "with times", with_times },
    { "by docker compose", by_docker },
    { "by a rank", by_a_rank },
    { "by journald", by_journald },
    { "colored", colored },
    { "with blanks at the end", with_blanks_behind },
    { "in a Markdown block", in_a_block },
    { "behind a prompt", behind_a_prompt },
    { "in small letters", in_small_letters },
    { "in capitals", in_capitals },
    { "broken by a terminal", broken_by_a_terminal },
    { "broken at blanks", broken_at_blanks },
};

struct shares {
    size_t n, same[ARRAY_LEN(forms)];
    size_t chunked; /* read in pieces of a few bytes */
};

/* Reads the log in pieces of this size; 0: at once. */
static const char *class_of(const struct json *record, const char *log, size_t piece)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct diagnoser *d = NULL;
    struct diagnosis out;
    if (diagnoser_new(&d, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    const struct diagnose_context ctx = {
        .gfx = json_text(json_get(record, "gfx")),
        .exit_code = json_int(json_get(record, "exit"), -1),
    };
    size_t n = strlen(log);
    for (size_t at = 0; at < n;) {
        size_t len = piece && n - at > piece ? piece : n - at;
        diagnoser_feed(d, log + at, len);
        at += len;
    }
    diagnoser_finish(d, &ctx, &a, &out);
    diagnoser_free(d);
    return out.class_id; /* of a table */
}

static void compare(const struct json *record, void *to)
{
    enum { PIECE = 7 };
    struct shares *s = to;
    const char *log = json_text(json_get(record, "log")), *class_id = class_of(record, log, 0);
    s->n++;
    s->chunked += str_eq(class_of(record, log, PIECE), class_id);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        CLEANUP(str_release) struct str text = { 0 };
        forms[i].apply(log, &text);
        s->same[i] += str_eq(class_of(record, text.s ? text.s : "", 0), class_id);
    }
}

static double percent(size_t part, size_t n)
{
    return n ? 100.0 * (double)part / (double)n : 100.0;
}

static void the_form_of_a_log_does_not_matter(void)
{
    static const char *const files[] = { "cases", "more",   "blind",   "unseen",
                                         "later", "public", "threads", "fresh" };
    struct shares s = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char name[64];
        snprintf(name, sizeof(name), "diagnose/%s.jsonl", files[i]);
        CHECK(records_each(check_data(name), compare, &s));
    }
    CHECK(s.n > 0);
    CHECK(s.chunked == s.n);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        printf("# %s: %.1f %% as before\n", forms[i].name, percent(s.same[i], s.n));
        if (percent(s.same[i], s.n) < LEAST_PERCENT)
            CHECK_FAIL_("%s: below %d %%", forms[i].name, LEAST_PERCENT);
    }
}

int main(void)
{
    RUN(the_form_of_a_log_does_not_matter);
    return check_done();
}
