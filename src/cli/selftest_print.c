/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/selftest_print.h"

#include "base/str.h"
#include "cli/print.h"
#include "config.h"
#include <stdio.h>
#include <string.h>

static void print_head(const struct gpu_info *g)
{
    char memory[24], driver[32], runtime[32];
    printf("%s%s%s  ", print_color(COLOR_BOLD), g->name, print_color(COLOR_PLAIN));
    print_padded(stdout, g->title, 0);
    printf("  %s\n", g->arch);
    printf("  cairn %s, %s, %d %s", CAIRN_VERSION, bytes_text((int64_t)g->total_bytes, memory), g->units,
           g->api == GPU_API_HOST ? "threads" : "compute units");
    if (g->api != GPU_API_HOST)
        printf(", waves of %d, driver %s, runtime %s", g->wave,
               gpu_version_text(g->api, g->driver, driver, sizeof(driver)),
               gpu_version_text(g->api, g->runtime, runtime, sizeof(runtime)));
    putchar('\n');
    print_runtime(stdout, g, "  ");
}

static void print_cell_of(const struct check_result *r)
{
    char text[16];
    snprintf(text, sizeof(text), r->ok ? "%.1e" : r->failed ? "FAILED" : "WRONG", r->relative);
    printf("  %s%8s%s", print_color(r->ok ? COLOR_GREEN : COLOR_RED), text, print_color(COLOR_PLAIN));
}

/* The results of a kernel are adjacent, in the order of the formats. */
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

/* Adjacent failures mostly have the same remedy; print it once. */
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
        puts("  the device was lost; the remaining kernels were not checked");
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
    puts("  errors relative to the largest value; LIMIT: error relative to the tolerance");
    if (t->has_conversions)
        print_conversions(t);
    print_reasons(t);
    print_hints(t);
    printf("  %s%s%s: %zu checks, %zu wrong, %zu failed\n", print_color(good ? COLOR_GREEN : COLOR_RED),
           good ? "PASS" : "FAIL", print_color(COLOR_PLAIN), t->n, wrong, failed);
}
