/* SPDX-License-Identifier: Apache-2.0
 * What a stream can show, if it is a terminal. */
#ifndef CAIRN_OS_TERMINAL_H
#define CAIRN_OS_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* A terminal that obeys escapes, and so can show a line anew; TERM=dumb does not. */
bool tty_obeys(FILE *f);
/* Columns; 80 where it is not known. */
int tty_width(FILE *f);
/* Does the user's locale, by its variables, have UTF-8? */
bool tty_knows_utf8(void);
/* The terminal of this session, whatever the standard descriptors are; -1: there is none. */
int os_open_tty(void);
/* At the start of a program: what is opened later must not take the place of a standard descriptor that it was started
 * without, and get what is printed.  Each is opened the wrong way round, so that using it fails as before. */
void os_fill_standard(void);
/* For a child that should be able to use them: those become /dev/null. */
void os_mend_standard(void);

#endif
