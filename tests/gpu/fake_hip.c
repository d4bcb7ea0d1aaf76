/* SPDX-License-Identifier: Apache-2.0
 * A libamdhip64.so.7 without a GPU, for tests.
 *
 * Device memory cannot be touched outside of a call of this library, lies against the end of its pages, and is
 * limited.  A download arrives when its stream is waited for, by the host or by another stream, not before.  A launch runs the kernels for the CPU, by
 * their names in the token that the fake compiler made (fake_hiprtc.c).  FAKE_GFX is the chip; CAIRN_FAKE_HIP has
 * words, separated by commas:
 *
 *     devices=2  memory=BYTES  version=NUMBER
 *     pinned=BYTES     no more of the host's memory can be pinned
 *     copy=BYTES       no copy between host and device may be larger
 *     late=1           an upload reads its source when its stream is waited for; if the wait fails, never
 *     unified=1        the device's memory is the host's, and can be touched; 2: it only says so
 *
 * and those of fake_told.h, which make calls fail. */
#include "fake_inside.h"
#include "fake_kept.h"
#include "gpu/kernel_rows.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ARCH_AT = 1160, PROPERTIES_SIZE = 1472, UNITS = 40 };

static const char *chip(void)
{
    const char *told = getenv("FAKE_GFX");
    return told && told[0] ? told : "gfx1151";
}

/* ---- devices ---- */

static int devices(void)
{
    return fake_is_set("leaves") ? 0 : (int)setting("devices", 1);
}

int hipInit(unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    return devices() ? 0 : NO_DEVICE;
}

int hipGetDeviceCount(int *n)
{
    MAY_FAIL();
    *n = devices();
    return 0;
}

int hipSetDevice(int device)
{
    MAY_FAIL();
    return device < devices() ? 0 : 101;
}

int hipDriverGetVersion(int *version)
{
    *version = (int)setting("version", 70051831);
    return 0;
}

int hipRuntimeGetVersion(int *version)
{
    return hipDriverGetVersion(version);
}

const char *hipGetErrorName(int code)
{
    return code == OUT_OF_MEMORY ? "hipErrorOutOfMemory"
           : code == LOST        ? "hipErrorIllegalAddress"
                                 : "hipErrorOther";
}

int hipDeviceGetName(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "Fake Radeon %d", device);
    return 0;
}

int hipDeviceGetPCIBusId(char *name, int size, int device)
{
    snprintf(name, (size_t)size, "0000:C%d:00.0", device);
    return 0;
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 87   ? 32
             : attribute == 74 ? 65536
             : attribute == 16 ? setting("unified", 0) > 0
                               : UNITS;
    return 0;
}

int hipDeviceTotalMem(size_t *n, int device)
{
    (void)device;
    *n = fake_capacity();
    return 0;
}

int hipGetDevicePropertiesR0600(void *properties, int device)
{
    (void)device;
    memset(properties, 0, PROPERTIES_SIZE);
    snprintf((char *)properties + ARCH_AT, 256, "%s", chip());
    return 0;
}

/* ---- queues ---- */

struct download {
    struct download *next;
    void *dst;
    size_t n;
    char bytes[];
};

enum kind { COPY_UP, COPY_DOWN, COPY_WITHIN, SET_BYTES, RUN_KERNEL };
struct function;
struct work {
    enum kind kind;
    void *dst, *src;
    size_t n;
    unsigned char value;
    const struct function *function;
    unsigned grid[3];
    _Alignas(16) char args[1024];
};
struct graph {
    struct work *works;
    size_t n;
};
/* What waits for its stream. */
struct upload {
    struct upload *next;
    void *dst, *src;
    size_t n;
};
struct stream {
    struct download *first, **last;
    struct upload *uploads, **last_upload;
    bool stuck;           /* what is on it never ends */
    struct graph *record; /* NULL: work is done, not kept */
    bool broken;          /* something was asked for that must not be while work is kept */
};

static void run_kernel(const struct function *f, const unsigned *grid, const void *args);

