/* SPDX-License-Identifier: Apache-2.0 */
#include "run/history.h"

#include "check.h"
#include "run/journal.h"
#include "scratch.h"

static void lists_what_ended_what_runs_and_what_was_cut(void)
{
    struct arena a = { 0 };
    struct run_entry *h;
    char running[256];
    scratch_file(
        "state/runs/20260101T000000Z-1/events.jsonl",
        "{\"event\":\"start\",\"time\":\"2026-01-01T00:00:00Z\",\"command\":[\"python\",\"t.py\"],\"pid\":99999999}\n");
    scratch_file(
        "state/runs/20260101T000000Z-1/verdict.json",
        "{\"schema\":1,\"code\":0,\"attempts\":[{\"code\":1,\"class\":\"no-kernel-image\",\"seconds\":1.5,\"change\":null},"
        "{\"code\":0,\"class\":null,\"seconds\":2,\"change\":\"A=1\"}]}");
    snprintf(running, sizeof(running), "{\"event\":\"start\",\"command\":[\"x\"],\"pid\":%d}\n",
             (int)getpid());
    scratch_file("state/runs/20260102T000000Z-2/events.jsonl", running);
    scratch_file("state/runs/20260103T000000Z-3/events.jsonl", "{\"event\":\"sta");
    scratch_file("state/runs/a-file", "");
    REQUIRE(history_read(scratch("state"), &a, &h) == 3);
    CHECK_STR(h[2].name, "python t.py");
    CHECK_STR(h[2].verdict, "no-kernel-image");
    CHECK_STR(h[2].change, "A=1");
    CHECK(h[2].ended && h[2].state != RUN_RUNNING && h[2].code == 0 && h[2].attempts == 2 &&
          h[2].seconds == 3.5);
    CHECK(!h[1].ended && h[1].state == RUN_RUNNING);
    CHECK(!h[0].ended && h[0].state != RUN_RUNNING && h[0].name == NULL);
    CHECK_STR(history_find(scratch("state"), "last", &a), h[0].dir);
    CHECK_STR(history_find(scratch("state"), "#3", &a), h[2].dir);
    CHECK_STR(history_find(scratch("state"), "20260102T000000Z-2", &a), h[1].dir);
    CHECK(!history_find(scratch("state"), "#4", &a) &&
          !history_find(scratch("state"), "20260102T000000Z-3", &a));
    arena_release(&a);
}

static void numbers_that_no_run_has_are_not_taken(void)
{
    struct arena a = { 0 };
    struct run_entry *h;
    scratch_file("odd/runs/20260101T000000Z-1/verdict.json",
                 "{\"code\":1000000000000000000,\"attempts\":[{\"seconds\":1e300},{\"seconds\":-1e300},"
                 "{\"seconds\":1e19},{\"seconds\":\"x\"},{\"seconds\":2}]}");
    REQUIRE(history_read(scratch("odd"), &a, &h) == 1);
    CHECK(h[0].ended && h[0].code == -1 && h[0].seconds == 2);
    arena_release(&a);
}

/* Numbers of processes come again, after a reboot all of them. */
static void another_process_with_that_number_is_not_the_run(void)
{
    struct arena a = { 0 };
    struct run_entry *h;
    CLEANUP(json_cleanup) struct json *start = json_new_object();
    journal_add_process(start);
    CHECK(journal_is_running(start));
    CLEANUP(mem_free) char *line = json_to_string(start);
    char *ticks = strstr(line, "\"}");
    REQUIRE(json_get(start, "process") && ticks);
    scratch_file("again/runs/20260102T000000Z-2/events.jsonl", line);
    ticks[-1] = ticks[-1] == '0' ? '1' : '0';
    scratch_file("again/runs/20260101T000000Z-2/events.jsonl", line);
    REQUIRE(history_read(scratch("again"), &a, &h) == 2);
    CHECK(h[0].state == RUN_RUNNING && h[1].state != RUN_RUNNING);
    arena_release(&a);
}

static void no_folder_is_no_history(void)
{
    struct arena a = { 0 };
    struct run_entry *h;
    CHECK_INT(history_read(scratch("nothing"), &a, &h), 0);
    arena_release(&a);
}

static void names_of_runs_are_told_from_files(void)
{
    static const char *const names[] = {
        "last", "#1", "12", "20260102T000000Z-2", "20260102T000000Z-2-1", "20260102T000000Z-7a"
    };
    static const char *const files[] = { "",
                                         "#",
                                         "#0",
                                         "#x",
                                         "lastly",
                                         "train.log",
                                         "20260102T000000Z",
                                         "20260102T000000Z-",
                                         "20260102T000000Z-2.log",
                                         "20260102T000000Z-2ab",
                                         "20260102T000000Z-2/log",
                                         "-1" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        CHECK(history_is_name(names[i]));
    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        CHECK(!history_is_name(files[i]));
}

int main(void)
{
    RUN(names_of_runs_are_told_from_files);
    RUN(lists_what_ended_what_runs_and_what_was_cut);
    RUN(numbers_that_no_run_has_are_not_taken);
    RUN(another_process_with_that_number_is_not_the_run);
    RUN(no_folder_is_no_history);
    return check_done();
}
