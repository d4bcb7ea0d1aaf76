/* SPDX-License-Identifier: Apache-2.0
 * `cairn tensor convert` of a bf16 file in the page cache to f32, beside cp and sync of the same output; and reading
 * all tensors of a cached file into memory, beside pread of the same bytes on as many threads.
 *
 *     bench_convert CAIRN [FOLDER [GIBIBYTES [ROUNDS]]]     default: a 2 GiB file in ., best of 3
 *
 * Takes five times the size on the disk.  CSV: share is the peer's time divided by ours. */
#include "bench.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "tensor/safetensors.h"
#include "tensor/source.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { TENSOR_BYTES = 64 << 20, PIECE = 4 << 20 };

struct paths {
    char in[512], out[512], copy[512];
};

static int fail(const struct cairn_error *err)
{
    fprintf(stderr, "bench_convert: %s\n", err->msg);
    return -1;
}

/* bf16 numbers that are all finite. */
static void fill(uint16_t *values, size_t n)
{
    uint64_t state = 88172645463325252;
    for (size_t i = 0; i < n; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        values[i] = (uint16_t)((state & 0x80ff) | 0x3e00);
    }
}

static int make_input(const char *path, size_t n)
{
    static const uint64_t shape[] = { TENSOR_BYTES / 2 };
    struct cairn_error err = { 0 };
    struct st_writer w;
    CLEANUP(mem_free) struct st_tensor *list = calloc(n, sizeof(*list));
    CLEANUP(mem_free) char *names = calloc(n, 16);
    CLEANUP(mem_free) uint16_t *values = malloc(TENSOR_BYTES);
    if (!list || !names || !values)
        return fputs("bench_convert: no memory\n", stderr), -1;
    fill(values, TENSOR_BYTES / 2);
    for (size_t i = 0; i < n; i++) {
        snprintf(names + i * 16, 16, "w%zu", i);
        list[i] = (struct st_tensor){ .name = names + i * 16,
                                      .dtype = DTYPE_BF16,
                                      .dtype_text = "BF16",
                                      .shape = shape,
                                      .rank = 1,
                                      .elements = shape[0],
                                      .bytes = TENSOR_BYTES };
    }
    if (st_writer_open(&w, path, list, n, NULL, 0, ST_ORDER_GIVEN, true, &err))
        return fail(&err);
    int r = 0;
    for (size_t i = 0; i < n && !r; i++)
        r = st_writer_put(&w, i, 0, values, TENSOR_BYTES, &err);
    r = r || st_writer_commit(&w, &err) ? fail(&err) : 0;
    st_writer_close(&w);
    return r;
}

/* Seconds of a command, its output thrown away; negative if it failed. */
static double run(const char *const *argv)
{
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int status = -1;
    double start = bench_now();
    int failed = posix_spawnp(&pid, argv[0], &quiet, NULL, (char *const *)(uintptr_t)argv, environ);
    if (!failed)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&quiet);
    if (failed || status)
        fprintf(stderr, "bench_convert: %s failed\n", argv[0]);
    return failed || status ? -1 : bench_now() - start;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

static void print_row(const char *name, int threads, double bytes, double ours, const char *peer,
                      double theirs)
{
    printf("%s,%s,%s,%d,%.2f,%s,%.2f,%.2f\n", bench_machine(), bench_commit(), name, threads,
           bytes / ours / 1e9, peer, bytes / theirs / 1e9, theirs / ours);
    fflush(stdout);
}

/* The first numbers of the output against their definition. */
static int check_output(const struct paths *p)
{
    enum { N = 1 << 16 };
    CLEANUP(source_close) struct tensor_source in = { 0 }, out = { 0 };
    CLEANUP(mem_free) uint32_t *wide = malloc(N * 4);
    CLEANUP(mem_free) uint16_t *narrow = malloc(N * 2);
    struct cairn_error err = { 0 };
    if (!wide || !narrow || source_open(&in, p->in, &err) || source_open(&out, p->out, &err))
        return fail(&err);
    for (size_t i = 0; i < in.n_tensors; i++) {
        if (source_read(&in, &in.tensors[i], 0, N, narrow, &err) ||
            source_read(&out, &out.tensors[i], 0, N, wide, &err))
            return fail(&err);
        for (size_t k = 0; k < N; k++)
            if (wide[k] != (uint32_t)narrow[k] << 16)
                return fprintf(stderr, "bench_convert: %s is wrong\n", in.tensors[i].name), -1;
    }
    return 0;
}

