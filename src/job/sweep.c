/* SPDX-License-Identifier: Apache-2.0 */
#include "job/sweep.h"

#include "base/arena.h"
#include "base/str.h"
#include "job/job_dir.h"
#include "os/file.h"
#include "os/list.h"
#include "os/process.h"
#include "run/guardian.h"
#include "run/tree.h"
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 20, WAIT_MS = 1000 };

struct left {
    const char *lock;    /* its path without links */
    const char *journal; /* "/jobs/UID/attempt-" */
    struct os_process_id *process;
    size_t n;
    bool guarded; /* a supervisor or a guardian is among them */
    struct arena arena;
};

/* Whether the lock belongs to this open file of a process, which may have it open only to ask about it. */
static bool locks(pid_t pid, const char *fd)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%d/fdinfo/%s", (int)pid, fd);
    os_read_start(path, text, sizeof(text));
    return strstr(text, "OFDLCK") != NULL;
}

static bool holds(pid_t pid, const char *lock)
{
    char path[64], target[PATH_MAX];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    CLEANUP(os_list_close) struct os_list *l = os_list_open(path, 0);
    for (const char *name; l && (name = os_list_next(l));)
        if (os_read_link_at(os_list_dir(l), name, target, sizeof(target)) > 0 && str_eq(target, lock) &&
            locks(pid, name))
            return true;
    return false;
}

bool sweep_is_of_job(pid_t pid, const char *journal)
{
    static const char name[] = "CAIRN_RUN=";
    char path[64];
    CLEANUP(mem_free) char *variable = NULL;
    size_t size = 0;
    bool found = false;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    FILE *f = os_stream(path, OS_READ);
    while (f && !found && getdelim(&variable, &size, 0, f) > 0)
        found = str_starts(variable, name) && strstr(variable, journal);
    if (f)
        fclose(f);
    return found;
}

static bool is_ours(pid_t pid)
{
    char path[64], name[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    os_read_start(path, name, sizeof(name));
    name[strcspn(name, "\n")] = '\0';
    return str_eq(name, TREE_APART) || str_eq(name, GUARDIAN_NAME);
}

static void find(struct left *l)
{
    CLEANUP(os_list_close) struct os_list *all = os_list_open("/proc", 0);
    for (const char *name; all && (name = os_list_next(all));) {
        struct os_process_id id;
        pid_t pid = (pid_t)strtol(name, NULL, 10);
        if (pid <= 0 || pid == getpid() || !os_process_id(pid, &id))
            continue;
        bool held = l->lock && holds(pid, l->lock);
        if (held && is_ours(pid))
            l->guarded = true;
        else if (held || sweep_is_of_job(pid, l->journal))
            *ARENA_PUSH(&l->arena, l->process, l->n) = id;
    }
}

bool sweep(const char *state, const char *uid)
{
    struct left l = { 0 };
    CLEANUP(mem_free)
    char *lock = realpath(arena_printf(&l.arena, "%s/lock", job_dir_path(state, uid, &l.arena)), NULL);
    l.lock = lock;
    l.journal = arena_printf(&l.arena, "/jobs/%s/attempt-", uid);
    for (int waited = 0;; waited += LOOK_MS) {
        l.n = 0;
        find(&l);
        for (size_t i = 0; i < l.n && !l.guarded; i++)
            os_signal(&l.process[i], SIGKILL);
        if (l.guarded || !l.n || waited >= WAIT_MS)
            break;
        poll(NULL, 0, LOOK_MS);
    }
    arena_release(&l.arena);
    return l.guarded || l.n;
}
