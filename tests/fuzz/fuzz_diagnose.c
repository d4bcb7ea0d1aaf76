/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a log, in two pieces, with any exit status: no crash, and an answer that is whole. */
#include "rules/diagnose.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"
#include <string.h>

static void check_answer(const struct diagnosis *d)
{
    FUZZ_REQUIRE(d->class_id && d->cause && *d->cause);
    FUZZ_REQUIRE(d->confidence >= 0 && d->confidence <= 1);
    for (size_t i = 0; i < d->n_evidence; i++)
        FUZZ_REQUIRE(d->evidence[i].line &&
                     str_clean_span(d->evidence[i].text, strlen(d->evidence[i].text)) ==
                         strlen(d->evidence[i].text));
    for (size_t i = 0; i < d->n_fixes; i++)
        FUZZ_REQUIRE(d->fixes[i].text && *d->fixes[i].text);
    for (size_t i = 0; i < d->n_also; i++)
        FUZZ_REQUIRE(!str_eq(d->also[i].class_id, d->class_id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t codes[] = { -1, 0, 1, 134, 137, 139, 3221225477 };
    static const char *const chips[] = { NULL, "gfx1031", "gfx1100+gfx1036", "gfx120X" };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct diagnoser *d = NULL;
    struct diagnosis out;
    unsigned choice = size ? data[0] : 0;
    const struct diagnose_context ctx = {
        .gfx = chips[choice / 8 % ARRAY_LEN(chips)],
        .exit_code = codes[choice % ARRAY_LEN(codes)],
        .hung = choice & 64,
    };
    FUZZ_REQUIRE(!diagnoser_new(&d, &err));
    /* Copies of the exact size, so that a look past the end is seen. */
    size_t half = size / 2;
    CLEANUP(mem_free) char *first = fuzz_text(data, half), *second = fuzz_text(data + half, size - half);
    diagnoser_feed(d, first, half);
    if (choice & 128)
        diagnoser_mark_file(d, "other");
    diagnoser_feed(d, second, size - half);
    diagnoser_finish(d, &ctx, &a, &out);
    check_answer(&out);
    diagnoser_free(d);
    return 0;
}
