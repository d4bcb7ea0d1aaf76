/* SPDX-License-Identifier: Apache-2.0
 * Ctrl-C during long work: the work polls a flag and cleans up, then the program ends by the signal. */
#ifndef CAIRN_CLI_STOP_H
#define CAIRN_CLI_STOP_H

#include <signal.h>

/* Lets SIGINT, SIGTERM and SIGHUP set the returned flag, unless they are ignored (nohup).  Ignores
 * SIGXFSZ, which would end the program in the middle of a file. */
const volatile sig_atomic_t *stop_catch(void);
/* Ends the line of the ^C, if the flag is set; call it before other output. */
void stop_end_line(void);
/* After the clean-up, if the flag is set: prints a message and ends by the signal, so that a shell loop
 * ends too. */
int stop_end(const char *words);

#endif
