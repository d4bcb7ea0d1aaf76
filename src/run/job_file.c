/* SPDX-License-Identifier: Apache-2.0 */
#include "run/job_file.h"

#include "base/str.h"
#include "base/toml.h"
#include "run/resume.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct reading {
    struct job_file *f;
    struct arena *a;
    const struct yaml_node *root;
};

static const struct yaml_node *member(const struct yaml_node *map, const char *key)
{
    for (const struct yaml_node *n = map && map->kind == YAML_MAP ? map->first : NULL; n; n = n->next)
        if (!strcmp(n->key->text, key))
            return n;
    return NULL;
}

static const char *text_of(const struct yaml_node *map, const char *key)
{
    const struct yaml_node *n = member(map, key);
    return n && n->kind == YAML_SCALAR && *n->text ? n->text : NULL;
}

static bool is_map(const struct yaml_node *n)
{
    return n && n->kind == YAML_MAP;
}

static struct job_setting setting(struct reading *r, const struct yaml_node *map, const char *place,
                                  const char *key)
{
    const struct yaml_node *n = member(map, key);
    if (!n || n->kind != YAML_SCALAR || !*n->text)
        return (struct job_setting){ 0 };
    return (struct job_setting){ n->text, arena_printf(r->a, "%s%s", place, key), n->line };
}

static void add_folder(struct reading *r, const char *path, bool is_cache)
{
    if (path)
        *ARENA_PUSH(r->a, r->f->folder, r->f->n_folders) = (struct job_folder){ path, is_cache };
}

/* ---- ai-toolkit ---- */

/* "[name]" stands for the name of the job. */
static const char *with_name(struct reading *r, const char *path, const char *name)
{
    const char *at = path && name ? strstr(path, "[name]") : NULL;
    return at ? arena_printf(r->a, "%.*s%s%s", (int)(at - path), path, name, at + strlen("[name]")) : path;
}

/* Caches of latents and text embeddings are in _latent_cache and _t_e_cache beside the media. */
static bool read_ai_toolkit(struct reading *r)
{
    const struct yaml_node *config = member(r->root, "config"), *process = member(config, "process");
    if (!text_of(r->root, "job") || !process)
        return false;
    const struct yaml_node *job = process->kind == YAML_LIST ? process->first : process;
    const struct yaml_node *datasets = member(job, "datasets"), *model = member(job, "model");
    const char *name = text_of(config, "name"),
               *place = process->kind == YAML_LIST ? "config.process[0]" : "config.process";
    r->f->optimizer = setting(r, member(job, "train"), arena_printf(r->a, "%s.train.", place), "optimizer");
    r->f->low_vram = setting(r, model, arena_printf(r->a, "%s.model.", place), "low_vram");
    r->f->offloading = setting(r, model, arena_printf(r->a, "%s.model.", place), "layer_offloading");
    for (const struct yaml_node *d = datasets ? datasets->first : NULL; d; d = d->next) {
        add_folder(r, with_name(r, text_of(d, "folder_path"), name), false);
        add_folder(r, with_name(r, text_of(d, "dataset_path"), name), false);
    }
    add_folder(r, with_name(r, text_of(job, "training_folder"), name), false);
    r->f->trainer = "ai-toolkit";
    return true;
}

/* ---- musubi-tuner and sd-scripts ---- */

static bool read_datasets(struct reading *r)
{
    static const char *const media[] = { "video_directory", "image_directory", "video_jsonl_file",
                                         "image_jsonl_file" };
    const struct yaml_node *datasets = member(r->root, "datasets"), *general = member(r->root, "general");
    if (!datasets || datasets->kind != YAML_LIST || !is_map(datasets->first))
        return false;
    for (const struct yaml_node *d = datasets->first; d; d = d->next) {
        const char *cache = text_of(d, "cache_directory");
        for (size_t i = 0; i < ARRAY_LEN(media); i++) {
            if (!text_of(d, media[i]))
                continue;
            r->f->trainer = "musubi-tuner";
            if (!cache && i < 2)
                cache = text_of(general, "cache_directory") ? text_of(general, "cache_directory")
                                                            : text_of(d, media[i]);
        }
        add_folder(r, cache, true);
        const struct yaml_node *subsets = member(d, "subsets");
        for (const struct yaml_node *s = subsets ? subsets->first : NULL; s; s = s->next) {
            add_folder(r, text_of(s, "image_dir"), false);
            if (!r->f->trainer)
                r->f->trainer = "sd-scripts";
        }
    }
    r->f->is_dataset = true;
    return r->f->trainer != NULL;
}

/* An option of the command line as a key; names of sections do not count. */
static const struct yaml_node *holder_of(const struct yaml_node *root, const char *key)
{
    if (member(root, key))
        return root;
    for (const struct yaml_node *n = root->first; n; n = n->next)
        if (is_map(n) && member(n, key))
            return n;
    return NULL;
}

static const char *option(struct reading *r, const char *key)
{
    return text_of(holder_of(r->root, key), key);
}

