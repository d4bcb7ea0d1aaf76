/* SPDX-License-Identifier: Apache-2.0
 * A temporary folder for one test program, and small files in it. */
#ifndef CAIRN_TESTS_UNIT_RUN_SCRATCH_H
#define CAIRN_TESTS_UNIT_RUN_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_dir[64];

static int scratch_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void scratch_remove(void)
{
    if (scratch_dir[0])
        nftw(scratch_dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A path in the folder; the buffer is reused by the next call but seven. */
static inline const char *scratch(const char *name)
{
    static char buf[8][512];
    static int turn;
    if (!scratch_dir[0]) {
        strcpy(scratch_dir, "/tmp/cairn-test-XXXXXX");
        if (!mkdtemp(scratch_dir))
            abort();
        atexit(scratch_remove);
    }
    char *out = buf[turn++ % 8];
    snprintf(out, sizeof(buf[0]), "%s/%s", scratch_dir, name);
    return out;
}

/* A file with this text; the folders above it are made. */
static inline const char *scratch_file(const char *name, const char *text)
{
    const char *path = scratch(name);
    char part[512];
    snprintf(part, sizeof(part), "%s", path);
    for (char *at = strchr(part + strlen(scratch_dir) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(part, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "we");
    if (!f || fputs(text, f) < 0 || fclose(f))
        abort();
    return path;
}

/* A command line out of its words; reused by the next call but three. */
static inline char **scratch_command(const char *text)
{
    static char copies[4][1024], *words[4][32];
    static int turn;
    int mine = turn++ % 4;
    size_t n = 0;
    snprintf(copies[mine], sizeof(copies[0]), "%s", text);
    for (char *w = strtok(copies[mine], " "); w; w = strtok(NULL, " "))
        words[mine][n++] = w;
    words[mine][n] = NULL;
    return words[mine];
}

static inline const char *scratch_read(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    return f ? text : NULL;
}

#endif
