/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include "os/fault.h"
#include "base/parse.h"
#include "base/str.h"
#include "chip/gfx_table.h"
#include "gpu/backend.h"
#include "gpu/pool.h"
#include "gpu/transfer.h"
#include "os/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of trial. */
static const struct gpu_backend *const backends[] = { &gpu_hip, &gpu_cuda, &gpu_host };

const struct kernel_row *kernel_find(const char *name)
{
    for (size_t i = 0; i < n_kernel_rows; i++)
        if (!strcmp(kernel_rows[i].name, name))
            return &kernel_rows[i];
    return NULL;
}

/* Chips with an instruction set of their own end with a letter: "sm_90a" runs on sm_90, on nothing newer. */
static bool is_chip(const struct gpu *g, const char *chip)
{
    size_t n = strlen(g->info.arch);
    return n && !strncmp(chip, g->info.arch, n) && (!chip[n] || !strcmp(chip + n, "a"));
}

/* Kernels for one chip do not look for faults: while debugging, the ones for all chips do their work. */
bool kernel_is_for(const struct kernel_row *row, const struct gpu *g, enum gpu_storage storage)
{
    if (row->mma && (storage == GPU_F32 || !gpu_has_mma(g)))
        return false;
    return !row->text->chip || (!g->fault && !g->chip_kernels_fail && is_chip(g, row->text->chip));
}

void gpu_list(struct arena *a, struct gpu_info **out, size_t *n, char ***reasons, size_t *n_reasons)
{
    *out = NULL, *n = 0, *reasons = NULL, *n_reasons = 0;
    for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
        struct cairn_error err = { 0 };
        if (backends[i]->list(a, out, n, &err))
            *ARENA_PUSH(a, *reasons, *n_reasons) =
                arena_printf(a, "%s%s%s", err.msg, err.hint[0] ? "; " : "", err.hint);
    }
}

/* "hip" stands for its first device. */
static bool is_asked_for(const struct gpu_info *info, const char *name)
{
    const char *colon = strchr(info->name, ':');
    size_t api = colon ? (size_t)(colon - info->name) : strlen(info->name);
    return !strcmp(name, "auto") || !strcmp(name, info->name) ||
           (strlen(name) == api && !strncmp(name, info->name, api));
}

/* That a device might have. */
static bool is_name(const char *name)
{
    static const char *const apis[] = { "hip", "cuda" };
    uint64_t index;
    for (size_t i = 0; i < ARRAY_LEN(apis); i++) {
        size_t n = strlen(apis[i]);
        if (!strncmp(name, apis[i], n) &&
            (!name[n] || (name[n] == ':' && cairn_parse_u64(name + n + 1, &index))))
            return true;
    }
    return !strcmp(name, "auto") || !strcmp(name, "cpu");
}

static int find_device(const char *name, struct gpu_info *out, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(str_release) struct str why = { 0 };
    struct gpu_info *infos;
    char **reasons;
    size_t n, n_reasons;
    if (!strcmp(name, "cpu")) { /* does not ask a driver, which might not answer */
        infos = NULL, n = 0;
        if (gpu_host.list(&a, &infos, &n, err))
            return -1;
        *out = infos[0];
        return 0;
    }
    gpu_list(&a, &infos, &n, &reasons, &n_reasons);
    for (size_t i = 0; i < n; i++)
        if (is_asked_for(&infos[i], name)) {
            *out = infos[i];
            return 0;
        }
    for (size_t i = 0; i < n; i++)
        str_addf(&why, "%s%s", i ? ", " : "available: ", infos[i].name);
    for (size_t i = 0; i < n_reasons; i++)
        str_addf(&why, "; %s", reasons[i]);
    cairn_fail(err, is_name(name) ? CAIRN_ELACK : CAIRN_EUSAGE, "no device %s", name);
    return cairn_hint(err, "%s", why.s);
}

/* The CPU needs no pool; with CAIRN_POOL=direct, memory checkers see each allocation. */
static bool is_direct(const struct gpu_info *info)
{
    const char *value = getenv("CAIRN_POOL");
    return info->api == GPU_API_HOST || (value && !strcmp(value, "direct"));
}

int gpu_open(const char *name, struct gpu **out, struct cairn_error *err)
{
    struct gpu_info info;
    if (find_device(name, &info, err))
        return -1;
    struct gpu *g = calloc(1, sizeof(*g));
    if (g) {
        g->info = info;
        g->kernels = calloc(n_kernel_rows * GPU_STORAGES, sizeof(*g->kernels));
        g->pool = pool_open(g, is_direct(&info));
        g->transfer = transfer_open(g);
    }
    if (!g || !g->kernels || !g->pool || !g->transfer) {
        if (g) {
            transfer_close(g->transfer);
            pool_close(g->pool);
            free(g->kernels);
        }
        free(g);
        return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", info.name);
    }
    for (size_t i = 0; i < ARRAY_LEN(backends); i++)
        if (backends[i]->api == info.api)
            g->backend = backends[i];
    if (g->backend->open(g, err)) {
        gpu_close(g);
        return -1;
    }
    *out = g;
    return 0;
}

