/* SPDX-License-Identifier: Apache-2.0
 * Captions and prompts to caches of text. */
#include "base/file.h"
#include "base/str.h"
#include "encode/cache_job_inside.h"
#include "nn/umt5.h"
#include "os/info.h"
#include "os/path.h"
#include "text/text_clean.h"
#include "text/unigram.h"
#include "video/cache_write.h"
#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 512, TEXT_END = 1 }; /* tokens of a prompt, and the id that ends it */

/* One file to be made. */
struct text {
    const char *dir, *stem, *caption;
    const char *made_from;
    uint32_t *ids;
    size_t n;
    bool done;
};

struct text_pass {
    const struct cache_job *job;
    struct cache_result *out;
    struct text *texts;
    size_t n_texts;
    struct unigram *tokenizer;
    char model[33]; /* identifies text encoder, tokenizer and dtype */
    struct cache_progress progress;
    size_t dim;    /* of the encoder */
    size_t vocab;  /* token ids that it knows */
    size_t *order; /* texts by the number of their prompt */
};

static void release(struct text_pass *p)
{
    unigram_free(p->tokenizer);
    cache_progress_end(&p->progress);
}

/* ---- what is to be done ---- */

static const char *made_from(const struct text_pass *p, const char *caption)
{
    struct hash h;
    char text[33];
    hash_init(&h);
    hash_add_text(&h, p->model);
    hash_add_text(&h, caption);
    hash_end_text(&h, text);
    return arena_strdup(&p->out->arena, text);
}

/* A file that musubi-tuner wrote is current if its caption is this one. */
static bool is_current(const char *path, const char *made, const char *caption)
{
    enum cache_file state = cache_file_state(path, made);
    return state == CACHE_CURRENT || (state == CACHE_FOREIGN && cache_has_caption(path, caption));
}

static bool is_listed(const struct text_pass *p, const char *dir, const char *stem)
{
    for (size_t i = p->n_texts; i-- > 0;)
        if (!strcmp(p->texts[i].stem, stem) && !strcmp(p->texts[i].dir, dir))
            return true;
    return false;
}

static void want(struct text_pass *p, const struct text *t)
{
    struct arena *a = &p->out->arena;
    const char *made = made_from(p, t->caption);
    const char *path = arena_printf(a, "%s/%s", t->dir, cache_name_text(a, t->stem));
    if (!p->job->again && is_current(path, made, t->caption)) {
        p->out->text.current++;
        return;
    }
    struct text *new = ARENA_PUSH(a, p->texts, p->n_texts);
    *new = *t;
    new->made_from = made;
}

static void list_texts(struct text_pass *p)
{
    struct arena *a = &p->out->arena;
    const struct dataset_item *before = NULL;
    for (size_t i = 0; p->job->dataset && i < dataset_count(p->job->dataset); i++) {
        const struct dataset_item *item = dataset_item(p->job->dataset, i);
        if (item->problem || !item->caption)
            continue;
        /* Items of one file follow each other. */
        bool same = before && !strcmp(before->cache_stem, item->cache_stem) &&
                    !strcmp(before->block->cache_directory, item->block->cache_directory);
        before = item;
        if (!same)
            want(p, &(struct text){ .dir = item->block->cache_directory,
                                    .stem = item->cache_stem,
                                    .caption = item->caption });
    }
    for (size_t i = 0; i < p->job->n_prompts && p->out->first_dir; i++) {
        const char *stem = cache_prompt_stem(a, p->job->prompts[i]);
        if (!is_listed(p, p->out->first_dir, stem))
            want(p, &(struct text){ .dir = p->out->first_dir, .stem = stem, .caption = p->job->prompts[i] });
    }
}

/* ---- tokens ---- */

/* The tokenizer that the user names, or that of ComfyUI's file, or one beside the text encoder. */
static int open_tokenizer(struct text_pass *p, struct cairn_error *err)
{
    static const char remedy[] =
        "set model.tokenizer_path to the tokenizer of umT5 (tokenizer.json or spiece.model)";
    const struct cache_job *job = p->job;
    struct umt5_info info;
    if (umt5_read_info(job->text.path, &info, err))
        return -1;
    p->vocab = info.vocab;
    if (job->tokenizer_path && job->tokenizer_path[0])
        return unigram_open(&p->tokenizer, job->tokenizer_path, err) ? cairn_hint(err, "%s", remedy) : 0;
    CLEANUP(str_release) struct str bytes = { 0 };
    if (info.has_tokenizer)
        return umt5_read_tokenizer(job->text.path, &bytes, err) ||
                       unigram_parse_model(&p->tokenizer, job->text.path, bytes.s, bytes.len, err)
                   ? -1
                   : 0;
    CLEANUP(mem_free) char *folder = path_folder(job->text.path);
    CLEANUP(mem_free) char *above = folder ? path_folder(folder) : NULL;
    const char *places[] = { job->text.path, folder, above };
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        if (places[i] && (i || !os_is_file(places[i])) && !unigram_open(&p->tokenizer, places[i], err))
            return 0;
    cairn_fail(err, CAIRN_EIO, "%s: neither in it nor beside it is a tokenizer", job->text.path);
    return cairn_hint(err, "%s", remedy);
}

