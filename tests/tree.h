/* SPDX-License-Identifier: Apache-2.0
 * A throw-away file tree for tests of the readers.
 *
 *     struct tree t;
 *     tree_make(&t);
 *     tree_put(&t, "sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 80\n");
 *     … t.dir …
 *     tree_remove(&t); */
#ifndef CAIRN_TESTS_TREE_H
#define CAIRN_TESTS_TREE_H

#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tree {
    char dir[64];
};

static inline void tree_make(struct tree *t)
{
    strcpy(t->dir, "/tmp/cairn-test-XXXXXX");
    if (!mkdtemp(t->dir)) {
        perror("mkdtemp");
        exit(99);
    }
}

/* The full path, its parent directories made; the buffer is reused by the next call but one. */
static inline char *tree_path(const struct tree *t, const char *relative)
{
    static char buf[2][PATH_MAX];
    static int turn;
    char *path = buf[turn++ % 2];
    snprintf(path, PATH_MAX, "%s/%s", t->dir, relative);
    for (char *p = path + strlen(t->dir) + 1; (p = strchr(p, '/')) != NULL; *p++ = '/') {
        *p = '\0';
        mkdir(path, 0755);
    }
    return path;
}

/* How many files a folder holds, hidden ones apart. */
static inline int tree_count(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static inline void tree_put_bytes(const struct tree *t, const char *relative, const void *bytes, size_t n)
{
    FILE *f = fopen(tree_path(t, relative), "w");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) {
        perror(relative);
        exit(99);
    }
}

static inline void tree_put(const struct tree *t, const char *relative, const char *text)
{
    tree_put_bytes(t, relative, text, strlen(text));
}

static inline void tree_link(const struct tree *t, const char *relative, const char *target)
{
    if (symlink(target, tree_path(t, relative))) {
        perror(relative);
        exit(99);
    }
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st, (void)type, (void)f;
    return remove(path);
}

static inline void tree_remove(struct tree *t)
{
    nftw(t->dir, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
