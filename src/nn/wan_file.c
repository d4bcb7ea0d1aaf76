/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/wan_file.h"
#include "base/json.h"
#include "nn/wan_names.h"
#include "os/info.h"
#include "os/path.h"
#include "tensor/fp8_scaled.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_SIZE = 128 /* of released models */, MOST_BLOCKS = 4096, MOST_SIZE = 1 << 24 };

/* ---- the shape ---- */

struct seen {
    const struct tensor_source *source;
    struct wan_names names;
    struct arena *arena;
};

static const struct st_tensor *find(const struct seen *f, const char *official)
{
    return source_find(f->source, wan_names_of(&f->names, f->arena, official));
}

/* A tensor that the shape follows from. */
static int need(const struct seen *f, const char *official, int rank, const struct st_tensor **out,
                struct cairn_error *err)
{
    const char *name = wan_names_of(&f->names, f->arena, official);
    *out = source_find(f->source, name);
    if (!*out)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s is missing", f->source->path, name);
    if ((*out)->rank != rank)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s has %d dimensions, expected %d", f->source->path,
                          name, (*out)->rank, rank);
    for (int i = 0; i < rank; i++)
        if (!(*out)->shape[i] || (*out)->shape[i] > MOST_SIZE)
            return cairn_fail(err, CAIRN_EFORMAT, "%s: tensor %s has an impossible size", f->source->path,
                              name);
    return 0;
}

/* One more than the highest number of a block. */
static size_t count_blocks(const struct seen *f)
{
    size_t n = 0;
    const char *prefix = arena_printf(f->arena, "%sblocks.", f->names.prefix);
    for (size_t i = 0; i < f->source->n_tensors; i++) {
        const char *name = f->source->tensors[i].name;
        if (!str_starts(name, prefix))
            continue;
        char *end;
        const char *digits = name + strlen(prefix);
        unsigned long number = strtoul(digits, &end, 10);
        if (end > digits && *end == '.' && number < MOST_BLOCKS && number >= n)
            n = number + 1;
    }
    return n;
}

/* "num_attention_heads" (diffusers) or "num_heads" (official) of the config.json beside the file; 0: it does
 * not say. */
static int heads_of_config(const char *path, size_t *out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = NULL;
    CLEANUP(str_release) struct str config = { 0 };
    struct os_info info;
    *out = 0;
    str_addn(&config, path, (size_t)(path_name(path) - path));
    str_add(&config, "config.json");
    if (os_info(config.s, &info))
        return errno == ENOENT ? 0 : cairn_fail_errno(err, "stat %s", config.s);
    if (json_read_object(config.s, &top, err))
        return -1;
    int64_t heads = json_int(json_get(top, "num_attention_heads"), json_int(json_get(top, "num_heads"), 0));
    *out = heads > 0 && heads < MOST_SIZE ? (size_t)heads : 0;
    return 0;
}

static int find_heads(const struct seen *f, size_t width, size_t given, size_t *out, struct cairn_error *err)
{
    *out = given;
    if (!given && heads_of_config(f->source->path, out, err))
        return -1;
    if (!*out && width % HEAD_SIZE) {
        cairn_fail(err, CAIRN_EUSAGE,
                   "%s: hidden size %zu is not a multiple of %d, so the number of heads is unknown",
                   f->source->path, width, HEAD_SIZE);
        return cairn_hint(err, "set model.heads");
    }
    if (!*out)
        *out = width / HEAD_SIZE;
    return 0;
}

