/* SPDX-License-Identifier: Apache-2.0
 * The words of the program child that are about forks, and about its end. */
#include "child.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void do_fork(void)
{
    do_load();
    fflush(stdout);
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        char *d = device(BIG), *source = filled(malloc(BIG), BIG, 8);
        printf("child %d", t->hipMemcpy(d, source, BIG, H2D));
        printf(" %d\n", arrived(d, BIG, 8));
        fflush(stdout);
        _exit(7);
    }
    waitpid(child, &status, 0);
    printf("status %d\n", WEXITSTATUS(status));
    do_load();
}

static void *copy_for_ever(void *context)
{
    static char source[100000];
    char *d = device(sizeof(source));
    for (;;)
        t->hipMemcpy(d, source, sizeof(source), H2D);
    return context;
}

/* The program ends while its threads are at it. */
static void do_exit(void)
{
    pthread_t thread;
    for (size_t i = 0; i < 4; i++)
        pthread_create(&thread, NULL, copy_for_ever, NULL);
    usleep(30000);
    printf("bye\n");
    exit(9);
}

/* Others are in the middle of everything when it forks. */
static void do_fork_busy(void)
{
    pthread_t thread;
    for (size_t i = 0; i < 4; i++)
        pthread_create(&thread, NULL, copy_for_ever, NULL);
    int status = 0;
    for (size_t i = 0; i < 30 && !status; i++) {
        usleep(1000);
        pid_t child = fork();
        if (child == 0) {
            static char source[100000];
            alarm(5);
            _exit(t->hipMemcpy(device(sizeof(source)), source, sizeof(source), H2D));
        }
        waitpid(child, &status, 0);
    }
    printf("status %d\n", status);
    fflush(stdout);
    _exit(0);
}

static volatile pid_t forked = -1;

static void fork_now(int signal)
{
    (void)signal;
    forked = fork();
}

/* A handler forks wherever a call is, and the child comes back from it. */
static void do_fork_signal(void)
{
    static char source[100];
    char *d = device(sizeof(source));
    int bad = 0;
    signal(SIGALRM, fork_now);
    for (int i = 0; i < 200; i++) {
        struct itimerval once = { .it_value.tv_usec = 50 + i };
        forked = -1;
        setitimer(ITIMER_REAL, &once, NULL);
        while (forked < 0)
            bad += t->hipMemcpy(d, source, sizeof(source), H2D) != 0;
        if (!forked)
            _exit(t->hipMemcpy(d, source, sizeof(source), H2D));
        int status;
        waitpid(forked, &status, 0);
        bad += status != 0;
    }
    printf("bad %d\n", bad);
}

static void *call_once(void *context)
{
    device(5000);
    return context;
}

/* In the child another thread is the first that calls. */
static void do_fork_thread(void)
{
    device(5000);
    pid_t pid = fork();
    if (pid == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, call_once, NULL);
        pthread_join(thread, NULL);
        device(5000);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    printf("%d\n", (int)pid);
}

const struct word fork_words[N_FORK_WORDS] = {
    { "fork", do_fork },
    { "exit", do_exit },
    { "fork-busy", do_fork_busy },
    { "fork-signal", do_fork_signal },
    { "fork-thread", do_fork_thread },
};
