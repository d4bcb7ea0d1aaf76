/* SPDX-License-Identifier: Apache-2.0
 * Which Python a command starts, found by looking at files and never by running anything.
 *
 * A command is followed through wrappers (env, nice, timeout …), the runners of environments (uv,
 * conda, poetry …), the first lines of scripts, and the text of shell scripts, as far as that text can
 * be understood without a shell. */
#ifndef CAIRN_HOST_COMMAND_H
#define CAIRN_HOST_COMMAND_H

#include "base/arena.h"
#include "host/root.h"
#include <stdbool.h>

enum command_sure {
    COMMAND_UNKNOWN,
    COMMAND_GUESS, /* depends on something that only running it would show */
    COMMAND_SURE,
};

struct command_python {
    enum command_sure sure;
    const char *exe; /* absolute, its links not followed, which lead out of an environment; NULL: unknown */
    const char *how; /* how it was found, or why it was not */
    const char *const *argv; /* what starts it, with whole paths of scripts; NULL: not known */
};

/* argv and env end with NULL.  cwd NULL: not known, and relative paths are not followed. */
void command_python(const struct root *r, struct arena *a, const char *const *argv, const char *const *env,
                    const char *cwd, struct command_python *out);
/* Does a program of this name hand its work to a container, a service or another machine, whose processes,
 * memory and GPU are not visible from here? */
bool command_is_remote(const char *program);

#endif
