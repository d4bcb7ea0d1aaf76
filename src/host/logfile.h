/* SPDX-License-Identifier: Apache-2.0
 * A log from a file, a pipe or standard input ("-"), plain or compressed with gzip, in pieces of
 * bounded size. */
#ifndef CAIRN_HOST_LOGFILE_H
#define CAIRN_HOST_LOGFILE_H

#include "base/error.h"
#include <stdbool.h>
#include <stddef.h>

/* A truncated gzip file yields what it has, without an error, like a log that is still being written. *cut
 * (or NULL) is then set, and else left alone. */
int logfile_read(const char *path, void (*take)(void *to, const char *bytes, size_t n), void *to, bool *cut,
                 struct cairn_error *err);
/* For take: to is a struct str *. */
void logfile_into_str(void *to, const char *bytes, size_t n);

#endif
