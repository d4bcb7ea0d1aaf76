/* SPDX-License-Identifier: Apache-2.0
 * Jobs: one, new ones, changes, what a user asks of them. */
#include "base/hash.h"
#include "base/parse.h"
#include "base/str.h"
#include "job/adopt.h"
#include "job/environment.h"
#include "job/lanes.h"
#include "os/path.h"
#include "record/control.h"
#include "report/jobs.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/jobs.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MOST = 200, NOTE_MOST = 10000 };

/* What is asked for makes no sense for the job as it is. */
static void answer_conflict(struct request *r, const struct cairn_error *err)
{
    if (err->code == CAIRN_EUSAGE)
        answer_problem_hint(r, 409, err->msg, err->hint, 0);
    else
        jobs_answer_error(r, err);
}

static void answer_job(struct request *r, int status, const char *uid)
{
    struct queue *q = jobs_queue(r);
    struct cairn_error err = { 0 };
    struct job_row row;
    if (!q)
        return;
    if (store_get(q->store, uid, &r->arena, &row, &err)) {
        jobs_answer_error(r, &err);
        return;
    }
    struct json *v = answer_new();
    report_job(q->o.state, &row, true, v);
    answer_json(r, status, v);
    answer_header(r, "ETag", arena_printf(&r->arena, "\"%lld\"", (long long)row.version));
    if (status == 201)
        answer_header(r, "Location", arena_printf(&r->arena, "api/v1/jobs/%s", uid));
}

void api_job_get(struct request *r)
{
    struct job_row row;
    if (!jobs_find(r, &row))
        return;
    struct json *v = answer_new();
    report_job(r->web->state.home.path, &row, true, v);
    answer_json(r, 200, v);
    answer_header(r, "ETag", arena_printf(&r->arena, "\"%lld\"", (long long)row.version));
}

/* ---- new ones ---- */

/* A text of the body, at most that long; false after it answered 422. */
static bool body_text(struct request *r, const struct json *body, const char *key, size_t most,
                      const char **out)
{
    const struct json *v = json_get(body, key);
    *out = NULL;
    if (!v || json_is_null(v))
        return true;
    *out = json_text(v);
    if (*out && strlen(*out) <= most)
        return true;
    answer_problem(r, 422, "\"%s\" must be a text of at most %zu bytes", key, most);
    return false;
}

/* An array or an object of the body as JSON text. */
static bool body_json(struct request *r, const struct json *body, const char *key, bool array,
                      const char **out)
{
    const struct json *v = json_get(body, key);
    *out = NULL;
    if (!v || json_is_null(v))
        return true;
    if (array ? !json_is_array(v) : !json_is_object(v)) {
        answer_problem(r, 422, "\"%s\" must be %s", key, array ? "a list of words" : "an object");
        return false;
    }
    CLEANUP(mem_free) char *text = json_to_string(v);
    *out = arena_strdup(&r->arena, text);
    return true;
}

static bool check_argv(struct request *r, const struct json *argv)
{
    bool good = json_length(argv) > 0;
    for (size_t i = 0; i < json_length(argv); i++)
        good &= json_text(json_at(argv, i)) != NULL;
    if (!good || !*json_text(json_at(argv, 0)))
        answer_problem(r, 422, "\"argv\" must be a list of words, the first of them a program");
    return good && *json_text(json_at(argv, 0));
}

/* Words and variables reach programs, also those of a training; a command that resumes is one for the shell. */
static bool may_command(struct request *r, const struct json *body, bool is_command)
{
    bool asks = is_command || json_length(json_get(body, "argv")) > 0 ||
                json_first(json_get(body, "env")).key || json_get(json_get(body, "options"), "resume_cmd");
    if (asks && !r->web->run_allowed)
        answer_problem_hint(r, 403, "this server runs no commands that a page names",
                            "start it with --allow-run, as root with --allow-root; or use `cairn job add`",
                            0);
    return !asks || r->web->run_allowed;
}

static bool check_kind(struct request *r, const struct json *body, struct job_row *row)
{
    const char *kind = json_text(json_get(body, "kind"));
    if (!kind)
        row->kind = row->config ? JOB_TRAIN : JOB_RUN;
    else if (!job_kind_parse(kind, &row->kind)) {
        answer_problem(r, 422, "\"kind\" is train, run, cache or sample");
        return false;
    }
    if (!may_command(r, body, row->kind == JOB_RUN))
        return false;
    if (row->kind == JOB_RUN ? !check_argv(r, json_get(body, "argv")) : !row->config) {
        if (row->kind != JOB_RUN)
            answer_problem(r, 422, "\"config\" is missing: the text of a configuration");
        return false;
    }
    return true;
}

