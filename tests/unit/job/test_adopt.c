/* SPDX-License-Identifier: Apache-2.0
 * Runs of a terminal among the jobs: a list that remembers the one before says the same as one that does not. */
#include "job/adopt.h"

#include "../run/scratch.h"
#include "base/str.h"
#include "check.h"
#include "job/adopt_memory.h"
#include "run/journal.h"
#include <fcntl.h>
#include <time.h>

enum { RUNS = 40 };

/* $XDG_STATE_HOME/cairn, where both kinds of runs are. */
static const char *state;
static struct arena all;

static void open_state(void)
{
    setenv("XDG_STATE_HOME", scratch("home"), 1);
    mkdir(scratch("home"), 0700);
    mkdir(scratch("home/cairn"), 0700);
    mkdir(scratch("home/cairn/runs"), 0700);
    mkdir(scratch("home/cairn/trainings"), 0700);
    state = arena_strdup(&all, scratch("home/cairn"));
}

/* Its modification time is set, so that a test can change a file behind the back of the list. */
static void put(const char *name, const char *text, int64_t when)
{
    struct timespec times[2] = { { .tv_sec = when }, { .tv_sec = when } };
    utimensat(AT_FDCWD, scratch_file(name, text), times, 0);
}

static const char *supervised(int i, const char *file)
{
    return arena_printf(&all, "home/cairn/runs/20260101T0000%02dZ-1/%s", i, file);
}

static void put_supervised(int i, int code, int64_t when)
{
    put(supervised(i, "events.jsonl"),
        arena_printf(&all,
                     "{\"event\":\"start\",\"time\":\"2026-01-01T00:00:%02dZ\",\"command\":[\"sh\",\"%d\"],"
                     "\"pid\":99999999}\n",
                     i % 60, i),
        when);
    put(supervised(i, "verdict.json"),
        arena_printf(&all, "{\"schema\":1,\"code\":%d,\"attempts\":[{\"class\":\"a\",\"seconds\":1}]}", code),
        when);
}

static void put_native(int i, const char *run_state, int64_t when)
{
    const char *dir = arena_printf(&all, "training-%d", i);
    const char *link = scratch(arena_printf(&all, "home/cairn/trainings/%s", dir));
    put(arena_printf(&all, "%s/run.json", dir),
        arena_printf(&all,
                     "{\"schema\":1,\"name\":\"t%d\",\"state\":\"%s\",\"pid\":%d,"
                     "\"started\":\"2026-01-02T00:00:%02dZ\"}",
                     i, run_state, str_eq(run_state, "running") ? getpid() : 0, i % 60),
        when);
    put(arena_printf(&all, "%s/log.jsonl", dir), "{\"step\":1,\"loss\":2}\n", when);
    unlink(link);
    CHECK(!symlink(scratch(dir), link));
}

static size_t list(struct adopt_memory *m, struct job_row **rows)
{
    struct cairn_error err = { 0 };
    size_t n = 0;
    if (adopt_list(m, state, &all, rows, &n, &err))
        CHECK_FAIL_("%s", err.msg);
    return n;
}

/* NULL: there is none of that name. */
static const struct job_row *row_named(struct adopt_memory *m, const char *name)
{
    struct job_row *rows;
    size_t n = list(m, &rows);
    for (size_t i = 0; i < n; i++)
        if (str_eq(rows[i].name, name))
            return &rows[i];
    return NULL;
}

static void check_same(struct adopt_memory *m)
{
    struct job_row *one, *other;
    size_t n = list(NULL, &one), n_other = list(m, &other);
    CHECK_INT(n_other, n);
    for (size_t i = 0; i < n && i < n_other; i++) {
        CHECK_STR(other[i].uid, one[i].uid);
        CHECK_STR(other[i].name, one[i].name);
        CHECK_STR(other[i].argv, one[i].argv);
        CHECK_STR(other[i].cwd, one[i].cwd);
        CHECK_STR(other[i].run_dir, one[i].run_dir);
        CHECK_STR(other[i].class_id, one[i].class_id);
        CHECK(other[i].state == one[i].state && other[i].mark == one[i].mark && other[i].adopted);
        CHECK(other[i].exit_code == one[i].exit_code && other[i].finished == one[i].finished);
    }
}

static void a_list_that_remembers_says_the_same(void)
{
    struct adopt_memory m = { 0 };
    struct job_row *rows;
    open_state();
    check_same(&m);
    for (int i = 0; i < RUNS; i++) {
        put_supervised(i, i % 3, 1000 + i);
        put_native(i, i % 2 ? "finished" : "stopped", 2000 + i);
        check_same(&m);
    }
    CHECK_INT(list(&m, &rows), 2 * RUNS);
    CHECK_INT(m.n, 2 * RUNS);
    for (int i = 0; i < RUNS; i += 3) {
        scratch_remove_one(scratch(arena_printf(&all, "home/cairn/trainings/training-%d", i)), NULL, 0, NULL);
        put_supervised(i, 7, 5000);
        check_same(&m);
    }
    CHECK_INT(m.n, list(&m, &rows)); /* those that are gone are forgotten */
    adopt_memory_release(&m);
}

/* The files were not looked into again. */
static void a_run_that_ended_is_read_once(void)
{
    struct adopt_memory m = { 0 };
    put_native(100, "finished", 9000);
    REQUIRE(row_named(&m, "t100"));
    put("training-100/run.json",
        "{\"schema\":1,\"name\":\"xxxx\",\"state\":\"finished\",\"pid\":0,"
        "\"started\":\"2026-01-02T00:00:40Z\"}",
        9000);
    CHECK(row_named(&m, "t100") && !row_named(&m, "xxxx"));
    put_native(100, "finished", 9001);
    put("training-100/run.json", "{\"name\":\"other\",\"state\":\"finished\"}", 9002);
    CHECK(!row_named(&m, "t100") && row_named(&m, "other"));
    adopt_memory_release(&m);
}

static void a_run_that_goes_on_is_read_each_time(void)
{
    struct adopt_memory m = { 0 };
    int64_t now = time(NULL);
    put_native(200, "running", now);
    const struct job_row *row = row_named(&m, "t200");
    REQUIRE(row != NULL);
    CHECK(row->state == JOB_ACTIVE && !row->mark);
    put("training-200/run.json", "{\"name\":\"t200\",\"state\":\"finished\"}", now);
    row = row_named(&m, "t200");
    CHECK(row && row->state == JOB_FINISHED && row->mark);
    adopt_memory_release(&m);
}

int main(void)
{
    RUN(a_list_that_remembers_says_the_same);
    RUN(a_run_that_ended_is_read_once);
    RUN(a_run_that_goes_on_is_read_each_time);
    arena_release(&all);
    return check_done();
}
