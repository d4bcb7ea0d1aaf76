/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_lines.h"

#include <string.h>

enum { ESC = 0x1b, BEL = 0x07 };

/* Length of the escape sequence at s (ECMA-48: CSI, OSC and two-byte ones); at least 1. */
static size_t escape_span(const char *s, size_t n)
{
    if (n < 2)
        return n;
    size_t i = 2;
    if (s[1] == '[') {
        while (i < n && !((unsigned char)s[i] >= 0x40 && (unsigned char)s[i] <= 0x7e))
            i++;
        return i < n ? i + 1 : n;
    }
    if (s[1] == ']') {
        while (i < n && s[i] != BEL && s[i] != ESC)
            i++;
        return i < n && s[i] == ESC && i + 1 < n ? i + 2 : i < n ? i + 1 : n;
    }
    return i;
}

/* The quote as which a typographic one at s is given, which takes three bytes of UTF-8; 0: there is none. */
static char plain_quote(const char *s, size_t n)
{
    if (n < 3 || memcmp(s, "\xe2\x80", 2) != 0)
        return 0;
    switch ((unsigned char)s[2]) {
    case 0x98:
    case 0x99:
        return '\'';
    case 0x9c:
    case 0x9d:
        return '"';
    default:
        return 0;
    }
}

/* Without escape sequences, and with plain quotes: gcc and others choose them by the locale. */
static void give(struct log_lines *l, const char *s, size_t n)
{
    bool quotes = memchr(s, 0xe2, n) && memmem(s, n, "\xe2\x80", 2); /* most lines have neither */
    if (!quotes && !memchr(s, ESC, n)) {
        l->piece(l->to, l->line + 1, s, n);
        return;
    }
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        char quote = plain_quote(s + i, n - i);
        if (s[i] == ESC) {
            i += escape_span(s + i, n - i);
        } else {
            l->plain[len++] = quote ? quote : s[i];
            i += quote ? 3 : 1;
        }
    }
    l->piece(l->to, l->line + 1, l->plain, len);
}

/* One piece that is complete, in parts if it is long. */
static void give_parts(struct log_lines *l, const char *s, size_t n)
{
    while (n > LOG_PIECE) {
        give(l, s, LOG_PIECE);
        s += LOG_PIECE - LOG_OVERLAP;
        n -= LOG_PIECE - LOG_OVERLAP;
    }
    if (n)
        give(l, s, n);
}

/* Keeps the start of a piece whose end has not come; gives what does not fit. */
static void hold(struct log_lines *l, const char *s, size_t n)
{
    while (n) {
        size_t take = LOG_PIECE - l->n_held < n ? LOG_PIECE - l->n_held : n;
        memcpy(l->held + l->n_held, s, take);
        l->n_held += take;
        s += take;
        n -= take;
        if (l->n_held == LOG_PIECE) {
            give(l, l->held, LOG_PIECE);
            memmove(l->held, l->held + LOG_PIECE - LOG_OVERLAP, LOG_OVERLAP);
            l->n_held = LOG_OVERLAP;
        }
    }
}

static void end_piece(struct log_lines *l, const char *s, size_t n)
{
    if (!l->n_held) {
        give_parts(l, s, n);
        return;
    }
    hold(l, s, n);
    give(l, l->held, l->n_held);
    l->n_held = 0;
}

/* Bytes up to a line feed, or to the end of what there is. */
static void take_line(struct log_lines *l, const char *s, size_t n, bool whole)
{
    const char *cr;
    while ((cr = memchr(s, '\r', n)) != NULL) {
        size_t len = (size_t)(cr - s);
        end_piece(l, s, len);
        s += len + 1;
        n -= len + 1;
    }
    if (whole)
        end_piece(l, s, n);
    else
        hold(l, s, n);
    l->line += whole;
}

static void take_bytes(struct log_lines *l, const char *s, size_t n)
{
    while (n) {
        const char *lf = memchr(s, '\n', n);
        size_t len = lf ? (size_t)(lf - s) : n;
        take_line(l, s, len, lf != NULL);
        len += lf != NULL;
        s += len;
        n -= len;
    }
}

static size_t put_utf8(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    /* Half of a pair becomes the replacement character: nothing that is looked for lies outside the first plane. */
    if (c >= 0xd800 && c < 0xe000)
        c = 0xfffd;
    out[0] = (char)(0xe0 | c >> 12);
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

static void take_utf16(struct log_lines *l, const unsigned char *s, size_t n)
{
    char out[1024];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        l->odd[l->n_odd++] = s[i];
        if (l->n_odd < 2)
            continue;
        l->n_odd = 0;
        bool little = l->encoding == LOG_UTF16LE;
        len += put_utf8(out + len, (uint32_t)l->odd[little] << 8 | l->odd[!little]);
        if (len > sizeof(out) - 4) {
            take_bytes(l, out, len);
            len = 0;
        }
    }
    take_bytes(l, out, len);
}

static void take(struct log_lines *l, const char *s, size_t n)
{
    if (l->encoding == LOG_BYTES)
        take_bytes(l, s, n);
    else
        take_utf16(l, (const unsigned char *)s, n);
}

/* What the first bytes say; the mark itself is dropped.  False: not enough of them yet. */
static bool decide(struct log_lines *l)
{
    static const unsigned char marks[][3] = { { 0xef, 0xbb, 0xbf }, { 0xff, 0xfe }, { 0xfe, 0xff } };
    static const enum log_encoding means[] = { LOG_BYTES, LOG_UTF16LE, LOG_UTF16BE };
    static const size_t lengths[] = { 3, 2, 2 };
    for (int i = 0; i < 3; i++) {
        size_t n = l->n_odd < lengths[i] ? l->n_odd : lengths[i];
        if (memcmp(l->odd, marks[i], n) != 0)
            continue;
        if (n < lengths[i])
            return false;
        memmove(l->odd, l->odd + n, l->n_odd -= n);
        l->encoding = means[i];
        return true;
    }
    l->encoding = LOG_BYTES;
    return true;
}

static void flush_start(struct log_lines *l)
{
    unsigned char first[sizeof(l->odd)];
    size_t n = l->n_odd;
    memcpy(first, l->odd, n);
    l->n_odd = 0;
    take(l, (const char *)first, n);
}

void log_lines_feed(struct log_lines *l, const char *bytes, size_t n)
{
    while (l->encoding == LOG_START && n) {
        l->odd[l->n_odd++] = (unsigned char)*bytes++;
        n--;
        if (decide(l))
            flush_start(l);
    }
    if (n)
        take(l, bytes, n);
}

void log_lines_end(struct log_lines *l)
{
    if (l->encoding == LOG_START) {
        l->encoding = LOG_BYTES;
        flush_start(l);
    }
    if (l->n_held)
        give(l, l->held, l->n_held);
    l->n_held = l->n_odd = 0;
    l->line = 0;
    l->encoding = LOG_START;
}
