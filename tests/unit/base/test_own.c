/* SPDX-License-Identifier: Apache-2.0 */
#include "base/own.h"

#include "check.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct tree tree;
enum { NOBODY = 65534 };

/* A folder that is not ours: root gives one away, others take one of root's. */
static const char *foreign(const char *name)
{
    static char path[PATH_MAX];
    if (geteuid())
        return "/usr";
    snprintf(path, sizeof(path), "%s", tree_path(&tree, name));
    if (mkdir(path, 0777) || chown(path, NOBODY, NOBODY))
        abort();
    return path;
}

static int mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : (int)(st.st_mode & 07777);
}

static int open_and_close(const char *root, const char *below, bool make, struct cairn_error *err)
{
    struct own_dir d;
    int r = own_dir_open(&d, PLACE_CACHE, root, below, make, err);
    own_dir_close(&d);
    return r;
}

static void follows_the_variables(void)
{
    struct arena a = { 0 };
    struct cairn_error err = { 0 };
    const char *const env[] = { "HOME=/home/me", "XDG_CACHE_HOME=/big", NULL }, *const none[] = { NULL };
    const char *path;
    CHECK(!own_path(PLACE_CACHE, env, &a, &path, &err));
    CHECK_STR(path, "/big/cairn");
    CHECK(!own_path(PLACE_STATE, env, &a, &path, &err));
    CHECK_STR(path, "/home/me/.local/state/cairn");
    CHECK(own_path(PLACE_STATE, none, &a, &path, &err) == -1);
    CHECK_HAS(err.msg, "XDG_STATE_HOME");
    arena_release(&a);
}

static void makes_what_only_the_user_may_enter(void)
{
    struct cairn_error err = { 0 };
    const char *root = tree_path(&tree, "made/deep/cairn");
    mode_t before = umask(0);
    CHECK(open_and_close(root, "kernels", false, &err) == -1);
    CHECK_INT(errno, ENOENT);
    CHECK(!own_check(PLACE_CACHE, root, &err)); /* it could be made */
    CHECK(!open_and_close(root, "kernels", true, &err));
    umask(before);
    CHECK_INT(mode_of(root), 0700);
    CHECK_INT(mode_of(tree_path(&tree, "made/deep/cairn/kernels")), 0700);
}

static void takes_back_what_others_may_write_to(void)
{
    struct cairn_error err = { 0 };
    const char *root = tree_path(&tree, "wide/cairn");
    CHECK(!mkdir(root, 0700) && !chmod(root, 0775));
    CHECK(!open_and_close(root, "kernels", true, &err));
    CHECK_INT(mode_of(root), 0755);
}

static void refuses_a_folder_of_another(void)
{
    struct cairn_error err = { 0 };
    const char *root = foreign("theirs");
    CHECK(own_check(PLACE_STATE, root, &err) == -1);
    CHECK_HAS(err.msg, "uid");
    CHECK_HAS(err.hint, "XDG_STATE_HOME");
    CHECK(open_and_close(root, NULL, true, &err) == -1);
    if (geteuid() == 0) /* nor in a folder of another, where root could make one */
        CHECK(own_check(PLACE_STATE, tree_path(&tree, "theirs/cairn"), &err) == -1);
}

static void where_none_can_be_made_the_variable_is_named(void)
{
    struct cairn_error err = { 0 };
    tree_put(&tree, "file", "");
    CHECK(open_and_close(tree_path(&tree, "file/cairn"), NULL, true, &err) == -1);
    CHECK_HAS(err.msg, "file");
    CHECK_HAS(err.hint, "XDG_");
    CHECK_INT(errno, ENOTDIR);
    if (geteuid() == 0)
        return;
    CHECK(!mkdir(tree_path(&tree, "closed"), 0500));
    CHECK(open_and_close(tree_path(&tree, "closed/cairn"), NULL, true, &err) == -1);
    CHECK_HAS(err.hint, "XDG_");
    CHECK_INT(errno, EACCES);
}

