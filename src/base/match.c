/* SPDX-License-Identifier: Apache-2.0 */
#include "base/match.h"

#include <stdlib.h>
#include <string.h>

/* Each string is known by four of its bytes, the least common ones.  A bit tells whether a hash of four bytes belongs to
 * any string: 8 KiB, which stay in the first cache.  Only where it is set are the strings compared. */
enum { WINDOW = 4, HASH_BITS = 16, HASHES = 1 << HASH_BITS };

struct entry {
    const char *s;
    uint16_t len, offset; /* of the window */
    uint16_t next;        /* index + 1 in the chain of one hash */
};

struct match_set {
    uint64_t bits[HASHES / 64];
    uint16_t head[HASHES]; /* index + 1; 0: none */
    struct entry entries[];
};

static uint32_t hash_at(const char *p)
{
    uint32_t v;
    memcpy(&v, p, WINDOW);
    return (v * 2654435761u) >> (32 - HASH_BITS);
}

/* How much a byte tells: logs are full of small letters, digits, spaces and dots. */
static int weight(unsigned char c)
{
    if (strchr(" etaoinsrlcdu0123456789./-", c))
        return 1;
    return c >= 'a' && c <= 'z' ? 3 : 6;
}

static uint16_t best_window(const char *s, size_t len)
{
    size_t best = 0;
    int most = -1;
    for (size_t i = 0; i + WINDOW <= len; i++) {
        int sum = 0;
        for (size_t k = 0; k < WINDOW; k++)
            sum += weight((unsigned char)s[i + k]);
        if (sum > most) {
            most = sum;
            best = i;
        }
    }
    return (uint16_t)best;
}

static void add_entry(struct match_set *m, size_t i, const char *s, size_t len)
{
    uint16_t offset = best_window(s, len);
    uint32_t h = hash_at(s + offset);
    m->entries[i] = (struct entry){ s, (uint16_t)len, offset, m->head[h] };
    m->head[h] = (uint16_t)(i + 1);
    m->bits[h / 64] |= (uint64_t)1 << h % 64;
}

int match_set_new(const char *const *strings, size_t n, struct match_set **out, struct cairn_error *err)
{
    if (n > MATCH_MOST)
        return cairn_fail(err, CAIRN_EUSAGE, "%zu strings to look for at once, at most %d", n, MATCH_MOST);
    struct match_set *m = calloc(1, sizeof(*m) + n * sizeof(m->entries[0]));
    if (!m)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu strings to look for", n);
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(strings[i]);
        if (len < MATCH_SHORTEST || len > UINT16_MAX) {
            match_set_free(m);
            return cairn_fail(err, CAIRN_EUSAGE, "\"%s\" is too short or too long to look for", strings[i]);
        }
        add_entry(m, i, strings[i], len);
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
        if (!memcmp(text + at - e->offset, e->s, e->len))
            found(to, i - 1, at - e->offset);
    }
}

void match_set_find(const struct match_set *m, const char *text, size_t n,
                    void (*found)(void *to, size_t index, size_t at), void *to)
{
    for (size_t i = 0; i + WINDOW <= n; i++) {
        uint32_t h = hash_at(text + i);
        if (__builtin_expect(m->bits[h / 64] >> h % 64 & 1, 0))
            compare_at(m, h, text, n, i, found, to);
    }
}
