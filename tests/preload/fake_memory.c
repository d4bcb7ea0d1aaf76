/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_host.h"
#include "fake_parts.h"
#include <sys/mman.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { ARENA = 256 << 20 };

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
size_t pinned_for_copy;
__thread int last_error;
static __thread int capture_mode;
static char *arena, *shadow; /* device memory as others may see it, and as we do */
static size_t arena_used, device_used, n_pieces;
static struct piece pieces[MOST];
static _Atomic int n_refused, n_kept;

long option(const char *name, long otherwise)
{
    const char *all = getenv("FAKE_HIP");
    const char *at = all ? strstr(all, name) : NULL;
    return at ? atol(at + strlen(name)) : otherwise;
}

int done(int code)
{
    if (code)
        last_error = code;
    return code;
}

static void unlock(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void open_arena(void)
{
    if (arena)
        return;
    pthread_atfork(NULL, NULL, unlock);
    int fd = memfd_create("fake", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, ARENA))
        abort();
    arena = mmap(NULL, ARENA, PROT_NONE, MAP_SHARED, fd, 0);
    shadow = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (arena == MAP_FAILED || shadow == MAP_FAILED)
        abort();
    close(fd);
}

bool is_device(const void *p)
{
    return arena && (const char *)p >= arena && (const char *)p < arena + ARENA;
}

char *seen(const void *p)
{
    return is_device(p) ? shadow + ((const char *)p - arena) : (char *)(uintptr_t)p;
}

static void add(char *p, size_t n, bool pinned)
{
    if (n_pieces == MOST)
        abort();
    pieces[n_pieces++] = (struct piece){ .at = p, .n = n, .pinned = pinned, .live = true };
}

struct piece *find(const void *p, bool pinned)
{
    for (size_t i = n_pieces; i-- > 0;)
        if (pieces[i].live && pieces[i].pinned == pinned && (const char *)p >= pieces[i].at &&
            (const char *)p < pieces[i].at + pieces[i].n)
            return &pieces[i];
    return NULL;
}

/* --- memory --- */

static int take(void **p, size_t n)
{
    if (n < ARENA && option("spends=", 0))
        fake_host_spend((long)n);
    usleep((unsigned)option("late=", 0));
    pthread_mutex_lock(&lock);
    open_arena();
    size_t rounded = (n + PAGE - 1) / PAGE * PAGE;
    bool fits = arena_used + rounded <= ARENA && device_used + n <= (size_t)option("memory=", ARENA);
    if (fits) {
        *p = arena + arena_used;
        arena_used += rounded;
        device_used += n;
        add(*p, n, false);
    }
    pthread_mutex_unlock(&lock);
    return done(fits ? 0 : OUT_OF_MEMORY);
}

int hipMalloc(void **p, size_t n)
{
    return take(p, n);
}

/* As ROCm's pool: a piece is given again as it is, and what is not used stays. */
static bool take_idle(void **p, size_t n)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_pieces && !found; i++) {
        found = pieces[i].live && pieces[i].idle && pieces[i].n >= n;
        if (!found)
            continue;
        pieces[i].idle = false;
        *p = pieces[i].at;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static int take_pooled(void **p, size_t n, void *stream, int (*more)(void **, size_t))
{
    if (capturing && stream == captured) {
        *p = arena; /* written down, whatever the size */
        return 0;
    }
    int code = take_idle(p, n) ? 0 : more(p, n);
    pthread_mutex_lock(&lock);
    if (!code)
        find(*p, false)->pooled = true;
    pthread_mutex_unlock(&lock);
    return code;
}

/* Calls another one, and may find ours. */
int hipMallocAsync(void **p, size_t n, void *stream)
{
    return take_pooled(p, n, stream, hipMalloc);
}

int hipMallocFromPoolAsync(void **p, size_t n, void *pool, void *stream)
{
    (void)pool;
    return take_pooled(p, n, stream, take);
}

int hipDeviceGetMemPool(void **pool, int device)
{
    *pool = &pieces;
    return done(device ? INVALID : 0);
}

int hipMemPoolGetAttribute(void *pool, int attribute, void *value)
{
    enum { RESERVED = 5, USED = 7 };
    uint64_t n = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_pieces; i++)
        if (pieces[i].live && pieces[i].pooled && (attribute == RESERVED || !pieces[i].idle))
            n += pieces[i].n;
    pthread_mutex_unlock(&lock);
    memcpy(value, &n, sizeof(n));
    return done(pool == &pieces && (attribute == RESERVED || attribute == USED) ? 0 : INVALID);
}

int hipMemPoolTrimTo(void *pool, size_t least)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_pieces; i++) {
        if (!pieces[i].live || !pieces[i].idle)
            continue;
        pieces[i].live = false;
        device_used -= pieces[i].n;
        if (option("spends=", 0))
            fake_host_spend(-(long)pieces[i].n);
    }
    pthread_mutex_unlock(&lock);
    return done(pool == &pieces && !least ? 0 : INVALID);
}

int hipMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return take(p, *pitch * height);
}

int hipMalloc3D(struct pitched *p, struct extent size)
{
    p->pitch = (size.width + 511) / 512 * 512;
    return take(&p->at, p->pitch * size.height * size.depth);
}

/* --- memory without an address, and addresses without memory --- */

