/* SPDX-License-Identifier: Apache-2.0
 * Conversions and the scan in memory, each beside a peer that moves the same bytes in the same run: memcpy for
 * conversions, a plain reading loop for the scan; on one thread and on all.
 *
 *     bench_dtype [MEGABYTES [ROUNDS]]     default: 256 MiB of f32, best of 9
 *     bench_dtype --all                    no times: every f32 bit pattern to every narrow kind, against the reference
 *
 * Results are checked before they are timed.  CSV: GB/s is bytes read plus bytes written; share is the peer's
 * time divided by ours.  Rounds alternate, so that both meet the same neighbours on a shared machine. */
#include "bench.h"

#include "base/cleanup.h"
#include "base/thread.h"
#include "tensor/dtype.h"
#include "tensor/scan.h"
#include <inttypes.h>

struct bench {
    enum dtype from, to; /* to DTYPE_OTHER: the scan */
    size_t n, bytes;     /* elements; room for them, as f32 or f64 */
    int threads;
    char *src, *dst, *peer_src, *peer_dst;
    size_t peer_bytes; /* read by the peer; written too, when it is memcpy */
    struct scan_stats stats[256];
    uint64_t sink;
};

/* Slices start at multiples of this, so that none shares a cache line or a chunk of the scan. */
enum { SLICE_OF = SCAN_CHUNK };

static void slice(size_t n, int threads, size_t piece, size_t *first, size_t *length)
{
    size_t each = (n / (size_t)threads + SLICE_OF - 1) / SLICE_OF * SLICE_OF;
    *first = piece * each < n ? piece * each : n;
    *length = n - *first < each ? n - *first : each;
}

static int run_ours(void *context, size_t piece, struct cairn_error *err)
{
    struct bench *b = context;
    size_t first, n;
    (void)err;
    slice(b->n, b->threads, piece, &first, &n);
    const char *src = b->src + first * dtype_size(b->from);
    if (b->to == DTYPE_OTHER) {
        scan_init(&b->stats[piece]);
        scan_add(&b->stats[piece], b->from, src, n);
    } else {
        dtype_convert(b->dst + first * dtype_size(b->to), b->to, src, b->from, n, &(struct dtype_how){ 0 });
    }
    return 0;
}