void gpu_close(struct gpu *g)
{
    if (!g)
        return;
    transfer_close(g->transfer);
    gpu_free(g, GPU_MEM_DEVICE, g->fault);
    pool_close(g->pool);
    g->backend->close(g);
    for (size_t i = 0; i < n_kernel_rows * GPU_STORAGES; i++)
        free(g->kernels[i]);
    free(g->kernels);
    free(g);
}

const struct gpu_info *gpu_info(const struct gpu *g)
{
    return &g->info;
}

/* HIP and CUDA number their versions differently: 60342134 is 6.3.42134, 13000 is 13.0. */
const char *gpu_version_text(enum gpu_api api, int version, char *buf, size_t size)
{
    if (!version)
        snprintf(buf, size, "-");
    else if (api == GPU_API_HIP)
        snprintf(buf, size, "%d.%d.%d", version / 10000000, version / 100000 % 100, version % 100000);
    else
        snprintf(buf, size, "%d.%d", version / 1000, version / 10 % 100);
    return buf;
}

bool gpu_info_has_mma(const struct gpu_info *info)
{
    static const char *const cuda[] = { "sm_8", "sm_9", "sm_1" };
    if (info->chip)
        return str_eq(info->chip->matrix_core, "WMMA");
    for (size_t i = 0; i < ARRAY_LEN(cuda); i++)
        if (str_starts(info->arch, cuda[i]))
            return true;
    return info->api == GPU_API_HOST;
}

bool gpu_has_mma(const struct gpu *g)
{
    return gpu_info_has_mma(&g->info);
}

const struct cairn_error *gpu_lost(const struct gpu *g)
{
    return g->lost.code ? &g->lost : NULL;
}

bool gpu_is_sound(const struct gpu *g)
{
    return !g->lost.code && !g->wait_failed;
}

/* Calls to a lost device fail at once, with the error of the call that noticed the loss. */
static bool is_lost(struct gpu *g, struct cairn_error *err)
{
    if (g->lost.code)
        *err = g->lost;
    return g->lost.code != CAIRN_OK;
}

int gpu_memory(struct gpu *g, uint64_t *free_bytes, uint64_t *total_bytes, struct cairn_error *err)
{
    return is_lost(g, err) ? -1 : g->backend->memory(g, free_bytes, total_bytes, err);
}

struct gpu_allocated gpu_allocated(const struct gpu *g)
{
    struct pool_stats st;
    pool_stats_get(g->pool, &st);
    return (struct gpu_allocated){ st.allocated_bytes, st.peak_bytes };
}

int gpu_alloc(struct gpu *g, enum gpu_mem kind, size_t size, void **out, struct cairn_error *err)
{
    if (is_lost(g, err))
        return -1;
    return kind == GPU_MEM_DEVICE ? pool_alloc(g->pool, size, POOL_ANY, out, err)
                                  : g->backend->alloc(g, kind, size, out, err);
}

void gpu_free(struct gpu *g, enum gpu_mem kind, void *p)
{
    if (p && kind == GPU_MEM_DEVICE)
        pool_free(g->pool, p, POOL_ANY);
    else if (p)
        g->backend->free(g, kind, p);
}

int gpu_staging_open(struct gpu *g, size_t size, struct gpu_staging *out, struct cairn_error *err)
{
    enum { PAGE = 4096 };
    struct cairn_error why = { 0 };
    *out = (struct gpu_staging){ .pinned = true };
    if (!gpu_alloc(g, GPU_MEM_STAGING, size, &out->at, &why))
        return 0;
    out->pinned = false;
    if (is_lost(g, err))
        return -1;
    out->at = fault_hit() ? NULL : os_aligned(PAGE, (size / PAGE + 1) * PAGE);
    if (!out->at)
        return cairn_fail(err, CAIRN_ENOMEM, "the host has no memory for %zu bytes (%s)", size, why.msg);
    if (g->transfer)
        transfer_tell(g->transfer, TRANSFER_PAGEABLE, &why);
    return 0;
}

/* After a failed wait, queued work may still write there.  Wait once more; if that fails too, the memory is
 * not freed until the process ends. */
static bool may_be_written(struct gpu *g)
{
    return g->wait_failed && !g->lost.code && gpu_wait(g, NULL, &(struct cairn_error){ 0 });
}

void gpu_staging_close(struct gpu *g, struct gpu_staging *s)
{
    if (s->at && !may_be_written(g)) {
        if (s->pinned)
            gpu_free(g, GPU_MEM_STAGING, s->at);
        else
            os_free_aligned(s->at);
    }
    *s = (struct gpu_staging){ 0 };
}

