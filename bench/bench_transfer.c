/* SPDX-License-Identifier: Apache-2.0
 * A file of tensors into the memory of a device, beside what one copy from pinned memory reaches.
 *
 *     bench_transfer DEVICE FILE [ROUNDS [PIECES BYTES THREADS]...]
 *
 * The file is read before, so that it is in the page cache.  Each PIECES BYTES THREADS is a ring to try.  Prints CSV, the
 * best and the middle of the rounds; bench/transfer_torch.py makes a file, and loads it as PyTorch does. */
#include "base/cleanup.h"
#include "bench.h"
#include "nn/tensor_load.h"

enum { MOST_ROUNDS = 100, COPIED = 256 << 20 };

static struct cairn_error err;

static void must(int r)
{
    if (r) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void say(const char *what, double bytes, double *seconds, int rounds)
{
    qsort(seconds, (size_t)rounds, sizeof(*seconds), compare);
    printf("%s,%s,%s,%.2f,%.2f,GB/s\n", bench_machine(), bench_commit(), what, bytes / seconds[0] / 1e9,
           bytes / seconds[rounds / 2] / 1e9);
    fflush(stdout);
}

/* What the link gives: one large piece again and again. */
static void copy(struct gpu *g, bool pinned, bool up, int rounds)
{
    double seconds[MOST_ROUNDS];
    void *host = NULL, *device;
    must(gpu_alloc(g, GPU_MEM_DEVICE, COPIED, &device, &err));
    if (pinned)
        must(gpu_alloc(g, GPU_MEM_STAGING, COPIED, &host, &err));
    else if (!(host = malloc(COPIED)))
        exit(1);
    memset(host, 1, COPIED);
    for (int i = 0; i < rounds; i++) {
        double begin = bench_now();
        must(up ? gpu_upload(g, NULL, device, host, COPIED, &err)
                : gpu_download(g, NULL, host, device, COPIED, &err));
        must(gpu_wait(g, NULL, &err));
        seconds[i] = bench_now() - begin;
    }
    say(pinned ? up ? "copy from pinned" : "copy to pinned"
        : up   ? "copy from ordinary memory"
               : "copy to ordinary memory",
        COPIED, seconds, rounds);
    if (pinned)
        gpu_free(g, GPU_MEM_STAGING, host);
    else
        free(host);
    gpu_free(g, GPU_MEM_DEVICE, device);
}

struct file {
    struct tensor_source source;
    struct tensor_want *wants;
    uint64_t bytes; /* on the device */
};

static void place(struct file *f, char *device, enum dtype as)
{
    f->bytes = 0;
    for (size_t i = 0; i < f->source.n_tensors; i++) {
        const struct st_tensor *t = &f->source.tensors[i];
        bool converts = as != DTYPE_OTHER && dtype_can_convert(t->dtype, as);
        f->wants[i] = (struct tensor_want){ t, converts ? as : t->dtype, device + f->bytes, false };
        f->bytes += converts ? t->elements * dtype_size(as) : t->bytes;
        f->bytes = (f->bytes + 255) / 256 * 256;
    }
}

static void load(struct gpu *g, struct file *f, const char *what, const struct transfer_options *o,
                 int rounds)
{
    double seconds[MOST_ROUNDS];
    for (int i = 0; i < rounds; i++) {
        double begin = bench_now();
        must(tensor_load(g, &f->source, f->wants, f->source.n_tensors, o, &err));
        seconds[i] = bench_now() - begin;
    }
    say(what, (double)f->bytes, seconds, rounds);
}

static void back(struct gpu *g, char *device, uint64_t bytes, int rounds)
{
    double seconds[MOST_ROUNDS];
    char *host = malloc(bytes);
    if (!host)
        return;
    memset(host, 1, bytes);
    struct transfer_part part = {
        .device = device, .bytes = bytes, .move = transfer_move_into, .context = host
    };
    for (int i = 0; i < rounds; i++) {
        double begin = bench_now();
        must(transfer_down(gpu_transfer(g), &part, 1, NULL, &err));
        seconds[i] = bench_now() - begin;
    }
    say("device to ordinary memory", (double)bytes, seconds, rounds);
    free(host);
}

static void try_ring(struct gpu *g, struct file *f, char **numbers, int rounds)
{
    char what[96];
    size_t pieces = strtoul(numbers[0], NULL, 0), bytes = strtoul(numbers[1], NULL, 0);
    struct transfer_options o = { .threads = atoi(numbers[2]) };
    transfer_set_ring(gpu_transfer(g), pieces, bytes);
    snprintf(what, sizeof(what), "file to device; %zu x %zu KiB; %d threads", pieces, bytes >> 10, o.threads);
    load(g, f, what, &o, rounds);
}

int main(int argc, char **argv)
{
    struct gpu *g;
    struct file f = { 0 };
    void *device;
    int rounds = argc > 3 ? atoi(argv[3]) : 10;
    if (argc < 3 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: %s DEVICE FILE [ROUNDS [PIECES BYTES THREADS]...]\n", argv[0]);
        return 2;
    }
    must(gpu_open(argv[1], &g, &err));
    must(source_open(&f.source, argv[2], &err));
    f.wants = calloc(f.source.n_tensors, sizeof(*f.wants));
    place(&f, NULL, DTYPE_F32);
    must(gpu_alloc(g, GPU_MEM_DEVICE, f.bytes, &device, &err));
    for (int up = 1; up >= 0; up--) {
        copy(g, true, up, rounds);
        copy(g, false, up, rounds);
    }
    place(&f, device, DTYPE_OTHER);
    load(g, &f, "file to device; the first time", NULL, 1);
    load(g, &f, "file to device", NULL, rounds);
    load(g, &f, "file to device; verified", &(struct transfer_options){ .verify = true }, 3);
    back(g, device, f.bytes, rounds);
    place(&f, device, DTYPE_F32);
    load(g, &f, "file to device; as f32", NULL, rounds);
    place(&f, device, DTYPE_OTHER);
    for (int i = 4; i + 3 <= argc; i += 3)
        try_ring(g, &f, argv + i, rounds);
    gpu_free(g, GPU_MEM_DEVICE, device);
    gpu_close(g);
    source_close(&f.source);
    free(f.wants);
    return 0;
}
