/* SPDX-License-Identifier: Apache-2.0 */
#include "encode/cache_job.h"

#include "base/clock.h"
#include "base/file.h"
#include "encode/cache_job_inside.h"
#include "gpu/pool.h"
#include "os/file.h"
#include "os/info.h"
#include "os/list.h"
#include "video/cache_write.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files ---- */

/* All of a small file, and pieces of a large one. */
static int hash_contents(struct hash *h, const char *path, uint64_t size, struct cairn_error *err)
{
    enum { PIECE = 1 << 16, PIECES = 128 };
    CLEANUP(fd_close) int fd = os_open(path, OS_READ);
    CLEANUP(mem_free) char *bytes = malloc(PIECE);
    uint64_t n = (size + PIECE - 1) / PIECE, pieces = n < PIECES ? n : PIECES;
    if (fd < 0)
        return cairn_fail_errno(err, "open %s", path);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to read %s", path);
    hash_add_u64(h, size);
    for (uint64_t i = 0; i < pieces; i++) {
        uint64_t at = pieces < 2 ? 0 : i * (n - 1) / (pieces - 1) * PIECE;
        size_t some = size - at < PIECE ? (size_t)(size - at) : PIECE;
        if (file_read_at(fd, path, bytes, some, at, err))
            return -1;
        hash_add(h, bytes, some);
    }
    return 0;
}

/* The order of a folder's files is not defined, so that their hashes are added. */
static int hash_folder(struct hash *h, const char *path, struct cairn_error *err)
{
    CLEANUP(os_list_close) struct os_list *l = os_list_open(path, 0);
    CLEANUP(arena_release) struct arena a = { 0 };
    uint64_t sums[2] = { 0 };
    const char *name;
    if (!l)
        return cairn_fail_errno(err, "list %s", path);
    while ((name = os_list_next(l))) {
        const char *file = arena_printf(&a, "%s/%s", path, name);
        struct os_info info;
        struct hash one;
        uint64_t is[2];
        hash_init(&one);
        hash_add_text(&one, name);
        if (!os_info(file, &info) && info.kind == OS_KIND_FILE && hash_contents(&one, file, info.size, err))
            return -1;
        hash_end(&one, is);
        sums[0] += is[0];
        sums[1] += is[1];
    }
    hash_add(h, sums, sizeof(sums));
    return 0;
}

int cache_hash_file(struct hash *h, const char *path, struct cairn_error *err)
{
    struct os_info info;
    if (os_info(path, &info))
        return cairn_fail_errno(err, "%s", path);
    return info.kind == OS_KIND_FOLDER ? hash_folder(h, path, err) : hash_contents(h, path, info.size, err);
}

enum cache_file cache_file_state(const char *path, const char *made_from)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const char *made = cache_made_from(&a, path);
    if (!made)
        return CACHE_MISSING;
    return !made[0] ? CACHE_FOREIGN : strcmp(made, made_from) ? CACHE_OTHER : CACHE_CURRENT;
}

char *cache_prompt_stem(struct arena *a, const char *prompt)
{
    struct hash h;
    char text[33];
    hash_init(&h);
    hash_add_text(&h, prompt);
    hash_end_text(&h, text);
    return arena_printf(a, "cairn_prompt_%s", text);
}

char *cache_prompt_path(struct arena *a, const char *dir, const char *prompt)
{
    return arena_printf(a, "%s/%s", dir, cache_name_text(a, cache_prompt_stem(a, prompt)));
}

/* ---- progress and failures ---- */

int cache_job_stopped(const struct cache_job *job, struct cairn_error *err)
{
    return job->stop && *job->stop ? cairn_fail(err, CAIRN_EIO, "interrupted") : 0;
}

void cache_job_fail_item(struct cache_result *out, struct cache_count *count, const char *path,
                         const struct cairn_error *why)
{
    count->failed++;
    *ARENA_PUSH(&out->arena, out->failures, out->n_failures) =
        (struct cache_failure){ path, dataset_why(&out->arena, path, why->msg) };
}

void cache_progress_start(struct cache_progress *p, FILE *talk, const char *what, size_t total)
{
    *p = (struct cache_progress){ talk, what, total, clock_s(), 0 };
}