static int download(struct stream *s, void *dst, const void *src, size_t n)
{
    struct download *d = malloc(sizeof(*d) + n);
    if (!d)
        return OUT_OF_MEMORY;
    d->next = NULL, d->dst = dst, d->n = n;
    memcpy(d->bytes, src, n);
    *s->last = d;
    s->last = &d->next;
    return 0;
}

/* With the device's memory open. */
static int do_work(struct stream *s, const struct work *w)
{
    if (w->kind == COPY_DOWN)
        return download(s, w->dst, w->src, w->n);
    if (w->kind == SET_BYTES)
        memset(w->dst, w->value, w->n);
    else if (w->kind == RUN_KERNEL)
        run_kernel(w->function, w->grid, w->args);
    else
        memmove(w->dst, w->src, w->n);
    return 0;
}

static bool is_valid(const struct work *w)
{
    return w->kind == RUN_KERNEL ||
           ((w->kind == COPY_DOWN || fake_is_device(w->dst, w->n)) &&
            (w->kind == COPY_UP || w->kind == SET_BYTES || fake_is_device(w->src, w->n)));
}

static void end_uploads(struct stream *s, bool lost)
{
    fake_device_begins();
    while (s->uploads) {
        struct upload *u = s->uploads;
        if (!lost)
            memcpy(u->dst, u->src, u->n);
        s->uploads = u->next;
        free(u);
    }
    s->last_upload = &s->uploads;
    fake_device_ends();
}

static int upload_late(struct stream *s, const struct work *w)
{
    struct upload *u = malloc(sizeof(*u));
    if (!u)
        return OUT_OF_MEMORY;
    *u = (struct upload){ NULL, w->dst, w->src, w->n };
    *s->last_upload = u;
    s->last_upload = &u->next;
    return 0;
}

static int record(struct graph *g, const struct work *w)
{
    struct work *grown = realloc(g->works, (g->n + 1) * sizeof(*grown));
    if (!grown)
        return OUT_OF_MEMORY;
    g->works = grown;
    grown[g->n++] = *w;
    return 0;
}

static int queue(struct stream *s, const struct work *w, bool stuck)
{
    if (!is_valid(w))
        return INVALID_VALUE;
    if (s->record)
        return record(s->record, w);
    s->stuck |= stuck;
    fake_blocked |= stuck;
    if (s->stuck)
        return 0;
    if (w->kind == COPY_UP && setting("late", 0))
        return upload_late(s, w);
    if (s->uploads)
        end_uploads(s, false);
    fake_device_begins();
    int code = do_work(s, w);
    fake_device_ends();
    return code;
}

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    struct stream *s = calloc(1, sizeof(*s));
    if (!s)
        return OUT_OF_MEMORY;
    s->last = &s->first;
    s->last_upload = &s->uploads;
    *stream = keep(s);
    return 0;
}

/* A stream whose work is being kept must not be asked or waited for: that ends the keeping. */
static bool breaks_capture(struct stream *s)
{
    s->broken |= s->record != NULL;
    return s->record;
}

/* Downloads arrive. */
static void land(struct stream *s)
{
    while (s->first) {
        struct download *d = s->first;
        memcpy(d->dst, d->bytes, d->n);
        s->first = d->next;
        free(d);
    }
    s->last = &s->first;
}

int hipStreamSynchronize(void *stream)
{
    struct stream *s = stream;
    int told = fake_injected(__func__);
    if (s->uploads && !s->stuck)
        end_uploads(s, told);
    if (told)
        return told;
    if (breaks_capture(s))
        return NOT_IN_CAPTURE;
    if (s->stuck)
        fake_never_return();
    land(s);
    return 0;
}

int hipStreamQuery(void *stream)
{
    MAY_FAIL();
    struct stream *s = stream;
    if (breaks_capture(s))
        return NOT_IN_CAPTURE;
    return s->stuck ? NOT_READY : 0;
}

