/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_killed.h"

#include "base/cleanup.h"
#include "check.h"

static void kill_line(struct log_killed *k, const char *s)
{
    log_killed_see(k, s, strlen(s), (size_t)(strstr(s, "process ") - s) - 1);
}

static void tell(struct log_killed *k, const char *s, const char *word)
{
    log_killed_tell(k, s, strlen(s), (size_t)(strstr(s, word) - s));
}

static void a_line_of_the_kernel_names_one(void)
{
    static const struct {
        const char *line;
        bool trainer;
    } rows[] = {
        { "Out of memory: Killed process 4242 (python3) total-vm:1kB", true },
        { "Out of memory: Kill process 4242 (python3.11) score 900 or sacrifice child", true },
        { "Killed process 4242, UID 1000, (pt_main_thread) total-vm:1kB", true },
        { "oom_reaper: reaped process 4242 (ray::IDLE), now anon-rss:0kB", true },
        { "Killed process 4242 (ipython3) total-vm:1kB", false },
        { "Killed process 4242 (pyth", false },
        { "Killed process 4242", false },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct log_killed k = { 0 };
        kill_line(&k, rows[i].line);
        CHECK(k.killed.n == 1 && k.killed.pid[0] == 4242);
        if (k.trainer != rows[i].trainer)
            CHECK_FAIL_("%s", rows[i].line);
    }
    struct log_killed k = { 0 };
    kill_line(&k, "Killed process (python3)");
    kill_line(&k, "Killed process ");
    kill_line(&k, "Killed process 123456789012345678901234567890 (python3)");
    CHECK(!k.killed.n && !k.trainer);
}

static void a_program_tells_numbers_in_many_ways(void)
{
    static const struct {
        const char *line, *word;
        bool told;
    } rows[] = {
        { "started (pid 4242)", "pid", true },
        { "(WorkerDict pid=4242) ready", "pid", true },
        { "\tpid: 4242", "pid", true },
        { "Worker PID: 4242 Worker exit type", "PID", true },
        { "DataLoader worker (pid(s) 11, 12, 4242) exited", "pid", true },
        { "Killing subprocess 4242", "subprocess", true },
        { "pid 42420", "pid", false },
        { "pid 424", "pid", false },
        { "pid 11, 12,", "pid", false },
        { "pid ", "pid", false },
        { "rapid=4242", "pid", false },
        { "[   12.345678] task pid 4242", "pid", false },
        { "Nov 16 05:00:00 host kernel: task pid:4242", "pid", false },
        { "CPU: 3 PID: 4242 Comm: python3 Not tainted", "PID", false },
        { "[rank0] pid 4242", "pid", true },
        { "[0] pid 4242", "pid", true },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct log_killed k = { 0 };
        kill_line(&k, "Killed process 4242 (x)");
        tell(&k, rows[i].line, rows[i].word);
        if (log_killed_told(&k) != rows[i].told)
            CHECK_FAIL_("%s", rows[i].line);
    }
}

static void the_last_ones_are_kept(void)
{
    struct log_killed k = { 0 };
    tell(&k, "pid 4242", "pid");
    for (int i = 0; i < LOG_PIDS; i++) {
        char line[32];
        snprintf(line, sizeof(line), "pid %d", 100 + i);
        tell(&k, line, "pid");
        tell(&k, line, "pid");
    }
    kill_line(&k, "Killed process 4242 (x)");
    CHECK(!log_killed_told(&k));
    kill_line(&k, "Killed process 100 (x)");
    CHECK(log_killed_told(&k));
}

int main(void)
{
    RUN(a_line_of_the_kernel_names_one);
    RUN(a_program_tells_numbers_in_many_ways);
    RUN(the_last_ones_are_kept);
    return check_done();
}
