/* SPDX-License-Identifier: Apache-2.0
 * Errors that are in no table: what a line speaks of, and what it says of it, name a class. */
#include "rules/log_guess.h"

#include "base/cleanup.h"
#include "check.h"

static const struct {
    const char *line;
    enum issue issue;
} rows[] = {
    { "RuntimeError: the bitsandbytes backend could not be selected", ISSUE_BITSANDBYTES },
    { "error: no flash attention variant for head dim 96", ISSUE_ATTENTION },
    { "torch.compile failed for module Net", ISSUE_TRITON },
    { "miopen: cannot prepare the workspace", ISSUE_MIOPEN },
    { "error: firmware of the MES is outdated", ISSUE_DRIVER_OLD },
    { "ERROR: driver 31.0 mismatch, an update is needed", ISSUE_DRIVER_OLD },
    { "error: target gfx1033 is unknown to this build", ISSUE_NO_KERNEL_IMAGE },
    { "error: ROCM_HOME is not set", ISSUE_LIB_LOAD },
    { "fatal: model exceeds the VRAM of this card", ISSUE_OOM_VRAM },
    { "error: not enough physical memory to start", ISSUE_HOST_OOM },
    { "error: quota on this volume would be exceeded", ISSUE_DISK_FULL },
    { "error: checkpoint 7 is truncated", ISSUE_SAFETENSORS },
    { "error: engine worker 3 is not responding", ISSUE_HANG },
    { "error: unknown option in the config of the trainer", ISSUE_NOT_ROCM },
};

static struct log_find guess(const char *line)
{
    return log_guess(line, strlen(line), 0);
}

static void subject_and_verb_name_a_class(void)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct log_find f = guess(rows[i].line);
        if (!f.score || f.issue != rows[i].issue)
            CHECK_FAIL_("%s: class %d, score %d", rows[i].line, (int)f.issue, f.score);
        CHECK(f.flags & RULE_GUESS && f.flags & RULE_SOFT);
    }
}

static void what_is_no_cause_is_no_guess(void)
{
    static const char *const lines[] = {
        "flash attention failed to load, falling back to sdpa",
        "WARNING: bitsandbytes could not be imported",
        "INFO: 0 errors in the config",
        "subprocess.CalledProcessError: Command 'triton' returned non-zero exit status 1",
        "firefox[42]: segfault at 8 ip 0 sp 0 error 4 in libxul.so",
        "error: something is odd",
        "",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        if (guess(lines[i]).score)
            CHECK_FAIL_("a guess at: %s", lines[i]);
}

int main(void)
{
    RUN(subject_and_verb_name_a_class);
    RUN(what_is_no_cause_is_no_guess);
    return check_done();
}
