/* SPDX-License-Identifier: Apache-2.0 */
#include "report/train_plan.h"

static const char *place(bool on_host)
{
    return on_host ? "host" : "device";
}

struct json *report_train_plan(const struct train_plan *p, const struct gpu_info *g)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "device", g->name);
    json_add_text(top, "device_title", g->title);
    json_add_text(top, "storage", p->storage);
    json_add_int(top, "parameters", (int64_t)p->parameters);
    json_add_int(top, "trained_parameters", (int64_t)p->trained);
    struct json *parts = json_add_array(top, "parts");
    for (size_t i = 0; i < p->n_parts; i++) {
        struct json *part = json_add_object(parts, NULL);
        json_add_text(part, "name", p->parts[i].name);
        json_add_int(part, "device_bytes", (int64_t)p->parts[i].device_bytes);
        json_add_int(part, "host_bytes", (int64_t)p->parts[i].host_bytes);
    }
    json_add_int(top, "device_bytes", (int64_t)p->device_bytes);
    json_add_int(top, "host_bytes", (int64_t)p->host_bytes);
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
    return top;
}