static int bench_convert(const char *cairn, const struct paths *p, double bytes, int rounds)
{
    const char *const convert[] = { cairn, "tensor", "convert", p->in, p->out, "--dtype", "f32", NULL };
    const char *const copy[] = { "sh", "-c", "cp \"$0\" \"$1\" && sync \"$1\"", p->out, p->copy, NULL };
    double ours = 1e9, peer = 1e9;
    for (int i = 0; i < rounds; i++) {
        unlink(p->out);
        unlink(p->copy);
        double a = run(convert), b = a < 0 || (i == 0 && check_output(p)) ? -1 : run(copy);
        if (b < 0)
            return -1;
        ours = least(ours, a);
        peer = least(peer, b);
    }
    print_row("convert bf16 file to f32 (bytes written)", parallel_threads(), bytes * 2, ours, "cp and sync",
              peer);
    return 0;
}

struct load {
    struct tensor_source src;
    char *into;
    int fd;
    uint64_t at; /* of the first tensor: both read the same bytes */
};

static int load_tensor(void *context, size_t piece, struct cairn_error *err)
{
    struct load *l = context;
    size_t each = TENSOR_BYTES / PIECE;
    return source_read(&l->src, &l->src.tensors[piece / each], piece % each * (PIECE / 2), PIECE / 2,
                       l->into + piece * PIECE, err);
}

static int load_bytes(void *context, size_t piece, struct cairn_error *err)
{
    struct load *l = context;
    for (size_t done = 0; done < PIECE;) {
        ssize_t n =
            pread(l->fd, l->into + piece * PIECE + done, PIECE - done, (off_t)(l->at + piece * PIECE + done));
        if (n <= 0)
            return cairn_fail_errno(err, "pread");
        done += (size_t)n;
    }
    return 0;
}

static int bench_load(const struct paths *p, size_t bytes, int threads, int rounds)
{
    CLEANUP(mem_free) char *into = malloc(bytes);
    CLEANUP(fd_close) int fd = open(p->in, O_RDONLY | O_CLOEXEC);
    struct load l = { .into = into, .fd = fd };
    struct cairn_error err = { 0 };
    if (!into || fd < 0 || source_open(&l.src, p->in, &err))
        return fail(&err);
    l.at = l.src.tensors[0].at;
    memset(into, 1, bytes);
    double ours = 1e9, peer = 1e9;
    int r = 0;
    for (int i = 0; i <= rounds && !r; i++) { /* the first round warms up */
        double start = bench_now();
        r = parallel_for(bytes / PIECE, threads, load_tensor, &l, &err);
        double middle = bench_now();
        r = r || parallel_for(bytes / PIECE, threads, load_bytes, &l, &err) ? -1 : 0;
        ours = i ? least(ours, middle - start) : ours;
        peer = i ? least(peer, bench_now() - middle) : peer;
    }
    source_close(&l.src);
    if (r)
        return fail(&err);
    print_row("load all tensors of a cached file", threads, (double)bytes, ours, "pread", peer);
    return 0;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 2 ? argv[2] : ".";
    int gib = argc > 3 ? atoi(argv[3]) : 2, rounds = argc > 4 ? atoi(argv[4]) : 3;
    struct paths p;
    if (argc < 2 || gib < 1 || rounds < 1) {
        fputs("usage: bench_convert CAIRN [FOLDER [GIBIBYTES [ROUNDS]]]\n", stderr);
        return 2;
    }
    snprintf(p.in, sizeof(p.in), "%.480s/bench-in.safetensors", folder);
    snprintf(p.out, sizeof(p.out), "%.480s/bench-out.safetensors", folder);
    snprintf(p.copy, sizeof(p.copy), "%.480s/bench-copy", folder);
    size_t bytes = (size_t)gib << 30;
    puts("machine,commit,case,threads,gb_per_s,peer,peer_gb_per_s,share");
    int r = make_input(p.in, bytes / TENSOR_BYTES) || bench_convert(argv[1], &p, (double)bytes, rounds) ||
            bench_load(&p, bytes, 1, rounds) ||
            (parallel_threads() > 1 && bench_load(&p, bytes, parallel_threads(), rounds));
    unlink(p.in);
    unlink(p.out);
    unlink(p.copy);
    return r ? 1 : 0;
}
