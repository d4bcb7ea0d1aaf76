/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_trace.h"

#include "check.h"

static struct log_find line(struct log_trace *t, const char *s)
{
    return log_trace_line(t, s, strlen(s));
}

static void the_last_line_names_the_exception(void)
{
    struct log_trace t = { 0 };
    log_trace_begin(&t, "Traceback (most recent call last):", 0);
    CHECK(!line(&t, "  File \"a.py\", line 1, in f").score && t.open);
    CHECK(!line(&t, "").score && t.open);
    struct log_find f = line(&t, "trainer.errors.NoImages: the folder is empty");
    CHECK(f.issue == ISSUE_NOT_ROCM && f.score < 50 && !t.open);
}

static void behind_any_prefix(void)
{
    struct log_trace t = { 0 };
    log_trace_begin(&t, "[rank0]: Traceback (most recent call last):", strlen("[rank0]: "));
    CHECK(!line(&t, "[rank0]:     x = f(y)").score && t.open);
    CHECK(line(&t, "[rank0]: KeyError: 'width'").score == 60);
}

static void in_the_first_column_behind_a_box(void)
{
    static const char box[] = "\xe2\x95\xad Traceback (most recent call last) \xe2\x95\xae";
    struct log_trace t = { 0 };
    log_trace_begin(&t, box, 4);
    CHECK(!line(&t, "\xe2\x94\x82 /home/user/bin/accelerate:8 in <module>").score && t.open);
    CHECK(line(&t, "IndexError: list index out of range").score == 60);
    log_trace_begin(&t, "KeyError      Traceback (most recent call last)", strlen("KeyError      "));
    CHECK(t.column == 0);
}

static void what_speaks_of_the_gpu_is_left_to_the_tables(void)
{
    struct log_trace t = { 0 };
    log_trace_begin(&t, "Traceback (most recent call last):", 0);
    CHECK(line(&t, "RuntimeError: HIP error: something new").issue == ISSUE_UNKNOWN);
}

static void a_missing_package_is_the_environments_own(void)
{
    struct log_trace t = { 0 };
    log_trace_begin(&t, "Traceback (most recent call last):", 0);
    CHECK(line(&t, "ImportError: WanPipeline requires the ftfy library").score == 60);
    log_trace_begin(&t, "Traceback (most recent call last):", 0);
    CHECK(line(&t, "ImportError: libfoo.so.1: cannot open shared object file").score < 50);
}

static void a_report_gives_type_and_message_apart(void)
{
    static const char type[] = "- **Exception Type:** KeyError",
                      other[] = "- **Exception Type:** RuntimeError";
    CHECK(log_trace_type(type, strlen(type), 4).issue == ISSUE_NOT_ROCM);
    CHECK(!log_trace_type(other, strlen(other), 4).score);
}

static void launchers_only_repeat(void)
{
    struct log_trace t = { 0 };
    log_trace_begin(&t, "Traceback (most recent call last):", 0);
    CHECK(!line(&t, "subprocess.CalledProcessError: Command 'x' returned 1").score);
    log_trace_begin(&t, "Traceback (most recent call last):", 0);
    CHECK(!line(&t, "KeyboardInterrupt").score);
    log_trace_begin(&t, "Traceback (most recent call last):", 0);
    CHECK(!line(&t, "RuntimeError: the engine failed, see root cause above").score);
}

static void without_a_traceback_it_starts_its_line(void)
{
    static const char alone[] = "ValueError: no", inside[] = "caught a ValueError: no",
                      logged[] = "trainer - ERROR - ValueError: no";
    struct log_trace t = { 0 };
    CHECK(log_trace_exception(&t, alone, strlen(alone), 5).score > 0);
    CHECK(!log_trace_exception(&t, inside, strlen(inside), 14).score);
    CHECK(log_trace_exception(&t, logged, strlen(logged), strlen("trainer - ERROR - Value")).score > 0);
}

static bool looks_bad(const char *s, const char *word)
{
    return log_trace_word(s, strlen(s), (size_t)(strstr(s, word) - s)).score > 0;
}

static void words_of_errors(void)
{
    CHECK(looks_bad("E0612 worker.cc:7] rank 1 failed to join", "ailed"));
    CHECK(looks_bad("backend error: 17", "rror:"));
    CHECK(!looks_bad("12 passed, 0 failed", "ailed"));
    CHECK(!looks_bad("UserWarning: Failed to load image extension", "ailed"));
    CHECK(!looks_bad("finished without error: good", "rror:"));
    CHECK(!looks_bad("ERROR: ld.so: object '/lib/a.so' from LD_PRELOAD cannot be preloaded (wrong ELF class: "
                     "ELFCLASS64): ignored.",
                     "ERROR"));
}

int main(void)
{
    RUN(the_last_line_names_the_exception);
    RUN(behind_any_prefix);
    RUN(in_the_first_column_behind_a_box);
    RUN(what_speaks_of_the_gpu_is_left_to_the_tables);
    RUN(a_missing_package_is_the_environments_own);
    RUN(a_report_gives_type_and_message_apart);
    RUN(launchers_only_repeat);
    RUN(without_a_traceback_it_starts_its_line);
    RUN(words_of_errors);
    return check_done();
}
