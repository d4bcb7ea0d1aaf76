/* SPDX-License-Identifier: Apache-2.0
 * The file in which a process keeps its last GPU calls.  The library inside the process writes it
 * through a mapping, so that it is whole whatever ends the process; the supervisor reads it at any
 * time.
 *
 * A call is written twice: when it begins, and when it has returned.  One that has not returned is
 * where the process is, or where it died. */
#ifndef CAIRN_PRELOAD_RECORD_H
#define CAIRN_PRELOAD_RECORD_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RECORD_MAGIC "cairnrec"
enum {
    RECORD_VERSION = 6,
    RECORD_CALLS = 4096,
    RECORD_KERNELS = 1024,
    RECORD_KERNEL_BYTES = 256,
    RECORD_FUNCTIONS = 96,
    RECORD_FUNCTION_BYTES = 40,
    RECORD_ENV_BYTES = 2048,
    RECORD_REFUSED = 1, /* by the guard: the runtime was not to blame */
};

/* What a file counts time in. Ticks are the CPU's, which are read without a look at memory; the kernel has to
 * trust them. */
enum record_clock { RECORD_NS /* of CLOCK_MONOTONIC */, RECORD_TICKS };

static inline uint64_t record_ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/* One line of the CPU's cache. */
struct record_call {
    _Atomic uint64_t nth; /* from 1; 0: the place is empty, or being written */
    uint64_t start, took; /* of the file's clock */
    uint64_t size;        /* bytes, or threads of a launch */
    int32_t code;
    uint32_t thread;
    uint16_t function; /* its place in the table */
    union {
        uint16_t kernel; /* of a launch: its number; 0: not known */
        uint16_t
            /* of a copy that has one, as the runtime counts them; of an allocation: RECORD_REFUSED or 0 */
            kind;
    };
    _Atomic uint32_t returned;
    uint64_t unused[2];
};

/* What the library did beyond writing down. */
struct record_counts {
    _Atomic uint64_t staged, staged_bytes, stage_failed;
    _Atomic uint64_t retried, retry_failed; /* copies that had failed */
    _Atomic uint64_t told;                  /* answers about memory that were put right */
    _Atomic uint64_t refused, refused_bytes;
};

/* Kernels are numbered in order, and the newest replace the oldest: number % RECORD_KERNELS. A call whose
 * kernel number is no longer in its slot belongs to a dropped kernel. No kernel comes without a call, so no
 * kept call is so old that its number was reused. */
struct record_kernel {
    _Atomic uint32_t number; /* 0: empty, or being written */
    char name[RECORD_KERNEL_BYTES - 4];
};

/* The environment of the process at its first call, which the program may have changed since its start:
 * "NAME=value", or "NAME" if it is not set, each terminated by a 0. Only these names; a value that is too
 * long is omitted with its name. */
#define RECORD_WATCHED                                                                                  \
    "HSA_OVERRIDE_GFX_VERSION", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",  \
        "AMD_SERIALIZE_KERNEL", "AMD_SERIALIZE_COPY", "HIP_LAUNCH_BLOCKING", "AMD_LOG_LEVEL",           \
        "HSA_ENABLE_SDMA", "HSA_ENABLE_INTERRUPT", "HSA_XNACK", "PYTORCH_NO_HIP_MEMORY_CACHING",        \
        "PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",          \
        "PYTORCH_ALLOC_CONF", "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "TORCH_BLAS_PREFER_HIPBLASLT", \
        "ROCBLAS_USE_HIPBLASLT", "MIOPEN_FIND_MODE", "GPU_MAX_HW_QUEUES"

struct record {
    char magic[8];
    uint32_t version, pid;
    uint32_t switches;
    int32_t runtime; /* as the runtime reports its version; 0: not asked */
    struct record_counts counts;
    char function[RECORD_FUNCTIONS][RECORD_FUNCTION_BYTES];
    uint32_t clock;    /* enum record_clock */
    char library[292]; /* the runtime that the calls go to */
    char env[RECORD_ENV_BYTES];
    struct record_call call[RECORD_CALLS];
    struct record_kernel kernel[RECORD_KERNELS];
};
_Static_assert(sizeof(struct record_call) == 64 && offsetof(struct record, call) % 64 == 0,
               "a call is one line");

/* How many calls there were: not counted in the file, whose head would be one more page to touch. */
static inline uint64_t record_n_calls(const struct record *r)
{
    uint64_t n = 0;
    for (size_t i = 0; i < RECORD_CALLS; i++) {
        uint64_t nth = atomic_load_explicit(&r->call[i].nth, memory_order_relaxed);
        n = nth > n ? nth : n;
    }
    return n;
}

/* The name of a launch's kernel; NULL: not known. */
static inline const char *record_kernel(const struct record *r, const struct record_call *launch)
{
    const struct record_kernel *k = &r->kernel[launch->kernel % RECORD_KERNELS];
    return launch->kernel && k->number == launch->kernel ? k->name : NULL;
}

/* The behaviours, as bits of record.switches. */
#define RECORD_SWITCHES(X) \
    X(0, "record")         \
    X(1, "stage")          \
    X(2, "retry")          \
    X(3, "memory")         \
    X(4, "guard")
enum { SWITCH_RECORD = 1, SWITCH_STAGE = 2, SWITCH_RETRY = 4, SWITCH_MEMORY = 8, SWITCH_GUARD = 16 };
enum { SWITCH_ALL = 31 };

/* The bits of one word of a list, 0 for an unknown one. */
static inline unsigned record_switch(const char *word, size_t n)
{
#define AS_BIT(bit, name)                                 \
    if (n == sizeof(name) - 1 && !strncmp(word, name, n)) \
        return 1U << (bit);
    RECORD_SWITCHES(AS_BIT)
#undef AS_BIT
    return n == 3 && !strncmp(word, "all", n) ? SWITCH_ALL : 0;
}

/* Unknown words are ignored. */
static inline unsigned record_switches(const char *list)
{
    unsigned bits = 0;
    while (list && *list) {
        size_t n = strcspn(list, ",");
        bits |= record_switch(list, n);
        list += n + (list[n] == ',');
    }
    return bits;
}

#endif
