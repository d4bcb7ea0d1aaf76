/* SPDX-License-Identifier: Apache-2.0
 * A libamdhip64 that is none, for the library to preload: what its own test asks it beyond HIP.
 *
 * Device memory cannot be touched by the host, pinned memory is copied when the stream is waited for and not before, and
 * what is not pinned is pinned for the copy, which FAKE_HIP can make fail:
 *     FAKE_HIP=memory=N     bytes of device memory (256 MiB)
 *     FAKE_HIP=invalid=N    a copy of at least N bytes from memory that is not pinned is an invalid argument
 *     FAKE_HIP=slow=N       pinning a page takes N microseconds
 *     FAKE_HIP=stall=1      it never ends
 *     FAKE_HIP=meagre=N     one of less than N bytes is out of memory
 *     FAKE_HIP=nopin=1      no pinned memory is given
 *     FAKE_HIP=pinlater=N   the first N times
 *     FAKE_HIP=nofree=N     the first N times that something is given back it is an invalid argument
 *     FAKE_HIP=late=N       an allocation takes N microseconds
 *     FAKE_HIP=spends=1     it begins with less in the file CAIRN_PRELOAD_MEMINFO
 *     FAKE_HIP=free=N       MiB that are said to be free (120 GiB)
 *     FAKE_HIP=noevent=1    an event is of another device
 *     FAKE_HIP=version=N    of the runtime; before 60400000 no copy from memory that is not pinned is read at the call
 * Several are separated by commas.  A handle of memory is what its maker says where the memory should be;
 * a stream is the place of the number of its device. */
#ifndef CAIRN_TESTS_FAKE_RUNTIME_H
#define CAIRN_TESTS_FAKE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

enum { H2D = 1, D2H = 2, D2D = 3 };
enum { INVALID = 1, OUT_OF_MEMORY = 2, NO_RUNTIME = 3, NOT_READY = 600, BAD_CAPTURE = 900 };
enum { RELAXED = 2 };
enum { BAD_MODE = 99 }; /* of a capture, which then does not begin */
struct size3 {
    uint32_t x, y, z;
};
struct extent {
    size_t width, height, depth;
};
struct pitched {
    void *at;
    size_t pitch, width, height;
};
/* What stands for a kernel: the address of one of these is its function. */
struct fake_kernel {
    const char *name;
    int code; /* that its launch returns */
    int hangs;
};

/* Times that memory was pinned for the sake of one copy. */
size_t fake_pinned_for_copy(void);
/* Pins memory without telling anybody, as a library that found its functions itself would. */
void fake_pin_quietly(void *p, size_t n);
/* Who waits for this stream gets the code; 0: waits, until this is called for another one or NULL. */
void fake_break_stream(void *stream, int code);
/* So will it be when the next copy is in the stream. */
void fake_stick_soon(void *stream);
/* Another thread begins to capture this stream as soon as somebody has asked whether one is captured. */
void fake_capture_soon(void *stream);
#endif
