/* SPDX-License-Identifier: Apache-2.0
 * The model of an ai-toolkit job: which one, where its files are, and where its weights live. */
#include "base/hub.h"
#include "base/suggest.h"
#include "media/dataset_parts.h"
#include "nn/umt5.h"
#include "nn/vae.h"
#include "nn/wan_find.h"
#include "os/info.h"
#include "train/foreign_toolkit_parts.h"
#include <string.h>

/* ---- files ---- */

/* A folder or file, as it is written or beside the job, or a repository in the local cache of the hub; NULL:
 * none. */
static const char *find_files(const struct toolkit *t, const char *name)
{
    struct os_info info;
    const char *path = dataset_resolve(name, t->path, NULL, t->a);
    return os_info(path, &info) ? hub_find(name, t->a) : path;
}

static const char *folder_in(const struct toolkit *t, const char *root, const char *name)
{
    const char *below = root ? arena_printf(t->a, "%s/%s", root, name) : NULL;
    return below && os_is_folder(below) ? below : NULL;
}

/* Weights that are nowhere are an error of `cairn train`, but a plan does without. */
static void miss(const struct toolkit *t, const char *key, const char *name)
{
    struct foreign_job *j = t->job;
    const char *place = toolkit_place(t, toolkit_get(t, key));
    if (hub_is_id(name)) {
        j->missing = arena_printf(t->a, "%s: %s: %s is neither a folder nor in the Hugging Face cache, %s",
                                  place, key, name, hub_folder(t->a));
        j->missing_remedy = arena_printf(
            t->a, "`hf download %s` puts it there; or set %s to a folder that has it", name, key);
    } else {
        j->missing = arena_printf(t->a, "%s: %s: %s does not exist", place, key, name);
        j->missing_remedy = "set it to the model's folder, or to its Hugging Face id";
    }
}

/* A folder of a part: that of a key of its own, or below one of the roots.  *key: the key that led to it. */
struct part {
    const char *key;       /* of the job */
    const char *below;     /* its folder in a root of diffusers */
    const char *published; /* where ai-toolkit takes it from */
    const char *path, *from;
};

static void find_part(const struct toolkit *t, const char *root, const char *extras, struct part *p)
{
    const char *own = toolkit_text(t, p->key, NULL), *found = own ? find_files(t, own) : NULL;
    const char *published = p->published ? hub_find(p->published, t->a) : NULL;
    const struct {
        const char *path, *from;
    } places[] = {
        { folder_in(t, found, p->below), p->key },
        { found, p->key },
        { folder_in(t, root, p->below), "model.name_or_path" },
        { folder_in(t, extras, p->below), "model.extras_name_or_path" },
        { folder_in(t, published, p->below), NULL },
        { published, NULL },
    };
    if (own && !found && !t->job->missing)
        miss(t, p->key, own);
    for (size_t i = 0; i < ARRAY_LEN(places) && !p->path; i++) {
        p->path = places[i].path;
        p->from = places[i].from;
    }
}

/* An error in the files of a part, at the key that led to them. */
static int fail_part(const struct toolkit *t, const char *from)
{
    const struct yaml_node *n = from ? toolkit_get(t, from) : NULL;
    t->err->code = CAIRN_EUSAGE;
    cairn_wrap(t->err, "%s: %s", n ? toolkit_place(t, n) : t->path, from ? from : "model");
    return t->err->hint[0]
               ? -1
               : cairn_hint(t->err, "set it to a folder of diffusers, or download its files again");
}

