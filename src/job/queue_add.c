/* SPDX-License-Identifier: Apache-2.0
 * Jobs come into the queue, are changed, and leave it. */
#include "job/queue.h"

#include "base/json.h"
#include "base/str.h"
#include "job/command.h"
#include "job/environment.h"
#include "job/job_dir.h"
#include "job/lanes.h"
#include "os/path.h"
#include "record/runs.h"
#include <string.h>

/* "train.py" of `python3 train.py --x`, "echo hello" of `sh -c 'echo hello'`, else the command. */
static const char *name_of_command(const char *argv, struct arena *a)
{
    enum { MOST = 40 };
    CLEANUP(json_cleanup) struct json *v = NULL;
    struct cairn_error ignored;
    if (!argv || json_parse(argv, strlen(argv), &v, &ignored))
        return "job";
    for (size_t i = 0; i < json_length(v); i++) {
        const char *word = json_text(json_at(v, i));
        if (word && (str_ends(word, ".py") || str_ends(word, ".yaml") || str_ends(word, ".toml")))
            return arena_strdup(a, path_name(word));
    }
    const char *first = json_text(json_at(v, 0)), *script = json_text(json_at(v, 2));
    if (str_eq(json_text(json_at(v, 1)), "-c") && script && *script)
        return strlen(script) <= MOST ? arena_strdup(a, script)
                                      : arena_printf(a, "%.*s...", MOST - 3, script);
    return first && *first ? arena_strdup(a, path_name(first)) : "job";
}

/* In one line, and short enough for the name of a folder. */
static const char *clean_name(const char *name, struct arena *a)
{
    enum { MOST = 120 };
    CLEANUP(str_release) struct str out = { 0 };
    for (const char *p = name; *p; p += strspn(p, "\n\r\t")) {
        size_t n = strcspn(p, "\n\r\t");
        str_add_clean(&out, p, n);
        p += n;
        if (*p)
            str_add(&out, " ");
    }
    size_t n = out.len;
    if (n > MOST)
        for (n = MOST; n > 0 && ((unsigned char)out.s[n] & 0xc0) == 0x80; n--)
            ; /* not inside a character */
    return n ? arena_strndup(a, out.s, n) : "job";
}

/* What no supervisor could run is refused now. */
static int check(const struct job_row *row, struct arena *a, struct cairn_error *err)
{
    struct job_command ignored;
    if (job_command_parse(row, a, &ignored, err) || environment_check(row->env, err))
        return -1;
    if (row->kind != JOB_RUN && !row->config && !row->argv)
        return cairn_fail(err, CAIRN_EUSAGE, "a job of the kind \"%s\" needs a configuration",
                          job_kind_name(row->kind));
    if (!row->cwd || !path_is_absolute(row->cwd) || !str_is_utf8(row->cwd))
        return cairn_fail(err, CAIRN_EUSAGE,
                          "the folder of a job must be an absolute path in UTF-8, not \"%s\"",
                          row->cwd ? row->cwd : "");
    return 0;
}

int queue_add(struct queue *q, const struct job_row *wish, bool start, struct arena *a, struct job_row *out,
              struct cairn_error *err)
{
    char uid[JOB_UID_SIZE];
    struct job_row row = *wish;
    job_uid_make(uid);
    row.uid = arena_strdup(a, uid);
    row.name = clean_name(wish->name && *wish->name ? wish->name : name_of_command(wish->argv, a), a);
    row.env = wish->env ? wish->env : "{}";
    row.options = wish->options ? wish->options : "{}";
    row.created = store_now_ms() / 1000;
    row.state = start ? JOB_QUEUED : JOB_DRAFT;
    if (lanes_parse(wish->gpu ? wish->gpu : "auto", row.kind, q->o.facts, a, &row.gpu, err) ||
        check(&row, a, err))
        return -1;
    /* The folder first: a row without one could not run. */
    if (job_dir_write(q->o.state, &row, err))
        return -1;
    if (store_add(q->store, &row, err)) {
        struct cairn_error ignored;
        job_dir_trash(q->o.state, uid, &ignored);
        return -1;
    }
    return store_get(q->store, uid, a, out, err);
}

