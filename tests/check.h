/* SPDX-License-Identifier: Apache-2.0
 * A test prints TAP: one line a test function, with the failed checks as comments above it.
 *
 *     static void adds_two(void) { CHECK_INT(1 + 1, 2); }
 *     int main(void) { RUN(adds_two); return check_done(); }
 *
 * A failed check does not end its function; REQUIRE does, and SKIP, which says why it can not be tried here. */
#ifndef CAIRN_TESTS_CHECK_H
#define CAIRN_TESTS_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_count, check_failed, check_bad_here;
static const char *check_skipped; /* why, or NULL */

#define CHECK_FAIL_(...)                         \
    do {                                         \
        check_bad_here++;                        \
        printf("# %s:%d: ", __FILE__, __LINE__); \
        printf(__VA_ARGS__);                     \
        putchar('\n');                           \
    } while (0)

#define CHECK(cond)                   \
    do {                              \
        if (!(cond))                  \
            CHECK_FAIL_("%s", #cond); \
    } while (0)

#define REQUIRE(cond)                 \
    do {                              \
        if (!(cond)) {                \
            CHECK_FAIL_("%s", #cond); \
            return;                   \
        }                             \
    } while (0)

#define SKIP(why)            \
    do {                     \
        check_skipped = why; \
        return;              \
    } while (0)

#define CHECK_INT(got, want)                                                    \
    do {                                                                        \
        int64_t got_ = (int64_t)(got), want_ = (int64_t)(want);                 \
        if (got_ != want_)                                                      \
            CHECK_FAIL_("%s is %" PRId64 ", want %" PRId64, #got, got_, want_); \
    } while (0)

#define CHECK_STR(got, want)                                                       \
    do {                                                                           \
        const char *got_ = (got), *want_ = (want);                                 \
        if (!got_ || !want_ ? got_ != want_ : strcmp(got_, want_) != 0)            \
            CHECK_FAIL_("%s is \"%s\", want \"%s\"", #got, got_ ? got_ : "(null)", \
                        want_ ? want_ : "(null)");                                 \
    } while (0)

#define CHECK_HAS(text, part)                                                                       \
    do {                                                                                            \
        const char *text_ = (text), *part_ = (part);                                                \
        if (!text_ || !strstr(text_, part_))                                                        \
            CHECK_FAIL_("%s is \"%s\", want \"%s\" in it", #text, text_ ? text_ : "(null)", part_); \
    } while (0)

static void check_run_(const char *name, void (*fn)(void))
{
    check_bad_here = 0;
    check_skipped = NULL;
    fn();
    check_count++;
    check_failed += check_bad_here != 0;
    printf("%sok %d - %s%s%s\n", check_bad_here ? "not " : "", check_count, name,
           check_skipped ? " # SKIP " : "", check_skipped ? check_skipped : "");
    fflush(stdout);
}
#define RUN(fn) check_run_(#fn, fn)

static inline int check_done(void)
{
    printf("1..%d\n", check_count);
    return check_failed != 0;
}

/* A path below tests/data; the buffer is reused by the next call but three. */
static inline const char *check_data(const char *relative)
{
    static char buf[4][4096];
    static int turn;
    const char *dir = getenv("CAIRN_TEST_DATA");
    char *out = buf[turn++ % 4];
    snprintf(out, sizeof(buf[0]), "%s/%s", dir ? dir : "tests/data", relative);
    return out;
}

#endif