/* The variables of the server, as `cairn job add` takes those of its shell, and those of the body over them. */
static const char *environment(struct request *r, const struct json *wish)
{
    CLEANUP(json_cleanup) struct json *own = environment_take((const char *const *)environ, NULL);
    CLEANUP(json_cleanup) struct json *all = json_new_object();
    for (struct json_member m = json_first(own); m.key; m = json_next(own, m))
        if (!json_get(wish, m.key))
            json_add_copy(all, m.key, m.value);
    for (struct json_member m = json_first(wish); m.key; m = json_next(wish, m))
        json_add_copy(all, m.key, m.value);
    CLEANUP(mem_free) char *text = json_to_string(all);
    return arena_strdup(&r->arena, text);
}

static bool check_cwd(struct request *r, struct job_row *row)
{
    char here[4096];
    if (!row->cwd) {
        row->cwd = arena_strdup(&r->arena, getcwd(here, sizeof(here)) ? here : "/");
        return true;
    }
    if (path_is_absolute(row->cwd) && os_is_folder(row->cwd))
        return true;
    answer_problem(r, 422, "\"cwd\" must be the absolute path of a folder that exists");
    return false;
}

static bool read_wish(struct request *r, const struct json *body, const struct facts *f, struct job_row *row)
{
    const char *gpu, *env;
    struct cairn_error err = { 0 };
    if (!body_text(r, body, "name", TEXT_MOST, &row->name) ||
        !body_text(r, body, "note", NOTE_MOST, &row->note) ||
        !body_text(r, body, "config", 1 << 20, &row->config) || !body_text(r, body, "cwd", 4000, &row->cwd) ||
        !body_text(r, body, "gpu", 64, &gpu) || !body_json(r, body, "argv", true, &row->argv) ||
        !body_json(r, body, "env", false, &env) || !body_json(r, body, "options", false, &row->options) ||
        !check_kind(r, body, row) || !check_cwd(r, row))
        return false;
    row->env = environment(r, json_get(body, "env"));
    if (environment_check(row->env, &err) ||
        lanes_parse(gpu ? gpu : "auto", row->kind, f, &r->arena, &row->gpu, &err)) {
        answer_problem_hint(r, 422, err.msg, err.hint, 0);
        return false;
    }
    if (!row->name && row->config)
        row->name = "training";
    return true;
}

/* A request that is sent twice, because its answer was lost, adds one job.  Of the last ones, on the thread that
 * writes. */
struct repeated {
    uint64_t key, body;
    char uid[JOB_UID_SIZE];
};
static struct repeated repeated[64];
static size_t next_repeated;

static uint64_t key_of(struct request *r)
{
    const char *header = request_header(r, "Idempotency-Key");
    return header && *header ? hash_bytes(header, strlen(header)) : 0;
}

static void remember(struct request *r, uint64_t key, const char *uid)
{
    struct repeated *slot = &repeated[next_repeated++ % ARRAY_LEN(repeated)];
    slot->key = key;
    slot->body = hash_bytes(r->body, r->body_n);
    memcpy(slot->uid, uid, sizeof(slot->uid));
}

/* False: it is the first with that key. */
static bool answer_repeated(struct request *r, struct queue *q, uint64_t key)
{
    const struct repeated *was = NULL;
    struct cairn_error ignored;
    bool exists;
    for (size_t i = 0; i < ARRAY_LEN(repeated) && key; i++)
        was = repeated[i].key == key ? &repeated[i] : was;
    if (!was)
        return false;
    if (was->body != hash_bytes(r->body, r->body_n))
        answer_problem_hint(r, 422, "this Idempotency-Key came with another request before",
                            "each new request needs a new key", 0);
    else if (!store_has(q->store, was->uid, &exists, &ignored) && !exists)
        answer_problem_hint(r, 409, "the job that this request added was removed",
                            "a new request needs a new Idempotency-Key", 0);
    else
        answer_job(r, 201, was->uid);
    return true;
}

void api_jobs_add(struct request *r)
{
    const struct json *body = request_json(r);
    struct queue *q = body ? jobs_queue(r) : NULL;
    uint64_t key = key_of(r);
    struct job_row row = { 0 }, made;
    struct cairn_error err = { 0 };
    if (!q || answer_repeated(r, q, key) || !read_wish(r, body, q->o.facts, &row))
        return;
    if (queue_add(q, &row, json_bool(json_get(body, "start"), false), &r->arena, &made, &err)) {
        jobs_answer_error(r, &err);
        return;
    }
    if (key)
        remember(r, key, made.uid);
    jobs_changed(r, made.uid);
    answer_job(r, 201, made.uid);
}

