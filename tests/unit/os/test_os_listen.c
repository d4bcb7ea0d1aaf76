/* SPDX-License-Identifier: Apache-2.0
 * What a server needs of the system: sockets, children with limits, random bytes, changes in folders. */
#include "os/listen.h"

#include "check.h"
#include "os/file.h"
#include "os/process.h"
#include "os/random.h"
#include "os/watch.h"
#include "tree.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct tree tree;

static int accept_one(int listener)
{
    struct sockaddr_storage from;
    socklen_t size;
    struct pollfd p = { .fd = listener, .events = POLLIN };
    poll(&p, 1, 5000);
    return os_accept(listener, &from, &size);
}

/* A byte goes from one end to the other. */
static void check_pair(int client, int listener)
{
    char c = 0;
    REQUIRE(client >= 0);
    int server = accept_one(listener);
    REQUIRE(server >= 0);
    CHECK(fcntl(server, F_GETFD) & FD_CLOEXEC);
    CHECK(fcntl(server, F_GETFL) & O_NONBLOCK);
    CHECK_INT(write(server, "x", 1), 1);
    CHECK_INT(read(client, &c, 1), 1);
    CHECK(!os_is_shut(client));
    os_shut(server);
    CHECK(os_is_shut(client));
    CHECK_INT(read(client, &c, 1), 0);
    close(server);
    close(client);
}

static void tcp_listens_on_an_address(void)
{
    int port = 0, same, fd = os_listen_tcp("127.0.0.1", &port);
    REQUIRE(fd >= 0);
    CHECK(port > 0);
    check_pair(os_connect_tcp("127.0.0.1", port, 1000), fd);
    same = port;
    CHECK(os_listen_tcp("127.0.0.1", &same) == -1 && errno == EADDRINUSE);
    struct sockaddr_storage from;
    socklen_t size;
    CHECK(os_accept(fd, &from, &size) == -1 && errno == EAGAIN);
    close(fd);
    same = port;
    fd = os_listen_tcp("127.0.0.1", &same); /* at once, though a connection of the first lingers */
    CHECK(fd >= 0);
    close(fd);
    int other = 0;
    CHECK(os_listen_tcp("localhost", &other) == -1 && errno == EINVAL);
    CHECK(os_connect_tcp("127.0.0.1", port, 1000) == -1);
}

static void unix_sockets_are_private(void)
{
    struct stat st;
    char path[128];
    snprintf(path, sizeof(path), "%s", tree_path(&tree, "s.sock"));
    mode_t before = umask(0);
    int fd = os_listen_unix(path);
    umask(before);
    REQUIRE(fd >= 0);
    CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0600);
    check_pair(os_connect_unix(path, 1000), fd);
    CHECK(os_listen_unix(path) == -1 && errno == EADDRINUSE); /* somebody listens */
    close(fd);
    fd = os_listen_unix(path); /* nobody any more */
    CHECK(fd >= 0);
    close(fd);
    tree_put(&tree, "file", "text");
    CHECK(os_listen_unix(tree_path(&tree, "file")) == -1 && errno == EADDRINUSE);
    CHECK(!access(tree_path(&tree, "file"), R_OK));
    char longer[300];
    memset(longer, 'x', sizeof(longer));
    longer[299] = '\0';
    CHECK(os_listen_unix(longer) == -1 && errno == ENAMETOOLONG);
}

static void addresses_are_told_apart(void)
{
    static const struct {
        const char *text;
        bool address, loopback;
    } rows[] = {
        { "127.0.0.1", true, true }, { "127.8.9.1", true, true },   { "::1", true, true },
        { "0.0.0.0", true, false },  { "::", true, false },         { "10.0.0.1", true, false },
        { "fe80::1", true, false },  { "localhost", false, false }, { "127.1", false, false },
        { "", false, false },        { "[::1]", false, false },     { "1.2.3.4.5", false, false },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool loopback = false, is = os_is_address(rows[i].text, &loopback);
        if (is != rows[i].address || (is && loopback != rows[i].loopback))
            CHECK_FAIL_("%s", rows[i].text);
    }
}

/* ---- children ---- */

static int null_fd;

static int run_child(const struct os_child *c, struct os_end *end)
{
    pid_t pid;
    if (os_child_start(c, &pid))
        return -1;
    int r;
    while ((r = os_child_end(pid, end)) == 1)
        usleep(2000);
    return r;
}

static struct os_child shell(const char *const *argv)
{
    return (struct os_child){ .path = "/bin/sh", .argv = argv, .files = { null_fd, null_fd, null_fd } };
}

static void children_end_with_their_status(void)
{
    struct os_end end = { 0 };
    const char *seven[] = { "sh", "-c", "exit 7", NULL }, *dies[] = { "sh", "-c", "kill -TERM $$", NULL };
    struct os_child c = shell(seven);
    CHECK(!run_child(&c, &end));
    CHECK(end.code == 7 && !end.signal);
    c = shell(dies);
    CHECK(!run_child(&c, &end));
    CHECK_INT(end.signal, SIGTERM);
    c.path = "/no/such/program";
    pid_t pid;
    CHECK(os_child_start(&c, &pid) == -1 && errno == ENOENT);
}

