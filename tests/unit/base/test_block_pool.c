/* SPDX-License-Identifier: Apache-2.0 */
#include "base/block_pool.h"

#include "base/thread.h"
#include "check.h"

static void a_block_is_used_again(void)
{
    struct cairn_error err = { 0 };
    struct block_pool s;
    block_pool_init(&s, 100);
    char *a = block_pool_get(&s, &err), *b = block_pool_get(&s, &err);
    REQUIRE(a && b && a != b);
    CHECK((uintptr_t)a % 4096 == 0 && (uintptr_t)b % 4096 == 0);
    memset(a, 1, 100);
    memset(b, 2, 100);
    block_pool_put(&s, a);
    CHECK(block_pool_get(&s, &err) == a);
    block_pool_put(&s, a);
    block_pool_put(&s, b);
    block_pool_close(&s);
    block_pool_close(&(struct block_pool){ .bytes = 0 });
}

static void no_memory_is_told(void)
{
    struct cairn_error err = { 0 };
    struct block_pool s;
    block_pool_init(&s, (size_t)1 << 62);
    CHECK(!block_pool_get(&s, &err));
    CHECK(err.code == CAIRN_ENOMEM);
    block_pool_close(&s);
}

enum { WORDS = 1000 };

/* Nobody else writes to a block that is taken. */
static int fill_and_look(void *context, size_t piece, struct cairn_error *err)
{
    struct block_pool *s = context;
    size_t *block = block_pool_get(s, err);
    if (!block)
        return -1;
    for (size_t i = 0; i < WORDS; i++)
        block[i] = piece;
    for (size_t i = 0; i < WORDS; i++)
        if (block[i] != piece)
            return cairn_fail(err, CAIRN_EFORMAT, "piece %zu has the words of %zu", piece, block[i]);
    block_pool_put(s, block);
    return 0;
}

static void threads_have_their_own(void)
{
    struct cairn_error err = { 0 };
    struct block_pool s;
    block_pool_init(&s, WORDS * sizeof(size_t));
    CHECK(parallel_for(2000, 8, fill_and_look, &s, &err) == 0);
    CHECK_STR(err.msg, "");
    block_pool_close(&s);
}

int main(void)
{
    RUN(a_block_is_used_again);
    RUN(no_memory_is_told);
    RUN(threads_have_their_own);
    return check_done();
}
