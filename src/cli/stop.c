/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/stop.h"

#include "cli/commands.h"
#include "os/stop.h"
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
    stopped = sig;
}

const volatile sig_atomic_t *stop_catch(void)
{
    os_stop_catch(on_stop, false);
    os_ignore_file_limit(); /* so that a failed write is cleaned up */
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
    os_stop_end(stopped);
    return EXIT_TROUBLE;
}
