/* SPDX-License-Identifier: Apache-2.0
 * A GPU of either vendor: what HIP and the CUDA driver have in common. */
#include "os/fault.h"
#include "base/clock.h"
#include "base/str.h"
#include "gpu/compile.h"
#include "gpu/device_api.h"
#include "gpu/watch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAST_BYTES = 96 };

struct module {
    void *handle; /* NULL: not loaded */
};

struct device {
    const struct device_api *api;
    void *first_stream;
    struct module *modules; /* [text * GPU_STORAGES + storage] */
    char last[LAST_BYTES];  /* last queued operation, for error messages */
};

enum { STREAM_NON_BLOCKING = 1, TIMED_EVENT = 0 };

static bool is_in(int code, const int *list, size_t n)
{
    for (size_t i = 0; i < n && list[i]; i++)
        if (list[i] == code)
            return true;
    return false;
}

static const char *lost_hint(const struct device_codes *c, int code)
{
    if (code == c->bad_memory)
        return "the device's memory had an uncorrectable error (see `dmesg`); if it "
               "happens again, the card is faulty: do not trust its results";
    if (is_in(code, c->gone, ARRAY_LEN(c->gone)))
        return "the driver was unloaded or dropped the device (see `dmesg`); start again when `cairn gpu` "
               "shows the device without problems";
    return "this process can no longer use the device; `dmesg` may say what happened, and a new process may "
           "be able to use it";
}

int device_fail(struct gpu *g, const struct device_api *api, int code, const char *what,
                struct cairn_error *err)
{
    const char *name = api->error_name(code);
    const char *who = g ? g->info.name : api->prefix;
    const struct device_codes *c = api->codes;
    if (code == c->no_memory)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: %s: out of memory (%s)", who, what, name);
    cairn_fail(err, CAIRN_EDEVICE, "%s: %s: %s (%d)", who, what, name, code);
    if (g && is_in(code, c->lost, ARRAY_LEN(c->lost))) {
        cairn_hint(err, "%s", lost_hint(c, code));
        g->lost = *err;
    }
    return -1;
}

static int check(struct gpu *g, int code, const char *what, struct cairn_error *err)
{
    const struct device *d = g->state;
    return code ? device_fail(g, d->api, code, what, err) : 0;
}

#define WATCHED(who, what, call)    \
    ({                              \
        watch_enter(who, what);     \
        int code_of_call_ = (call); \
        watch_leave();              \
        code_of_call_;              \
    })
/* An injected fault returns a code that no runtime uses. */
#define CALL(g, what, field, ...) \
    (fault_hit() ? -1 : WATCHED((g)->info.name, what, ((struct device *)(g)->state)->api->field(__VA_ARGS__)))
/* For calls that release something: their errors are ignored. */
#define RELEASE(g, what, field, ...) \
    WATCHED((g)->info.name, what, ((struct device *)(g)->state)->api->field(__VA_ARGS__))

static void describe(const struct device_api *api, struct gpu_info *info)
{
    size_t total = 0;
    api->device_name(info->title, sizeof(info->title), info->index);
    api->device_pci(info->pci, sizeof(info->pci), info->index);
    for (char *p = info->pci; *p; p++)
        *p = *p >= 'A' && *p <= 'F' ? (char)(*p + 32) : *p;
    if (!api->device_total(&total, info->index))
        info->total_bytes = total;
    const struct device_codes *c = api->codes;
    int unified = 0;
    api->device_attribute(&info->units, c->units, info->index);
    api->device_attribute(&info->wave, c->wave, info->index);
    api->device_attribute(&unified, c->unified, info->index);
    info->unified = unified > 0;
}

