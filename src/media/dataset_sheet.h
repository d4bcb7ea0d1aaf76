/* SPDX-License-Identifier: Apache-2.0
 * A contact sheet: the first frame of every usable item as it will be cropped, by bucket, with file names. */
#ifndef CAIRN_MEDIA_DATASET_SHEET_H
#define CAIRN_MEDIA_DATASET_SHEET_H

#include "media/dataset.h"

struct dataset_sheet_options {
    size_t width; /* of the sheet in pixels; 0: 1280 */
    size_t most;  /* items of a bucket that are shown; 0: 60 */
    struct dataset_progress progress;
};

/* A picture with all buckets; o may be NULL.  An item that cannot be decoded is a grey field.  Fails if no item
 * is usable. */
int dataset_sheet(const struct dataset *d, struct media *m, const struct dataset_sheet_options *o,
                  struct picture *out, struct cairn_error *err);

#endif
