/* SPDX-License-Identifier: Apache-2.0
 * LoRAs to files and back; and each outside call of saving and loading fails once. */
#include "nn/gpt_file.h"

#include "os/fault.h"
#include "base/json.h"
#include "models.h"
#include <errno.h>

static const char *const some_targets[] = { "q_proj", "down_proj" };
static const char *const one_block[] = { "h.1.attn.c_attn" };
static const struct {
    size_t kind;
    struct lora_options options;
    const char *name, *targets, *fan;
} loras[] = {
    { 0,
      { .rank = 4, .alpha = 8 },
      "base_model.model.transformer.h.0.attn.c_attn.lora_A.weight",
      "[\"attn.c_attn\",\"attn.c_proj\",\"mlp.c_fc\",\"mlp.c_proj\"]",
      "\"fan_in_fan_out\": true" },
    { 0,
      { .rank = 3, .alpha = 7, .targets = one_block, .n_targets = 1 },
      "base_model.model.transformer.h.1.attn.c_attn.lora_B.weight",
      "[\"transformer.h.1.attn.c_attn\"]",
      "\"fan_in_fan_out\": true" },
    { 2,
      { .rank = 2, .alpha = 0.5f, .dropout = 0.1f, .targets = some_targets, .n_targets = 2 },
      "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight",
      "[\"self_attn.q_proj\",\"mlp.down_proj\"]",
      "\"fan_in_fan_out\": false" },
};

static void check_lora_files(const char *dir, size_t i)
{
    struct cairn_error err = { 0 };
    struct st_file f;
    size_t n;
    char *text = slurp(in_folder(dir, "adapter_config.json"), &n);
    CHECK_HAS(text, loras[i].fan);
    struct json *v = NULL;
    REQUIRE(!json_parse(text, n, &v, &err));
    char *targets = json_to_string(json_get(v, "target_modules"));
    CHECK_STR(targets, loras[i].targets);
    CHECK_INT(json_int(json_get(v, "r"), 0), loras[i].options.rank);
    CHECK((float)json_number(json_get(v, "lora_alpha"), 0) == loras[i].options.alpha);
    CHECK((float)json_number(json_get(v, "lora_dropout"), -1) == loras[i].options.dropout);
    CHECK_STR(json_text(json_get(v, "base_model_name_or_path")), "some/base");
    json_free(v);
    free(targets);
    free(text);
    REQUIRE(!st_open(&f, in_folder(dir, "adapter_model.safetensors"), &err));
    CHECK(st_find(&f, loras[i].name));
    st_close(&f);
}

static void loras_come_back(void)
{
    for (size_t i = 0; i < ARRAY_LEN(loras); i++) {
        struct cairn_error err = { 0 };
        struct param_report report;
        const char *dir = new_folder();
        struct gpt_options o = { .lora = &loras[i].options };
        struct gpt *m = open_model(&f32, &kinds[loras[i].kind].shape, &o);
        struct gpt *again = open_model(&f32, &kinds[loras[i].kind].shape, &o);
        fill(&m->lora.params, &m->lora.weights);
        struct gpt_lora_file f = { &loras[i].options, "some/base", "lora.safetensors", DTYPE_F32, NULL };
        if (gpt_file_save_lora(m, dir, &f, &err) || gpt_file_load_lora(again, dir, &report, &err))
            CHECK_FAIL_("%s", err.msg);
        check_same(&m->lora.params, &m->lora.weights, &again->lora.weights);
        CHECK_INT(report.tensors, m->lora.params.n);
        check_lora_files(dir, i);
        size_t n[2];
        char *a = slurp(in_folder(dir, "adapter_model.safetensors"), &n[0]);
        char *b = slurp(in_folder(dir, "lora.safetensors"), &n[1]);
        CHECK(n[0] && n[0] == n[1] && !memcmp(a, b, n[0]));
        free(a);
        free(b);
        param_report_release(&report);
        gpt_close(m);
        gpt_close(again);
    }
}

