/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"
#include "check.h"
#include <string.h>

static void of_text(const char *text, char out[SHA256_TEXT + 1])
{
    struct sha256 h;
    sha256_init(&h);
    sha256_add(&h, text, strlen(text));
    sha256_end_text(&h, out);
}

/* The examples of FIPS 180-4, and what `sha256sum` says. */
static void known_hashes(void)
{
    static const char *const rows[][2] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    char got[SHA256_TEXT + 1];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        of_text(rows[i][0], got);
        CHECK_STR(got, rows[i][1]);
    }
}

static void a_million_letters(void)
{
    struct sha256 h;
    char got[SHA256_TEXT + 1], a[1000];
    memset(a, 'a', sizeof(a));
    sha256_init(&h);
    for (int i = 0; i < 1000; i++)
        sha256_add(&h, a, sizeof(a));
    sha256_end_text(&h, got);
    CHECK_STR(got, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_do_not_matter(void)
{
    unsigned char bytes[300];
    char whole[SHA256_TEXT + 1], got[SHA256_TEXT + 1];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 7);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        struct sha256 one, two;
        sha256_init(&one);
        sha256_init(&two);
        sha256_add(&one, bytes, n);
        sha256_add(&two, bytes, n / 3);
        sha256_add(&two, bytes + n / 3, n - n / 3);
        sha256_end_text(&one, whole);
        sha256_end_text(&two, got);
        CHECK_STR(got, whole);
    }
}

int main(void)
{
    RUN(known_hashes);
    RUN(a_million_letters);
    RUN(pieces_do_not_matter);
    return check_done();
}