static int add_parts(const struct toolkit *t, const char *root, const char *task)
{
    const char *extras = toolkit_text(t, "model.extras_name_or_path", NULL);
    bool is_5b = !strcmp(task, "ti2v-5B");
    struct part vae = { "model.vae_path", "vae", is_5b ? NULL : "ai-toolkit/wan2.1-vae", NULL, NULL };
    struct part text = { "model.te_name_or_path", "text_encoder", "ai-toolkit/umt5_xxl_encoder", NULL, NULL };
    struct vae_info vae_info;
    struct umt5_info text_info;
    extras = extras ? find_files(t, extras) : NULL;
    find_part(t, root, extras, &vae);
    find_part(t, root, extras, &text);
    if ((vae.path && vae_read_info(vae.path, &vae_info, t->err)))
        return fail_part(t, vae.from);
    if (text.path && umt5_read_info(text.path, &text_info, t->err))
        return fail_part(t, text.from);
    if (vae.path)
        toolkit_add(t, "model.vae_path", vae.path, vae.from);
    if (text.path)
        toolkit_add(t, "model.text_encoder_path", text.path, text.from);
    if (root && (!vae.path || !text.path))
        foreign_note(t->job, t->a, "no %s was found beside the model: caches need %s",
                     vae.path    ? "text encoder"
                     : text.path ? "VAE"
                                 : "VAE and no text encoder",
                     vae.path ? "model.text_encoder_path" : "model.vae_path");
    const char *tokenizer = NULL;
    if (text.path && str_ends(text.path, "/text_encoder"))
        tokenizer = folder_in(t, arena_strndup(t->a, text.path, strlen(text.path) - strlen("/text_encoder")),
                              "tokenizer");
    if (tokenizer)
        toolkit_add(t, "model.tokenizer_path", tokenizer, text.from);
    return 0;
}

/* ---- which model ---- */

static const struct arch {
    const char *name;
    const char *task; /* NULL: by its size */
} archs[] = {
    { "wan21", NULL },           { "wan21_i2v", "i2v-14B" },
    { "wan22_14b", "t2v-A14B" }, { "wan22_14b_i2v", "i2v-A14B" },
    { "wan22_5b", "ti2v-5B" },
};

static const struct arch *find_arch(const char *name)
{
    size_t n = strcspn(name, ":"); /* what follows chooses a model in ai-toolkit's user interface */
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (strlen(archs[i].name) == n && !strncmp(archs[i].name, name, n))
            return &archs[i];
    return NULL;
}

static int refuse_arch(const struct toolkit *t, const char *name)
{
    struct suggestion near = { .word = name };
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        suggest_try(&near, archs[i].name);
    const char *all = "cairn trains wan21, wan22_14b, wan22_14b_i2v and wan22_5b";
    return toolkit_refuse(t, "model.arch",
                          near.best ? arena_printf(t->a, "did you mean %s? %s", near.best, all) : all,
                          "cairn does not train %.100s", name);
}

/* Wan 2.1 T2V is one of two models: what the job calls it says which. */
static const char *size_of_21(const char *arch, const char *name)
{
    if (strstr(arch, ":1b") || strstr(name, "1.3B") || strstr(name, "1.3b") || strstr(name, "1_3b"))
        return "t2v-1.3B";
    return "t2v-14B";
}

static int choose_experts(const struct toolkit *t, struct toolkit_model *m)
{
    m->high = m->low = true;
    if (!m->experts)
        return 0;
    m->high = toolkit_bool(t, "model.model_kwargs.train_high_noise", true);
    m->low = toolkit_bool(t, "model.model_kwargs.train_low_noise", true);
    if (!m->high && !m->low)
        return toolkit_fail(t, "model.model_kwargs.train_high_noise",
                            "set train_high_noise or train_low_noise to true", "no expert is trained");
    toolkit_add(t, "model.expert",
                m->high && m->low ? "both"
                : m->high         ? "high"
                                  : "low",
                m->high ? "model.model_kwargs.train_low_noise" : "model.model_kwargs.train_high_noise");
    return 0;
}

/* The files know the model better than the job. */
static int check_files(const struct toolkit *t, const char *root, struct toolkit_model *m)
{
    struct wan_files files = { 0 };
    bool is_21 = str_starts(m->task, "t2v-") && !m->experts;
    const char *expert = m->experts ? m->high && m->low ? "both" : m->high ? "high" : "low" : "auto";
    struct wan_request r = { root, "", is_21 ? "" : m->task, expert, 0 };
    int failed = wan_find(&r, &files, t->err);
    if (!failed && is_21)
        m->task = files.bases[0].kind.task == WAN_T2V_1_3B ? "t2v-1.3B" : "t2v-14B";
    if (!failed)
        m->blocks = files.bases[0].info.shape.layers;
    wan_files_release(&files);
    return failed ? fail_part(t, "model.name_or_path") : 0;
}

