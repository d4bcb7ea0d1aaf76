/* SPDX-License-Identifier: Apache-2.0 */
#include "run/gpu_calls.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "preload/record.h"
#include "os/file.h"
#include "os/process.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JSON_CALLS = 16, MANY_FILES = 16, OUT_OF_MEMORY = 2 };

/* These values are the same in all versions of HIP. */
static const struct {
    int code;
    const char *name;
} errors[] = {
    { 1, "hipErrorInvalidValue" },
    { 2, "hipErrorOutOfMemory" },
    { 3, "hipErrorNotInitialized" },
    { 98, "hipErrorInvalidDeviceFunction" },
    { 100, "hipErrorNoDevice" },
    { 101, "hipErrorInvalidDevice" },
    { 200, "hipErrorInvalidImage" },
    { 209, "hipErrorNoBinaryForGpu" },
    { 400, "hipErrorInvalidHandle" },
    { 700, "hipErrorIllegalAddress" },
    { 701, "hipErrorLaunchOutOfResources" },
    { 702, "hipErrorLaunchTimeOut" },
    { 710, "hipErrorAssert" },
    { 719, "hipErrorLaunchFailure" },
    { 801, "hipErrorNotSupported" },
    { 900, "hipErrorStreamCaptureUnsupported" },
    { 999, "hipErrorUnknown" },
};

static const char *error_name(int code)
{
    for (size_t i = 0; i < ARRAY_LEN(errors); i++)
        if (errors[i].code == code)
            return errors[i].name;
    return NULL;
}

/* ---- reading ---- */

/* The process may be writing; trust nothing in the file. */
static struct record *read_file(const char *path)
{
    CLEANUP(fd_close) int fd = os_open(path, OS_READ | OS_NO_LINK | OS_NO_WAIT);
    struct record *r = fd < 0 ? NULL : malloc(sizeof(*r));
    if (!r)
        return NULL;
    if (os_read_at(fd, r, sizeof(*r), 0) == (ssize_t)sizeof(*r) &&
        !memcmp(r->magic, RECORD_MAGIC, sizeof(r->magic)) && r->version == RECORD_VERSION)
        return r;
    free(r);
    return NULL;
}

const char *const *gpu_calls_environment(const char *file, int pid, struct arena *a)
{
    CLEANUP(mem_free) struct record *r = file ? read_file(arena_printf(a, "%s.%d", file, pid)) : NULL;
    const char **out = NULL;
    size_t n = 0;
    if (!r)
        return NULL;
    r->env[sizeof(r->env) - 1] = '\0';
    for (const char *at = r->env; *at; at += strlen(at) + 1)
        *ARENA_PUSH(a, out, n) = arena_strdup(a, at);
    *ARENA_PUSH(a, out, n) = NULL;
    return out;
}

static const char *text_of(const char *text, size_t width, struct arena *a)
{
    return arena_strndup(a, text, strnlen(text, width));
}

/* The time by one of the clocks. */
struct moment {
    uint64_t now;
    double per_s;
};

/* Both clocks at the same time: the closest of several tries, since the thread may be preempted. */
static uint64_t ticks_at(double *s)
{
    uint64_t best = UINT64_MAX, at = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t begin = record_ticks();
        double between_s = clock_s();
        uint64_t took = record_ticks() - begin;
        if (took >= best)
            continue;
        best = took;
        at = begin + took / 2;
        *s = between_s;
    }
    return at;
}

/* The tick rate is unknown, so it is measured once, within 10 ms. */
static double ticks_per_s(void)
{
    static double known;
    double begin_s = 0, end_s = 0;
    if (known)
        return known;
    uint64_t begin = ticks_at(&begin_s);
    usleep(10000);
    uint64_t n = ticks_at(&end_s) - begin;
    return known = (double)n / (end_s - begin_s);
}

static struct moment moment_of(const struct record *r)
{
    double per_s = r->clock == RECORD_TICKS ? ticks_per_s() : 1e9;
    return (struct moment){ r->clock == RECORD_TICKS ? record_ticks() : (uint64_t)(clock_s() * 1e9), per_s };
}

/* CPUs differ by a few ticks. */
static double seconds(uint64_t n, const struct moment *m)
{
    return (int64_t)n > 0 ? (double)n / m->per_s : 0;
}

static bool is_launch(const char *function)
{
    return strstr(function, "Launch") && strstr(function, "Kernel");
}

static bool takes_memory(const char *function)
{
    return (strstr(function, "Malloc") && !strstr(function, "Host")) || strstr(function, "MemCreate");
}

