/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/messages.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/stop.h"
#include "os/file.h"
#include "os/info.h"
#include "report/samples.h"
#include "start/sample.h"
#include "start/watch_calls.h"
#include "train/task_gpt.h"
#include "train/wan_sample.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    struct start_sample_options start;
    const char *temperature;
    struct opt_list prompts, set;
    int tokens, top_k, seed;
    bool json;
    /* Of video models. */
    const char *size, *steps, *cfg, *negative, *lora_scale, *out;
    double scale; /* of the LoRA, where an option says it */
    struct opt_list loras;
    bool no_lora;
    bool made_dir; /* the folder for the files is new */
};

/* For a terminal: keeps newlines and tabs, replaces other control characters. */
static void print_text(const struct str *text)
{
    CLEANUP(str_release) struct str shown = { 0 };
    if (isatty(STDOUT_FILENO))
        str_add_clean_lines(&shown, text->s, text->len);
    else
        str_addn(&shown, text->s, text->len);
    fwrite(shown.s, 1, shown.len, stdout);
    putchar('\n');
}

static struct sample_options options_of(const struct options *w, const struct job_config *c, size_t index)
{
    const struct gpt_keys *k = gpt_keys(c);
    uint64_t seed = w->seed >= 0 ? (uint64_t)w->seed : (uint64_t)c->train.seed;
    return (struct sample_options){
        .tokens = w->tokens >= 0 ? (size_t)w->tokens : (size_t)k->sample.tokens,
        .temperature = w->temperature ? strtod(w->temperature, NULL) : k->sample.temperature,
        .top_k = w->top_k >= 0 ? (size_t)w->top_k : (size_t)k->sample.top_k,
        .seed = sample_seed(seed, index),
        .stop = w->start.model.stop,
    };
}

/* Text is printed as it is generated; for JSON all of it is collected first. */
static int sample(const struct options *w, struct loaded_model *t, struct arena *a, struct cairn_error *err)
{
    struct sample_text *samples = NULL;
    size_t n_samples = 0;
    struct sampler *sampler;
    fprintf(stderr, "%s, on %s\n", t->weights, gpu_info(t->options.g)->name);
    print_runtime(stderr, gpu_info(t->options.g), "  ");
    if (task_gpt_sampler(t->job.task, &sampler, err))
        return -1;
    bool own = w->prompts.n > 0;
    const struct config_list *prompts = &gpt_keys(&t->config)->sample.prompts;
    size_t n = own ? w->prompts.n : prompts->n;
    for (size_t i = 0; i < n; i++) {
        CLEANUP(str_release) struct str text = { 0 };
        const char *prompt = own ? w->prompts.item[i] : prompts->item[i];
        struct sample_options o = options_of(w, &t->config, i);
        if (sampler_run(sampler, prompt, &o, &text, err))
            return -1;
        if (w->json)
            *ARENA_PUSH(a, samples, n_samples) =
                (struct sample_text){ prompt, arena_strndup(a, text.s, text.len), text.len };
        else
            print_text(&text);
    }
    if (w->json)
        print_report(report_samples(t->weights, t->step, samples, n_samples));
    return 0;
}

/* ---- video models ---- */

/* The options that are keys of the configuration, for one kind of model. */
static int adjust_video(const struct options *w, struct job_config *c, struct cairn_error *err)
{
    char seed[24] = "";
    struct wan_keys *k = c->own;
    if (w->seed >= 0)
        snprintf(seed, sizeof(seed), "%d", w->seed);
    const struct {
        const char *option, *key, *value;
    } rows[] = { { "--size", "sample.size", w->size },
                 { "--steps", "sample.steps", w->steps },
                 { "--cfg", "sample.cfg", w->cfg },
                 { "--seed", "sample.seed", seed[0] ? seed : NULL },
                 { "--negative", "sample.negative", w->negative } };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].value && config_set(c, rows[i].option, rows[i].key, rows[i].value, err))
            return -1;
    if (w->prompts.n) {
        config_set_list(c, "--prompt", "sample.prompts",
                        (struct config_list){ (const char **)(void *)w->prompts.item, w->prompts.n });
        k->sample.file = "";
    }
    const char **loras = ARENA_NEW(c->arena, const char *, k->sample.loras.n + w->loras.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < k->sample.loras.n; i++)
        loras[n++] = k->sample.loras.item[i];
    for (size_t i = 0; i < w->loras.n; i++)
        loras[n++] = w->loras.item[i];
    if (w->loras.n)
        config_set_list(c, "--lora", "sample.loras", (struct config_list){ loras, n });
    return 0;
}

