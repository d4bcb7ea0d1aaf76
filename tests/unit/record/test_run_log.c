/* SPDX-License-Identifier: Apache-2.0 */
#include "record/run_log.h"

#include "os/fault.h"
#include "check.h"
#include "record/series.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>

static struct tree tree;

/* A folder of its own for a test. */
static const char *folder(const char *name)
{
    static char path[PATH_MAX];
    char relative[64];
    snprintf(relative, sizeof(relative), "%s/x", name);
    tree_path(&tree, relative);
    snprintf(path, sizeof(path), "%s/%s", tree.dir, name);
    return path;
}

static char *log_of(const char *dir)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/log.jsonl", dir);
    return path;
}

static void add(struct run_log *m, uint64_t step, double loss, const char *event)
{
    struct step_record s = { .step = step, .event = event };
    step_record_set(&s, METRIC_LOSS, loss);
    run_log_add(m, &s);
}

/* The steps of a log, "1 2 3"; a '!' for each line that cannot be read. */
static const char *steps_of(const char *dir)
{
    static char text[512];
    struct series s = { 0 };
    struct cairn_error err = { 0 };
    if (series_read(log_of(dir), &s, &err))
        return err.msg[0] ? strcpy(text, err.msg) : "?";
    text[0] = '\0';
    for (size_t i = 0; i < s.n; i++)
        sprintf(text + strlen(text), "%s%d", i ? " " : "", (int)s.point[i].step);
    for (size_t i = 0; i < s.bad_lines; i++)
        strcat(text, "!");
    series_release(&s);
    return text;
}

static off_t log_size(const char *dir)
{
    struct stat st;
    return stat(log_of(dir), &st) ? -1 : st.st_size;
}

static void writes_lines_and_one_event_file(void)
{
    const char *dir = folder("plain");
    struct cairn_error err = { 0 };
    struct run_log *m;
    REQUIRE(!run_log_open(dir, 1, &m, &err));
    for (int i = 1; i <= 5; i++)
        add(m, (uint64_t)i, 4.0 / i, NULL);
    run_log_add_text(m, 5, "sample", "once upon a time");
    CHECK(run_log_trouble(m) == NULL);
    CHECK(!run_log_close(m, &err));
    CHECK_STR(steps_of(dir), "1 2 3 4 5");
    CHECK_INT(tree_count(dir), 2);
}

static void waits_a_second_at_most(void)
{
    const char *dir = folder("buffer");
    struct cairn_error err = { 0 };
    struct run_log *m;
    REQUIRE(!run_log_open(dir, 1, &m, &err));
    add(m, 1, 4, NULL);
    CHECK_INT(log_size(dir), 0);
    usleep(1100000);
    add(m, 2, 3, NULL);
    CHECK_STR(steps_of(dir), "1 2");
    add(m, 3, 2, NULL);
    add(m, 3, 2, "checkpoint");
    CHECK_STR(steps_of(dir), "1 2 3");
    add(m, 4, 2, NULL);
    run_log_flush(m);
    CHECK_STR(steps_of(dir), "1 2 3 4");
    CHECK(!run_log_close(m, &err));
}

static void write_steps(const char *dir, uint64_t first, uint64_t last)
{
    struct cairn_error err = { 0 };
    struct run_log *m;
    REQUIRE(!run_log_open(dir, first, &m, &err));
    for (uint64_t i = first; i <= last; i++)
        add(m, i, 1, NULL);
    CHECK(!run_log_close(m, &err));
}

static void a_log_that_is_a_link_is_not_cut_back(void)
{
    const char *dir = folder("linked");
    struct cairn_error err = { 0 };
    struct run_log *m = NULL;
    struct stat st;
    tree_put(&tree, "precious", "text that is not a log\n");
    char *precious = tree_path(&tree, "precious");
    CHECK(!symlink(precious, log_of(dir)));
    CHECK(run_log_open(dir, 1, &m, &err) == -1);
    CHECK(!stat(precious, &st) && st.st_size == 23);
}

static void append(const char *dir, const char *text)
{
    FILE *f = fopen(log_of(dir), "a");
    REQUIRE(f);
    fputs(text, f);
    fclose(f);
}

static void resumes_where_the_checkpoint_is(void)
{
    const char *dir = folder("resume");
    write_steps(dir, 1, 9);
    write_steps(dir, 5, 6);
    CHECK_STR(steps_of(dir), "1 2 3 4 5 6");
    append(dir, "{\"step\":7,\"lo");
    write_steps(dir, 7, 8);
    CHECK_STR(steps_of(dir), "1 2 3 4 5 6 7 8");
    /* A line of another hand in the middle stays. */
    append(dir, "not a line\n");
    write_steps(dir, 9, 9);
    CHECK_STR(steps_of(dir), "1 2 3 4 5 6 7 8 9!");
    write_steps(dir, 1, 2);
    CHECK_STR(steps_of(dir), "1 2");
    CHECK_INT(tree_count(dir), 6); /* an event file for each start, and the log */
}

