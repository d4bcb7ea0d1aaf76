/* SPDX-License-Identifier: Apache-2.0
 * Lines that a shell can run: setting and unsetting variables, comments.  Values are quoted so that the shell
 * reads them literally, with any quotes, dollars or line feeds.  A name that is not a valid variable name
 * gives no line, because it cannot be quoted. */
#ifndef CAIRN_BASE_SHELL_TEXT_H
#define CAIRN_BASE_SHELL_TEXT_H

#include "base/str.h"
#include <stdio.h>

enum shell { SHELL_SH, SHELL_FISH, SHELL_POWERSHELL, SHELL_CMD, SHELL_DOTENV, SHELL_JSON };

/* Accepts also names of compatible shells (bash, zsh, pwsh); false for an unknown shell. */
bool shell_find(const char *name, enum shell *out);
/* One line: export NAME='value', set -gx …, $env:… = …, set "NAME=value", NAME=value. */
void shell_set(enum shell s, const char *name, const char *value, struct str *out);
/* A .env file cannot unset a variable, so there it is a comment. */
void shell_unset(enum shell s, const char *name, struct str *out);
/* The lines of a remedy: commands, "# remark", and "command    # remark".  A command longer than width
 * columns continues on the next line in shell syntax, so that it can be pasted; a remark is on lines of its
 * own. */
void shell_remedy(const char *remedy, int width, struct str *out);
/* Comments: wrapped, every line after "# " (cmd: "rem "), without characters that could end the line. */
void shell_remark(enum shell s, const char *text, int width, FILE *out);

#endif
