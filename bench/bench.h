/* SPDX-License-Identifier: Apache-2.0
 * What the benches share: the clock, and the columns that say where and of what a figure is. */
#ifndef CAIRN_BENCH_H
#define CAIRN_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The CPU's name as one cell of CSV; "unknown" if the kernel does not say. */
static inline const char *bench_machine(void)
{
    static char name[96] = "unknown";
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof(line), f)) {
        char *value = strstr(line, "model name") ? strchr(line, ':') : NULL;
        if (!value)
            continue;
        value[strcspn(value, "\n,")] = '\0';
        snprintf(name, sizeof(name), "%.90s", value + 1 + strspn(value + 1, " "));
        break;
    }
    if (f)
        fclose(f);
    return name;
}

/* Of the working tree, given by `make bench` in CAIRN_COMMIT. */
static inline const char *bench_commit(void)
{
    const char *commit = getenv("CAIRN_COMMIT");
    return commit && *commit ? commit : "unknown";
}

#endif
