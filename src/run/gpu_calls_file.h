/* SPDX-License-Identifier: Apache-2.0
 * A recorder's file that the user names. */
#ifndef CAIRN_RUN_GPU_CALLS_FILE_H
#define CAIRN_RUN_GPU_CALLS_FILE_H

#include "base/error.h"
#include "run/gpu_calls.h"

/* By its magic bytes; it may be of another version. */
bool gpu_calls_file_is(const char *path);
/* The calls of the one process. */
int gpu_calls_file_read(const char *path, struct arena *a, struct gpu_calls *out, struct cairn_error *err);

#endif
