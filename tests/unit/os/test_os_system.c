/* SPDX-License-Identifier: Apache-2.0
 * The parts of src/os that are no files: memory, processes, threads, signals, libraries, the standard descriptors. */
#include "check.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/library.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/stop.h"
#include "os/terminal.h"
#include "os/thread.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void memory_is_aligned(void)
{
    static const size_t aligns[] = { 64, 4096, 2 << 20 };
    for (size_t i = 0; i < sizeof(aligns) / sizeof(aligns[0]); i++)
        for (size_t size = 0; size < 3; size++) {
            void *p = os_aligned(aligns[i], size);
            CHECK(p && (uintptr_t)p % aligns[i] == 0);
            os_free_aligned(p);
        }
    os_free_aligned(NULL);
}

static void a_file_is_mapped(void)
{
    int fd = os_open_memory("test");
    REQUIRE(fd >= 0);
    CHECK_INT(os_write_at(fd, "hello", 5, 0), 5);
    const char *at = os_map(fd, 5);
    CHECK(at && !memcmp(at, "hello", 5));
    os_unmap(at, 5);
    fault_arm(1, ENOMEM);
    CHECK(!os_map(fd, 5) && errno == ENOMEM);
    CHECK(fault_disarm());
    close(fd);
}

static void sizes_are_known(void)
{
    struct os_memory_use use = os_memory_use();
    CHECK(use.resident > 4096 && use.reserved >= use.resident);
    CHECK(os_memory_total() > use.resident && os_memory_total() >= os_memory_free());
    CHECK(os_cpus() >= 1);
}

static int spawn(const char *script, int out, pid_t *pid)
{
    int in = os_open_null();
    const char *argv[] = { "sh", "-c", script, NULL };
    int r = os_spawn("/bin/sh", argv, (const int[]){ in, out, out }, pid);
    close(in);
    return r;
}

static void a_child_writes_and_ends(void)
{
    char text[16] = "";
    struct os_end end = { -1, -1 };
    pid_t pid;
    int out = os_open_memory("test");
    REQUIRE(!spawn("echo said; exit 3", out, &pid));
    CHECK(!os_wait(pid, 60, &end));
    CHECK_INT(end.code, 3);
    CHECK_INT(end.signal, 0);
    CHECK_INT(os_read_at(out, text, sizeof(text) - 1, 0), 5);
    CHECK_STR(text, "said\n");
    CHECK(!os_is_alive(pid));
    REQUIRE(!spawn("kill -SEGV $$", out, &pid));
    CHECK(!os_wait(pid, 60, &end));
    CHECK_INT(end.signal, SIGSEGV);
    close(out);
}

static void a_child_that_does_not_end_is_killed(void)
{
    struct os_end end;
    pid_t pid;
    int out = os_open_null();
    REQUIRE(!spawn("exec sleep 600", out, &pid));
    CHECK(os_is_alive(pid));
    CHECK(os_wait(pid, 0, &end) == -1);
    CHECK(!os_is_alive(pid));
    fault_arm(2, EAGAIN); /* the first is the null device */
    CHECK(spawn("exit 0", out, &pid) == -1 && fault_disarm());
    close(out);
}

static void a_process_has_a_beginning(void)
{
    int64_t start = os_process_start(getpid()), now = time(NULL);
    CHECK(os_is_alive(getpid()));
    CHECK(start > now - 3600 && start <= now + 2);
    CHECK_INT(os_process_start(INT32_MAX), 0);
}

/* PID, start and boot name one process for ever. */
static void a_signal_reaches_the_process_that_was_meant(void)
{
    struct os_process_id me, child, wrong;
    struct os_end end;
    pid_t pid;
    int out = os_open_null();
    REQUIRE(os_process_id(getpid(), &me) && me.pid == getpid() && me.start > 0 && strlen(me.boot) == 36);
    CHECK(!os_process_id(INT32_MAX, &child));
    REQUIRE(!spawn("exec sleep 600", out, &pid) && os_process_id(pid, &child));
    CHECK(!os_signal(&child, 0) && child.start >= me.start);
    wrong = child;
    wrong.start++;
    CHECK(os_signal(&wrong, SIGKILL) == -1 && errno == ESRCH);
    wrong = child;
    wrong.boot[0] ^= 1;
    CHECK(os_signal(&wrong, SIGKILL) == -1 && errno == ESRCH);
    CHECK(!os_signal(&child, 0) && !os_signal(&child, SIGTERM));
    for (int i = 0; i < 500 && os_process_id(pid, &wrong); i++)
        usleep(10000);
    CHECK(!os_process_id(pid, &wrong)); /* it has ended, though nobody has asked how */
    CHECK(os_signal(&child, 0) == -1 && errno == ESRCH);
    CHECK(!os_wait(pid, 60, &end) && end.signal == SIGTERM);
    CHECK(os_signal(&child, 0) == -1 && errno == ESRCH);
    close(out);
}

static void a_process_has_a_name(void)
{
    char name[32];
    os_set_name("cairn-test");
    CHECK(os_read_start("/proc/self/comm", name, sizeof(name)) > 0);
    CHECK_STR(name, "cairn-test\n");
}

