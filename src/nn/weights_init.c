/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/weights_init.h"
#include "gpu/kernels/random.h"
#include "os/memory.h"

int weights_init_open(struct weights_init *k, const struct params *p, const struct weights *w, uint64_t seed,
                      struct cairn_error *err)
{
    size_t most = 0;
    for (size_t i = 0; i < p->n; i++)
        most = p->list[i].rows * p->list[i].columns > most ? p->list[i].rows * p->list[i].columns : most;
    *k = (struct weights_init){ .w = w, .seed = seed };
    if (gpu_open("cpu", &k->cpu, err))
        return -1;
    k->numbers = os_aligned(64, most * sizeof(float));
    if (k->numbers)
        return 0;
    weights_init_close(k);
    return cairn_fail(err, CAIRN_ENOMEM, "no memory for %zu new weights", most);
}

void weights_init_close(struct weights_init *k)
{
    os_free_aligned(k->numbers);
    gpu_close(k->cpu);
    *k = (struct weights_init){ 0 };
}

static int put_random(const struct weights_init *m, const char *kernel, const struct param *p, float shift,
                      float scale, uint64_t stream, struct cairn_error *err)
{
    size_t n = p->rows * p->columns;
    const struct gpu_kernel *k;
    struct random_args args = {
        .y = m->numbers, .n = (k_i64)n, .seed = m->seed, .stream = stream, .shift = shift, .scale = scale
    };
    struct gpu_grid grid = { .x = (unsigned)K_GROUPS(n) };
    if (gpu_kernel(m->cpu, kernel, GPU_F32, &k, err) ||
        gpu_launch(m->cpu, NULL, k, grid, &args, sizeof(args), err) || gpu_wait(m->cpu, NULL, err))
        return -1;
    return weights_put(m->w, p, m->numbers, err);
}

int weights_init_normal(const struct weights_init *m, const struct param *p, float std, uint64_t stream,
                        struct cairn_error *err)
{
    return put_random(m, "random_normal", p, 0, std, stream, err);
}

int weights_init_uniform(const struct weights_init *m, const struct param *p, float limit, uint64_t stream,
                         struct cairn_error *err)
{
    return put_random(m, "random_uniform", p, -limit, 2 * limit, stream, err);
}

int weights_init_value(const struct weights_init *m, const struct param *p, float value,
                       struct cairn_error *err)
{
    for (size_t i = 0; i < p->rows * p->columns; i++)
        m->numbers[i] = value;
    return weights_put(m->w, p, m->numbers, err);
}
