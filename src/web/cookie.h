/* SPDX-License-Identifier: Apache-2.0
 * The Cookie header: "a=1; cairn_22476=0f…". */
#ifndef CAIRN_WEB_COOKIE_H
#define CAIRN_WEB_COOKIE_H

#include <stddef.h>

/* The value of the cookie of that name, *n bytes long and not terminated; NULL: there is none.  Of several
 * the first counts. */
const char *cookie_find(const char *header, const char *name, size_t *n);

#endif
