/* SPDX-License-Identifier: Apache-2.0 */
#include "run/tree.h"

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"
#include "os/list.h"
#include "os/path.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KILL_PAUSE_MS = 10 };

/* "pid (name) state ppid …": the name may hold spaces and parentheses, so the last one ends it. */
static bool parse_stat(const char *text, struct tree_process *out)
{
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    unsigned long long user, system;
    long long waited_user, waited_system;
    int parent;
    if (!open || !close || close < open)
        return false;
    if (sscanf(close + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld", &out->state,
               &parent, &user, &system, &waited_user, &waited_system) != 6)
        return false;
    out->parent = (pid_t)parent;
    out->ticks = user + system + (uint64_t)waited_user + (uint64_t)waited_system;
    snprintf(out->name, sizeof(out->name), "%.*s", (int)(close - open - 1), open + 1);
    return true;
}

static bool read_process(const char *proc, const char *name, struct tree_process *out)
{
    char path[512], text[1024];
    uint64_t pid;
    if (!cairn_parse_u64(name, &pid) || pid > INT32_MAX)
        return false;
    out->pid = (pid_t)pid;
    snprintf(path, sizeof(path), "%s/%s/stat", proc, name);
    return os_read_start(path, text, sizeof(text)) >= 0 && parse_stat(text, out);
}

static void push(struct tree *t, const struct tree_process *p)
{
    if (t->n % 64 == 0) {
        void *bigger = realloc(t->process, (t->n + 64) * sizeof(*t->process));
        if (!bigger)
            abort();
        t->process = bigger;
    }
    t->process[t->n++] = *p;
}

static bool read_all(struct tree *t, const char *proc)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(proc, 0);
    if (!l)
        return false;
    for (const char *name; (name = os_list_next(l));) {
        struct tree_process p;
        if (read_process(proc, name, &p))
            push(t, &p);
    }
    return true;
}

static bool has_pid(const struct tree_process *p, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].pid == pid)
            return true;
    return false;
}

/* Moves the descendants to the front, generation by generation; quadratic, but the tree is small. */
static void keep_descendants(struct tree *t, pid_t root)
{
    size_t kept = 0;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = kept; i < t->n; i++) {
            struct tree_process p = t->process[i];
            if ((p.parent != root && !has_pid(t->process, kept, p.parent)) || !strcmp(p.name, TREE_APART))
                continue;
            t->process[i] = t->process[kept];
            t->process[kept++] = p;
            more = true;
        }
    }
    t->n = kept;
}

bool tree_read(struct tree *t, const char *proc, pid_t root)
{
    *t = (struct tree){ 0 };
    if (!read_all(t, proc))
        return false;
    keep_descendants(t, root);
    return true;
}

void tree_release(struct tree *t)
{
    free(t->process);
    *t = (struct tree){ 0 };
}

uint64_t tree_ticks(const struct tree *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->n; i++)
        sum += t->process[i].ticks;
    return sum;
}

uint64_t tree_io_bytes(const struct tree *t, const char *proc)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->n; i++) {
        char path[512], text[256];
        unsigned long long in, out;
        snprintf(path, sizeof(path), "%s/%d/io", proc, (int)t->process[i].pid);
        if (os_read_start(path, text, sizeof(text)) >= 0 &&
            sscanf(text, "rchar: %llu wchar: %llu", &in, &out) == 2)
            sum += in + out;
    }
    return sum;
}

bool tree_is_stopped(const struct tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->process[i].state == 'T' || t->process[i].state == 't')
            return true;
    return false;
}

bool tree_is_alive(const struct tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->process[i].state != 'Z' && t->process[i].state != 'X')
            return true;
    return false;
}

bool tree_waits_for_input(const struct tree *t, const char *proc)
{
    for (size_t i = 0; i < t->n; i++) {
        char path[512], text[64];
        snprintf(path, sizeof(path), "%s/%d/wchan", proc, (int)t->process[i].pid);
        if (os_read_start(path, text, sizeof(text)) >= 0 && str_starts(text, "n_tty_read"))
            return true;
    }
    return false;
}