static uint64_t read_words(const char *p, size_t bytes)
{
    uint64_t sum[8] = { 0 };
    for (size_t i = 0; i + 64 <= bytes; i += 64)
        for (size_t k = 0; k < 8; k++) {
            uint64_t word;
            memcpy(&word, p + i + 8 * k, 8);
            sum[k] ^= word;
        }
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

static int run_peer(void *context, size_t piece, struct cairn_error *err)
{
    struct bench *b = context;
    size_t first, n;
    (void)err;
    slice(b->peer_bytes, b->threads, piece, &first, &n);
    if (b->to == DTYPE_OTHER)
        __atomic_fetch_xor(&b->sink, read_words(b->peer_src + first, n), __ATOMIC_RELAXED);
    else
        memcpy(b->peer_dst + first, b->peer_src + first, n);
    return 0;
}

static double seconds(struct bench *b, int (*fn)(void *context, size_t piece, struct cairn_error *err))
{
    struct cairn_error err;
    double start = bench_now();
    parallel_for((size_t)b->threads, b->threads, fn, b, &err);
    return bench_now() - start;
}

static double best(double a, double b)
{
    return a < b ? a : b;
}

/* The reference for any pair that has f32 on one side. */
static void reference(void *dst, enum dtype to, const void *src, enum dtype from, size_t n)
{
    struct dtype_ops c;
    dtype_ops_init(&c, 0);
    switch (to == DTYPE_F32 ? from : to) {
    case DTYPE_BF16:
        to == DTYPE_F32 ? c.bf16_to_f32(dst, src, n) : c.f32_to_bf16(dst, src, n, false);
        break;
    case DTYPE_F16:
        to == DTYPE_F32 ? c.f16_to_f32(dst, src, n) : c.f32_to_f16(dst, src, n, false);
        break;
    case DTYPE_F8_E4M3:
        to == DTYPE_F32 ? c.e4m3_to_f32(dst, src, n) : c.f32_to_e4m3(dst, src, n, false);
        break;
    default:
        to == DTYPE_F32 ? c.e5m2_to_f32(dst, src, n) : c.f32_to_e5m2(dst, src, n, false);
        break;
    }
}

static bool stats_equal(const struct bench *b)
{
    struct scan_ops c;
    struct scan_stats all, want;
    scan_ops_init(&c, 0);
    scan_init(&all);
    scan_init(&want);
    for (int i = 0; i < b->threads; i++)
        scan_merge(&all, &b->stats[i]);
    scan_add_with(&c, &want, b->from, b->src, b->n);
    return all.n == want.n && all.zero == want.zero && all.nan == want.nan && all.inf == want.inf &&
           all.subnormal == want.subnormal && all.min == want.min && all.max == want.max;
}

static bool result_is_right(struct bench *b)
{
    size_t bytes = b->n * dtype_size(b->to);
    seconds(b, run_ours);
    if (b->to == DTYPE_OTHER)
        return stats_equal(b);
    CLEANUP(mem_free) char *want = malloc(bytes);
    if (!want)
        return false;
    reference(want, b->to, b->src, b->from, b->n);
    return !memcmp(want, b->dst, bytes);
}

static int measure(struct bench *b, const char *name, int rounds)
{
    bool scan = b->to == DTYPE_OTHER;
    size_t moved = b->n * (dtype_size(b->from) + dtype_size(b->to));
    b->peer_bytes = scan ? moved : moved / 2;
    if (!result_is_right(b)) {
        fprintf(stderr, "bench_dtype: %s: wrong result\n", name);
        return 1;
    }
    seconds(b, run_peer);
    double ours = 1e9, peer = 1e9;
    for (int i = 0; i < rounds; i++) {
        ours = best(ours, seconds(b, run_ours));
        peer = best(peer, seconds(b, run_peer));
    }
    printf("%s,%s,%s,%d,%.2f,%s,%.2f,%.2f\n", bench_machine(), bench_commit(), name, b->threads,
           (double)moved / ours / 1e9, scan ? "read" : "memcpy", (double)moved / peer / 1e9, peer / ours);
    fflush(stdout);
    return 0;
}

static const struct {
    const char *name;
    enum dtype from, to;
} cases[] = {
    { "bf16 to f32", DTYPE_BF16, DTYPE_F32 },       { "f32 to bf16", DTYPE_F32, DTYPE_BF16 },
    { "f16 to f32", DTYPE_F16, DTYPE_F32 },         { "f32 to f16", DTYPE_F32, DTYPE_F16 },
    { "f8_e4m3 to f32", DTYPE_F8_E4M3, DTYPE_F32 }, { "f32 to f8_e4m3", DTYPE_F32, DTYPE_F8_E4M3 },
    { "f8_e5m2 to f32", DTYPE_F8_E5M2, DTYPE_F32 }, { "f32 to f8_e5m2", DTYPE_F32, DTYPE_F8_E5M2 },
    { "scan f32", DTYPE_F32, DTYPE_OTHER },         { "scan bf16", DTYPE_BF16, DTYPE_OTHER },
    { "scan f16", DTYPE_F16, DTYPE_OTHER },         { "scan f64", DTYPE_F64, DTYPE_OTHER },
    { "scan f8_e4m3", DTYPE_F8_E4M3, DTYPE_OTHER }, { "scan f8_e5m2", DTYPE_F8_E5M2, DTYPE_OTHER },
};

/* Weights as they are: finite f32 around zero, in the kind the case starts from. */
static void fill(struct bench *b, enum dtype from)
{
    enum { AT_ONCE = 4096 };
    float block[AT_ONCE];
    uint64_t state = 88172645463325252;
    for (size_t at = 0; at < b->n; at += AT_ONCE) {
        size_t m = b->n - at < AT_ONCE ? b->n - at : AT_ONCE;
        for (size_t i = 0; i < m; i++) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            block[i] = (float)(int32_t)state * 0x1p-33f;
        }
        dtype_convert(b->src + at * dtype_size(from), from, block, DTYPE_F32, m, &(struct dtype_how){ 0 });
    }
}

