/* SPDX-License-Identifier: Apache-2.0 */
#include "run/evidence.h"

#include "base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <unistd.h>

enum { MOST_BYTES = 16 << 10, MOST_PROCESSES = 64, KERNEL_BYTES = 16 << 10, KLOG_READ_ALL = 3 };

/* The end of a kernel log is what counts; of other files the beginning. */
static void add_file(struct str *out, const char *proc, const char *what)
{
    char path[512], text[MOST_BYTES];
    snprintf(path, sizeof(path), "%s/%s", proc, what);
    CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
    str_addf(out, "--- %s\n", path);
    if (n < 0)
        str_addf(out, "(%s)\n", strerror(errno));
    else
        str_addn(out, text, (size_t)n);
    if (n > 0 && text[n - 1] != '\n')
        str_add(out, "\n");
}

static void add_process(struct str *out, const char *proc, const struct tree_process *p)
{
    static const char *const files[] = { "wchan", "syscall", "stack", "status" };
    str_addf(out, "=== process %d (%s), state %c, %llu ticks of CPU time\n", (int)p->pid, p->name, p->state,
             (unsigned long long)p->ticks);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char what[64];
        snprintf(what, sizeof(what), "%d/%s", (int)p->pid, files[i]);
        add_file(out, proc, what);
    }
}

static void add_kernel_log(struct str *out)
{
    CLEANUP(mem_free) char *text = malloc(KERNEL_BYTES);
    int n = text ? klogctl(KLOG_READ_ALL, text, KERNEL_BYTES) : -1;
    str_add(out, "=== the kernel's last messages\n");
    if (n < 0)
        str_addf(out, "(%s; as root: dmesg | tail -n 100)\n", strerror(errno));
    else
        str_addn(out, text, (size_t)n);
}

void evidence_collect(const struct tree *t, const char *proc, const struct gauge *g, struct str *out)
{
    str_addf(out, "=== GPU: %lld %% busy, %lld bytes of VRAM and %lld of GTT in use (-1: not known)\n",
             (long long)g->now.busy_percent, (long long)g->now.vram_used_bytes,
             (long long)g->now.gtt_used_bytes);
    for (size_t i = 0; i < t->n && i < MOST_PROCESSES; i++)
        add_process(out, proc, &t->process[i]);
    str_add(out, "=== memory\n");
    add_file(out, proc, "meminfo");
    add_kernel_log(out);
}

bool evidence_catches(const char *proc, int pid, int sig)
{
    char path[512], line[256];
    unsigned long long mask = 0;
    snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "SigCgt: %llx", &mask) == 1)
            break;
    if (f)
        fclose(f);
    return mask >> (sig - 1) & 1;
}
