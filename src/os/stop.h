/* SPDX-License-Identifier: Apache-2.0
 * What asks a process to end: Ctrl-C, a terminal that is closed, kill. */
#ifndef CAIRN_OS_STOP_H
#define CAIRN_OS_STOP_H

#include <signal.h>
#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP call the handler, unless they are ignored (nohup).  With `resume` a call of the
 * system goes on after it, without it fails with EINTR. */
void os_stop_catch(void (*handler)(int sig), bool resume);
/* Ends the process as the signal would have. */
void os_stop_end(int sig);
/* A limit on the size of files, and a pipe whose reader is gone, become errors of writing. */
void os_ignore_file_limit(void);
void os_ignore_closed_pipe(void);

#endif
