/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_join.h"

#include <ctype.h>
#include <string.h>

/* Long enough to be broken, and no progress bar. */
static bool may_be_broken(const char *s, size_t n, bool wanted)
{
    enum { NARROWEST = 50, WIDEST = 400 }; /* bytes; no terminal is wider */
    return n >= NARROWEST && n <= WIDEST && (wanted || !strchr(".:;!?", s[n - 1])) && !memchr(s, '|', n);
}

/* "2025-06-11", "10:02:55": a time begins an entry, a figure does not. */
static bool is_time(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && isdigit((unsigned char)s[i]))
        i++;
    return i && i + 1 < n && strchr("-:/", s[i]) && isdigit((unsigned char)s[i + 1]);
}

/* A sentence of its own begins so; names such as GPU do not. */
static bool is_sentence(const char *s, size_t n)
{
    return n > 1 && isupper((unsigned char)s[0]) && islower((unsigned char)s[1]);
}

/* Not indented, and without the mark of an entry: "[rank0]:", "- ", "{'loss': …". */
static bool may_continue(const char *s, size_t n, bool wanted)
{
    return n && (wanted || !is_sentence(s, n)) && !strchr(" \t[{<|>#$*=~+-", s[0]) &&
           (unsigned char)s[0] < 0x80 && !is_time(s, n);
}

static void append(struct log_join *j, enum log_break b, const char *s, size_t n)
{
    size_t room = LOG_JOIN - j->n[b];
    n = n < room ? n : room;
    memcpy(j->text[b] + j->n[b], s, n);
    j->n[b] += n;
}

bool log_join_line(struct log_join *j, const char *s, size_t n, bool wanted)
{
    size_t start = n < sizeof(j->start) ? n : sizeof(j->start);
    bool joined = j->open && may_continue(s, n, wanted) && memcmp(j->start, s, start) != 0;
    for (int b = 0; b < LOG_N_BREAKS; b++) {
        if (!joined)
            j->n[b] = 0;
        else if (b == LOG_BREAK_BLANK)
            append(j, b, " ", 1);
        append(j, b, s, n);
    }
    memset(j->start, 0, sizeof(j->start));
    memcpy(j->start, s, start);
    j->open = may_be_broken(s, n, wanted);
    return joined;
}
