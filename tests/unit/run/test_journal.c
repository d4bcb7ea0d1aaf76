/* SPDX-License-Identifier: Apache-2.0 */
#include "run/journal.h"

#include "base/own.h"
#include "check.h"
#include "scratch.h"
#include <fcntl.h>

static void keeps_events_and_files(void)
{
    struct journal j;
    struct cairn_error err = { 0 };
    REQUIRE(!journal_open(&j, scratch("state"), scratch("copy"), &err));
    REQUIRE(j.dir);
    struct json *event = journal_event("start");
    json_add_int(event, "pid", 7);
    journal_add(&j, event);
    journal_write_text(&j, "env", "export A=1\n");
    char *path = journal_path(&j, "events.jsonl"), *env = journal_path(&j, "env");
    CHECK_HAS(scratch_read(path), "\"event\":\"start\"");
    CHECK_HAS(scratch_read(scratch("copy")), "\"pid\":7");
    CHECK_STR(scratch_read(env), "export A=1\n");
    CHECK(journal_trouble(&j) == NULL);
    free(path);
    free(env);
    journal_close(&j);
}

static void falls_silent_once(void)
{
    struct journal j;
    struct cairn_error err = { 0 };
    scratch_file("blocked", "");
    CHECK(!journal_open(&j, scratch("blocked"), NULL, &err));
    CHECK(j.dir == NULL);
    journal_add(&j, journal_event("start"));
    journal_write_text(&j, "env", "");
    const struct cairn_error *trouble = journal_trouble(&j);
    REQUIRE(trouble);
    CHECK_HAS(trouble->msg, "blocked");
    CHECK(journal_trouble(&j) == NULL);
    journal_close(&j);
    CHECK(!journal_open(&j, NULL, "/dev/full", &err));
    journal_add(&j, journal_event("start"));
    CHECK(journal_trouble(&j) != NULL);
    journal_close(&j);
}

static void a_folder_of_the_caller_is_used(void)
{
    struct journal j;
    struct cairn_error err = { 0 };
    struct own_dir d;
    mkdir(scratch("job"), 0700);
    REQUIRE(!own_dir_open(&d, PLACE_STATE, scratch("job"), NULL, false, &err));
    REQUIRE(!journal_open_in(&j, &d, NULL, &err));
    CHECK_STR(j.dir, d.path);
    CHECK(fcntl(j.fd, F_GETFD) & FD_CLOEXEC);
    own_dir_close(&d); /* the journal has it open, too */
    journal_add(&j, journal_event("start"));
    journal_write_text(&j, "env", "x\n");
    CHECK(!journal_trouble(&j));
    journal_close(&j);
    CHECK_HAS(scratch_read(scratch("job/events.jsonl")), "start");
    CHECK_STR(scratch_read(scratch("job/env")), "x\n");
}

static void a_training_says_where_it_is(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    mkdir(scratch("outer"), 0700);
    mkdir(scratch("run one"), 0700);
    mkdir(scratch("run two"), 0700);
    CHECK_STR(journal_training(scratch("outer"), &a), NULL);
    journal_tell_training(scratch("outer"), scratch("run one"));
    CHECK_STR(journal_training(scratch("outer"), &a), scratch("run one"));
    journal_tell_training(scratch("outer"), scratch("run two"));
    journal_tell_training(scratch("outer"), scratch("run three")); /* is not there */
    CHECK_STR(journal_training(scratch("outer"), &a), scratch("run two"));
    journal_tell_training(scratch("nowhere"), scratch("run one"));
    CHECK_STR(journal_training(scratch("nowhere"), &a), NULL);
    scratch_file("outer/training", "\n\n");
    CHECK_STR(journal_training(scratch("outer"), &a), NULL);
}

/* Somebody could have made the folder that the name leads to, with links in it. */
static void a_name_that_is_taken_is_not_used(void)
{
    struct journal one, two;
    struct cairn_error err = { 0 };
    REQUIRE(!journal_open(&one, scratch("same"), NULL, &err));
    REQUIRE(!journal_open(&two, scratch("same"), NULL, &err));
    REQUIRE(one.dir && two.dir);
    CHECK(strcmp(one.dir, two.dir) != 0);
    journal_close(&one);
    journal_close(&two);
}

static void a_folder_of_another_holds_no_journal(void)
{
    struct journal j;
    struct cairn_error err = { 0 };
    scratch_file("theirs/runs/x", "");
    if (geteuid())
        SKIP("only root can give a folder away");
    CHECK(!chown(scratch("theirs/runs"), 65534, 65534));
    REQUIRE(!journal_open(&j, scratch("theirs"), NULL, &err));
    CHECK(j.dir == NULL);
    CHECK(journal_trouble(&j) != NULL);
    journal_close(&j);
}

static void a_copy_that_was_asked_for_must_open(void)
{
    struct journal j;
    struct cairn_error err = { 0 };
    CHECK(journal_open(&j, NULL, scratch("no/such/folder"), &err) == -1);
    CHECK_HAS(err.msg, "no/such/folder");
    journal_close(&j);
}

static void age(const char *path, int days)
{
    struct timespec when[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
    struct stat st;
    if (stat(path, &st))
        abort();
    when[0].tv_sec = when[1].tv_sec = st.st_mtime - days * 86400;
    when[0].tv_nsec = when[1].tv_nsec = 0;
    utimensat(AT_FDCWD, path, when, 0);
}

static void prunes_the_oldest_only(void)
{
    char name[64];
    for (int i = 0; i < JOURNAL_KEEP + 6; i++) {
        snprintf(name, sizeof(name), "old/runs/202601%02dT0000%02dZ-%d/log", 1 + i / 60, i % 60, 99999999);
        scratch_file(name, "x");
        *strrchr(name, '/') = 0;
        age(scratch(name), i == 0 ? 0 : 30); /* the first is young, whatever its name says */
    }
    scratch_file("old/runs/mine", "not a run");
    snprintf(name, sizeof(name), "old/runs/20260101T000001Z-%d", getpid());
    scratch_file("victim/file", "somebody's");
    CHECK(!rename(scratch("old/runs/20260101T000001Z-99999999"), scratch(name))); /* still running */
    CHECK(!symlink(scratch("victim"), scratch("old/runs/20260101T000000Z-99999999/link")));
    CHECK(!symlink(scratch("victim"), scratch("old/runs/20260101T000000X-99999999")));
    CHECK(!symlink(scratch("victim"), scratch("old/runs/20260101T000002Z-99999999/link")));
    age(scratch("old/runs/20260101T000002Z-99999999"), 30);
    journal_prune(scratch("old"));
    CHECK(!access(scratch("old/runs/20260101T000000Z-99999999"), F_OK));
    CHECK(!access(scratch(name), F_OK));
    CHECK(access(scratch("old/runs/20260101T000002Z-99999999"), F_OK));
    CHECK(!access(scratch("old/runs/20260101T000055Z-99999999"), F_OK));
    CHECK(!access(scratch("old/runs/mine"), F_OK));
    CHECK_STR(scratch_read(scratch("victim/file")), "somebody's");
}

int main(void)
{
    RUN(keeps_events_and_files);
    RUN(falls_silent_once);
    RUN(a_folder_of_the_caller_is_used);
    RUN(a_training_says_where_it_is);
    RUN(a_name_that_is_taken_is_not_used);
    RUN(a_folder_of_another_holds_no_journal);
    RUN(a_copy_that_was_asked_for_must_open);
    RUN(prunes_the_oldest_only);
    return check_done();
}
