/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "os/fault.h"
#include "check.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static struct tree tree;

static char *slurp(const char *path)
{
    static char buf[2][256];
    static int turn;
    char *text = buf[turn++ % 2];
    FILE *f = fopen(path, "r");
    if (!f)
        return NULL;
    text[fread(text, 1, sizeof(buf[0]) - 1, f)] = '\0';
    fclose(f);
    return text;
}

/* A folder of its own for each test, so that what is left over can be counted. */
static const char *fresh(const char *name)
{
    char relative[128];
    snprintf(relative, sizeof(relative), "%s/out", name);
    return tree_path(&tree, relative);
}

static const char *dir_of(const char *name)
{
    static char dir[PATH_MAX];
    snprintf(dir, sizeof(dir), "%s/%s", tree.dir, name);
    return dir;
}

static int write_new(const char *path, const char *text, bool replace, struct cairn_error *err)
{
    struct file_out f;
    size_t n = strlen(text);
    if (file_out_open(&f, path, n, replace, err))
        return -1;
    int r = file_out_write(&f, text, n, 0, err) || file_out_commit(&f, err) ? -1 : 0;
    file_out_close(&f);
    return r;
}

static void appears_at_commit(void)
{
    struct cairn_error err = { 0 };
    struct file_out f;
    const char *path = fresh("appears");
    REQUIRE(file_out_open(&f, path, 6, false, &err) == 0);
    CHECK(access(path, F_OK) != 0);
    CHECK(file_out_write(&f, "def", 3, 3, &err) == 0);
    CHECK(file_out_write(&f, "abc", 3, 0, &err) == 0);
    file_out_start_flush(&f, 0, 3);
    file_out_drop(&f, 0, 6);
    CHECK(access(path, F_OK) != 0);
    CHECK(file_out_commit(&f, &err) == 0);
    file_out_close(&f);
    CHECK_STR(slurp(path), "abcdef");
    CHECK_INT(tree_count(dir_of("appears")), 1);
}

static void a_file_that_is_not_committed_is_gone(void)
{
    struct cairn_error err = { 0 };
    struct file_out f, zeroed = { 0 };
    REQUIRE(file_out_open(&f, fresh("gone"), 0, false, &err) == 0);
    CHECK(file_out_write(&f, "x", 1, 0, &err) == 0);
    CHECK(access(tree_path(&tree, "gone/out"), F_OK) != 0);
    file_out_close(&f);
    CHECK_INT(tree_count(dir_of("gone")), 0);
    file_out_close(&f);
    file_out_close(&zeroed);
}

static void refuses_to_replace_unasked(void)
{
    struct cairn_error err = { 0 };
    const char *path = fresh("keep");
    REQUIRE(write_new(path, "old", false, &err) == 0);
    CHECK(write_new(path, "new", false, &err) == -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK_HAS(err.msg, "keep/out exists");
    CHECK_HAS(err.hint, "--force");
    CHECK_STR(slurp(path), "old");
    CHECK(write_new(path, "new", true, &err) == 0);
    CHECK_STR(slurp(path), "new");
    CHECK_INT(tree_count(dir_of("keep")), 1);
}

/* Somebody makes the file between open and commit: theirs stays. */
static void does_not_win_a_race_unasked(void)
{
    struct cairn_error err = { 0 };
    struct file_out f;
    const char *path = fresh("race");
    REQUIRE(file_out_open(&f, path, 3, false, &err) == 0);
    CHECK(file_out_write(&f, "new", 3, 0, &err) == 0);
    tree_put(&tree, "race/out", "theirs");
    CHECK(file_out_commit(&f, &err) == -1);
    CHECK_HAS(err.msg, "File exists");
    file_out_close(&f);
    CHECK_STR(slurp(tree_path(&tree, "race/out")), "theirs");
    CHECK_INT(tree_count(dir_of("race")), 1);
}

static void refuses_what_is_no_file(void)
{
    struct cairn_error err = { 0 };
    fresh("kinds/dir/x");
    CHECK(write_new(tree_path(&tree, "kinds/dir"), "x", true, &err) == -1);
    CHECK_HAS(err.msg, "is a directory");
    const char *pipe = tree_path(&tree, "kinds/pipe");
    REQUIRE(mkfifo(pipe, 0600) == 0);
    CHECK(write_new(pipe, "x", true, &err) == -1);
    CHECK_HAS(err.msg, "not a regular file");
    CHECK(write_new("/no-such-directory/x", "x", false, &err) == -1);
    CHECK_HAS(err.msg, "No such file");
}

static void keeps_the_mode_of_what_it_replaces(void)
{
    struct cairn_error err = { 0 };
    struct stat st;
    const char *path = fresh("mode");
    mode_t before = umask(027);
    CHECK(write_new(path, "a", false, &err) == 0);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0640);
    CHECK(chmod(path, 0604) == 0);
    CHECK(write_new(path, "b", true, &err) == 0);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0604);
    umask(before);
}