static void children_have_limits(void)
{
    struct os_end end = { 0 };
    /* The limits are set a moment after the start. */
    const char *asks[] = {
        "sh", "-c",
        "sleep 0.2; [ $(ulimit -v) = 1000000 ] && [ $(ulimit -t) = 5 ] && [ $(ulimit -d) = 500000 ]", NULL
    };
    struct os_child c = shell(asks);
    c.memory = (uint64_t)1000000 << 10;
    c.data = (uint64_t)500000 << 10;
    c.cpu_s = 5;
    CHECK(!run_child(&c, &end));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__has_feature)
    CHECK_INT(end.code, 0);
#endif
    const char *burns[] = { "sh", "-c", "while :; do :; done", NULL };
    c = shell(burns);
    c.cpu_s = 1;
    CHECK(!run_child(&c, &end));
    CHECK(end.signal == SIGXCPU || end.signal == SIGKILL);
}

static void children_start_clean(void)
{
    struct os_end end = { 0 };
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &before);
    void (*pipe_before)(int) = signal(SIGPIPE, SIG_IGN);
    const char *asks[] = {
        "sh", "-c",
        "grep -q 'SigBlk:[[:space:]]*0*$' /proc/self/status && grep -q 'SigIgn:.*[02468ace]000$' /proc/self/status; kill -TERM $$",
        NULL
    };
    struct os_child c = shell(asks);
    c.folder = tree.dir;
    CHECK(!run_child(&c, &end));
    signal(SIGPIPE, pipe_before);
    sigprocmask(SIG_SETMASK, &before, NULL);
    CHECK_INT(end.signal, SIGTERM);
    const char *where[] = { "sh", "-c", "[ -e marker ]", NULL };
    tree_put(&tree, "marker", "");
    c = shell(where);
    c.folder = tree.dir;
    CHECK(!run_child(&c, &end) && end.code == 0);
}

static void a_whole_group_is_killed(void)
{
    char path[128], text[32] = "";
    snprintf(path, sizeof(path), "%s", tree_path(&tree, "grandchild"));
    const char *starts[] = { "sh", "-c", "sleep 100 & echo $! >\"$0\"; wait", path, NULL };
    struct os_child c = shell(starts);
    struct os_end end;
    pid_t pid;
    REQUIRE(!os_child_start(&c, &pid));
    for (int i = 0; i < 500 && os_read_start(path, text, sizeof(text)) <= 1; i++)
        usleep(10000);
    pid_t grandchild = atoi(text);
    REQUIRE(grandchild > 0);
    CHECK_INT(os_child_end(pid, &end), 1);
    os_child_kill(pid);
    CHECK(!os_wait(pid, 5, &end) && end.signal == SIGKILL);
    bool gone = false;
    for (int i = 0; i < 500 && !gone; i++) {
        char state[64], line[256];
        snprintf(state, sizeof(state), "/proc/%d/stat", (int)grandchild);
        gone = os_read_start(state, line, sizeof(line)) <= 0 || strstr(line, ") Z ");
        usleep(gone ? 0 : 10000);
    }
    CHECK(gone);
}

/* ---- the rest ---- */

static void random_bytes_differ(void)
{
    unsigned char a[64] = { 0 }, b[64] = { 0 }, none[64] = { 0 };
    CHECK(!os_random(a, sizeof(a)) && !os_random(b, sizeof(b)));
    CHECK(memcmp(a, b, sizeof(a)) && memcmp(a, none, sizeof(a)));
    CHECK(!os_random(a, 0));
}

static char changes[512];

static void note(void *context, struct os_watch_event e)
{
    (void)context;
    size_t n = strlen(changes);
    snprintf(changes + n, sizeof(changes) - n, "%s ", e.name ? e.name : "-");
}

static void changes_are_reported(void)
{
    tree_put(&tree, "watched/old", "text");
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/watched", tree.dir);
    int watch = os_watch_open();
    REQUIRE(watch >= 0);
    int id = os_watch_add(watch, folder);
    CHECK(id >= 0);
    CHECK(os_watch_add(watch, tree_path(&tree, "watched/old")) == -1);
    os_watch_read(watch, note, NULL); /* nothing yet, and it does not wait */
    CHECK_STR(changes, "");
    tree_put(&tree, "watched/new", "text");
    rename(tree_path(&tree, "watched/old"), tree_path(&tree, "watched/renamed"));
    os_watch_read(watch, note, NULL);
    CHECK_HAS(changes, "new ");
    CHECK_HAS(changes, "renamed ");
    os_watch_remove(watch, id);
    close(watch);
}

int main(void)
{
    tree_make(&tree);
    null_fd = os_open_null();
    RUN(tcp_listens_on_an_address);
    RUN(unix_sockets_are_private);
    RUN(addresses_are_told_apart);
    RUN(children_end_with_their_status);
    RUN(children_have_limits);
    RUN(children_start_clean);
    RUN(a_whole_group_is_killed);
    RUN(random_bytes_differ);
    RUN(changes_are_reported);
    tree_remove(&tree);
    return check_done();
}
