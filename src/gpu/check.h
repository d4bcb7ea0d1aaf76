/* SPDX-License-Identifier: Apache-2.0
 * Checks every kernel on a device against a plain reference in double precision.
 *
 * A case makes inputs, launches a kernel and computes the expected results.  Inputs are rounded to the format
 * under test first, so that both sides start with the same values.  Functions do nothing after the first
 * failure, so a case need not check for errors.  Its memory is freed when it ends. */
#ifndef CAIRN_GPU_CHECK_H
#define CAIRN_GPU_CHECK_H

#include "gpu/gpu.h"
#include <stdint.h>

struct check; /* a case in progress */

struct check_tensor {
    size_t n;
    bool f32;    /* always f32, whatever the format under test */
    float *host; /* inputs: the numbers; outputs: what came back, after check_fetch */
    void *device;
};

/* Normally distributed values times scale, the same for the same case. */
struct check_tensor check_input(struct check *c, size_t n, float scale);
struct check_tensor check_input_f32(struct check *c, size_t n, float scale);
/* Given numbers, rounded to the format. */
struct check_tensor check_values(struct check *c, size_t n, const float *values);
/* Element i becomes NaN: results that depend on it must be NaN too, or they would hide an earlier error. */
void check_poison(struct check *c, struct check_tensor *t, size_t i);
/* From now on values may be NaN or Inf: the debug build is right to report them. */
void check_allow_odd(struct check *c);
/* Memory for results, filled with NaN, so that an element that was not written is noticed. */
struct check_tensor check_output(struct check *c, size_t n);
struct check_tensor check_output_f32(struct check *c, size_t n);
/* Bytes on the device, for whole numbers and states; NULL after a failure. */
void *check_bytes(struct check *c, const void *bytes, size_t n);
void check_read_bytes(struct check *c, void *into, const void *device, size_t n);
/* Double precision results; owned by the case. */
double *check_doubles(struct check *c, size_t n);
double *check_zeros(struct check *c, size_t n);
double *check_numbers(struct check *c, const struct check_tensor *t); /* those that it has on the host */

#define CHECK_LAUNCH(c, name, grid, args) check_launch(c, name, grid, &(args), sizeof(args))
void check_launch(struct check *c, const char *kernel, struct gpu_grid grid, const void *args,
                  size_t args_size);
/* What a case called itself has failed: so has the case, but where the debug build found an odd number that
 * may be. */
void check_gave_up(struct check *c, const struct cairn_error *err);
void check_fetch(struct check *c, struct check_tensor *t);
/* Compares: |got - want| is measured against the largest |want|; what remains is the error of the case.
 * `slack` is how many roundings of the output's format (or of f32, whichever is larger) are fine. */
void check_compare(struct check *c, struct check_tensor *got, const double *want, double slack);
void check_equal_bytes(struct check *c, const void *device, const void *want, size_t n);
void check_complain(struct check *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* the result is wrong */

struct gpu *check_gpu(struct check *c);
enum gpu_storage check_storage(const struct check *c);
bool check_ok(const struct check *c); /* nothing failed so far */
double check_random(struct check *c); /* uniform in (0, 1) */
/* The format under test by its definition; codes have the bits of a number, 16 or 32 of them. */
float check_widen(const struct check *c, uint32_t code);
uint32_t check_narrow(const struct check *c, float f);

/* A row of the table: one kernel, shown under its name, tried for each format that it is there for. */
struct check_case {
    const char *kernel;
    void (*run)(struct check *c);
    bool f32_only; /* has no storage of its own */
};
extern const struct check_case checks_adafactor[], checks_attention[], checks_columns[], checks_conv[],
    checks_elementwise[], checks_embedding[], checks_gemm[], checks_move[], checks_norm[], checks_optim[],
    checks_quant[], checks_random[], checks_reduce[], checks_rope[], checks_small_linear[], checks_softmax[],
    checks_vae[];
extern const size_t n_checks_adafactor, n_checks_attention, n_checks_columns, n_checks_conv,
    n_checks_elementwise, n_checks_embedding, n_checks_gemm, n_checks_move, n_checks_norm, n_checks_optim,
    n_checks_quant, n_checks_random, n_checks_reduce, n_checks_rope, n_checks_small_linear, n_checks_softmax,
    n_checks_vae;

struct check_result {
    const char *kernel;
    enum gpu_storage storage;
    bool ok;
    bool failed;      /* it could not be run; otherwise, if not ok, its results are wrong */
    double error;     /* the worst, in units of the tolerance */
    double relative;  /* that error, relative to the largest number */
    double tolerance; /* what is allowed there */
    char why[256];    /* of a failure */
    char hint[256];   /* what to do about it; may be empty */
};

/* The nth case of all tables; NULL past the last. */
const struct check_case *check_nth(size_t nth);
/* One case; false: it is not there for this format on this device. */
bool check_run(struct gpu *g, const struct check_case *row, enum gpu_storage s, struct check_result *out);

/* Runs every case on the device; *out is malloced.  -1 only when nothing could be run.  `stop` may be NULL;
 * it is asked between cases.  A lost device ends it: there are fewer results then. */
int check_all(struct gpu *g, const char *only, bool (*stop)(void), struct check_result **out, size_t *n,
              struct cairn_error *err);

#endif
