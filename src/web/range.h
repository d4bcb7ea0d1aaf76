/* SPDX-License-Identifier: Apache-2.0
 * The Range header of one part: "bytes=0-99", "bytes=100-", "bytes=-50". */
#ifndef CAIRN_WEB_RANGE_H
#define CAIRN_WEB_RANGE_H

#include <stdint.h>

enum range_kind {
    RANGE_ALL,  /* none is asked for, or one that is not understood, or several: the whole file is sent */
    RANGE_PART, /* 206 */
    RANGE_NONE, /* 416: it begins behind the end */
};

/* header: NULL if the request has none.  *from and *n: the bytes to send, for RANGE_PART. */
enum range_kind range_parse(const char *header, uint64_t size, uint64_t *from, uint64_t *n);

#endif