void cache_progress_step(struct cache_progress *p, size_t done)
{
    double now = clock_s(), spent = now - p->started;
    bool terminal = p->talk && isatty(fileno(p->talk));
    if (!p->talk || (done < p->total && now - p->shown < (terminal ? 0.2 : 10)))
        return;
    double left = done ? spent / (double)done * (double)(p->total - done) : 0;
    p->shown = now;
    fprintf(p->talk, "%s%-8s %zu of %zu  %.2f/s  ETA %d:%02d%s", terminal ? "\r\033[K" : "", p->what, done,
            p->total, spent > 0 ? (double)done / spent : 0, (int)left / 60, (int)left % 60,
            terminal ? "" : "\n");
    fflush(p->talk);
}

void cache_progress_end(struct cache_progress *p)
{
    if (p->talk && p->shown > 0 && isatty(fileno(p->talk)))
        fputs("\r\033[K", p->talk);
}

/* ---- the job ---- */

/* What a dataset's description asks for, and neither caches nor training do.  Training refuses it. */
static void say_ignored(const struct cache_job *job)
{
    enum { MASKS, CONTROL, KINDS };
    static const char *const texts[KINDS] = {
        [MASKS] = "masks: the whole picture is trained on",
        [CONTROL] = "control pictures",
    };
    bool asked[KINDS] = { 0 };
    const char *const *notes;
    size_t n = dataset_notes(job->dataset, &notes);
    for (size_t i = 0; i < n; i++)
        message_say(&job->sink, "%s", notes[i]);
    for (size_t i = 0; i < dataset_count(job->dataset); i++) {
        const struct dataset_item *item = dataset_item(job->dataset, i);
        asked[MASKS] |= item->mask_path || item->block->alpha_mask;
        asked[CONTROL] |= item->control_path != NULL;
    }
    for (size_t k = 0; k < KINDS; k++)
        if (asked[k])
            message_say(&job->sink, "warning: not used: %s", texts[k]);
}

/* Files that are trained on without a caption of their own: the captions may have another extension. */
static void say_captions(const struct cache_job *job)
{
    const struct dataset_item *first = NULL, *before = NULL;
    size_t n = 0;
    for (size_t i = 0; i < dataset_count(job->dataset); i++) {
        const struct dataset_item *item = dataset_item(job->dataset, i);
        if (item->problem || item->has_caption || (before && before->path == item->path))
            continue;
        first = first ? first : item;
        before = item;
        n++;
    }
    if (n)
        message_say(&job->sink, "warning: %zu file%s no caption, such as %s; %s", n,
                    n == 1 ? " has" : "s have", first->path,
                    first->caption && *first->caption ? "the default caption is used"
                                                      : "the empty one is used");
}

static const char *first_dir(const struct dataset *d)
{
    for (size_t i = 0; i < dataset_count(d); i++)
        if (!dataset_item(d, i)->problem)
            return dataset_item(d, i)->block->cache_directory;
    return NULL;
}

/* The next encoder, or training, gets the memory of this one. */
static void leave_device(struct gpu *g)
{
    if (g && !gpu_lost(g))
        pool_reset(gpu_pool(g));
}

int cache_job_run(const struct cache_job *job, struct cache_result *out, struct cairn_error *err)
{
    *out = (struct cache_result){ .first_dir = first_dir(job->dataset) };
    double start = clock_s();
    if (dataset_check(job->dataset, err))
        return -1;
    say_ignored(job);
    say_captions(job);
    int r = job->text.path[0] ? cache_job_texts(job, out, err) : 0;
    leave_device(job->g);
    out->text.seconds = clock_s() - start;
    if (r || !job->vae.path[0])
        return r;
    start = clock_s();
    r = cache_job_latents(job, out, err);
    leave_device(job->g);
    out->latents.seconds = clock_s() - start;
    return r;
}

int cache_prompts_run(const struct cache_job *job, const char *dir, struct cache_result *out,
                      struct cairn_error *err)
{
    struct cache_job only = *job;
    only.dataset = NULL;
    *out = (struct cache_result){ .first_dir = dir };
    int r = cache_job_texts(&only, out, err);
    leave_device(job->g);
    return r;
}

void cache_result_release(struct cache_result *r)
{
    arena_release(&r->arena);
}