struct pool *gpu_pool(struct gpu *g)
{
    return g->pool;
}

struct transfer *gpu_transfer(struct gpu *g)
{
    return g->transfer;
}

int gpu_stream_open(struct gpu *g, struct gpu_stream **out, struct cairn_error *err)
{
    struct gpu_stream *s;
    if (is_lost(g, err) || g->backend->stream_open(g, &s, err))
        return -1;
    if (pool_add_stream(g->pool, s, err)) {
        g->backend->stream_close(g, s);
        return -1;
    }
    *out = s;
    return 0;
}

void gpu_stream_close(struct gpu *g, struct gpu_stream *s)
{
    if (!s)
        return;
    pool_remove_stream(g->pool, s);
    g->backend->stream_close(g, s);
}

int gpu_wait(struct gpu *g, struct gpu_stream *s, struct cairn_error *err)
{
    if (is_lost(g, err) || g->backend->wait(g, s, err))
        return -1;
    pool_note_wait(g->pool, s);
    return 0;
}

int gpu_event_open(struct gpu *g, struct gpu_event **out, struct cairn_error *err)
{
    return is_lost(g, err) ? -1 : g->backend->event_open(g, out, err);
}

void gpu_event_close(struct gpu *g, struct gpu_event *e)
{
    if (e)
        g->backend->event_close(g, e);
}

int gpu_event_record(struct gpu *g, struct gpu_event *e, struct gpu_stream *s, struct cairn_error *err)
{
    return is_lost(g, err) ? -1 : g->backend->event_record(g, e, s, err);
}

int gpu_event_wait(struct gpu *g, struct gpu_stream *s, struct gpu_event *e, struct cairn_error *err)
{
    return is_lost(g, err) ? -1 : g->backend->event_wait(g, s, e, err);
}

int gpu_event_ms(struct gpu *g, struct gpu_event *from, struct gpu_event *to, float *ms,
                 struct cairn_error *err)
{
    return is_lost(g, err) ? -1 : g->backend->event_ms(g, from, to, ms, err);
}

static int copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n, int direction,
                struct cairn_error *err)
{
    if (is_lost(g, err))
        return -1;
    return n ? g->backend->copy(g, s, dst, src, n, direction, err) : 0;
}

int gpu_upload(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n,
               struct cairn_error *err)
{
    return copy(g, s, dst, src, n, GPU_UP, err);
}

int gpu_download(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n,
                 struct cairn_error *err)
{
    return copy(g, s, dst, src, n, GPU_DOWN, err);
}

int gpu_copy(struct gpu *g, struct gpu_stream *s, void *dst, const void *src, size_t n,
             struct cairn_error *err)
{
    return copy(g, s, dst, src, n, GPU_WITHIN, err);
}

int gpu_clear(struct gpu *g, struct gpu_stream *s, void *dst, size_t n, struct cairn_error *err)
{
    if (is_lost(g, err))
        return -1;
    return n ? g->backend->clear(g, s, dst, n, err) : 0;
}

int gpu_kernel(struct gpu *g, const char *name, enum gpu_storage storage, const struct gpu_kernel **out,
               struct cairn_error *err)
{
    const struct kernel_row *row = kernel_find(name);
    if (!row)
        return cairn_fail(err, CAIRN_EUSAGE, "no kernel named %s", name);
    if (!kernel_is_for(row, g, storage))
        return cairn_fail(err, CAIRN_EUSAGE, "%s is for 16-bit tensors on %s, not for %s on %s", name,
                          row->text->chip ? row->text->chip : "chips with matrix cores",
                          gpu_storage_name(storage), g->info.arch);
    struct gpu_kernel **slot = &g->kernels[(size_t)(row - kernel_rows) * GPU_STORAGES + storage];
    if (!*slot) {
        if (is_lost(g, err))
            return -1;
        struct gpu_kernel *k = calloc(1, sizeof(*k));
        if (!k)
            return cairn_fail(err, CAIRN_ENOMEM, "%s: no memory", name);
        *k = (struct gpu_kernel){ .row = row, .storage = storage };
        if (g->backend->kernel(g, k, err)) {
            free(k);
            return -1;
        }
        *slot = k;
    }
    *out = *slot;
    return 0;
}

int gpu_set_debug(struct gpu *g, struct cairn_error *err)
{
    void *p;
    pool_set_direct(g->pool);
    if (gpu_alloc(g, GPU_MEM_DEVICE, sizeof(*g->fault), &p, err))
        return -1;
    g->fault = p;
    return gpu_clear(g, NULL, p, sizeof(*g->fault), err);
}

bool gpu_is_debug(const struct gpu *g)
{
    return g->fault != NULL;
}

