/* SPDX-License-Identifier: Apache-2.0
 * A program that has nothing to do with GPUs.  Built for several libraries of C. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Looks whether there is such a function. */
static int ask(void)
{
    int (*get)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_DEFAULT, "hipMalloc");
    void *p = NULL;
    printf("%d\n", get ? get(&p, 100) : -1);
    return 0;
}

static void *add_one(void *number)
{
    return (char *)number + 1;
}

static int live(void)
{
    pthread_t thread;
    void *sum = NULL;
    int status = 0;
    pthread_create(&thread, NULL, add_one, (void *)41);
    pthread_join(thread, &sum);
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    waitpid(pid, &status, 0);
    printf("%zu %d\n", (size_t)sum, WEXITSTATUS(status));
    return 5;
}

int main(int argc, char **argv)
{
    return argc > 1 && !strcmp(argv[1], "ask") ? ask() : live();
}