/* Options of the job itself, without what its attempts left there. */
static const char *fresh_options(const char *options, struct arena *a)
{
    CLEANUP(json_cleanup) struct json *was = NULL, *now = json_new_object();
    struct cairn_error ignored;
    if (options && !json_parse(options, strlen(options), &was, &ignored))
        for (struct json_member m = json_first(was); m.key; m = json_next(was, m))
            if (strcmp(m.key, "last") != 0)
                json_add_copy(now, m.key, m.value);
    CLEANUP(mem_free) char *text = json_to_string(now);
    return arena_strdup(a, text);
}

int queue_clone(struct queue *q, const char *uid, struct arena *a, struct job_row *out,
                struct cairn_error *err)
{
    struct job_row from;
    if (store_get(q->store, uid, a, &from, err))
        return -1;
    const struct job_row wish = {
        .name = from.name,
        .kind = from.kind,
        .config = from.config,
        .argv = from.argv,
        .cwd = from.cwd,
        .env = from.env,
        .options = fresh_options(from.options, a),
        .gpu = from.gpu,
        .parent = from.uid,
    };
    return queue_add(q, &wish, false, a, out, err);
}

/* The folder says the same as the row, or the row stays as it was. */
static int write_folder(void *context, const struct job_row *row, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct queue *q = context;
    return check(row, &a, err) || job_dir_write(q->o.state, row, err) ? -1 : 0;
}

int queue_edit(struct queue *q, const char *uid, int64_t version, const struct store_edit *wish,
               bool *conflict, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    const struct store_keeper keeper = { .keep = write_folder, .context = q };
    struct store_edit e = *wish;
    struct job_row row;
    bool changed;
    *conflict = false;
    if (store_get(q->store, uid, &a, &row, err) ||
        (e.gpu && lanes_parse(e.gpu, row.kind, q->o.facts, &a, &e.gpu, err)))
        return -1;
    if (e.name && !e.name[strspn(e.name, " \n\r\t")])
        return cairn_fail(err, CAIRN_EUSAGE, "the new name of job %s is empty", uid);
    e.name = e.name ? clean_name(e.name, &a) : NULL;
    if (store_edit(q->store, uid, version, &e, &keeper, &changed, err))
        return -1;
    if (changed)
        return 0;
    if (store_get(q->store, uid, &a, &row, err))
        return -1;
    if (job_state_is_running(row.state)) {
        cairn_fail(err, CAIRN_EUSAGE, "job %s runs", uid);
        return cairn_hint(err, "stop it first, or clone it and edit the copy");
    }
    *conflict = true;
    cairn_fail(err, CAIRN_EUSAGE, "job %s was changed meanwhile: it has version %lld, not %lld", uid,
               (long long)row.version, (long long)version);
    return cairn_hint(err, "look at it again, then repeat the change");
}

struct removal {
    struct queue *queue;
    bool with_run;
};

/* What fails leaves the row where it was.  A run that another job goes on with stays. */
static int trash_folders(void *context, const struct job_row *row, struct cairn_error *err)
{
    const struct removal *k = context;
    bool is_shared = false;
    if (k->with_run && row->run_dir &&
        (store_has_run(k->queue->store, row->run_dir, &is_shared, err) ||
         (!is_shared && runs_trash(row->run_dir, err))))
        return -1;
    return job_dir_trash(k->queue->o.state, row->uid, err);
}

int queue_remove(struct queue *q, const char *uid, bool with_run, struct cairn_error *err)
{
    struct removal k = { q, with_run };
    const struct store_keeper keeper = { .keep = trash_folders, .context = &k };
    bool removed = false;
    if (!job_dir_is_held(q->o.state, uid) && store_remove(q->store, uid, &keeper, &removed, err))
        return -1;
    if (removed)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "job %s runs", uid);
    return cairn_hint(err, "stop it first: cairn job stop %s", uid);
}
