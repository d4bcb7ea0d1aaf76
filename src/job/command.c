/* SPDX-License-Identifier: Apache-2.0 */
#include "job/command.h"

#include "base/json.h"
#include "base/str.h"
#include "os/info.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>

static struct json *parse(const char *text)
{
    struct json *v = NULL;
    struct cairn_error ignored;
    return text && !json_parse(text, strlen(text), &v, &ignored) ? v : NULL;
}

/* NULL-terminated; NULL if it is no array of texts. */
static char **words_of(const struct json *list, struct arena *a)
{
    char **out = NULL;
    size_t n = 0;
    if (list && !json_is_array(list))
        return NULL;
    for (size_t i = 0; i < json_length(list); i++) {
        const char *word = json_text(json_at(list, i));
        if (!word)
            return NULL;
        *ARENA_PUSH(a, out, n) = arena_strdup(a, word);
    }
    *ARENA_PUSH(a, out, n) = NULL;
    return out;
}

/* -1: not given, or out of range. */
static int number(const struct json *options, const char *key)
{
    int64_t v = json_int(json_get(options, key), -1);
    return v < 0 || v > INT_MAX ? -1 : (int)v;
}

int job_command_parse(const struct job_row *row, struct arena *a, struct job_command *out,
                      struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *argv = parse(row->argv), *options = parse(row->options);
    struct job_command c = {
        .argv = words_of(argv, a),
        .set = (const char **)words_of(json_get(options, "set"), a),
        .trainer = arena_strdup(a, json_text(json_get(options, "trainer"))),
        .resume_cmd = arena_strdup(a, json_text(json_get(options, "resume_cmd"))),
        .steps = json_int(json_get(options, "steps"), -1),
        .retries = number(options, "retries"),
        .hang_after_s = number(options, "hang_after_s"),
        .grace_s = number(options, "grace_s"),
        .allow_cpu = json_bool(json_get(options, "allow_cpu"), false),
        .no_env = json_bool(json_get(options, "no_env"), false),
        .debug = json_bool(json_get(options, "debug"), false),
        .no_preflight = json_bool(json_get(options, "no_preflight"), false),
        .with_smi = json_bool(json_get(options, "with_smi"), false),
    };
    if (!c.argv || (row->argv && !argv))
        return cairn_fail(err, CAIRN_EUSAGE, "the command of job %s is not a list of words", row->uid);
    if (!c.set)
        return cairn_fail(err, CAIRN_EUSAGE, "the option \"set\" of job %s is not a list of KEY=VALUE",
                          row->uid);
    if (row->kind == JOB_RUN && (!c.argv[0] || !*c.argv[0]))
        return cairn_fail(err, CAIRN_EUSAGE, "job %s has no command", row->uid);
    if (c.grace_s <= 0)
        c.grace_s = c.grace_s < 0 ? job_kind_grace_s(row->kind) : 1;
    *out = c;
    return 0;
}

/* A name that can be a folder's: of others only what is letters, digits, '.', '_' and '-'. */
static const char *folder_name(const char *name, struct arena *a)
{
    char *out = arena_strdup(a, name);
    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p) && (unsigned char)*p < 0x80)
            *p = '-';
    return *out && *out != '.' ? out : "job";
}

struct words {
    char **word;
    size_t n;
    struct arena *a;
};

static void push(struct words *w, const char *word)
{
    *ARENA_PUSH(w->a, w->word, w->n) = word ? arena_strdup(w->a, word) : NULL;
}

static void push_training(struct words *w, const struct job_row *row, const struct job_command *c)
{
    bool goes_on = row->run_dir && os_is_file(arena_printf(w->a, "%s/config.yaml", row->run_dir));
    if (goes_on)
        push(w, arena_printf(w->a, "--resume=%s", row->run_dir));
    else
        push(w, arena_printf(w->a, "--name=%s", folder_name(row->name, w->a)));
    if (c->steps >= 0)
        push(w, arena_printf(w->a, "--steps=%lld", (long long)c->steps));
    for (const char **set = c->set; *set; set++) {
        push(w, "--set");
        push(w, *set);
    }
}

char **job_command_line(const struct job_row *row, const struct job_command *c, const char *program,
                        const char *config, const char *device, struct arena *a)
{
    struct words w = { .a = a };
    if (row->kind == JOB_RUN)
        return c->argv;
    push(&w, program);
    push(&w, job_kind_name(row->kind));
    if (row->config)
        push(&w, config);
    if (row->kind == JOB_TRAIN)
        push_training(&w, row, c);
    if (device)
        push(&w, arena_printf(a, "--device=%s", device));
    for (char **arg = c->argv; *arg; arg++)
        push(&w, *arg);
    push(&w, NULL);
    return w.word;
}

void job_command_resume(const struct job_command *c, struct arena *a, struct resume *out)
{
    resume_find(c->argv, c->trainer, c->resume_cmd, a, out);
}

int job_command_text(char *const *argv, struct arena *a, const char **out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    struct json *list = json_add_array(top, "argv");
    for (size_t i = 0; argv[i]; i++) {
        if (!str_is_utf8(argv[i])) {
            cairn_fail(err, CAIRN_EUSAGE, "word %zu of the command is not UTF-8", i + 1);
            return cairn_hint(err, "rename the file, or put the command into a script");
        }
        json_add_text(list, NULL, argv[i]);
    }
    CLEANUP(mem_free) char *text = json_to_string(list);
    *out = arena_strdup(a, text);
    return 0;
}

const char *job_command_say(const struct job_row *row, struct arena *a)
{
    CLEANUP(str_release) struct str line = { 0 };
    struct job_command c;
    struct cairn_error ignored;
    if (job_command_parse(row, a, &c, &ignored))
        return "";
    if (row->kind != JOB_RUN)
        str_addf(&line, "cairn %s", job_kind_name(row->kind));
    for (char **arg = c.argv; *arg; arg++) {
        if (line.len)
            str_add(&line, " ");
        str_add_word(&line, *arg);
    }
    return arena_strdup(a, line.s ? line.s : "");
}
