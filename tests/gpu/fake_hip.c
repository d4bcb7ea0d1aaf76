/* SPDX-License-Identifier: Apache-2.0
 * A libamdhip64.so.7 without a GPU, for tests.
 *
 * Device memory cannot be touched outside of a call of this library, lies against the end of its pages, and is
 * limited.  A download arrives when its stream is waited for, not before.  A launch runs the kernels for the CPU, by
 * their names in the token that the fake compiler made (fake_hiprtc.c).  FAKE_GFX is the chip; CAIRN_FAKE_HIP has
 * words, separated by commas:
 *
 *     devices=2  memory=BYTES  version=NUMBER
 *     fail=hipMalloc:3:2     the third call of hipMalloc answers 2; after 700 and above so does every later call */
#include "fake.h"
#include "gpu/kernel_rows.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* The words of the list of calls, as cairn sees them. */
#define DEVICE int
#define ATTRIBUTE int
#define CAPTURE_MODE int
#define ADDRESS void *
#define SOURCE void *
#define STREAM void *
#define EVENT void *
#define MODULE void *
#define FUNCTION void *
#define GRAPH void *
#define GRAPH_EXEC void *
#define CALL(field, name, args) int name args;
#include "hip_calls.def"
#undef CALL
int hipSetDevice(int device);
int hipRuntimeGetVersion(int *version);
const char *hipGetErrorName(int code);
int hipGetDevicePropertiesR0600(void *properties, int device);

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_BINARY = 209, NO_DEVICE = 100, NOT_FOUND = 500, LOST = 700 };
enum { MOST_BLOCKS = 4096, PAGE = 4096, ALIGNMENT = 256, ARCH_AT = 1160, PROPERTIES_SIZE = 1472, UNITS = 40 };

/* ---- what is asked for by the environment ---- */

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *at = fake_word(name);
    return at ? strtoull(at, NULL, 0) : otherwise;
}

static const char *chip(void)
{
    const char *told = getenv("FAKE_GFX");
    return told && told[0] ? told : "gfx1151";
}

/* The answer that this call of `name` was told to give; 0: its own. */
static int injected(const char *name)
{
    static int calls, lost;
    const char *at = fake_word("fail");
    size_t n = strlen(name);
    if (lost)
        return lost;
    if (!at || strncmp(at, name, n) || at[n] != ':')
        return 0;
    int nth = 0, code = 0;
    if (sscanf(at + n, ":%d:%d", &nth, &code) != 2 || ++calls != nth)
        return 0;
    lost = code >= LOST ? code : 0;
    return code;
}
#define MAY_FAIL()                       \
    do {                                 \
        int answer = injected(__func__); \
        if (answer)                      \
            return answer;               \
    } while (0)

/* ---- memory ---- */

static struct block {
    char *pages; /* NULL: free */
    size_t pages_size;
    char *start; /* what the caller has */
    size_t size;
} blocks[MOST_BLOCKS];
static uint64_t used;

static uint64_t capacity(void)
{
    return setting("memory", (uint64_t)512 << 20);
}

static void set_access(int protection)
{
    for (size_t i = 0; i < MOST_BLOCKS; i++)
        if (blocks[i].pages)
            mprotect(blocks[i].pages, blocks[i].pages_size, protection);
}

static void device_begins(void)
{
    set_access(PROT_READ | PROT_WRITE);
}

static void device_ends(void)
{
    set_access(PROT_NONE);
}

static bool is_device(const void *p, size_t n)
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
    if (b == blocks + MOST_BLOCKS || used + size > capacity())
        return OUT_OF_MEMORY;
    /* A page on both sides that is never opened. */
    char *whole = mmap(NULL, size + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED)
        return OUT_OF_MEMORY;
    *b = (struct block){ whole + PAGE, size, whole + PAGE + size - room, room };
    used += size;
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
    return posix_memalign(p, PAGE, n) ? OUT_OF_MEMORY : 0;
}

int hipHostFree(void *p)
{
    free(p);
    return 0;
}

int hipMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    MAY_FAIL();
    *free_bytes = capacity() - used;
    *total_bytes = capacity();
    return 0;
}

/* ---- devices ---- */

int hipInit(unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    return setting("devices", 1) ? 0 : NO_DEVICE;
}

int hipGetDeviceCount(int *n)
{
    MAY_FAIL();
    *n = (int)setting("devices", 1);
    return 0;
}

int hipSetDevice(int device)
{
    MAY_FAIL();
    return device < (int)setting("devices", 1) ? 0 : 101;
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
    *value = attribute == 87 ? 32 : attribute == 74 ? 65536 : attribute == 16 ? 0 : UNITS;
    return 0;
}

