/* SPDX-License-Identifier: Apache-2.0 */
#include "run/observe.h"

#include "base/str.h"
#include "rules/env_names.h"
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

static bool is_python(const char *proc, int pid)
{
    char path[512], exe[512];
    snprintf(path, sizeof(path), "%s/%d/exe", proc, pid);
    ssize_t n = readlink(path, exe, sizeof(exe) - 1);
    exe[n > 0 ? n : 0] = '\0';
    const char *name = str_file_name(exe);
    return str_starts(name, "python") || str_starts(name, "pypy");
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
    FILE *f = fopen(path, "re");
    while (f && !out->torch && getline(&line, &size, f) > 0) {
        out->torch = torch_of(a, line);
        out->on_gpu |= out->torch || strstr(line, "/libamdhip64.so");
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
    FILE *f = fopen(path, "re");
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

static bool is_new(struct observe *o, int pid)
{
    for (size_t i = 0; i < o->n_seen; i++)
        if (o->seen[i] == pid)
            return false;
    if (o->n_seen == OBSERVE_MOST)
        return false;
    o->seen[o->n_seen++] = pid;
    return true;
}

static void look_at(struct observe *o, const char *proc, const struct tree_process *p)
{
    struct observed now = { .pid = (int)p->pid };
    if (p->state == 'Z' || !is_mine(proc, now.pid))
        return;
    bool python = is_python(proc, now.pid);
    if (!o->has_torch)
        read_maps(proc, o->a, &now);
    bool more = now.on_gpu && (!o->trainer || (now.torch && !o->has_torch));
    if (!more && !(python && !o->trainer && is_new(o, now.pid)))
        return;
    read_environment(proc, o->a, &now);
    if (!now.env)
        return; /* it has just ended */
    if (now.on_gpu) {
        o->trainer = now.pid;
        o->has_torch |= now.torch != NULL;
    }
    o->notice(o->context, &now);
}

void observe_look(struct observe *o, const struct tree *t, const char *proc)
{
    for (size_t i = 0; i < t->n && i < OBSERVE_MOST && !(o->trainer && o->has_torch); i++)
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
    o->n_seen = 0;
    o->trainer = 0;
    o->has_torch = false;
}
