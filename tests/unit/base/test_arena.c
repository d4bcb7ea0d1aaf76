/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "check.h"

static void empty_arena_releases(void)
{
    struct arena a = { 0 };
    arena_release(&a);
    CHECK(a.last == NULL);
    arena_release(&a); /* again: still empty */
    CHECK(a.last == NULL);
}

static bool is_zero(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static void memory_is_zeroed_and_aligned(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t size = 0; size < 3000; size += 7) {
        unsigned char *p = arena_alloc(&a, size);
        CHECK_INT((uintptr_t)p % _Alignof(max_align_t), 0);
        CHECK(is_zero(p, size));
        memset(p, 0xee, size); /* what follows must not be handed out with this in it */
    }
}

static void pieces_do_not_overlap(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    enum { N = 500 };
    unsigned char *piece[N];
    for (int i = 0; i < N; i++) {
        piece[i] = arena_alloc(&a, (size_t)i);
        memset(piece[i], i & 0xff, (size_t)i);
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < i; k++)
            if (piece[i][k] != (i & 0xff)) {
                CHECK_INT(piece[i][k], i & 0xff);
                return;
            }
}

static void larger_than_a_block(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    enum { BIG = 1 << 20 };
    char *before = arena_strdup(&a, "before");
    unsigned char *big = arena_alloc(&a, BIG);
    CHECK(is_zero(big, BIG));
    memset(big, 0xff, BIG);
    char *after = arena_strdup(&a, "after");
    CHECK_STR(before, "before");
    CHECK_STR(after, "after");
    CHECK_INT(big[BIG - 1], 0xff);
}

static void copies_text(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    char text[] = "gfx1151";
    char *copy = arena_strdup(&a, text), *part = arena_strndup(&a, text, 3);
    text[0] = 'X';
    CHECK_STR(copy, "gfx1151");
    CHECK_STR(part, "gfx");
    CHECK(arena_strdup(&a, NULL) == NULL);
    CHECK_STR(arena_strdup(&a, ""), "");
    CHECK_STR(arena_strndup(&a, "abc", 0), "");
}

static void prints_text_of_any_length(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CHECK_STR(arena_printf(&a, "%s-%d", "node", 7), "node-7");
    CHECK_STR(arena_printf(&a, "%s", ""), "");
    char *wide = arena_printf(&a, "%*d", 100000, 5);
    CHECK_INT(strlen(wide), 100000);
    CHECK_INT(wide[99999], '5');
}

struct pair {
    int index;
    const char *name;
};

static void array_grows_and_keeps(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct pair *items = NULL;
    size_t n = 0;
    for (int i = 0; i < 1000; i++) {
        struct pair *p = ARENA_PUSH(&a, items, n);
        REQUIRE(p == &items[i]);
        CHECK(p->index == 0 && p->name == NULL); /* a new element is zeroed */
        *p = (struct pair){ i, "x" };
    }
    CHECK_INT(n, 1000);
    for (int i = 0; i < 1000; i++)
        CHECK(items[i].index == i && items[i].name);
}

/* Two arrays that grow in turn must not write into each other. */
static void arrays_grow_side_by_side(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    int *even = NULL, *odd = NULL;
    size_t n_even = 0, n_odd = 0;
    for (int i = 0; i < 300; i++)
        if (i % 2)
            *ARENA_PUSH(&a, odd, n_odd) = i;
        else
            *ARENA_PUSH(&a, even, n_even) = i;
    CHECK_INT(n_even, 150);
    CHECK_INT(n_odd, 150);
    for (int i = 0; i < 150; i++)
        CHECK(even[i] == 2 * i && odd[i] == 2 * i + 1);
}

static void release_leaves_a_usable_arena(void)
{
    struct arena a = { 0 };
    arena_alloc(&a, 100000);
    arena_release(&a);
    CHECK(a.last == NULL);
    CHECK_STR(arena_strdup(&a, "again"), "again");
    arena_release(&a);
}

int main(void)
{
    RUN(empty_arena_releases);
    RUN(memory_is_zeroed_and_aligned);
    RUN(pieces_do_not_overlap);
    RUN(larger_than_a_block);
    RUN(copies_text);
    RUN(prints_text_of_any_length);
    RUN(array_grows_and_keeps);
    RUN(arrays_grow_side_by_side);
    RUN(release_leaves_a_usable_arena);
    return check_done();
}
