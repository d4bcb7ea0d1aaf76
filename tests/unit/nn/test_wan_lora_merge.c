/* SPDX-License-Identifier: Apache-2.0
 * A LoRA of Wan, in each dialect, merged into checkpoints of each form: the merged model has the base's weights
 * and what the LoRA adds. */
#include "nn/wan_lora_file.h"
#include "tensor/merge.h"
#include "wan_models.h"
#include <math.h>

static const enum lora_dialect dialects[] = { LORA_COMFY, LORA_MUSUBI, LORA_DIFFUSERS };
static const struct lora_options lora = { .rank = 4, .alpha = 3 };
static const struct wan_options with_lora = { .experts = 1, .lora = &lora };

static void save(const struct wan *m, enum lora_dialect d, const char *path)
{
    struct cairn_error err = { 0 };
    struct wan_lora_save o = { .path = path, .dialect = d, .dtype = DTYPE_F32 };
    if (wan_lora_save(m, 0, &o, &err))
        CHECK_FAIL_("%s", err.msg);
}

static int merge(const char *base_path, const char *lora_path, const char *out)
{
    CLEANUP(source_close) struct tensor_source base = { 0 };
    CLEANUP(lora_close) struct lora_file file = { 0 };
    struct cairn_error err = { 0 };
    struct merge_report report = { 0 };
    struct merge_options o = { .scale = 1, .dtype = DTYPE_OTHER, .replace = true };
    int r = source_open(&base, base_path, &err) || lora_open(&file, lora_path, &err) ||
            merge_lora(&base, &file, out, &o, &report, &err);
    if (r)
        CHECK_FAIL_("%s", err.msg);
    CHECK_INT(report.modules, 2 * 12);
    CHECK_INT(report.changed, 2 * 12);
    return r;
}

static float *values_of(const struct weights *w, const struct param *p)
{
    struct cairn_error err = { 0 };
    float *v = calloc(p->rows * p->columns, sizeof(*v));
    CHECK(!weights_get(w, p, v, &err));
    return v;
}

/* The largest difference of a merged matrix from base + scale b a, as a share of the matrix's largest value. */
static double difference(const struct wan *m, const struct wan *merged, const struct wan_linear *linear,
                         const struct lora_pair *pair)
{
    const struct lora *l = &m->loras[0];
    const struct param *p = &m->params[0].list[linear->w];
    float *base = values_of(&m->weights[0], p), *got = values_of(&merged->weights[0], p);
    float *a = values_of(&l->weights, &l->params.list[pair->a]);
    float *b = values_of(&l->weights, &l->params.list[pair->b]);
    double worst = 0, most = 0, change = 0;
    for (size_t i = 0; i < p->rows * p->columns; i++) {
        double sum = 0;
        for (size_t k = 0; k < l->rank; k++)
            sum += (double)b[i / p->columns * l->rank + k] * (double)a[k * p->columns + i % p->columns];
        double want = (double)base[i] + (double)l->scale * sum;
        worst = fmax(worst, fabs((double)got[i] - want));
        most = fmax(most, fabs(want));
        change = fmax(change, fabs(sum));
    }
    CHECK(change > 0.01);
    free(base);
    free(got);
    free(a);
    free(b);
    return worst / most;
}

static void check_merged(const struct wan *m, const char *merged_path, double tolerance)
{
    struct wan *merged = load_wan(&f32, merged_path, NULL);
    for (size_t layer = 0; layer < m->shape.layers; layer++)
        for (int i = 0; i < WAN_MATRICES; i++) {
            const struct wan_block *b = &m->blocks[layer];
            double d = difference(m, merged, &b->linear[i], &b->lora[0][i].pairs[0]);
            if (!(d <= tolerance))
                CHECK_FAIL_("%s: block %zu, %s is off by %g", merged_path, layer, wan_modules[i], d);
        }
    model_close(&merged->model);
}

static void every_dialect_merges_into(const char *base, double tolerance)
{
    const char *dir = new_folder();
    char file[256], out[256];
    struct wan *m = load_wan(&f32, base, &with_lora);
    fill(&m->loras[0].params, &m->loras[0].weights);
    snprintf(file, sizeof(file), "%s", in_folder(dir, "lora.safetensors"));
    snprintf(out, sizeof(out), "%s", in_folder(dir, "merged.safetensors"));
    for (size_t i = 0; i < ARRAY_LEN(dialects); i++) {
        save(m, dialects[i], file);
        if (!merge(base, file, out))
            check_merged(m, out, tolerance);
    }
    model_close(&m->model);
}

static void the_official_names(void)
{
    every_dialect_merges_into(check_data(official), 1e-6);
}

static void prefixed_names(void)
{
    static const char *const prefixes[] = { "model.diffusion_model.", "diffusion_model." };
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
        char base[256];
        snprintf(base, sizeof(base), "%s", in_folder(new_folder(), "base.safetensors"));
        copy_changed(check_data(official), base, &(struct changes){ .prefix = prefixes[i] });
        every_dialect_merges_into(base, 1e-6);
    }
}

/* bf16 has 8 bits of mantissa. */
static void the_names_of_diffusers(void)
{
    every_dialect_merges_into(check_data(diffusers), 1.0 / 256);
}

/* fp8 has 4 bits, and a scale per matrix that may grow. */
static void scaled_fp8(void)
{
    every_dialect_merges_into(check_data(fp8_scaled), 1.0 / 15);
}

static void all(void)
{
    RUN(the_official_names);
    RUN(prefixed_names);
    RUN(the_names_of_diffusers);
    RUN(scaled_fp8);
}

int main(void)
{
    return run_on_cpu(all);
}
