/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the end of a trainer's log ("P"), as a job.json ("J"), and as the command, the options and the variables of
 * a job ("O").  The first byte chooses. */
#include "base/cleanup.h"
#include "base/str.h"
#include "fuzz.h"
#include "job/command.h"
#include "job/environment.h"
#include "job/job_dir.h"
#include "job/progress.h"
#include <math.h>

static void check_progress(const char *text, size_t n)
{
    struct job_progress p;
    job_progress_of_text(text, n, &p);
    FUZZ_REQUIRE(p.step >= -1 && p.steps != 0 && p.steps >= -1 && (p.step >= 0) == (p.steps > 0));
    FUZZ_REQUIRE(p.step < 1000000000000 && p.steps < 1000000000000 && p.mem_bytes == -1);
    FUZZ_REQUIRE(p.s_per_it == -1 || (p.s_per_it > 0 && isfinite(p.s_per_it)));
    FUZZ_REQUIRE(p.eta_s == -1 || (p.eta_s >= 0 && isfinite(p.eta_s)));
}

static void check_row(const struct job_row *row, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct job_command c;
    char **variables;
    const char *config = job_dir_config_name(row);
    FUZZ_REQUIRE(str_eq(config, "config.yaml") || str_eq(config, "config.toml"));
    if (!environment_make(row->env, NULL, "/work", a, &variables, &err))
        for (; *variables; variables++)
            FUZZ_REQUIRE(strchr(*variables, '=') > *variables);
    if (job_command_parse(row, a, &c, &err)) {
        FUZZ_REQUIRE(err.code == CAIRN_EUSAGE && err.msg[0]);
        return;
    }
    FUZZ_REQUIRE(c.grace_s > 0 && c.retries >= -1 && c.hang_after_s >= -1);
    char **line = job_command_line(row, &c, "/cairn", "/c.yaml", "cpu", a);
    FUZZ_REQUIRE(line && line[0] && line[0][0]);
    if (row->kind == JOB_TRAIN) /* the name of a folder, and of no other */
        FUZZ_REQUIRE(str_starts(line[2], "--name=") && line[2][7] && line[2][7] != '.' &&
                     !strchr(line[2], '/'));
    job_command_say(row, a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    CLEANUP(mem_free) char *text = fuzz_text(data + 1, size - 1);
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct job_row row = {
        .uid = "aaaaaaaaaaaaaaaa", .name = text, .cwd = "/", .env = text, .options = text, .argv = text
    };
    if (*data == 'P')
        check_progress(text, size - 1);
    else if (*data == 'J' && job_dir_parse("job.json", text, size - 1, &a, &row, &err))
        FUZZ_REQUIRE(!strncmp(err.msg, "job.json", 8));
    else
        for (int kind = JOB_TRAIN; kind <= JOB_SAMPLE; kind++) {
            row.kind = *data == 'J' ? row.kind : (enum job_kind)kind;
            check_row(&row, &a);
        }
    return 0;
}