static void follows_no_link(void)
{
    struct cairn_error err = { 0 };
    tree_put(&tree, "aside/cairn/runs/x", "");
    tree_link(&tree, "linked", tree_path(&tree, "aside/cairn"));
    CHECK(open_and_close(tree_path(&tree, "linked"), NULL, false, &err) == -1);
    CHECK_HAS(err.msg, "linked is a symbolic link");
    tree_link(&tree, "aside/cairn/kernels", "runs");
    CHECK(open_and_close(tree_path(&tree, "aside/cairn"), "kernels", true, &err) == -1);
}

static void a_new_folder_is_new(void)
{
    struct cairn_error err = { 0 };
    struct own_dir d, one, other;
    REQUIRE(!own_dir_open(&d, PLACE_STATE, tree_path(&tree, "runs/cairn"), NULL, true, &err));
    CHECK(!own_dir_make(&one, &d, "a", &err));
    CHECK(own_dir_make(&other, &d, "a", &err) == -1);
    CHECK_INT(errno, EEXIST);
    own_dir_close(&other);
    CHECK(!own_dir_enter(&other, &d, "a", &err));
    CHECK_STR(other.path, one.path);
    own_dir_close(&other);
    CHECK(own_dir_enter(&other, &d, "b", &err) == -1 && errno == ENOENT && other.fd == -1);
    tree_link(&tree, "runs/cairn/link", "a");
    CHECK(own_dir_enter(&other, &d, "link", &err) == -1);
    CHECK_HAS(err.msg, "symbolic link");
    own_dir_close(&one);
    own_dir_close(&d);
}

static void files_are_ours_and_no_links(void)
{
    struct cairn_error err = { 0 };
    struct own_dir d;
    int fd = -1;
    REQUIRE(!own_dir_open(&d, PLACE_STATE, tree_path(&tree, "files/cairn"), NULL, true, &err));
    CHECK(own_file_open(&d, "a", OS_READ, &fd, &err) == -1);
    CHECK_INT(errno, ENOENT);
    CHECK(!own_file_write(&d, "a", "text", 4, &err));
    CHECK(!own_file_open(&d, "a", OS_READ, &fd, &err));
    close(fd);
    tree_put(&tree, "files/target", "kept");
    tree_link(&tree, "files/cairn/b", "../target");
    CHECK(own_file_open(&d, "b", OS_WRITE | OS_CREATE | OS_TRUNCATE, &fd, &err) == -1);
    CHECK(!own_file_write(&d, "b", "new", 3, &err)); /* the link is replaced */
    CHECK(!link(tree_path(&tree, "files/target"), tree_path(&tree, "files/cairn/c")));
    CHECK(own_file_open(&d, "c", OS_APPEND, &fd, &err) == -1);
    struct stat st;
    CHECK(!stat(tree_path(&tree, "files/target"), &st) && st.st_size == 4);
    REQUIRE(!mkfifo(tree_path(&tree, "files/cairn/pipe"), 0600));
    CHECK(own_file_open(&d, "pipe", OS_READ, &fd, &err) == -1);
    if (geteuid() == 0) {
        tree_put(&tree, "files/cairn/planted", "x");
        CHECK(!chown(tree_path(&tree, "files/cairn/planted"), NOBODY, NOBODY));
        CHECK(own_file_open(&d, "planted", OS_READ, &fd, &err) == -1);
    }
    own_dir_close(&d);
}

int main(void)
{
    tree_make(&tree);
    RUN(follows_the_variables);
    RUN(makes_what_only_the_user_may_enter);
    RUN(takes_back_what_others_may_write_to);
    RUN(refuses_a_folder_of_another);
    RUN(where_none_can_be_made_the_variable_is_named);
    RUN(follows_no_link);
    RUN(a_new_folder_is_new);
    RUN(files_are_ours_and_no_links);
    tree_remove(&tree);
    return check_done();
}
