/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include "check.h"
#include "os/fault.h"
#include "os/info.h"
#include "os/list.h"
#include "os/path.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

static struct tree tree;

static mode_t mode_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_mode & 07777;
}

static void what_is_opened_is_not_inherited(void)
{
    tree_put(&tree, "plain", "text");
    int fd = os_open(tree_path(&tree, "plain"), OS_READ);
    REQUIRE(fd >= 0);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK_INT(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    close(fd);
    fd = os_open(tree_path(&tree, "plain"), OS_READ | OS_APPEND);
    CHECK_INT(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    CHECK(fcntl(fd, F_GETFL) & O_APPEND);
    close(fd);
    FILE *f = os_stream(tree_path(&tree, "plain"), OS_WRITE | OS_TRUNCATE);
    REQUIRE(f);
    CHECK(fcntl(fileno(f), F_GETFD) & FD_CLOEXEC);
    fclose(f);
}

static void a_new_file_has_its_permissions(void)
{
    mode_t before = umask(022);
    int fd = os_open(tree_path(&tree, "shared"), OS_WRITE | OS_NEW);
    int own = os_open(tree_path(&tree, "private"), OS_WRITE | OS_CREATE | OS_PRIVATE);
    umask(before);
    CHECK_INT(mode_of(tree_path(&tree, "shared")), 0644);
    CHECK_INT(mode_of(tree_path(&tree, "private")), 0600);
    CHECK(os_open(tree_path(&tree, "shared"), OS_WRITE | OS_NEW) == -1 && errno == EEXIST);
    close(fd);
    close(own);
}

static void a_link_is_not_followed_where_that_is_asked(void)
{
    char target[64];
    tree_put(&tree, "to", "text");
    tree_path(&tree, "folder/x");
    CHECK(!os_make_link("to", tree_path(&tree, "link")));
    CHECK(!os_make_link("folder", tree_path(&tree, "folder-link")));
    CHECK(os_open(tree_path(&tree, "link"), OS_READ | OS_NO_LINK) == -1 && errno == ELOOP);
    CHECK(os_open(tree_path(&tree, "folder-link"), OS_READ | OS_FOLDER | OS_NO_LINK) == -1);
    CHECK(!os_list_open(tree_path(&tree, "folder-link"), OS_NO_LINK));
    CHECK(os_open(tree_path(&tree, "to"), OS_READ | OS_FOLDER) == -1 && errno == ENOTDIR);
    CHECK_INT(os_read_link(tree_path(&tree, "link"), target, sizeof(target)), 2);
    CHECK_STR(target, "to");
    CHECK(os_read_link(tree_path(&tree, "link"), target, 2) == -1 && errno == ENAMETOOLONG);
}

static void a_link_does_not_lead_out(void)
{
    tree_put(&tree, "out/secret", "text");
    tree_put(&tree, "in/inner", "text");
    CHECK(!os_make_link("../out/secret", tree_path(&tree, "in/link")));
    int dir = os_open(tree_path(&tree, "in"), OS_PLACE | OS_FOLDER);
    REQUIRE(dir >= 0);
    int fd = os_open_inside(dir, "/inner", OS_READ);
    CHECK(fd >= 0);
    close(fd);
    CHECK(os_open_inside(dir, "link", OS_READ) == -1);
    close(dir);
}

static void a_list_has_no_dots(void)
{
    tree_put(&tree, "list/one", "");
    struct os_list *l = os_list_open(tree_path(&tree, "list"), 0);
    REQUIRE(l);
    CHECK_STR(os_list_next(l), "one");
    int fd = os_open_at(os_list_dir(l), "one", OS_READ);
    CHECK(fd >= 0);
    close(fd);
    CHECK(!os_list_next(l) && !errno);
    os_list_close(&l);
    CHECK(!l);
}

static void a_folder_goes_with_its_files(void)
{
    tree_put(&tree, "kept/file", "text");
    tree_put(&tree, "gone/file", "text");
    CHECK(!os_make_link("../kept/file", tree_path(&tree, "gone/link")));
    CHECK(!os_make_link("kept", tree_path(&tree, "in-its-place")));
    CHECK(!os_remove_folder(tree_path(&tree, "gone")));
    CHECK(!os_remove_folder(tree_path(&tree, "in-its-place")));
    CHECK(!os_remove_folder(tree_path(&tree, "gone"))); /* no more there */
    CHECK(access(tree_path(&tree, "gone"), F_OK) && access(tree_path(&tree, "in-its-place"), F_OK));
    CHECK_INT(tree_count(tree_path(&tree, "kept")), 1);
    CHECK(os_remove_folder(tree_path(&tree, "kept/file")) == -1 && errno == ENOTDIR);
    tree_put(&tree, "deep/below/file", "text");
    CHECK(os_remove_folder(tree_path(&tree, "deep")) == -1);
    CHECK_INT(tree_count(tree_path(&tree, "deep/below")), 1);
}

static void what_lies_at_a_path(void)
{
    struct os_info file, folder, link, again;
    tree_put(&tree, "info/file", "12345");
    CHECK(!os_make_link("file", tree_path(&tree, "info/link")));
    CHECK(!os_info(tree_path(&tree, "info/file"), &file) && file.kind == OS_KIND_FILE && file.size == 5);
    CHECK(!os_info(tree_path(&tree, "info"), &folder) && folder.kind == OS_KIND_FOLDER);
    CHECK(!os_info_link(tree_path(&tree, "info/link"), &link) && link.kind == OS_KIND_LINK);
    CHECK(!os_info(tree_path(&tree, "info/link"), &link) && os_info_is_same(&file, &link));
    CHECK(!os_info_is_same(&file, &folder));
    CHECK(os_is_file(tree_path(&tree, "info/link")) && !os_is_folder(tree_path(&tree, "info/link")));
    CHECK(os_is_folder(tree_path(&tree, "info")) && !os_is_file(tree_path(&tree, "none")));
    CHECK(os_info_is_unchanged(&file, &link));
    utimensat(AT_FDCWD, tree_path(&tree, "info/file"), (struct timespec[]){ { 1, 0 }, { 1, 5 } }, 0);
    CHECK(!os_info(tree_path(&tree, "info/file"), &again) && !os_info_is_unchanged(&file, &again));
    CHECK_INT(again.modified_ns, 1000000005);
    fault_arm(1, EIO);
    CHECK(os_info(tree_path(&tree, "info/file"), &again) == -1 && errno == EIO && fault_disarm());
}

static void one_has_the_lock(void)
{
    int one = os_open(tree_path(&tree, "lock"), OS_WRITE | OS_CREATE),
        other = os_open(tree_path(&tree, "lock"), OS_READ);
    CHECK(!os_lock(one, false));
    CHECK(os_lock(other, false) == -1 && errno == EWOULDBLOCK);
    close(one);
    CHECK(!os_lock(other, true));
    close(other);
}

/* It belongs to the open file: a child that inherits it keeps it, and asking takes nothing. */
static void whoever_inherited_a_hold_keeps_it(void)
{
    const char *path = tree_path(&tree, "hold");
    int one = os_open(path, OS_READ | OS_WRITE | OS_CREATE), other = os_open(path, OS_READ | OS_WRITE),
        asking = os_open(path, OS_READ), pipes[2];
    CHECK_INT(os_is_held(asking), 0);
    CHECK(!os_hold(one));
    CHECK_INT(os_is_held(asking), 1);
    CHECK_INT(os_is_held(one), 0); /* not by another */
    CHECK(os_hold(other) == -1 && errno == EAGAIN);
    REQUIRE(!pipe(pipes));
    pid_t child = fork();
    if (!child) {
        char byte;
        close(pipes[1]);
        _exit(read(pipes[0], &byte, 1) != 0);
    }
    close(pipes[0]);
    close(one);
    CHECK_INT(os_is_held(asking), 1);
    close(pipes[1]);
    waitpid(child, NULL, 0);
    CHECK_INT(os_is_held(asking), 0);
    CHECK(!os_hold(other));
    close(other);
    CHECK(os_is_held(-1) == -1 && errno == EBADF);
    close(asking);
}

static void the_disks_here_are_local(void)
{
    CHECK(os_is_local(tree.dir) && os_is_local("/proc") && os_is_local("/no/such/folder"));
}

/* Each of them fails as if the system had refused, and leaves nothing behind. */
static void a_fault_is_a_refusal(void)
{
    char path[PATH_MAX], temp[PATH_MAX];
    snprintf(path, sizeof(path), "%s", tree_path(&tree, "refused/a"));
    snprintf(temp, sizeof(temp), "%s", tree_path(&tree, "refused/XXXXXX"));
    for (int call = 0; call < 8; call++) {
        errno = 0;
        fault_arm(1, EIO);
        int r = call == 0   ? os_open(path, OS_WRITE | OS_CREATE)
                : call == 1 ? os_make_dir(path, 0700)
                : call == 2 ? os_make_temp_dir(temp)
                : call == 3 ? os_make_link("x", path)
                : call == 4 ? os_rename(tree_path(&tree, "plain"), path)
                : call == 5 ? os_open_memory("x")
                : call == 6 ? os_open_unnamed("x")
                            : (os_list_open(tree.dir, 0) ? 0 : -1);
        CHECK(fault_disarm());
        CHECK(r == -1 && errno == EIO);
    }
    CHECK_INT(tree_count(tree_path(&tree, "refused")), 0);
}

static void the_parts_of_a_path(void)
{
    static const char *const rows[][3] = {
        { "a/b/c", "a/b", "c" }, { "c", ".", "c" }, { "/c", "/", "c" },
        { "/a/c", "/a", "c" },   { "a/", "a", "" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *folder = path_folder(rows[i][0]);
        CHECK_STR(folder, rows[i][1]);
        CHECK_STR(path_name(rows[i][0]), rows[i][2]);
        free(folder);
    }
    CHECK(path_is_absolute("/a") && !path_is_absolute("a") && !path_is_absolute(""));
}

static void beside_the_program(void)
{
    char self[PATH_MAX], beside[PATH_MAX], up[PATH_MAX];
    CHECK(!path_program(self, sizeof(self)));
    CHECK_STR(path_name(self), "test_os_file");
    CHECK(!path_beside_program("", "test_os_file", beside, sizeof(beside)));
    CHECK_STR(beside, self);
    CHECK(!path_beside_program("../x", "y", up, sizeof(up)));
    CHECK_HAS(up, "/../x/y");
    CHECK(!path_program_to_start(up, sizeof(up)));
    CHECK_STR(up, self);
}

/* By the kernel, and by the walk for kernels that cannot. */
static void nothing_above_a_folder_is_reached(void)
{
    int (*const open_ways[])(int dir, const char *path, unsigned how) = { os_open_beneath, os_walk_beneath };
    tree_put(&tree, "within/a", "a");
    tree_put(&tree, "within/sub/b", "b");
    tree_put(&tree, "outside", "out");
    CHECK(!os_make_link("../outside", tree_path(&tree, "within/up")));
    CHECK(!os_make_link("/etc/passwd", tree_path(&tree, "within/absolute")));
    CHECK(!os_make_link("..", tree_path(&tree, "within/parent")));
    CHECK(!os_make_link("/proc/self/root", tree_path(&tree, "within/magic")));
    CHECK(!os_make_link("loop", tree_path(&tree, "within/loop")));
    int dir = os_open(tree_path(&tree, "within"), OS_PLACE | OS_FOLDER);
    REQUIRE(dir >= 0);
    static const char *const fine[] = { "a", "sub/b", "sub//b" };
    static const char *const not [] = { "../outside",
                                        "/etc/passwd",
                                        "sub/../../outside",
                                        "up",
                                        "absolute",
                                        "parent/outside",
                                        "magic/etc/passwd",
                                        "loop",
                                        "..",
                                        "sub/../../within/a",
                                        "",
                                        "none",
                                        "a/b",
                                        "/" };
    for (size_t way = 0; way < 2; way++) {
        for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
            int fd = open_ways[way](dir, fine[i], OS_READ);
            if (fd < 0)
                CHECK_FAIL_("way %zu: %s: %s", way, fine[i], strerror(errno));
            close(fd);
        }
        for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++)
            if (open_ways[way](dir, not [i], OS_READ) >= 0)
                CHECK_FAIL_("way %zu: %s was opened", way, not [i]);
        CHECK(open_ways[way](dir, "../brand-new", OS_WRITE | OS_NEW) == -1);
        int made = open_ways[way](dir, way ? "sub/two" : "sub/one", OS_WRITE | OS_NEW | OS_PRIVATE);
        CHECK(made >= 0);
        close(made);
        CHECK_INT(mode_of(tree_path(&tree, way ? "within/sub/two" : "within/sub/one")), 0600);
    }
    CHECK(access(tree_path(&tree, "brand-new"), F_OK));
    close(dir);
}

static void a_name_that_exists_is_not_replaced(void)
{
    tree_put(&tree, "from", "new");
    tree_put(&tree, "there", "old");
    int dir = os_open(tree.dir, OS_PLACE | OS_FOLDER);
    CHECK(os_rename_new_at(dir, "from", dir, "there") == -1 && errno == EEXIST);
    CHECK(!os_rename_new_at(dir, "from", dir, "free"));
    CHECK(access(tree_path(&tree, "from"), F_OK) && !access(tree_path(&tree, "free"), F_OK));
    CHECK(os_rename_new_at(dir, "from", dir, "x") == -1 && errno == ENOENT);
    struct os_disk disk = { 0 }, same = { 0 };
    CHECK(!os_disk_fd(dir, &disk) && !os_disk(tree.dir, &same) && disk.total == same.total);
    close(dir);
}

static int copy_of_this(const char *path)
{
    char bytes[1 << 16];
    int from = os_open("/proc/self/exe", OS_READ), to = os_open(path, OS_WRITE | OS_CREATE);
    ssize_t n;
    while ((n = read(from, bytes, sizeof(bytes))) > 0)
        if (write(to, bytes, (size_t)n) != n)
            return -1;
    close(from);
    return n || fchmod(to, 0700) ? -1 : close(to);
}

/* In a copy, which is then removed, and put back as an upgrade would. */
static int a_removed_program(const char *path)
{
    char name[PATH_MAX], start[PATH_MAX];
    if (remove(path) || path_program(name, sizeof(name)) || path_program_to_start(start, sizeof(start)) ||
        strcmp(name, path) || strcmp(start, "/proc/self/exe"))
        return 1;
    return copy_of_this(path) || path_program_to_start(start, sizeof(start)) || strcmp(start, path) ? 2 : 0;
}

static void a_program_that_is_gone_can_be_started(void)
{
    char copy[PATH_MAX];
    int status = -1;
    snprintf(copy, sizeof(copy), "%s", tree_path(&tree, "copy of this"));
    REQUIRE(!copy_of_this(copy));
    pid_t child = fork();
    if (!child) {
        execl(copy, copy, "removed", copy, NULL);
        _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
}

int main(int argc, char **argv)
{
    if (argc == 3)
        return a_removed_program(argv[2]);
    tree_make(&tree);
    RUN(what_is_opened_is_not_inherited);
    RUN(a_new_file_has_its_permissions);
    RUN(a_link_is_not_followed_where_that_is_asked);
    RUN(a_link_does_not_lead_out);
    RUN(a_list_has_no_dots);
    RUN(a_folder_goes_with_its_files);
    RUN(what_lies_at_a_path);
    RUN(one_has_the_lock);
    RUN(whoever_inherited_a_hold_keeps_it);
    RUN(the_disks_here_are_local);
    RUN(a_fault_is_a_refusal);
    RUN(the_parts_of_a_path);
    RUN(beside_the_program);
    RUN(nothing_above_a_folder_is_reached);
    RUN(a_name_that_exists_is_not_replaced);
    RUN(a_program_that_is_gone_can_be_started);
    tree_remove(&tree);
    return check_done();
}