int device_list(struct device_api *api, enum gpu_api kind, struct arena *a, struct gpu_info **infos,
                size_t *n, struct cairn_error *err)
{
    const struct device_codes *c = api->codes;
    int count = 0, code = WATCHED(api->prefix, "begin", api->init(0));
    if (!code)
        code = WATCHED(api->prefix, "count the devices", api->device_count(&count));
    if (is_in(code, c->none, ARRAY_LEN(c->none)))
        return cairn_fail(err, CAIRN_ELACK, "%s finds no device", api->library);
    if (code)
        return device_fail(NULL, api, code, api->library, err);
    for (int i = 0; i < count; i++) {
        struct gpu_info info = { .api = kind, .index = i };
        snprintf(info.name, sizeof(info.name), "%s:%d", api->prefix, i);
        snprintf(info.library, sizeof(info.library), "%s", api->library);
        snprintf(info.source, sizeof(info.source), "%s", api->source);
        snprintf(info.passed_over, sizeof(info.passed_over), "%s", api->passed_over);
        describe(api, &info);
        if (api->describe(&info, err))
            return -1;
        *ARENA_PUSH(a, *infos, *n) = info;
    }
    return 0;
}

static int create_stream(struct gpu *g, void **out, struct cairn_error *err)
{
    const char *what = "create a stream";
    return check(g, CALL(g, what, stream_create, out, STREAM_NON_BLOCKING), what, err);
}

int device_open(struct gpu *g, struct device_api *api, struct cairn_error *err)
{
    struct device *d = calloc(1, sizeof(*d));
    if (d)
        d->modules = calloc(n_kernel_texts * GPU_STORAGES, sizeof(*d->modules));
    g->state = d;
    if (!d || !d->modules)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", g->info.name);
    d->api = api;
    if (api->bind(g, err))
        return -1;
    return create_stream(g, &d->first_stream, err);
}

void device_close(struct gpu *g)
{
    struct device *d = g->state;
    if (!d)
        return;
    /* Cleaning up a lost device may hang or crash: leave it to the end of the process. */
    if (d->api && !g->lost.code) {
        for (size_t i = 0; i < n_kernel_texts * GPU_STORAGES; i++)
            if (d->modules[i].handle)
                RELEASE(g, "unload kernels", module_unload, d->modules[i].handle);
        if (d->first_stream)
            RELEASE(g, "close a stream", stream_destroy, d->first_stream);
        d->api->unbind(g);
    }
    free(d->modules);
    free(d);
}

void *device_queue(struct gpu *g, struct gpu_stream *s)
{
    return s ? (void *)s : ((struct device *)g->state)->first_stream;
}

int device_memory(struct gpu *g, uint64_t *free_bytes, uint64_t *total_bytes, struct cairn_error *err)
{
    size_t f, t;
    const char *what = "query free memory";
    if (check(g, CALL(g, what, memory_info, &f, &t), what, err))
        return -1;
    *free_bytes = f;
    *total_bytes = t;
    return 0;
}

/* Adds the memory that is free to an OOM error. */
static void hint_memory(struct gpu *g, enum gpu_mem kind, struct cairn_error *err)
{
    size_t f, t;
    if (kind == GPU_MEM_STAGING)
        cairn_hint(err,
                   "the host has no more memory that the device can access; end other programs that use it");
    else if (!RELEASE(g, "query free memory", memory_info, &f, &t))
        cairn_hint(
            err,
            "%zu of %zu MiB are free; end other programs that use the device, or use a smaller model or batch",
            f >> 20, t >> 20);
}

int device_alloc(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *err)
{
    char what[64];
    snprintf(what, sizeof(what), "allocate %zu bytes%s", size, kind == GPU_MEM_STAGING ? " of staging" : "");
    size_t n = size ? size : 1;
    void *p = NULL;
    int code = kind == GPU_MEM_STAGING ? CALL(g, what, host_alloc, &p, n, 0) : CALL(g, what, alloc, &p, n);
    if (check(g, code, what, err)) {
        if (err->code == CAIRN_ENOMEM)
            hint_memory(g, kind, err);
        return -1;
    }
    *out = p;
    return 0;
}

void device_free(struct gpu *g, enum gpu_mem kind, void *p)
{
    if (g->lost.code)
        return;
    if (kind == GPU_MEM_STAGING)
        RELEASE(g, "free staging memory", host_free, p);
    else
        RELEASE(g, "free memory", free, p);
}

