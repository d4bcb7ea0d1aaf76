/* SPDX-License-Identifier: Apache-2.0
 * Whole files that are in the page cache: convert and merge beside cp and sync of the same output, loading and checking
 * beside pread of the same bytes on as many threads.
 *
 *     bench_files CAIRN [FOLDER [GIBIBYTES [ROUNDS [COMMAND...]]]]     default: a 2 GiB file in ., best of 3
 *
 * COMMAND, with the input and the rounds behind it, is load_python.py with its interpreter.  Takes five times the size
 * on the disk.  CSV: share is the peer's time divided by ours. */
#include "bench.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "tensor/safetensors.h"
#include "tensor/scan.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
    ROWS = 8192,
    COLS = 4096,
    RANK = 32,
    TENSOR_BYTES = ROWS * COLS * 2,
    PIECE = 4 << 20,
    HOT = 256 << 10
};

struct paths {
    char in[512], lora[512], out[512], copy[512];
};

static int fail(const struct cairn_error *err)
{
    fprintf(stderr, "bench_files: %s\n", err->msg);
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

static struct st_tensor describe(char *name, const uint64_t shape[2])
{
    uint64_t n = shape[0] * shape[1];
    return (struct st_tensor){ .name = name,
                               .dtype = DTYPE_BF16,
                               .dtype_text = "BF16",
                               .shape = shape,
                               .rank = 2,
                               .elements = n,
                               .bytes = 2 * n };
}

/* n tensors; the k-th has the (k % kinds)-th name and shape, for block k / kinds. */
static int make_file(const char *path, size_t n, size_t kinds, const char *const *formats,
                     const uint64_t (*shapes)[2])
{
    enum { NAME = 80 };
    struct cairn_error err = { 0 };
    struct st_writer w;
    CLEANUP(mem_free) struct st_tensor *list = calloc(n, sizeof(*list));
    CLEANUP(mem_free) char *names = calloc(n, NAME);
    CLEANUP(mem_free) uint16_t *values = malloc(TENSOR_BYTES);
    if (!list || !names || !values)
        return fputs("bench_files: no memory\n", stderr), -1;
    fill(values, TENSOR_BYTES / 2);
    for (size_t i = 0; i < n; i++) {
        snprintf(names + i * NAME, NAME, "%sblocks.%zu.ffn.0.%s", kinds > 1 ? "diffusion_model." : "",
                 i / kinds, formats[i % kinds]);
        list[i] = describe(names + i * NAME, shapes[i % kinds]);
    }
    if (st_writer_open(&w, path, &(struct st_contents){ .tensors = list, .n = n, .order = ST_ORDER_GIVEN },
                       true, &err))
        return fail(&err);
    int r = 0;
    for (size_t i = 0; i < n && !r; i++)
        r = st_writer_put(&w, i, 0, values, list[i].bytes, &err);
    r = r || st_writer_commit(&w, &err) ? fail(&err) : 0;
    st_writer_close(&w);
    return r;
}

/* A model of one matrix a block, and a LoRA for all of it. */
static int make_inputs(const struct paths *p, size_t blocks)
{
    static const char *const weight[] = { "weight" }, *const parts[] = { "lora_A.weight", "lora_B.weight" };
    static const uint64_t shape[][2] = { { ROWS, COLS } },
                          part_shapes[][2] = { { RANK, COLS }, { ROWS, RANK } };
    return make_file(p->in, blocks, 1, weight, shape) ||
           make_file(p->lora, 2 * blocks, 2, parts, part_shapes);
}

/* Seconds of a command that writes to a descriptor; negative if it failed. */
static double run_to(const char *const *argv, int fd)
{
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_adddup2(&quiet, fd, STDOUT_FILENO);
    pid_t pid;
    int status = -1;
    double start = bench_now();
    int failed = posix_spawnp(&pid, argv[0], &quiet, NULL, (char *const *)(uintptr_t)argv, environ);
    if (!failed)
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    posix_spawn_file_actions_destroy(&quiet);
    if (failed || status)
        fprintf(stderr, "bench_files: %s failed\n", argv[0]);
    return failed || status ? -1 : bench_now() - start;
}

static double run(const char *const *argv)
{
    CLEANUP(fd_close) int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return run_to(argv, nowhere);
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
                return fprintf(stderr, "bench_files: %s is wrong\n", in.tensors[i].name), -1;
    }
    return 0;
}

