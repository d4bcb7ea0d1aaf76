/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/id_index.h"

#include "check.h"

static void every_number_has_its_places_in_order(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    static const int ids[] = { 4, 0, 4, 2, 0, 4 }, want_ids[] = { 0, 2, 4 }, first[] = { 0, 2, 3, 6 },
                     members[] = { 1, 4, 3, 0, 2, 5 };
    struct id_index lists;
    struct cairn_error err = { 0 };
    REQUIRE(id_index_build(&a, ids, ARRAY_LEN(ids), 5, &lists, &err) == 0);
    REQUIRE(lists.n == ARRAY_LEN(want_ids));
    CHECK(!memcmp(lists.ids, want_ids, sizeof(want_ids)));
    CHECK(!memcmp(lists.first, first, sizeof(first)));
    CHECK(!memcmp(lists.members, members, sizeof(members)));
}

static void nothing_gives_no_lists(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct id_index lists;
    struct cairn_error err = { 0 };
    REQUIRE(id_index_build(&a, NULL, 0, 5, &lists, &err) == 0);
    CHECK_INT(lists.n, 0);
    CHECK_INT(lists.first[0], 0);
}

static void a_number_outside_of_the_table_is_named(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    static const int wrong[] = { -1, 5 };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        int ids[] = { 0, wrong[i] };
        struct id_index lists;
        struct cairn_error err = { 0 };
        CHECK_INT(id_index_build(&a, ids, 2, 5, &lists, &err), -1);
        CHECK_HAS(err.msg, wrong[i] < 0 ? "id 1 is -1" : "id 1 is 5");
    }
}

int main(void)
{
    RUN(every_number_has_its_places_in_order);
    RUN(nothing_gives_no_lists);
    RUN(a_number_outside_of_the_table_is_named);
    return check_done();
}
