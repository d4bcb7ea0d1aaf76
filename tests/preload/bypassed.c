/* SPDX-License-Identifier: Apache-2.0
 * For tests/preload/test_bypass.c: calls past the library to preload and through it again, with slots that the loader fills
 * now or later.  Arguments: the library that switches, what stands for PyTorch.  A copy tells which way calls took: the
 * runtime pins its source, the library does not. */
#include "torch.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };
typedef int steps_fn(int n, void *to, const void *from, size_t bytes);

static void *open_one(const char *path, int how, const char *name)
{
    void *library = dlopen(path, how | RTLD_LOCAL), *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return found;
}

static steps_fn *open_beside(const char *torch, const char *file, int how)
{
    char path[512];
    snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(torch, '/') - torch), torch, file);
    return (steps_fn *)open_one(path, how, "steps");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    int (*find)(const char *, const char *) =
        (int (*)(const char *, const char *))open_one(argv[1], RTLD_NOW, "bypass_find");
    const char *(*slots)(void) = (const char *(*)(void))open_one(argv[1], RTLD_NOW, "bypass_slots");
    void (*on)(void) = (void (*)(void))open_one(argv[1], RTLD_NOW, "bypass_on");
    void (*off)(void) = (void (*)(void))open_one(argv[1], RTLD_NOW, "bypass_off");
    const struct torch *t = open_one(argv[2], RTLD_NOW, "torch");
    steps_fn *lazy = open_beside(argv[2], "libsteps-lazy.so", RTLD_LAZY);
    steps_fn *now = open_beside(argv[2], "libsteps-now.so", RTLD_NOW);
    void *device = NULL, *source = calloc(1, MIB);
    if (t->hipMalloc(&device, MIB))
        return 3;
    printf("%d", find("libnothing", "libamdhip64.so"));
    printf(" %d\n", find("libcairn-preload.so", "libnothing"));
    find("libcairn-preload.so", "libamdhip64.so");
    printf("%s", slots());
    for (int i = 0, n = 1; i < 4; i++, n *= 10) {
        (i % 2 ? on : off)();
        printf("%d", lazy(n, device, source, MIB));
        printf(" %d", now(n, device, source, MIB));
        printf(" pinned %zu\n", t->fake_pinned_for_copy());
    }
    free(source);
    return 0;
}
