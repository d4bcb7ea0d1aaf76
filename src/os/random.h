/* SPDX-License-Identifier: Apache-2.0
 * Random bytes that nobody can guess. */
#ifndef CAIRN_OS_RANDOM_H
#define CAIRN_OS_RANDOM_H

#include <stddef.h>

/* From the kernel.  -1 with errno: it has none, and no secret may be made. */
int os_random(void *out, size_t n);

#endif