/* ---- changes ---- */

/* The number in If-Match; 0: none was given. */
static bool wanted_version(struct request *r, int64_t *out)
{
    const char *tag = request_header(r, "If-Match");
    uint64_t v;
    *out = 0;
    if (!tag || !strcmp(tag, "*"))
        return true;
    size_t n = strlen(tag);
    const char *digits = n > 2 && tag[0] == '"' ? arena_strndup(&r->arena, tag + 1, n - 2) : tag;
    if (cairn_parse_u64(digits, &v) && v > 0 && v < INT64_MAX) {
        *out = (int64_t)v;
        return true;
    }
    answer_problem(r, 412, "If-Match has no version of this job");
    return false;
}

static bool refuse_run(struct request *r, const struct job_row *row)
{
    if (row->adopted)
        answer_problem_hint(r, 409, "this run was started in a terminal",
                            "it can be looked at and stopped; resume or clone makes it a job", 0);
    return row->adopted;
}

/* Before the job that has this position, or to the end. */
static int move(struct queue *q, const struct job_row *row, double position, struct arena *a,
                struct cairn_error *err)
{
    struct job_row *rows;
    size_t n, i;
    if (store_queue(q->store, a, &rows, &n, err))
        return -1;
    for (i = 0; i < n && rows[i].position < position; i++)
        ;
    return store_move(q->store, row->uid, i < n ? rows[i].uid : NULL, err);
}

void api_job_patch(struct request *r)
{
    const struct json *body = request_json(r), *position;
    struct queue *q = body ? jobs_queue(r) : NULL;
    struct store_edit e = { 0 };
    struct job_row row;
    struct cairn_error err = { 0 };
    int64_t version;
    bool conflict = false;
    if (!q || !jobs_find(r, &row) || refuse_run(r, &row) || !wanted_version(r, &version) ||
        !body_text(r, body, "name", TEXT_MOST, &e.name) || !body_text(r, body, "note", NOTE_MOST, &e.note) ||
        !body_text(r, body, "config", 1 << 20, &e.config) || !body_text(r, body, "gpu", 64, &e.gpu) ||
        !body_json(r, body, "argv", true, &e.argv) || !body_json(r, body, "options", false, &e.options))
        return;
    if (e.name && !e.name[strspn(e.name, " \n\r\t")]) {
        answer_problem(r, 422, "\"name\" must not be empty");
        return;
    }
    if (!may_command(r, body, e.argv != NULL) || (e.argv && !check_argv(r, json_get(body, "argv"))))
        return;
    if (e.gpu && lanes_parse(e.gpu, row.kind, q->o.facts, &r->arena, &e.gpu, &err)) {
        answer_problem_hint(r, 422, err.msg, err.hint, 0);
        return;
    }
    position = json_get(body, "position");
    if (position && !json_is_null(position) && isnan(json_number(position, NAN))) {
        answer_problem(r, 422, "\"position\" must be a number");
        return;
    }
    bool edits = e.name || e.note || e.config || e.gpu || e.argv || e.options;
    if ((edits && queue_edit(q, row.uid, version, &e, &conflict, &err)) ||
        (position && !json_is_null(position) && move(q, &row, json_number(position, 0), &r->arena, &err))) {
        if (conflict)
            answer_problem_hint(r, 412, err.msg, err.hint, 0);
        else
            answer_conflict(r, &err);
        return;
    }
    jobs_changed(r, row.uid);
    answer_job(r, 200, row.uid);
}

void api_job_delete(struct request *r)
{
    struct queue *q = jobs_queue(r);
    struct job_row row;
    struct cairn_error err = { 0 };
    const char *files = request_query(r, "files");
    if (files && strcmp(files, "trash") != 0 && strcmp(files, "keep") != 0) {
        answer_problem(r, 400, "files is trash or keep");
        return;
    }
    if (!q || !jobs_find(r, &row) || refuse_run(r, &row))
        return;
    if (queue_remove(q, row.uid, files && *files == 't', &err)) {
        answer_conflict(r, &err);
        return;
    }
    jobs_removed(r, row.uid);
    answer_json(r, 200, answer_new());
}

/* ---- what is asked of a job ---- */

static int ask_training(struct request *r, const struct job_row *row, bool save, struct cairn_error *err)
{
    const struct control_order order = { .save = save, .sample = !save };
    const char *dir = jobs_training(r, row);
    if (row->state != JOB_ACTIVE || !dir)
        return cairn_fail(err, CAIRN_EUSAGE, "%s is not training natively at the moment", row->name);
    return control_write(dir, &order, NULL, err);
}

