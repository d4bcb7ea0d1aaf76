/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gemm_cpu.h"

#include "gpu/backend.h"
#include "gpu/cpu_rows.h"
#include "base/int.h"

CPU_ROWS(gemm_cpu, cpus);

/* Rows of a, or columns of b, that a thread packs at a time: whole panels of every kind. */
enum { PACK = 48 };
/* Floats of a matrix packed at a time: about what the caches hold while the other is packed as a whole. */
enum { PACKED_MOST = 8 << 20, PACKED_BESIDE = 1 << 19 /* for each thread */ };

struct job {
    const struct gemm_cpu *cpu;
    const struct gemm_args *args;
    size_t batch;
    size_t row, rows, column, columns; /* the part of c */
    float *a, *b;
    size_t tile_rows, tile_columns, tiles_down;
    const struct gemm_cpu_rows *source; /* of the rows of a; NULL: they are in memory */
    float *read;                        /* a panel of rows for each piece that is packed */
};

/* A panel of rows at a time: what was read is packed from the cache. */
static void pack_read(const struct job *j, size_t piece, size_t at, size_t n)
{
    size_t k = (size_t)j->args->k, panel = j->cpu->rows;
    struct gemm_args here = *j->args;
    here.a = j->read + piece * panel * k;
    here.a_stride = here.k;
    for (size_t i = 0; i < n; i += panel) {
        size_t some = at_most(n - i, panel);
        j->source->read(j->source->context, j->row + at + i, some, (void *)here.a);
        j->cpu->pack_a(&here, 0, 0, some, j->a + (at + i) * k);
    }
}

static void pack_a(void *context, size_t piece)
{
    const struct job *j = context;
    size_t at = piece * PACK, n = at_most(j->rows - at, PACK);
    if (j->source)
        pack_read(j, piece, at, n);
    else
        j->cpu->pack_a(j->args, j->batch, j->row + at, n, j->a + at * (size_t)j->args->k);
}

static void pack_b(void *context, size_t piece)
{
    const struct job *j = context;
    size_t at = piece * PACK, n = at_most(j->columns - at, PACK);
    j->cpu->pack_b(j->args, j->batch, j->column + at, n, j->b + at * (size_t)j->args->k);
}

/* Neighbouring pieces share columns of b. */
static void make_tile(void *context, size_t piece)
{
    const struct job *j = context;
    size_t row = piece % j->tiles_down * j->tile_rows, column = piece / j->tiles_down * j->tile_columns;
    struct gemm_cpu_tile t = {
        .args = j->args,
        .batch = j->batch,
        .row = j->row + row,
        .column = j->column + column,
        .rows = at_most(j->rows - row, j->tile_rows),
        .columns = at_most(j->columns - column, j->tile_columns),
        .a = j->a + row * (size_t)j->args->k,
        .b = j->b + column * (size_t)j->args->k,
    };
    j->cpu->tile(&t);
}

/* Rows (or columns) that are packed at once: whole tiles, and whole panels since those divide a tile. */
static size_t part_of(size_t n, size_t tile, size_t k, size_t most)
{
    size_t part = most / k / tile * tile;
    return at_most(div_up(n, tile) * tile, part ? part : tile);
}

/* n in as many parts as it takes, about equal; a whole number of panels in each. */
static size_t even(size_t n, size_t most, size_t panel)
{
    size_t part = div_up(n, div_up(n, most));
    return div_up(part, panel) * panel;
}

/* Tiles of about equal size, smaller ones where the threads would not have a few each.  Returns how many. */
static size_t cut(struct job *j, size_t threads)
{
    enum { FEW = 3, LEAST = 48 };
    size_t rows = GEMM_CPU_ROWS, columns = GEMM_CPU_COLUMNS;
    for (;;) {
        j->tile_rows = even(j->rows, rows, j->cpu->rows);
        j->tile_columns = even(j->columns, columns, j->cpu->columns);
        j->tiles_down = div_up(j->rows, j->tile_rows);
        size_t tiles = j->tiles_down * div_up(j->columns, j->tile_columns);
        if (tiles >= FEW * threads || (rows <= LEAST && columns <= LEAST))
            return tiles;
        if (rows >= columns)
            rows /= 2;
        else
            columns /= 2;
    }
}