static int adjust(void *ctx, struct job_config *c, struct cairn_error *err)
{
    struct options *w = ctx;
    bool video = task_of(c) == &task_wan;
    bool of_video = w->size || w->steps || w->cfg || w->negative || w->start.model.image || w->lora_scale ||
                    w->out || w->no_lora || w->loras.n;
    bool of_text = w->tokens >= 0 || w->temperature || w->top_k >= 0 || w->start.model.tokenizer;
    if (video ? of_text : of_video)
        return cairn_fail(err, CAIRN_EUSAGE, "%s is a model of %s; an option is for the other kind",
                          w->start.model.what[0], video ? "videos" : "text");
    if (!video)
        return 0;
    w->made_dir = !os_is_folder(w->start.model.dir); /* before anything that takes long */
    return file_make_dir(w->start.model.dir, 0777, err) || adjust_video(w, c, err) ? -1 : 0;
}

static int sample_video(const struct options *w, struct loaded_model *t, struct cairn_error *err)
{
    const struct sample_file *made;
    const char *dir = w->start.model.dir;
    size_t n, asked;
    fprintf(stderr, "%s, on %s\n", t->weights, gpu_info(t->options.g)->name);
    if (wan_sample_saved(t, dir, &made, &n, &asked, err))
        return -1;
    if (w->json)
        print_report(report_video_samples(t->weights, t->step, dir, made, n));
    for (size_t i = 0; !w->json && i < n; i++)
        printf("%s/%s\n", dir, made[i].name);
    return n == asked ? 0 : cairn_fail(err, CAIRN_EIO, "%zu of %zu samples failed", asked - n, asked);
}

static int run_sample(struct options *w)
{
    struct cairn_error err = { 0 };
    struct loaded_model t = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    w->start.changes.set = w->set.item;
    w->start.changes.n_set = w->set.n;
    w->scale = w->no_lora || !w->lora_scale ? 0 : strtod(w->lora_scale, NULL);
    w->start.model.lora_scale = w->no_lora || w->lora_scale ? &w->scale : NULL;
    w->start.model.talk = stderr;
    w->start.model.dir = w->out ? w->out : "samples";
    w->start.messages = &stderr_messages;
    w->start.model.stop = stop_catch();
    w->start.adjust = adjust;
    w->start.ctx = w;
    int r = start_sample_open(&t, &w->start, &err) ||
            (t.job.task->ops == &task_wan ? sample_video(w, &t, &err) : sample(w, &t, &a, &err));
    bool stopped = r && *w->start.model.stop;
    start_sample_close(&t);
    if (r && w->made_dir)
        os_remove_dir(w->start.model.dir); /* unless something is in it */
    if (stopped)
        return stop_end("samples that were complete are kept");
    return r ? print_error(&err) : EXIT_FINE;
}

static bool is_number(const char *text, double least, double most)
{
    char *end;
    double v = strtod(text, &end);
    return end != text && !*end && isfinite(v) && v >= least && v <= most;
}