/* Seconds of training go on where they were. */
static void time_goes_on(void)
{
    const char *dir = folder("time");
    struct series s = { 0 };
    struct cairn_error err = { 0 };
    tree_put(&tree, "time/log.jsonl", "{\"step\":1,\"elapsed_s\":100.5}\n{\"step\":2,\"elapsed_s\":900}\n");
    write_steps(dir, 2, 2);
    REQUIRE(!series_read(log_of(dir), &s, &err));
    CHECK_INT(s.n, 2);
    CHECK(s.point[1].value[METRIC_ELAPSED_S] >= 100.5 && s.point[1].value[METRIC_ELAPSED_S] < 200);
    series_release(&s);
}

static void one_process_a_folder(void)
{
    const char *dir = folder("locked");
    struct cairn_error err = { 0 };
    struct run_log *m, *other;
    REQUIRE(!run_log_open(dir, 1, &m, &err));
    add(m, 1, 1, "eval");
    CHECK(run_log_open(dir, 1, &other, &err) == -1);
    CHECK_HAS(err.msg, "another process");
    CHECK_STR(steps_of(dir), "1");
    err = (struct cairn_error){ 0 };
    CHECK(!run_log_close(m, &err));
}

static void a_full_disk_is_said_once_and_nothing_is_lost(void)
{
    const char *dir = folder("full");
    struct cairn_error err = { 0 };
    struct run_log *m;
    REQUIRE(!run_log_open(dir, 1, &m, &err));
    fault_arm(1, ENOSPC);
    add(m, 1, 4, "eval");
    CHECK(fault_disarm());
    const struct cairn_error *trouble = run_log_trouble(m);
    REQUIRE(trouble);
    CHECK_HAS(trouble->msg, "log.jsonl: No space left on device");
    CHECK(run_log_trouble(m) == NULL);
    CHECK_INT(log_size(dir), 0);
    fault_arm(1, ENOSPC);
    add(m, 2, 4, "eval");
    CHECK(fault_disarm());
    CHECK(run_log_trouble(m) == NULL); /* still the same trouble */
    add(m, 3, 4, "eval");
    CHECK(run_log_trouble(m) == NULL);
    CHECK_STR(steps_of(dir), "1 2 3");
    fault_arm(2, ENOSPC); /* the event file, this time */
    add(m, 4, 4, "eval");
    CHECK(fault_disarm());
    trouble = run_log_trouble(m);
    REQUIRE(trouble);
    CHECK_HAS(trouble->msg, "tfevents");
    fault_arm(1, ENOSPC);
    CHECK(run_log_close(m, &err) == -1);
    CHECK(fault_disarm());
    CHECK_HAS(err.msg, "No space left");
    CHECK_STR(steps_of(dir), "1 2 3 4");
}

/* Whichever outside call fails while it opens, it says so, and the log keeps every step that is to stay. */
static void each_failure_to_open_is_an_error(void)
{
    const char *dir = folder("faults");
    write_steps(dir, 1, 4);
    for (int nth = 1;; nth++) {
        struct cairn_error err = { 0 };
        struct run_log *m;
        fault_arm(nth, EIO);
        int r = run_log_open(dir, 3, &m, &err);
        if (!fault_disarm()) {
            CHECK(nth > 3);
            CHECK(!r && !run_log_close(m, &err));
            break;
        }
        CHECK(r == -1 && err.msg[0]);
        CHECK_HAS(steps_of(dir), "1 2");
    }
    CHECK_STR(steps_of(dir), "1 2");
}

static void a_missing_folder_is_an_error(void)
{
    struct cairn_error err = { 0 };
    struct run_log *m;
    CHECK(run_log_open("/nonexistent/run", 1, &m, &err) == -1);
    CHECK_HAS(err.msg, "/nonexistent/run/log.jsonl");
}

int main(void)
{
    tree_make(&tree);
    RUN(writes_lines_and_one_event_file);
    RUN(waits_a_second_at_most);
    RUN(resumes_where_the_checkpoint_is);
    RUN(time_goes_on);
    RUN(a_log_that_is_a_link_is_not_cut_back);
    RUN(one_process_a_folder);
    RUN(a_full_disk_is_said_once_and_nothing_is_lost);
    RUN(each_failure_to_open_is_an_error);
    RUN(a_missing_folder_is_an_error);
    tree_remove(&tree);
    return check_done();
}
