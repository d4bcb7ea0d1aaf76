/* SPDX-License-Identifier: Apache-2.0 */
#include "run/preload.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "host/memory.h"
#include "preload/record.h"
#include "run/gpu_calls.h"
#include "os/file.h"
#include "os/list.h"
#include "os/path.h"
#include "os/process.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "libcairn-preload.so"
/* In memory: on a copy-on-write file system a mapping could hit a full disk. */
#define SHARED "/dev/shm"
enum { FEW_PROCESSES = 8 }; /* a trainer may have one per GPU */

static const char *const names[] = {
#define AS_NAME(bit, name) [bit] = name,
    RECORD_SWITCHES(AS_NAME)
};

/* ---- which ---- */

static int parse_words(const char *at, unsigned *out, struct cairn_error *err)
{
    unsigned switches = 0;
    for (;; at++) {
        size_t n = strcspn(at, ",");
        unsigned bits = record_switch(at, n);
        if (!bits)
            return cairn_fail(err, CAIRN_EUSAGE,
                              "--preload takes auto, off, all, or a list of record,stage,retry,memory,guard "
                              "(+ adds to auto), not \"%.*s\"",
                              (int)n, at);
        switches |= bits;
        at += n;
        if (!*at)
            break;
    }
    *out = switches;
    return 0;
}

int preload_parse(const char *text, struct preload_choice *out, struct cairn_error *err)
{
    struct preload_choice c = { PRELOAD_AUTO, 0 };
    if (text && (str_eq(text, "off") || str_eq(text, "none")))
        c.way = PRELOAD_OFF;
    else if (text && !str_eq(text, "auto")) {
        bool adds = *text == '+';
        c.way = adds ? PRELOAD_AUTO : PRELOAD_LIST;
        if (parse_words(text + adds, &c.switches, err))
            return -1;
    }
    *out = c;
    return 0;
}

static const char *list_of(unsigned switches, struct arena *a)
{
    CLEANUP(str_release) struct str s = { 0 };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (switches >> i & 1)
            str_addf(&s, "%s%s", s.len ? "," : "", names[i]);
    return arena_strdup(a, s.len ? s.s : "");
}

static bool sees_one(const struct facts *f, const char *const *env)
{
    const char *shown = str_env(env, "ROCR_VISIBLE_DEVICES");
    return f->n_gpus == 1 || (shown && *shown && !strchr(shown, ','));
}

static bool shares(const struct gpu_facts *g)
{
    return g->kind == GPU_INTEGRATED && !memory_is_carve_out(g) && g->usable_bytes.from;
}

/* Every GPU that the trainer will see shares the host's memory. */
static bool is_shared(const struct facts *f, const struct plan *p, const char *const *env)
{
    if (!p->gpu || !shares(p->gpu) || !f->host.memory_total_bytes.from)
        return false;
    bool all = true;
    for (size_t i = 0; i < f->n_gpus; i++)
        all = all && shares(&f->gpus[i]);
    return all || sees_one(f, env);
}

/* Features that are useless here.  Allocations are not counted per GPU. */
static unsigned useless_here(const struct facts *f, const char *const *env, bool shared)
{
    return shared ? (sees_one(f, env) ? 0 : SWITCH_MEMORY) : SWITCH_MEMORY | SWITCH_GUARD;
}

/* ---- where ---- */

static const char *find_library(struct arena *a)
{
    static const char *const places[] = { "", "../lib/cairn" };
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (!path_beside_program(places[i], LIBRARY, path, sizeof(path)) && !access(path, R_OK))
            return arena_strdup(a, path);
    return NULL;
}

/* -1: another process has it locked, perhaps one in another pid namespace. */
static int lock_folder(const char *path)
{
    int fd = os_open(path, OS_READ | OS_FOLDER | OS_NO_LINK);
    if (fd < 0 || !os_lock(fd, false))
        return fd;
    close(fd);
    return -1;
}