static struct gpu_call call_of(const struct record *r, const struct record_call *e, const struct moment *m,
                               struct arena *a)
{
    double begun_s = seconds(m->now - e->start, m);
    const char *function = "?", *kernel = NULL;
    if (e->function < RECORD_FUNCTIONS)
        function = text_of(r->function[e->function], RECORD_FUNCTION_BYTES, a);
    if (is_launch(function))
        kernel = record_kernel(r, e);
    return (struct gpu_call){
        .function = function,
        .kernel = kernel ? text_of(kernel, sizeof(r->kernel[0].name), a) : NULL,
        .size = e->size,
        .kind = strstr(function, "Memcpy") ? e->kind : 0,
        .refused = takes_memory(function) && e->kind == RECORD_REFUSED,
        .code = e->code,
        .returned = e->returned,
        .took_s = e->returned ? seconds(e->took, m) : begun_s,
        .begun_s = begun_s,
        .thread = e->thread,
    };
}

static void add_calls(const struct record *r, struct gpu_call_process *p, struct arena *a)
{
    uint64_t last = p->n_calls;
    const struct moment m = moment_of(r);
    for (uint64_t back = RECORD_CALLS; back-- > 0;) {
        if (back >= last)
            continue;
        const struct record_call *e = &r->call[(last - back) % RECORD_CALLS];
        if (e->nth == last - back && (back < GPU_CALLS_MOST || (!e->returned && p->n < GPU_CALLS_MOST)))
            *ARENA_PUSH(a, p->call, p->n) = call_of(r, e, &m, a);
    }
}

/* Whether the guard, not the runtime, refused the last failed allocation of the process. */
static bool is_guards_doing(const struct record *r, uint64_t n_calls)
{
    char function[RECORD_FUNCTION_BYTES + 1] = "";
    for (uint64_t nth = n_calls; nth > 0 && n_calls - nth < RECORD_CALLS; nth--) {
        const struct record_call *e = &r->call[nth % RECORD_CALLS];
        if (e->nth != nth || !e->returned || e->code != OUT_OF_MEMORY || e->function >= RECORD_FUNCTIONS)
            continue;
        memcpy(function, r->function[e->function], RECORD_FUNCTION_BYTES);
        if (takes_memory(function))
            return e->kind == RECORD_REFUSED;
    }
    return true; /* no longer in the ring, so long ago */
}

static void add_process(const char *path, struct arena *a, struct gpu_calls *out)
{
    CLEANUP(mem_free) struct record *r = read_file(path);
    uint64_t n_calls = r ? record_n_calls(r) : 0;
    if (!n_calls)
        return;
    struct gpu_call_process p = {
        .pid = (int)r->pid,
        .library = text_of(r->library, sizeof(r->library), a),
        .n_calls = n_calls,
        .staged = r->counts.staged,
        .staged_bytes = r->counts.staged_bytes,
        .retried = r->counts.retried,
        .told = r->counts.told,
        .refused = r->counts.refused,
        .refused_bytes = r->counts.refused_bytes,
    };
    if (is_guards_doing(r, n_calls)) {
        out->refused += p.refused;
        out->refused_bytes += p.refused_bytes;
    }
    add_calls(r, &p, a);
    if (p.n)
        *ARENA_PUSH(a, out->process, out->n) = p;
}

enum { COPY_TO_DEVICE = 1, LEAST_COPY = 64 << 10 };

bool gpu_calls_is_copy(const struct gpu_call *c)
{
    return strstr(c->function, "Memcpy") && c->size >= LEAST_COPY && c->kind == COPY_TO_DEVICE;
}

static bool is_wait(const struct gpu_call *c)
{
    return strstr(c->function, "Synchronize") || (strstr(c->function, "Memcpy") && !gpu_calls_is_copy(c));
}

/* How well a process explains the failure: a failed or unfinished call more than a wait. */
static int weight_of(const struct gpu_call_process *p)
{
    int most = 0;
    for (size_t k = 0; k < p->n; k++) {
        const struct gpu_call *c = &p->call[k];
        int weight = c->returned ? 2 * (c->code != 0) : is_wait(c) ? 1 : 2;
        most = weight > most ? weight : most;
    }
    return most;
}

static int by_weight(const void *x, const void *y)
{
    const struct gpu_call_process *p = x, *q = y;
    double a = p->call[p->n - 1].begun_s, b = q->call[q->n - 1].begun_s;
    int difference = weight_of(q) - weight_of(p);
    return difference ? difference : (a > b) - (a < b);
}

