/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stop.h"

#include "base/cleanup.h"
#include "cli/commands.h"
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
    stopped = sig;
}

const volatile sig_atomic_t *stop_catch(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
        struct sigaction now, stop = { .sa_handler = on_stop };
        if (!sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
            sigaction(signals[i], &stop, NULL);
    }
    signal(SIGXFSZ,
           SIG_IGN); /* a limit on the size of files then is an error of writing, and is cleaned up after */
    return &stopped;
}

/* The terminal shows ^C where the cursor is. */
void stop_end_line(void)
{
    if (stopped == SIGINT && isatty(STDERR_FILENO))
        fputc('\n', stderr);
}

int stop_end(const char *words)
{
    stop_end_line();
    fprintf(stderr, "cairn: interrupted; %s\n", words);
    fflush(stdout);
    signal(stopped, SIG_DFL);
    raise(stopped);
    return EXIT_TROUBLE;
}
