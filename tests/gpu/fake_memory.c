/* SPDX-License-Identifier: Apache-2.0
 * The memory of the fake HIP, and of the host where it is pinned. */
#include "fake_inside.h"
#include "fake_kept.h"
#include <malloc.h>
#include <sys/mman.h>

enum { MOST_BLOCKS = 4096, PAGE = 4096, ALIGNMENT = 256 };

static struct block {
    char *pages; /* NULL: free */
    size_t pages_size;
    char *start; /* what the caller has */
    size_t size;
} blocks[MOST_BLOCKS];
static uint64_t used, pinned;

uint64_t fake_capacity(void)
{
    return setting("memory", (uint64_t)512 << 20);
}

static void set_access(int protection)
{
    if (setting("unified", 0) == 1)
        protection = PROT_READ | PROT_WRITE;
    for (size_t i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].pages)
            mprotect(blocks[i].pages, blocks[i].pages_size, protection);
}

void fake_device_begins(void)
{
    set_access(PROT_READ | PROT_WRITE);
}

void fake_device_ends(void)
{
    set_access(PROT_NONE);
}

bool fake_is_device(const void *p, size_t n)
{
    const char *at = p;
    for (size_t i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].pages && at >= blocks[i].start && at + n <= blocks[i].start + blocks[i].size)
            return true;
    return false;
}

int hipMalloc(void **p, size_t n)
{
    MAY_FAIL();
    size_t room = (n + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, size = (room + PAGE - 1) / PAGE * PAGE;
    struct block *b = blocks;
    while (b < blocks + MOST_BLOCKS && b->pages)
        b++;
    if (b == blocks + MOST_BLOCKS || used + size > fake_capacity())
        return OUT_OF_MEMORY;
    /* A page on both sides that is never opened. */
    char *whole = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
        return OUT_OF_MEMORY;
    *b = (struct block){ whole + PAGE, size, whole + PAGE + size - room, room };
    used += size;
    fake_device_ends();
    *p = b->start;
    return 0;
}

int hipFree(void *p)
{
    MAY_FAIL();
    for (size_t i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].pages && blocks[i].start == p) {
            munmap(blocks[i].pages - PAGE, blocks[i].pages_size + 2 * PAGE);
            used -= blocks[i].pages_size;
            blocks[i].pages = NULL;
            return 0;
        }
    return INVALID_VALUE;
}

int hipHostMalloc(void **p, size_t n, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    if (pinned + n > setting("pinned", UINT64_MAX) || posix_memalign(p, PAGE, n))
        return OUT_OF_MEMORY;
    pinned += malloc_usable_size(keep(*p));
    return 0;
}

int hipHostFree(void *p)
{
    MAY_FAIL();
    pinned -= malloc_usable_size(p);
    drop(p);
    return 0;
}

int hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    MAY_FAIL();
    *free_bytes = fake_capacity() - used;
    *total_bytes = fake_capacity();
    return 0;
}
