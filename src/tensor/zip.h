/* SPDX-License-Identifier: Apache-2.0
 * Zip archives, as far as torch writes them: the directory, and the offset of each entry's bytes.
 *
 * ZIP64 is supported.  Entries are used in place, so they must be stored: a compressed or encrypted one can
 * be listed, but requesting it is an error that names it.  Every offset is checked against the size of the
 * file. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3 and 4.5.3. */
#ifndef CAIRN_TENSOR_ZIP_H
#define CAIRN_TENSOR_ZIP_H

#include "base/arena.h"
#include "base/error.h"
#include <stdint.h>

enum { ZIP_DIRECTORY_MAX = 256 << 20 };

struct zip_entry {
    const char *name;
    uint64_t size;      /* of its data */
    uint64_t header_at; /* of its local header, which lies before the data */
    uint32_t crc;       /* of its data; 0: torch was told not to compute it */
    uint16_t method, flags;
};

struct zip {
    int fd; /* borrowed */
    const char *path;
    uint64_t size;
    struct zip_entry *entries; /* sorted by name; names are unique */
    size_t n_entries;
};

/* Reads the directory; the entries live in the arena.  path and fd must outlive the zip. */
int zip_read(struct zip *z, int fd, const char *path, uint64_t size, struct arena *a,
             struct cairn_error *err);
const struct zip_entry *zip_find(const struct zip *z, const char *name); /* NULL: no such entry */
/* The offset in the file of a stored entry's first byte. */
int zip_locate(const struct zip *z, const struct zip_entry *e, uint64_t *at, struct cairn_error *err);

#endif
