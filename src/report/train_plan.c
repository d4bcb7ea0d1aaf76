/* SPDX-License-Identifier: Apache-2.0 */
#include "report/train_plan.h"
#include "chip/gfx_table.h"

static const char *place(bool on_host)
{
    return on_host ? "host" : "device";
}

static void add_details(struct json *part, const struct train_plan_bytes *of, size_t n)
{
    struct json *list = json_add_array(part, "of");
    for (size_t i = 0; i < n; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "name", of[i].name);
        json_add_int(o, "device_bytes", (int64_t)of[i].device_bytes);
        json_add_int(o, "host_bytes", (int64_t)of[i].host_bytes);
    }
}

static void add_sizes(struct json *top, const struct train_plan *p)
{
    struct json *list = json_add_array(top, "sizes");
    for (size_t i = 0; i < p->n_sizes; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_int(o, "width", (int64_t)p->sizes[i].width);
        json_add_int(o, "height", (int64_t)p->sizes[i].height);
        json_add_int(o, "frames", (int64_t)p->sizes[i].frames);
        json_add_bool(o, "fits", p->sizes[i].fits);
        json_add_int(o, "fallbacks", (int64_t)p->sizes[i].fallbacks);
        json_add_int(o, "blocks_streamed", (int64_t)p->sizes[i].streamed);
    }
    struct json *most = json_add_object(top, "frames_most");
    json_add_int(most, "width", (int64_t)p->frames.width);
    json_add_int(most, "height", (int64_t)p->frames.height);
    json_add_int(most, "frames", (int64_t)p->frames.most);
    json_add_int(most, "frames_without_fallbacks", (int64_t)p->frames.most_plain);
}

struct json *report_train_plan(const struct train_plan *p, const struct gpu_info *g)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "device", g->name);
    json_add_text(top, "device_title", g->title);
    if (g->chip)
        json_add_text(top, "gfx", g->chip->gfx);
    else
        json_add_null(top, "gfx");
    json_add_text(top, "storage", p->storage);
    json_add_int(top, "parameters", (int64_t)p->parameters);
    json_add_int(top, "trained_parameters", (int64_t)p->trained);
    struct json *parts = json_add_array(top, "parts");
    for (size_t i = 0; i < p->n_parts; i++) {
        struct json *part = json_add_object(parts, NULL);
        json_add_text(part, "name", p->parts[i].name);
        json_add_int(part, "device_bytes", (int64_t)p->parts[i].device_bytes);
        json_add_int(part, "host_bytes", (int64_t)p->parts[i].host_bytes);
        if (p->parts[i].n_of)
            add_details(part, p->parts[i].of, p->parts[i].n_of);
    }
    json_add_int(top, "device_bytes", (int64_t)p->device_bytes);
    json_add_int(top, "host_bytes", (int64_t)p->host_bytes);
    json_add_int(top, "peak_bytes", (int64_t)p->peak_bytes);
    json_add_bool(top, "unified_memory", g->unified);
    if (p->budget_bytes)
        json_add_int(top, "budget_bytes", (int64_t)p->budget_bytes);
    else
        json_add_null(top, "budget_bytes");
    json_add_bool(top, "fits", !p->lack.code);
    json_add_int(top, "micro_batch", (int64_t)p->micro);
    json_add_int(top, "micro_batches", (int64_t)p->micros);
    json_add_bool(top, "recompute", p->recompute);
    json_add_text(top, "optimizer", place(p->optim_on_host));
    json_add_text(top, "blocks", place(p->streamed > 0));
    json_add_text(top, "inputs", place(p->inputs_on_host));
    if (p->blocks) {
        json_add_int(top, "blocks_all", (int64_t)p->blocks);
        json_add_int(top, "blocks_streamed", (int64_t)p->streamed);
        json_add_text(top, "idle", p->idle);
    }
    struct json *gave = json_add_array(top, "given_way");
    for (size_t i = 0; i < p->n_fallbacks; i++)
        json_add_text(gave, NULL, p->fallbacks[i]);
    if (p->n_sizes)
        add_sizes(top, p);
    return top;
}