int device_stream_open(struct gpu *g, struct gpu_stream **out, struct cairn_error *err)
{
    void *s;
    if (create_stream(g, &s, err))
        return -1;
    *out = s;
    return 0;
}

void device_stream_close(struct gpu *g, struct gpu_stream *s)
{
    if (!g->lost.code)
        RELEASE(g, "close a stream", stream_destroy, s);
}

/* Polls until the queue is empty: at first without a pause, since most waits are short. */
static int wait_limited(struct gpu *g, void *queue, int limit_s, struct cairn_error *err)
{
    struct device *d = g->state;
    const char *what = "query the stream";
    double begin = 0;
    int code;
    while ((code = CALL(g, what, stream_query, queue)) == d->api->codes->not_ready) {
        double now = clock_s(), spent = begin > 0 ? now - begin : 0;
        begin = now - spent;
        if (spent > limit_s) {
            cairn_fail(err, CAIRN_EDEVICE, "%s: %s: timed out after %d s", g->info.name,
                       g->last ? g->last : "wait", limit_s);
            cairn_hint(err, "%s", watch_hint);
            g->lost = *err;
            watch_note_hang();
            return -1;
        }
        if (spent > 0.001)
            nanosleep(&(struct timespec){ 0, spent < 0.1 ? 50000 : 1000000 }, NULL);
    }
    return check(g, code, what, err);
}

int device_wait(struct gpu *g, struct gpu_stream *s, struct cairn_error *err)
{
    const char *what = "wait for the device";
    void *queue = device_queue(g, s);
    bool late = watch_limit_s() && wait_limited(g, queue, watch_limit_s(), err);
    int r = late ? -1 : check(g, CALL(g, what, stream_wait, queue), what, err);
    g->wait_failed = g->wait_failed || r;
    return r;
}

int device_event_open(struct gpu *g, struct gpu_event **out, struct cairn_error *err)
{
    void *e;
    const char *what = "create an event";
    if (check(g, CALL(g, what, event_create, &e, TIMED_EVENT), what, err))
        return -1;
    *out = e;
    return 0;
}

void device_event_close(struct gpu *g, struct gpu_event *e)
{
    if (!g->lost.code)
        RELEASE(g, "close an event", event_destroy, e);
}

int device_event_record(struct gpu *g, struct gpu_event *e, struct gpu_stream *s, struct cairn_error *err)
{
    const char *what = "record an event";
    return check(g, CALL(g, what, event_record, e, device_queue(g, s)), what, err);
}

int device_event_wait(struct gpu *g, struct gpu_stream *s, struct gpu_event *e, struct cairn_error *err)
{
    const char *what = "wait for an event";
    return check(g, CALL(g, what, stream_wait_event, device_queue(g, s), e, 0), what, err);
}

int device_event_ms(struct gpu *g, struct gpu_event *from, struct gpu_event *to, float *ms,
                    struct cairn_error *err)
{
    const char *what = "read two events";
    return check(g, CALL(g, what, event_elapsed, ms, from, to), what, err);
}

/* The buffer for the text of the operation queued now. */
static char *last_words(struct gpu *g)
{
    char *words = ((struct device *)g->state)->last;
    g->last = words;
    return words;
}

int device_copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n, int direction,
                struct cairn_error *err)
{
    static const char *const words[] = {
        [GPU_UP] = "to the device", [GPU_DOWN] = "from the device", [GPU_WITHIN] = "on the device"
    };
    void *q = device_queue(g, s), *from = (void *)src;
    char *what = last_words(g);
    snprintf(what, LAST_BYTES, "copy %zu bytes %s", n, words[direction]);
    int code = direction == GPU_UP     ? CALL(g, what, copy_up, dst, from, n, q)
               : direction == GPU_DOWN ? CALL(g, what, copy_down, dst, from, n, q)
                                       : CALL(g, what, copy_within, dst, from, n, q);
    return check(g, code, what, err);
}

