/* SPDX-License-Identifier: Apache-2.0
 * What the fake HIP and its fake compiler share: the token that stands for code, and the settings. */
#ifndef CAIRN_TESTS_GPU_FAKE_H
#define CAIRN_TESTS_GPU_FAKE_H

#include <stdlib.h>
#include <string.h>

/* The token is this, the chip, and the names of the kernels, a line each; one more says that it is the debug build. */
#define FAKE_MAGIC "fake code for "
#define FAKE_DEBUG "\nK_DEBUG\n"

/* What follows "name=" in CAIRN_FAKE_HIP, up to a comma or the end; NULL: not there. */
static inline const char *fake_word(const char *name)
{
    const char *at = getenv("CAIRN_FAKE_HIP");
    size_t n = strlen(name);
    while (at && *at) {
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return NULL;
}

#endif
