/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_print.h"
#include "base/str.h"
#include "cli/print.h"
#include <string.h>

enum { NAME = 30, WIDTH_MOST = 80 };

static int width(void)
{
    return print_width() < WIDTH_MOST ? print_width() : WIDTH_MOST;
}

/* ---- the parts ---- */

static void print_row(int indent, const char *name, uint64_t device, uint64_t host)
{
    char a[32], b[32];
    printf("%*s%-*s %12s %12s\n", indent, "", NAME - indent, name,
           device ? bytes_text((int64_t)device, a) : "-", host ? bytes_text((int64_t)host, b) : "-");
}

/* A part that has only one is that. */
static void print_parts(const struct train_plan *p)
{
    printf("%-*s %12s %12s\n", NAME, "", "DEVICE", "HOST");
    for (size_t i = 0; i < p->n_parts; i++) {
        print_row(0, p->parts[i].name, p->parts[i].device_bytes, p->parts[i].host_bytes);
        for (size_t k = 0; k < p->parts[i].n_of && p->parts[i].n_of > 1; k++)
            print_row(2, p->parts[i].of[k].name, p->parts[i].of[k].device_bytes,
                      p->parts[i].of[k].host_bytes);
    }
    print_row(0, "total", p->device_bytes, p->host_bytes);
}

static void print_bounds(const struct train_plan *p, const struct train_options *o)
{
    const struct gpu_info *g = train_device(o);
    bool shared = g->api == GPU_API_HOST || g->unified;
    char a[32];
    uint64_t host = o->machine && !shared ? o->machine->host_bytes : 0;
    if (p->budget_bytes)
        print_row(0, shared ? "available to both" : "available", p->budget_bytes, host);
    if (p->budget_bytes >= p->peak_bytes && p->budget_bytes)
        printf("%-*s %12s\n", NAME, "left", bytes_text((int64_t)(p->budget_bytes - p->peak_bytes), a));
}

/* ---- the layout ---- */

static void print_layout(const struct train_plan *p)
{
    CLEANUP(str_release) struct str s = { 0 };
    str_addf(&s, "%llu micro-batch%s of %llu sample%s per step%s; optimizer state on the %s",
             (unsigned long long)p->micros, p->micros == 1 ? "" : "es", (unsigned long long)p->micro,
             p->micro == 1 ? "" : "s", p->recompute ? ", gradient checkpointing" : "",
             p->optim_on_host ? "host" : "device");
    if (p->streamed && p->streamed == p->blocks)
        str_add(&s, ", weights of the blocks on the host");
    else if (p->streamed)
        str_addf(&s, ", weights of %llu of %llu blocks on the host", (unsigned long long)p->streamed,
                 (unsigned long long)p->blocks);
    if (p->inputs_on_host)
        str_add(&s, ", inputs of the blocks on the host");
    print_wrapped(stdout, s.s, 2, width());
    for (size_t i = 0; i < p->n_fallbacks; i++) {
        enum { LABEL = 17 };
        printf("%s", i ? "                 " : p->lack.code ? "not enough:      " : "to make it fit:  ");
        print_wrapped_at(stdout, p->fallbacks[i], LABEL, LABEL, width());
    }
}

/* ---- other sizes ---- */

/* "yes", "no", or what has to give way: "33/40" blocks in host memory, "33/40+" and more than that. */
static void print_fit(const struct train_plan_size *s, uint64_t blocks, bool *streamed)
{
    char text[64];
    snprintf(text, sizeof(text), "%llu/%llu%s", (unsigned long long)s->streamed, (unsigned long long)blocks,
             s->fallbacks > 1 ? "+" : "");
    bool shown = s->fits && s->fallbacks && s->streamed;
    *streamed = *streamed || shown;
    printf(" %8s", !s->fits ? "no" : shown ? text : s->fallbacks ? "fallback" : "yes");
}

static void print_sizes(const struct train_plan *p)
{
    const struct train_plan_frames *f = &p->frames;
    bool streamed = false;
    if (!p->n_sizes)
        return;
    printf("\n%-16s", "FRAMES");
    for (size_t i = 0;
         i < p->n_sizes && p->sizes[i].width == p->sizes[0].width && p->sizes[i].height == p->sizes[0].height;
         i++)
        printf(" %8zu", p->sizes[i].frames);
    for (size_t i = 0; i < p->n_sizes; i++) {
        const struct train_plan_size *s = &p->sizes[i];
        char name[48];
        snprintf(name, sizeof(name), "%zux%zu", s->width, s->height);
        if (!i || s->width != s[-1].width || s->height != s[-1].height)
            printf("\n%-16s", name);
        print_fit(s, p->blocks, &streamed);
    }
    printf("\n\n");
    if (streamed)
        printf("N/%llu: fits with N blocks in host memory; +: and with further fallbacks\n",
               (unsigned long long)p->blocks);
    if (!f->most)
        printf("%zux%zu does not fit at any length\n", f->width, f->height);
    else if (f->most == f->most_plain)
        printf("%zux%zu fits with up to %zu frame%s\n", f->width, f->height, f->most,
               f->most == 1 ? "" : "s");
    else
        printf("%zux%zu fits with up to %zu frame%s; without fallbacks %zu\n", f->width, f->height, f->most,
               f->most == 1 ? "" : "s", f->most_plain);
}

void plan_print(const struct train_plan *p, const struct train_options *o)
{
    const struct gpu_info *g = train_device(o);
    CLEANUP(str_release) struct str device = { 0 };
    str_addf(&device, "%s, %s%s%s: %s", g->name, g->title, g->arch[0] && o->machine ? ", " : "",
             o->machine ? g->arch : "", o->why_device);
    print_wrapped(stdout, device.s, 2, width());
    bool large = p->parameters >= 1000000000;
    printf("%.2f %s parameters, %.2f M trained, in %s\n\n", (double)p->parameters / (large ? 1e9 : 1e6),
           large ? "B" : "M", (double)p->trained / 1e6, p->storage);
    print_parts(p);
    print_bounds(p, o);
    printf("\n");
    print_layout(p);
    print_sizes(p);
    if (g->api == GPU_API_HOST && !o->machine && !strcmp(o->config->train.device, "auto"))
        printf("\nthis is a plan for the CPU; for a GPU that is not here, add --gfx NAME --memory GB\n");
}