static int find_kind(const struct toolkit *t, struct toolkit_model *m)
{
    const char *name = toolkit_text(t, "model.name_or_path", NULL),
               *arch = toolkit_text(t, "model.arch", NULL);
    if (!name)
        return toolkit_fail(t, "model.name_or_path",
                            "set it to the model's folder, or to its Hugging Face id", "it is missing");
    if (!arch)
        return toolkit_refuse(t, "model.arch", "set it to wan21, wan22_14b, wan22_14b_i2v or wan22_5b",
                              "it is missing, and cairn trains Wan only");
    const struct arch *a = find_arch(arch);
    if (!a)
        return refuse_arch(t, arch);
    if (a->task && !strcmp(a->task, "i2v-14B"))
        return toolkit_refuse(
            t, "model.arch",
            "use wan22_14b_i2v, which needs none, or caches of musubi-tuner with a configuration of cairn's own",
            "wan21_i2v needs the CLIP vision encoder, which cairn does not have");
    m->task = a->task ? a->task : size_of_21(arch, name);
    m->experts = str_ends(m->task, "-A14B");
    m->blocks = !strcmp(m->task, "t2v-1.3B") || !strcmp(m->task, "ti2v-5B") ? 30 : 40;
    return 0;
}

/* ---- memory ---- */

/* A wish about memory: the nearest format that cairn has. */
static int add_quantize(const struct toolkit *t)
{
    static const struct {
        const char *theirs, *ours;
    } types[] = {
        { "qfloat8", "fp8" },   { "float8", "fp8" }, { "fp8", "fp8" },    { "qint8", "int8" },
        { "int8", "int8" },     { "uint8", "int8" }, { "uint7", "int8" }, { "uint6", "int8" },
        { "uint5", "int8" },    { "uint4", "int8" }, { "uint3", "int8" }, { "uint2", "int8" },
        { "qint4", "int8" },    { "qint2", "int8" }, { "int4", "int8" },  { "convrot8", "int8" },
        { "convrot4", "int8" },
    };
    const char *qtype = toolkit_text(t, "model.qtype", "qfloat8"), *ours = NULL;
    if (!toolkit_bool(t, "model.quantize", false))
        return 0;
    size_t n = strcspn(qtype, "|");
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strlen(types[i].theirs) == n && !strncmp(types[i].theirs, qtype, n))
            ours = types[i].ours;
    if (!ours)
        return toolkit_refuse(t, "model.qtype", "set it to qfloat8 or qint8, or set model.quantize to false",
                              "cairn cannot quantize to %.100s", qtype);
    toolkit_add(t, "model.quantize", ours, "model.quantize");
    if (qtype[n] || toolkit_get(t, "model.accuracy_recovery_adapter") || strchr("uq", *qtype) == NULL ||
        !strchr(qtype, '8'))
        foreign_note(t->job, t->a,
                     "model.qtype: the frozen weights are %s, which needs no accuracy recovery adapter",
                     ours);
    return 0;
}

static int add_memory(const struct toolkit *t, const struct toolkit_model *m)
{
    bool offload = toolkit_bool(t, "model.layer_offloading", toolkit_bool(t, "model.auto_memory", false));
    const char *percent = "model.layer_offloading_transformer_percent";
    double share = toolkit_real(t, percent, 1);
    if (share < 0 || share > 1)
        return toolkit_fail(t, percent, "set it to a share, 0 to 1", "it is not a share");
    if (offload && share > 0)
        toolkit_add(t, "memory.blocks",
                    share < 1 ? arena_printf(t->a, "%.0f", share * (double)m->blocks) : "host",
                    "model.layer_offloading");
    if (!toolkit_bool(t, "model.low_vram", false))
        return 0;
    if (m->experts && m->high && m->low)
        toolkit_add(t, "memory.idle", "host", "model.low_vram");
    else
        foreign_note(t->job, t->a, "model.low_vram: cairn offloads by itself what does not fit");
    return 0;
}

int toolkit_add_model(const struct toolkit *t, struct toolkit_model *m)
{
    *m = (struct toolkit_model){ 0 };
    if (find_kind(t, m) || choose_experts(t, m))
        return -1;
    const char *name = toolkit_text(t, "model.name_or_path", NULL), *root = find_files(t, name);
    if (root && check_files(t, root, m))
        return -1;
    toolkit_add(t, "model.task", m->task, "model.arch");
    if (root)
        toolkit_add(t, "model.path", root, "model.name_or_path");
    else
        miss(t, "model.name_or_path", name);
    return add_parts(t, root, m->task) || add_quantize(t) || add_memory(t, m) ? -1 : 0;
}
