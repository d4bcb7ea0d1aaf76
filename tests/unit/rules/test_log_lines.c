/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_lines.h"

#include "base/str.h"
#include "check.h"

/* Each piece as "number:text|". */
static void keep(void *to, uint64_t line, const char *text, size_t n)
{
    str_addf(to, "%d:", (int)line);
    str_addn(to, text, n);
    str_add(to, "|");
}

/* The same in pieces of every size gives the same. */
static void check_pieces(const char *bytes, size_t n, const char *want)
{
    static struct log_lines l;
    for (size_t piece = 1; piece <= n; piece++) {
        struct str s = { 0 };
        l = (struct log_lines){ .piece = keep, .to = &s };
        for (size_t at = 0; at < n; at += piece)
            log_lines_feed(&l, bytes + at, n - at < piece ? n - at : piece);
        log_lines_end(&l);
        CHECK_STR(s.s ? s.s : "", want);
        str_release(&s);
    }
}
#define CHECK_LINES(text, want) check_pieces(text, sizeof(text) - 1, want)

static void lines_are_counted(void)
{
    CHECK_LINES("one\ntwo\n\nfour\n", "1:one|2:two|4:four|");
    CHECK_LINES("no end", "1:no end|");
    CHECK_LINES("\n\n", "");
}

static void a_return_starts_the_line_anew(void)
{
    CHECK_LINES("a\r\nb\r\n", "1:a|2:b|");
    CHECK_LINES("10%\r20%\r30%\nend", "1:10%|1:20%|1:30%|2:end|");
}

static void escapes_are_taken_out(void)
{
    CHECK_LINES("HIP \033[1;31merror\033[0m: x\n", "1:HIP error: x|");
    CHECK_LINES("a\033]0;title\007b\033]8;;x\033\\c\033Md\n", "1:abcd|");
    CHECK_LINES("\033[", "1:|");
}

static void quotes_become_plain(void)
{
    CHECK_LINES("\342\200\230hip\342\200\231 \342\200\234x\342\200\235\n", "1:'hip' \"x\"|");
    CHECK_LINES("a\342\200\223b \342\200", "1:a\342\200\223b \342\200|");
    CHECK_LINES("\033[1m\342\200\230a\033[0m\342\200\231", "1:'a'|");
}

static void utf16_is_read(void)
{
    CHECK_LINES("\377\376a\0\344\0\n\0b\0", "1:a\303\244|2:b|");
    CHECK_LINES("\376\377\0a\40\254\0\n", "1:a\342\202\254|");
    CHECK_LINES("\377\376\075\330\0\336\n\0", "1:\357\277\275\357\277\275|");
    CHECK_LINES("\357\273\277a\n", "1:a|");
}

static void other_bytes_are_left_alone(void)
{
    CHECK_LINES("\377x\n", "1:\377x|");
    CHECK_LINES("\357\273x\n", "1:\357\273x|");
}

static void count(void *to, uint64_t line, const char *text, size_t n)
{
    struct {
        size_t pieces, longest;
        bool found;
    } *c = to;
    (void)line;
    c->pieces++;
    c->longest = n > c->longest ? n : c->longest;
    c->found |= memmem(text, n, "needle", 6) != NULL;
}

/* Wherever a part ends, what is looked for is whole in one of them. */
static void long_lines_come_in_parts(void)
{
    static char text[3 * LOG_PIECE];
    static struct log_lines l;
    for (size_t at = LOG_PIECE - 10; at < LOG_PIECE + 10; at++)
        for (size_t piece = 1000; piece <= sizeof(text); piece *= 2) {
            struct {
                size_t pieces, longest;
                bool found;
            } c = { 0 };
            memset(text, 'x', sizeof(text));
            memcpy(text + at, "needle", 6);
            l = (struct log_lines){ .piece = count, .to = &c };
            for (size_t i = 0; i < sizeof(text); i += piece)
                log_lines_feed(&l, text + i, sizeof(text) - i < piece ? sizeof(text) - i : piece);
            log_lines_end(&l);
            CHECK(c.found);
            CHECK(c.longest <= LOG_PIECE);
            CHECK(c.pieces >= 3 && c.pieces <= 5);
        }
}

static void files_start_anew(void)
{
    struct str s = { 0 };
    static struct log_lines l;
    l = (struct log_lines){ .piece = keep, .to = &s };
    log_lines_feed(&l, "a\nb", 3);
    log_lines_end(&l);
    log_lines_feed(&l, "\377\376c\0", 4);
    log_lines_end(&l);
    CHECK_STR(s.s, "1:a|2:b|1:c|");
    str_release(&s);
}

int main(void)
{
    RUN(lines_are_counted);
    RUN(a_return_starts_the_line_anew);
    RUN(escapes_are_taken_out);
    RUN(quotes_become_plain);
    RUN(utf16_is_read);
    RUN(other_bytes_are_left_alone);
    RUN(long_lines_come_in_parts);
    RUN(files_start_anew);
    return check_done();
}
