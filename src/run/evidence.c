/* SPDX-License-Identifier: Apache-2.0 */
#include "run/evidence.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "host/command.h"
#include "run/gpu_calls.h"
#include "os/file.h"
#include "os/list.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    MOST_BYTES = 16 << 10,
    MOST_PROCESSES = 64,
    MOST_THREADS = 64,
    KERNEL_BYTES = 16 << 10,
    KLOG_READ_ALL = 3
};
/* Limits for the Python stacks of all processes together. */
enum { STACKS_S = 5, STACKS_BYTES = 256 << 10 };

static void file_close(FILE **f)
{
    if (*f)
        fclose(*f);
}

/* The end of a kernel log is what counts; of other files the beginning. */
static void add_file(struct str *out, const char *proc, const char *what)
{
    char path[512], text[MOST_BYTES];
    snprintf(path, sizeof(path), "%s/%s", proc, what);
    ssize_t n = os_read_start(path, text, sizeof(text));
    str_addf(out, "--- %s\n", path);
    if (n < 0)
        str_addf(out, "(%s)\n", strerror(errno));
    else
        str_addn(out, text, (size_t)n);
    if (n > 0 && text[n - 1] != '\n')
        str_add(out, "\n");
}

/* One line per thread: where it waits, and in which system call. */
static void add_threads(struct str *out, const char *proc, int pid)
{
    static const char *const files[] = { "comm", "wchan", "syscall" };
    char path[512], text[256];
    snprintf(path, sizeof(path), "%s/%d/task", proc, pid);
    CLEANUP(os_list_close) struct os_list *l = os_list_open(path, 0);
    str_addf(out, "--- %s\n", path);
    int n = 0;
    for (const char *name; l && n < MOST_THREADS && (name = os_list_next(l));) {
        str_add(out, name);
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
            snprintf(path, sizeof(path), "%s/%d/task/%s/%s", proc, pid, name, files[i]);
            os_read_start(path, text, sizeof(text));
            text[strcspn(text, "\n")] = '\0';
            str_addf(out, "  %s", *text ? text : "?");
        }
        str_add(out, "\n");
        n++;
    }
}

static void add_process(struct str *out, const char *proc, const struct tree_process *p)
{
    static const char *const files[] = { "wchan", "syscall", "stack", "status" };
    str_addf(out, "=== process %d (%s), state %c, CPU time %llu ticks\n", (int)p->pid, p->name, p->state,
             (unsigned long long)p->ticks);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char what[64];
        snprintf(what, sizeof(what), "%d/%s", (int)p->pid, files[i]);
        add_file(out, proc, what);
    }
    add_threads(out, proc, (int)p->pid);
}

/* Limits of the Python stacks. */
struct limits {
    double until;
    size_t most_len; /* of the whole text */
};

static bool is_reached(const struct limits *l, const struct str *out)
{
    return clock_s() >= l->until || out->len >= l->most_len;
}

/* The output of a program until it ends or a limit is reached; then kills it. */
static void add_output(struct str *out, int from, pid_t pid, const struct limits *l)
{
    char text[4096];
    struct pollfd p = { from, POLLIN, 0 };
    while (!is_reached(l, out)) {
        double left = l->until - clock_s();
        if (poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0) <= 0)
            continue;
        ssize_t n = read(from, text, sizeof(text));
        if (n <= 0)
            break;
        str_addn(out, text, (size_t)n);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* The Python stack of a process, from py-spy.  False: py-spy is not installed. */
static bool add_python_stack(struct str *out, int pid, const struct limits *l)
{
    char number[16], spy[] = "py-spy", dump[] = "dump", option[] = "--pid";
    char *argv[] = { spy, dump, option, number, NULL };
    int ends[2];
    pid_t child;
    snprintf(number, sizeof(number), "%d", pid);
    if (pipe2(ends, O_CLOEXEC))
        return false;
    posix_spawn_file_actions_t fa;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&fa, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&fa, ends[1], STDERR_FILENO);
    int failed = posix_spawnp(&child, spy, &fa, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&fa);
    close(ends[1]);
    if (!failed) {
        str_addf(out, "--- py-spy dump --pid %d\n", pid);
        add_output(out, ends[0], child, l);
    }
    close(ends[0]);
    return !failed;
}

static void add_python_stacks(struct str *out, const struct tree *t, const char *proc)
{
    const struct limits l = { clock_s() + STACKS_S, out->len + STACKS_BYTES };
    str_add(out, "=== Python stacks\n");
    for (size_t i = 0; i < t->n && !is_reached(&l, out); i++)
        if (tree_is_python(&t->process[i], proc) && !add_python_stack(out, (int)t->process[i].pid, &l)) {
            str_add(out, "(py-spy is not installed; if SIGINT reached Python, its traceback is at the end of "
                         "the log)\n");
            return;
        }
}

