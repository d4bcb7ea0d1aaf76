/* SPDX-License-Identifier: Apache-2.0
 * Reads Python's pickle format as data.
 *
 * A pickle is a program for a small stack machine that can call anything Python can import.  This machine
 * knows numbers, text, tuples, lists, dicts and sets.  Imports, calls and persistent ids go to the caller's
 * host functions, which answer from a table and refuse the rest.  Nothing is executed.  Opcodes of protocols
 * 2 to 5 are supported as far as torch writes them.
 *
 * Values live in the arena.  A malicious pickle can make one list appear in itself or in many places, but its
 * memory is proportional to its size: at most PICKLE_MAX bytes, and one small value per opcode. */
#ifndef CAIRN_TENSOR_PICKLE_H
#define CAIRN_TENSOR_PICKLE_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

enum { PICKLE_MAX = 64 << 20, PICKLE_PUSH_MAX = 4 << 20 };

enum pickle_kind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_FLOAT,
    PICKLE_TEXT,
    PICKLE_BYTES,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_DICT, /* items are key, value, key, value … in the order of setting */
    PICKLE_SET,
    PICKLE_GLOBAL, /* a name that the host allows: object is the host's */
    PICKLE_OBJECT, /* what the host made of a call or a persistent id: object is the host's */
    PICKLE_OPAQUE, /* harmless and not needed, such as an integer of more than 64 bits */
    PICKLE_KINDS,
};

struct pickle_value {
    enum pickle_kind kind;
    bool open; /* for a walk over the values: it is above us */
    union {
        int64_t i; /* also a bool */
        double f;
        struct {
            const char *s; /* NUL-terminated; may have a NUL inside */
            size_t len;
        } text;
        struct {
            struct pickle_value **items;
            size_t n, capacity;
        } list;
        const void *object;
    };
};

/* Each answer is a new value in the arena, or -1 with a message that names what is refused. */
struct pickle_host {
    void *context;
    int (*global)(void *context, struct arena *a, const char *module, const char *name,
                  struct pickle_value *out, struct cairn_error *err);
    int (*call)(void *context, struct arena *a, const struct pickle_value *function,
                const struct pickle_value *arguments, struct pickle_value *out, struct cairn_error *err);
    int (*persistent)(void *context, struct arena *a, const struct pickle_value *id, struct pickle_value *out,
                      struct cairn_error *err);
};

/* The message has the byte offset at which reading stopped. */
int pickle_read(const void *bytes, size_t n, const struct pickle_host *host, struct arena *a,
                struct pickle_value **out, struct cairn_error *err);

#endif