static int save(struct request *r, struct queue *q, const struct job_row *row, struct cairn_error *err)
{
    (void)q;
    return ask_training(r, row, true, err);
}

static int sample(struct request *r, struct queue *q, const struct job_row *row, struct cairn_error *err)
{
    (void)q;
    return ask_training(r, row, false, err);
}

static int stop(struct request *r, struct queue *q, const struct job_row *row, struct cairn_error *err)
{
    (void)r;
    return row->adopted ? adopt_stop(row, err) : queue_stop(q, row->uid, err);
}

/* The names of the API, and what each does; the last two also to a run of a terminal. */
static const struct action {
    const char *name;
    int (*queue)(struct queue *q, const char *uid, struct cairn_error *err);
    int (*other)(struct request *r, struct queue *q, const struct job_row *row, struct cairn_error *err);
} actions[] = {
    { "start", queue_start, NULL }, { "pause", queue_pause, NULL },     { "resume", queue_resume, NULL },
    { "kill", queue_kill, NULL },   { "abandon", queue_abandon, NULL }, { "stop", NULL, stop },
    { "save", NULL, save },         { "sample", NULL, sample },
};

static const struct action *find_action(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        if (!strcmp(actions[i].name, name))
            return &actions[i];
    return NULL;
}

/* A copy, or the job that goes on with a run of a terminal. */
static void answer_new_job(struct request *r, struct queue *q, const struct job_row *row, bool goes_on)
{
    struct job_row made;
    struct cairn_error err = { 0 };
    if (row->adopted ? queue_adopt(q, row, goes_on, environment(r, NULL), &r->arena, &made, &err)
                     : queue_clone(q, row->uid, &r->arena, &made, &err)) {
        answer_conflict(r, &err);
        return;
    }
    jobs_changed(r, made.uid);
    answer_job(r, 202, made.uid);
}

void api_job_act(struct request *r)
{
    const struct action *x = find_action(r->part[1]);
    bool clones = !strcmp(r->part[1], "clone"), resumes = x && x->queue == queue_resume;
    struct queue *q = jobs_queue(r);
    struct job_row row;
    struct cairn_error err = { 0 };
    if (!q)
        return;
    if (!x && !clones) {
        answer_problem(r, 404, "there is no such action");
        return;
    }
    if ((r->body_n && !request_json(r)) || !jobs_find(r, &row) ||
        (x && x->queue && !resumes && refuse_run(r, &row)))
        return;
    if (row.kind == JOB_RUN && !r->web->run_allowed && x && (x->queue == queue_start || resumes)) {
        answer_problem(r, 403, "this server runs no commands that a page names");
        return;
    }
    if (clones || (row.adopted && resumes)) {
        answer_new_job(r, q, &row, resumes);
        return;
    }
    if (x->queue ? x->queue(q, row.uid, &err) : x->other(r, q, &row, &err)) {
        answer_conflict(r, &err);
        return;
    }
    if (row.adopted) {
        struct json *v = answer_new();
        report_job(q->o.state, &row, true, v);
        answer_json(r, 202, v);
        return;
    }
    jobs_changed(r, row.uid);
    answer_job(r, 202, row.uid);
}

/* ---- the queue ---- */

static int order(struct queue *q, const struct json *uids, struct cairn_error *err)
{
    for (size_t i = 0; i < json_length(uids); i++) {
        const char *uid = json_text(json_at(uids, i));
        if (!uid)
            return cairn_fail(err, CAIRN_EUSAGE, "\"order\" must be a list of jobs");
        if (store_move(q->store, uid, NULL, err))
            return -1;
    }
    return 0;
}

void api_queue_put(struct request *r)
{
    const struct json *body = request_json(r);
    struct queue *q = body ? jobs_queue(r) : NULL;
    const struct json *paused = json_get(body, "paused"), *list = json_get(body, "order");
    struct cairn_error err = { 0 };
    bool now;
    if (!q)
        return;
    if ((paused && json_bool(paused, true) != json_bool(paused, false)) || (list && !json_is_array(list))) {
        answer_problem(r, 422, "\"paused\" must be true or false, \"order\" a list of jobs");
        return;
    }
    if ((paused && queue_set_paused(q, json_bool(paused, false), &err)) || (list && order(q, list, &err)) ||
        queue_advance(q, &err) || queue_is_paused(q, &now, &err)) {
        answer_conflict(r, &err);
        return;
    }
    struct json *v = answer_new();
    json_add_bool(v, "paused", now);
    answer_json(r, 200, v);
}
