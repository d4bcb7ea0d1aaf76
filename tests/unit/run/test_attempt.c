/* SPDX-License-Identifier: Apache-2.0
 * What is excused from standing still where nobody gave the time: only here can that be a second. */
#include "run/attempt.h"

#include "base/clock.h"
#include "check.h"
#include "os/file.h"
#include "preload/record.h"
#include "run/guardian.h"
#include "run/journal.h"
#include "scratch.h"
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* One that is excused ends by itself, well after the time to judge it; one that is not must not do so on a slow machine. */
enum { HANG_S = 1, EXCUSED_S = 6, NOT_EXCUSED_S = 100 };

/* --- the trainer: this program once more ---------------------------------------------------------------------- */

/* At any port, or at one that nobody else has. */
static void listen_at(bool chosen)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), bad = -1;
    for (int port = chosen ? 20000 : 0; bad && port < 21000; port++) {
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        bad = bind(fd, (struct sockaddr *)&at, sizeof(at));
    }
    if (bad || listen(fd, 1))
        exit(9);
}

/* As the library inside a trainer writes it down: a wait that does not return, of this process or of one that has ended. */
static void wait_for_gpu(const char *prefix, int pid)
{
    static struct record r = { .version = RECORD_VERSION, .function = { "hipStreamSynchronize" } };
    char path[512];
    memcpy(r.magic, RECORD_MAGIC, sizeof(r.magic));
    r.pid = (uint32_t)pid;
    r.call[1] = (struct record_call){ .nth = 1, .start = (uint64_t)(clock_s() * 1e9) };
    snprintf(path, sizeof(path), "%s.%d", prefix, pid);
    FILE *f = fopen(path, "we");
    if (!f || fwrite(&r, sizeof(r), 1, f) != 1 || fclose(f))
        exit(9);
}

static int stand_still(const char *what, const char *calls, const char *seconds)
{
    if (strcmp(what, "sleep") && strcmp(what, "inner"))
        listen_at(strcmp(what, "any") != 0);
    if (!strcmp(what, "gpu"))
        wait_for_gpu(calls, getpid());
    if (!strcmp(what, "dead"))
        wait_for_gpu(calls, 1);
    if (!strcmp(what, "inner"))
        prctl(PR_SET_NAME, GUARDIAN_NAME);
    sleep((unsigned)atoi(seconds));
    return 0;
}

/* --- the tests ------------------------------------------------------------------------------------------------- */

static void ignore(void *context, const char *text)
{
    (void)context;
    (void)text;
}

/* Of one that stands still so long. */
static enum attempt_end end_of(const char *what, const char *variable, int seconds)
{
    char self[] = "/proc/self/exe", word[16], calls[512], wait[16];
    char *const argv[] = { self, word, calls, wait, NULL };
    const char *const env[] = { "PATH=/bin", variable, NULL };
    static const int forwarded[] = { SIGTERM };
    const struct message_sink messages = { .say = ignore };
    struct facts f = { .root.fd = -1 };
    struct memory_monitor g = { .root = &f.root };
    struct cairn_error err = { 0 };
    struct attempt out = { .code = -1 };
    CLEANUP(journal_close) struct journal j = { 0 };
    CLEANUP(signals_close) struct signals s = { .fd = -1 };
    snprintf(word, sizeof(word), "%s", what);
    snprintf(wait, sizeof(wait), "%d", seconds);
    snprintf(calls, sizeof(calls), "%s", scratch(what));
    const struct attempt_options o = {
        .argv = argv,
        .env = env,
        .hang_after_s = HANG_S,
        .calls = calls,
        .monitor = &g,
        .journal = &j,
        .signals = &s,
        .messages = &messages,
    };
    CHECK(!root_open(&f.root, NULL, &err) && !journal_open(&j, scratch_dir, NULL, &err) &&
          !signals_open(&s, forwarded, 1, &err) && !attempt_run(&o, &out, &err));
    root_close(&f.root);
    CHECK(out.end == ATTEMPT_HUNG || out.code == 0);
    return out.end;
}

static void one_that_sleeps_hangs(void)
{
    CHECK_INT(end_of("sleep", NULL, NOT_EXCUSED_S), ATTEMPT_HUNG);
}

static void a_server_may_stand_still(void)
{
    CHECK_INT(end_of("chosen", NULL, EXCUSED_S), ATTEMPT_ENDED);
}

static void to_listen_at_any_port_is_no_excuse(void)
{
    CHECK_INT(end_of("any", NULL, NOT_EXCUSED_S), ATTEMPT_HUNG);
}

