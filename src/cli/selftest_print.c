/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/selftest_print.h"

#include "base/json.h"
#include "base/str.h"
#include "cli/print.h"
#include "config.h"
#include <stdio.h>
#include <string.h>

/* HIP and CUDA number their versions differently: 60342134 is 6.3.42134, 13000 is 13.0. */
static const char *version_text(enum gpu_api api, int version, char *buf, size_t size)
{
    if (!version)
        snprintf(buf, size, "-");
    else if (api == GPU_API_HIP)
        snprintf(buf, size, "%d.%d.%d", version / 10000000, version / 100000 % 100, version % 100000);
    else
        snprintf(buf, size, "%d.%d", version / 1000, version / 10 % 100);
    return buf;
}

static void print_head(const struct gpu_info *g)
{
    char memory[24], driver[32], runtime[32];
    printf("%s%s%s  ", print_color(COLOR_BOLD), g->name, print_color(COLOR_PLAIN));
    print_padded(stdout, g->title, 0);
    printf("  %s\n", g->arch);
    printf("  cairn %s, %s, %d %s", CAIRN_VERSION, print_bytes((int64_t)g->total_bytes, memory), g->units,
           g->api == GPU_API_HOST ? "threads" : "compute units");
    if (g->api != GPU_API_HOST)
        printf(", waves of %d, driver %s, runtime %s", g->wave,
               version_text(g->api, g->driver, driver, sizeof(driver)),
               version_text(g->api, g->runtime, runtime, sizeof(runtime)));
    putchar('\n');
    print_runtime(stdout, g, "  ");
}

static void print_cell_of(const struct check_result *r)
{
    char text[16];
    snprintf(text, sizeof(text), r->ok ? "%.1e" : r->failed ? "FAILED" : "WRONG", r->relative);
    printf("  %s%8s%s", print_color(r->ok ? COLOR_GREEN : COLOR_RED), text, print_color(COLOR_PLAIN));
}

/* The results of a kernel stand together, in the order of the formats. */
static size_t print_kernel(const struct selftest *t, size_t at)
{
    const char *name = t->results[at].kernel;
    double worst = 0;
    printf("  %-28s", name);
    for (int s = 0; s < GPU_STORAGES; s++) {
        if (at < t->n && str_eq(t->results[at].kernel, name) &&
            t->results[at].storage == (enum gpu_storage)s) {
            worst = t->results[at].error > worst ? t->results[at].error : worst;
            print_cell_of(&t->results[at++]);
        } else {
            printf("  %8s", "-");
        }
    }
    printf("  %6.2f\n", worst);
    return at;
}

static void print_conversions(const struct selftest *t)
{
    printf("  %s%-36s  %8s  %8s  %8s  %8s%s\n", print_color(COLOR_BOLD), "WRONG VALUES AFTER", "OF", "DIRECT",
           "STAGED", "MOVED", print_color(COLOR_PLAIN));
    for (size_t i = 0; i < CONVERSIONS; i++) {
        const struct conversion *c = &t->conversions[i];
        char what[64];
        snprintf(what, sizeof(what), "%s to %s %s", c->from, c->to, c->where);
        printf("  %-36s  %8zu", what, c->values);
        for (int p = 0; p < CONVERSION_PATHS; p++)
            printf("  %s%8zu%s", print_color(c->wrong[p] ? COLOR_RED : COLOR_GREEN), c->wrong[p],
                   print_color(COLOR_PLAIN));
        putchar('\n');
    }
}

/* One failure after another mostly has the same remedy. */
static void print_hints(const struct selftest *t)
{
    const char *last = "";
    for (size_t i = 0; i < t->n; i++) {
        const char *hint = t->results[i].hint;
        if (hint[0] && strcmp(hint, last))
            printf("  %s\n", hint);
        last = hint[0] ? hint : last;
    }
    if (t->lost)
        puts("  the device was lost; what comes after was not checked");
}

static void print_reasons(const struct selftest *t)
{
    const char *last = "";
    size_t same = 0;
    for (size_t i = 0; i <= t->n; i++) {
        const struct check_result *r = i < t->n ? &t->results[i] : NULL;
        if (r && (r->ok || !strcmp(r->why, last))) {
            same += !r->ok;
            continue;
        }
        if (same)
            printf("  and %zu more for the same reason\n", same);
        if (!r)
            break;
        same = 0;
        last = r->why;
        printf("  %s%s %s%s: ", print_color(COLOR_RED), r->kernel, gpu_storage_name(r->storage),
               print_color(COLOR_PLAIN));
        print_padded(stdout, r->why, 0);
        putchar('\n');
    }
}

void selftest_print(const struct selftest *t)
{
    size_t wrong = 0, failed = 0;
    print_head(&t->info);
    printf("  %s%-28s  %8s  %8s  %8s  %6s%s\n", print_color(COLOR_BOLD), "KERNEL", "F32", "BF16", "F16",
           "LIMIT", print_color(COLOR_PLAIN));
    for (size_t i = 0; i < t->n;)
        i = print_kernel(t, i);
    for (size_t i = 0; i < t->n; i++) {
        failed += t->results[i].failed;
        wrong += !t->results[i].ok && !t->results[i].failed;
    }
    bool good = !wrong && !failed && !t->lost;
    for (size_t i = 0; t->has_conversions && i < CONVERSIONS; i++)
        for (int p = 0; p < CONVERSION_PATHS; p++)
            good &= !t->conversions[i].wrong[p];
    puts("  errors relative to the largest number, LIMIT their share of what is allowed");
    if (t->has_conversions)
        print_conversions(t);
    print_reasons(t);
    print_hints(t);
    printf("  %s%s%s: %zu checks, %zu wrong, %zu failed\n", print_color(good ? COLOR_GREEN : COLOR_RED),
           good ? "PASS" : "FAIL", print_color(COLOR_PLAIN), t->n, wrong, failed);
}

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
    json_add_text(d, "driver", g->driver ? version_text(g->api, g->driver, text, sizeof(text)) : NULL);
    json_add_text(d, "runtime", g->runtime ? version_text(g->api, g->runtime, text, sizeof(text)) : NULL);
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

void selftest_print_json(const struct selftest *tests, size_t n)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
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
    json_print(top, stdout);
}
