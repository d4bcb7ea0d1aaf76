/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_host.h"
#include "fake_runtime.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { MOST = 32768, ARENA = 256 << 20, PAGE = 4096 };
enum { SHORT = 1 << 20 };          /* a longer copy from memory that is not pinned is waited for */
enum { READS_AT_ONCE = 60400000 }; /* before this version every one is */

struct piece {
    char *at;
    size_t n;
    bool pinned, live, mapping; /* mappings in a row are one place */
    bool pooled, idle;          /* idle: the pool has it */
};
struct op {
    void *stream;
    char *to;
    const char *from;
    size_t n, nth;
    bool owned; /* from is a copy of ours */
};
struct event {
    void *stream;
    size_t nth; /* copies of the stream up to this one are before it */
    int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *arena, *shadow; /* device memory as others may see it, and as we do */
static size_t arena_used, device_used, pinned_for_copy, n_pieces, n_ops, n_copies;
static struct piece pieces[MOST];
static struct op ops[MOST];
static __thread int last_error, capture_mode, device_now;
static void *captured, *_Atomic capture_soon;
static _Atomic bool capturing, capture_broken;
static void *_Atomic broken, *_Atomic stuck_soon;
static _Atomic int broken_code, n_refused, n_kept;

static long option(const char *name, long otherwise)
{
    const char *all = getenv("FAKE_HIP");
    const char *at = all ? strstr(all, name) : NULL;
    return at ? atol(at + strlen(name)) : otherwise;
}

static long version(void)
{
    return option("version=", FAKE_MAJOR * 10000000L + 443484);
}

static int done(int code)
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

static bool is_device(const void *p)
{
    return arena && (const char *)p >= arena && (const char *)p < arena + ARENA;
}

static char *seen(const void *p)
{
    return is_device(p) ? shadow + ((const char *)p - arena) : (char *)(uintptr_t)p;
}

static void add(char *p, size_t n, bool pinned)
{
    if (n_pieces == MOST)
        abort();
    pieces[n_pieces++] = (struct piece){ .at = p, .n = n, .pinned = pinned, .live = true };
}

static struct piece *find(const void *p, bool pinned)
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

static bool is_kept(void)
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

/* While somebody captures, these are not for those who do not know what they do. */
static bool is_forbidden(void)
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

/* --- streams --- */

static void run_op(const struct op *o)
{
    memmove(seen(o->to), seen(o->from), o->n);
    if (o->owned)
        free((char *)(uintptr_t)o->from);
}

/* Up to this one.  NULL waits for all, as the first stream does; at most so many are run. */
static void flush(const void *stream, size_t nth, size_t most)
{
    size_t kept = 0;
    for (size_t i = 0; i < n_ops; i++) {
        bool other = (stream && ops[i].stream != stream) || ops[i].nth > nth;
        if (other || most == 0 || (ops[i].stream && ops[i].stream == broken)) {
            ops[kept++] = ops[i];
            continue;
        }
        run_op(&ops[i]);
        most--;
    }
    n_ops = kept;
}

static bool breaks_capture(const void *stream)
{
    bool bad = is_forbidden() || (capturing && (stream == captured || !stream));
    capture_broken = capture_broken || bad;
    return bad;
}

void fake_break_stream(void *stream, int code)
{
    broken_code = code;
    broken = stream;
}

void fake_stick_soon(void *stream)
{
    stuck_soon = stream;
}

static bool is_stuck(const void *stream)
{
    return stream && stream == broken && !broken_code;
}

static int failure_of(const void *stream)
{
    return stream && stream == broken ? broken_code : 0;
}

static int wait_until(void *stream, size_t nth)
{
    while (is_stuck(stream))
        usleep(1000);
    if (failure_of(stream))
        return done(failure_of(stream));
    pthread_mutex_lock(&lock);
    bool bad = breaks_capture(stream);
    if (!bad)
        flush(stream, nth, MOST);
    pthread_mutex_unlock(&lock);
    return done(bad ? BAD_CAPTURE : 0);
}

int hipStreamSynchronize(void *stream)
{
    return wait_until(stream, SIZE_MAX);
}

int hipStreamGetDevice(void *stream, int *device)
{
    *device = stream ? *(const int *)stream : device_now;
    return 0;
}

int hipGetDevice(int *device)
{
    *device = device_now;
    return 0;
}

int hipSetDevice(int device)
{
    device_now = device;
    return 0;
}

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    struct event *e = calloc(1, sizeof(*e));
    (void)flags;
    e->device = device_now;
    *event = e;
    return 0;
}

int hipEventRecord(void *event, void *stream)
{
    struct event *e = event;
    pthread_mutex_lock(&lock);
    e->stream = stream;
    e->nth = n_copies;
    pthread_mutex_unlock(&lock);
    bool other = stream && *(const int *)stream != e->device;
    return done(other || option("noevent=", 0) ? INVALID : 0);
}

int hipEventSynchronize(void *event)
{
    const struct event *e = event;
    return wait_until(e->stream, e->nth);
}

/* Nothing goes on by itself here, so every question brings the stream on by one copy. */
int hipEventQuery(void *event)
{
    const struct event *e = event;
    if (is_forbidden())
        return done(BAD_CAPTURE);
    pthread_mutex_lock(&lock);
    flush(e->stream, e->nth, 1);
    size_t left = 0;
    for (size_t i = 0; i < n_ops; i++)
        left += ops[i].nth <= e->nth && (!e->stream || ops[i].stream == e->stream);
    pthread_mutex_unlock(&lock);
    return done(left || is_stuck(e->stream) ? NOT_READY : 0);
}