/* Removes folders of killed runs: their process is gone, and the folder is not locked. */
static void remove_stale(void)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(SHARED, 0);
    for (const char *name; l && (name = os_list_next(l));) {
        int pid;
        struct stat st;
        char path[512];
        if (sscanf(name, "cairn-run-%d-", &pid) != 1 || os_is_alive(pid))
            continue;
        snprintf(path, sizeof(path), SHARED "/%s", name);
        if (lstat(path, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
            continue;
        CLEANUP(fd_close) int held = lock_folder(path);
        if (held < 0)
            continue;
        snprintf(path, sizeof(path), SHARED "/%.200s/calls", name);
        gpu_calls_remove(path);
        snprintf(path, sizeof(path), SHARED "/%.200s", name);
        os_remove_dir(path);
    }
}

/* /dev/shm may be small in a container, or full.  A file system without a limit reports no size. */
static const char *lack_of_space(struct arena *a)
{
    struct os_disk disk;
    if (os_disk(SHARED, &disk) || !disk.total)
        return NULL;
    size_t n = disk.free / sizeof(struct record);
    if (n >= FEW_PROCESSES)
        return NULL;
    const char *which = n ? arena_printf(a, "only for %zu processes", n) : "for no process";
    return arena_printf(a, "GPU calls are recorded %s: %s has only %llu KiB free", which, SHARED,
                        (unsigned long long)(disk.free >> 10));
}

static const char *make_folder(struct arena *a, int *held)
{
    char path[64];
    remove_stale();
    snprintf(path, sizeof(path), SHARED "/cairn-run-%d-XXXXXX", (int)getpid());
    if (os_make_temp_dir(path))
        return NULL;
    *held = lock_folder(path);
    return arena_printf(a, "%s/calls", path);
}

/* ---- environment variables ---- */

struct settings {
    struct plan_var set[6];
    size_t n;
    struct arena *a;
};

static void add_setting(struct settings *t, const char *name, const char *value)
{
    t->set[t->n++] = (struct plan_var){ .name = name, .value = value };
}

/* Like the supervisor's guard: if memory is already short, the reserve would refuse every allocation. */
static int64_t reserve_now(const struct facts *f)
{
    int64_t reserve = memory_reserve(f->host.memory_total_bytes.v);
    const struct num *left = &f->host.memory_available_bytes;
    return left->from && left->v <= reserve ? left->v / 2 : reserve;
}

/* What the GPU may use and the host has available.  0 would mean unknown. */
static void add_memory_settings(struct settings *t, const struct facts *f, const struct plan *p)
{
    int64_t reserve = reserve_now(f), budget = p->gpu->usable_bytes.v;
    const struct num *left = &f->host.memory_available_bytes;
    if (left->from && left->v - reserve < budget)
        budget = left->v - reserve;
    add_setting(t, "CAIRN_PRELOAD_BUDGET", arena_printf(t->a, "%lld", (long long)(budget > 0 ? budget : 1)));
    add_setting(t, "CAIRN_PRELOAD_RESERVE",
                arena_printf(t->a, "%lld", (long long)(reserve > 0 ? reserve : 1)));
}

/* A nested run finds the library in LD_PRELOAD already, perhaps another copy. */
static const char *without_library(const char *list, struct arena *a)
{
    CLEANUP(str_release) struct str s = { 0 };
    for (size_t n; list && *list; list += n + strspn(list + n, " :")) {
        n = strcspn(list, " :");
        const char *path = arena_printf(a, "%.*s", (int)n, list), *slash = strrchr(path, '/');
        if (n && !str_eq(slash ? slash + 1 : path, LIBRARY))
            str_addf(&s, "%s%s", s.len ? ":" : "", path);
    }
    return arena_strdup(a, s.len ? s.s : "");
}

void preload_prepare(const struct preload_choice *c, const struct facts *f, const struct plan *p,
                     const char *const *env, struct arena *a, struct preload *out)
{
    static const char *const all[] = { "LD_PRELOAD", "CAIRN_PRELOAD", "CAIRN_PRELOAD_FILE",
                                       "CAIRN_PRELOAD_BUDGET", "CAIRN_PRELOAD_RESERVE" };
    const char *others = without_library(str_env(env, "LD_PRELOAD"), a);
    const struct plan_var kept = { .name = "LD_PRELOAD", .value = others };
    bool shared = is_shared(f, p, env);
    unsigned switches = c->switches;
    if (c->way == PRELOAD_AUTO)
        switches |=
            SWITCH_RECORD | record_switches(str_env(env, "CAIRN_PRELOAD")) | (shared ? SWITCH_GUARD : 0U);
    *out = (struct preload){ .held = -1,
                             .env = plan_change(env, &kept, others[0] != '\0', all, ARRAY_LEN(all), a) };
    unsigned useless = switches & useless_here(f, env, shared);
    switches &= ~useless;
    const char *library = c->way == PRELOAD_OFF ? NULL : find_library(a);
    /* The program may have been copied without its library.  That is worth a message only where it is
     * dangerous. */
    if (c->way == PRELOAD_OFF || (!library && c->way == PRELOAD_AUTO && !c->switches && !shared))
        return;
    if (!library || library[strcspn(library, " :")]) {
        const char *unsafe = shared ? "; without it the GPU can use up the host's memory" : "";
        out->trouble =
            library ? "LD_PRELOAD does not allow spaces or colons in the library's path"
                    : arena_printf(a, LIBRARY " is neither beside the program nor in ../lib/cairn%s", unsafe);
        return;
    }
    if (useless)
        out->trouble = arena_printf(a, "without %s: %s", list_of(useless, a),
                                    shared ? "the trainer sees several GPUs"
                                           : "the GPU is not known to share the host's memory");
    if (useless && !switches)
        return;
    struct settings t = { .a = a };
    bool records = switches & (SWITCH_RECORD | SWITCH_GUARD); /* refused allocations are recorded too */
    if (records)
        out->file = make_folder(a, &out->held);
    if (records && !out->file)
        out->trouble = arena_printf(a, "GPU calls are not recorded: %s: %s", SHARED, strerror(errno));
    else if (out->file && !out->trouble)
        out->trouble = lack_of_space(a);
    out->list = list_of(switches, a);
    add_setting(&t, "LD_PRELOAD", others[0] ? arena_printf(a, "%s:%s", others, library) : library);
    add_setting(&t, "CAIRN_PRELOAD", out->list);
    if (out->file)
        add_setting(&t, "CAIRN_PRELOAD_FILE", out->file);
    if (shared)
        add_memory_settings(&t, f, p);
    if (shared && c->way == PRELOAD_AUTO)
        out->why =
            "the GPU shares the host's memory: an allocation that would leave the host too little fails, "
            "instead of freezing the machine";
    out->env = plan_change(out->env, t.set, t.n, NULL, 0, a);
}

void preload_finish(struct preload *p)
{
    if (!p->file)
        return;
    CLEANUP(mem_free) char *folder = path_folder(p->file);
    gpu_calls_remove(p->file);
    os_remove_dir(folder);
    fd_close(&p->held);
    p->file = NULL;
}
