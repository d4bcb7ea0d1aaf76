/* SPDX-License-Identifier: Apache-2.0
 * Walking folders. */
#include "base/cleanup.h"
#include "os/fault.h"
#include "check.h"
#include "tensor/find.h"
#include "tree.h"
#include <errno.h>

static void make(struct tree *t)
{
    tree_make(t);
    tree_put(t, "c/10.safetensors", "x");
    tree_put(t, "c/9.safetensors", "xy");
    tree_put(t, "c/deep/er/a.pth", "x");
    tree_put(t, "c/b.pt", "x");
    tree_put(t, "c/model.safetensors.index.json", "{}");
    tree_put(t, "c/notes.txt", "x");
    tree_put(t, "elsewhere/far.safetensors", "x");
    tree_link(t, "c/link.safetensors", "../elsewhere/far.safetensors");
    tree_link(t, "c/loop", "..");
    tree_link(t, "c/dangling.safetensors", "nowhere");
}

static void folders_are_walked_in_natural_order(void)
{
    static const char *const want[] = { "9.safetensors",
                                        "10.safetensors",
                                        "b.pt",
                                        "dangling.safetensors",
                                        "deep/er/a.pth",
                                        "link.safetensors",
                                        "model.safetensors.index.json" };
    struct tree t;
    struct arena a = { 0 };
    struct found_files f = { 0 };
    make(&t);
    const char *dir = tree_path(&t, "c");
    find_tensor_files(dir, &a, &f);
    CHECK_INT(f.n, ARRAY_LEN(want));
    for (size_t i = 0; i < f.n && i < ARRAY_LEN(want); i++) {
        CHECK_STR(f.file[i].path + strlen(dir) + 1, want[i]);
        CHECK(!f.file[i].named);
        CHECK((f.file[i].error != NULL) == (i == 3));
    }
    CHECK_INT(f.file[0].bytes, 2);
    arena_release(&a);
    tree_remove(&t);
}

static void a_named_file_is_taken_as_it_is(void)
{
    struct tree t;
    struct arena a = { 0 };
    struct found_files f = { 0 };
    make(&t);
    find_tensor_files(tree_path(&t, "c/notes.txt"), &a, &f);
    find_tensor_files(tree_path(&t, "c/no-such"), &a, &f);
    CHECK_INT(f.n, 2);
    CHECK(f.file[0].named && !f.file[0].error && f.file[1].named);
    CHECK_HAS(f.file[1].error, "No such file");
    arena_release(&a);
    tree_remove(&t);
}

static void a_failing_call_is_told_not_hidden(void)
{
    struct tree t;
    make(&t);
    int nth = 1;
    for (;; nth++) {
        struct arena a = { 0 };
        struct found_files f = { 0 };
        size_t errors = 0;
        fault_arm(nth, EIO);
        find_tensor_files(tree_path(&t, "c"), &a, &f);
        bool hit = fault_disarm();
        for (size_t i = 0; i < f.n; i++)
            errors += f.file[i].error && strstr(f.file[i].error, "Input/output error");
        CHECK_INT(errors, hit);
        arena_release(&a);
        if (!hit)
            break;
    }
    CHECK(nth > 20);
    tree_remove(&t);
}

int main(void)
{
    RUN(folders_are_walked_in_natural_order);
    RUN(a_named_file_is_taken_as_it_is);
    RUN(a_failing_call_is_told_not_hidden);
    return check_done();
}
