/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/plan_print.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "report/train_plan.h"
#include "start/open_device.h"
#include "start/other_machine.h"
#include "start/own_env.h"
#include "start/read_config.h"
#include "start/watch_calls.h"
#include "train/fit.h"
#include <stdlib.h>

struct plan_options {
    struct config_changes changes;
    struct other_machine machine;
    bool fit, json;
};

/* The plan, of the configuration or of what fits. */
static int make_plan(const struct plan_options *w, const struct train_options *o, struct train_plan *p,
                     struct cairn_error *err)
{
    struct train_fit f;
    if (!w->fit)
        return train_plan(o, p, err);
    if (train_fit(o, &f, err))
        return -1;
    for (size_t i = 0; i < f.n_lines; i++)
        fprintf(w->json ? stderr : stdout, "%-5s%s\n", i ? "" : "fit", f.lines[i]);
    *p = f.plan;
    return 0;
}

static int plan(const struct plan_options *w, const char *file, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct job_config config;
    struct train_plan p;
    struct train_options o = { .config = &config, .dir = "", .talk = stderr };
    config_init(&config, a);
    if (start_read_config(&w->changes, file, &config, &stderr_messages, &err))
        return print_error(&err);
    own_env_apply(&stderr_messages);
    int r = watch_calls(WATCH_DEFAULT_S, NULL, &stderr_messages, &err) ||
            (other_machine_is_given(&w->machine) ? other_machine_open(&w->machine, &config, a, &o, &err)
                                                 : start_open_device(&config, a, &o, &err));
    if (!r) {
        o.stop = stop_catch(); /* so that the token cache is not left incomplete */
        r = make_plan(w, &o, &p, &err);
    }
    if (!r && w->json)
        print_report(report_train_plan(&p, train_device(&o)));
    else if (!r)
        plan_print(&p, &o);
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
    struct plan_options w = { .changes.steps = -1, .changes.only_plan = true };
    struct opt_list set = { 0 };
    struct arena arena = { 0 };
    const char *memory = NULL;
    int rest;
    const struct opt_row rows[] = {
        OPT_LIST('s', "set", &set, "KEY=VALUE", "set a key of the configuration, overriding the file"),
        OPT_STR('d', "device", &w.changes.device, "NAME", "auto, cpu, hip:0, cuda:0 (default: train.device)"),
        OPT_STR(0, "memory", &memory, "GB", "plan for a device with so much memory, instead of this one"),
        OPT_STR(0, "gfx", &w.machine.gfx, "NAME", "plan for this gfx target, such as gfx1151; with --memory"),
        OPT_STR(0, "root", &w.machine.root, "DIR", "plan for the machine of the tree DIR"),
        OPT_FLAG(0, "fit", &w.fit, "choose quantization, recomputation and offloading so that it fits"),
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
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
    else if (memory && !parse_gib(memory, &w.machine.memory_bytes))
        r = options_error("plan", "--memory takes a number of GiB, such as 16");
    else {
        w.changes.set = set.item;
        w.changes.n_set = set.n;
        if (w.machine.gfx && !w.changes.device)
            w.changes.device =
                "auto"; /* train.device is of the machine that will train, not of this question */
        r = plan(&w, argv[rest], &arena);
    }
    opt_list_release(&set);
    arena_release(&arena);
    return r;
}