/* A key decides whatever its value is: a wrong one is an error of that key. */
static bool read_options(struct reading *r)
{
    bool has_data = holder_of(r->root, "dataset_config");
    if (holder_of(r->root, "dit"))
        r->f->trainer = "musubi-tuner";
    else if (option(r, "pretrained_model_name_or_path"))
        r->f->trainer = "sd-scripts";
    else if (has_data && holder_of(r->root, "task")) /* the model is missing */
        r->f->trainer = "musubi-tuner";
    else
        return false;
    r->f->optimizer = setting(r, holder_of(r->root, "optimizer_type"), "", "optimizer_type");
    r->f->dataset = option(r, "dataset_config");
    add_folder(r, option(r, "output_dir"), false);
    return true;
}

static bool read_diffusion_pipe(struct reading *r)
{
    const struct yaml_node *model = member(r->root, "model"), *optimizer = member(r->root, "optimizer");
    if (!is_map(model) || !text_of(model, "type") || !is_map(optimizer))
        return false;
    r->f->trainer = "diffusion-pipe";
    r->f->optimizer = setting(r, optimizer, "optimizer.", "type");
    add_folder(r, text_of(r->root, "output_dir"), false);
    return true;
}

/* ---- any of them ---- */

bool job_file_read(const char *path, struct arena *a, struct job_file *out)
{
    struct cairn_error ignored = { 0 };
    struct yaml_node *root;
    bool toml = str_ends(path, ".toml");
    *out = (struct job_file){ .path = path };
    if (toml ? toml_read(path, a, &root, &ignored) : yaml_read(path, a, &root, &ignored))
        return false;
    struct reading r = { out, a, root };
    if (root->kind != YAML_MAP)
        return false;
    if (!toml && read_ai_toolkit(&r))
        return true;
    return read_datasets(&r) || (toml && (read_diffusion_pipe(&r) || read_options(&r)));
}

static void add_file(struct job_file **all, size_t *n, const char *path, struct arena *a)
{
    struct job_file f;
    for (size_t i = 0; path && i < *n; i++)
        if (!strcmp((*all)[i].path, path))
            return;
    if (!path || !job_file_read(path, a, &f))
        return;
    *ARENA_PUSH(a, *all, *n) = f;
    add_file(all, n, f.dataset, a);
}

size_t job_files_of(char *const *argv, struct arena *a, struct job_file **out)
{
    static const char *const options[] = { "--config_file", "--dataset_config", "--config" };
    static const char *const ends[] = { ".yaml", ".yml", ".json" };
    size_t n = 0;
    *out = NULL;
    for (char *const *arg = argv; *arg; arg++) {
        for (size_t i = 0; i < ARRAY_LEN(options);
             i++) /* accelerate has an option of the same name before the trainer's */
            if (str_starts(*arg, options[i]))
                add_file(out, &n, resume_option(arg, options[i]), a);
        for (size_t i = 0; i < ARRAY_LEN(ends); i++)
            if (**arg != '-' && str_ends(*arg, ends[i]))
                add_file(out, &n, *arg, a);
    }
    return n;
}

const char *job_file_command(const struct job_file *f, struct arena *a)
{
    static const struct {
        const char *trainer, *start, *dataset, *job;
    } rows[] = {
        { "ai-toolkit", "python run.py", "", "" },
        { "musubi-tuner", "accelerate launch src/musubi_tuner/wan_train_network.py", " --dataset_config",
          " --config_file" },
        { "sd-scripts", "accelerate launch train_network.py", " --dataset_config", " --config_file" },
        { "diffusion-pipe", "deepspeed --num_gpus=1 train.py --deepspeed", "", " --config" },
    };
    CLEANUP(str_release) struct str path = { 0 };
    char whole[PATH_MAX];
    str_add_word(&path, realpath(f->path, whole) ? whole : f->path);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (!strcmp(rows[i].trainer, f->trainer))
            return arena_printf(a, "cairn run -- %s%s %s", rows[i].start,
                                f->is_dataset ? rows[i].dataset : rows[i].job, path.s);
    return NULL;
}

/* Names that end in 8bit are from bitsandbytes, except Prodigy, which ai-toolkit has itself. */
const char *job_file_optimizer(const struct job_file *f, struct arena *a)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        { "adamw8bit", "adamw" },      { "adam8bit", "adam" },
        { "lion8bit", "lion" },        { "ademamix8bit", "adamw" },
        { "pagedadamw8bit", "adamw" }, { "pagedadamw", "adamw" },
        { "pagedlion8bit", "lion" },   { "sgdnesterov8bit", "sgdnesterov" },
        { "adamw8bitkahan", "adamw" },
    };
    const struct job_setting *s = &f->optimizer;
    for (size_t i = 0; s->value && i < ARRAY_LEN(rows); i++)
        if (!strcasecmp(s->value, rows[i].from))
            return arena_printf(
                a,
                "%s:%d: write %s: %s instead of %s; its state needs more memory, 8 bytes per trained "
                "weight",
                f->path, s->line, s->key, rows[i].to, s->value);
    return NULL;
}
