/* SPDX-License-Identifier: Apache-2.0 */
#include "run/optimizer.h"

#include "check.h"
#include "scratch.h"

static void replaces_only_what_it_knows(void)
{
    struct arena a = { 0 };
    struct optimizer_change c = optimizer_replace(scratch_command("t --optimizer_type adamw8bit --lr 1"), &a);
    REQUIRE(c.argv);
    CHECK_STR(c.argv[2], "AdamW");
    CHECK_STR(c.argv[3], "--lr");
    CHECK_HAS(c.text, "instead of adamw8bit");
    c = optimizer_replace(scratch_command("t --optim=paged_adamw_8bit"), &a);
    REQUIRE(c.argv);
    CHECK_STR(c.argv[1], "--optim=adamw_torch");
    c = optimizer_replace(scratch_command("t --use_8bit_adam --lr 1"), &a);
    REQUIRE(c.argv);
    CHECK_STR(c.argv[1], "--lr");
    CHECK(optimizer_replace(scratch_command("t --optimizer_type AdamW"), &a).argv == NULL);
    arena_release(&a);
}

int main(void)
{
    RUN(replaces_only_what_it_knows);
    return check_done();
}
