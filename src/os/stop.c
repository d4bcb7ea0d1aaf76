/* SPDX-License-Identifier: Apache-2.0 */
#include "os/stop.h"

#include <stddef.h>

void os_stop_catch(void (*handler)(int sig), bool resume)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction now, stop = { .sa_handler = handler, .sa_flags = resume ? SA_RESTART : 0 };
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (!sigaction(signals[i], NULL, &now) && now.sa_handler != SIG_IGN)
            sigaction(signals[i], &stop, NULL);
}

void os_stop_end(int sig)
{
    signal(sig, SIG_DFL);
    raise(sig);
}

void os_ignore_file_limit(void)
{
    signal(SIGXFSZ, SIG_IGN);
}

void os_ignore_closed_pipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}
