/* SPDX-License-Identifier: Apache-2.0
 * What a ROCm prefix holds: a directory with lib/, share/, include/, such as /opt/rocm, the torch
 * directory of a wheel, or _rocm_sdk_core.
 *
 * For which targets a library has kernels is told by the names of its files.  Memory is the arena's. */
#ifndef CAIRN_HOST_ROCM_PREFIX_H
#define CAIRN_HOST_ROCM_PREFIX_H

#include "base/arena.h"
#include "host/facts.h"
#include "host/root.h"

/* How a `from` begins when a value was not read from files but follows from a version. */
#define FROM_VERSION "by version: "

struct rocm_prefix_facts {
    struct text hip_library; /* libamdhip64 */
    struct text hip_version; /* "6.4", from that file's name */
    struct rocm_files files;
    struct text miopen_version;
    struct targets rocblas, hipblaslt, miopen; /* a library without kernel files has none */
};

/* Adds what exists; what an earlier prefix had stays, lists are joined. */
void rocm_prefix_read(const struct root *r, struct arena *a, const char *path, struct rocm_prefix_facts *io);
/* The same of one folder of libraries, wherever it is. */
void rocm_prefix_read_folder(const struct root *r, struct arena *a, const char *folder,
                             struct rocm_prefix_facts *io);
/* Whether libamdhip64 is in it, under a name that is usual: a system's folder of libraries is long to
 * list. */
bool rocm_prefix_has_hip(const struct root *r, struct arena *a, const char *folder);
/* The MIOpen that a ROCm release came with; unknown for releases that are not in the table. */
struct text rocm_prefix_miopen_by_rocm(struct arena *a, struct version rocm);
/* The directories below a prefix that may contain libraries; ends with NULL. */
extern const char *const rocm_prefix_lib_dirs[];

#endif
