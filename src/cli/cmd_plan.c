/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "report/train_plan.h"
#include "start/open_device.h"
#include "start/other_machine.h"
#include "start/own_env.h"
#include "start/read_config.h"
#include "start/watch_calls.h"
#include <stdio.h>
#include <stdlib.h>

static void print_row(const char *name, uint64_t device, uint64_t host)
{
    char a[32], b[32];
    printf("%-16s %12s %12s\n", name, device ? bytes_text((int64_t)device, a) : "-",
           host ? bytes_text((int64_t)host, b) : "-");
}

static void print_plan(const struct train_plan *p, const struct train_options *o)
{
    const struct gpu_info *g = train_device(o);
    bool one = g->api == GPU_API_HOST || g->unified;
    uint64_t bound = p->device_bytes + (one ? p->host_bytes : 0);
    char text[32];
    CLEANUP(str_release) struct str device = { 0 };
    str_addf(&device, "%s, %s: %s", g->name, g->title, o->why_device);
    print_wrapped(stdout, device.s, 2, print_width());
    printf("%.2f M parameters, %.2f M trained, in %s\n\n", (double)p->parameters / 1e6,
           (double)p->trained / 1e6, p->storage);
    printf("%-16s %12s %12s\n", "", "DEVICE", "HOST");
    for (size_t i = 0; i < p->n_parts; i++)
        print_row(p->parts[i].name, p->parts[i].device_bytes, p->parts[i].host_bytes);
    print_row("total", p->device_bytes, p->host_bytes);
    if (p->budget_bytes)
        printf("%-16s %12s%s\n", "available", bytes_text((int64_t)p->budget_bytes, text),
               one ? "  shared by device and host" : "");
    if (p->budget_bytes && bound <= p->budget_bytes)
        printf("%-16s %12s\n", "left", bytes_text((int64_t)(p->budget_bytes - bound), text));
    printf("\n%llu micro-batch%s of %llu sample%s per step%s; optimizer state on the %s%s\n",
           (unsigned long long)p->micros, p->micros == 1 ? "" : "es", (unsigned long long)p->micro,
           p->micro == 1 ? "" : "s", p->recompute ? ", gradient checkpointing" : "",
           p->optim_on_host ? "host" : "device",
           p->streamed && p->streamed == p->blocks ? ", weights of the blocks on the host" : "");
    if (p->streamed && p->streamed < p->blocks)
        printf("weights of %llu of %llu blocks on the host\n", (unsigned long long)p->streamed,
               (unsigned long long)p->blocks);
    if (p->inputs_on_host)
        printf("inputs of the blocks on the host\n");
    for (size_t i = 0; i < p->n_fallbacks; i++)
        printf("%s %s\n",
               i              ? "                "
               : p->lack.code ? "not enough:     "
                              : "to make it fit: ",
               p->fallbacks[i]);
}

static int plan(const struct config_changes *w, const struct other_machine *machine, const char *file,
                bool json, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct job_config config;
    struct train_plan p;
    struct train_options o = { .config = &config, .dir = "", .talk = stderr };
    config_init(&config, a);
    if (start_read_config(w, file, &config, &err))
        return print_error(&err);
    own_env_apply(&stderr_messages);
    int r = watch_calls(WATCH_DEFAULT_S, NULL, &stderr_messages, &err) ||
            (other_machine_is_given(machine) ? other_machine_open(machine, &config, a, &o, &err)
                                             : start_open_device(&config, a, &o, &err));
    if (!r) {
        o.stop = stop_catch(); /* so that the token cache is not left incomplete */
        r = train_plan(&o, &p, &err);
    }
    if (!r && json)
        print_report(report_train_plan(&p, train_device(&o)));
    else if (!r)
        print_plan(&p, &o);
    gpu_close(o.g);
    if (r && o.stop && *o.stop)
        return stop_end("nothing was written");
    return r ? print_error(&err) : p.lack.code ? print_error(&p.lack) : EXIT_FINE;
}

static bool parse_gib(const char *text, uint64_t *out)
{
    char *end;
    double n = strtod(text, &end);
    if (end == text || *end || !(n > 0) || n > 1 << 20)
        return false;
    *out = (uint64_t)(n * (1 << 30));
    return true;
}

int cmd_plan(int argc, char **argv)
{
    struct config_changes w = { .steps = -1 };
    struct opt_list set = { 0 };
    struct arena arena = { 0 };
    struct other_machine machine = { 0 };
    const char *memory = NULL;
    bool json = false;
    int rest;
    const struct opt_row rows[] = {
        OPT_LIST('s', "set", &set, "KEY=VALUE", "set a key of the configuration, overriding the file"),
        OPT_STR('d', "device", &w.device, "NAME", "auto, cpu, hip:0, cuda:0 (default: train.device)"),
        OPT_STR(0, "memory", &memory, "GB", "plan for a device with so much memory, instead of this one"),
        OPT_STR(0, "gfx", &machine.gfx, "NAME", "plan for this gfx target, such as gfx1151; with --memory"),
        OPT_STR(0, "root", &machine.root, "DIR", "plan for the machine of the tree DIR"),
        OPT_FLAG('j', "json", &json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn plan [options] CONFIG.yaml",
        .about = "Computes the device and host memory of a training job, and what is offloaded, recomputed "
                 "or shrunk to make it fit. It neither prepares the data nor "
                 "allocates that memory. Exit status: 0 it fits, 1 it does not, 2 wrong "
                 "configuration, 3 no such device.",
        .examples = "  cairn plan configs/gpt-10m.yaml --set data.path=book.txt\n"
                    "  cairn plan configs/gpt-10m.yaml --set data.path=book.txt --set memory.limit=8 --json\n"
                    "  cairn plan wan.yaml --gfx gfx1201 --memory 16\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc - rest != 1)
        r = options_error("plan", argc > rest ? "give only one configuration" : "give a configuration");
    else if (memory && !parse_gib(memory, &machine.memory_bytes))
        r = options_error("plan", "--memory takes a number of GiB, such as 16");
    else {
        w.set = set.item;
        w.n_set = set.n;
        r = plan(&w, &machine, argv[rest], json, &arena);
    }
    opt_list_release(&set);
    arena_release(&arena);
    return r;
}