int hipStreamDestroy(void *stream)
{
    MAY_FAIL();
    int code = hipStreamSynchronize(stream);
    if (!code)
        drop(stream);
    return code;
}

static bool is_too_large(size_t n)
{
    return n > setting("copy", UINT64_MAX);
}

int hipMemcpyHtoDAsync(void *dst, void *src, size_t n, void *stream)
{
    MAY_FAIL();
    if (is_too_large(n))
        return INVALID_VALUE;
    int code = queue(stream, &(struct work){ .kind = COPY_UP, .dst = dst, .src = src, .n = n },
                     fake_hangs(__func__));
    if (!code && fake_spoils(__func__)) {
        fake_device_begins();
        ((char *)dst)[n / 2] ^= 1;
        fake_device_ends();
    }
    return code;
}

int hipMemcpyDtoHAsync(void *dst, void *src, size_t n, void *stream)
{
    MAY_FAIL();
    if (is_too_large(n))
        return INVALID_VALUE;
    return queue(stream, &(struct work){ .kind = COPY_DOWN, .dst = dst, .src = src, .n = n },
                 fake_hangs(__func__));
}

int hipMemcpyDtoDAsync(void *dst, void *src, size_t n, void *stream)
{
    MAY_FAIL();
    return queue(stream, &(struct work){ .kind = COPY_WITHIN, .dst = dst, .src = src, .n = n },
                 fake_hangs(__func__));
}

int hipMemsetD8Async(void *dst, unsigned char value, size_t n, void *stream)
{
    MAY_FAIL();
    return queue(stream, &(struct work){ .kind = SET_BYTES, .dst = dst, .value = value, .n = n },
                 fake_hangs(__func__));
}

/* ---- graphs ---- */

int hipStreamBeginCapture(void *stream, int mode)
{
    (void)mode;
    MAY_FAIL();
    struct stream *s = stream;
    if (s->record)
        return NOT_IN_CAPTURE;
    s->record = keep(calloc(1, sizeof(*s->record)));
    s->broken = false;
    return s->record ? 0 : OUT_OF_MEMORY;
}

static void graph_free(struct graph *g)
{
    free(g->works);
    drop(g);
}

int hipStreamEndCapture(void *stream, void **graph)
{
    MAY_FAIL();
    struct stream *s = stream;
    struct graph *g = s->record;
    if (!g)
        return NO_CAPTURE;
    s->record = NULL;
    *graph = s->broken ? NULL : g;
    if (s->broken)
        graph_free(g);
    return s->broken ? CAPTURE_BROKEN : 0;
}

int hipGraphInstantiateWithFlags(void **made, void *graph, unsigned long long flags)
{
    (void)flags;
    MAY_FAIL();
    const struct graph *from = graph;
    struct graph *g = calloc(1, sizeof(*g));
    if (!g)
        return OUT_OF_MEMORY;
    for (size_t i = 0; i < from->n; i++)
        if (record(g, &from->works[i]))
            return OUT_OF_MEMORY;
    *made = keep(g);
    return 0;
}

int hipGraphLaunch(void *graph, void *stream)
{
    MAY_FAIL();
    const struct graph *g = graph;
    bool stuck = fake_hangs(__func__);
    for (size_t i = 0; i < g->n; i++) {
        int code = queue(stream, &g->works[i], stuck);
        if (code)
            return code;
    }
    return 0;
}

int hipGraphDestroy(void *graph)
{
    MAY_FAIL();
    graph_free(graph);
    return 0;
}

int hipGraphExecDestroy(void *graph)
{
    MAY_FAIL();
    graph_free(graph);
    return 0;
}

/* ---- events ---- */

struct event {
    struct timespec at;
    struct stream *stream; /* where it was recorded last */
    bool never;            /* what was queued there before it never ends */
};

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    *event = keep(calloc(1, sizeof(struct event)));
    return *event ? 0 : OUT_OF_MEMORY;
}

int hipEventDestroy(void *event)
{
    MAY_FAIL();
    drop(event);
    return 0;
}

