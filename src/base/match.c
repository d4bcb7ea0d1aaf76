/* SPDX-License-Identifier: Apache-2.0 */
#include "base/match.h"

#include <ctype.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Each string is indexed by two windows of three bytes, one byte apart, chosen where it is most distinctive.
 * Wherever the string is in the text, one of the two starts at an even offset, so only every other offset is
 * tested.  A bitmap says whether a window's hash belongs to any string: 8 KiB, which stay in the L1 cache.
 * Strings are compared only where the bit is set.
 *
 * The hash ignores case: bit 5 of each byte is set first, which folds letters, and some other bytes that the
 * comparison distinguishes.  It would distinguish quotes, so no window contains one. */
enum { WINDOW = 3, STRIDE = 2, HASH_BITS = 16, HASHES = 1 << HASH_BITS };

struct entry {
    const char *s;
    uint16_t len, offset; /* of the window */
    uint16_t next;        /* index + 1 in the chain of one hash */
};

struct match_set {
    uint64_t bits[HASHES / 64];
    uint16_t head[HASHES];  /* index + 1; 0: none */
    struct entry entries[]; /* STRIDE for each string */
};

/* Hash of the first three bytes; ignores the fourth. */
static uint32_t hash_of(uint32_t little_endian)
{
    return (((little_endian | 0x20202020u) << 8) * 2654435761u) >> (32 - HASH_BITS);
}

static bool is_quote(char c)
{
    return c == '\'' || c == '"' || c == '`';
}

/* Folds the case of ASCII letters, and all quotes to one. */
static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : is_quote(c) ? '\'' : c;
}

static bool is_same(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && fold(a[i]) != fold(b[i]))
            return false;
    return true;
}

static uint32_t hash_at(const char *p)
{
    uint32_t v = 0;
    memcpy(&v, p, WINDOW);
    return hash_of(le32toh(v));
}

/* How distinctive a byte is: logs are full of letters, digits, spaces and dots. */
static void fill_weights(int8_t weights[256])
{
    static const char common[] = " etaoinsrlcdu0123456789./-";
    for (int c = 0; c < 256; c++)
        weights[c] = is_quote((char)c)                ? INT8_MIN
                     : strchr(common, fold((char)c))  ? 1
                     : isalpha((unsigned char)c) != 0 ? 3
                                                      : 6;
}

/* The offset where both windows are most distinctive; len: none is without a quote. */
static size_t best_offset(const int8_t weights[256], const char *s, size_t len)
{
    size_t best = len;
    int most = 0;
    for (size_t i = 0; i + WINDOW + STRIDE - 1 <= len; i++) {
        int sum = 0;
        for (size_t k = 0; k < WINDOW + STRIDE - 1; k++)
            sum += weights[(unsigned char)s[i + k]];
        if (sum > most) {
            most = sum;
            best = i;
        }
    }
    return best;
}

static void add_string(struct match_set *m, size_t i, const char *s, size_t len, size_t offset)
{
    for (size_t k = 0; k < STRIDE; k++) {
        size_t e = i * STRIDE + k;
        uint32_t h = hash_at(s + offset + k);
        m->entries[e] = (struct entry){ s, (uint16_t)len, (uint16_t)(offset + k), m->head[h] };
        m->head[h] = (uint16_t)(e + 1);
        m->bits[h / 64] |= (uint64_t)1 << h % 64;
    }
}

int match_set_new(const char *const *strings, size_t n, struct match_set **out, struct cairn_error *err)
{
    if (n > MATCH_MOST)
        return cairn_fail(err, CAIRN_EUSAGE, "cannot search for %zu strings at once, at most for %d", n,
                          MATCH_MOST);
    struct match_set *m = calloc(1, sizeof(*m) + n * STRIDE * sizeof(m->entries[0]));
    if (!m)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to search for %zu strings", n);
    int8_t weights[256];
    fill_weights(weights);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(strings[i]), offset = best_offset(weights, strings[i], len);
        if (offset == len || len > UINT16_MAX) {
            match_set_free(m);
            return cairn_fail(err, CAIRN_EUSAGE, "\"%s\" is too short or too long to search for", strings[i]);
        }
        add_string(m, i, strings[i], len, offset);
    }
    *out = m;
    return 0;
}

void match_set_free(struct match_set *m)
{
    free(m);
}

static void compare_at(const struct match_set *m, uint32_t h, const char *text, size_t n, size_t at,
                       void (*found)(void *to, size_t index, size_t at), void *to)
{
    for (size_t i = m->head[h]; i; i = m->entries[i - 1].next) {
        const struct entry *e = &m->entries[i - 1];
        if (at < e->offset || n - (at - e->offset) < e->len)
            continue;
        const char *start = text + at - e->offset;
        if (is_same(start, e->s, e->len))
            found(to, (i - 1) / STRIDE, at - e->offset);
    }
}

void match_set_find(const struct match_set *m, const char *text, size_t n,
                    void (*found)(void *to, size_t index, size_t at), void *to)
{
    size_t i = 0;
    for (; i + sizeof(uint32_t) <= n; i += STRIDE) {
        uint32_t v;
        memcpy(&v, text + i, sizeof(v));
        uint32_t h = hash_of(le32toh(v));
        if (__builtin_expect(m->bits[h / 64] >> h % 64 & 1, 0))
            compare_at(m, h, text, n, i, found, to);
    }
    if (i + WINDOW <= n)
        compare_at(m, hash_at(text + i), text, n, i, found, to);
}

/* Where the string occurs with this first byte; NULL: nowhere. */
static const char *find_with(const char *text, size_t n, char first, const char *s, size_t len)
{
    const char *end = text + (n - len) + 1;
    for (const char *p = text; (p = memchr(p, first, (size_t)(end - p))); p++)
        if (is_same(p, s, len))
            return p;
    return NULL;
}

/* One search per spelling of the first byte: memchr is far faster than a loop that folds each byte. */
static const char *find_one(const char *text, size_t n, const char *s, size_t len)
{
    char small = fold(*s), large = (char)(small >= 'a' && small <= 'z' ? small - 0x20 : '\0');
    const char letter[] = { small, large, '\0' };
    const char *best = NULL;
    for (const char *first = is_quote(*s) ? "'\"`" : letter; len && len <= n && *first; first++) {
        const char *at = find_with(text, n, *first, s, len);
        if (at) { /* only an earlier one with the other spelling is better */
            best = at;
            n = (size_t)(at - text) + len - 1;
        }
    }
    return best;
}

const char *match_find(const char *text, size_t n, const char *s)
{
    return *s ? find_one(text, n, s, strlen(s)) : text;
}

bool match_any(const char *text, size_t n, const char *alternatives)
{
    for (const char *p = alternatives; *p;) {
        size_t len = strcspn(p, "|");
        if (find_one(text, n, p, len))
            return true;
        p += len + (p[len] == '|');
    }
    return false;
}
