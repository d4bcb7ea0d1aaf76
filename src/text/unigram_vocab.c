/* SPDX-License-Identifier: Apache-2.0
 * The vocabulary of a tokenizer.json: pairs of a text and a score, often 250,000.
 *
 * It is read from the bytes of the file, before the JSON library sees the rest, for two reasons.  `tokenizers`
 * does not round scores as strtod does, and which of two equal paths wins can depend on the last bit of a
 * score.  And it takes a tenth of the time. */
#include "text/unicode.h"
#include "text/unigram_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan {
    const char *p, *end;
};

static bool take(struct scan *s, char c)
{
    while (s->p < s->end && memchr(" \t\r\n", *s->p, 4))
        s->p++;
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

/* From behind the opening quote to behind the closing one. */
static bool skip_string(struct scan *s)
{
    for (; s->p < s->end; s->p++) {
        if (*s->p == '"')
            return s->p++, true;
        if (*s->p == '\\' && ++s->p == s->end)
            return false;
    }
    return false;
}

static bool skip_value(struct scan *s)
{
    size_t depth = 0;
    bool any = false;
    while (s->p < s->end) {
        char c = *s->p;
        if (!depth && any && (c == ',' || c == '}' || c == ']'))
            return true;
        s->p++;
        any |= !memchr(" \t\r\n", c, 4);
        if (c == '"' && !skip_string(s))
            return false;
        if (c == '{' || c == '[')
            depth++;
        if ((c == '}' || c == ']') && !depth--)
            return false;
    }
    return false;
}

/* Leaves s at the value of a member of the object at s. */
static bool find_member(struct scan *s, const char *key)
{
    if (!take(s, '{'))
        return false;
    do {
        if (!take(s, '"'))
            return false;
        const char *name = s->p;
        if (!skip_string(s) || !take(s, ':'))
            return false;
        size_t n = strlen(key);
        if (!strncmp(name, key, n) && name[n] == '"')
            return true;
        if (!skip_value(s))
            return false;
    } while (take(s, ','));
    return false;
}

static bool read_hex(struct scan *s, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++, s->p++) {
        const char *digits = "0123456789abcdef", *d;
        if (s->p == s->end || !*s->p || !(d = strchr(digits, *s->p | 0x20)) || (*s->p < '0'))
            return false;
        *out = *out << 4 | (uint32_t)(d - digits);
    }
    return true;
}

static bool read_escape(struct scan *s, struct str *out)
{
    static const char names[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    char bytes[4];
    if (s->p == s->end || !*s->p)
        return false;
    const char *name = strchr(names, *s->p);
    uint32_t c, low;
    if (name) {
        s->p++;
        str_addn(out, means + (name - names), 1);
        return true;
    }
    if (*s->p++ != 'u' || !read_hex(s, &c))
        return false;
    if (c >= 0xd800 && c <= 0xdbff) {
        if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
            return false;
        s->p += 2;
        if (!read_hex(s, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xdc00 && c <= 0xdfff) {
        return false;
    }
    str_addn(out, bytes, unicode_put(bytes, c));
    return true;
}

static bool read_string(struct scan *s, struct str *out)
{
    uint32_t c;
    out->len = 0;
    if (!take(s, '"'))
        return false;
    while (s->p < s->end && *s->p != '"') {
        if (*s->p == '\\') {
            s->p++;
            if (!read_escape(s, out))
                return false;
            continue;
        }
        size_t size = unicode_next(s->p, (size_t)(s->end - s->p), &c);
        if (c == UNICODE_BAD || c < 0x20)
            return false;
        str_addn(out, s->p, size);
        s->p += size;
    }
    return take(s, '"');
}

/* 10^n, as the compiler reads 1e<n>. */
static double power_of_ten(int n)
{
    static const double small[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    char text[16];
    if (n < (int)ARRAY_LEN(small))
        return small[n];
    snprintf(text, sizeof(text), "1e%d", n);
    return strtod(text, NULL);
}

/* Digits go into 64 bits while they fit; returns how many did not. */
static int read_digits(struct scan *s, uint64_t *digits, int *used)
{
    int lost = 0;
    for (*used = 0; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++) {
        uint64_t d = (uint64_t)(*s->p - '0');
        if (lost || *digits > (UINT64_MAX - d) / 10) {
            lost += lost < 100000;
            continue;
        }
        *digits = *digits * 10 + d;
        *used += *used < 100000;
    }
    return lost;
}

/* As serde_json reads a number: the digits as an integer, rounded to a double, times or by a power of ten,
 * rounded again. */
static bool read_number(struct scan *s, double *out)
{
    uint64_t digits = 0, power = 0;
    int used, more, exponent = 0;
    bool negative = take(s, '-'), below = false;
    exponent = read_digits(s, &digits, &used);
    if (!used)
        return false;
    if (s->p < s->end && *s->p == '.') {
        const char *from = ++s->p;
        read_digits(s, &digits, &used);
        if (s->p == from)
            return false;
        exponent -= exponent ? 0 : used;
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            below = *s->p++ == '-';
        read_digits(s, &power, &more);
        if (!more)
            return false;
        int by = power > 100000 ? 100000 : (int)power;
        exponent += below ? -by : by;
    }
    double v = (double)digits;
    for (; exponent < -308 && v != 0; exponent += 308)
        v /= 1e308;
    if (v != 0)
        v = exponent > 308 ? INFINITY
            : exponent < 0 ? v / power_of_ten(-exponent)
                           : v * power_of_ten(exponent);
    *out = negative ? -v : v;
    return isfinite(v);
}

static int count_pairs(struct scan s, size_t *n)
{
    for (*n = 0; take(&s, '['); ++*n) {
        if (!skip_value(&s) || !take(&s, ',') || !skip_value(&s) || !take(&s, ']'))
            return -1;
        take(&s, ',');
    }
    return 0;
}

static int read_pairs(struct unigram *u, struct scan *s, struct cairn_error *err)
{
    CLEANUP(str_release) struct str text = { 0 };
    double least = INFINITY;
    uint32_t before;
    for (size_t i = 0; i < u->n_pieces; i++) {
        if ((i && !take(s, ',')) || !take(s, '[') || !read_string(s, &text) || !take(s, ',') ||
            !read_number(s, &u->scores[i]) || !take(s, ']'))
            return cairn_fail(err, CAIRN_EFORMAT, "entry %zu of the vocabulary is not a text and a score", i);
        if (trie_put(&u->trie, text.len ? text.s : "", text.len, (uint32_t)i, &before, err))
            return -1;
        if (u->scores[i] < least)
            least = u->scores[i];
    }
    if (!take(s, ']'))
        return cairn_fail(err, CAIRN_EFORMAT, "the vocabulary is not a list of texts and scores");
    u->unknown_score = least - 10;
    return 0;
}

int unigram_read_vocab(struct unigram **out, const char *json, size_t n, struct str *rest,
                       struct cairn_error *err)
{
    CLEANUP(unigram_cleanup) struct unigram *u = NULL;
    struct scan s = { json, json + n };
    size_t pairs = 0;
    bool found = find_member(&s, "model") && find_member(&s, "vocab");
    const char *from = s.p;
    if (!found || !take(&s, '[') || count_pairs(s, &pairs)) {
        str_addn(rest, json, n);
        return 0;
    }
    if (unigram_new(&u, pairs, err) || read_pairs(u, &s, err))
        return -1;
    str_addn(rest, json, (size_t)(from - json));
    str_add(rest, "[]");
    str_addn(rest, s.p, (size_t)(s.end - s.p));
    *out = TAKE(u);
    return 0;
}