/* A command that writes p->out beside cp and sync of what it wrote. */
static int bench_command(const char *name, const char *const *argv, const struct paths *p,
                         int (*check)(const struct paths *p), double bytes, int rounds)
{
    const char *const copy[] = { "sh", "-c", "cp \"$0\" \"$1\" && sync \"$1\"", p->out, p->copy, NULL };
    double ours = 1e9, peer = 1e9;
    for (int i = 0; i < rounds; i++) {
        unlink(p->out);
        unlink(p->copy);
        double a = run(argv), b = a < 0 || (i == 0 && check(p)) ? -1 : run(copy);
        if (b < 0)
            return -1;
        ours = least(ours, a);
        peer = least(peer, b);
    }
    print_row(name, parallel_threads(), bytes, ours, "cp and sync", peer);
    return 0;
}

static int bench_convert(const char *cairn, const struct paths *p, double bytes, int rounds)
{
    const char *const argv[] = { cairn, "tensor", "convert", p->in, p->out, "--dtype", "f32", NULL };
    return bench_command("convert bf16 file to f32 (bytes written)", argv, p, check_output, bytes * 2,
                         rounds);
}

/* Something was added: what, the tests know. */
static int check_merged(const struct paths *p)
{
    CLEANUP(source_close) struct tensor_source in = { 0 }, out = { 0 };
    uint16_t before[COLS], after[COLS];
    struct cairn_error err = { 0 };
    if (source_open(&in, p->in, &err) || source_open(&out, p->out, &err) ||
        source_read(&in, &in.tensors[0], 0, COLS, before, &err) ||
        source_read(&out, &out.tensors[0], 0, COLS, after, &err))
        return fail(&err);
    return memcmp(before, after, sizeof(before)) ? 0
                                                 : (fputs("bench_files: nothing was merged\n", stderr), -1);
}

