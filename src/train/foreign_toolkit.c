/* SPDX-License-Identifier: Apache-2.0 */
#include "train/foreign_toolkit.h"

#include "media/dataset_keys.h"
#include "media/dataset_parts.h"
#include "train/foreign_toolkit_parts.h"
#include <stdlib.h>
#include <string.h>

bool foreign_is_toolkit(const struct yaml_node *root)
{
    return settings_get(root, "job") && settings_get(settings_get(root, "config"), "process");
}

static const struct yaml_node *first_process(const struct yaml_node *root)
{
    const struct yaml_node *list = settings_get(settings_get(root, "config"), "process");
    return list->kind == YAML_LIST ? list->first : list;
}

bool foreign_has_model(const struct yaml_node *root)
{
    return toolkit_get_in(first_process(root), "model");
}

static int fail_at(const struct toolkit *t, const struct yaml_node *n, const char *what, const char *remedy)
{
    cairn_fail(t->err, CAIRN_EUSAGE, "%s:%d:%d: %s", t->path, n->line, n->column, what);
    return cairn_hint(t->err, "%s", remedy);
}

/* ai-toolkit refuses a variable that is not set, too. */
static int check_variables(const struct toolkit *t, const struct yaml_node *n)
{
    const char *begin = n->kind == YAML_SCALAR ? strstr(n->text, "${") : NULL;
    const char *end = begin ? strchr(begin, '}') : NULL;
    if (end) {
        const char *name = arena_strndup(t->a, begin + 2, (size_t)(end - begin - 2));
        if (!getenv(name))
            return fail_at(t, n, arena_printf(t->a, "the environment variable %s is not set", name),
                           "set it, or write its value");
    }
    for (const struct yaml_node *i = n->first; i; i = i->next)
        if (check_variables(t, i))
            return -1;
    return 0;
}

/* ---- the job ---- */

static int check_top(const struct toolkit *t, const struct yaml_node *root)
{
    static const char *const known[] = { "job", "config", "meta" };
    for (const struct yaml_node *n = root->first; n; n = n->next) {
        bool found = false;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
            found = found || !strcmp(n->key->text, known[i]);
        if (!found)
            return fail_at(t, n->key,
                           arena_printf(t->a, "%s: unknown key of an ai-toolkit job", n->key->text),
                           "a job has job, config and meta");
    }
    const struct yaml_node *job = settings_get(root, "job");
    if (job->kind != YAML_SCALAR || (strcmp(job->text, "extension") && strcmp(job->text, "train")))
        return fail_at(t, job, "job: cairn runs jobs that train a LoRA", "set it to extension");
    return 0;
}

static int find_process(struct toolkit *t, const struct yaml_node *root)
{
    const struct yaml_node *config = settings_get(root, "config"), *name = toolkit_get_in(config, "name");
    const struct yaml_node *list = settings_get(config, "process");
    for (const struct yaml_node *n = config->first; n; n = n->next)
        if (strcmp(n->key->text, "name") && strcmp(n->key->text, "process") &&
            strcmp(n->key->text, "log_dir") && strcmp(n->key->text, "device"))
            return fail_at(t, n->key,
                           arena_printf(t->a, "config.%s: unknown key of an ai-toolkit job", n->key->text),
                           "config has name and process");
    if (name && name->kind != YAML_SCALAR)
        return fail_at(t, name, "config.name is not a text", "give the job a name");
    if (!name || !*name->text || strchr(name->text, '/'))
        return fail_at(t, name ? name : config, "config.name: a job needs a name, without /",
                       "the LoRA and its folder get it");
    t->name = name->text;
    const struct yaml_node *first = first_process(root);
    if (!first || first->kind != YAML_MAP)
        return fail_at(t, list, "config.process is not a list with one process",
                       "begin it with - type: sd_trainer");
    if (list->kind == YAML_LIST && first->next)
        return fail_at(t, first->next, "config.process: cairn runs one process of a job",
                       "put the others into files of their own");
    t->process = first;
    return 0;
}

static int check_type(const struct toolkit *t)
{
    static const char *const known[] = { "sd_trainer", "diffusion_trainer", "ui_trainer" };
    const char *type = toolkit_text(t, "type", NULL);
    for (size_t i = 0; type && i < ARRAY_LEN(known); i++)
        if (!strcmp(type, known[i]))
            return 0;
    if (type)
        return toolkit_refuse(t, "type", "set it to sd_trainer or diffusion_trainer",
                              "cairn has no process of this kind: %.100s", type);
    const struct yaml_node *n = toolkit_get(t, "type");
    return fail_at(t, n ? n : t->process, n ? "type is not a text" : "type is missing",
                   "set it to sd_trainer");
}

/* ---- the run ---- */

