/* SPDX-License-Identifier: Apache-2.0
 * What a stream can show, if it is a terminal. */
#ifndef CAIRN_BASE_TTY_H
#define CAIRN_BASE_TTY_H

#include <stdbool.h>
#include <stdio.h>

/* A terminal that obeys escapes, and so can show a line anew; TERM=dumb does not. */
bool tty_obeys(FILE *f);
/* Columns; 80 where it is not known. */
int tty_width(FILE *f);
/* Does the user's locale, by its variables, have UTF-8? */
bool tty_knows_utf8(void);

#endif