static int bench_merge(const char *cairn, const struct paths *p, double bytes, int rounds)
{
    const char *const argv[] = { cairn, "tensor", "merge", p->in, p->lora, p->out, NULL };
    return bench_command("merge a LoRA of rank 32 into a bf16 file", argv, p, check_merged, bytes, rounds);
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

/* The same bytes into one small buffer again and again: the least that reading a cached file costs. */
static int read_hot(void *context, size_t piece, struct cairn_error *err)
{
    struct load *l = context;
    CLEANUP(mem_free) char *hot = malloc(HOT);
    for (size_t done = 0; hot && done < PIECE; done += HOT)
        if (pread(l->fd, hot, HOT, (off_t)(l->at + piece * PIECE + done)) != HOT)
            return cairn_fail_errno(err, "pread");
    return hot ? 0 : cairn_fail(err, CAIRN_ENOMEM, "no memory");
}

typedef int pass(struct load *l, size_t bytes, int threads, struct cairn_error *err);

static int pass_load(struct load *l, size_t bytes, int threads, struct cairn_error *err)
{
    return parallel_for(bytes / PIECE, threads, load_tensor, l, err);
}

static int pass_pread(struct load *l, size_t bytes, int threads, struct cairn_error *err)
{
    return parallel_for(bytes / PIECE, threads, load_bytes, l, err);
}

static int pass_hot(struct load *l, size_t bytes, int threads, struct cairn_error *err)
{
    return parallel_for(bytes / PIECE, threads, read_hot, l, err);
}

static int pass_check(struct load *l, size_t bytes, int threads, struct cairn_error *err)
{
    (void)bytes;
    CLEANUP(mem_free) struct scan_stats *stats = calloc(l->src.n_tensors, sizeof(*stats));
    return stats ? scan_source(&l->src, threads, stats, NULL, err)
                 : cairn_fail(err, CAIRN_ENOMEM, "no memory");
}

static const struct {
    const char *name, *peer;
    pass *run, *run_peer;
} passes[] = {
    { "load all tensors of a cached file", "pread", pass_load, pass_pread },
    { "check a cached bf16 file", "pread", pass_check, pass_pread },
    { "check a cached bf16 file", "pread into one 256 KiB buffer", pass_check, pass_hot },
};

static int bench_pass(struct load *l, size_t i, size_t bytes, int threads, int rounds)
{
    struct cairn_error err = { 0 };
    double ours = 1e9, peer = 1e9;
    for (int k = 0; k <= rounds; k++) { /* the first round warms up */
        double start = bench_now();
        int r = passes[i].run(l, bytes, threads, &err);
        double middle = bench_now();
        if (r || passes[i].run_peer(l, bytes, threads, &err))
            return fail(&err);
        ours = k ? least(ours, middle - start) : ours;
        peer = k ? least(peer, bench_now() - middle) : peer;
    }
    print_row(passes[i].name, threads, (double)bytes, ours, passes[i].peer, peer);
    return 0;
}

static int bench_passes(const struct paths *p, size_t bytes, int rounds)
{
    CLEANUP(mem_free) char *into = malloc(bytes);
    CLEANUP(fd_close) int fd = open(p->in, O_RDONLY | O_CLOEXEC);
    struct load l = { .into = into, .fd = fd };
    struct cairn_error err = { 0 };
    if (!into || fd < 0 || source_open(&l.src, p->in, &err))
        return fail(&err);
    l.at = l.src.tensors[0].at;
    memset(into, 1, bytes);
    int r = 0, all = parallel_threads();
    for (size_t i = 0; i < ARRAY_LEN(passes) && !r; i++)
        r = bench_pass(&l, i, bytes, 1, rounds) || (all > 1 && bench_pass(&l, i, bytes, all, rounds));
    source_close(&l.src);
    return r;
}

/* The command prints the seconds of cairn's reader and of the package, or why there is no package. */
static int bench_python(char *const *command, int n, const struct paths *p, size_t bytes, int rounds)
{
    const char *argv[16];
    char count[16], line[256] = "";
    double ours, theirs;
    int out[2];
    if (n < 1 || n > 12 || pipe(out))
        return 0;
    snprintf(count, sizeof(count), "%d", rounds);
    memcpy(argv, command, (size_t)n * sizeof(*argv));
    argv[n] = p->in, argv[n + 1] = count, argv[n + 2] = NULL;
    int r = run_to(argv, out[1]) < 0;
    close(out[1]);
    ssize_t got = read(out[0], line, sizeof(line) - 1);
    close(out[0]);
    if (r || got <= 0)
        return -1;
    if (sscanf(line, "%lf %lf", &ours, &theirs) != 2)
        return fprintf(stderr, "bench_files: no row for Python: %s", line), 0;
    print_row("Python: load a cached bf16 file as f32", parallel_threads(), (double)bytes, ours,
              "safetensors load_file and astype", theirs);
    return 0;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 2 ? argv[2] : ".";
    int gib = argc > 3 ? atoi(argv[3]) : 2, rounds = argc > 4 ? atoi(argv[4]) : 3;
    struct paths p;
    if (argc < 2 || gib < 1 || rounds < 1) {
        fputs("usage: bench_files CAIRN [FOLDER [GIBIBYTES [ROUNDS [COMMAND...]]]]\n", stderr);
        return 2;
    }
    snprintf(p.in, sizeof(p.in), "%.480s/bench-in.safetensors", folder);
    snprintf(p.lora, sizeof(p.lora), "%.480s/bench-lora.safetensors", folder);
    snprintf(p.out, sizeof(p.out), "%.480s/bench-out.safetensors", folder);
    snprintf(p.copy, sizeof(p.copy), "%.480s/bench-copy", folder);
    size_t bytes = (size_t)gib << 30;
    puts("machine,commit,case,threads,gb_per_s,peer,peer_gb_per_s,share");
    int r = make_inputs(&p, bytes / TENSOR_BYTES) || bench_convert(argv[1], &p, (double)bytes, rounds) ||
            bench_merge(argv[1], &p, (double)bytes, rounds) || bench_passes(&p, bytes, rounds) ||
            bench_python(argv + 5, argc - 5, &p, bytes, rounds);
    unlink(p.in);
    unlink(p.lora);
    unlink(p.out);
    unlink(p.copy);
    return r ? 1 : 0;
}
