/* SPDX-License-Identifier: Apache-2.0
 * Asks for the size of every file of a dataset, with several cairn-media at once, and finds files that are
 * the same. */
#ifndef CAIRN_MEDIA_DATASET_PROBE_H
#define CAIRN_MEDIA_DATASET_PROBE_H

#include "media/dataset_parts.h"

struct dataset_files {
    struct dataset_file *file;
    size_t n;
};

/* Memory of the results: an arena for each thread. */
struct dataset_probed {
    struct arena *arenas;
    size_t n;
};

/* Fails if there is no cairn-media; a file that cannot be read is marked as broken. */
int dataset_probe_files(struct dataset_probed *p, const struct dataset_options *o,
                        struct dataset_files *files, size_t n, struct arena *a, struct cairn_error *err);
void dataset_probed_release(struct dataset_probed *p);

#endif
