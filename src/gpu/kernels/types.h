/* SPDX-License-Identifier: Apache-2.0
 * Types that kernels and their callers share.  This text is part of every kernel: it includes nothing. */
#ifndef CAIRN_GPU_KERNELS_TYPES_H
#define CAIRN_GPU_KERNELS_TYPES_H

typedef unsigned char k_u8;
typedef signed char k_i8;
typedef unsigned short k_u16;
typedef unsigned int k_u32;
typedef unsigned long long k_u64;
typedef long long k_i64;

/* How much a group takes, where it is not a row: K_SHARE numbers of an array, or as many rows of a matrix as make
 * about that.  The grid is K_GROUPS(n) or K_ROW_GROUPS(rows, columns) groups in x. */
#define K_SHARE 4096
#define K_GROUPS(n) (((n) + K_SHARE - 1) / K_SHARE)
#define K_GROUP_ROWS(columns) ((columns) < K_SHARE / 2 ? K_SHARE / (columns) : 1)
#define K_ROW_GROUPS(rows, columns) (((rows) + K_GROUP_ROWS(columns) - 1) / K_GROUP_ROWS(columns))

/* Kernels that read a row more than once take whole rows, so many for each group.  The grid is K_WHOLE_GROUPS groups
 * in x; more do nothing. */
#define K_WHOLE_ROWS(columns) ((columns) > 4096 ? 1 : (columns) > 2048 ? 2 : (columns) > 1024 ? 4 : 8)
#define K_WHOLE_GROUPS(rows, columns) (((rows) + K_WHOLE_ROWS(columns) - 1) / K_WHOLE_ROWS(columns))

/* Sums over rows are made in two passes.  The rows come in sets of rows_per_set (0: all are one set), each with its
 * own sum.  A group of the first pass sums up one part of a set, rows_per_part rows, over K_TILE columns: the
 * grid is sets * K_PARTS groups in x and K_TILES in y, the result [set][part][columns] in f32.  The second pass is
 * the kernel fold, whose groups take K_FOLD columns. */
#define K_TILE 256
#define K_TILES(columns) (((columns) + K_TILE - 1) / K_TILE)
#define K_FOLD 32
#define K_FOLDS(columns) (((columns) + K_FOLD - 1) / K_FOLD)
#define K_PARTS(rows_per_set, rows_per_part) (((rows_per_set) + (rows_per_part)-1) / (rows_per_part))

/* A group's place in the grid. */
struct k_place {
    int x, y, z;
};

/* Where a kernel of the debug build reports its first fault; the first work-item to claim it wins. */
struct k_fault {
    k_u32 claimed;
    k_u32 kind; /* K_FAULT_… */
    k_u32 line, item;
    k_u32 group[3];
    k_u32 bytes;        /* of a number that is not finite: its size, */
    k_u64 place;        /* its address */
    float value;        /* and itself, as it is stored */
    k_i64 index, limit; /* of a bad index */
};
/* K_FAULT_READ is a NaN that was there before, K_FAULT_MADE a NaN or an infinite number that was not. */
enum { K_FAULT_NONE, K_FAULT_INDEX, K_FAULT_READ, K_FAULT_MADE };

#endif