static int identify(struct text_pass *p, struct cairn_error *err)
{
    struct hash h;
    hash_init(&h);
    hash_add(&h, unigram_hash(p->tokenizer), 2 * sizeof(uint64_t));
    hash_add_u64(&h, (uint64_t)p->job->dtype);
    if (cache_hash_file(&h, p->job->text.path, err))
        return -1;
    hash_end_text(&h, p->model);
    return 0;
}

static int tokenize(const struct text_pass *p, struct text *t, struct cairn_error *err)
{
    CLEANUP(str_release) struct str clean = { 0 };
    CLEANUP(token_list_release) struct token_list ids = { 0 };
    if (text_clean(t->caption, strlen(t->caption), &clean, err) ||
        unigram_encode(p->tokenizer, clean.s ? clean.s : "", clean.len, &ids, err))
        return -1;
    for (size_t i = 0; i < ids.n; i++)
        if (ids.ids[i] >= p->vocab) {
            cairn_fail(err, CAIRN_EUSAGE, "the tokenizer has the token %u, but %s has only %zu", ids.ids[i],
                       p->job->text.path, p->vocab);
            return cairn_hint(err, "model.tokenizer_path must be the tokenizer of umT5");
        }
    int64_t end = unigram_end(p->tokenizer);
    t->n = ids.n < TEXT_MOST ? ids.n + 1 : TEXT_MOST;
    t->ids = ARENA_NEW(&p->out->arena, uint32_t, t->n);
    if (t->n > 1)
        memcpy(t->ids, ids.ids, (t->n - 1) * sizeof(*t->ids));
    t->ids[t->n - 1] = end >= 0 ? (uint32_t)end : TEXT_END;
    return 0;
}

/* ---- the encoder ---- */

static int write_text(void *ctx, size_t prompt, const float *rows, struct cairn_error *err)
{
    struct text_pass *p = ctx;
    struct text *t = &p->texts[p->order[prompt]];
    struct cache_text c = { t->stem, t->caption, t->n, p->dim, rows, p->job->dtype, t->made_from };
    if (file_make_dir(t->dir, 0777, err) || cache_write_text(t->dir, &c, err))
        return -1;
    t->done = true;
    cache_progress_step(&p->progress, ++p->out->text.made);
    return 0;
}

static bool stop_asked(void *ctx)
{
    const struct cache_job *job = ctx;
    return job->stop && *job->stop;
}

static void say_layout(const struct text_pass *p, const struct encode_device *d, const struct umt5 *model)
{
    const struct umt5_layout *l = umt5_layout(model);
    size_t layers = umt5_info(model)->layers;
    char from_file[64] = "", bytes[24];
    if (l->resident < layers)
        snprintf(from_file, sizeof(from_file), " (%zu from the file)", layers - l->resident);
    message_say(&p->job->sink, "text encoder: %s, %s, %zu layers%s, %s%s", encode_device_name(d),
                gpu_storage_name(d->nn.storage), layers, from_file,
                bytes_text((int64_t)(l->weights + l->work), bytes), encode_device_note(d));
}

/* All texts that are not done yet. */
static int encode_on(struct text_pass *p, struct encode_device *d, struct cairn_error *err)
{
    struct arena *a = &p->out->arena;
    struct umt5_prompt *prompts = ARENA_NEW(a, struct umt5_prompt, p->n_texts);
    struct umt5 *model = NULL;
    size_t n = 0;
    p->order = ARENA_NEW(a, size_t, p->n_texts);
    for (size_t i = 0; i < p->n_texts; i++)
        if (!p->texts[i].done) {
            prompts[n] = (struct umt5_prompt){ p->texts[i].ids, p->texts[i].n };
            p->order[n++] = i;
        }
    int r = umt5_open(&model, &d->nn, p->job->text.path, encode_device_budget(d), err);
    if (!r) {
        struct umt5_sink sink = { write_text, p };
        struct umt5_hooks hooks = { .stop = stop_asked, .ctx = (void *)p->job };
        p->dim = umt5_info(model)->dim;
        say_layout(p, d, model);
        r = umt5_encode(model, prompts, n, &sink, &hooks, err);
    }
    umt5_close(model);
    return r;
}

static int encode_all(struct text_pass *p, struct cairn_error *err)
{
    const struct cache_job *job = p->job;
    struct encode_device_options o = { ENCODE_TEXT, job->g,           job->text.on_cpu, job->text.storage,
                                       job->budget, job->host_budget, &job->sink };
    CLEANUP(encode_device_close) struct encode_device d;
    if (encode_device_open(&d, &o, err))
        return -1;
    int r = encode_on(p, &d, err);
    while (r && !stop_asked((void *)job) && !encode_device_fall_back(&d, err))
        r = encode_on(p, &d, err);
    return r && stop_asked((void *)job) ? cache_job_stopped(job, err) : r;
}

int cache_job_texts(const struct cache_job *job, struct cache_result *out, struct cairn_error *err)
{
    CLEANUP(release) struct text_pass p = { .job = job, .out = out };
    if (open_tokenizer(&p, err) || identify(&p, err))
        return -1;
    list_texts(&p);
    if (!p.n_texts || !job->g)
        return 0;
    for (size_t i = 0; i < p.n_texts; i++)
        if (tokenize(&p, &p.texts[i], err))
            return -1;
    cache_progress_start(&p.progress, job->talk, "text", p.n_texts);
    return encode_all(&p, err);
}
