/* SPDX-License-Identifier: Apache-2.0 */
#include "record/runs.h"

#include "os/fault.h"
#include "check.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>

static struct tree tree;

static const char *folder(const char *name)
{
    static char dir[4][PATH_MAX];
    static int turn;
    char *path = dir[turn++ % 4], relative[128];
    snprintf(relative, sizeof(relative), "%s/x", name);
    tree_path(&tree, relative);
    snprintf(path, PATH_MAX, "%s/%s", tree.dir, name);
    return path;
}

static struct run_info an_info(const char *name, enum run_state state)
{
    return (struct run_info){ .name = name,
                              .config_hash = "0123",
                              .model = "gpt 12M",
                              .parameters = 12000000,
                              .device = "cpu",
                              .started = 1763200000,
                              .pid = getpid(),
                              .state = state,
                              .steps = 1000,
                              .cairn_version = "0.1.0" };
}

static void comes_back(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *dir = folder("back");
    struct run_info info = an_info("ein \"Lauf\"", RUN_STOPPED), back;
    struct cairn_error err = { 0 };
    info.finished = 1763200060;
    info.control_seq = 7;
    info.stop_at_step = 500;
    REQUIRE(!run_info_write(dir, &info, &err));
    REQUIRE(!run_info_read(dir, &a, &back, &err));
    CHECK_STR(back.name, info.name);
    CHECK_STR(back.config_hash, "0123");
    CHECK_STR(back.model, "gpt 12M");
    CHECK_STR(back.device, "cpu");
    CHECK_STR(back.cairn_version, "0.1.0");
    CHECK_INT(back.parameters, 12000000);
    CHECK_INT(back.steps, 1000);
    CHECK_INT(back.control_seq, 7);
    CHECK_INT(back.stop_at_step, 500);
    CHECK_INT(back.started, 1763200000);
    CHECK_INT(back.finished, 1763200060);
    CHECK_INT(back.pid, getpid());
    CHECK_INT(back.state, RUN_STOPPED);
}

static void is_replaced_whole(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *dir = folder("whole");
    struct run_info info = an_info("old", RUN_RUNNING), back;
    struct cairn_error err = { 0 };
    REQUIRE(!run_info_write(dir, &info, &err));
    info.name = "new";
    for (int nth = 1;; nth++) {
        fault_arm(nth, ENOSPC);
        int r = run_info_write(dir, &info, &err);
        if (!fault_disarm()) {
            CHECK(r == 0 && nth > 3);
            break;
        }
        CHECK(r == -1);
        CHECK(!run_info_read(dir, &a, &back, &err) &&
              (!strcmp(back.name, "old") || !strcmp(back.name, "new")));
        CHECK_INT(tree_count(dir), 1);
    }
    CHECK(!run_info_read(dir, &a, &back, &err));
    CHECK_STR(back.name, "new");
}

/* A pid that is surely free. */
static pid_t dead_pid(void)
{
    pid_t pid = fork();
    if (!pid)
        _exit(0);
    waitpid(pid, NULL, 0);
    return pid;
}

static void put_run(const char *name, enum run_state state, pid_t pid, const char *log, int age_s)
{
    struct run_info info = an_info(name, state);
    struct cairn_error err = { 0 };
    char relative[128];
    info.pid = pid;
    snprintf(relative, sizeof(relative), "list/%s", name);
    CHECK(!run_info_write(folder(relative), &info, &err));
    snprintf(relative, sizeof(relative), "list/%s/log.jsonl", name);
    tree_put(&tree, relative, log);
    struct timespec when[2] = { { .tv_sec = time(NULL) - age_s }, { .tv_sec = time(NULL) - age_s } };
    utimensat(AT_FDCWD, tree_path(&tree, relative), when, 0);
    snprintf(relative, sizeof(relative), "list/%s/run.json", name);
    utimensat(AT_FDCWD, tree_path(&tree, relative), when, 0);
}

static void lists_runs(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_entry *rows;
    size_t n;
    put_run("done", RUN_FINISHED, dead_pid(), "{\"step\":1000,\"loss\":2.5}\n", 400);
    put_run("died", RUN_RUNNING, dead_pid(),
            "{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":3}\n{\"step\":3,\"lo", 300);
    put_run("goes", RUN_RUNNING, getpid(), "{\"step\":5,\"loss\":4}\n{\"step\":5,\"event\":\"checkpoint\"}\n",
            0);
    tree_put(&tree, "list/bare/log.jsonl", "");
    tree_put(&tree, "list/torn/run.json", "{\"schema\":1,\"na");
    tree_put(&tree, "list/other/file", "not a run");
    REQUIRE(!runs_list(folder("list"), &a, &rows, &n, &err));
    CHECK_INT(n, 5);
    REQUIRE(n == 5);
    CHECK_STR(rows[0].name, "done");
    CHECK_INT(rows[0].state, RUN_FINISHED);
    CHECK_INT(rows[0].done, 1000);
    CHECK(rows[0].has_loss && rows[0].loss == 2.5);
    CHECK_STR(rows[1].name, "died");
    CHECK_INT(rows[1].state, RUN_CRASHED);
    CHECK_INT(rows[1].done, 2);
    for (size_t i = 2; i < n; i++) {
        const struct run_entry *r = &rows[i];
        if (!strcmp(r->name, "goes"))
            CHECK(r->state == RUN_RUNNING && r->done == 5 && r->loss == 4);
        else
            CHECK(r->state == RUN_UNKNOWN && !r->has_loss && r->done == 0);
    }
    CHECK(!runs_list(folder("list/done"), &a, &rows, &n, &err));
    CHECK_INT(n, 1);
    CHECK(runs_list("/nonexistent", &a, &rows, &n, &err) == -1);
}

