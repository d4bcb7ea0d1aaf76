/* SPDX-License-Identifier: Apache-2.0
 * The page: its files travel inside the program, also packed with gzip (scripts/embed.py).  With --dev they come
 * from a folder, unpacked and uncached, and a change there sends the event `reload`. */
#ifndef CAIRN_WEB_ASSETS_H
#define CAIRN_WEB_ASSETS_H

#include "base/error.h"
#include "web/events.h"
#include "web/loop.h"
#include "web/request.h"

struct asset {
    const char *path; /* "pages/jobs.js" */
    const char *etag; /* a hash, without quotes */
    const unsigned char *bytes;
    size_t n;
    const unsigned char *packed; /* NULL: it would not get smaller */
    size_t packed_n;
};
extern const struct asset web_assets[];
extern const size_t n_web_assets;

struct assets;
/* dev: NULL, or the folder. */
int assets_open(struct loop *l, struct events *e, const char *dev, struct assets **out,
                struct cairn_error *err);
void assets_close(struct assets *a);
/* Answers with that file, or 404. */
void assets_answer(struct assets *a, struct request *r, const char *path, int status);

#endif