int hipMemCreate(void **h, size_t n, const void *where, unsigned long long flags)
{
    (void)flags;
    pthread_mutex_lock(&lock);
    bool fits = device_used + n <= (size_t)option("memory=", ARENA);
    device_used += fits ? n : 0;
    pthread_mutex_unlock(&lock);
    *h = (void *)(uintptr_t)where;
    return done(fits ? 0 : OUT_OF_MEMORY);
}

int hipMemRelease(void *h)
{
    return done(h ? 0 : INVALID);
}

int hipMemAddressReserve(void **p, size_t n, size_t align, void *wanted, unsigned long long flags)
{
    (void)align, (void)wanted, (void)flags;
    pthread_mutex_lock(&lock);
    open_arena();
    *p = arena + arena_used;
    arena_used += n;
    pthread_mutex_unlock(&lock);
    return 0;
}

int hipMemMap(void *p, size_t n, size_t at, void *h, unsigned long long flags)
{
    (void)at, (void)h, (void)flags;
    pthread_mutex_lock(&lock);
    add(p, n, false);
    pieces[n_pieces - 1].mapping = true;
    pthread_mutex_unlock(&lock);
    return 0;
}

int hipMemUnmap(void *p, size_t n)
{
    pthread_mutex_lock(&lock);
    for (struct piece *found; n && (found = find(p, false));) {
        found->live = false;
        p = (char *)p + found->n;
        n -= found->n;
    }
    pthread_mutex_unlock(&lock);
    return done(n ? INVALID : 0);
}

int hipDeviceReset(void)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < n_pieces; i++) {
        if (pieces[i].live && pieces[i].pinned)
            munmap(pieces[i].at, pieces[i].n);
        pieces[i].live = false;
    }
    n_ops = device_used = 0;
    pthread_mutex_unlock(&lock);
    return 0;
}

bool is_kept(void)
{
    return n_kept < option("nofree=", 0) && n_kept++ >= 0;
}

static int drop(void *p, bool pinned)
{
    if (p && is_kept())
        return done(INVALID);
    pthread_mutex_lock(&lock);
    struct piece *found = find(p, pinned);
    if (found) {
        found->live = false;
        device_used -= pinned ? 0 : found->n;
    }
    pthread_mutex_unlock(&lock);
    return done(found || !p ? 0 : INVALID);
}

/* Of either kind. */
static int drop_any(void *p)
{
    pthread_mutex_lock(&lock);
    bool pinned = find(p, true);
    pthread_mutex_unlock(&lock);
    return drop(p, pinned);
}

int hipFree(void *p)
{
    return drop_any(p);
}

int hipFreeAsync(void *p, void *stream)
{
    (void)stream;
    pthread_mutex_lock(&lock);
    struct piece *found = p ? find(p, false) : NULL;
    if (found && found->pooled)
        found->idle = true;
    pthread_mutex_unlock(&lock);
    return found && found->pooled ? 0 : drop(p, false);
}

bool is_forbidden(void)
{
    bool bad = capturing && capture_mode != RELAXED;
    capture_broken = capture_broken || bad;
    return bad;
}

int hipThreadExchangeStreamCaptureMode(int *mode)
{
    int old = capture_mode;
    capture_mode = *mode;
    *mode = old;
    return 0;
}

int hipHostMalloc(void **p, size_t n, unsigned flags)
{
    (void)flags;
    if (is_forbidden())
        return done(BAD_CAPTURE);
    if (option("nopin=", 0) || (n_refused < option("pinlater=", 0) && n_refused++ >= 0))
        return done(OUT_OF_MEMORY);
    *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fake_pin_quietly(*p, n);
    return 0;
}

void fake_pin_quietly(void *p, size_t n)
{
    pthread_mutex_lock(&lock);
    add(p, n, true);
    pthread_mutex_unlock(&lock);
}

int hipHostFree(void *p)
{
    return drop_any(p);
}

int hipHostRegister(void *p, size_t n, unsigned flags)
{
    (void)flags;
    fake_pin_quietly(p, n);
    return 0;
}

int hipHostUnregister(void *p)
{
    return drop(p, true);
}

/* Before ROCm 6 memory that it did not know was an error. */
int hipPointerGetAttributes(void *about, const void *p)
{
    enum { UNKNOWN = 0, PINNED = FAKE_MAJOR < 6 ? 0 : 1, OF_DEVICE };
    pthread_mutex_lock(&lock);
    int type = find(p, true) ? PINNED : find(p, false) ? OF_DEVICE : -1;
    pthread_mutex_unlock(&lock);
    memcpy(about, &(int){ type < 0 ? UNKNOWN : type }, sizeof(type));
    return done(type < 0 && FAKE_MAJOR < 6 ? INVALID : 0);
}

size_t fake_pinned_for_copy(void)
{
    return pinned_for_copy;
}

/* --- what it says of memory: as runtimes do on an APU --- */

int hipMemGetInfo(size_t *free_bytes, size_t *total)
{
    *free_bytes = (size_t)option("free=", 120L << 10) << 20;
    *total = 62UL << 30;
    return 0;
}

int hipDeviceTotalMem(size_t *total, int device)
{
    *total = 62UL << 30;
    return done(device ? INVALID : 0);
}

static int properties(char *p, size_t size, size_t at)
{
    size_t total = 62UL << 30;
    memset(p, 0x5a, size);
    memcpy(p + at, &total, sizeof(total));
    return 0;
}

int hipGetDeviceProperties(void *p, int device)
{
    (void)device;
    return properties(p, 792, 256);
}

int hipGetDevicePropertiesR0600(void *p, int device)
{
    (void)device;
    return properties(p, 1472, 288);
}
