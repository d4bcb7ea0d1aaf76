/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/crc32.h"

#include "check.h"
#include <stdlib.h>
#include <string.h>

static unsigned char bytes[3000];

static void the_sum_is_that_of_zip(void)
{
    CHECK_INT(crc32_add(0, "123456789", 9), 0xcbf43926);
    CHECK_INT(crc32_add_plain(0, "123456789", 9), 0xcbf43926);
    CHECK_INT(crc32_add(0, "", 0), 0);
}

static void every_length_and_start_gives_the_plain_sum(void)
{
    for (size_t n = 0; n < 700; n++)
        for (size_t at = 0; at < 3; at++) {
            uint32_t crc = (uint32_t)(n * 2654435761u);
            if (crc32_add(crc, bytes + at, n) != crc32_add_plain(crc, bytes + at, n))
                CHECK_FAIL_("%zu bytes from %zu", n, at);
        }
}

static void parts_join(void)
{
    uint32_t whole = crc32_add(0, bytes, sizeof(bytes));
    for (size_t n = 0; n <= sizeof(bytes); n += 37) {
        uint32_t first = crc32_add(0, bytes, n), second = crc32_add(0, bytes + n, sizeof(bytes) - n);
        CHECK(crc32_join(first, second, sizeof(bytes) - n) == whole);
        CHECK(crc32_add(first, bytes + n, sizeof(bytes) - n) == whole);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)((i * i * 40503u) >> 7);
    RUN(the_sum_is_that_of_zip);
    RUN(every_length_and_start_gives_the_plain_sum);
    RUN(parts_join);
    return check_done();
}
