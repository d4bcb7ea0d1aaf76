/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gemm_cpu.h"

#include "gpu/backend.h"

#define ROW(storage, variant) gemm_cpu_##storage##_##variant
extern const struct gemm_cpu ROW(f32, plain), ROW(bf16, plain), ROW(f16, plain);
#ifdef KERNELS_WIDE /* the build has them */
extern const struct gemm_cpu ROW(f32, avx2), ROW(bf16, avx2), ROW(f16, avx2);
extern const struct gemm_cpu ROW(f32, avx512), ROW(bf16, avx512), ROW(f16, avx512);
#define ROWS(storage)                                                           \
    [KERNEL_PLAIN] = &ROW(storage, plain), [KERNEL_AVX2] = &ROW(storage, avx2), \
    [KERNEL_AVX512] = &ROW(storage, avx512)
#else
#define ROWS(storage) [KERNEL_PLAIN] = &ROW(storage, plain)
#endif
const struct gemm_cpu *const gemm_cpus[GPU_STORAGES][KERNEL_VARIANTS] = {
    [GPU_F32] = { ROWS(f32) },
    [GPU_BF16] = { ROWS(bf16) },
    [GPU_F16] = { ROWS(f16) },
};

/* Packed panels of a part of the matrices: no more than this many numbers of each at a time. */
enum { PACKED_MOST = 8 << 20 };

struct job {
    const struct gemm_cpu *cpu;
    const struct gemm_args *args;
    size_t batch;
    size_t row, rows, column, columns; /* the part of c */
    float *a, *b;
    size_t tiles_down;
};

static size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

static void pack_a(void *context, size_t piece)
{
    const struct job *j = context;
    size_t at = piece * j->cpu->rows, n = at_most(j->rows - at, j->cpu->rows);
    j->cpu->pack_a(j->args, j->batch, j->row + at, n, j->a + at * (size_t)j->args->k);
}

static void pack_b(void *context, size_t piece)
{
    const struct job *j = context;
    size_t at = piece * j->cpu->columns, n = at_most(j->columns - at, j->cpu->columns);
    j->cpu->pack_b(j->args, j->batch, j->column + at, n, j->b + at * (size_t)j->args->k);
}

/* Neighbouring pieces share columns of b. */
static void make_tile(void *context, size_t piece)
{
    const struct job *j = context;
    size_t row = piece % j->tiles_down * GEMM_CPU_ROWS, column = piece / j->tiles_down * GEMM_CPU_COLUMNS;
    struct gemm_cpu_tile t = {
        .args = j->args,
        .batch = j->batch,
        .row = j->row + row,
        .column = j->column + column,
        .rows = at_most(j->rows - row, GEMM_CPU_ROWS),
        .columns = at_most(j->columns - column, GEMM_CPU_COLUMNS),
        .a = j->a + row * (size_t)j->args->k,
        .b = j->b + column * (size_t)j->args->k,
    };
    j->cpu->tile(&t);
}

static size_t pieces_of(size_t n, size_t size)
{
    return (n + size - 1) / size;
}

/* Rows (or columns) that are packed at once: whole tiles, and whole panels since those divide a tile. */
static size_t part_of(size_t n, size_t tile, k_i64 k)
{
    size_t most = PACKED_MOST / (k > 0 ? (size_t)k : 1) / tile * tile;
    return at_most(pieces_of(n, tile) * tile, most ? most : tile);
}

int gemm_cpu_run(struct gpu *g, enum gpu_storage storage, const struct gemm_args *args, size_t batches,
                 struct cairn_error *err)
{
    struct job j = { .cpu = gemm_cpus[storage][gpu_host_variant(g)], .args = args };
    size_t m = (size_t)args->m, n = (size_t)args->n, k = (size_t)args->k + !args->k;
    size_t rows = part_of(m, GEMM_CPU_ROWS, args->k), columns = part_of(n, GEMM_CPU_COLUMNS, args->k);
    if (gpu_host_room(g, (rows + columns) * k, &j.a, err))
        return -1;
    j.b = j.a + rows * k;
    for (j.batch = 0; j.batch < batches; j.batch++)
        for (j.column = 0; j.column < n; j.column += columns) {
            j.columns = at_most(n - j.column, columns);
            gpu_host_run(g, pieces_of(j.columns, j.cpu->columns), pack_b, &j);
            for (j.row = 0; j.row < m; j.row += rows) {
                j.rows = at_most(m - j.row, rows);
                j.tiles_down = pieces_of(j.rows, GEMM_CPU_ROWS);
                gpu_host_run(g, pieces_of(j.rows, j.cpu->rows), pack_a, &j);
                gpu_host_run(g, j.tiles_down * pieces_of(j.columns, GEMM_CPU_COLUMNS), make_tile, &j);
            }
        }
    return 0;
}