static int find_shape(const struct seen *f, size_t heads, struct wan_shape *s, struct cairn_error *err)
{
    const struct st_tensor *patch, *modulation, *head, *ffn, *text, *time, *clip = NULL;
    *s = wan_shape_common();
    if (need(f, "patch_embedding.weight", 5, &patch, err) ||
        need(f, "head.modulation", 3, &modulation, err) || need(f, "head.head.weight", 2, &head, err) ||
        need(f, "blocks.0.ffn.0.weight", 2, &ffn, err) || need(f, "text_embedding.0.weight", 2, &text, err) ||
        need(f, "time_embedding.0.weight", 2, &time, err))
        return -1;
    if (find(f, "img_emb.proj.1.weight") && need(f, "img_emb.proj.1.weight", 2, &clip, err))
        return -1;
    if (head->shape[0] % WAN_PATCH)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s has %zu rows, expected a multiple of %d",
                          f->source->path, head->name, (size_t)head->shape[0], WAN_PATCH);
    s->layers = count_blocks(f);
    s->width = modulation->shape[2];
    s->ffn = ffn->shape[0];
    s->in = patch->shape[1];
    s->out = head->shape[0] / WAN_PATCH;
    s->text_width = text->shape[1];
    s->time_width = time->shape[1];
    s->clip_width = clip ? clip->shape[1] : 0;
    if (s->in < s->out)
        return cairn_fail(err, CAIRN_EFORMAT, "%s: %s takes %zu channels, fewer than the %zu that come out",
                          f->source->path, patch->name, s->in, s->out);
    return find_heads(f, s->width, heads, &s->heads, err);
}

/* ---- files ---- */

static int open_file(struct tensor_source *s, const char *path, struct arena *a, struct seen *out,
                     struct cairn_error *err)
{
    if (source_open_model(s, path, err))
        return -1;
    *out = (struct seen){ .source = s, .arena = a };
    return wan_names_find(s, a, &out->names, err);
}

int wan_file_read_info(const char *path, size_t heads, struct wan_file_info *out, struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct seen f;
    *out = (struct wan_file_info){ 0 };
    if (open_file(&source, path, &a, &f, err) || find_shape(&f, heads, &out->shape, err))
        return -1;
    if (wan_shape_check(&out->shape, err))
        return cairn_wrap(err, "%s", path);
    const struct st_tensor *q = find(&f, "blocks.0.self_attn.q.weight");
    out->dtype = q ? q->dtype : DTYPE_OTHER;
    out->scaled = q && fp8_scale_of(&source, q);
    out->diffusers = f.names.diffusers;
    out->control = out->shape.in == 48 && out->shape.out == 16;
    out->files = source.n_files;
    return 0;
}

/* All tensors of a base under the names of the file. */
static void list_tensors(struct param_tensors *t, const struct wan *m, size_t base,
                         const struct wan_names *names)
{
    const struct wan_shape *s = &m->shape;
    for (size_t i = 0; i < m->params[base].n; i++) {
        struct param_tensor whole = param_tensor_whole(&m->params[base].list[i]);
        if (i == m->patch.w) {
            whole.rank = 5;
            memcpy(whole.shape, (uint64_t[]){ s->width, s->in, 1, 2, 2 }, 5 * sizeof(uint64_t));
        } else if (str_ends(whole.param->name, "modulation")) {
            whole.rank = 3;
            memcpy(whole.shape, (uint64_t[]){ 1, whole.rows / s->width, s->width }, 3 * sizeof(uint64_t));
        }
        param_tensors_add(t, &whole, "%s", wan_names_of(names, &t->arena, whole.param->name));
    }
}

/* Buffers that some programs save. */
static const char *const unused[] = { "*freqs", "*rope.freqs_cos", "*rope.freqs_sin", NULL };

int wan_file_load(struct wan *m, size_t base, const char *path, struct param_report *report,
                  struct cairn_error *err)
{
    CLEANUP(source_close) struct tensor_source source = { 0 };
    CLEANUP(param_tensors_release) struct param_tensors tensors = { 0 };
    struct seen f;
    *report = (struct param_report){ 0 };
    if (open_file(&source, path, &tensors.arena, &f, err))
        return -1;
    list_tensors(&tensors, m, base, &f.names);
    struct param_file_rules rules = { .under = f.names.prefix, .unused = unused };
    return param_file_read(&tensors, &m->weights[base], &source, &rules, report, err);
}