static void nor_is_it_for_one_rank_of_several(void)
{
    CHECK_INT(end_of("chosen", "MASTER_PORT=29500", NOT_EXCUSED_S), ATTEMPT_HUNG);
}

static void nor_inside_a_call(void)
{
    CHECK_INT(end_of("gpu", NULL, NOT_EXCUSED_S), ATTEMPT_HUNG);
    CHECK_INT(end_of("dead", NULL, EXCUSED_S), ATTEMPT_ENDED); /* another one's is none */
}

static void a_run_inside_watches_itself(void)
{
    CHECK_INT(end_of("inner", NULL, EXCUSED_S), ATTEMPT_ENDED);
}

/* ---- time to save ---- */

/* One that does not obey, and holds a file that it inherited; asked to stop after half a second. */
static void stop_it(const char *script, int grace_s, int lock, struct attempt *out, double *seconds)
{
    char *const argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)script, NULL };
    const char *const env[] = { "PATH=/bin:/usr/bin", NULL };
    static const int forwarded[] = { SIGTERM };
    const struct message_sink messages = { .say = ignore };
    struct facts f = { .root.fd = -1 };
    struct memory_monitor g = { .root = &f.root };
    struct cairn_error err = { 0 };
    CLEANUP(journal_close) struct journal j = { 0 };
    CLEANUP(signals_close) struct signals s = { .fd = -1 };
    const struct attempt_options o = { .argv = argv,
                                       .env = env,
                                       .monitor = &g,
                                       .journal = &j,
                                       .signals = &s,
                                       .messages = &messages,
                                       .lock = lock,
                                       .stop_grace_s = grace_s,
                                       .silent = true };
    pid_t me = getpid(), asking = fork();
    if (!asking) {
        usleep(500000);
        kill(me, SIGTERM);
        usleep(300000);
        kill(me, SIGTERM); /* impatience does not shorten the time */
        _exit(0);
    }
    double begin = clock_s();
    CHECK(!root_open(&f.root, NULL, &err) && !journal_open(&j, scratch_dir, NULL, &err) &&
          !signals_open(&s, forwarded, 1, &err) && !attempt_run(&o, out, &err));
    *seconds = clock_s() - begin;
    waitpid(asking, NULL, 0);
    root_close(&f.root);
}

static void a_trainer_may_save_before_it_ends(void)
{
    static const struct {
        const char *script;
        int grace_s, code;
        double least_s, most_s;
    } cases[] = {
        { "trap 'sleep 1; exit 7' INT; while :; do sleep 0.1; done", 30, 7, 1.4, 20 },
        { "trap '' INT; while :; do sleep 0.1; done", 1, 143, 1.4, 10 },
        { "trap '' INT TERM; while :; do sleep 0.1; done", 1, 137, 2.4, 12 },
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct attempt out = { .code = -1 };
        double seconds;
        stop_it(cases[i].script, cases[i].grace_s, 0, &out, &seconds);
        CHECK_INT(out.end, ATTEMPT_INTERRUPTED);
        CHECK_INT(out.code, cases[i].code);
        if (seconds < cases[i].least_s || seconds > cases[i].most_s)
            CHECK_FAIL_("%s: %.1f s", cases[i].script, seconds);
    }
}

/* Guardian and trainer have it open, and nobody once they have ended. */
static void the_lock_is_held_while_a_process_is_left(void)
{
    struct attempt out = { .code = -1 };
    double seconds;
    const char *path = scratch_file("held", "");
    int lock = os_open(path, OS_READ | OS_WRITE), asking = os_open(path, OS_READ);
    char script[700];
    REQUIRE(lock > 2 && !os_hold(lock));
    snprintf(
        script, sizeof(script),
        "ls -l /proc/self/fd /proc/$PPID/fd | grep -c '%s' >'%s'; trap 'exit 0' INT; while :; do sleep 0.1; done",
        path, scratch("holders"));
    stop_it(script, 5, lock, &out, &seconds);
    CHECK_STR(scratch_read(scratch("holders")), "2\n");
    CHECK_INT(os_is_held(asking), 1); /* by this test */
    close(lock);
    CHECK_INT(os_is_held(asking), 0);
    close(asking);
}

int main(int argc, char **argv)
{
    if (argc > 3)
        return stand_still(argv[1], argv[2], argv[3]);
    RUN(one_that_sleeps_hangs);
    RUN(a_server_may_stand_still);
    RUN(to_listen_at_any_port_is_no_excuse);
    RUN(nor_is_it_for_one_rank_of_several);
    RUN(nor_inside_a_call);
    RUN(a_run_inside_watches_itself);
    RUN(a_trainer_may_save_before_it_ends);
    RUN(the_lock_is_held_while_a_process_is_left);
    return check_done();
}
