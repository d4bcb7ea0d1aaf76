/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

void fd_close(int *fd)
{
    int saved = errno;
    if (*fd >= 0)
        close(*fd);
    errno = saved;
}

void mem_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}