/* Whoever owned the old file must not be able to run or change the new one. */
static void takes_no_dangerous_mode_over(void)
{
    struct cairn_error err = { 0 };
    struct stat st;
    const char *path = fresh("danger");
    mode_t before = umask(022);
    CHECK(write_new(path, "a", false, &err) == 0);
    CHECK(chmod(path, 07757) == 0);
    CHECK(write_new(path, "b", true, &err) == 0);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0755);
    if (geteuid() == 0) {
        CHECK(chown(path, 65534, 65534) == 0 && chmod(path, 06777) == 0);
        CHECK(write_new(path, "c", true, &err) == 0);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0644 && st.st_uid == 0);
    }
    umask(before);
}

/* Killed in the middle, nothing is left but what was there. */
static void a_killed_writer_leaves_nothing(void)
{
    struct cairn_error err = { 0 };
    const char *path = fresh("killed");
    int probe = open(dir_of("killed"), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), status;
    if (probe < 0)
        SKIP("this file system has no files without a name");
    close(probe);
    pid_t pid = fork();
    if (pid == 0) {
        struct file_out f;
        if (!file_out_open(&f, path, 1 << 20, true, &err) && !file_out_write(&f, "x", 1, 0, &err))
            raise(SIGKILL);
        _exit(1);
    }
    REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status));
    CHECK_INT(tree_count(dir_of("killed")), 0);
}

/* Without /proc there is no way to give a file its name later, so the temporary has one, as on file systems that know no
 * other kind.  The child writes one byte; 0: it committed, 1: it could not hide /proc. */
static int write_named(const char *path, bool killed)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        struct file_out f;
        struct cairn_error err = { 0 };
        if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
            mount("none", "/proc", "tmpfs", 0, NULL))
            _exit(1);
        if (file_out_open(&f, path, 0, true, &err) || file_out_write(&f, "x", 1, 0, &err))
            _exit(2);
        if (killed)
            raise(SIGKILL);
        _exit(file_out_commit(&f, &err) ? 2 : 0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void make_old(const char *dir)
{
    const struct timespec old[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, ".tmp"))
            utimensat(dirfd(d), e->d_name, old, 0);
    closedir(d);
}

/* The next writer of the same file removes what a killed one left, but not what another is writing. */
static void the_next_writer_removes_what_is_left(void)
{
    const char *path = fresh("leftover");
    char live[300];
    int killed = write_named(path, true);
    if (killed == 1)
        SKIP("may not hide /proc from a child");
    CHECK_INT(tree_count(dir_of("leftover")), 1);
    CHECK_INT(write_named(path, false), 0); /* too young to be taken for one */
    CHECK_INT(tree_count(dir_of("leftover")), 2);
    make_old(dir_of("leftover"));
    CHECK_INT(write_named(path, false), 0);
    CHECK_INT(tree_count(dir_of("leftover")), 1);
    snprintf(live, sizeof(live), "%s.00aaff.tmp", path);
    int fd = open(live, O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0 && !flock(fd, LOCK_EX));
    make_old(dir_of("leftover"));
    CHECK_INT(write_named(path, false), 0);
    CHECK_INT(tree_count(dir_of("leftover")), 2);
    close(fd);
}

static void a_disk_too_small_is_said_first(void)
{
    struct cairn_error err = { 0 };
    struct file_out f;
    CHECK(file_out_open(&f, fresh("full"), (uint64_t)1 << 60, false, &err) == -1);
    CHECK_HAS(err.msg, "reserve 1152921504606846976 bytes for");
    CHECK_INT(tree_count(dir_of("full")), 0);
}

/* Each outside call fails once: the old file is whole, and nothing is left beside it.  Only the flush of the
 * directory comes after the new file took its name. */
