/* SPDX-License-Identifier: Apache-2.0
 * What the files of the fake HIP share: its calls, the codes they answer, and the device's memory. */
#ifndef CAIRN_TESTS_GPU_FAKE_INSIDE_H
#define CAIRN_TESTS_GPU_FAKE_INSIDE_H

#include "fake.h"
#include "fake_told.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    NO_BINARY = 209,
    NOT_FOUND = 500,
    NOT_READY = 600,
    LOST = 700,
    NOT_IN_CAPTURE = 900,
    CAPTURE_BROKEN = 901,
    NO_CAPTURE = 903
};

static inline uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *at = fake_word(name);
    return at ? strtoull(at, NULL, 0) : otherwise;
}

#define MAY_FAIL()                            \
    do {                                      \
        int answer = fake_injected(__func__); \
        if (answer)                           \
            return answer;                    \
    } while (0)

uint64_t fake_capacity(void);
bool fake_is_device(const void *p, size_t n);
/* Between these two the device's memory can be touched. */
void fake_device_begins(void);
void fake_device_ends(void);

#endif
