/* SPDX-License-Identifier: Apache-2.0
 * Memory as the system gives it: aligned, mapped from a file, and how much of it there is. */
#ifndef CAIRN_OS_MEMORY_H
#define CAIRN_OS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* At an address that is a multiple of `align`, a power of two; NULL: there is none.  To be freed by os_free_aligned,
 * which accepts NULL: not every system can free it by free(). */
void *os_aligned(size_t align, size_t size);
void os_free_aligned(void *p);
/* For `CLEANUP(os_free_aligned_at) char *p`. */
void os_free_aligned_at(void *pointer_to_pointer);
/* Asks for large pages, which only makes it faster. */
void os_advise_huge(void *at, size_t size);

/* The first n bytes of a file, to be read; NULL with errno. */
const void *os_map(int fd, size_t n);
void os_unmap(const void *at, size_t n);

/* Of the machine, in bytes. */
uint64_t os_memory_total(void);
uint64_t os_memory_free(void);
/* Of this process: address space, and what of it is in memory; 0: unknown. */
struct os_memory_use {
    uint64_t reserved, resident;
};
struct os_memory_use os_memory_use(void);

#endif
