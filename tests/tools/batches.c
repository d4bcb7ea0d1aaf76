/* SPDX-License-Identifier: Apache-2.0
 * batches FILE SEQ BATCH STEPS SEED: the batches that `cairn train` takes from a file of text with the tokenizer "bytes", on
 * stdout as int32: for each step the ids, then the targets.  For others who train on the same. */
#include "text/data.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    struct cairn_error err = { 0 };
    struct tokenizer *t = NULL;
    struct data *d = NULL;
    if (argc != 6) {
        fputs("usage: batches FILE SEQ BATCH STEPS SEED\n", stderr);
        return 2;
    }
    const char *paths[] = { argv[1] };
    struct data_options o = {
        .paths = paths,
        .n_paths = 1,
        .val_split = 0.05,
        .seq = strtoul(argv[2], NULL, 10),
        .batch = strtoul(argv[3], NULL, 10),
        .seed = strtoul(argv[5], NULL, 10),
    };
    size_t n = o.seq * o.batch, steps = strtoul(argv[4], NULL, 10);
    int32_t *ids = malloc(2 * n * sizeof(*ids));
    if (!ids || tokenizer_new_bytes(&t, &err) || data_open(&o, t, &d, &err)) {
        fprintf(stderr, "batches: %s\n", err.msg);
        return 1;
    }
    for (size_t s = 0; s < steps; s++) {
        if (data_batch(d, s, 0, o.batch, ids, ids + n, &err) ||
            fwrite(ids, sizeof(*ids), 2 * n, stdout) != 2 * n)
            return 1;
    }
    data_close(d);
    tokenizer_free(t);
    free(ids);
    return fflush(stdout) ? 1 : 0;
}