/* The number of a process that began after the file was written belongs to another one. */
static void a_number_used_again_is_not_the_run(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_entry *rows;
    size_t n;
    put_run("again", RUN_RUNNING, getpid(), "", 86400);
    REQUIRE(!runs_list(folder("list/again"), &a, &rows, &n, &err) && n == 1);
    CHECK_INT(rows[0].state, RUN_CRASHED);
}

static void finds_what_the_user_means(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    const char *dir;
    tree_put(&tree, "here/runs/one/log.jsonl", "");
    tree_put(&tree, "here/bare/file", "");
    tree_put(&tree, "state/cairn/train/two/run.json", "{\"name\":\"zwei\"}");
    setenv("XDG_STATE_HOME", folder("state"), 1);
    REQUIRE(!chdir(folder("here")));
    CHECK(!runs_find("one", &a, &dir, &err));
    CHECK_STR(dir, "runs/one");
    CHECK_STR(runs_name(dir, &a), "one");
    CHECK(!runs_find("runs/one//", &a, &dir, &err));
    CHECK_STR(dir, "runs/one");
    CHECK(!runs_find("runs/one/log.jsonl", &a, &dir, &err));
    CHECK_STR(dir, "runs/one");
    CHECK(!runs_find("two", &a, &dir, &err));
    CHECK_STR(runs_name(dir, &a), "zwei");
    CHECK(runs_find("bare", &a, &dir, &err) == -1);
    CHECK_HAS(err.msg, "no log.jsonl");
    CHECK(runs_find("three", &a, &dir, &err) == -1);
    CHECK_HAS(err.msg, " three");
    struct run_entry *rows;
    size_t n;
    CHECK(!runs_list(NULL, &a, &rows, &n, &err));
    CHECK_INT(n, 2);
    REQUIRE(!chdir("runs/one"));
    CHECK(!runs_find("log.jsonl", &a, &dir, &err));
    CHECK_STR(dir, ".");
    CHECK_STR(runs_name(dir, &a), "one");
    CHECK(!chdir("/"));
}

static void runs_are_registered_wherever_they_are(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_entry *rows;
    size_t n;
    setenv("XDG_STATE_HOME", folder("register"), 1);
    REQUIRE(!runs_registered(&a, &rows, &n, &err));
    CHECK_INT(n, 0);
    tree_put(&tree, "far/away/same/log.jsonl", "{\"step\":5,\"loss\":4}\n");
    tree_put(&tree, "other/same/log.jsonl", "");
    runs_register(folder("far/away/same"));
    runs_register(folder("far/away/same"));
    REQUIRE(!chdir(folder("other")));
    runs_register("same");
    runs_register("not-there");
    REQUIRE(!chdir("/"));
    REQUIRE(!runs_registered(&a, &rows, &n, &err));
    CHECK_INT(n, 2);
    for (size_t i = 0; i < n; i++)
        CHECK(!strcmp(rows[i].dir, folder("far/away/same")) || !strcmp(rows[i].dir, folder("other/same")));
    /* One that is gone for a while is not forgotten: its disk may come back. */
    REQUIRE(!rename(folder("far/away"), folder("unmounted")));
    runs_register(folder("other/same"));
    REQUIRE(!runs_registered(&a, &rows, &n, &err));
    CHECK_INT(n, 1);
    remove(folder("far/away"));
    char back[PATH_MAX];
    snprintf(back, sizeof(back), "%s", folder("unmounted"));
    REQUIRE(!rename(back, folder("far/away")));
    REQUIRE(!runs_registered(&a, &rows, &n, &err));
    CHECK_INT(n, 2);
}

static void the_register_does_not_grow_for_ever(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_entry *rows;
    size_t n;
    char name[64], log[80], link[64];
    setenv("XDG_STATE_HOME", folder("full"), 1);
    mkdir(folder("full/cairn"), 0700);
    mkdir(folder("full/cairn/trainings"), 0700);
    for (int i = 0; i < 510; i++) {
        struct timespec when[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };
        snprintf(name, sizeof(name), "many/run-%d", i);
        snprintf(log, sizeof(log), "%s/log.jsonl", name);
        snprintf(link, sizeof(link), "full/cairn/trainings/run-%d", i);
        tree_put(&tree, log, "");
        utimensat(AT_FDCWD, tree_path(&tree, log), when, 0);
        if (i < 509)
            tree_link(&tree, link, tree_path(&tree, name));
    }
    runs_register(folder("many/run-509"));
    REQUIRE(!runs_registered(&a, &rows, &n, &err));
    CHECK_INT(n, 500);
    uint64_t oldest = 1000, newest = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t number = strtoull(rows[i].id + strlen("run-"), NULL, 10);
        oldest = number < oldest ? number : oldest;
        newest = number > newest ? number : newest;
        CHECK(!rows[i].name); /* nothing was read */
    }
    CHECK_INT(oldest, 10);
    CHECK_INT(newest, 509);
    if (n) {
        runs_read(&rows[0], &a);
        CHECK_STR(rows[0].name, rows[0].id);
        CHECK(rows[0].touched >= 1010);
    }
}

int main(void)
{
    tree_make(&tree);
    RUN(comes_back);
    RUN(is_replaced_whole);
    RUN(lists_runs);
    RUN(a_number_used_again_is_not_the_run);
    RUN(finds_what_the_user_means);
    RUN(runs_are_registered_wherever_they_are);
    RUN(the_register_does_not_grow_for_ever);
    tree_remove(&tree);
    return check_done();
}
