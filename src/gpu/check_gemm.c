/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/check.h"

#include "gpu/blas.h"
#include <math.h>

struct matrix_case {
    size_t m, n, k, batches;
    bool a_transposed, b_transposed;
    bool bias, bias_rows, gelu, residual, c_f32;
    bool in_place; /* the residual is c */
    float alpha, beta;
    size_t pad; /* of every row */
};

static const struct matrix_case small[] = {
    { 1, 1, 1, 1, .alpha = 1 },
    { 5, 3, 7, 2, .alpha = 1, .bias = true },
    { 3, 130, 33, 1, .b_transposed = true, .alpha = 0.5f, .beta = 2, .pad = 3 },
    { 129, 17, 40, 1, .a_transposed = true, .alpha = 1, .bias = true, .gelu = true, .pad = 8 },
    { 70, 66, 31, 3, .a_transposed = true, .b_transposed = true, .alpha = 1, .residual = true, .pad = 1 },
    { 128, 128, 64, 1, .b_transposed = true, .alpha = 1, .bias = true, .bias_rows = true, .gelu = true,
      .residual = true },
    { 31, 140, 65, 1, .a_transposed = true, .alpha = 1, .beta = 1, .c_f32 = true },
    { 64, 72, 40, 2, .b_transposed = true, .alpha = 1, .bias = true, .gelu = true, .pad = 8 },
    { 48, 64, 32, 1, .alpha = 1, .bias = true, .c_f32 = true },
    { 40, 56, 24, 1, .b_transposed = true, .alpha = 2, .bias = true, .residual = true },
    { 8, 8, 0, 1, .alpha = 1, .bias = true },
    { 40, 56, 24, 1, .b_transposed = true, .alpha = 1, .bias = true, .residual = true, .in_place = true },
};
static const struct matrix_case back[] = {
    { 5, 3, 7, 1, .alpha = 1 },
    { 40, 64, 24, 1, .alpha = 1 },
};
static const struct matrix_case medium = { 300, 260, 520, 1, .b_transposed = true, .alpha = 1, .bias = true };

