/* SPDX-License-Identifier: Apache-2.0 */
#include "job/command.h"

#include "../run/scratch.h"
#include "base/str.h"
#include "check.h"

static struct arena arena;
static struct cairn_error err;

/* The words with "|" between. */
static const char *joined(char **argv)
{
    const char *out = "";
    for (; argv && *argv; argv++)
        out = arena_printf(&arena, "%s%s%s", out, *out ? "|" : "", *argv);
    return out;
}

static void rows_become_command_lines(void)
{
    scratch_file("run/config.yaml", "x");
    const char *went = scratch("run"), *empty = scratch("empty");
    const struct {
        struct job_row row;
        const char *device, *want;
    } cases[] = {
        { { .kind = JOB_RUN, .argv = "[\"sh\",\"-c\",\"a b\",\"\"]" }, "hip:0", "sh|-c|a b|" },
        { { .kind = JOB_TRAIN, .name = "tiny", .config = "x" }, NULL, "/cairn|train|/c.yaml|--name=tiny" },
        { { .kind = JOB_TRAIN, .name = "a b/../c", .config = "x" },
          "cpu",
          "/cairn|train|/c.yaml|--name=a-b-..-c|--device=cpu" },
        { { .kind = JOB_TRAIN, .name = "..", .config = "x" }, NULL, "/cairn|train|/c.yaml|--name=job" },
        { { .kind = JOB_TRAIN,
            .name = "t",
            .config = "x",
            .options = "{\"steps\":0,\"set\":[\"a.b=1\",\"c=d e\"],\"last\":{}}" },
          "hip:1",
          "/cairn|train|/c.yaml|--name=t|--steps=0|--set|a.b=1|--set|c=d e|--device=hip:1" },
        { { .kind = JOB_TRAIN, .name = "t", .config = "x", .run_dir = went },
          NULL,
          arena_printf(&arena, "/cairn|train|/c.yaml|--resume=%s", went) },
        { { .kind = JOB_TRAIN, .name = "t", .config = "x", .run_dir = empty },
          NULL,
          "/cairn|train|/c.yaml|--name=t" },
        { { .kind = JOB_CACHE, .name = "t", .config = "x", .argv = "[\"--again\"]" },
          "hip:0",
          "/cairn|cache|/c.yaml|--device=hip:0|--again" },
        { { .kind = JOB_SAMPLE, .name = "t", .argv = "[\"runs/x\",\"-p\",\"hi\"]" },
          NULL,
          "/cairn|sample|runs/x|-p|hi" },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct job_command c;
        REQUIRE(!job_command_parse(&cases[i].row, &arena, &c, &err));
        CHECK_STR(joined(job_command_line(&cases[i].row, &c, "/cairn", "/c.yaml", cases[i].device, &arena)),
                  cases[i].want);
    }
}

static void rows_that_make_no_sense_are_refused(void)
{
    static const struct job_row wrong[] = {
        { .uid = "u", .kind = JOB_RUN },
        { .uid = "u", .kind = JOB_RUN, .argv = "[]" },
        { .uid = "u", .kind = JOB_RUN, .argv = "[\"\"]" },
        { .uid = "u", .kind = JOB_RUN, .argv = "[1]" },
        { .uid = "u", .kind = JOB_RUN, .argv = "{\"a\":1}" },
        { .uid = "u", .kind = JOB_RUN, .argv = "[\"a\"" },
        { .uid = "u", .kind = JOB_TRAIN, .config = "x", .options = "{\"set\":\"a=1\"}" },
        { .uid = "u", .kind = JOB_TRAIN, .config = "x", .options = "{\"set\":[1]}" },
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct job_command c;
        err = (struct cairn_error){ 0 };
        CHECK_INT(job_command_parse(&wrong[i], &arena, &c, &err), -1);
        CHECK_INT(err.code, CAIRN_EUSAGE);
    }
}

static void options_are_read(void)
{
    struct job_row row = {
        .kind = JOB_RUN,
        .argv = "[\"x\"]",
        .options = "{\"trainer\":\"ai-toolkit\",\"resume_cmd\":\"sh r\",\"retries\":5,"
                   "\"hang_after_s\":0,\"grace_s\":7,\"allow_cpu\":true,\"no_env\":true,"
                   "\"debug\":true,\"no_preflight\":true,\"with_smi\":true,\"file\":\"a.toml\"}"
    };
    struct job_command c;
    REQUIRE(!job_command_parse(&row, &arena, &c, &err));
    CHECK_STR(c.trainer, "ai-toolkit");
    CHECK_STR(c.resume_cmd, "sh r");
    CHECK(c.retries == 5 && c.hang_after_s == 0 && c.grace_s == 7 && c.steps == -1);
    CHECK(c.allow_cpu && c.no_env && c.debug && c.no_preflight && c.with_smi);
    static const struct {
        const char *options;
        enum job_kind kind;
        int grace_s, retries;
    } cases[] = {
        { NULL, JOB_RUN, 60, -1 },
        { "{}", JOB_TRAIN, 120, -1 },
        { "not JSON", JOB_RUN, 60, -1 },
        { "{\"grace_s\":0,\"retries\":0}", JOB_RUN, 1, 0 },
        { "{\"grace_s\":-5,\"retries\":99999999999}", JOB_RUN, 60, -1 },
        { "{\"grace_s\":\"9\",\"retries\":1.5}", JOB_RUN, 60, -1 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        row.kind = cases[i].kind;
        row.options = cases[i].options;
        REQUIRE(!job_command_parse(&row, &arena, &c, &err));
        CHECK_INT(c.grace_s, cases[i].grace_s);
        CHECK_INT(c.retries, cases[i].retries);
    }
}

static void commands_are_texts(void)
{
    static char a[] = "a b", b[] = "\"\xc3\xa4\n", bad[] = "\xff";
    char *good[] = { a, b, NULL }, *wrong[] = { a, bad, NULL };
    const char *text;
    REQUIRE(!job_command_text(good, &arena, &text, &err));
    CHECK_STR(text, "[\"a b\",\"\\\"\xc3\xa4\\n\"]");
    CHECK_INT(job_command_text(wrong, &arena, &text, &err), -1);
    CHECK_HAS(err.msg, "word 2");
    const struct job_row row = { .kind = JOB_RUN, .argv = "[\"sh\",\"-c\",\"it's a\"]" };
    CHECK_STR(job_command_say(&row, &arena), "sh -c 'it'\\''s a'");
}

int main(void)
{
    RUN(rows_become_command_lines);
    RUN(rows_that_make_no_sense_are_refused);
    RUN(options_are_read);
    RUN(commands_are_texts);
    arena_release(&arena);
    return check_done();
}
