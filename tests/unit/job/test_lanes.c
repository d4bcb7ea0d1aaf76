/* SPDX-License-Identifier: Apache-2.0 */
#include "job/lanes.h"

#include "check.h"

static struct arena arena;
static struct cairn_error err;

/* hip_index and whether it can train; the last entry is not seen by HIP at all. */
static struct gpu_facts gpus[] = {
    { .hip_index = 0, .rocm_capable = true },
    { .hip_index = 1, .rocm_capable = true },
    { .hip_index = 2, .rocm_capable = false },
    { .hip_index = -1 },
};
static const struct facts three = { .gpus = gpus, .n_gpus = 4, .default_gpu = 1 },
                          none = { .default_gpu = -1 };

static void wishes_have_one_spelling(void)
{
    static const struct {
        const char *wish, *want; /* NULL: refused */
        enum cairn_code code;
        enum job_kind kind;
    } cases[] = {
        { "auto", "auto", 0, JOB_TRAIN },
        { "cpu", "cpu", 0, JOB_TRAIN },
        { "0", "0", 0, JOB_TRAIN },
        { "2", "2", 0, JOB_TRAIN },
        { "00", "0", 0, JOB_RUN },
        { "1,0", "0,1", 0, JOB_RUN },
        { "0,0,1,1", "0,1", 0, JOB_RUN },
        { "0,0", "0", 0, JOB_TRAIN },
        { "0,1", NULL, CAIRN_EUSAGE, JOB_TRAIN },
        { "0,1", NULL, CAIRN_EUSAGE, JOB_CACHE },
        { "3", NULL, CAIRN_ELACK, JOB_RUN },
        { "63", NULL, CAIRN_ELACK, JOB_RUN },
        { "64", NULL, CAIRN_ELACK, JOB_RUN },
        { "4294967296", NULL, CAIRN_ELACK, JOB_RUN },
        { "99999999999999999999999999", NULL, CAIRN_EUSAGE, JOB_RUN },
        { "", NULL, CAIRN_EUSAGE, JOB_RUN },
        { ",", NULL, CAIRN_EUSAGE, JOB_RUN },
        { "0,", NULL, CAIRN_EUSAGE, JOB_RUN },
        { ",0", NULL, CAIRN_EUSAGE, JOB_RUN },
        { "0, 1", NULL, CAIRN_EUSAGE, JOB_RUN },
        { "-1", NULL, CAIRN_EUSAGE, JOB_RUN },
        { "+1", NULL, CAIRN_EUSAGE, JOB_RUN },
        { "cpu,0", NULL, CAIRN_EUSAGE, JOB_RUN },
        { "AUTO", NULL, CAIRN_EUSAGE, JOB_RUN },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *got = NULL;
        err = (struct cairn_error){ 0 };
        int r = lanes_parse(cases[i].wish, cases[i].kind, &three, &arena, &got, &err);
        if (r != (cases[i].want ? 0 : -1) || err.code != cases[i].code)
            CHECK_FAIL_("\"%s\": %d %s", cases[i].wish, err.code, err.msg);
        CHECK_STR(got, cases[i].want);
    }
}

static void lanes_are_given_in_order(void)
{
    static const struct {
        const struct facts *facts;
        const char *wish, *taken[3], *want;
    } cases[] = {
        { &three, "auto", { NULL }, "1" }, /* the default first */
        { &three, "auto", { "1" }, "0" },       { &three, "auto", { "0" }, "1" },
        { &three, "auto", { "0", "1" }, NULL }, /* 2 cannot train, and the CPU is for those without a GPU */
        { &three, "auto", { "0,1" }, NULL },    { &three, "auto", { "10" }, "1" },
        { &three, "auto", { "cpu" }, "1" },     { &three, "0,1", { NULL }, "0,1" },
        { &three, "0,1", { "1" }, NULL },       { &three, "0,1", { "2", "cpu" }, "0,1" },
        { &three, "0", { "0,1" }, NULL },       { &three, "cpu", { "0", "1" }, "cpu" },
        { &three, "cpu", { "cpu" }, NULL },     { &none, "auto", { NULL }, "cpu" },
        { &none, "auto", { "cpu" }, NULL },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t n = 0;
        while (n < 3 && cases[i].taken[n])
            n++;
        CHECK_STR(lanes_choose(cases[i].wish, cases[i].facts, cases[i].taken, n, &arena), cases[i].want);
    }
}

int main(void)
{
    RUN(wishes_have_one_spelling);
    RUN(lanes_are_given_in_order);
    arena_release(&arena);
    return check_done();
}
