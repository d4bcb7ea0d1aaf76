/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "base/str.h"
#include <float.h>
#include <stdlib.h>
#include <string.h>

static int digit_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return 99;
}

static bool parse_digits(const char *s, size_t n, unsigned base, uint64_t *out)
{
    uint64_t v = 0;
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned d = (unsigned)digit_value(s[i]);
        if (d >= base || v > (UINT64_MAX - d) / base)
            return false;
        v = v * base + d;
    }
    *out = v;
    return true;
}

bool cairn_parse_u64(const char *text, uint64_t *out)
{
    return parse_digits(text, strlen(text), 10, out);
}

bool cairn_parse_i64(const char *text, int64_t *out)
{
    bool minus = *text == '-';
    uint64_t v;
    if (!cairn_parse_u64(text + minus, &v) || v > INT64_MAX)
        return false;
    *out = minus ? -(int64_t)v : (int64_t)v;
    return true;
}

bool cairn_parse_hex(const char *text, uint64_t *out)
{
    if (str_starts(text, "0x") || str_starts(text, "0X"))
        text += 2;
    return parse_digits(text, strlen(text), 16, out);
}

/* ---- reals ---- */

/* 10^0 … 10^27 are exact in 64 bits of mantissa. */
static const long double powers[] = { 1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                      1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                      1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L };
/* 10^0 … 10^22 are exact in a double. */
static const double doubles[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
enum { EXACT_DOUBLES = 22, EXACT_POWERS = 27, MOST_DIGITS = 19 };

/* The digits of a number without its point, and the power of ten that goes with them. */
struct decimal {
    uint64_t digits; /* right if there are at most MOST_DIGITS */
    int n;           /* digits, with the zeros that come first */
    int exponent;    /* of ten */
    bool is_negative;
};

static const char *scan_digits(const char *at, struct decimal *d)
{
    const char *first = at;
    uint64_t digits = d->digits;
    for (unsigned digit; (digit = (unsigned)*at - '0') < 10; at++)
        digits = digits * 10 + digit;
    d->digits = digits;
    d->n += (int)(at - first < 10000 ? at - first : 10000);
    return at;
}

/* Zeros before all others do not count. */
static int leading_zeros(const char *at)
{
    int n = 0;
    for (at += *at == '-'; *at == '0' || *at == '.'; at++)
        n += *at == '0';
    return n;
}

static const char *scan_decimal(const char *text, struct decimal *d)
{
    *d = (struct decimal){ .is_negative = *text == '-' };
    const char *at = text + d->is_negative, *first = at;
    at = scan_digits(at, d);
    if (at == first)
        return NULL;
    if (*at == '.') {
        first = at + 1;
        at = scan_digits(first, d);
        if (at == first)
            return NULL;
        d->exponent = -(int)(at - first < 10000 ? at - first : 10000);
    }
    if (d->n > MOST_DIGITS)
        d->n -= leading_zeros(text);
    if (*at != 'e' && *at != 'E')
        return at;
    bool minus = at[1] == '-';
    first = at += 1 + (at[1] == '-' || at[1] == '+');
    int e = 0;
    for (; *at >= '0' && *at <= '9'; at++)
        e = e < 10000 ? e * 10 + *at - '0' : e;
    d->exponent += minus ? -e : e;
    return at == first ? NULL : at;
}

/* One operation of 64 bits is off by half a unit at most.  Rounded to 53 bits the value is right, unless it lies so
 * near the middle of two doubles that this half unit decides. */
static bool round_decimal(const struct decimal *d, double *out)
{
    int e = d->exponent < 0 ? -d->exponent : d->exponent;
    if (d->digits >> 53 == 0 && d->n <= MOST_DIGITS && e <= EXACT_DOUBLES) { /* both exact: rounded once */
        double digits = (double)d->digits, v = d->exponent < 0 ? digits / doubles[e] : digits * doubles[e];
        *out = d->is_negative ? -v : v;
        return true;
    }
#if LDBL_MANT_DIG == 64
    if (d->n > MOST_DIGITS || e > EXACT_POWERS)
        return false;
    long double v = d->exponent < 0 ? (long double)d->digits / powers[e] : (long double)d->digits * powers[e];
    union {
        long double value;
        uint64_t mantissa;
    } bits = { .value = v };
    uint64_t low = bits.mantissa & 0x7ff;
    if (low >= 0x3ff && low <= 0x401)
        return false;
    *out = d->is_negative ? -(double)v : (double)v;
    return true;
#else
    (void)powers;
    return false;
#endif
}

const char *cairn_scan_real(const char *text, double *out)
{
    struct decimal d;
    const char *end = scan_decimal(text, &d);
    if (end && !round_decimal(&d, out))
        *out = strtod(text, NULL);
    return end;
}

bool cairn_parse_pair(const char *line, char *name, size_t size, uint64_t *out)
{
    size_t len = strcspn(line, "\r\n"), key = strcspn(line, " ");
    uint64_t v;
    if (key == 0 || key >= size || key + 1 >= len || !parse_digits(line + key + 1, len - key - 1, 10, &v))
        return false;
    memcpy(name, line, key);
    name[key] = '\0';
    *out = v;
    return true;
}

/* Suffixes of pre-releases: 6.18.0-rc6, 2.12.0a0, 2.14.0.dev20260901, 0.50.0b1. */
static bool is_pre_release(const char *tail)
{
    static const char *const marks[] = { "-rc", "rc", "a", "b", ".dev", "dev", "-alpha", "-beta" };
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (str_starts(tail, marks[i]))
            return true;
    return false;
}

bool version_parse(const char *text, struct version *out)
{
    struct version v = { 0 };
    const char *p = text + (*text == 'v');
    for (;;) {
        size_t n = strspn(p, "0123456789");
        uint64_t part;
        if (n > 9 || !parse_digits(p, n, 10, &part))
            return false;
        v.part[v.n++] = (int)part;
        p += n;
        if (v.n == 3 || *p != '.' || digit_value(p[1]) > 9)
            break;
        p++;
    }
    v.pre = is_pre_release(p);
    *out = v;
    return true;
}

int version_compare(struct version a, struct version b)
{
    if (!a.n || !b.n)
        return (a.n != 0) - (b.n != 0);
    for (int i = 0; i < 3; i++)
        if (a.part[i] != b.part[i])
            return a.part[i] < b.part[i] ? -1 : 1;
    return (int)b.pre - (int)a.pre;
}

bool version_at_least(struct version v, int major, int minor, int patch)
{
    return v.n && version_compare(v, (struct version){ 3, { major, minor, patch }, false }) >= 0;
}

bool version_below(struct version v, int major, int minor, int patch)
{
    return v.n && !version_at_least(v, major, minor, patch);
}
