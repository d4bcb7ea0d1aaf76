/* SPDX-License-Identifier: Apache-2.0
 * Texts of jobs that are kept: the same as new ones, and made once. */
#include "web/job_texts.h"

#include "base/arena.h"
#include "check.h"
#include "report/jobs.h"
#include "web/job_told.h"

static struct arena all;

static struct job_row row_of(unsigned i)
{
    return (struct job_row){ .uid = arena_printf(&all, "%016u", i),
                             .name = arena_printf(&all, "job %u", i),
                             .kind = JOB_RUN,
                             .argv = "[\"true\"]",
                             .options = "{\"last\":{\"step\":3,\"loss\":0.5}}",
                             .cwd = "/",
                             .gpu = "cpu",
                             .state = JOB_FINISHED,
                             .version = 1 };
}

static void check_text(struct job_texts *t, const struct job_row *row)
{
    CLEANUP(str_release) struct str kept = { 0 };
    CLEANUP(json_cleanup) struct json *v = report_job("/nowhere", row, false, NULL);
    CLEANUP(mem_free) char *made = json_to_short(v);
    job_texts_add(t, "/nowhere", row, &kept);
    CHECK_STR(kept.s, made);
}

static void a_text_is_made_once_and_is_right(void)
{
    struct job_texts t = { 0 };
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < 1000; i++) {
            struct job_row row = row_of(i);
            check_text(&t, &row);
        }
    CHECK_INT(t.made, 1000);
    struct job_row row = row_of(7);
    row.note = "changed";
    check_text(&t, &row);
    CHECK_INT(t.made, 1001);
    job_texts_release(&t);
}

static void there_may_be_more_jobs_than_room(void)
{
    struct job_texts t = { 0 };
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < 3 * JOB_TEXTS_MOST; i++) {
            struct job_row row = row_of(i);
            check_text(&t, &row);
        }
    job_texts_release(&t);
}

/* The progress of one that runs is in files. */
static void a_job_that_runs_is_told_anew(void)
{
    struct job_texts t = { 0 };
    struct job_row row = row_of(1);
    row.state = JOB_ACTIVE;
    check_text(&t, &row);
    row = row_of(1);
    row.adopted = true;
    row.run_dir = "/nowhere/run";
    check_text(&t, &row);
    CHECK_INT(t.made, 0);
    row.mark = 5;
    check_text(&t, &row);
    check_text(&t, &row);
    CHECK_INT(t.made, 1);
    job_texts_release(&t);
}

int main(void)
{
    RUN(a_text_is_made_once_and_is_right);
    RUN(there_may_be_more_jobs_than_room);
    RUN(a_job_that_runs_is_told_anew);
    arena_release(&all);
    return check_done();
}
