/* SPDX-License-Identifier: Apache-2.0
 * Byte strings by their hash, each once, numbered in the order in which they came. */
#ifndef CAIRN_TEXT_STRING_SET_H
#define CAIRN_TEXT_STRING_SET_H

#include "base/error.h"
#include "base/str.h"
#include <stddef.h>
#include <stdint.h>

struct string_set_entry {
    size_t at; /* in text */
    uint32_t n;
    int64_t count; /* the caller's; 0 at first */
};

/* {0} is an empty set. */
struct string_set {
    struct str text; /* all strings, concatenated */
    struct string_set_entry *list;
    size_t n, cap;
    size_t *slots; /* index in the list plus one; 0: free */
    size_t n_slots;
};

/* The index of a string, which is added if it is new. */
int string_set_put(struct string_set *s, const char *p, size_t n, size_t *index, struct cairn_error *err);
/* The index of a string that is there. */
size_t string_set_find(const struct string_set *s, const char *p, size_t n);
void string_set_release(struct string_set *s);

#endif
