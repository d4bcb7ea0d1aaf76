/* SPDX-License-Identifier: Apache-2.0 */
#include "train/lora_start.h"
#include "base/str.h"
#include "tensor/lora.h"
#include <string.h>

#define REMEDY "it takes a LoRA: a .safetensors file, a PEFT folder or a run"

int lora_start_resolve(struct job_config *c, struct cairn_error *err)
{
    bool has_rank = config_is_set(c, "lora.rank") && c->lora.rank;
    bool has_alpha = config_is_set(c, "lora.alpha") && c->lora.alpha > 0;
    uint64_t rank;
    double alpha;
    if (!c->lora.path[0] || (has_rank && has_alpha))
        return 0;
    if (lora_read_strength(c->lora.path, &rank, &alpha, err))
        return config_wrap(c, "lora.path", REMEDY, err);
    if (!has_rank)
        c->lora.rank = (int64_t)rank;
    if (!has_alpha && alpha > 0)
        c->lora.alpha = alpha;
    return 0;
}

static const char *path_of(const struct job *j, size_t set)
{
    const struct task_ops *ops = j->task->ops;
    return ops->lora_path ? ops->lora_path(j->task, set) : j->c->lora.path;
}

/* Two LoRAs do not start from one. */
static int check_paths(const struct job *j, struct cairn_error *err)
{
    CLEANUP(lora_close) struct lora_file l = { 0 };
    struct cairn_error ignored;
    if (j->task->model->n_loras < 2 || strcmp(path_of(j, 0), path_of(j, 1)) != 0 ||
        lora_open(&l, path_of(j, 0), &ignored))
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s has one LoRA, but the job trains two", l.source.path);
    return cairn_hint(err, "lora.high_noise_path names the second");
}

static void say_loaded(struct job *j, const char *path, const struct param_report *report)
{
    CLEANUP(str_release) struct str text = { 0 };
    size_t missing = 0;
    param_report_say(report, &text);
    for (const char *l = report->missing.s; l && *l; l = str_next_line(l))
        missing++;
    if (missing)
        str_addf(&text, "; %zu layer%s not in the file, started anew", missing, missing == 1 ? "" : "s");
    job_say(j, "%s: %s", path, text.s);
}

int lora_start_load(struct job *j, bool says, struct cairn_error *err)
{
    struct model *m = j->task->model;
    int r = 0;
    if (!j->c->lora.path[0])
        return 0;
    if (check_paths(j, err))
        return -1;
    for (size_t i = 0; i < m->n_loras && !r; i++) {
        struct param_report report = { 0 };
        r = m->ops->load(m, i, path_of(j, i), &report, err);
        if (!r && says)
            say_loaded(j, path_of(j, i), &report);
        param_report_release(&report);
    }
    return r ? config_wrap(j->c, "lora.path", REMEDY, err) : 0;
}
