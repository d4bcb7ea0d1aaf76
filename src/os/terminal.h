/* SPDX-License-Identifier: Apache-2.0
 * Properties of a terminal. */
#ifndef CAIRN_OS_TERMINAL_H
#define CAIRN_OS_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Whether it is a terminal that supports escape sequences, and so can rewrite a line; not with TERM=dumb. */
bool tty_obeys(FILE *f);
/* Columns; 80 if unknown. */
int tty_width(FILE *f);
/* Whether the user's locale, by its variables, is UTF-8. */
bool tty_knows_utf8(void);
/* Opens the terminal of this session, whatever the standard descriptors are; -1: none. */
int os_open_tty(void);
/* Call it at the start of a program: occupies closed standard descriptors, so that a file opened later does
 * not get one of them and receive output.  Each is opened in the wrong direction, so that using it still
 * fails. */
void os_fill_standard(void);
/* For a child that should be able to use them: replaces these with /dev/null. */
void os_null_standard(void);

#endif
