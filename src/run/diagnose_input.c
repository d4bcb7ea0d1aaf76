/* SPDX-License-Identifier: Apache-2.0 */
#include "run/diagnose_input.h"

#include "base/json.h"
#include "base/str.h"
#include "host/logfile.h"
#include "os/path.h"
#include "run/attempt.h"
#include "run/gpu_calls_file.h"
#include "run/context.h"
#include "run/history.h"
#include "os/info.h"
#include <string.h>
#include <sys/stat.h>

static void feed(void *to, const char *bytes, size_t n)
{
    diagnoser_feed(to, bytes, n);
}

/* Feeds the rest of a file; earlier lines are only counted. */
struct rest {
    struct diagnoser *d;
    uint64_t skip_bytes;
};

static void feed_rest(void *to, const char *bytes, size_t n)
{
    struct rest *r = to;
    size_t skipped = n < r->skip_bytes ? n : (size_t)r->skip_bytes;
    for (size_t i = 0; i < skipped; i++)
        if (bytes[i] == '\n')
            diagnoser_feed(r->d, "\n", 1);
    r->skip_bytes -= skipped;
    diagnoser_feed(r->d, bytes + skipped, n - skipped);
}

static int read_log(const struct diagnose_input *in, const char *path, struct cairn_error *err)
{
    bool cut = false;
    const char *name = str_eq(path, "-") ? "standard input" : path;
    diagnoser_mark_file(in->diagnoser, name);
    if (logfile_read(path, feed, in->diagnoser, &cut, err))
        return -1;
    in->context->cut |= cut;
    if (cut)
        message_say(in->messages, "%s is truncated: the end, where the error may be, is missing", name);
    return 0;
}

static struct json *read_json(const char *path)
{
    CLEANUP(str_release) struct str text = { 0 };
    struct json *v = NULL;
    struct cairn_error err = { 0 };
    if (os_is_file(path) && !logfile_read(path, logfile_into_str, &text, NULL, &err))
        json_parse(text.s, text.len, &v, &err);
    return v;
}

static enum diagnose_gpu_use gpu_use_of(const char *name)
{
    for (int u = DIAGNOSE_GPU_UNKNOWN; u <= DIAGNOSE_GPU_USED; u++)
        if (str_eq(name, diagnose_gpu_use_name(u)))
            return u;
    return DIAGNOSE_GPU_UNKNOWN;
}

static void take_verdict(struct diagnose_context *ctx, const struct json *v, const struct json *last)
{
    const char *end = json_text(json_get(last, "end"));
    if (ctx->exit_code < 0)
        ctx->exit_code = json_int(json_get(v, "code"), -1);
    ctx->hung |= str_eq(end, attempt_end_name(ATTEMPT_HUNG));
    ctx->memory_guard = str_eq(end, attempt_end_name(ATTEMPT_MEMORY));
    ctx->refused = (uint64_t)json_int(json_get(last, "refused"), 0);
    ctx->refused_bytes = (uint64_t)json_int(json_get(last, "refused_bytes"), 0);
    ctx->memory = memory_monitor_memory_of(json_get(last, "memory"));
    ctx->gpu_use = gpu_use_of(json_text(json_get(last, "gpu_use")));
}

/* A variable that was set for an attempt is set in all later ones too. */
static void feed_changes(struct diagnoser *d, const struct json *tries)
{
    for (size_t i = 0; i < json_length(tries); i++) {
        const char *change = json_text(json_get(json_at(tries, i), "change"));
        if (change)
            diagnoser_feed(d, change, strlen(change));
        diagnoser_feed(d, "\n", 1);
    }
}

/* A folder is a journal of `cairn run`: reads the changed variables, and log and end of the last attempt.
 * In a rotated log the beginning of that attempt is unknown. */
static int read_journal(const struct diagnose_input *in, const char *dir, struct arena *a,
                        struct cairn_error *err)
{
    struct diagnose_context *ctx = in->context;
    struct diagnoser *d = in->diagnoser;
    const char *log = arena_printf(a, "%s/log", dir), *env = arena_printf(a, "%s/env", dir);
    const char *hang = arena_printf(a, "%s/hang.txt", dir);
    if (!os_is_file(log)) {
        cairn_fail(err, CAIRN_EFORMAT,
                   "%s is a directory, but not a journal of cairn run: it has no file \"log\"", dir);
        return cairn_hint(err, "give the log file itself");
    }
    CLEANUP(json_cleanup) struct json *v = read_json(arena_printf(a, "%s/verdict.json", dir));
    const struct json *tries = json_get(v, "attempts");
    const struct json *last = json_length(tries) ? json_at(tries, json_length(tries) - 1) : NULL;
    struct rest rest = { d, 0 };
    if (!os_is_file(arena_printf(a, "%s/log.first", dir)))
        rest.skip_bytes = (uint64_t)json_int(json_get(last, "log_offset_bytes"), 0);
    take_verdict(ctx, v, last);
    ctx->hang_file = ctx->hung && os_is_file(hang) ? hang : NULL;
    CLEANUP(json_cleanup) struct json *known = read_json(arena_printf(a, "%s/" CONTEXT_FILE, dir));
    if (in->wants_machine || !context_take(known, a, in->facts, ctx)) {
        /* As far as it is in text files. */
        if (os_is_file(env) && read_log(in, env, err))
            return -1;
        feed_changes(d, tries);
    }
    diagnoser_mark_file(d, log);
    return logfile_read(log, feed_rest, &rest, NULL, err);
}

/* "…/log" beside "events.jsonl" is part of a journal. */
static const char *journal_of(const char *path, struct arena *a)
{
    CLEANUP(mem_free) char *folder = path_folder(path);
    const char *dir = arena_strdup(a, folder);
    bool is_log = str_eq(path_name(path), "log");
    return is_log && os_is_file(arena_printf(a, "%s/events.jsonl", dir)) ? dir : NULL;
}

int diagnose_input_read(const struct diagnose_input *in, const char *path, struct arena *a,
                        struct cairn_error *err)
{
    struct stat st;
    bool there = !str_eq(path, "-") && !stat(path, &st), folder = there && S_ISDIR(st.st_mode);
    const char *journal = folder ? path : journal_of(path, a);
    if (!there && history_dir(path, a, &journal, err)) /* a file of that name takes precedence */
        return -1;
    return journal ? read_journal(in, journal, a, err) : read_log(in, path, err);
}

bool diagnose_input_is_calls(const char *path)
{
    return !str_eq(path, "-") && gpu_calls_file_is(path);
}

int diagnose_input_calls(int n, char **paths, struct arena *a, struct gpu_calls *c, struct cairn_error *err)
{
    for (int i = 0; i < n; i++) {
        struct gpu_calls one;
        if (!diagnose_input_is_calls(paths[i]))
            continue;
        if (gpu_calls_file_read(paths[i], a, &one, err))
            return -1;
        *ARENA_PUSH(a, c->process, c->n) = one.process[0];
    }
    return 0;
}
