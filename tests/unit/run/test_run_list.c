/* SPDX-License-Identifier: Apache-2.0 */
#include "run/run_list.h"

#include "check.h"
#include "scratch.h"
#include <fcntl.h>
#include <sys/stat.h>

/* The file of a run was last written at that second of 2026. */
static void written_at(const char *path, time_t second)
{
    struct timespec when[2] = { { .tv_sec = 1767225600 + second }, { .tv_sec = 1767225600 + second } };
    CHECK(!utimensat(AT_FDCWD, scratch(path), when, 0));
}

static void supervised(const char *id, const char *time, const char *verdict)
{
    char path[128], text[256];
    snprintf(path, sizeof(path), "state/runs/%s/events.jsonl", id);
    snprintf(text, sizeof(text),
             "{\"event\":\"start\",\"time\":\"%s\",\"command\":[\"x\"],\"pid\":99999999}\n", time);
    scratch_file(path, text);
    snprintf(path, sizeof(path), "state/runs/%s/verdict.json", id);
    if (verdict)
        scratch_file(path, verdict);
}

static void make_runs(void)
{
    scratch_file("native/early/run.json",
                 "{\"name\":\"a\",\"state\":\"finished\",\"started\":\"2026-01-01T00:00:00Z\","
                 "\"finished\":\"2026-01-01T00:01:30Z\"}");
    written_at("native/early/run.json", 90);
    scratch_file("native/late/run.json", "{\"state\":\"running\",\"pid\":99999999}");
    written_at("native/late/run.json", 7200);
    supervised("20260101T010000Z-1", "2026-01-01T01:00:00Z",
               "{\"code\":1,\"attempts\":[{\"class\":\"oom-gpu\",\"seconds\":60}]}");
    supervised("20260101T030000Z-2", "2026-01-01T03:00:00Z", NULL);
    supervised("20260101T040000Z-3", "2026-01-01T04:00:00Z",
               "{\"code\":130,\"attempts\":[{\"end\":\"interrupted\",\"seconds\":5}]}");
}

static void both_kinds_in_one_list_newest_first(void)
{
    static const struct {
        enum run_kind kind;
        const char *id;
        enum run_state state;
        double seconds;
    } want[] = {
        { RUN_SUPERVISED, "20260101T040000Z-3", RUN_STOPPED, 5 },
        { RUN_SUPERVISED, "20260101T030000Z-2", RUN_CRASHED, 0 }, /* cut short */
        { RUN_NATIVE, "late", RUN_CRASHED, 0 },                   /* its process is gone */
        { RUN_SUPERVISED, "20260101T010000Z-1", RUN_CRASHED, 60 },
        { RUN_NATIVE, "early", RUN_FINISHED, 90 },
    };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_entry *runs;
    size_t n;
    const char *native = arena_strdup(&a, scratch("native")), *state = arena_strdup(&a, scratch("state"));
    const struct run_list_options o = { .native = true, .supervised = true, .dir = native, .state = state };
    REQUIRE(!run_list(&o, &a, &runs, &n, &err));
    CHECK_INT(n, ARRAY_LEN(want));
    for (size_t i = 0; i < n && i < ARRAY_LEN(want); i++) {
        CHECK_INT(runs[i].kind, want[i].kind);
        CHECK_STR(runs[i].id, want[i].id);
        CHECK_INT(runs[i].state, want[i].state);
        CHECK(runs[i].seconds == want[i].seconds);
    }
    CHECK_STR(runs[3].verdict, "oom-gpu");
    CHECK_STR(runs[4].name, "a");
    CHECK_INT(runs[4].started, 1767225600);
    CHECK(!runs[4].verdict);
}

static void one_kind_alone(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_entry *runs;
    size_t n;
    const char *native = arena_strdup(&a, scratch("native")), *state = arena_strdup(&a, scratch("state"));
    CHECK(!run_list(&(struct run_list_options){ .native = true, .dir = native }, &a, &runs, &n, &err));
    CHECK(n == 2 && !strcmp(runs[0].id, "late"));
    CHECK(!run_list(&(struct run_list_options){ .supervised = true, .state = state }, &a, &runs, &n, &err));
    CHECK(n == 3 && runs[0].kind == RUN_SUPERVISED);
    CHECK(run_list(&(struct run_list_options){ .native = true, .dir = "/nonexistent" }, &a, &runs, &n, &err));
    CHECK(strstr(err.msg, "/nonexistent"));
}

int main(void)
{
    make_runs();
    RUN(both_kinds_in_one_list_newest_first);
    RUN(one_kind_alone);
    return check_done();
}
