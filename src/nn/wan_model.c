/* SPDX-License-Identifier: Apache-2.0
 * Wan as an implementation of nn/model.h. */
#include "nn/wan_inside.h"
#include "nn/wan_lora_file.h"
#include <stdio.h>
#include <stdlib.h>

static struct wan *wan_of(const struct model *m)
{
    return (struct wan *)m; /* it is the first member */
}

static void close_wan(struct model *model)
{
    struct wan *m = wan_of(model);
    for (size_t i = 0; i < WAN_EXPERTS; i++) {
        params_release(&m->loras[i].params);
        params_release(&m->params[WAN_EXPERTS - 1 - i]); /* the blocks are in the first one's arena */
    }
    free(m);
}

static bool is_joined(const struct model *m)
{
    return m->n_loras > 1 && wan_of(m)->save.joined;
}

/* Two LoRAs have files of their own, unless they share one. */
static const char *file_name(const struct model *m, size_t set, bool average)
{
    if (m->n_loras < 2 || is_joined(m))
        return average ? "lora-ema.safetensors" : "lora.safetensors";
    if (set)
        return average ? "lora_high_noise-ema.safetensors" : "lora_high_noise.safetensors";
    return average ? "lora_low_noise-ema.safetensors" : "lora_low_noise.safetensors";
}

static int save(const struct model *m, const struct model_save *s, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena arena = { 0 };
    const struct wan_save *how = &wan_of(m)->save;
    struct wan_save_meta meta = { 0 };
    char path[4096];
    if (is_joined(m) && s->set)
        return 0; /* written with the first */
    if (how->describe)
        how->describe(how->to, s->step, &arena, &meta);
    snprintf(path, sizeof(path), "%s/%s", s->dir, file_name(m, s->set, s->average));
    struct wan_lora_save o = {
        .path = path,
        .dialect = how->dialect,
        .dtype = how->dtype,
        .from = s->from,
        .joined = is_joined(m),
        .no_alpha = how->no_alpha,
        .meta = meta.list,
        .n_meta = meta.n,
        .meta_is_all = meta.is_all,
    };
    return wan_lora_save(wan_of(m), s->set, &o, err);
}

static int load(struct model *m, size_t set, const char *path, struct param_report *report,
                struct cairn_error *err)
{
    return wan_lora_load(wan_of(m), set, path, report, err);
}

const struct model_ops wan_model_ops = {
    .kind = "wan",
    .close = close_wan,
    .work_bytes = wan_work_bytes,
    .work_open = wan_work_open,
    .work_close = wan_work_close,
    .run = wan_run,
    .loss = wan_loss,
    .can_save_on_host = true,
    .file_name = file_name,
    .save = save,
    .load = load,
    .has_rounded_files = true,
};