/* The ephemeral ports. */
struct ports {
    unsigned low, high;
};

static struct ports ephemeral_ports(const char *proc)
{
    struct ports p = { 32768, 60999 };
    char path[512], text[64];
    snprintf(path, sizeof(path), "%s/sys/net/ipv4/ip_local_port_range", proc);
    if (os_read_start(path, text, sizeof(text)) >= 0)
        sscanf(text, "%u %u", &p.low, &p.high);
    return p;
}

/* Inodes of listening sockets out of /proc/PID/net/tcp: state 0A, the inode is the tenth word. */
static bool lists_inode(const char *path, unsigned long inode, const struct ports * not )
{
    char line[512];
    FILE *f = os_stream(path, OS_READ);
    bool found = false;
    while (f && !found && fgets(line, sizeof(line), f)) {
        unsigned port, state;
        unsigned long got;
        found = sscanf(line, " %*[^:]: %*[^:]:%x %*s %x %*s %*s %*s %*s %*s %lu", &port, &state, &got) == 3 &&
                state == 0x0a && got == inode && (port < not ->low || port > not ->high);
    }
    if (f)
        fclose(f);
    return found;
}

static bool process_serves(const char *proc, pid_t pid, const struct ports * not )
{
    char path[512], tcp[512], tcp6[512], target[64];
    snprintf(path, sizeof(path), "%s/%d/fd", proc, (int)pid);
    snprintf(tcp, sizeof(tcp), "%s/%d/net/tcp", proc, (int)pid);
    snprintf(tcp6, sizeof(tcp6), "%s/%d/net/tcp6", proc, (int)pid);
    CLEANUP(os_list_close) struct os_list *l = os_list_open(path, 0);
    for (const char *name; l && (name = os_list_next(l));) {
        unsigned long inode;
        if (os_read_link_at(os_list_dir(l), name, target, sizeof(target)) > 0 &&
            sscanf(target, "socket:[%lu]", &inode) == 1 &&
            (lists_inode(tcp, inode, not ) || lists_inode(tcp6, inode, not )))
            return true;
    }
    return false;
}

bool tree_serves(const struct tree *t, const char *proc)
{
    const struct ports not = ephemeral_ports(proc);
    for (size_t i = 0; i < t->n; i++)
        if (process_serves(proc, t->process[i].pid, &not ))
            return true;
    return false;
}

bool tree_has_name(const struct tree *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->process[i].name, name))
            return true;
    return false;
}

bool tree_is_python(const struct tree_process *p, const char *proc)
{
    char path[512], exe[512];
    snprintf(path, sizeof(path), "%s/%d/exe", proc, (int)p->pid);
    if (os_read_link(path, exe, sizeof(exe)) < 0)
        return false;
    const char *name = path_name(exe);
    return str_starts(name, "python") || str_starts(name, "pypy");
}

static bool process_has_variable(const char *proc, pid_t pid, const char *name)
{
    char path[512];
    CLEANUP(mem_free) char *variable = NULL;
    size_t size = 0, n = strlen(name);
    snprintf(path, sizeof(path), "%s/%d/environ", proc, (int)pid);
    FILE *f = os_stream(path, OS_READ);
    bool found = false;
    while (f && !found && getdelim(&variable, &size, 0, f) > 0)
        found = !strncmp(variable, name, n) && variable[n] == '=';
    if (f)
        fclose(f);
    return found;
}

bool tree_has_variable(const struct tree *t, const char *proc, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (process_has_variable(proc, t->process[i].pid, name))
            return true;
    return false;
}

bool tree_kill(pid_t root, const char *proc, int wait_ms)
{
    for (int waited = 0;; waited += KILL_PAUSE_MS) {
        CLEANUP(tree_release) struct tree t;
        if (!tree_read(&t, proc, root))
            return true;
        for (size_t i = 0; i < t.n; i++)
            kill(t.process[i].pid, SIGKILL);
        if (!tree_is_alive(&t))
            return true;
        if (waited >= wait_ms)
            return false;
        poll(NULL, 0, KILL_PAUSE_MS);
    }
}