const struct k_fault *gpu_fault(const struct gpu *g)
{
    return &g->last_fault;
}

/* The index of the faulting element in its array.  The array is the argument with the highest address below
 * it. */
static unsigned long long number_of(const struct k_fault *f, const char *args, size_t args_size)
{
    uint64_t begin = 0, word;
    for (size_t at = 0; at + sizeof(word) <= args_size; at += sizeof(word)) {
        memcpy(&word, args + at, sizeof(word));
        if (word <= f->place && word > begin)
            begin = word;
    }
    return (f->place - begin) / f->bytes;
}

static void describe_fault(const struct k_fault *f, const char *args, size_t args_size, char *text,
                           size_t size)
{
    unsigned long long number = f->kind == K_FAULT_INDEX ? 0 : number_of(f, args, args_size);
    if (f->kind == K_FAULT_INDEX)
        snprintf(text, size, "index %lld is out of range (0 to %lld)", (long long)f->index,
                 (long long)f->limit - 1);
    else if (f->kind == K_FAULT_READ)
        snprintf(text, size, "reads NaN: element %llu of the array", number);
    else
        snprintf(text, size, "writes %s: element %llu of the array", f->value != f->value ? "NaN" : "Inf",
                 number);
}

static int check_fault(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k, const char *args,
                       size_t args_size, struct cairn_error *err)
{
    struct k_fault *f = &g->last_fault;
    char what[128];
    if (gpu_download(g, s, f, g->fault, sizeof(*f), err) || gpu_wait(g, s, err))
        return -1;
    if (!f->claimed)
        return 0;
    describe_fault(f, args, args_size, what, sizeof(what));
    return cairn_fail(err, CAIRN_EFORMAT, "%s: kernel %s (%s.k:%u): %s; group %u, %u, %u, item %u",
                      g->info.name, k->row->name, k->row->text->file, f->line, what, f->group[0], f->group[1],
                      f->group[2], f->item);
}

/* The first field of every argument struct is the place for faults. */
enum { ARGS_MOST = 1024 };
static int launch_checked(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k,
                          struct gpu_grid grid, const void *args, size_t args_size, struct cairn_error *err)
{
    _Alignas(16) char copy_of_args[ARGS_MOST];
    g->last_fault = (struct k_fault){ 0 };
    memcpy(copy_of_args, args, args_size);
    memcpy(copy_of_args, &g->fault, sizeof(g->fault));
    if (gpu_clear(g, s, g->fault, sizeof(*g->fault), err) ||
        g->backend->launch(g, s, k, grid, copy_of_args, args_size, err))
        return -1;
    return check_fault(g, s, k, copy_of_args, args_size, err);
}

const char *gpu_storage_name(enum gpu_storage s)
{
    static const char *const names[GPU_STORAGES] = {
        [GPU_F32] = "f32", [GPU_BF16] = "bf16", [GPU_F16] = "f16"
    };
    return names[s];
}

const char *gpu_last(const struct gpu *g)
{
    return g->last && g->last[0] ? g->last : NULL;
}

int gpu_launch(struct gpu *g, struct gpu_stream *s, const struct gpu_kernel *k, struct gpu_grid grid,
               const void *args, size_t args_size, struct cairn_error *err)
{
    if (is_lost(g, err))
        return -1;
    if (args_size != k->row->args_size || args_size > ARGS_MOST)
        return cairn_fail(err, CAIRN_EUSAGE, "%s has %zu bytes of arguments, not %zu", k->row->name,
                          k->row->args_size, args_size);
    grid.x += !grid.x, grid.y += !grid.y, grid.z += !grid.z;
    return g->fault ? launch_checked(g, s, k, grid, args, args_size, err)
                    : g->backend->launch(g, s, k, grid, args, args_size, err);
}

int gpu_graph_begin(struct gpu *g, struct gpu_stream *s, struct cairn_error *err)
{
    if (is_lost(g, err))
        return -1;
    if (!g->backend->graph_begin || g->fault)
        return cairn_fail(err, CAIRN_ELACK, "%s has no graphs%s", g->info.name,
                          g->fault ? " while debugging" : "");
    return g->backend->graph_begin(g, s, err);
}

int gpu_graph_end(struct gpu *g, struct gpu_stream *s, struct gpu_graph **out, struct cairn_error *err)
{
    return is_lost(g, err) ? -1 : g->backend->graph_end(g, s, out, err);
}

int gpu_graph_launch(struct gpu *g, struct gpu_graph *graph, struct gpu_stream *s, struct cairn_error *err)
{
    return is_lost(g, err) ? -1 : g->backend->graph_launch(g, graph, s, err);
}

void gpu_graph_close(struct gpu *g, struct gpu_graph *graph)
{
    if (graph)
        g->backend->graph_close(g, graph);
}
