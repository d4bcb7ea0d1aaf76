/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"
#include "host/root.h"
#include "tree.h"
#include <errno.h>

static struct tree tree;
static struct root root;
static struct arena arena;

static void reads_text_and_cuts_the_end(void)
{
    tree_put(&tree, "sys/a", "  12 \n\n");
    size_t len;
    CHECK_STR(root_read(&root, &arena, "/sys/a", &len), "  12");
    CHECK_INT(len, 4);
    CHECK(!root_read(&root, &arena, "/sys/none", NULL) && errno == ENOENT);
    CHECK(!root_read(&root, &arena, "/sys", NULL) && errno == EISDIR);
}

static void keeps_nul_bytes_in_the_length(void)
{
    tree_put_bytes(&tree, "sys/nul", "a\0b", 3);
    size_t len;
    CHECK(root_read(&root, &arena, "/sys/nul", &len));
    CHECK_INT(len, 3);
}

static void bounds_what_it_reads(void)
{
    char *path = tree_path(&tree, "sys/huge");
    FILE *f = fopen(path, "w");
    CHECK(f && !ftruncate(fileno(f), (off_t)10 << 30) && !fclose(f));
    size_t len;
    CHECK(root_read(&root, &arena, "/sys/huge", &len));
    CHECK(len <= ROOT_TEXT_MAX + 4096);
}

static void does_not_wait_for_a_fifo(void)
{
    CHECK(!mkfifo(tree_path(&tree, "sys/fifo"), 0600));
    CHECK(!root_read(&root, &arena, "/sys/fifo", NULL) && errno == EINVAL);
}

static void links_stay_inside(void)
{
    tree_put(&tree, "etc/passwd", "ours");
    tree_link(&tree, "sys/absolute", "/etc/passwd");
    tree_link(&tree, "sys/upwards", "../../../../../../etc/passwd");
    CHECK_STR(root_read(&root, &arena, "/sys/absolute", NULL), "ours");
    CHECK_STR(root_read(&root, &arena, "/sys/upwards", NULL), "ours");
    CHECK_STR(root_resolve(&root, &arena, "/sys/absolute"), "/etc/passwd");
    CHECK_STR(root_link(&root, &arena, "/sys/absolute"), "/etc/passwd");
    CHECK(!root_link(&root, &arena, "/etc/passwd"));
}

static void loops_end(void)
{
    tree_link(&tree, "sys/one", "two");
    tree_link(&tree, "sys/two", "one");
    CHECK(!root_read(&root, &arena, "/sys/one", NULL) && errno == ELOOP);
    CHECK(!root_resolve(&root, &arena, "/sys/one"));
}

static void lists_in_natural_order(void)
{
    tree_put(&tree, "sys/nodes/10/x", "");
    tree_put(&tree, "sys/nodes/2/x", "");
    tree_put(&tree, "sys/nodes/1/x", "");
    char **names;
    size_t n;
    REQUIRE(!root_list(&root, &arena, "/sys/nodes", &names, &n));
    REQUIRE(n == 3);
    CHECK_STR(names[0], "1");
    CHECK_STR(names[1], "2");
    CHECK_STR(names[2], "10");
    CHECK(root_list(&root, &arena, "/sys/none", &names, &n) == -1 && errno == ENOENT);
    size_t unsorted;
    REQUIRE(!root_list(&root, &arena, "/sys/nodes", &names, &n));
    REQUIRE(!root_list_unsorted(&root, &arena, "/sys/nodes", &names, &unsorted));
    CHECK_INT(unsorted, n);
}

static void refuses_what_is_no_directory(void)
{
    struct root r;
    struct cairn_error err = { 0 };
    CHECK_INT(root_open(&r, tree_path(&tree, "sys/a"), &err), -1);
    CHECK_HAS(err.msg, "Not a directory");
    CHECK_INT(root_open(&r, "/no/such/place", &err), -1);
    CHECK_HAS(err.msg, "/no/such/place");
}

int main(void)
{
    struct cairn_error err;
    tree_make(&tree);
    if (root_open(&root, tree.dir, &err))
        return 99;
    RUN(reads_text_and_cuts_the_end);
    RUN(keeps_nul_bytes_in_the_length);
    RUN(bounds_what_it_reads);
    RUN(does_not_wait_for_a_fifo);
    RUN(links_stay_inside);
    RUN(loops_end);
    RUN(lists_in_natural_order);
    RUN(refuses_what_is_no_directory);
    root_close(&root);
    arena_release(&arena);
    tree_remove(&tree);
    return check_done();
}
