/* SPDX-License-Identifier: Apache-2.0 */
#include "text/runes.h"

#include "text/unicode.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void reserve(struct runes *r, size_t more)
{
    if (r->cap - r->n >= more)
        return;
    size_t cap = r->cap * 2 > r->n + more ? r->cap * 2 : r->n + more + 32;
    uint32_t *at = cap > SIZE_MAX / sizeof(*at) ? NULL : realloc(r->at, cap * sizeof(*at));
    if (!at) {
        fprintf(stderr, "cairn: out of memory (%zu characters)\n", cap);
        abort();
    }
    r->at = at;
    r->cap = cap;
}

void runes_add(struct runes *r, uint32_t c)
{
    reserve(r, 1);
    r->at[r->n++] = c;
}

void runes_addn(struct runes *r, const uint32_t *at, size_t n)
{
    if (!n)
        return;
    reserve(r, n);
    memcpy(r->at + r->n, at, n * sizeof(*at));
    r->n += n;
}

/* The bytes of an invalid sequence that one U+FFFD stands for: the longest prefix of a valid one, or one byte. */
static size_t invalid_span(const char *text, size_t n)
{
    static const struct {
        unsigned char first, last, low, high; /* lead bytes, and the range of the second byte */
        size_t size;
    } rows[] = {
        { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
        { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
        { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
    };
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (s[0] < rows[i].first || s[0] > rows[i].last)
            continue;
        if (n < 2 || s[1] < rows[i].low || s[1] > rows[i].high)
            return 1;
        size_t size = 2;
        while (size < n && size < rows[i].size && (s[size] & 0xc0) == 0x80)
            size++;
        return size;
    }
    return 1;
}

void runes_add_utf8(struct runes *r, const char *s, size_t n)
{
    uint32_t c;
    reserve(r, n);
    for (size_t at = 0; at < n;) {
        size_t size = unicode_next(s + at, n - at, &c);
        if (c == UNICODE_BAD) {
            c = RUNE_REPLACEMENT;
            size = invalid_span(s + at, n - at);
        }
        runes_add(r, c);
        at += size;
    }
}

bool runes_equal(const struct runes *a, const struct runes *b)
{
    return a->n == b->n && (!a->n || !memcmp(a->at, b->at, a->n * sizeof(*a->at)));
}

void runes_swap(struct runes *a, struct runes *b)
{
    struct runes c = *a;
    *a = *b;
    *b = c;
}

void runes_release(struct runes *r)
{
    free(r->at);
    *r = (struct runes){ 0 };
}

void str_add_runes(struct str *t, const uint32_t *at, size_t n)
{
    char bytes[4];
    str_addn(t, "", 0);
    for (size_t i = 0; i < n; i++)
        str_addn(t, bytes, unicode_put(bytes, at[i]));
}

bool rune_is_space(uint32_t c)
{
    return (c >= 0x1c && c <= 0x1f) || unicode_class_of(c) == UNICODE_SPACE;
}