static void add_kernel_log(struct str *out)
{
    CLEANUP(mem_free) char *text = malloc(KERNEL_BYTES);
    int n = text ? klogctl(KLOG_READ_ALL, text, KERNEL_BYTES) : -1;
    str_add(out, "=== last kernel messages\n");
    if (n < 0)
        str_addf(out, "(%s; as root: dmesg | tail -n 100)\n", strerror(errno));
    else
        str_addn(out, text, (size_t)n);
}

static void add_calls(struct str *out, const char *file)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_calls c;
    gpu_calls_read(file, &a, &c);
    gpu_calls_text(&c, out);
}

void evidence_collect(const struct evidence *e, struct str *out)
{
    const struct memory_monitor_reading *now = &e->monitor->now;
    add_calls(out, e->calls);
    str_addf(out, "=== GPU: %lld %% busy, %lld bytes of VRAM and %lld of GTT in use (-1: unknown)\n",
             (long long)now->busy_percent, (long long)now->vram_used_bytes, (long long)now->gtt_used_bytes);
    for (size_t i = 0; i < e->tree->n && i < MOST_PROCESSES; i++)
        add_process(out, e->proc, &e->tree->process[i]);
    if (e->stacks)
        add_python_stacks(out, e->tree, e->proc);
    str_add(out, "=== memory\n");
    add_file(out, e->proc, "meminfo");
    add_kernel_log(out);
}

void evidence_save(const struct evidence *e, struct journal *j, const char *name)
{
    CLEANUP(str_release) struct str text = { 0 };
    evidence_collect(e, &text);
    journal_write_text(j, name, text.s);
}

static bool is_gpu_node(const char *path)
{
    return str_eq(path, "/dev/kfd") || str_starts(path, "/dev/dri/renderD") ||
           str_starts(path, "/dev/nvidia");
}

static enum diagnose_gpu_use nodes_of(const char *proc, int pid)
{
    char path[512], target[256];
    snprintf(path, sizeof(path), "%s/%d/fd", proc, pid);
    CLEANUP(os_list_close) struct os_list *l = os_list_open(path, 0);
    if (!l)
        return DIAGNOSE_GPU_UNKNOWN;
    for (const char *name; (name = os_list_next(l));)
        if (os_read_link_at(os_list_dir(l), name, target, sizeof(target)) > 0 && is_gpu_node(target))
            return DIAGNOSE_GPU_USED;
    return DIAGNOSE_GPU_NEVER;
}

static enum diagnose_gpu_use runtime_of(const char *proc, int pid)
{
    char path[512], line[4096];
    snprintf(path, sizeof(path), "%s/%d/maps", proc, pid);
    CLEANUP(file_close) FILE *f = os_stream(path, OS_READ);
    if (!f)
        return DIAGNOSE_GPU_UNKNOWN;
    while (fgets(line, sizeof(line), f))
        if (strstr(line, "/libamdhip64") || strstr(line, "/libhsa-runtime64") || strstr(line, "/libcuda.so"))
            return DIAGNOSE_GPU_USED;
    return DIAGNOSE_GPU_NEVER;
}

static bool has_calls(const char *calls)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_calls c;
    gpu_calls_read(calls, &a, &c);
    return c.n > 0;
}

enum diagnose_gpu_use evidence_gpu_use(const struct tree *t, const char *proc, const char *calls)
{
    enum diagnose_gpu_use all = t->n ? DIAGNOSE_GPU_NEVER : DIAGNOSE_GPU_UNKNOWN;
    if (has_calls(calls))
        return DIAGNOSE_GPU_USED;
    for (size_t i = 0; i < t->n; i++) {
        if (t->process[i].state == 'Z')
            continue;
        enum diagnose_gpu_use nodes = nodes_of(proc, (int)t->process[i].pid);
        enum diagnose_gpu_use runtime = runtime_of(proc, (int)t->process[i].pid);
        if (nodes == DIAGNOSE_GPU_USED || runtime == DIAGNOSE_GPU_USED)
            return DIAGNOSE_GPU_USED;
        if (nodes == DIAGNOSE_GPU_UNKNOWN || runtime == DIAGNOSE_GPU_UNKNOWN)
            all = DIAGNOSE_GPU_UNKNOWN;
    }
    return all;
}

bool evidence_leads_away(const struct tree *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (command_is_remote(t->process[i].name))
            return true;
    return false;
}

bool evidence_catches(const char *proc, int pid, int sig)
{
    char path[512], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
    CLEANUP(file_close) FILE *f = os_stream(path, OS_READ);
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "SigCgt: %llx", &mask) == 1)
            break;
    return mask >> (sig - 1) & 1;
}
