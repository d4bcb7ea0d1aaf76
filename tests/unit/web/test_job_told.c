/* SPDX-License-Identifier: Apache-2.0
 * The table of what was told, against a plain list; and which changes of a row count. */
#include "web/job_told.h"

#include "base/splitmix.h"
#include "base/str.h"
#include "check.h"

enum { JOBS = 400 };

static void entries_are_those_of_a_plain_list(void)
{
    struct job_told t = { 0 };
    uint64_t seed = 9, model[JOBS] = { 0 };
    size_t n = 0;
    for (int i = 1; i < 20000; i++) {
        uint64_t which = splitmix_next(&seed) % JOBS;
        char uid[JOB_UID_SIZE];
        snprintf(uid, sizeof(uid), "%016llu", (unsigned long long)(which * 7919 % JOBS));
        if (splitmix_next(&seed) % 3) {
            struct told *e = job_told_of(&t, uid);
            CHECK_STR(e->uid, uid);
            CHECK_INT(e->report, model[which]);
            n += !model[which];
            e->report = model[which] = (uint64_t)i;
        } else {
            n -= model[which] != 0;
            job_told_forget(&t, uid);
            model[which] = 0;
        }
        CHECK_INT(t.n, n);
    }
    for (size_t i = 1; i < t.n; i++)
        CHECK(strcmp(t.job[i - 1].uid, t.job[i].uid) < 0);
    job_told_release(&t);
}

static void each_change_of_a_row_counts(void)
{
    const struct job_row row = { .uid = "a", .name = "n", .gpu = "auto", .state = JOB_QUEUED, .position = 2 };
    uint64_t before = job_told_hash(&row);
    struct job_row other[] = { row, row, row, row, row, row, row };
    CHECK(before != 0 && before == job_told_hash(&row));
    other[0].name = "m";
    other[1].state = JOB_PAUSED;
    other[2].position = 2.5;
    other[3].version = 2;
    other[4].note = "";
    other[5].cause = "n";
    other[6].gpu = NULL;
    for (size_t i = 0; i < ARRAY_LEN(other); i++)
        CHECK(job_told_hash(&other[i]) != before);
}

/* Their progress is in files. */
static void rows_that_run_have_no_hash(void)
{
    CHECK(!job_told_hash(&(struct job_row){ .uid = "a", .state = JOB_ACTIVE }));
    CHECK(!job_told_hash(&(struct job_row){ .uid = "a", .state = JOB_STOPPED, .pid = 7 }));
    CHECK(!job_told_hash(&(struct job_row){ .uid = "a", .state = JOB_FINISHED, .adopted = true }));
    CHECK(job_told_hash(&(struct job_row){ .uid = "a", .state = JOB_FINISHED, .adopted = true, .mark = 1 }) !=
          job_told_hash(&(struct job_row){ .uid = "a", .state = JOB_FINISHED, .adopted = true, .mark = 3 }));
}

int main(void)
{
    RUN(entries_are_those_of_a_plain_list);
    RUN(each_change_of_a_row_counts);
    RUN(rows_that_run_have_no_hash);
    return check_done();
}