static void another_lora_is_refused(void)
{
    static const struct lora_options other_rank = { .rank = 2, .alpha = 8 };
    static const struct lora_options other_alpha = { .rank = 4, .alpha = 4 };
    static const struct lora_options fewer = { .rank = 4, .alpha = 8, .targets = one_block, .n_targets = 1 };
    static const struct {
        const struct lora_options *options;
        const char *said;
    } rows[] = { { &other_rank, "\"r\" is 4, but lora.rank is 2" },
                 { &other_alpha, "\"lora_alpha\" is 8, but lora.alpha is 4" },
                 { &fewer,
                   "14 not of this model: base_model.model.transformer.h.0.attn.c_attn.lora_A.weight" } };
    struct cairn_error err = { 0 };
    const char *dir = new_folder();
    struct gpt_options o = { .lora = &loras[0].options };
    struct gpt *m = open_model(&f32, &kinds[0].shape, &o);
    struct gpt_lora_file f = { .options = &loras[0].options, .dtype = DTYPE_F32 };
    CHECK(!gpt_file_save_lora(m, dir, &f, &err));
    gpt_close(m);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct param_report report;
        o.lora = rows[i].options;
        m = open_model(&f32, &kinds[0].shape, &o);
        CHECK_INT(gpt_file_load_lora(m, dir, &report, &err), -1);
        CHECK_HAS(err.msg, rows[i].said);
        param_report_release(&report);
        gpt_close(m);
    }
}

/* ---- faults ---- */

/* What is there after a failure is whole, and of the old model or of the new one. */
static void every_call_of_saving_may_fail(void)
{
    struct cairn_error err = { 0 };
    const char *dir = new_folder();
    struct gpt_options o = { .lora = &loras[0].options };
    struct gpt *m = open_model(&f32, &kinds[0].shape, &o);
    struct gpt_lora_file f = { .options = &loras[0].options, .copy = "lora.safetensors", .dtype = DTYPE_F32 };
    fill(&m->params, &m->weights);
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err) && !gpt_file_save_lora(m, dir, &f, &err));
    CHECK_INT(tree_count(dir), 5);
    int nth = 0;
    for (bool reached = true; reached && nth < 500;) {
        struct param_report report;
        err = (struct cairn_error){ 0 };
        fault_arm(++nth, EIO);
        int r = gpt_file_save(m, dir, DTYPE_F32, NULL, &err) || gpt_file_save_lora(m, dir, &f, &err);
        reached = fault_disarm();
        if (r ? !err.msg[0] : reached && err.msg[0])
            CHECK_FAIL_("call %d: returned %d, message \"%s\"", nth, r, err.msg);
        CHECK_INT(tree_count(dir), 5);
        CHECK(!gpt_file_load(m, dir, &report, &err) && !gpt_file_load_lora(m, dir, &report, &err));
        param_report_release(&report);
    }
    CHECK(nth > 20 && nth < 500);
    gpt_close(m);
}

static void every_call_of_loading_may_fail(void)
{
    struct cairn_error err = { 0 };
    const char *dir = new_folder();
    struct gpt *m = open_model(&f32, &kinds[2].shape, NULL);
    fill(&m->params, &m->weights);
    CHECK(!gpt_file_save(m, dir, DTYPE_F32, NULL, &err));
    int nth = 0;
    for (bool reached = true; reached && nth < 500;) {
        struct param_report report = { 0 };
        struct gpt_shape s = { 0 };
        err = (struct cairn_error){ 0 };
        fault_arm(++nth, EIO);
        int r = gpt_file_shape(dir, &s, &err) || gpt_file_load(m, dir, &report, &err);
        reached = fault_disarm();
        if (r ? !err.msg[0] : reached)
            CHECK_FAIL_("call %d: returned %d, message \"%s\"", nth, r, err.msg);
        param_report_release(&report);
    }
    CHECK(nth > 20 && nth < 500);
    gpt_close(m);
}

static void all(void)
{
    RUN(loras_come_back);
    RUN(another_lora_is_refused);
    RUN(every_call_of_saving_may_fail);
    RUN(every_call_of_loading_may_fail);
}

int main(void)
{
    return run_on_cpu(all);
}