static void every_failure_leaves_the_old_file(bool replace, int error)
{
    const char *path = fresh("fault");
    int nth = 0;
    for (bool reached = true; reached;) {
        struct cairn_error err = { 0 };
        unlink(path);
        if (replace)
            tree_put(&tree, "fault/out", "old");
        fault_arm(++nth, error);
        int r = write_new(path, "new", replace, &err);
        reached = fault_disarm();
        bool written = r == 0 || strstr(err.msg, "the file is written");
        CHECK_INT(r, reached ? -1 : 0);
        CHECK(!reached || strstr(err.msg, strerror(error)));
        CHECK_STR(slurp(path), written ? "new" : replace ? "old" : NULL);
        CHECK_INT(tree_count(dir_of("fault")), written || replace);
        REQUIRE(nth < 100);
    }
    CHECK(nth > 6);
}

static void faults(void)
{
    every_failure_leaves_the_old_file(true, EIO);
    every_failure_leaves_the_old_file(false, ENOSPC);
}

static void reads_exactly(void)
{
    struct cairn_error err = { 0 };
    char buf[8] = "";
    int fd;
    uint64_t size;
    tree_put(&tree, "read", "0123456789");
    const char *path = tree_path(&tree, "read");
    REQUIRE(file_open(path, &fd, &size, &err) == 0);
    CHECK_INT(size, 10);
    CHECK(file_read_at(fd, path, buf, 4, 6, &err) == 0);
    CHECK_STR(buf, "6789");
    CHECK(file_read_at(fd, path, buf, 0, 99, &err) == 0);
    CHECK(file_read_at(fd, path, buf, 4, 8, &err) == -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, "is truncated: at byte 10, expected 2 more");
    fault_arm(1, EIO);
    CHECK(file_read_at(fd, path, buf, 4, 2, &err) == -1);
    CHECK(fault_disarm());
    CHECK_HAS(err.msg, "at byte 2: Input/output error");
    close(fd);
}

/* Any part of a file that ends in the middle of a block, into memory of any alignment.  Where the file system refuses,
 * the same must hold. */
static void reads_past_the_page_cache(void)
{
    enum { N = 3 * 4096 + 100 };
    static const size_t places[] = { 0, 1, 511, 4095, 4096, 4097, 8192, 3 * 4096, N - 1, N };
    static char all[N], part[N + 64];
    struct cairn_error err = { 0 };
    int fd;
    uint64_t size;
    for (int i = 0; i < N; i++)
        all[i] = (char)(i * 7 + i / 256);
    tree_put_bytes(&tree, "direct", all, N);
    const char *path = tree_path(&tree, "direct");
    REQUIRE(file_open(path, &fd, &size, &err) == 0);
    bool direct = file_set_direct(fd);
    for (size_t a = 0; a < ARRAY_LEN(places); a++)
        for (size_t b = a; b < ARRAY_LEN(places); b++) {
            size_t n = places[b] - places[a];
            char *into = part + (a * 7 + b) % 64;
            CHECK(file_read_at(fd, path, into, n, places[a], &err) == 0 && !memcmp(into, all + places[a], n));
        }
    CHECK(file_read_at(fd, path, part, 50, N - 20, &err) == -1);
    CHECK_HAS(err.msg, "is truncated: at byte 12388, expected 30 more");
    CHECK(file_read_at(fd, path, part, 5, N + 9000, &err) == -1);
    fault_arm(1, EIO);
    CHECK(file_read_at(fd, path, part, 4, 2, &err) == -1 && fault_disarm());
    CHECK_HAS(err.msg, "at byte 2: Input/output error");
    CHECK_INT((fcntl(fd, F_GETFL) & O_DIRECT) != 0, direct);
    close(fd);
}

/* The flag is refused, or taken and the first read refused. */
static void a_refusal_changes_nothing(void)
{
    struct cairn_error err = { 0 };
    char buf[8] = "";
    int fd;
    uint64_t size;
    tree_put(&tree, "refused", "0123456789");
    const char *path = tree_path(&tree, "refused");
    for (int nth = 1; nth <= 2; nth++) {
        REQUIRE(file_open(path, &fd, &size, &err) == 0);
        fault_arm(nth, EINVAL);
        bool direct = file_set_direct(fd);
        if (fault_disarm()) /* a file system that refuses by itself makes one call only */
            CHECK(!direct);
        CHECK(direct || !(fcntl(fd, F_GETFL) & O_DIRECT));
        CHECK(file_read_at(fd, path, buf, 4, 6, &err) == 0);
        CHECK_STR(buf, "6789");
        close(fd);
    }
}

