/* SPDX-License-Identifier: Apache-2.0 */
#include "report/selftest.h"

#include "config.h"
#include "gpu/compile.h"

static void add_device(struct json *array, const struct gpu_info *g)
{
    struct json *d = json_add_object(array, NULL);
    json_add_text(d, "name", g->name);
    json_add_text(d, "title", g->title);
    json_add_text(d, "arch", g->arch);
    json_add_text(d, "pci", g->pci[0] ? g->pci : NULL);
    json_add_int(d, "memory_bytes", (int64_t)g->total_bytes);
    json_add_int(d, "units", g->units);
    json_add_int(d, "wave", g->wave);
    char text[32];
    json_add_text(d, "driver", g->driver ? gpu_version_text(g->api, g->driver, text, sizeof(text)) : NULL);
    json_add_text(d, "runtime", g->runtime ? gpu_version_text(g->api, g->runtime, text, sizeof(text)) : NULL);
    json_add_text(d, "library", g->library[0] ? g->library : NULL);
    json_add_text(d, "library_source", g->source[0] ? g->source : NULL);
    json_add_text(d, "not_used", g->passed_over[0] ? g->passed_over : NULL);
}

static void add_result(struct json *array, const char *device, const struct check_result *r)
{
    struct json *k = json_add_object(array, NULL);
    json_add_text(k, "device", device);
    json_add_text(k, "name", r->kernel);
    json_add_text(k, "storage", gpu_storage_name(r->storage));
    json_add_bool(k, "ok", r->ok);
    json_add_real(k, "worst_error", r->relative);
    json_add_real(k, "tolerance", r->tolerance);
    json_add_text(k, "error", r->ok ? NULL : r->why);
    json_add_text(k, "hint", r->hint[0] ? r->hint : NULL);
}

static void add_conversion(struct json *array, const char *device, const struct conversion *c)
{
    static const char *const keys[] = { "wrong_direct", "wrong_staged", "wrong_moved" };
    struct json *row = json_add_object(array, NULL);
    json_add_text(row, "device", device);
    json_add_text(row, "from", c->from);
    json_add_text(row, "to", c->to);
    json_add_text(row, "where", c->where);
    json_add_int(row, "values", (int64_t)c->values);
    for (int p = 0; p < CONVERSION_PATHS; p++)
        json_add_int(row, keys[p], (int64_t)c->wrong[p]);
}

struct json *report_selftest(const struct selftest *tests, size_t n)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    json_add_text(top, "version", CAIRN_VERSION);
    json_add_text(top, "device", n ? tests[0].info.name : NULL);
    struct json *devices = json_add_array(top, "devices"), *kernels = json_add_array(top, "kernels"),
                *conversions = json_add_array(top, "conversions");
    for (size_t i = 0; i < n; i++) {
        add_device(devices, &tests[i].info);
        for (size_t k = 0; k < tests[i].n; k++)
            add_result(kernels, tests[i].info.name, &tests[i].results[k]);
        for (size_t k = 0; k < CONVERSIONS && tests[i].has_conversions; k++)
            add_conversion(conversions, tests[i].info.name, &tests[i].conversions[k]);
    }
    return top;
}