static int add_device(const struct toolkit *t)
{
    const char *device = toolkit_text(t, "device", NULL);
    if (!device)
        return 0;
    if (!strcmp(device, "cuda"))
        device = "cuda:0";
    if (strcmp(device, "cpu") && !str_starts(device, "cuda:"))
        return toolkit_refuse(t, "device", "set it to cuda:0 for the first GPU, of AMD too, or to cpu",
                              "cairn has no such device: %.100s", device);
    toolkit_add(t, "train.device", device, "device");
    return 0;
}

static void add_run(const struct toolkit *t)
{
    const char *folder = toolkit_text(t, "training_folder", NULL);
    foreign_add(t->job, t->a, "run.name", t->name, arena_printf(t->a, "%s", t->path), "config.name");
    if (folder)
        toolkit_add(t, "run.dir",
                    arena_printf(t->a, "%s%s%s", folder, str_ends(folder, "/") ? "" : "/", t->name),
                    "training_folder");
}

static int add_save(const struct toolkit *t)
{
    static const struct {
        const char *theirs, *ours;
    } dtypes[] = {
        { "float16", "f16" },   { "fp16", "f16" },    { "half", "f16" }, { "bf16", "bf16" },
        { "bfloat16", "bf16" }, { "float32", "f32" }, { "fp32", "f32" }, { "float", "f32" },
    };
    const char *dtype = toolkit_text(t, "save.dtype", "float16"), *ours = NULL;
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if (!strcmp(dtypes[i].theirs, dtype))
            ours = dtypes[i].ours;
    if (!ours)
        return toolkit_refuse(t, "save.dtype", "set it to float16, bf16 or float32",
                              "cairn cannot save this format: %.100s", dtype);
    toolkit_add(t, "save.dtype", ours, "save.dtype");
    toolkit_add(t, "save.files", "ai-toolkit", NULL); /* NAME_000000250.safetensors in the run's folder */
    if (!toolkit_get(t, "save.save_every"))
        toolkit_add(t, "checkpoint.every", "1000", NULL);
    if (!toolkit_get(t, "save.max_step_saves_to_keep"))
        toolkit_add(t, "checkpoint.keep", "5", NULL);
    if (toolkit_bool(t, "save.push_to_hub", false))
        foreign_note(t->job, t->a,
                     "save.push_to_hub: cairn uploads nothing; the LoRA stays in the run's folder");
    return 0;
}

/* ---- the data ---- */

/* Sides with the area of side x side, multiples of the step. */
static void bucket_of(size_t side, size_t step, size_t *width, size_t *height)
{
    size_t below = side / step * step, above = (side + step - 1) / step * step;
    *height = below;
    *width = above * below <= side * side ? above : below;
}

/* The datasets stay in the job, but errors in them are found now; the largest size serves a plan that is made
 * before the folders are there. */
static int add_data(const struct toolkit *t, const struct yaml_node *root, const struct toolkit_model *m)
{
    size_t step = !strcmp(m->task, "ti2v-5B") ? 32 : 16, most = 0, width = step, height = step, frames = 1;
    struct dataset_options o = { .config = t->path, .bucket_step = step };
    struct dataset_sources sources = { 0 };
    if (!toolkit_get(t, "datasets") || !toolkit_get(t, "datasets")->first)
        return toolkit_fail(t, "datasets", "add a list of datasets, each with a folder_path",
                            "the job has no datasets");
    if (dataset_read_toolkit(t->path, root, &o, t->a, &sources, t->err)) {
        t->err->code = CAIRN_EUSAGE;
        return -1;
    }
    for (size_t i = 0; i < sources.n; i++) {
        const struct dataset_source *s = &sources.source[i];
        size_t w, h, f = s->find & DATASET_CLIPS ? (s->max_frames - 1) / 4 * 4 + 1 : 1;
        bucket_of(s->side, step, &w, &h);
        if (w * h * f <= most)
            continue;
        most = w * h * f;
        width = w, height = h, frames = f;
    }
    toolkit_add(t, "data.path", t->path, "datasets");
    toolkit_add(t, "data.size", arena_printf(t->a, "%zux%zux%zu", width, height, frames), "datasets");
    return 0;
}

int foreign_toolkit(const char *path, const struct yaml_node *root, struct arena *a, struct foreign_job *out,
                    struct cairn_error *err)
{
    struct toolkit t = { .path = path, .job = out, .a = a, .err = err };
    struct toolkit_model model;
    *out = (struct foreign_job){ .program = "ai-toolkit", .file = path };
    if (check_top(&t, root) || find_process(&t, root) || check_variables(&t, root) || check_type(&t) ||
        toolkit_check_keys(&t))
        return -1;
    foreign_add(out, a, "model.kind", "wan", NULL, NULL);
    if (toolkit_add_model(&t, &model) || toolkit_add_network(&t, &model) || add_data(&t, root, &model) ||
        toolkit_add_train(&t, &model) || add_device(&t) || toolkit_add_samples(&t, &model) || add_save(&t))
        return -1;
    add_run(&t);
    return 0;
}
