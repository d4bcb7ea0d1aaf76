/* SPDX-License-Identifier: Apache-2.0
 * Shared libraries at run time.  They stay open until the process ends. */
#ifndef CAIRN_OS_LIBRARY_H
#define CAIRN_OS_LIBRARY_H

#include <stddef.h>

/* Opens a library by path, or by a name that the loader searches for; NULL: see os_library_reason.  `file`
 * becomes the path of the opened file, if the loader reports it. */
void *os_library_open(const char *name, char *file, size_t size);
/* NULL: the library has no such symbol. */
void *os_library_symbol(void *library, const char *name);
/* Why the last library could not be opened; valid until the next attempt. */
const char *os_library_reason(void);

#endif
