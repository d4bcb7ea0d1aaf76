/* SPDX-License-Identifier: Apache-2.0 */
#include "report/gpu.h"

#include "chip/gfx_table.h"
#include <stddef.h>
#include <stdio.h>

enum shape { NUMBER, THOUSANDTH, MILLIONTH, HEX16, HEX8, HEX32 };

/* Numbers that are printed unchanged, in the order of the keys. */
static const struct row {
    const char *key;
    size_t at;
    enum shape shape;
} rows[] = {
    { "vendor_id", offsetof(struct gpu_facts, vendor_id), HEX16 },
    { "device_id", offsetof(struct gpu_facts, device_id), HEX16 },
    { "revision", offsetof(struct gpu_facts, revision), HEX8 },
    { "compute_units", offsetof(struct gpu_facts, compute_units), NUMBER },
    { "wave_size", offsetof(struct gpu_facts, wave_size), NUMBER },
    { "vram_total_bytes", offsetof(struct gpu_facts, vram_total_bytes), NUMBER },
    { "vram_visible_bytes", offsetof(struct gpu_facts, vis_vram_total_bytes), NUMBER },
    { "gtt_total_bytes", offsetof(struct gpu_facts, gtt_total_bytes), NUMBER },
    { "kfd_bank_bytes", offsetof(struct gpu_facts, kfd_bank_bytes), NUMBER },
    { "usable_bytes", offsetof(struct gpu_facts, usable_bytes), NUMBER },
    { "vram_used_bytes", offsetof(struct gpu_facts, vram_used_bytes), NUMBER },
    { "gtt_used_bytes", offsetof(struct gpu_facts, gtt_used_bytes), NUMBER },
    { "busy_percent", offsetof(struct gpu_facts, busy_percent), NUMBER },
    { "temperature_c", offsetof(struct gpu_facts, temperature_mc), THOUSANDTH },
    { "power_w", offsetof(struct gpu_facts, power_uw), MILLIONTH },
    { "clock_mhz", offsetof(struct gpu_facts, clock_mhz), NUMBER },
    { "memory_clock_mhz", offsetof(struct gpu_facts, memory_clock_mhz), NUMBER },
    { "fan_rpm", offsetof(struct gpu_facts, fan_rpm), NUMBER },
};

static const struct row firmware[] = {
    { "mes", offsetof(struct gpu_facts, mes_fw), HEX32 },
    { "mec", offsetof(struct gpu_facts, mec_fw), HEX32 },
    { "sdma", offsetof(struct gpu_facts, sdma_fw), HEX32 },
    { "smc", offsetof(struct gpu_facts, smc_fw), HEX32 },
};

static void add_num(struct json *o, const char *key, struct num v)
{
    if (v.from)
        json_add_int(o, key, v.v);
    else
        json_add_null(o, key);
}

static void add_row(struct json *o, const struct row *row, struct num v)
{
    char hex[16];
    if (!v.from) {
        json_add_null(o, row->key);
        return;
    }
    switch (row->shape) {
    case NUMBER:
        json_add_int(o, row->key, v.v);
        break;
    case THOUSANDTH:
        json_add_real(o, row->key, (double)v.v / 1e3);
        break;
    case MILLIONTH:
        json_add_real(o, row->key, (double)v.v / 1e6);
        break;
    case HEX8:
    case HEX16:
    case HEX32:
        snprintf(hex, sizeof(hex), "0x%0*x",
                 row->shape == HEX8    ? 2
                 : row->shape == HEX16 ? 4
                                       : 8,
                 (unsigned)v.v);
        json_add_text(o, row->key, hex);
    }
}

static const struct num *field(const struct gpu_facts *g, const struct row *row)
{
    return (const struct num *)((const char *)g + row->at);
}

static void add_chip(struct json *o, const struct gpu_facts *g)
{
    const struct gfx_chip *c = g->gfx.s ? gfx_find(g->gfx.s) : NULL;
    json_add_text(o, "codename", c ? c->codename : NULL);
    json_add_text(o, "family", c ? gfx_family_name(c->family) : NULL);
    json_add_text(o, "bf16", c ? c->bf16 : NULL);
    if (c)
        json_add_bool(o, "fp16_dot", c->fp16_dot);
    else
        json_add_null(o, "fp16_dot");
    json_add_text(o, "matrix_core", !c ? NULL : c->matrix_core ? c->matrix_core : "none");
    json_add_text(o, "fp8", !c ? NULL : c->fp8 ? c->fp8 : "none");
}

