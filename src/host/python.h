/* SPDX-License-Identifier: Apache-2.0
 * Where Python would import from, found without running it.
 *
 * In the order in which a shell would find them: the active virtual environment, ./venv and ./.venv,
 * conda, python3 on PATH (through pyenv's shims too).  Before all of them the Python that a given
 * command starts.  In a captured tree the paths of the environment are taken inside it, ./venv is not
 * looked at, and a few places where containers keep a Python come last. */
#ifndef CAIRN_HOST_PYTHON_H
#define CAIRN_HOST_PYTHON_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"

struct python {
    const struct root *root; /* the tree that all paths are in */
    const char *exe;         /* NULL: not known */
    const char *how;         /* "VIRTUAL_ENV", "./venv", "PATH", "--torch" … */
    bool guess;              /* there is a command, and this need not be its Python */
    const char **sites;      /* directories that exist, in the order of import */
    size_t n_sites;
};

struct pythons {
    struct python *item;
    size_t n;
};

/* --torch (o->torch_dir) replaces the search; it is a virtual environment, a site-packages directory or the
 * torch directory itself. It and the command (o->command) are looked up in `live`, this machine's own tree.
 * Fills f->command. Fails only when --torch is not a directory. */
int pythons_find(struct facts *f, const struct facts_options *o, const struct root *live, struct pythons *out,
                 struct cairn_error *err);
/* Does the directory, called torch, contain something of PyTorch? If not, it is unrelated. */
bool python_is_torch(const struct root *r, struct arena *a, const char *dir);

#endif