static double gelu(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* Of the case that runs. */
static struct blas *blas;
static struct cairn_error blas_error;

struct operands {
    struct check_tensor a, b, c, before, residual, bias;
    size_t a_stride, b_stride, c_stride, a_size, b_size, c_size;
};

static struct operands make_operands(struct check *c, const struct matrix_case *s)
{
    struct operands o = { .a_stride = (s->a_transposed ? s->m : s->k) + s->pad,
                          .b_stride = (s->b_transposed ? s->k : s->n) + s->pad,
                          .c_stride = s->n + s->pad };
    o.a_size = o.a_stride * (s->a_transposed ? s->k : s->m);
    o.b_size = o.b_stride * (s->b_transposed ? s->n : s->k);
    o.c_size = o.c_stride * s->m;
    o.a = check_input(c, o.a_size * s->batches, 1);
    o.b = check_input(c, o.b_size * s->batches, 1);
    /* What lies between the rows must stay as it was. */
    o.c = s->c_f32 ? check_input_f32(c, o.c_size * s->batches, 1) : check_input(c, o.c_size * s->batches, 1);
    o.before = check_input(c, o.c_size * s->batches, 1);
    o.residual = s->in_place ? o.c : check_input(c, o.c_size * s->batches, 1);
    o.bias = check_input_f32(c, s->m > s->n ? s->m : s->n, 1);
    return o;
}

/* What the product of one place becomes. */
static void finish(const struct matrix_case *s, const struct operands *o, size_t i, size_t j, size_t at,
                   double product, double *c, double *before)
{
    double sum = product * s->alpha + (s->bias ? o->bias.host[s->bias_rows ? i : j] : 0);
    before[at] = sum;
    sum = s->gelu ? gelu(sum) : sum;
    c[at] = sum + (s->residual ? o->residual.host[at] : 0) + s->beta * c[at];
}

static void reference(const struct matrix_case *s, const struct operands *o, size_t batch, double *c,
                      double *before)
{
    const float *a = o->a.host + batch * o->a_size, *b = o->b.host + batch * o->b_size;
    size_t a_row = s->a_transposed ? 1 : o->a_stride, a_column = s->a_transposed ? o->a_stride : 1;
    size_t b_row = s->b_transposed ? 1 : o->b_stride, b_column = s->b_transposed ? o->b_stride : 1;
    for (size_t i = 0; i < s->m; i++)
        for (size_t j = 0; j < s->n; j++) {
            double sum = 0;
            size_t at = batch * o->c_size + i * o->c_stride + j;
            for (size_t k = 0; k < s->k; k++)
                sum += (double)a[i * a_row + k * a_column] * b[k * b_row + j * b_column];
            finish(s, o, i, j, at, sum, c, before);
        }
}

/* A kernel of the table, or a way of blas. */
static void launch(struct check *c, const char *kernel, const struct matrix_case *s,
                   const struct gemm_args *args)
{
    if (kernel)
        CHECK_LAUNCH(c, kernel, ((struct gpu_grid){ gemm_tiles(s->m, s->n), 1, (unsigned)s->batches }),
                     *args);
    else if (check_ok(c) && blas_gemm(blas, NULL, check_storage(c), args, s->batches, &blas_error))
        check_complain(c, "%s", blas_error.msg);
}

static struct gemm_args args_of(const struct matrix_case *s, const struct operands *o)
{
    return (struct gemm_args){
        .c = o->c.device,
        .before = s->gelu ? o->before.device : NULL,
        .a = o->a.device,
        .b = o->b.device,
        .residual = s->residual ? o->residual.device : NULL,
        .bias = s->bias ? o->bias.device : NULL,
        .m = (k_i64)s->m,
        .n = (k_i64)s->n,
        .k = (k_i64)s->k,
        .a_stride = (k_i64)o->a_stride,
        .b_stride = (k_i64)o->b_stride,
        .c_stride = (k_i64)o->c_stride,
        .a_batch = (k_i64)o->a_size,
        .b_batch = (k_i64)o->b_size,
        .c_batch = (k_i64)o->c_size,
        .alpha = s->alpha,
        .beta = s->beta,
        .a_transposed = s->a_transposed,
        .b_transposed = s->b_transposed,
        .c_f32 = s->c_f32,
        .bias_rows = s->bias_rows,
        .gelu = s->gelu,
    };
}

static void multiply(struct check *c, const char *kernel, const struct matrix_case *s)
{
    struct operands o = make_operands(c, s);
    struct gemm_args args = args_of(s, &o);
    double *want = check_numbers(c, &o.c), *before = check_numbers(c, &o.before);
    for (size_t b = 0; b < s->batches; b++)
        reference(s, &o, b, want, before);
    launch(c, kernel, s, &args);
    double slack = 2 + sqrt((double)s->k);
    check_compare(c, &o.c, want, s->c_f32 || check_storage(c) == GPU_F32 ? slack : s->in_place ? 4 : 2);
    if (s->gelu)
        check_compare(c, &o.before, before, check_storage(c) == GPU_F32 ? slack : 2);
}

static double gelu_slope(double x)
{
    double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

/* A product and GELU's slope; `before` is what that is taken of. */
static void multiply_back(struct check *c, const struct matrix_case *s)
{
    struct operands o = make_operands(c, s);
    struct gemm_args args = args_of(s, &o);
    double *want = check_numbers(c, &o.c), *unused = check_numbers(c, &o.before);
    reference(s, &o, 0, want, unused);
    for (size_t i = 0; i < o.c_size; i++)
        want[i] *= gelu_slope(o.before.host[i]);
    if (check_ok(c) && blas_gemm_gelu_back(blas, NULL, check_storage(c), &args, o.before.device, &blas_error))
        check_complain(c, "%s", blas_error.msg);
    check_compare(c, &o.c, want, check_storage(c) == GPU_F32 ? 4 + sqrt((double)s->k) : 3);
}

static void multiply_all(struct check *c, const char *kernel)
{
    for (size_t i = 0; i < ARRAY_LEN(small); i++)
        multiply(c, kernel, &small[i]);
    multiply(c, kernel, &medium);
}

static void gemm(struct check *c)
{
    multiply_all(c, "gemm");
}

static void gemm_mma(struct check *c)
{
    multiply_all(c, "gemm_mma");
}

/* What c holds is the product; the kernel comes after a library that cannot do the rest. */
static void epilogue(struct check *c)
{
    for (size_t k = 0; k < ARRAY_LEN(small); k++) {
        struct matrix_case s = small[k];
        s.beta = 0;
        struct operands o = make_operands(c, &s);
        struct gemm_args args = args_of(&s, &o);
        double *want = check_numbers(c, &o.c), *before = check_numbers(c, &o.before);
        for (size_t row = 0; row < s.batches * s.m; row++)
            for (size_t j = 0; j < s.n; j++) {
                size_t at = row / s.m * o.c_size + row % s.m * o.c_stride + j;
                finish(&s, &o, row % s.m, j, at, o.c.host[at], want, before);
            }
        CHECK_LAUNCH(c, "gemm_epilogue", ((struct gpu_grid){ (unsigned)s.m, 1, (unsigned)s.batches }), args);
        check_compare(c, &o.c, want, 2);
        if (s.gelu)
            check_compare(c, &o.before, before, 2);
    }
}

static void multiply_by_way(struct check *c)
{
    multiply_all(c, NULL);
    for (size_t i = 0; i < ARRAY_LEN(back); i++)
        multiply_back(c, &back[i]);
}

/* Every way of blas that this device has, and then the choice between them. */
static void all_ways(struct check *c)
{
    const char *way, *why;
    if (blas_open(check_gpu(c), &blas, &blas_error)) {
        check_complain(c, "%s", blas_error.msg);
        return;
    }
    for (size_t i = 0; (way = blas_way(blas, i, &why)); i++)
        if (!why[0] && !blas_force(blas, way, &blas_error))
            multiply_by_way(c);
    blas_force(blas, NULL, &blas_error);
    multiply(c, NULL, &medium);
    multiply_back(c, &back[1]);
    blas_close(blas);
}

const struct check_case checks_gemm[] = {
    { "gemm", gemm, false },
    { "gemm_mma", gemm_mma, false },
    { "gemm_epilogue", epilogue, false },
    { "blas", all_ways, false },
};
const size_t n_checks_gemm = ARRAY_LEN(checks_gemm);