static void each_file(const char *prefix, void (*visit)(const char *path, void *context), void *context)
{
    char pattern[512];
    glob_t found;
    if (!prefix || (size_t)snprintf(pattern, sizeof(pattern), "%s.*", prefix) >= sizeof(pattern))
        return;
    if (!glob(pattern, GLOB_NOSORT, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc; i++)
            visit(found.gl_pathv[i], context);
    globfree(&found);
}

struct reading {
    struct arena *a;
    struct gpu_calls *out;
};

static void visit_read(const char *path, void *context)
{
    struct reading *r = context;
    add_process(path, r->a, r->out);
}

static void visit_remove(const char *path, void *context)
{
    (void)context;
    os_remove(path);
}

void gpu_calls_read(const char *prefix, struct arena *a, struct gpu_calls *out)
{
    *out = (struct gpu_calls){ 0 };
    each_file(prefix, visit_read, &(struct reading){ a, out });
    if (out->n)
        qsort(out->process, out->n, sizeof(*out->process), by_weight);
}

void gpu_calls_remove(const char *prefix)
{
    each_file(prefix, visit_remove, NULL);
}

/* ---- messages ---- */

/* A process that waits for the GPU is not the cause, but may be the only one. */
const struct gpu_call *gpu_calls_culprit(const struct gpu_calls *c, bool stood_still)
{
    const struct gpu_call *failed = NULL, *inside = NULL;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = c->process[i].n; k-- > 0;) {
            const struct gpu_call *call = &c->process[i].call[k];
            if (!call->returned && (!inside || (is_wait(inside) && !is_wait(call))))
                inside = call;
            if (call->returned && call->code && !failed)
                failed = call;
        }
    bool explains = inside && stood_still && !is_wait(inside);
    return failed && !explains ? failed : inside;
}

static bool has_nothing_to_tell(const char *path)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_calls c = { 0 };
    add_process(path, &a, &c);
    return !gpu_calls_culprit(&c, true) && !c.refused;
}

static void visit_count(const char *path, void *context)
{
    (void)path;
    ++*(size_t *)context;
}

static void visit_tidy(const char *path, void *context)
{
    int pid = atoi(strrchr(path, '.') + 1);
    (void)context;
    if (pid > 0 && !os_is_alive(pid) && has_nothing_to_tell(path))
        os_remove(path);
}

void gpu_calls_tidy(const char *prefix)
{
    size_t n = 0;
    each_file(prefix, visit_count, &n);
    if (n > MANY_FILES)
        each_file(prefix, visit_tidy, NULL);
}

const struct gpu_call *gpu_calls_last_kernel(const struct gpu_calls *c, const struct gpu_call *culprit)
{
    const struct gpu_call_process *p = c->process;
    for (size_t i = 0; i < c->n && culprit; i++)
        if (culprit >= c->process[i].call && culprit < c->process[i].call + c->process[i].n)
            p = &c->process[i];
    for (size_t k = c->n ? p->n : 0; k-- > 0;)
        if (is_launch(p->call[k].function))
            return p->call[k].kernel ? &p->call[k] : NULL;
    return NULL;
}

/* The names at the front of "_ZN2at6native13reduce_kernelI…"; template arguments follow. */
const char *gpu_calls_readable(const char *kernel, struct arena *a)
{
    CLEANUP(str_release) struct str text = { 0 };
    const char *at = kernel;
    if (strncmp(at, "_Z", 2))
        return kernel;
    at += 2 + (at[2] == 'N');
    for (char *end; *at >= '1' && *at <= '9'; at = end) {
        unsigned long n = strtoul(at, &end, 10);
        if (n > strlen(end))
            break;
        bool hidden = !strncmp(end, "_GLOBAL__N_", 11);
        str_addf(&text, "%s%.*s", text.len ? "::" : "", hidden ? 11 : (int)n, hidden ? "(anonymous)" : end);
        end += n;
        if (kernel[2] != 'N')
            break;
    }
    return text.len ? arena_strdup(a, text.s) : kernel;
}

static void add_size(struct str *s, const struct gpu_call *c)
{
    if (is_launch(c->function))
        str_addf(s, " of %llu threads", (unsigned long long)c->size);
    else if (c->size >= 1 << 20)
        str_addf(s, " of %.1f MiB", (double)c->size / (1 << 20));
    else if (c->size)
        str_addf(s, " of %llu bytes", (unsigned long long)c->size);
}