int hipEventRecord(void *event, void *stream)
{
    MAY_FAIL();
    struct event *e = event;
    e->stream = stream;
    e->never = is_kept(stream) && e->stream->stuck;
    clock_gettime(CLOCK_MONOTONIC, &e->at);
    return 0;
}

int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    struct event *e = event;
    struct stream *s = stream;
    if (e->never && is_kept(s))
        s->stuck = true;
    if (is_kept(e->stream) && !e->stream->stuck)
        land(e->stream);
    return 0;
}

int hipEventElapsedTime(float *ms, void *from, void *to)
{
    MAY_FAIL();
    const struct timespec *a = &((struct event *)from)->at, *b = &((struct event *)to)->at;
    *ms = (float)(b->tv_sec - a->tv_sec) * 1e3f + (float)(b->tv_nsec - a->tv_nsec) / 1e6f;
    return 0;
}

/* ---- kernels ---- */

struct function {
    struct function *next;
    const struct kernel_row *row;
    enum gpu_storage storage;
    enum kernel_variant variant;
};
struct module {
    char *token;
    struct function *functions;
};

int hipModuleLoadData(void **module, const void *image)
{
    MAY_FAIL();
    char want[128];
    snprintf(want, sizeof(want), FAKE_MAGIC "%s\n", chip());
    if (strncmp(image, want, strlen(want)))
        return NO_BINARY;
    struct module *m = keep(calloc(1, sizeof(*m)));
    *module = m;
    if (m)
        m->token = strdup(image);
    return m && m->token ? 0 : OUT_OF_MEMORY;
}

int hipModuleUnload(void *module)
{
    MAY_FAIL();
    struct module *m = module;
    while (m->functions) {
        struct function *f = m->functions;
        m->functions = f->next;
        free(f);
    }
    free(m->token);
    drop(m);
    return 0;
}

static bool split_name(const char *name, struct function *out)
{
    static const char *const suffixes[] = { "_f32", "_bf16", "_f16" };
    for (int s = 0; s < GPU_STORAGES; s++)
        for (size_t i = 0; i < n_kernel_rows; i++) {
            char whole[128];
            snprintf(whole, sizeof(whole), "%s%s", kernel_rows[i].name, suffixes[s]);
            if (strcmp(whole, name))
                continue;
            *out = (struct function){ .row = &kernel_rows[i], .storage = (enum gpu_storage)s };
            return true;
        }
    return false;
}

int hipModuleGetFunction(void **function, void *module, const char *name)
{
    MAY_FAIL();
    struct module *m = module;
    char line[128];
    snprintf(line, sizeof(line), "\n%s\n", name);
    struct function *f = calloc(1, sizeof(*f));
    if (!f || !strstr(m->token, line) || !split_name(name, f) || fake_names("without", name)) {
        free(f);
        return NOT_FOUND;
    }
    f->variant = strstr(m->token, FAKE_DEBUG) ? KERNEL_DEBUG : KERNEL_PLAIN;
    f->next = m->functions;
    m->functions = f;
    *function = f;
    return 0;
}

/* With the device's memory open. */
static void run_kernel(const struct function *f, const unsigned *grid, const void *args)
{
    kernel_fn *fn = f->row->host[f->storage][f->variant];
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++)
                fn(args, (struct k_place){ (int)x, (int)y, (int)z });
}

int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    (void)extra;
    MAY_FAIL();
    const struct function *f = function;
    struct work w = { .kind = RUN_KERNEL, .function = f, .grid = { gx, gy, gz } };
    if (fake_names("refuse", f->row->name))
        return INVALID_VALUE;
    if (!f->row->host[f->storage][KERNEL_PLAIN] || !gx || !gy || !gz || bx != f->row->group || by != 1 ||
        bz != 1 || shared || f->row->args_size > sizeof(w.args))
        return INVALID_VALUE;
    memcpy(w.args, arguments[0], f->row->args_size);
    fake_launched(f->row->name);
    return queue(stream, &w, fake_hangs(__func__));
}
