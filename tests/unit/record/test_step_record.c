/* SPDX-License-Identifier: Apache-2.0 */
#include "record/step_record.h"

#include "check.h"
#include <math.h>

static struct step_record a_step(void)
{
    struct step_record m = { .step = 120 };
    step_record_set(&m, METRIC_LOSS, (double)3.214f);
    step_record_set(&m, METRIC_LR, 0.0003);
    step_record_set(&m, METRIC_GRAD_NORM, 1.0 / 3);
    step_record_set(&m, METRIC_TOKENS_PER_S, 1850.25);
    step_record_set(&m, METRIC_MEM_BYTES, 1234567890123);
    return m;
}

static void writes_a_line(void)
{
    struct str out = { 0 };
    struct step_record m = a_step();
    step_record_add_line(&m, &out);
    CHECK_STR(out.s, "{\"step\":120,\"loss\":3.214,\"lr\":0.0003,\"grad_norm\":0.3333333333333333,"
                     "\"tokens_per_s\":1850.25,\"mem_bytes\":1234567890123}\n");
    str_release(&out);
}

static void no_number_is_a_null_and_a_word(void)
{
    struct str out = { 0 };
    struct step_record m = { .step = 1, .event = "oom", .note = "batch 8 \"to\" 4" };
    step_record_set(&m, METRIC_LOSS, NAN);
    step_record_set(&m, METRIC_VAL_LOSS, INFINITY);
    step_record_set(&m, METRIC_GRAD_NORM, -INFINITY);
    step_record_add_line(&m, &out);
    CHECK_STR(
        out.s,
        "{\"step\":1,\"loss\":null,\"loss_is\":\"nan\",\"val_loss\":null,\"val_loss_is\":\"inf\","
        "\"grad_norm\":null,\"grad_norm_is\":\"-inf\",\"event\":\"oom\",\"note\":\"batch 8 \\\"to\\\" 4\"}\n");
    struct step_record back;
    struct cairn_error err = { 0 };
    REQUIRE(!step_record_parse(out.s, out.len, &back, &err));
    CHECK(step_record_has(&back, METRIC_LOSS) && isnan(back.value[METRIC_LOSS]));
    CHECK(back.value[METRIC_VAL_LOSS] == INFINITY && back.value[METRIC_GRAD_NORM] == -INFINITY);
    CHECK(!step_record_has(&back, METRIC_LR));
    str_release(&out);
}

/* A float comes back as the same float, a double as the same double. */
static void numbers_come_back(void)
{
    static const double values[] = { 0, 1e-30, 5e-324, 1.0 / 3, 0.1, 123456789, 1e300, -2.5, 16777217 };
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct str out = { 0 };
        struct step_record m = { .step = UINT64_MAX / 4 }, back = { 0 };
        struct cairn_error err = { 0 };
        step_record_set(&m, METRIC_LOSS, values[i]);
        step_record_set(&m, METRIC_LR, (double)(float)values[i]);
        step_record_add_line(&m, &out);
        CHECK(!step_record_parse(out.s, out.len, &back, &err));
        CHECK(back.step == m.step && back.value[METRIC_LOSS] == values[i]);
        CHECK((float)back.value[METRIC_LR] == (float)values[i]);
        str_release(&out);
    }
}

/* Trouble is kept, the rest is not, in whichever way the line is read. */
static void events_come_back(void)
{
    static const struct {
        const char *line, *event;
    } rows[] = {
        { "{\"step\":7,\"loss\":2.5,\"event\":\"slow-step\",\"note\":\"a b\"}\n", "slow-step" },
        { "{\"step\":7,\"event\":\"restart\",\"note\":\"\\\"a\\\"\"}\n", "restart" },
        { "{ \"step\": 7, \"event\": \"oom\" }", "oom" },
        { "{\"step\":7,\"event\":\"host-memory\"}\n", "host-memory" },
        { "{\"step\":7,\"event\":\"eval\"}\n", NULL },
        { "{\"step\":7,\"event\":\"oomph\"}\n", NULL },
        { "{\"step\":7,\"event\":3}", NULL },
        { "{\"step\":7,\"note\":\"oom\"}\n", NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct step_record m = { 0 };
        struct cairn_error err = { 0 };
        CHECK(!step_record_parse(rows[i].line, strlen(rows[i].line), &m, &err));
        CHECK_STR(m.event, rows[i].event);
    }
}

static void reads_json_as_others_write_it(void)
{
    static const struct {
        const char *line;
        bool ok;
    } rows[] = {
        { "{\"step\":7,\"loss\":2.5}\n", true },
        { "{\"step\":7,\"loss\":2.5}", true },
        { "{ \"loss\": 2.5, \"more\": {\"loss\": 9}, \"step\": 7 }\n", true },
        { "{\"step\":7,\"list\":[1,2],\"loss\":2.5}\n", true },
        { "{\"step\":7,\"note\":\"a \\\"loss\\\":3\",\"loss\":2.5}\n", true },
        { "{\"step\":7,\"name\":\"loss_is\",\"loss\":25e-1}\r\n", true },
        { "{\"step\":7,\"loss\":2.5\n", false },
        { "{\"step\":7,\"loss\":}\n", false },
        { "{\"step\":7,\"loss\":2.5}x\n", false },
        { "{\"step\":-7,\"loss\":2.5}\n", false },
        { "{\"step\":\"7\",\"loss\":2.5}\n", false },
        { "{\"loss\":2.5}\n", false },
        { "7\n", false },
        { "\n", false },
        { "", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct step_record m = { 0 };
        struct cairn_error err = { 0 };
        int r = step_record_parse(rows[i].line, strlen(rows[i].line), &m, &err);
        if (r != (rows[i].ok ? 0 : -1) || (rows[i].ok && (m.step != 7 || m.value[METRIC_LOSS] != 2.5)))
            CHECK_FAIL_("%s: %d, step %d, loss %g", rows[i].line, r, (int)m.step, m.value[METRIC_LOSS]);
        CHECK(r == 0 || err.msg[0]);
    }
    struct step_record m;
    struct cairn_error err = { 0 };
    CHECK(step_record_parse("{\"step\":7}\n\0\n", 13, &m, &err) == -1);
}

int main(void)
{
    RUN(writes_a_line);
    RUN(no_number_is_a_null_and_a_word);
    RUN(numbers_come_back);
    RUN(events_come_back);
    RUN(reads_json_as_others_write_it);
    return check_done();
}
