/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "check.h"

static void sum(const void *bytes, size_t n, uint64_t out[2])
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, bytes, n);
    hash_end(&h, out);
}

static void pieces_do_not_matter(void)
{
    unsigned char bytes[200];
    uint64_t whole[2], parts[2];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 37);
    for (size_t n = 0; n <= sizeof(bytes); n++)
        for (size_t cut = 0; cut <= n; cut++) {
            struct hash h;
            hash_init(&h);
            hash_add(&h, bytes, cut);
            hash_add(&h, bytes + cut, n - cut);
            hash_end(&h, parts);
            sum(bytes, n, whole);
            REQUIRE(whole[0] == parts[0] && whole[1] == parts[1]);
        }
}

/* Each bit counts, on either half: of 128 result bits about half turn. */
static void every_bit_counts(void)
{
    unsigned char bytes[100] = { 0 };
    uint64_t before[2], after[2];
    sum(bytes, sizeof(bytes), before);
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        sum(bytes, sizeof(bytes), after);
        int turned[2] = { __builtin_popcountll(before[0] ^ after[0]),
                          __builtin_popcountll(before[1] ^ after[1]) };
        REQUIRE(turned[0] > 8 && turned[0] < 56 && turned[1] > 8 && turned[1] < 56);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

static void lengths_count(void)
{
    static const unsigned char zeros[100];
    uint64_t seen[100][2];
    for (size_t n = 0; n < 100; n++) {
        sum(zeros, n, seen[n]);
        for (size_t i = 0; i < n; i++)
            REQUIRE(seen[i][0] != seen[n][0] && seen[i][1] != seen[n][1]);
    }
}

/* Files keep these hashes: they must be the same with every compiler. */
static void known_values(void)
{
    char text[33];
    uint64_t h[2];
    sum("", 0, h);
    hash_text(h, text);
    CHECK_STR(text, "4a11eb1b897b3918b682ab7a00225e6a");
    sum("a heap of stones that somebody has put together", 47, h);
    hash_text(h, text);
    CHECK_STR(text, "3464771cc39357ab5e8405868630d011");
}

static void short_keys(void)
{
    CHECK(hash_bytes("a", 1) != hash_bytes("b", 1) && hash_bytes("", 0) != hash_bytes("\0", 1));
    CHECK(hash_bytes("12345678a", 9) != hash_bytes("12345678b", 9));
}

int main(void)
{
    RUN(pieces_do_not_matter);
    RUN(every_bit_counts);
    RUN(lengths_count);
    RUN(known_values);
    RUN(short_keys);
    return check_done();
}