int hipDeviceSynchronize(void)
{
    return hipStreamSynchronize(NULL);
}

int hipStreamIsCapturing(void *stream, int *status)
{
    *status = capturing && stream == captured;
    if (capture_soon) {
        captured = capture_soon;
        capture_soon = NULL;
        capturing = true;
        capture_broken = false;
    }
    return 0;
}

void fake_capture_soon(void *stream)
{
    capture_soon = stream;
}

int hipStreamBeginCapture(void *stream, int mode)
{
    if (mode == BAD_MODE)
        return done(INVALID);
    captured = stream;
    capturing = true;
    capture_broken = false;
    return 0;
}

int hipStreamBeginCaptureToGraph(void *stream, void *graph, const void *after, const void *edges, size_t n,
                                 int mode)
{
    (void)graph, (void)after, (void)edges, (void)n;
    return hipStreamBeginCapture(stream, mode);
}

int hipStreamEndCapture(void *stream, void **graph)
{
    if (!capturing || stream != captured)
        return done(INVALID);
    *graph = stream;
    capturing = false;
    return done(capture_broken ? BAD_CAPTURE : 0);
}

int hipStreamDestroy(void *stream)
{
    if (!stream || is_kept())
        return done(INVALID);
    if (stream == captured)
        capturing = false;
    return 0;
}

/* --- copies --- */

static bool is_mapped(const char *p, size_t n)
{
    unsigned char in_core[1];
    uintptr_t first = (uintptr_t)p & ~(uintptr_t)(PAGE - 1),
              last = ((uintptr_t)p + n - 1) & ~(uintptr_t)(PAGE - 1);
    return !mincore((void *)first, PAGE, in_core) && !mincore((void *)last, PAGE, in_core);
}

static int pin(const char *p, size_t n)
{
    long limit = option("invalid=", 0);
    if (!is_mapped(p, n) || (limit && n >= (size_t)limit))
        return INVALID;
    while (option("stall=", 0))
        pause();
    pinned_for_copy++;
    if (option("slow=", 0))
        usleep((unsigned)(option("slow=", 0) * (long)(n / PAGE)));
    return 0;
}

static bool fits(const char *p, size_t n)
{
    const char *end = p + n;
    if ((uintptr_t)p + n < n)
        return false;
    for (struct piece *piece; is_device(p) && p < end; p = piece->at + piece->n) {
        piece = find(p, false);
        if (!piece || (!piece->mapping && piece->at + piece->n < end))
            return false;
    }
    return true;
}

static int copy_locked(char *to, const char *from, size_t n, void *stream, bool *waits)
{
    if (!n)
        return 0;
    if (!fits(to, n) || !fits(from, n))
        return INVALID;
    const char *host = is_device(to) ? from : to;
    bool pageable = !is_device(host) && !find(host, true);
    if (capturing && (stream == captured || *waits)) {
        capture_broken |= *waits || pageable;
        return capture_broken ? BAD_CAPTURE : 0;
    }
    if (pageable && pin(host, n))
        return INVALID;
    if (pageable && is_device(to) && n < (size_t)option("meagre=", 0))
        return OUT_OF_MEMORY;
    if (n_ops == MOST)
        flush(NULL, SIZE_MAX, MOST);
    *waits |= pageable && (n > SHORT || version() < READS_AT_ONCE);
    bool owned = pageable && is_device(to) && is_stuck(stream) && !*waits; /* it is read at once */
    if (owned)
        from = memcpy(malloc(n), from, n);
    ops[n_ops++] = (struct op){ stream, to, from, n, ++n_copies, owned };
    if (stream && stream == stuck_soon)
        fake_break_stream(stream, 0);
    if ((*waits || pageable) && !is_stuck(stream))
        flush(stream, SIZE_MAX, MOST);
    return 0;
}

static int copy(void *to, const void *from, size_t n, void *stream, bool waits)
{
    if (failure_of(stream))
        return done(failure_of(stream));
    pthread_mutex_lock(&lock);
    int code = copy_locked(to, from, n, stream, &waits);
    pthread_mutex_unlock(&lock);
    return waits && is_stuck(stream) ? wait_until(stream, SIZE_MAX) : done(code);
}

int hipMemcpy(void *to, const void *from, size_t n, int kind)
{
    (void)kind;
    return copy(to, from, n, NULL, true);
}

int hipMemcpyAsync(void *to, const void *from, size_t n, int kind, void *stream)
{
    (void)kind;
    return copy(to, from, n, stream, false);
}

int hipMemcpyWithStream(void *to, const void *from, size_t n, int kind, void *stream)
{
    (void)kind;
    return copy(to, from, n, stream, true);
}

int hipMemcpyHtoD(void *to, const void *from, size_t n)
{
    return copy(to, from, n, NULL, true);
}

/* --- the rest --- */

int hipGetLastError(void)
{
    int code = last_error;
    last_error = 0;
    return code;
}

int hipPeekAtLastError(void)
{
    return last_error;
}

int hipRuntimeGetVersion(int *v)
{
    *v = (int)version();
    return 0;
}

int hipModuleUnload(void *module)
{
    return done(module ? 0 : INVALID);
}

const char *hipKernelNameRefByPtr(const void *f, void *stream)
{
    (void)stream;
    return ((const struct fake_kernel *)f)->name;
}

int hipLaunchKernel(const void *f, struct size3 grid, struct size3 block, void **a, size_t shared,
                    void *stream)
{
    const struct fake_kernel *k = f;
    (void)grid, (void)block, (void)a, (void)shared, (void)stream;
    while (k->hangs)
        pause();
    return done(k->code);
}