static int alloc_memory(struct bench *b, size_t bytes)
{
    char **all[] = { &b->src, &b->dst, &b->peer_src, &b->peer_dst };
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        *all[i] = aligned_alloc(4096, bytes);
        if (!*all[i])
            return fputs("bench_dtype: no memory\n", stderr), 1;
        memset(*all[i], 1, bytes); /* pages are there before the clock runs */
    }
    return 0;
}

static int run_case(struct bench *b, size_t i, int rounds)
{
    int all = parallel_threads();
    b->from = cases[i].from;
    b->to = cases[i].to;
    b->n = b->bytes / (b->from == DTYPE_F64 ? sizeof(double) : sizeof(float));
    fill(b, b->from);
    b->threads = 1;
    if (measure(b, cases[i].name, rounds))
        return 1;
    b->threads = all;
    return all > 1 ? measure(b, cases[i].name, rounds) : 0;
}

static int bench_all(size_t megabytes, int rounds)
{
    size_t bytes = megabytes << 20;
    struct bench b = { .bytes = bytes };
    int failed = alloc_memory(&b, bytes);
    if (!failed)
        puts("machine,commit,case,threads,gb_per_s,peer,peer_gb_per_s,share");
    for (size_t i = 0; i < ARRAY_LEN(cases) && !failed; i++)
        failed = run_case(&b, i, rounds);
    free(b.src);
    free(b.dst);
    free(b.peer_src);
    free(b.peer_dst);
    return failed;
}

/* 2^32 patterns in pieces of 2^16, by what dtype_convert chooses on this CPU and by the reference. */
enum { PATTERNS = 1 << 16 };

static int compare_patterns(void *context, size_t piece, struct cairn_error *err)
{
    enum dtype to = *(const enum dtype *)context;
    CLEANUP(mem_free) uint32_t *src = malloc(PATTERNS * 4);
    CLEANUP(mem_free) char *got = malloc(PATTERNS * 2);
    CLEANUP(mem_free) char *want = malloc(PATTERNS * 2);
    if (!src || !got || !want)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    for (size_t i = 0; i < PATTERNS; i++)
        src[i] = (uint32_t)(piece * PATTERNS + i);
    dtype_convert(got, to, src, DTYPE_F32, PATTERNS, &(struct dtype_how){ 0 });
    reference(want, to, src, DTYPE_F32, PATTERNS);
    for (size_t i = 0, size = dtype_size(to); i < PATTERNS; i++)
        if (memcmp(got + i * size, want + i * size, size))
            return cairn_fail(err, CAIRN_EFORMAT, "f32 %08" PRIx32 " to %s differs", src[i], dtype_name(to));
    return 0;
}

static int exhaustive(void)
{
    static const enum dtype kinds[] = { DTYPE_BF16, DTYPE_F16, DTYPE_F8_E4M3, DTYPE_F8_E5M2 };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct cairn_error err = { 0 };
        enum dtype to = kinds[i];
        double start = bench_now();
        if (parallel_for(1 << 16, 0, compare_patterns, &to, &err)) {
            fprintf(stderr, "bench_dtype: %s\n", err.msg);
            return 1;
        }
        printf("f32 to %s: all 4294967296 patterns as the reference, %.0f s\n", dtype_name(to),
               bench_now() - start);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--all"))
        return exhaustive();
    int megabytes = argc > 1 ? atoi(argv[1]) : 256, rounds = argc > 2 ? atoi(argv[2]) : 9;
    if (megabytes < 1 || rounds < 1 || parallel_threads() > (int)ARRAY_LEN(((struct bench *)0)->stats)) {
        fputs("usage: bench_dtype [MEGABYTES [ROUNDS]] | --all\n", stderr);
        return 2;
    }
    return bench_all((size_t)megabytes, rounds);
}