int hipDeviceTotalMem(size_t *n, int device)
{
    (void)device;
    *n = capacity();
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
struct stream {
    struct download *first, **last;
};

int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    struct stream *s = calloc(1, sizeof(*s));
    if (!s)
        return OUT_OF_MEMORY;
    s->last = &s->first;
    *stream = s;
    return 0;
}

int hipStreamSynchronize(void *stream)
{
    MAY_FAIL();
    struct stream *s = stream;
    while (s->first) {
        struct download *d = s->first;
        memcpy(d->dst, d->bytes, d->n);
        s->first = d->next;
        free(d);
    }
    s->last = &s->first;
    return 0;
}

int hipStreamDestroy(void *stream)
{
    hipStreamSynchronize(stream);
    free(stream);
    return 0;
}

int hipMemcpyHtoDAsync(void *dst, void *src, size_t n, void *stream)
{
    (void)stream;
    MAY_FAIL();
    if (!is_device(dst, n))
        return INVALID_VALUE;
    device_begins();
    memcpy(dst, src, n);
    device_ends();
    return 0;
}

int hipMemcpyDtoHAsync(void *dst, void *src, size_t n, void *stream)
{
    MAY_FAIL();
    struct stream *s = stream;
    struct download *d = malloc(sizeof(*d) + n);
    if (!d || !is_device(src, n)) {
        free(d);
        return INVALID_VALUE;
    }
    d->next = NULL, d->dst = dst, d->n = n;
    device_begins();
    memcpy(d->bytes, src, n);
    device_ends();
    *s->last = d;
    s->last = &d->next;
    return 0;
}

int hipMemcpyDtoDAsync(void *dst, void *src, size_t n, void *stream)
{
    (void)stream;
    MAY_FAIL();
    if (!is_device(dst, n) || !is_device(src, n))
        return INVALID_VALUE;
    device_begins();
    memmove(dst, src, n);
    device_ends();
    return 0;
}

int hipMemsetD8Async(void *dst, unsigned char value, size_t n, void *stream)
{
    (void)stream;
    MAY_FAIL();
    if (!is_device(dst, n))
        return INVALID_VALUE;
    device_begins();
    memset(dst, value, n);
    device_ends();
    return 0;
}

int hipEventCreateWithFlags(void **event, unsigned flags)
{
    (void)flags;
    MAY_FAIL();
    *event = calloc(1, sizeof(struct timespec));
    return *event ? 0 : OUT_OF_MEMORY;
}

int hipEventDestroy(void *event)
{
    free(event);
    return 0;
}

int hipEventRecord(void *event, void *stream)
{
    (void)stream;
    MAY_FAIL();
    clock_gettime(CLOCK_MONOTONIC, event);
    return 0;
}

int hipStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    MAY_FAIL();
    return 0;
}

int hipEventElapsedTime(float *ms, void *from, void *to)
{
    MAY_FAIL();
    const struct timespec *a = from, *b = to;
    *ms = (float)(b->tv_sec - a->tv_sec) * 1e3f + (float)(b->tv_nsec - a->tv_nsec) / 1e6f;
    return 0;
}

/* ---- kernels ---- */

struct function {
    struct function *next;
    const struct kernel_row *row;
    enum gpu_storage storage;
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
    struct module *m = calloc(1, sizeof(*m));
    *module = m;
    if (m)
        m->token = strdup(image);
    return m && m->token ? 0 : OUT_OF_MEMORY;
}

int hipModuleUnload(void *module)
{
    struct module *m = module;
    while (m->functions) {
        struct function *f = m->functions;
        m->functions = f->next;
        free(f);
    }
    free(m->token);
    free(m);
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
    if (!f || !strstr(m->token, line) || !split_name(name, f)) {
        free(f);
        return NOT_FOUND;
    }
    f->next = m->functions;
    m->functions = f;
    *function = f;
    return 0;
}

int hipModuleLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *stream, void **arguments, void **extra)
{
    (void)stream, (void)extra;
    MAY_FAIL();
    const struct function *f = function;
    kernel_fn *fn = f->row->host[f->storage][KERNEL_PLAIN];
    if (!fn || !gx || !gy || !gz || bx != f->row->group || by != 1 || bz != 1 || shared)
        return INVALID_VALUE;
    device_begins();
    for (unsigned z = 0; z < gz; z++)
        for (unsigned y = 0; y < gy; y++)
            for (unsigned x = 0; x < gx; x++)
                fn(arguments[0], (struct k_place){ (int)x, (int)y, (int)z });
    device_ends();
    return 0;
}