/* How much of a and of b is packed at a time. */
static void choose_parts(const struct gpu *g, size_t m, size_t n, size_t k, size_t *rows, size_t *columns)
{
    size_t beside = PACKED_BESIDE * (size_t)g->info.units;
    *rows = part_of(m, GEMM_CPU_ROWS, k, PACKED_MOST);
    *columns = part_of(n, GEMM_CPU_COLUMNS, k, PACKED_MOST);
    bool a_whole = *rows >= m, b_whole = *columns >= n;
    if (a_whole && (m <= n || !b_whole))
        *columns = part_of(n, GEMM_CPU_COLUMNS, k, beside);
    else if (b_whole)
        *rows = part_of(m, GEMM_CPU_ROWS, k, beside);
}

size_t gemm_cpu_scratch(const struct gpu *g, size_t m, size_t n, size_t k)
{
    size_t rows, columns;
    choose_parts(g, m, n, k, &rows, &columns);
    return (rows + columns) * k;
}

size_t gemm_cpu_scratch_rows(const struct gpu *g, enum gpu_storage storage, size_t m, size_t n, size_t k)
{
    size_t rows, columns;
    choose_parts(g, m, n, k, &rows, &columns);
    return (rows + columns + div_up(rows, PACK) * cpus[storage][gpu_host_variant(g)]->rows) * k;
}

int gemm_cpu_reserve(struct gpu *g, size_t n, struct cairn_error *err)
{
    float *scratch;
    return gpu_host_scratch(g, n, &scratch, err);
}

size_t gemm_cpu_reserved(const struct gpu *g)
{
    return gpu_info(g)->api == GPU_API_HOST ? gpu_host_scratch_size(g) : 0;
}

static int run(struct gpu *g, enum gpu_storage storage, const struct gemm_args *args, size_t batches,
               const struct gemm_cpu_rows *source, struct cairn_error *err)
{
    struct job j = { .cpu = cpus[storage][gpu_host_variant(g)], .args = args, .source = source };
    size_t m = (size_t)args->m, n = (size_t)args->n, k = (size_t)args->k + !args->k, rows, columns;
    choose_parts(g, m, n, k, &rows, &columns);
    size_t read = source ? div_up(rows, PACK) * j.cpu->rows * k : 0;
    if (gpu_host_scratch(g, (rows + columns) * k + read, &j.a, err))
        return -1;
    j.b = j.a + rows * k;
    j.read = j.b + columns * k;
    for (j.batch = 0; j.batch < batches; j.batch++)
        for (j.column = 0; j.column < n; j.column += columns) {
            j.columns = at_most(n - j.column, columns);
            gpu_host_run(g, div_up(j.columns, PACK), pack_b, &j);
            for (j.row = 0; j.row < m; j.row += rows) {
                j.rows = at_most(m - j.row, rows);
                if (rows < m || !j.column) /* else it is there from the columns before */
                    gpu_host_run(g, div_up(j.rows, PACK), pack_a, &j);
                gpu_host_run(g, cut(&j, (size_t)g->info.units), make_tile, &j);
            }
        }
    return 0;
}

int gemm_cpu_run(struct gpu *g, enum gpu_storage storage, const struct gemm_args *args, size_t batches,
                 struct cairn_error *err)
{
    return run(g, storage, args, batches, NULL, err);
}

int gemm_cpu_run_rows(struct gpu *g, enum gpu_storage storage, const struct gemm_args *args,
                      const struct gemm_cpu_rows *rows, struct cairn_error *err)
{
    return run(g, storage, args, 1, rows, err);
}
