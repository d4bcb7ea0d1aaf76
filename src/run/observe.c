/* SPDX-License-Identifier: Apache-2.0 */
#include "run/observe.h"

#include "base/str.h"
#include "rules/env_names.h"
#include "run/gpu_calls.h"
#include "os/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_VARIABLE = 16 << 10, OFTEN_S = 120, LATER_S = 10 };

static bool is_mine(const char *proc, int pid)
{
    char path[512];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%d", proc, pid);
    return !stat(path, &st) && st.st_uid == geteuid();
}

/* "…/site-packages/torch/lib/libtorch_cpu.so": the folder before torch. */
static char *torch_of(struct arena *a, const char *line)
{
    const char *path = strchr(line, '/'), *at = path ? strstr(path, "/torch/lib/lib") : NULL;
    return at ? arena_strndup(a, path, (size_t)(at - path)) : NULL;
}

static void read_maps(const char *proc, struct arena *a, struct observed *out)
{
    char path[512];
    CLEANUP(mem_free) char *line = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/%d/maps", proc, out->pid);
    FILE *f = os_stream(path, OS_READ);
    while (f && !out->torch && getline(&line, &size, f) > 0) {
        out->torch = torch_of(a, line);
        out->on_gpu |= out->torch || strstr(line, "/libamdhip64");
    }
    if (f)
        fclose(f);
}

static void read_environment(const char *proc, struct arena *a, struct observed *out)
{
    char path[512];
    CLEANUP(mem_free) char *variable = NULL;
    const char **env = NULL;
    size_t size = 0, n = 0;
    snprintf(path, sizeof(path), "%s/%d/environ", proc, out->pid);
    FILE *f = os_stream(path, OS_READ);
    for (ssize_t len; f && (len = getdelim(&variable, &size, 0, f)) > 0;) {
        size_t name = strcspn(variable, "=");
        if (variable[name] != '=' || len > MOST_VARIABLE)
            continue;
        variable[name] = '\0';
        bool known = env_name_find(variable) != NULL;
        variable[name] = '=';
        if (known)
            *ARENA_PUSH(a, env, n) = arena_strdup(a, variable);
    }
    if (f)
        fclose(f);
    if (n)
        *ARENA_PUSH(a, env, n) = NULL;
    out->env = env;
}

static struct observe_process *process_of(struct observe *o, int pid)
{
    for (size_t i = 0; i < o->n_processes; i++)
        if (o->process[i].pid == pid)
            return &o->process[i];
    if (o->n_processes == OBSERVE_MOST)
        return NULL;
    struct observe_process *p = &o->process[o->n_processes++];
    *p = (struct observe_process){ .pid = pid };
    return p;
}

static void tell(struct observe *o, struct observe_process *p, enum observe_stage stage,
                 const struct observed *now)
{
    p->stage = stage;
    p->env = now->env;
    p->has_torch |= now->torch != NULL;
    if (o->n_notices[stage]++ < OBSERVE_NOTICES)
        o->notice(o->context, now);
}

/* Its environment, with what the preload library recorded. */
static const char *const *merge(const char *const *env, const char *const *called, struct arena *a)
{
    const char **out = NULL;
    size_t n = 0;
    for (; *env; env++) {
        size_t name = strcspn(*env, "=");
        bool replaced = false;
        for (const char *const *c = called; *c && !replaced; c++)
            replaced = strcspn(*c, "=") == name && !strncmp(*c, *env, name);
        if (!replaced)
            *ARENA_PUSH(a, out, n) = *env;
    }
    for (; *called; called++)
        if (strchr(*called, '='))
            *ARENA_PUSH(a, out, n) = *called;
    *ARENA_PUSH(a, out, n) = NULL;
    return out;
}

static void look_at_calls(struct observe *o, struct observe_process *p)
{
    const char *const *called = gpu_calls_environment(o->calls, p->pid, o->a);
    if (!called)
        return;
    const struct observed now = {
        .pid = p->pid, .on_gpu = true, .called = true, .env = merge(p->env, called, o->a)
    };
    tell(o, p, OBSERVE_CALLED, &now);
}

static void look_at(struct observe *o, const char *proc, const struct tree_process *in)
{
    struct observed now = { .pid = (int)in->pid };
    struct observe_process *p = in->state != 'Z' && is_mine(proc, now.pid) ? process_of(o, now.pid) : NULL;
    if (!p || p->stage == OBSERVE_CALLED)
        return;
    if (p->stage < OBSERVE_LOADED || !p->has_torch)
        read_maps(proc, o->a, &now);
    bool more = now.on_gpu && (p->stage < OBSERVE_LOADED || (now.torch && !p->has_torch));
    if (more || (p->stage == OBSERVE_NEW && tree_is_python(in, proc))) {
        read_environment(proc, o->a, &now);
        if (now.env) /* it may just have ended */
            tell(o, p, now.on_gpu ? OBSERVE_LOADED : OBSERVE_PYTHON, &now);
    }
    if (p->stage == OBSERVE_LOADED && o->calls)
        look_at_calls(o, p);
}

static bool is_in(const struct tree *t, int pid)
{
    for (size_t i = 0; i < t->n; i++)
        if ((int)t->process[i].pid == pid)
            return true;
    return false;
}

/* A start script or pip may start hundreds of programs before the trainer. */
static void forget_ended(struct observe *o, const struct tree *t)
{
    size_t n = 0;
    for (size_t i = 0; i < o->n_processes; i++)
        if (is_in(t, o->process[i].pid))
            o->process[n++] = o->process[i];
    o->n_processes = n;
}

void observe_look(struct observe *o, const struct tree *t, const char *proc)
{
    forget_ended(o, t);
    for (size_t i = 0; i < t->n && i < OBSERVE_MOST; i++)
        look_at(o, proc, &t->process[i]);
}

double observe_tick(struct observe *o, int root, double now)
{
    CLEANUP(tree_release) struct tree t = { 0 };
    if (!o)
        return now + LATER_S;
    if (now < o->next)
        return o->next;
    if (tree_read(&t, "/proc", root))
        observe_look(o, &t, "/proc");
    o->start = o->start > 0 ? o->start : now;
    o->next = now + (now - o->start < 1 ? 0.1 : now - o->start < OFTEN_S ? 1 : LATER_S);
    return o->next;
}

void observe_begin(struct observe *o)
{
    o->start = o->next = 0;
    o->n_processes = 0;
    memset(o->n_notices, 0, sizeof(o->n_notices));
}
