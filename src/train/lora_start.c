/* SPDX-License-Identifier: Apache-2.0 */
#include "train/lora_start.h"
#include "base/str.h"
#include "tensor/lora.h"

int lora_start_resolve(struct job_config *c, struct cairn_error *err)
{
    bool has_rank = config_is_set(c, "lora.rank") && c->lora.rank;
    bool has_alpha = config_is_set(c, "lora.alpha") && c->lora.alpha > 0;
    uint64_t rank;
    double alpha;
    if (!c->lora.path[0] || (has_rank && has_alpha))
        return 0;
    if (lora_read_strength(c->lora.path, &rank, &alpha, err))
        return cairn_wrap(err, "lora.path");
    if (!has_rank)
        c->lora.rank = (int64_t)rank;
    if (!has_alpha && alpha > 0)
        c->lora.alpha = alpha;
    return 0;
}

static void say_loaded(struct job *j, const struct param_report *report)
{
    CLEANUP(str_release) struct str text = { 0 };
    size_t missing = 0;
    param_report_say(report, &text);
    for (const char *l = report->missing.s; l && *l; l = str_next_line(l))
        missing++;
    if (missing)
        str_addf(&text, "; %zu layer%s not in the file, started anew", missing, missing == 1 ? "" : "s");
    job_say(j, "%s: %s", j->c->lora.path, text.s);
}

int lora_start_load(struct job *j, struct cairn_error *err)
{
    struct model *m = j->task->model;
    int r = 0;
    for (size_t i = 0; i < m->n_loras && j->c->lora.path[0] && !r; i++) {
        struct param_report report = { 0 };
        r = m->ops->load(m, i, j->c->lora.path, &report, err);
        if (!r)
            say_loaded(j, &report);
        param_report_release(&report);
    }
    return r ? cairn_wrap(err, "lora.path") : 0;
}
