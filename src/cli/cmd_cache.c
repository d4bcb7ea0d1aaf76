/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/commands.h"
#include "cli/dataset_print.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "media/dataset_sheet.h"
#include "media/png_write.h"
#include "report/cache.h"
#include "report/dataset.h"
#include "start/cache.h"
#include "start/watch_calls.h"
#include <inttypes.h>
#include <stdio.h>

struct options {
    struct start_cache_options start;
    const char *sheet;
    bool look, json, verbose;
};

/* ---- the dataset ---- */

static int write_sheet(const struct dataset *d, const char *path, struct cairn_error *err)
{
    CLEANUP(picture_free) struct picture sheet = { 0 };
    struct media *m = NULL;
    int r =
        media_open(&m, NULL, err) || dataset_sheet(d, m, NULL, &sheet, err) || png_write(path, &sheet, err);
    media_close(m);
    return r;
}

static int run_look(struct options *w, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct start_cache s;
    struct dataset_totals totals = { 0 };
    w->start.decode = true;
    int r = start_cache_list(&s, &w->start, a, &err) || (w->sheet && write_sheet(s.dataset, w->sheet, &err));
    if (!r) {
        dataset_total(s.dataset, a, &totals);
        if (w->json)
            print_report(report_dataset(s.dataset, w->sheet));
        else
            dataset_print(s.dataset, w->verbose);
        if (w->sheet && !w->json)
            printf("\nsheet     %s\n", w->sheet);
    }
    start_cache_close(&s);
    return r ? print_error(&err) : totals.usable < totals.items ? EXIT_TROUBLE : EXIT_FINE;
}

/* ---- what was done ---- */

static void print_count(const char *what, const struct cache_count *c)
{
    printf("%-9s %zu made", what, c->made);
    if (c->current)
        printf(", %zu were there", c->current);
    if (c->failed)
        printf(", %zu failed", c->failed);
    if (c->repaired)
        printf(", %" PRIu64 " values that were NaN or Inf are 0 now", c->repaired);
    if (c->made)
        printf("; %.1f s, %.2f per second", c->seconds, (double)c->made / c->seconds);
    putchar('\n');
}

/* A name may hold anything, also what a terminal obeys. */
static void print_file(const char *what, const char *path, const char *why)
{
    printf("%-9s ", what);
    print_padded(stdout, path, 0);
    fputs(": ", stdout);
    print_padded(stdout, why, 0);
    putchar('\n');
}

/* Files that were skipped, the first of them with the reason. */
static void print_left_out(const struct dataset *d, const struct cache_result *r)
{
    enum { LISTED = 20 };
    size_t n = 0;
    for (size_t i = 0; i < r->n_failures; i++)
        print_file("failed", r->failures[i].path, r->failures[i].why);
    for (size_t i = 0; i < dataset_count(d); i++) {
        const struct dataset_item *item = dataset_item(d, i);
        if (item->problem && n++ < LISTED)
            print_file("skipped", item->path, item->why);
    }
    if (n > LISTED)
        printf("skipped   %zu more; --look lists all\n", n - LISTED);
}

static void print_stale(const struct cache_stale *s)
{
    char size[24];
    if (s->n)
        printf("%-9s %zu file%s of no item, %s%s\n", s->removed ? "deleted" : "stale", s->n,
               s->n == 1 ? "" : "s", bytes_text((int64_t)s->bytes, size),
               s->removed ? "" : "; --prune deletes them");
}

static int run_cache(struct options *w, struct arena *a)
{
    struct cairn_error err = { 0 };
    struct start_cache s;
    w->start.stop = stop_catch();
    int r = start_cache_list(&s, &w->start, a, &err) || start_cache_run(&s, &w->start, a, &err);
    bool stopped = r && *w->start.stop;
    bool done = s.result.text.made || s.result.latents.made || !r;
    if (done && w->json)
        print_report(report_cache(s.dataset, &s.result, &s.stale));
    else if (done) {
        print_count("text", &s.result.text);
        print_count("latents", &s.result.latents);
        print_left_out(s.dataset, &s.result);
        print_stale(&s.stale);
        if (s.result.first_dir)
            printf("folder    %s\n", s.result.first_dir);
    }
    int code = s.result.n_failures ? EXIT_TROUBLE : EXIT_FINE;
    start_cache_close(&s);
    if (stopped)
        return stop_end("what was made until now is kept; the same command goes on");
    return r ? print_error(&err) : code;
}

int cmd_cache(int argc, char **argv)
{
    struct options w = { .start = { .changes = { .steps = -1 },
                                    .hang_after_s = WATCH_DEFAULT_S,
                                    .argc = argc,
                                    .argv = argv,
                                    .talk = stderr,
                                    .messages = &stderr_messages } };
    struct opt_list set = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    int rest;
    const struct opt_row rows[] = {
        OPT_FLAG('l', "look", &w.look, "show the dataset; encode nothing"),
        OPT_STR(0, "sheet", &w.sheet, "FILE",
                "--look: also write a contact sheet (PNG) of what will be trained on"),
        OPT_FLAG('v', "verbose", &w.verbose, "--look: show every item"),
        OPT_STR(0, "vae", &w.start.vae, "FILE", "VAE of Wan (default: model.vae_path)"),
        OPT_STR(0, "text-encoder", &w.start.text_encoder, "FILE",
                "umT5-XXL (default: model.text_encoder_path)"),
        OPT_STR(0, "tokenizer", &w.start.tokenizer, "FILE",
                "tokenizer of umT5 (default: in or beside the text encoder)"),
        OPT_STR('o', "dir", &w.start.dir, "DIR", "folder for the caches (default: cache.dir)"),
        OPT_FLAG(0, "again", &w.start.again, "make all caches anew, also those that are current"),
        OPT_FLAG(0, "prune", &w.start.prune, "delete caches in the folder that no item uses any more"),
        OPT_LIST('s', "set", &set, "KEY=VALUE", "set a key of the configuration, overriding the file"),
        OPT_STR('d', "device", &w.start.changes.device, "NAME",
                "auto, cpu, hip:0, cuda:0 (default: train.device)"),
        OPT_HANG_AFTER(&w.start.hang_after_s),
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_END,
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn cache [options] CONFIG|DATASET|FOLDER",
        .about =
            "Encodes images, clips and captions for training a Wan model: latents by the VAE, captions by umT5. "
            "The argument is a configuration of `cairn train`, a dataset file of musubi-tuner (TOML) or a job of "
            "ai-toolkit (YAML), or a folder. The caches have musubi-tuner's format. What is current is "
            "skipped, so an interrupted job goes on where it was.",
        .examples =
            "  cairn cache --look photos --sheet photos.png\n"
            "  cairn cache wan-lora.yaml\n"
            "  cairn cache dataset.toml --vae wan_2.1_vae.safetensors --text-encoder umt5_xxl_fp16.safetensors\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    w.start.changes.set = set.item;
    w.start.changes.n_set = set.n;
    if (argc - rest != 1)
        r = options_error("cache", argc > rest ? "give only one configuration or folder"
                                               : "give a configuration, a dataset file or a folder");
    else {
        w.start.file = argv[rest];
        r = w.look || w.sheet ? run_look(&w, &a) : run_cache(&w, &a);
    }
    opt_list_release(&set);
    return r;
}
