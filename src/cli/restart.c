/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/restart.h"
#include "base/str.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 3 };
/* "PID:N".  The process keeps its number when it becomes another; anybody else who finds this is not meant. */
static const char name[] = "CAIRN_TRAIN_RESTARTS=";

static struct {
    char **argv, **env;
    int nth; /* this would be */
} next;

extern char **environ;

static int done_before(void)
{
    char key[sizeof(name)];
    int pid, n;
    snprintf(key, sizeof(key), "%.*s", (int)strlen(name) - 1, name);
    const char *text = getenv(key);
    return text && sscanf(text, "%d:%d", &pid, &n) == 2 && pid == (int)getpid() && n > 0 ? n : 0;
}

static char **environment(struct arena *a)
{
    size_t n = 0, at = 0;
    while (environ[n])
        n++;
    char **env = ARENA_NEW(a, char *, n + 2);
    for (size_t i = 0; i < n; i++)
        if (!str_starts(environ[i], name))
            env[at++] = arena_strdup(a, environ[i]);
    env[at] = arena_printf(a, "%s%d:%d", name, (int)getpid(), next.nth);
    return env;
}

void restart_prepare(int argc, char **argv, bool has_resume, struct arena *a)
{
    size_t at = 0;
    next.nth = done_before() + 1;
    next.argv = ARENA_NEW(a, char *, (size_t)argc + 3);
    next.argv[at++] = arena_strdup(a, "cairn");
    next.argv[at++] = argv[0];
    if (!has_resume)
        next.argv[at++] = arena_strdup(a, "--resume");
    for (int i = 1; i < argc; i++)
        next.argv[at++] = argv[i];
    next.env = environment(a);
}

void restart_now(const struct cairn_error *why)
{
    sigset_t none, before;
    if (!next.argv || next.nth > MOST)
        return;
    fprintf(stderr, "cairn: %s\n  starting again from the last checkpoint, %d of at most %d times\n",
            why->msg, next.nth, MOST);
    sigemptyset(&none); /* what is blocked stays so in the new program */
    pthread_sigmask(SIG_SETMASK, &none, &before);
    execve("/proc/self/exe", next.argv, next.env);
    fprintf(stderr, "cairn: start again: %s\n", strerror(errno));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