int cmd_sample(int argc, char **argv)
{
    struct options w = { .tokens = -1,
                         .top_k = -1,
                         .seed = -1,
                         .start = { .changes.steps = -1, .hang_after_s = WATCH_DEFAULT_S } };
    int rest;
    const struct opt_row rows[] = {
        OPT_LIST('p', "prompt", &w.prompts, "TEXT",
                 "prompt; may be repeated (default: sample.prompts of the run)"),
        OPT_INT('n', "tokens", &w.tokens, "N", "most tokens to generate (default: sample.tokens)"),
        OPT_STR('t', "temperature", &w.temperature, "T",
                "sampling temperature; below 1 favors likely tokens; 0: greedy"),
        OPT_INT('k', "top-k", &w.top_k, "N", "sample from the N most likely tokens; 0: from all"),
        OPT_INT('s', "seed", &w.seed, "N",
                "random seed; the same seed gives the same result (default: train.seed, sample.seed)"),
        OPT_STR(0, "size", &w.size, "WxHxF",
                "video: pixels and frames, such as 832x480x33 (default: sample.size)"),
        OPT_STR(0, "steps", &w.steps, "N", "video: steps from noise (default: sample.steps)"),
        OPT_STR(0, "cfg", &w.cfg, "SCALE", "video: guidance scale; 1: off (default: sample.cfg)"),
        OPT_STR(0, "negative", &w.negative, "TEXT", "video: negative prompt (default: sample.negative)"),
        OPT_STR('i', "image", &w.start.model.image, "FILE", "video: first frame, for image-to-video models"),
        OPT_STR(0, "lora-scale", &w.lora_scale, "SCALE", "video: strength of the LoRA (default: 1)"),
        OPT_FLAG(0, "no-lora", &w.no_lora, "video: the base model alone"),
        OPT_LIST(0, "lora", &w.loras, "FILE[:SCALE]", "video: one more LoRA; may be repeated"),
        OPT_STR(0, "config", &w.start.model.config, "CONFIG",
                "video: the configuration, or the run, whose base model a LoRA file is for"),
        OPT_STR('o', "out", &w.out, "DIR", "video: folder for the files (default: samples)"),
        OPT_FLAG(0, "ema", &w.start.model.average, "use the moving average (EMA) of the weights"),
        OPT_STR(0, "tokenizer", &w.start.model.tokenizer, "FILE", "tokenizer.json for a model that has none"),
        OPT_LIST(0, "set", &w.set, "KEY=VALUE", "set a key of the configuration, overriding the run's"),
        OPT_STR('d', "device", &w.start.changes.device, "NAME",
                "auto, cpu, hip:0, cuda:0 (default: train.device)"),
        OPT_HANG_AFTER(&w.start.hang_after_s),
        OPT_FLAG('j', "json", &w.json, "print JSON on stdout"),
        OPT_END
    };
    static const struct opt_usage usage = {
        .synopsis = "cairn sample [options] RUN|MODEL\n"
                    "       cairn sample [options] --config CONFIG LORA...\n"
                    "       cairn sample [options] CONFIG",
        .about =
            "Generates text with a trained model, or pictures and clips with the LoRA of a video model: the "
            "newest complete checkpoint of a run, one of its checkpoints, or, for text, the folder or file of "
            "a model. For videos also LoRA files of any program, or none, over the base model of a "
            "configuration. What no option says is as in the configuration.",
        .examples = "  cairn sample runs/gpt-tiny --prompt 'Once upon' --tokens 100\n"
                    "  cairn sample runs/gpt-tiny/checkpoints/step-500 --temperature 0\n"
                    "  cairn sample runs/cat --prompt 'a cat on a roof --d 7' --size 832x480x33\n"
                    "  cairn sample cat.safetensors --config job.yaml --prompt 'a cat'\n",
        .mixed = true,
    };
    int r = options_parse(argc, argv, rows, &usage, &rest);
    if (r != OPTIONS_GO)
        return r;
    if (argc == rest)
        r = options_error("sample", "give a run or a model");
    else if (w.lora_scale && !is_number(w.lora_scale, -1000, 1000))
        r = options_error("sample", "--lora-scale is \"%s\"; it must be a number from -1000 to 1000",
                          w.lora_scale);
    else if (w.temperature && !is_number(w.temperature, 0, 100))
        r = options_error("sample", "--temperature is \"%s\"; it must be a number from 0 to 100",
                          w.temperature);
    else {
        w.start.model.what = (const char *const *)argv + rest;
        w.start.model.n_what = (size_t)(argc - rest);
        r = run_sample(&w);
    }
    opt_list_release(&w.prompts);
    opt_list_release(&w.loras);
    opt_list_release(&w.set);
    return r;
}