static void add_time(struct str *s, double seconds)
{
    if (seconds >= 1)
        str_addf(s, "%.1f s", seconds);
    else if (seconds >= 1e-3)
        str_addf(s, "%.1f ms", seconds * 1e3);
    else
        str_addf(s, "%.1f us", seconds * 1e6);
}

static void add_call(struct str *s, const struct gpu_call *c, struct arena *a)
{
    str_add(s, c->function);
    if (c->kernel)
        str_addf(s, " %s", gpu_calls_readable(c->kernel, a));
    add_size(s, c);
    if (!c->returned) {
        str_add(s, ", never returned, called ");
        add_time(s, c->begun_s);
        str_add(s, " ago");
        return;
    }
    const char *name = error_name(c->code);
    if (c->code)
        str_addf(s, ": %s%s%d%s%s", name ? name : "error ", name ? " (" : "", c->code, name ? ")" : "",
                 c->refused ? " by the guard" : "");
    str_add(s, ", took ");
    add_time(s, c->took_s);
}

const char *gpu_calls_say(const struct gpu_call *c, struct arena *a)
{
    CLEANUP(str_release) struct str text = { 0 };
    add_call(&text, c, a);
    return arena_strdup(a, text.s);
}

static void add_counts(struct str *out, const struct gpu_call_process *p)
{
    if (p->staged)
        str_addf(out, "    %llu copies (%.1f MiB) staged through pinned memory\n",
                 (unsigned long long)p->staged, (double)p->staged_bytes / (1 << 20));
    if (p->retried)
        str_addf(out, "    %llu failed copies retried\n", (unsigned long long)p->retried);
    if (p->told)
        str_addf(out, "    %llu memory queries corrected\n", (unsigned long long)p->told);
    if (p->refused)
        str_addf(out, "    %llu allocations (%.1f MiB) refused to keep memory for the host\n",
                 (unsigned long long)p->refused, (double)p->refused_bytes / (1 << 20));
}

static size_t n_told(const struct gpu_calls *c)
{
    return c->n < GPU_CALLS_MOST_PROCESSES ? c->n : GPU_CALLS_MOST_PROCESSES;
}

void gpu_calls_text(const struct gpu_calls *c, struct str *out)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < n_told(c); i++) {
        const struct gpu_call_process *p = &c->process[i];
        str_addf(out, "=== last GPU calls of process %d, %llu in total (%s)\n", p->pid,
                 (unsigned long long)p->n_calls, p->library[0] ? p->library : "runtime unknown");
        add_counts(out, p);
        for (size_t k = 0; k < p->n; k++) {
            str_addf(out, "    -");
            add_time(out, p->call[k].begun_s);
            str_addf(out, " thread %u: ", p->call[k].thread);
            add_call(out, &p->call[k], &a);
            str_add(out, "\n");
        }
    }
}

static void add_json_call(struct json *list, const struct gpu_call *c, struct arena *a)
{
    struct json *v = json_add_object(list, NULL);
    json_add_text(v, "call", c->function);
    json_add_text(v, "kernel", c->kernel ? gpu_calls_readable(c->kernel, a) : NULL);
    json_add_text(v, "kernel_symbol", c->kernel);
    json_add_int(v, is_launch(c->function) ? "threads" : "size_bytes", (int64_t)c->size);
    if (c->returned)
        json_add_int(v, "code", c->code);
    else
        json_add_null(v, "code");
    json_add_text(v, "error", c->returned ? error_name(c->code) : NULL);
    json_add_real(v, "took_ms", c->took_s * 1e3);
    json_add_real(v, "begun_ms_ago", c->begun_s * 1e3);
    json_add_int(v, "thread", c->thread);
}

void gpu_calls_json(const struct gpu_calls *c, struct json *array)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < n_told(c); i++) {
        const struct gpu_call_process *p = &c->process[i];
        struct json *v = json_add_object(array, NULL);
        json_add_int(v, "pid", p->pid);
        json_add_text(v, "library", p->library);
        json_add_int(v, "calls", (int64_t)p->n_calls);
        json_add_int(v, "staged", (int64_t)p->staged);
        json_add_int(v, "staged_bytes", (int64_t)p->staged_bytes);
        json_add_int(v, "retried", (int64_t)p->retried);
        json_add_int(v, "told", (int64_t)p->told);
        json_add_int(v, "refused", (int64_t)p->refused);
        json_add_int(v, "refused_bytes", (int64_t)p->refused_bytes);
        struct json *last = json_add_array(v, "last");
        for (size_t k = p->n > JSON_CALLS ? p->n - JSON_CALLS : 0; k < p->n; k++)
            add_json_call(last, &p->call[k], &a);
    }
}
