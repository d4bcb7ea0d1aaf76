/* SPDX-License-Identifier: Apache-2.0
 * Shared libraries at run time.  They stay open until the process ends. */
#ifndef CAIRN_OS_LIBRARY_H
#define CAIRN_OS_LIBRARY_H

#include <stddef.h>

/* By path, or by a name that the system's loader looks for; NULL: os_library_reason tells why.  `file` becomes the file that
 * was opened, as far as the loader tells. */
void *os_library_open(const char *name, char *file, size_t size);
/* NULL: the library has none. */
void *os_library_symbol(void *library, const char *name);
/* Why the last one could not be opened; valid until the next is tried. */
const char *os_library_reason(void);

#endif
