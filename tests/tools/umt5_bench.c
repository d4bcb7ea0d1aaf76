/* SPDX-License-Identifier: Apache-2.0
 * umt5_bench FILE DEVICE f32|bf16|f16 GB TOKENS BATCH SECONDS [OUT]: how long umT5 takes for so many prompts of so many tokens, from
 * ids to rows on the host, within GB of the device (0: no limit).  OUT gets the rows of the first prompt in f32, for
 * bench/umt5_peer.py, which encodes the same ids. */
#include "base/clock.h"
#include "gpu/pool.h"
#include "nn/umt5.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    const char *path; /* NULL: not wanted */
    size_t numbers;
};

static int write_rows(void *ctx, size_t prompt, const float *rows, struct cairn_error *err)
{
    const struct rows *r = ctx;
    if (prompt || !r->path)
        return 0;
    FILE *f = fopen(r->path, "wb");
    bool ok = f && fwrite(rows, sizeof(*rows), r->numbers, f) == r->numbers;
    if (f && fclose(f))
        ok = false;
    return ok ? 0 : cairn_fail_errno(err, "write %s", r->path);
}

static int fail(const struct cairn_error *err)
{
    fprintf(stderr, "umt5_bench: %s\n%s\n", err->msg, err->hint);
    return 1;
}

static enum gpu_storage storage_of(const char *name)
{
    return !strcmp(name, "bf16") ? GPU_BF16 : !strcmp(name, "f16") ? GPU_F16 : GPU_F32;
}

static int measure(struct umt5 *u, char **argv, const char *out, struct cairn_error *err)
{
    size_t tokens = strtoul(argv[5], NULL, 10), batch = strtoul(argv[6], NULL, 10),
           vocab = umt5_info(u)->vocab;
    double seconds = strtod(argv[7], NULL), best = 1e9;
    uint32_t *ids = calloc(tokens, sizeof(*ids));
    struct umt5_prompt *prompts = calloc(batch, sizeof(*prompts));
    struct rows rows = { out, tokens * umt5_info(u)->dim };
    struct umt5_sink sink = { write_rows, &rows };
    for (size_t i = 0; i < tokens; i++)
        ids[i] = i + 1 == tokens ? 1 : (uint32_t)((i * 7919 + 13) % (vocab - 2) + 2);
    for (size_t i = 0; i < batch; i++)
        prompts[i] = (struct umt5_prompt){ ids, tokens };
    int r = umt5_encode(u, prompts, batch, &sink, NULL, err); /* compiles kernels, and measures matmuls */
    double start = clock_s(), sum = 0;
    size_t n = 0;
    rows.path = NULL;
    while (!r && (clock_s() - start < seconds || n < 3)) {
        double before = clock_s();
        r = umt5_encode(u, prompts, batch, &sink, NULL, err);
        double took = clock_s() - before;
        best = took < best ? took : best;
        sum += took;
        n++;
    }
    if (!r)
        printf(
            "tokens %zu batch %zu: mean %.2f ms, best %.2f ms of %zu; resident %zu, windows %zu, weights %.2f GB, "
            "work %.2f GB\n",
            tokens, batch, sum / (double)n * 1e3, best * 1e3, n, umt5_layout(u)->resident,
            umt5_layout(u)->windows, (double)umt5_layout(u)->weights / 1e9,
            (double)umt5_layout(u)->work / 1e9);
    free(ids);
    free(prompts);
    return r;
}

int main(int argc, char **argv)
{
    struct gpu *g = NULL;
    struct nn nn = { 0 };
    struct umt5 *u = NULL;
    struct cairn_error err = { 0 };
    if (argc < 8) {
        fprintf(stderr, "usage: umt5_bench FILE DEVICE DTYPE GB TOKENS BATCH SECONDS [OUT]\n");
        return 2;
    }
    setenv("CAIRN_KC", BUILT_KC, 0);
    double gb = strtod(argv[4], NULL);
    if (gpu_open(argv[2], &g, &err) || nn_open(&nn, g, storage_of(argv[3]), &err))
        return fail(&err);
    double before = clock_s();
    int r = umt5_open(&u, &nn, argv[1], gb > 0 ? (uint64_t)(gb * 1e9) : UMT5_NO_LIMIT, &err);
    if (!r) {
        printf("opened in %.2f s; ", clock_s() - before);
        r = measure(u, argv, argc > 8 ? argv[8] : NULL, &err);
        printf("peak %.2f GB of device memory\n", (double)gpu_allocated(g).most_bytes / 1e9);
    }
    umt5_close(u);
    nn_close(&nn);
    gpu_close(g);
    return r ? fail(&err) : 0;
}
