/* SPDX-License-Identifier: Apache-2.0 */
#include "run/tree.h"

#include "check.h"
#include "scratch.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void add(int pid, const char *name, char state, int parent, int ticks)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "proc/%d/stat", pid);
    snprintf(text, sizeof(text), "%d (%s) %c %d 1 1 0 -1 0 0 0 0 0 %d 1 2 3 20 0 1 0 100 0 0", pid, name,
             state, parent, ticks);
    scratch_file(path, text);
}

static void make_machine(void)
{
    add(1, "init", 'S', 0, 5);
    add(10, "guardian", 'S', 1, 5);
    add(11, "python) S 1 (x", 'S', 10, 100);
    add(12, "worker", 'R', 11, 50);
    add(9, "older number", 'S', 12, 1);
    add(13, "dead", 'Z', 11, 7);
    add(20, "somebody else", 'R', 1, 1000);
}

static void finds_descendants_of_every_generation(void)
{
    make_machine();
    struct tree t;
    REQUIRE(tree_read(&t, scratch("proc"), 10));
    CHECK_INT(t.n, 4);
    bool found = false;
    for (size_t i = 0; i < t.n; i++) {
        CHECK(t.process[i].pid != 20 && t.process[i].pid != 10);
        if (t.process[i].pid == 11) {
            found = true;
            CHECK_STR(t.process[i].name, "python) S 1 (x");
            CHECK_INT(t.process[i].ticks, 106);
        }
    }
    CHECK(found);
    CHECK_INT(tree_ticks(&t), 100 + 50 + 1 + 7 + 4 * 6);
    scratch_file("proc/11/io", "rchar: 100\nwchar: 20\nsyscr: 7\nsyscw: 7\n");
    scratch_file("proc/20/io", "rchar: 1000\nwchar: 1000\nsyscr: 7\nsyscw: 7\n");
    CHECK_INT(tree_io_bytes(&t, scratch("proc")), 120);
    tree_release(&t);
}

/* The supervisor of a job that a trainer put into the queue, and all below it. */
static void what_is_apart_does_not_count(void)
{
    make_machine();
    add(30, TREE_APART, 'S', 11, 1000);
    add(31, "cairn-guardian", 'S', 30, 1000);
    add(32, "python", 'R', 31, 1000);
    struct tree t;
    REQUIRE(tree_read(&t, scratch("proc"), 10));
    CHECK_INT(t.n, 4);
    for (size_t i = 0; i < t.n; i++)
        CHECK(t.process[i].pid < 30);
    tree_release(&t);
    REQUIRE(tree_read(&t, scratch("proc"), 30)); /* its own tree is whole */
    CHECK_INT(t.n, 2);
    tree_release(&t);
    for (int pid = 30; pid <= 32; pid++)
        add(pid, "gone", 'S', 1, 0);
}

static void tells_states(void)
{
    make_machine();
    struct tree t;
    REQUIRE(tree_read(&t, scratch("proc"), 10));
    CHECK(tree_is_alive(&t) && !tree_is_stopped(&t));
    tree_release(&t);
    add(12, "worker", 'T', 11, 50);
    REQUIRE(tree_read(&t, scratch("proc"), 10));
    CHECK(tree_is_stopped(&t));
    tree_release(&t);
    REQUIRE(tree_read(&t, scratch("proc"), 13));
    CHECK(!tree_is_alive(&t));
    tree_release(&t);
}

static void sees_who_waits_for_a_line(void)
{
    make_machine();
    struct tree t;
    REQUIRE(tree_read(&t, scratch("proc"), 10));
    CHECK(!tree_waits_for_input(&t, scratch("proc")));
    scratch_file("proc/12/wchan", "n_tty_read");
    CHECK(tree_waits_for_input(&t, scratch("proc")));
    tree_release(&t);
}

static void sees_variables(void)
{
    make_machine();
    struct tree t;
    REQUIRE(tree_read(&t, scratch("proc"), 10));
    FILE *f = fopen(scratch("proc/12/environ"), "we");
    REQUIRE(f && fwrite("A=1\0MASTER_PORT=2\0MASTER=", 1, 25, f) == 25 && !fclose(f));
    CHECK(tree_has_variable(&t, scratch("proc"), "MASTER_PORT"));
    CHECK(tree_has_variable(&t, scratch("proc"), "MASTER"));
    CHECK(!tree_has_variable(&t, scratch("proc"), "MASTER_PO"));
    CHECK(!tree_has_variable(&t, scratch("proc"), "PORT"));
    tree_release(&t);
}

static void sees_who_serves(void)
{
    make_machine();
    struct tree t;
    REQUIRE(tree_read(&t, scratch("proc"), 10));
    mkdir(scratch("proc/11/fd"), 0700);
    (void)!symlink("socket:[4242]", scratch("proc/11/fd/5"));
    mkdir(scratch("proc/11/net"), 0700);
    scratch_file("proc/11/net/tcp",
                 "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
                 "   0: 0100007F:1F90 00000000:0000 01 00000000:00000000 00:00000000 00000000"
                 "  1000        0 4242 1 0 100 0 0 10 0\n");
    CHECK(!tree_serves(&t, scratch("proc"))); /* connected, not listening */
    scratch_file("proc/11/net/tcp6",
                 "   0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000"
                 "  1000        0 4242 1 0 100 0 0 10 0\n");
    CHECK(tree_serves(&t, scratch("proc")));
    scratch_file("proc/sys/net/ipv4/ip_local_port_range", "8080\t9000\n");
    CHECK(!tree_serves(&t, scratch("proc"))); /* at any port */
    scratch_file("proc/sys/net/ipv4/ip_local_port_range", "8081\t9000\n");
    CHECK(tree_serves(&t, scratch("proc")));
    tree_release(&t);
}

static void a_hidden_proc_is_an_empty_tree(void)
{
    struct tree t;
    CHECK(!tree_read(&t, scratch("nothing"), 1));
    CHECK_INT(t.n, 0);
    CHECK(!tree_is_alive(&t));
    tree_release(&t);
    CHECK(tree_kill(getpid(), scratch("nothing"), 0));
}

static void kills_everything_below(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = fork();
    if (child == 0) {
        if (fork() == 0)
            setsid();
        for (;;)
            pause();
    }
    struct tree t = { 0 };
    for (int i = 0; i < 500 && t.n < 2; i++) {
        tree_release(&t);
        tree_read(&t, "/proc", getpid());
        usleep(10000);
    }
    CHECK_INT(t.n, 2);
    tree_release(&t);
    CHECK(tree_kill(getpid(), "/proc", 10000));
    while (waitpid(-1, NULL, 0) > 0)
        ;
    CHECK(tree_read(&t, "/proc", getpid()) && t.n == 0);
    tree_release(&t);
}

int main(void)
{
    RUN(finds_descendants_of_every_generation);
    RUN(what_is_apart_does_not_count);
    RUN(tells_states);
    RUN(sees_who_waits_for_a_line);
    RUN(sees_variables);
    RUN(sees_who_serves);
    RUN(a_hidden_proc_is_an_empty_tree);
    RUN(kills_everything_below);
    return check_done();
}
