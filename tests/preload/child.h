/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the program child have in common. */
#ifndef CAIRN_TESTS_PRELOAD_CHILD_H
#define CAIRN_TESTS_PRELOAD_CHILD_H

#include "torch.h"

enum { MIB = 1 << 20, BIG = 9 * MIB + 12345 };

extern const struct torch *t;

char *device(size_t n);
char *filled(char *p, size_t n, unsigned seed);
/* A file of such bytes, mapped. */
char *mapped(size_t n, int protection, unsigned seed);
/* Are they there?  Through pinned memory, so that only the copies under test pin. */
int arrived(const char *on_device, size_t n, unsigned seed);

/* As the runtime tells it. */
size_t free_mib(void);

struct word {
    const char *name;
    void (*run)(void);
};
enum { N_COPY_WORDS = 22, N_FORK_WORDS = 5, N_MEMORY_WORDS = 13 };
extern const struct word copy_words[N_COPY_WORDS], fork_words[N_FORK_WORDS], memory_words[N_MEMORY_WORDS];
void do_load(void);

#endif