int device_clear(struct gpu *g, struct gpu_stream *s, void *dst, size_t n, struct cairn_error *err)
{
    char *what = last_words(g);
    snprintf(what, LAST_BYTES, "clear %zu bytes", n);
    return check(g, CALL(g, what, set_bytes, dst, 0, n, device_queue(g, s)), what, err);
}

static int load_module(struct gpu *g, const struct gpu_kernel *k, struct module **out,
                       struct cairn_error *err)
{
    struct device *d = g->state;
    struct module *m = &d->modules[(size_t)(k->row->text - kernel_texts) * GPU_STORAGES + k->storage];
    *out = m;
    if (m->handle)
        return 0;
    struct compile_job job = { .api = g->info.api,
                               .arch = k->row->text->chip ? k->row->text->chip : g->info.arch,
                               .text = k->row->text,
                               .storage = k->storage,
                               .debug = g->fault,
                               .version = g->info.runtime };
    CLEANUP(mem_free) void *code = NULL;
    size_t size;
    if (compile_kernels(&job, &code, &size, err))
        return -1;
    char what[128];
    snprintf(what, sizeof(what), "load the kernels %s for %s", k->row->text->file, g->info.arch);
    return check(g, CALL(g, what, module_load, &m->handle, code), what, err);
}

int device_kernel(struct gpu *g, struct gpu_kernel *k, struct cairn_error *err)
{
    struct module *m;
    char name[96];
    if (load_module(g, k, &m, err))
        return -1;
    snprintf(name, sizeof(name), "%s_%s", k->row->name, gpu_storage_name(k->storage));
    if (check(g, CALL(g, name, module_function, &k->handle, m->handle, name), name, err))
        return -1;
    const char *what = "ask for shared memory";
    return k->row->shared ? check(g, CALL(g, what, allow_shared, k->handle, k->row->shared), what, err) : 0;
}

int device_launch(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k, struct gpu_grid grid,
                  const void *args, size_t args_size, struct cairn_error *err)
{
    (void)args_size; /* one argument: the struct itself */
    void *arguments[] = { (void *)args };
    char *what = last_words(g);
    snprintf(what, LAST_BYTES, "launch %s_%s", k->row->name, gpu_storage_name(k->storage));
    int code = CALL(g, what, launch, k->handle, grid.x, grid.y, grid.z, k->row->group, 1, 1, k->row->shared,
                    device_queue(g, s), arguments, NULL);
    return check(g, code, what, err);
}

enum { CAPTURE_THIS_THREAD = 1 };

int device_graph_begin(struct gpu *g, struct gpu_stream *s, struct cairn_error *err)
{
    const struct device_api *api = ((struct device *)g->state)->api;
    if (!api->capture_begin || !api->capture_end || !api->graph_make || !api->graph_launch ||
        !api->graph_destroy || !api->graph_end)
        return cairn_fail(err, CAIRN_ELACK, "%s has no graphs: %s is too old", g->info.name, api->library);
    const char *what = "begin a graph";
    return check(g, CALL(g, what, capture_begin, device_queue(g, s), CAPTURE_THIS_THREAD), what, err);
}

int device_graph_end(struct gpu *g, struct gpu_stream *s, struct gpu_graph **out, struct cairn_error *err)
{
    const char *end = "end a graph", *make = "make a graph";
    void *graph = NULL, *made = NULL;
    if (check(g, CALL(g, end, capture_end, device_queue(g, s), &graph), end, err))
        return -1;
    int code = CALL(g, make, graph_make, &made, graph, 0);
    RELEASE(g, make, graph_destroy, graph);
    if (check(g, code, make, err))
        return -1;
    *out = made;
    return 0;
}

int device_graph_launch(struct gpu *g, struct gpu_graph *graph, struct gpu_stream *s, struct cairn_error *err)
{
    char *what = last_words(g);
    snprintf(what, LAST_BYTES, "launch a graph");
    return check(g, CALL(g, what, graph_launch, graph, device_queue(g, s)), what, err);
}

void device_graph_close(struct gpu *g, struct gpu_graph *graph)
{
    if (!g->lost.code)
        RELEASE(g, "close a graph", graph_end, graph);
}
