/* SPDX-License-Identifier: Apache-2.0
 * System memory: aligned allocations, mapped files, sizes. */
#ifndef CAIRN_OS_MEMORY_H
#define CAIRN_OS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Memory aligned to `align`, a power of two; NULL if there is none.  Free it with os_free_aligned, which
 * accepts NULL: not every system can use free(). */
void *os_aligned(size_t align, size_t size);
void os_free_aligned(void *p);
/* For `CLEANUP(os_free_aligned_at) char *p`. */
void os_free_aligned_at(void *pointer_to_pointer);
/* Asks for huge pages, as an optimization. */
void os_advise_huge(void *at, size_t size);

/* Maps the first n bytes of a file for reading; NULL with errno. */
const void *os_map(int fd, size_t n);
void os_unmap(const void *at, size_t n);

/* Memory of the machine, in bytes. */
uint64_t os_memory_total(void);
uint64_t os_memory_free(void);
/* Memory of this process: virtual and resident; 0: unknown. */
struct os_memory_use {
    uint64_t reserved, resident;
};
struct os_memory_use os_memory_use(void);

#endif
