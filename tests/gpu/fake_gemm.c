/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_gemm.h"

#include "fake.h"
#include "gpu/f16_ref.h"
#include <math.h>
#include <stdio.h>
#include <time.h>

int hipStreamCreateWithFlags(void **stream, unsigned flags);
int hipStreamSynchronize(void *stream);
int hipStreamDestroy(void *stream);
int hipMemcpyDtoHAsync(void *dst, void *src, size_t n, void *stream);
int hipMemcpyHtoDAsync(void *dst, void *src, size_t n, void *stream);

static bool is_word(const char *name, const char *value)
{
    const char *at = fake_word(name);
    return at && !strncmp(at, value, strlen(value));
}

int fake_open(const char *name)
{
    if (is_word(name, "abort"))
        abort();
    return is_word(name, "error");
}

static size_t width(const struct fake_matrix *x)
{
    return x->storage == GPU_F32 ? 4 : 2;
}

static float get(const struct fake_matrix *x, const char *bytes, int64_t at)
{
    float f;
    uint16_t code;
    if (x->storage == GPU_F32)
        return memcpy(&f, bytes + at * 4, 4), f;
    memcpy(&code, bytes + at * 2, 2);
    return f16_to_float(x->storage, code);
}

static void put(const struct fake_matrix *x, char *bytes, int64_t at, float f)
{
    uint16_t code;
    if (x->storage == GPU_F32) {
        memcpy(bytes + at * 4, &f, 4);
        return;
    }
    code = f16_from_float(x->storage, f);
    memcpy(bytes + at * 2, &code, 2);
}

/* Of one matrix of a batch, with the gaps between its columns. */
static size_t extent(const struct fake_matrix *x, int64_t rows, int64_t columns)
{
    int64_t r = x->transposed ? columns : rows, c = x->transposed ? rows : columns;
    return (size_t)((c - 1) * x->ld + r);
}

static char *place_of(const struct fake_matrix *x, int64_t batch)
{
    return (char *)x->device + (size_t)(batch * x->stride) * width(x);
}

/* The numbers as they lie there, widened; NULL: not the device's memory. */
static float *fetch(const struct fake_matrix *x, int64_t rows, int64_t columns, int64_t batch)
{
    size_t n = extent(x, rows, columns);
    char *bytes = malloc(n * width(x));
    float *numbers = malloc(n * sizeof(*numbers));
    void *stream = NULL;
    bool bad = !bytes || !numbers || hipStreamCreateWithFlags(&stream, 1) ||
               hipMemcpyDtoHAsync(bytes, place_of(x, batch), n * width(x), stream) ||
               hipStreamSynchronize(stream);
    for (size_t i = 0; i < n && !bad; i++)
        numbers[i] = get(x, bytes, (int64_t)i);
    if (stream)
        hipStreamDestroy(stream);
    free(bytes);
    if (!bad)
        return numbers;
    free(numbers);
    return NULL;
}

static int store(const struct fake_matrix *x, const float *numbers, size_t n, int64_t batch)
{
    char *bytes = malloc(n * width(x));
    void *stream = NULL;
    for (size_t i = 0; bytes && i < n; i++)
        put(x, bytes, (int64_t)i, numbers[i]);
    int bad = !bytes || hipStreamCreateWithFlags(&stream, 1) ||
              hipMemcpyHtoDAsync(place_of(x, batch), bytes, n * width(x), stream);
    if (stream)
        hipStreamDestroy(stream);
    free(bytes);
    return bad;
}

static float gelu(float x)
{
    return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

static float gelu_slope(float x)
{
    float u = 0.7978845608f * (x + 0.044715f * x * x * x), t = tanhf(u);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608f * (1 + 0.134145f * x * x);
}

/* Numbers of one matrix of a batch; NULL where there is none. */
struct numbers {
    float *x, *y, *z, *from, *bias, *aux;
};

static void numbers_release(struct numbers *n)
{
    free(n->x);
    free(n->y);
    free(n->z);
    free(n->from);
    free(n->bias);
    free(n->aux);
}

static int numbers_fetch(struct numbers *v, int64_t m, int64_t n, const struct fake_matrix *c,
                         const struct fake_rest *rest, int64_t batch)
{
    v->from = fetch(rest->from.device ? &rest->from : c, m, n, batch);
    v->bias = rest->bias.device ? fetch(&rest->bias, m, 1, 0) : NULL;
    v->aux = rest->aux.device ? fetch(&rest->aux, m, n, batch) : NULL;
    return !v->x || !v->y || !v->z || !v->from || (rest->bias.device && !v->bias) ||
           (rest->aux.device && !v->aux);
}

static int multiply_one(int64_t m, int64_t n, int64_t k, float alpha, const struct fake_matrix *a,
                        const struct fake_matrix *b, float beta, const struct fake_matrix *c,
                        const struct fake_rest *rest, int64_t batch)
{
    struct numbers v = { .x = fetch(a, m, k, batch), .y = fetch(b, k, n, batch), .z = fetch(c, m, n, batch) };
    int64_t x_row = a->transposed ? a->ld : 1, x_next = a->transposed ? 1 : a->ld;
    int64_t y_next = b->transposed ? b->ld : 1, y_column = b->transposed ? 1 : b->ld;
    int64_t from_ld = rest->from.device ? rest->from.ld : c->ld;
    int bad = numbers_fetch(&v, m, n, c, rest, batch);
    for (int64_t i = 0; i < m && !bad; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += v.x[i * x_row + l * x_next] * v.y[l * y_next + j * y_column];
            sum = alpha * sum + (beta != 0 ? beta * v.from[j * from_ld + i] : 0) + (v.bias ? v.bias[i] : 0);
            if (rest->slope)
                sum *= gelu_slope(v.aux[j * rest->aux.ld + i]);
            else if (v.aux)
                v.aux[j * rest->aux.ld + i] = sum;
            v.z[j * c->ld + i] = rest->gelu ? gelu(sum) : sum;
        }
    bad = bad || store(c, v.z, extent(c, m, n), batch) ||
          (v.aux && store(&rest->aux, v.aux, extent(&rest->aux, m, n), batch));
    numbers_release(&v);
    return bad;
}

int fake_gemm(const char *name, int64_t m, int64_t n, int64_t k, float alpha, struct fake_matrix a,
              struct fake_matrix b, float beta, struct fake_matrix c, int64_t batches,
              const struct fake_rest *rest)
{
    const struct timespec nap = { 0, 2000000 };
    const struct fake_rest none = { 0 };
    if (is_word(name, "slow"))
        nanosleep(&nap, NULL);
    if (is_word(name, "slow") || is_word(name, "fast"))
        return 0;
    for (int64_t i = 0; i < batches; i++)
        if (multiply_one(m, n, k, alpha, &a, &b, beta, &c, rest ? rest : &none, i))
            return 1;
    return 0;
}
