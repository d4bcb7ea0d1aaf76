/* SPDX-License-Identifier: Apache-2.0
 * Ctrl-C during long work: the work sees a flag, cleans up, and the program then ends as the signal would have. */
#ifndef CAIRN_CLI_STOP_H
#define CAIRN_CLI_STOP_H

#include <signal.h>

/* From now on SIGINT, SIGTERM and SIGHUP set the flag that is returned, unless they are ignored (nohup).  SIGXFSZ, which
 * would end the program in the middle of a file, is ignored. */
const volatile sig_atomic_t *stop_catch(void);
/* Before what follows on the terminal, when the flag may be set: not in the line of the ^C. */
void stop_end_line(void);
/* After the clean-up, when the flag is set: says so and ends by the signal, so that a shell's loop ends too. */
int stop_end(const char *words);

#endif
