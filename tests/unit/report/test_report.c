/* SPDX-License-Identifier: Apache-2.0
 * The views are values: what they hold, not how it is printed.  Whole answers are compared in tests/cli. */
#include "report/diagnosis.h"
#include "report/doctor.h"
#include "report/env.h"
#include "report/runs.h"
#include "report/samples.h"

#include "check.h"
#include <math.h>

static void a_plan_without_a_gpu(void)
{
    struct plan_var set = { .name = "A", .value = "1", .why = "because", .source = "https://example.org" };
    const struct plan p = { .set = &set, .n_set = 1 };
    CLEANUP(json_cleanup) struct json *v = report_env(&p);
    CHECK_INT(json_int(json_get(v, "schema"), 0), 1);
    CHECK(json_is_null(json_get(v, "gpu")));
    REQUIRE(json_length(json_get(v, "set")) == 1);
    CHECK_STR(json_text(json_get(json_at(json_get(v, "set"), 0), "value")), "1");
    CHECK(json_is_array(json_get(v, "unset")) && json_is_array(json_get(v, "keep")));
}

static void an_unknown_variable_has_neighbours(void)
{
    static const char *const env[] = { "HSA_ENABLE_SDAM=0", NULL };
    const struct facts f = { .env = env };
    const struct plan p = { 0 };
    const struct env_explanation e = env_explain("HSA_ENABLE_SDAM", &f, &p);
    CLEANUP(json_cleanup) struct json *v = report_env_name(&e);
    CHECK(!e.row && !e.action);
    CHECK_STR(e.value, "0");
    CHECK(!json_bool(json_get(v, "known"), true));
    CHECK_STR(json_text(json_at(json_get(v, "nearest"), 0)), "HSA_ENABLE_SDMA");
    CHECK(json_is_null(json_get(v, "here")));
}

/* A value that is replaced is set, and what it replaces is told, too. */
static void a_replaced_value_is_one_to_set(void)
{
    struct plan_var set = { .name = "HSA_ENABLE_SDMA", .value = "0" }, unset = set;
    unset.value = "1";
    const struct plan p = { .set = &set, .n_set = 1, .unset = &unset, .n_unset = 1 };
    const struct facts f = { .env = NULL };
    const struct env_explanation e = env_explain("HSA_ENABLE_SDMA", &f, &p);
    CHECK(e.row && e.var == &set && e.instead_of == &unset);
    CHECK_STR(e.action, "set");
}

static void a_view_of_the_doctor_leaves_out(void)
{
    static const struct check memory = { .id = "a", .group = "memory" },
                              disk = { .id = "b", .group = "disk" };
    struct doctor_line lines[] = {
        { .check = &memory, .found = { .status = CHECK_OK, .fact = "fine" } },
        { .check = &memory, .found = { .status = CHECK_SKIP, .fact = "not here" } },
        { .check = &disk, .found = { .status = CHECK_FAIL, .fact = "full", .remedy = "rm" } },
    };
    const struct doctor d = { .lines = lines, .n = 3, .first = &lines[2], .verdict = VERDICT_BROKEN };
    const struct {
        struct doctor_view view;
        size_t n;
    } cases[] = {
        { { .doctor = &d }, 2 },
        { { .doctor = &d, .all = true }, 3 },
        { { .doctor = &d, .only = "memory" }, 1 },
        { { .doctor = &d, .only = "memory", .all = true }, 2 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(json_cleanup) struct json *v = report_doctor(&cases[i].view);
        CHECK_INT(json_length(json_get(v, "checks")), cases[i].n);
        CHECK_STR(json_text(json_get(v, "first")), "b");
        CHECK_STR(json_text(json_get(v, "verdict")), verdict_name(VERDICT_BROKEN));
        CHECK(!json_get(v, "probe"));
    }
    struct probe_report works = { .prediction = VERDICT_BROKEN, .reality = VERDICT_WORKS };
    const struct doctor_view probed = { .doctor = &d, .probe = &works };
    CHECK_INT(doctor_verdict(&probed), VERDICT_WORKS);
    CLEANUP(json_cleanup) struct json *v = report_doctor(&probed);
    CHECK_STR(json_text(json_get(json_get(v, "probe"), "reality")), verdict_name(VERDICT_WORKS));
}

static void records_of_calls_alone(void)
{
    const struct gpu_calls none = { 0 };
    CLEANUP(json_cleanup) struct json *v = report_diagnosis(NULL, &none);
    CHECK_INT(json_int(json_get(v, "schema"), 0), 1);
    CHECK(!json_get(v, "class") && !json_get(v, "gpu_calls"));
}

static void text_that_is_no_text(void)
{
    const struct sample_text samples[] = { { "p", "a\nb", 3 }, { "p", "a\xff\tb", 4 }, { "p", "a\0b", 3 } };
    CLEANUP(json_cleanup) struct json *v = report_samples("model", 0, samples, 3);
    const struct json *list = json_get(v, "samples");
    CHECK(json_is_null(json_get(v, "step")));
    REQUIRE(json_length(list) == 3);
    CHECK_STR(json_text(json_get(json_at(list, 0), "text")), "a\nb");
    CHECK_STR(json_text(json_get(json_at(list, 1), "text")), "a?\tb");
    CHECK_STR(json_text(json_get(json_at(list, 2), "text")), "a?b");
}

static void runs_of_both_kinds(void)
{
    const struct run_entry native[] = {
        { .kind = RUN_NATIVE, .name = "new", .touched = 200, .has_loss = true, .loss = NAN },
        { .kind = RUN_NATIVE, .name = "old", .touched = 50, .has_loss = true, .loss = 2 },
    };
    CLEANUP(json_cleanup) struct json *v = report_train_runs(native, 2, 100);
    const struct json *list = json_get(v, "runs");
    REQUIRE(json_length(list) == 2);
    CHECK_STR(json_text(json_get(json_at(list, 0), "name")), "old");
    CHECK_INT(json_int(json_get(json_at(list, 0), "age_s"), -1), 50);
    CHECK_INT(json_int(json_get(json_at(list, 1), "age_s"), -1), 0); /* a clock that was set back */
    CHECK(json_is_null(json_get(json_at(list, 1), "loss")));
    const struct run_entry ended[] = {
        { .kind = RUN_SUPERVISED, .id = "x", .state = RUN_CRASHED },
        { .kind = RUN_SUPERVISED, .id = "y", .state = RUN_FINISHED, .ended = true },
        { .kind = RUN_SUPERVISED, .id = "z", .state = RUN_RUNNING },
    };
    static const char *const states[] = { "cut-short", "ended", "running" };
    CLEANUP(json_cleanup) struct json *h = report_run_history(ended, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct json *o = json_at(json_get(h, "runs"), i);
        CHECK_STR(json_text(json_get(o, "state")), states[i]);
        CHECK(json_is_null(json_get(o, "code")) == !ended[i].ended);
        CHECK_INT(json_int(json_get(o, "index"), 0), i + 1);
    }
}

int main(void)
{
    RUN(a_plan_without_a_gpu);
    RUN(an_unknown_variable_has_neighbours);
    RUN(a_replaced_value_is_one_to_set);
    RUN(a_view_of_the_doctor_leaves_out);
    RUN(records_of_calls_alone);
    RUN(text_that_is_no_text);
    RUN(runs_of_both_kinds);
    return check_done();
}