static void add_texts(struct json *parent, const char *key, const struct problems *p)
{
    struct json *list = json_add_array(parent, key);
    for (size_t i = 0; i < p->n; i++)
        json_add_text(list, NULL, p->text[i]);
}

/* Where each known value came from. */
static void add_sources(struct json *o, const struct gpu_facts *g)
{
    struct json *s = json_add_object(o, "sources");
    const struct {
        const char *key;
        const char *from;
    } texts[] = { { "gfx", g->gfx.from },          { "name", g->name.from },
                  { "kind", g->kind_from },        { "pci", g->pci.from },
                  { "driver", g->driver.from },    { "render_node", g->render_node.from },
                  { "kfd_node", g->kfd_node.from } };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].from)
            json_add_text(s, texts[i].key, texts[i].from);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (field(g, &rows[i])->from)
            json_add_text(s, rows[i].key, field(g, &rows[i])->from);
}

static void add_processes(struct json *o, const struct gpu_facts *g)
{
    struct json *list = json_add_array(o, "processes");
    for (size_t i = 0; i < g->n_processes; i++) {
        struct json *p = json_add_object(list, NULL);
        json_add_int(p, "pid", g->processes[i].pid);
        json_add_text(p, "name", g->processes[i].name);
        json_add_int(p, "vram_bytes", g->processes[i].vram_bytes);
    }
}

static void add_libraries(struct json *o, const struct gpu_libraries *l)
{
    struct json *list = json_add_array(o, "libraries");
    for (size_t i = 0; i < l->n; i++) {
        struct json *row = json_add_object(list, NULL);
        json_add_text(row, "purpose", l->row[i].purpose);
        json_add_text(row, "name", l->row[i].name);
        json_add_text(row, "path", l->row[i].path);
        json_add_text(row, "use", library_use_name(l->row[i].use));
        json_add_text(row, "why", l->row[i].why);
    }
}

static void add_gpu(struct json *list, const struct gpu_facts *g, const struct gpu_libraries *l)
{
    struct json *o = json_add_object(list, NULL);
    if (g->hip_index >= 0)
        json_add_int(o, "index", g->hip_index);
    else
        json_add_null(o, "index");
    add_num(o, "kfd_node", g->kfd_node);
    json_add_text(o, "gfx", g->gfx.s);
    json_add_text(o, "gfx_source", g->gfx.from);
    json_add_text(o, "name", g->name.s);
    add_chip(o, g);
    json_add_text(o, "kind", gpu_kind_name(g->kind));
    if (g->kind == GPU_KIND_UNKNOWN)
        json_add_null(o, "unified_memory");
    else
        json_add_bool(o, "unified_memory", g->kind == GPU_INTEGRATED);
    json_add_text(o, "pci", g->pci.s);
    json_add_text(o, "card", g->card.s);
    json_add_text(o, "driver", g->driver.s);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        add_row(o, &rows[i], *field(g, &rows[i]));
    json_add_text(o, "usable_reason", g->usable_reason);
    json_add_text(o, "uuid", g->uuid.s);
    json_add_text(o, "render_node", g->render_node.s);
    json_add_text(o, "runtime_status", g->runtime_status.s);
    struct json *fw = json_add_object(o, "firmware");
    for (size_t i = 0; i < ARRAY_LEN(firmware); i++)
        add_row(fw, &firmware[i], *field(g, &firmware[i]));
    add_processes(o, g);
    json_add_bool(o, "rocm_capable", g->rocm_capable);
    if (l)
        add_libraries(o, l);
    add_texts(o, "problems", &g->problems);
    add_sources(o, g);
}

struct json *report_gpus(const struct facts *f, const struct gpu_libraries *libraries)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *list = json_add_array(top, "gpus");
    for (size_t i = 0; i < f->n_gpus; i++)
        add_gpu(list, &f->gpus[i], libraries ? &libraries[i] : NULL);
    if (f->default_gpu >= 0)
        json_add_int(top, "default_gpu", f->gpus[f->default_gpu].hip_index);
    else
        json_add_null(top, "default_gpu");
    struct json *host = json_add_object(top, "host");
    add_num(host, "memory_total_bytes", f->host.memory_total_bytes);
    add_num(host, "memory_available_bytes", f->host.memory_available_bytes);
    json_add_text(host, "kernel", f->host.kernel.s);
    json_add_text(host, "amdgpu_version", f->host.amdgpu_version.s);
    json_add_text(host, "container", f->host.container.s);
    add_texts(top, "problems", &f->problems);
    return top;
}