static void spawn_apart(const char *script, int out)
{
    int in = os_open_null();
    const char *argv[] = { "sh", "-c", script, NULL };
    CHECK(!os_spawn_apart("/bin/sh", argv, (const int[]){ in, out, out }));
    close(in);
}

/* Until it has written a line. */
static const char *said_by(int fd, char text[512])
{
    ssize_t n = 0;
    for (int i = 0; i < 1000 && (n <= 0 || text[n - 1] != '\n'); i++) {
        usleep(10000);
        n = os_read_at(fd, text, 511, 0);
    }
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void one_that_is_apart_inherits_nothing(void)
{
    char text[512];
    int out = os_open_memory("test"), left = dup(out); /* is not closed on exec */
    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    signal(SIGINT, SIG_IGN); /* as a shell does for what runs in the background */
    sigprocmask(SIG_BLOCK, &blocked, &before);
    spawn_apart(
        "ps -o pid=,ppid=,sid= -p $$ | tr -s ' ' '\\n' | tr '\\n' ' '; ls /proc/self/fd | tr '\\n' ' ';"
        " grep -E 'SigIgn|SigBlk' /proc/$$/status | tr '\\n\\t' '  '; echo",
        out);
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGINT, SIG_DFL);
    said_by(out, text);
    long pid = 0, parent = 0, session = 0;
    int at = 0;
    unsigned long long ignored = 1, masked = 1;
    CHECK_INT(sscanf(text, " %ld %ld %ld %n", &pid, &parent, &session, &at), 3);
    CHECK(parent != getpid() && session != getsid(0) && session > 0);
    CHECK(!strncmp(text + at, "0 1 2 3 ", 8) && strchr("S", text[at + 8]));
    CHECK_INT(sscanf(text + at + 8, "SigBlk: %llx SigIgn: %llx", &masked, &ignored), 2);
    CHECK(!masked && !ignored);
    close(left);
    close(out);
    int none = os_open_null();
    const char *argv[] = { "x", NULL };
    CHECK(os_spawn_apart("/no/such/program", argv, (const int[]){ none, none, none }) == -1 &&
          errno == ENOENT);
    for (int nth = 1; nth <= 2; nth++) {
        fault_arm(nth, EAGAIN);
        CHECK(os_spawn_apart("/bin/true", argv, (const int[]){ none, none, none }) == -1 && errno == EAGAIN);
        CHECK(fault_disarm());
    }
    close(none);
}

static void *own_mask(void *to)
{
    pthread_sigmask(SIG_SETMASK, NULL, to);
    return NULL;
}

static void a_thread_hears_no_signal(void)
{
    sigset_t thread_mask, mine;
    pthread_t thread;
    REQUIRE(!os_thread_start(&thread, own_mask, &thread_mask));
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    CHECK(sigismember(&thread_mask, SIGINT) && sigismember(&thread_mask, SIGTERM));
    CHECK(!sigismember(&mine, SIGINT));
}

static volatile sig_atomic_t heard;

static void hear(int sig)
{
    heard = sig;
}

static void what_is_ignored_stays_so(void)
{
    struct sigaction now;
    signal(SIGHUP, SIG_IGN); /* nohup */
    signal(SIGINT, SIG_DFL);
    os_stop_catch(hear, true);
    raise(SIGINT);
    CHECK_INT(heard, SIGINT);
    CHECK(!sigaction(SIGHUP, NULL, &now) && now.sa_handler == SIG_IGN);
    CHECK(!sigaction(SIGTERM, NULL, &now) && now.sa_handler == hear && now.sa_flags & SA_RESTART);
    os_stop_catch(hear, false);
    CHECK(!sigaction(SIGTERM, NULL, &now) && !(now.sa_flags & SA_RESTART));
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
}

static void a_library_that_is_not_there_has_a_reason(void)
{
    char file[256] = "";
    CHECK(!os_library_open("libcairn-is-not-there.so.9", file, sizeof(file)));
    CHECK_HAS(os_library_reason(), "libcairn-is-not-there.so.9");
    CHECK_STR(file, "libcairn-is-not-there.so.9");
}

/* In a child, which was started without them. */
static int without_standard(void)
{
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    os_fill_standard();
    bool wrong = (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_WRONLY &&
                 (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY;
    os_null_standard();
    bool right = (fcntl(STDIN_FILENO, F_GETFL) & O_ACCMODE) == O_RDWR &&
                 (fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) == O_RDWR;
    return wrong && right ? 0 : 1;
}

static void standard_places_are_filled(void)
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid)
        _exit(without_standard());
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
}

int main(void)
{
    RUN(memory_is_aligned);
    RUN(a_file_is_mapped);
    RUN(sizes_are_known);
    RUN(a_child_writes_and_ends);
    RUN(a_child_that_does_not_end_is_killed);
    RUN(a_process_has_a_beginning);
    RUN(a_signal_reaches_the_process_that_was_meant);
    RUN(a_process_has_a_name);
    RUN(one_that_is_apart_inherits_nothing);
    RUN(a_thread_hears_no_signal);
    RUN(what_is_ignored_stays_so);
    RUN(a_library_that_is_not_there_has_a_reason);
    RUN(standard_places_are_filled);
    return check_done();
}