/* A pipe nobody writes to would hold an ordinary open for ever. */
static void opens_files_only(void)
{
    struct cairn_error err = { 0 };
    int fd = -1;
    uint64_t size;
    const char *pipe = tree_path(&tree, "pipe");
    REQUIRE(mkfifo(pipe, 0600) == 0);
    CHECK(file_open(pipe, &fd, &size, &err) == -1);
    CHECK_HAS(err.msg, "a device or pipe, not a file");
    CHECK(file_open(tree.dir, &fd, &size, &err) == -1);
    CHECK_HAS(err.msg, "a directory, not a file");
    CHECK(file_open("/no/such", &fd, &size, &err) == -1);
    CHECK_HAS(err.msg, "open /no/such: No such file");
    CHECK_INT(fd, -1);
}

static void reads_a_whole_file_up_to_a_limit(void)
{
    struct cairn_error err = { 0 };
    CLEANUP(mem_free) char *text = NULL, *none = NULL;
    size_t n = 0;
    const char *path = tree_path(&tree, "whole");
    CHECK(!file_write(path, "a\0bc", 4, &err));
    CHECK(!file_read_whole(path, 4, &text, &n, &err));
    CHECK_INT(n, 4);
    CHECK(text && !memcmp(text, "a\0bc", 5)); /* with the NUL behind */
    CHECK_INT(file_read_whole(path, 3, &none, &n, &err), -1);
    CHECK_INT(err.code, CAIRN_EFORMAT);
    CHECK_HAS(err.msg, path);
    CHECK_INT(file_read_whole(tree_path(&tree, "not-there"), 3, &none, &n, &err), -1);
    CHECK(err.code == CAIRN_EIO && !none && n == 4);
}

static void reads_the_end_of_a_file(void)
{
    struct cairn_error err = { 0 };
    char text[8] = "";
    const char *path = tree_path(&tree, "tail");
    CHECK(!file_write(path, "abcdef", 6, &err));
    CHECK_INT(file_read_tail(path, text, 4), 4);
    CHECK(!memcmp(text, "cdef", 4));
    CHECK_INT(file_read_tail(path, text, 8), 6);
    CHECK(!memcmp(text, "abcdef", 6));
    CHECK_INT(file_read_tail(tree_path(&tree, "not-there"), text, 8), 0);
    CHECK_INT(file_read_tail(tree.dir, text, 8), 0);
}

static void makes_folders_once_and_again(void)
{
    struct cairn_error err = { 0 };
    struct stat st;
    const char *dir = dir_of("a/b/c");
    CHECK(!file_make_dir(dir, 0700, &err));
    CHECK(!file_make_dir(dir, 0700, &err));
    CHECK(!stat(dir, &st) && (st.st_mode & 0777) == 0700);
    CHECK(!file_make_dir(dir_of("slash/at/the/end/"), 0700, &err));
    tree_put(&tree, "file", "");
    CHECK(file_make_dir(dir_of("file/below"), 0700, &err) == -1);
    CHECK_HAS(err.msg, "file/below");
    CHECK(file_make_dir(dir_of("file"), 0700, &err) == -1);
    /* What is wrong with a folder above is told, and not that there is none. */
    int folders = 0;
    for (const char *at = dir_of("locked/below") + 1; (at = strchr(at, '/')); at++)
        folders++;
    fault_arm(folders, EACCES);
    CHECK(file_make_dir(dir_of("locked/below"), 0700, &err) == -1);
    CHECK_INT(fault_disarm(), 1);
    CHECK_HAS(err.msg, "Permission denied");
}

int main(void)
{
    tree_make(&tree);
    RUN(appears_at_commit);
    RUN(a_file_that_is_not_committed_is_gone);
    RUN(refuses_to_replace_unasked);
    RUN(does_not_win_a_race_unasked);
    RUN(refuses_what_is_no_file);
    RUN(keeps_the_mode_of_what_it_replaces);
    RUN(takes_no_dangerous_mode_over);
    RUN(a_killed_writer_leaves_nothing);
    RUN(the_next_writer_removes_what_is_left);
    RUN(a_disk_too_small_is_said_first);
    RUN(faults);
    RUN(reads_exactly);
    RUN(reads_past_the_page_cache);
    RUN(a_refusal_changes_nothing);
    RUN(opens_files_only);
    RUN(reads_a_whole_file_up_to_a_limit);
    RUN(reads_the_end_of_a_file);
    RUN(makes_folders_once_and_again);
    tree_remove(&tree);
    return check_done();
}
