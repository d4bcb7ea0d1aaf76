/* SPDX-License-Identifier: Apache-2.0
 * Lines that a shell can run: setting, removing, remarks.  Any value is quoted so that the shell takes it as it
 * is, whatever quotes, dollars or line feeds are in it.  A name that is no variable's gives no line at all: it cannot be
 * quoted. */
#ifndef CAIRN_BASE_SHELL_TEXT_H
#define CAIRN_BASE_SHELL_TEXT_H

#include "base/str.h"
#include <stdio.h>

enum shell { SHELL_SH, SHELL_FISH, SHELL_POWERSHELL, SHELL_CMD, SHELL_DOTENV, SHELL_JSON };

/* Also by the name of a shell that reads the same (bash, zsh, pwsh); false for one that is not known. */
bool shell_find(const char *name, enum shell *out);
/* One line: export NAME='value', set -gx …, $env:… = …, set "NAME=value", NAME=value. */
void shell_set(enum shell s, const char *name, const char *value, struct str *out);
/* A .env file can only leave a variable out, so there it is a remark. */
void shell_unset(enum shell s, const char *name, struct str *out);
/* The lines of a remedy: commands, "# remark", and "command    # remark".  A command longer than width columns goes on in the
 * next line the way a shell allows, so that it can be pasted as it stands; a remark stands in lines of its own. */
void shell_remedy(const char *remedy, int width, struct str *out);
/* Remarks: wrapped, every line behind "# " (cmd: "rem "), and no character in it that could end the line. */
void shell_remark(enum shell s, const char *text, int width, FILE *out);

#endif
