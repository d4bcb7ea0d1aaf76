/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memory.h"

#include "os/fault.h"
#include "os/file.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *os_aligned(size_t align, size_t size)
{
    void *p;
    return posix_memalign(&p, align, size ? size : 1) ? NULL : p;
}

void os_free_aligned(void *p)
{
    free(p);
}

void os_free_aligned_at(void *pointer_to_pointer)
{
    os_free_aligned(*(void **)pointer_to_pointer);
}

void os_advise_huge(void *at, size_t size)
{
    (void)madvise(at, size, MADV_HUGEPAGE); /* fails on a kernel without huge pages */
}

const void *os_map(int fd, size_t n)
{
    void *at = fault_hit() ? MAP_FAILED : mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

void os_unmap(const void *at, size_t n)
{
    munmap((void *)at, n);
}

static uint64_t pages(long n)
{
    return n < 0 ? 0 : (uint64_t)n * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t os_memory_total(void)
{
    return pages(sysconf(_SC_PHYS_PAGES));
}

uint64_t os_memory_free(void)
{
    return pages(sysconf(_SC_AVPHYS_PAGES));
}

struct os_memory_use os_memory_use(void)
{
    long reserved = 0, resident = 0;
    char text[128];
    os_read_start("/proc/self/statm", text, sizeof(text));
    if (sscanf(text, "%ld %ld", &reserved, &resident) != 2)
        reserved = resident = 0;
    return (struct os_memory_use){ pages(reserved), pages(resident) };
}
