/* SPDX-License-Identifier: Apache-2.0
 * Which gfx targets a binary carries code for, without reading it whole and without trusting it.
 *
 * Understands shared libraries with fat binaries (.hip_fatbin), bundle files, single code objects (.co,
 * .hsaco) and .kpack archives.  A library of several gigabytes takes a few milliseconds.  The file descriptor
 * belongs to the caller; paths are for messages; all memory is the arena's.  A file that is none of these or
 * is damaged is CAIRN_EFORMAT, with the path and what is wrong. */
#ifndef CAIRN_HOST_CODEOBJ_H
#define CAIRN_HOST_CODEOBJ_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"

enum codeobj_kind {
    CODEOBJ_NONE,   /* an ELF file without device code */
    CODEOBJ_FAT,    /* a library with device code in it */
    CODEOBJ_SPLIT,  /* a library whose device code is in .kpack archives */
    CODEOBJ_BUNDLE, /* a file that is offload bundles */
    CODEOBJ_SINGLE, /* one code object */
    CODEOBJ_KPACK,  /* an archive of device code */
};

struct codeobj {
    enum codeobj_kind kind;
    struct targets targets; /* from is the path; an empty list with from unset for NONE and SPLIT */
    bool spirv;             /* also contains portable code */
    bool needs_hip;         /* a library that is linked to libamdhip64 */
    size_t n_bundles;       /* how many bundles were found … */
    size_t n_read;          /* … and how many of them were looked into */
    bool all_found;         /* false: there may be more bundles than were found */
};

int codeobj_read(int fd, const char *path, struct arena *a, struct codeobj *out, struct cairn_error *err);
/* Only what kind of file it is and what it is linked to, from its headers; the bundles of a library that is
 * not in memory yet are hundreds of places on the disk. */
int codeobj_inspect(int fd, const char *path, struct arena *a, struct codeobj *out, struct cairn_error *err);

/* The list of targets that PyTorch compiles into libtorch_python.so as text: the longest run of two or more
 * names with one space or semicolon between them, in read-only data.  out->from stays NULL if there is none.
 * A file that is not ELF is searched too, from its start; it is an error only if it has no such run. */
int codeobj_arch_list(int fd, const char *path, struct arena *a, struct targets *out,
                      struct cairn_error *err);

#endif
