/* SPDX-License-Identifier: Apache-2.0
 * Signals that ask a process to end: Ctrl-C, a closed terminal, kill. */
#ifndef CAIRN_OS_STOP_H
#define CAIRN_OS_STOP_H

#include <signal.h>
#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP call the handler, unless they are ignored (nohup).  With `resume`,
 * interrupted system calls continue; without, they fail with EINTR. */
void os_stop_catch(void (*handler)(int sig), bool resume);
/* Ends the process as the signal would have. */
void os_stop_end(int sig);
/* Makes exceeding the file size limit, and writing to a pipe without a reader, write errors instead of
 * signals. */
void os_ignore_file_limit(void);
void os_ignore_closed_pipe(void);

#endif
