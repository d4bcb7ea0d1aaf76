/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_parts.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

enum { SHORT = 1 << 20 };          /* a longer copy from memory that is not pinned is waited for */
enum { READS_AT_ONCE = 60400000 }; /* before this version every one is */

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

size_t n_ops;
void *captured;
_Atomic bool capturing, capture_broken;
static size_t n_copies;
static struct op ops[MOST];
static __thread int device_now;
static void *_Atomic capture_soon, *_Atomic broken, *_Atomic stuck_soon;
static _Atomic int broken_code;

static long version(void)
{
    return option("version=", FAKE_MAJOR * 10000000L + 443484);
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
