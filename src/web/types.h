/* SPDX-License-Identifier: Apache-2.0
 * Media types by the end of a file's name, and what may be done with such a file. */
#ifndef CAIRN_WEB_TYPES_H
#define CAIRN_WEB_TYPES_H

#include <stdbool.h>

enum type_flags {
    TYPE_SHOWN =
        1 << 0, /* a browser may show it; all others are attachments: HTML and SVG could run scripts */
    TYPE_UPLOADED = 1 << 1, /* may be uploaded */
    TYPE_ASSET = 1 << 2,    /* part of the page */
};

struct type {
    const char *end; /* ".png" */
    const char *type;
    unsigned flags;
};

/* Of a name; "application/octet-stream" without flags for one that is not in the table. */
const struct type *type_of(const char *name);
extern const struct type types[];
extern const unsigned n_types;

#endif
