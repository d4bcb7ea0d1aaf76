/* SPDX-License-Identifier: Apache-2.0
 * Trees of files for tests of the readers: a new directory below $TMPDIR, filled by hand or by mktree.py, and
 * removed at the end of the scope.
 *
 *     CLEANUP(machine_release) struct machine t = machine_new();
 *     machine_put(&t, "venv/pyvenv.cfg", "home = /usr/bin\n");
 *     machine_make(&t, "--torch 2.9.1+rocm6.4 --hip 6.4.43484"); */
#ifndef CAIRN_TESTS_MACHINE_H
#define CAIRN_TESTS_MACHINE_H

#include "base/cleanup.h"
#include "check.h"
#include "host/facts.h"
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

struct machine {
    char path[256];
    struct facts f;
};

static inline struct machine machine_new(void)
{
    struct machine t = { .f.root.fd = -1 };
    const char *tmp = getenv("TMPDIR");
    snprintf(t.path, sizeof(t.path), "%s/cairn-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(t.path))
        abort();
    return t;
}

static inline int machine_remove_(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void machine_release(struct machine *t)
{
    facts_release(&t->f);
    if (*t->path)
        nftw(t->path, machine_remove_, 16, FTW_DEPTH | FTW_PHYS);
}

/* "<tree>/<relative>"; the buffer is reused by the next call but three. */
static inline const char *machine_path(const struct machine *t, const char *relative)
{
    static char buf[4][1024];
    static int turn;
    char *out = buf[turn++ % 4];
    snprintf(out, sizeof(buf[0]), "%s/%s", t->path, relative);
    return out;
}

static inline void machine_parents_(const struct machine *t, const char *relative)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s/%s", t->path, relative);
    for (char *p = path + strlen(t->path) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        mkdir(path, 0777);
        *p = '/';
    }
}

static inline void machine_put(const struct machine *t, const char *relative, const char *text)
{
    machine_parents_(t, relative);
    FILE *f = fopen(machine_path(t, relative), "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        abort();
}

static inline void machine_program(const struct machine *t, const char *relative, const char *text)
{
    machine_put(t, relative, text);
    if (chmod(machine_path(t, relative), 0755))
        abort();
}

static inline void machine_link(const struct machine *t, const char *relative, const char *to)
{
    machine_parents_(t, relative);
    if (symlink(to, machine_path(t, relative)))
        abort();
}

/* Runs mktree.py on the tree with these options. */
static inline void machine_make(const struct machine *t, const char *options)
{
    char command[2048];
    snprintf(command, sizeof(command), "python3 -B '%s' '%s' %s", check_data("../tools/mktree.py"), t->path,
             options);
    if (system(command)) {
        printf("# failed: %s\n", command);
        abort();
    }
}

/* Facts of which only the root and the environment are there; for the finders. */
static inline void machine_open(struct machine *t, const char *root, const char *const *env)
{
    struct cairn_error err = { 0 };
    facts_release(&t->f);
    t->f.env = env;
    if (root_open(&t->f.root, root, &err))
        abort();
}

/* "gfx900 gfx906"; the buffer is reused by the next call but three. */
static inline const char *machine_names(const struct targets *t)
{
    static char buf[4][1024];
    static int turn;
    char *out = buf[turn++ % 4];
    size_t at = 0;
    *out = '\0';
    for (size_t i = 0; i < t->n; i++)
        at += (size_t)snprintf(out + at, sizeof(buf[0]) - at, "%s%s", i ? " " : "", t->name[i]);
    return out;
}

#endif
