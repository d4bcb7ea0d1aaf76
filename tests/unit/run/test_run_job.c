/* SPDX-License-Identifier: Apache-2.0
 * A whole run without the command line: what it says goes to the sink, and to nobody else. */
#include "run/run_job.h"

#include "check.h"
#include "run/run_list.h"
#include "scratch.h"
#include <fcntl.h>

static int sentences, errors, described;

static void count_sentence(void *context, const char *text)
{
    (void)context;
    sentences += *text != '\0';
}

static void count_error(void *context, const struct cairn_error *err)
{
    (void)context;
    errors += err->code != CAIRN_OK;
}

static struct json *describe(const struct facts *f)
{
    struct json *v = json_new_object();
    json_add_int(v, "gpus", (int64_t)f->n_gpus);
    described++;
    return v;
}

static const struct message_sink counting = { .say = count_sentence,
                                              .commands = count_sentence,
                                              .error = count_error };

/* Runs it with stderr in a file, and returns how many bytes came there. */
static long run(char **argv, bool strict, int *code)
{
    struct cairn_error err = { 0 };
    const char *machine = scratch("machine"), *said = scratch("said");
    const struct run_job_options o = {
        .argv = argv,
        .gpu = -1,
        .hang_after_s = 600,
        .strict = strict,
        .preload.way = PRELOAD_OFF,
        .parent = -1,
        .messages = &counting,
        .describe_machine = describe,
    };
    const struct facts_options fo = { .root = machine, .env = (const char *const *)environ };
    CLEANUP(facts_release) struct facts f;
    CHECK(!facts_read(&f, &fo, &err));
    int kept = dup(STDERR_FILENO), file = open(said, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dup2(file, STDERR_FILENO);
    int r = run_job(&o, &f, code, &err);
    dup2(kept, STDERR_FILENO);
    CHECK_INT(r, 0);
    long n = lseek(file, 0, SEEK_END);
    close(kept);
    close(file);
    return n;
}

static void what_is_said_goes_to_the_sink(void)
{
    char sh[] = "/bin/sh", c[] = "-c", script[] = "exit 3", *argv[] = { sh, c, script, NULL };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct cairn_error err = { 0 };
    struct run_entry *runs;
    size_t n;
    int code = -1;
    CHECK_INT(run(argv, false, &code), 0);
    CHECK_INT(code, 3);
    CHECK(sentences > 0 && !errors && described == 1);
    const struct run_list_options o = { .supervised = true,
                                        .state = arena_strdup(&a, scratch("state/cairn")) };
    REQUIRE(!run_list(&o, &a, &runs, &n, &err) && n == 1);
    CHECK_STR(runs[0].name, "/bin/sh -c exit 3");
    CHECK(runs[0].ended && runs[0].code == 3 && runs[0].state == RUN_CRASHED);
}

/* No GPU here. */
static void strict_does_not_start(void)
{
    char sh[] = "/bin/sh", c[] = "-c", script[] = "exit 4", *argv[] = { sh, c, script, NULL };
    int code = -1;
    described = 0;
    CHECK_INT(run(argv, true, &code), 0);
    CHECK_INT(code, 3);
    CHECK_INT(described, 0); /* no journal was begun */
}

int main(void)
{
    setenv("XDG_STATE_HOME", scratch("state"), 1);
    scratch_file("machine/proc/meminfo", "MemTotal: 1000000 kB\n");
    RUN(what_is_said_goes_to_the_sink);
    RUN(strict_does_not_start);
    return check_done();
}
