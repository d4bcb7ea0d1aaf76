/* SPDX-License-Identifier: Apache-2.0
 * The tensor files below a folder. */
#ifndef CAIRN_TENSOR_FIND_H
#define CAIRN_TENSOR_FIND_H

#include "base/arena.h"
#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct found_file {
    const char *path;
    uint64_t bytes;
    bool named;        /* by the caller, not found in a folder */
    const char *error; /* NULL; else why it, or the folder of this name, cannot be read */
};

struct found_files {
    struct found_file *file;
    size_t n;
};

/* A file is added as it is; a folder is walked for .safetensors, .safetensors.index.json, .pt and .pth in
 * natural order.  Links to files are followed, links to folders are not.  What cannot be read is added with
 * its error. */
void find_tensor_files(const char *path, struct arena *a, struct found_files *out);

#endif
