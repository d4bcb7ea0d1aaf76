/* SPDX-License-Identifier: Apache-2.0 */
#include "run/outputs.h"

#include "base/clock.h"
#include "base/progress.h"
#include "base/str.h"
#include "host/root.h"
#include "run/job_file.h"
#include "run/resume.h"
#include "tensor/verdict.h"
#include "os/list.h"
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_DEPTH = 8, MOST_ENTRIES = 50000, MOST_FILES = 2000, SLOW_S = 2, SLOW_BYTES = 1 << 30 };

/* Options of the known trainers that name an output folder. */
static const char *const folder_options[] = { "--output_dir", "--cache_directory", "--cache_dir",
                                              "--save_dir", "--logging_dir" };

struct walk {
    const struct outputs_options *o;
    double began;
    uint64_t bytes; /* read so far */
    bool stopped, slow_said;
    size_t entries;
    const char **seen; /* resolved paths of the folders visited */
    size_t n_seen;
    struct arena *a;
    struct outputs *out;
};

/* musubi-tuner's names: "clip_00000-025_0832x0480_wan.safetensors", "clip_wan_te.safetensors". */
static bool is_cache_name(const char *name)
{
    static const char end[] = ".safetensors";
    const char *at = name + strlen(name) - (sizeof(end) - 1);
    if (str_ends(name, "_te.safetensors") || str_ends(name, "_wan.safetensors"))
        return true;
    while (at > name && at[-1] != '_')
        at--;
    for (int i = 0; i < 2; i++) { /* 0832x0480_ */
        if (at - name < 5 || strspn(at - 5, "0123456789") != 4 || at[-1] != (i ? 'x' : '_'))
            return false;
        at -= 5;
    }
    return at > name && at[-1] == '_';
}

/* "cache", "latents_cache", ".cache/latents": by a component of the path. */
static bool looks_like_cache(const char *path)
{
    return strcasestr(path, "cache") || strcasestr(path, "latent");
}

static bool is_younger(const struct stat *st, struct timespec since)
{
    return st->st_mtim.tv_sec > since.tv_sec ||
           (st->st_mtim.tv_sec == since.tv_sec && st->st_mtim.tv_nsec >= since.tv_nsec);
}

/* From any thread. */
static bool is_stopped(void *context)
{
    struct walk *w = context;
    if ((w->o->stopped && w->o->stopped(w->o->context)) ||
        (!w->o->all && clock_s() - w->began > OUTPUTS_MOST_S))
        __atomic_store_n(&w->stopped, true, __ATOMIC_RELAXED);
    return __atomic_load_n(&w->stopped, __ATOMIC_RELAXED);
}

static int judge(const char *path, struct walk *w, struct file_verdict *out, struct cairn_error *err)
{
    struct progress p = { .stopped = is_stopped, .context = w };
    CLEANUP(source_close) struct tensor_source s = { 0 };
    if (source_open(&s, path, err))
        return -1;
    CLEANUP(mem_free) struct scan_stats *stats = calloc(s.n_tensors + 1, sizeof(*stats));
    CLEANUP(mem_free) struct tensor_verdict *verdicts = calloc(s.n_tensors + 1, sizeof(*verdicts));
    if (!stats || !verdicts)
        return cairn_fail(err, CAIRN_ENOMEM, "%s: out of memory", path);
    if (scan_source(&s, 0, stats, &p, err))
        return -1;
    struct file_verdict v;
    verdict_judge(&s, stats, w->a, verdicts, &v);
    v.why = arena_strdup(w->a, v.why);
    v.todo = arena_strdup(w->a, v.todo);
    *out = v;
    return 0;
}

/* Is there enough time and budget left for a file of this size? */
static bool may_read(struct walk *w, uint64_t bytes)
{
    if (is_stopped(w) || (!w->o->all && bytes > outputs_most_bytes - w->bytes))
        return false;
    if (!w->slow_said && w->o->slow && (bytes > SLOW_BYTES || clock_s() - w->began > SLOW_S)) {
        w->slow_said = true;
        w->o->slow(w->o->context);
    }
    w->bytes += bytes;
    return true;
}

static void look_at(struct walk *w, const char *path, uint64_t bytes)
{
    struct file_verdict v = { 0 };
    struct cairn_error err = { 0 };
    if (w->out->n_files == MOST_FILES) {
        w->out->cut = true;
        return;
    }
    bool whole = may_read(w, bytes) && !judge(path, w, &v, &err);
    if (w->stopped || (!whole && !err.code)) {
        w->out->n_left++;
        return;
    }
    w->out->n_files++;
    if (!whole)
        verdict_unread(path, &err, w->a, &v);
    if (v.damaged)
        *ARENA_PUSH(w->a, w->out->damaged, w->out->n_damaged) =
            (struct outputs_finding){ arena_strdup(w->a, path), tensor_health_name(v.verdict), v.why,
                                      v.todo };
}

static bool was_seen(struct walk *w, const char *dir)
{
    char whole[PATH_MAX];
    if (!realpath(dir, whole))
        return true;
    for (size_t i = 0; i < w->n_seen; i++)
        if (!strcmp(w->seen[i], whole))
            return true;
    *ARENA_PUSH(w->a, w->seen, w->n_seen) = arena_strdup(w->a, whole);
    return false;
}

/* Which files of a folder to check. */
enum scope { CACHES, EVERYTHING };

static void walk_folder(struct walk *w, const char *dir, int depth, enum scope scope)
{
    if (depth > MOST_DEPTH || was_seen(w, dir))
        return;
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    for (const char *name; l && (name = os_list_next(l));) {
        struct stat st;
        if (name[0] == '.') /* hidden folders have downloaded models */
            continue;
        if (w->entries++ >= MOST_ENTRIES) {
            w->out->cut = true;
            break;
        }
        if (fstatat(os_list_dir(l), name, &st, AT_SYMLINK_NOFOLLOW))
            continue;
        const char *path = path_join(w->a, dir, name);
        if (S_ISDIR(st.st_mode))
            walk_folder(w, path, depth + 1, scope);
        else if (S_ISREG(st.st_mode) && str_ends(name, ".safetensors") && is_younger(&st, w->o->since) &&
                 (w->o->all || scope == EVERYTHING || looks_like_cache(dir) || is_cache_name(name)))
            look_at(w, path, (uint64_t)st.st_size);
    }
}

void outputs_check(const struct outputs_options *o, struct arena *a, struct outputs *out)
{
    *out = (struct outputs){ 0 };
    struct walk w = { .o = o, .began = clock_s(), .a = a, .out = out };
    char here[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(folder_options); i++) {
        const char *dir = resume_option(o->argv, folder_options[i]);
        if (dir)
            walk_folder(&w, dir, 0, CACHES);
    }
    struct job_file *job;
    size_t n_jobs = job_files_of(o->argv, a, &job);
    for (size_t i = 0; i < n_jobs; i++)
        for (size_t k = 0; k < job[i].n_folders; k++)
            walk_folder(&w, job[i].folder[k].path, 0, job[i].folder[k].is_cache ? EVERYTHING : CACHES);
    if (getcwd(here, sizeof(here)))
        walk_folder(&w, here, 0, CACHES);
}
