/* SPDX-License-Identifier: Apache-2.0
 * The commands of the same names as children: check, plan, env, diagnose, tensor check.
 *
 * A value of the client is never a word of its own on a command line: it follows "--name=", or is checked before. */
#include "base/str.h"
#include "os/file.h"
#include "os/info.h"
#include "web/answer.h"
#include "web/api.h"
#include "web/child.h"
#include "web/web.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 80, LISTED = 32 };

/* The words of a child's command line. */
struct words {
    struct request *r;
    const char *word[WORDS + 1];
    size_t n;
};

static void add(struct words *w, const char *word)
{
    if (w->n < WORDS)
        w->word[w->n++] = word;
}

static void add_root(struct words *w)
{
    const char *root = w->r->web->options->root;
    if (root)
        add(w, arena_printf(&w->r->arena, "--root=%s", root));
}

/* ---- reading the body.  Each answers 400 and returns false if a value has another type ---- */

static bool wrong(struct request *r, const char *key, const char *what)
{
    answer_problem(r, 400, "\"%s\" must be %s", key, what);
    return false;
}

/* --name=VALUE, if the body has the key. */
static bool add_text(struct words *w, const struct json *body, const char *key, const char *option)
{
    const struct json *v = json_get(body, key);
    if (!v || json_is_null(v))
        return true;
    const char *text = json_text(v);
    if (!text || strlen(text) > 4096 || strchr(text, '\n'))
        return wrong(w->r, key, "a text of one line");
    add(w, arena_printf(&w->r->arena, "--%s=%s", option, text));
    return true;
}

static bool add_number(struct words *w, const struct json *body, const char *key, const char *option)
{
    const struct json *v = json_get(body, key);
    double number = json_number(v, -1);
    if (!v || json_is_null(v))
        return true;
    if (!(number >= 0 && number < 1e15))
        return wrong(w->r, key, "a number");
    add(w, arena_printf(&w->r->arena, "--%s=%.15g", option, number));
    return true;
}

/* --name, if the key is true. */
static bool add_flag(struct words *w, const struct json *body, const char *key, const char *option, bool when)
{
    const struct json *v = json_get(body, key);
    if (!v || json_is_null(v))
        return true;
    if (json_bool(v, true) != json_bool(v, false))
        return wrong(w->r, key, "true or false");
    if (json_bool(v, !when) == when)
        add(w, arena_printf(&w->r->arena, "--%s", option));
    return true;
}

static bool add_list(struct words *w, const struct json *body, const char *key, const char *option)
{
    const struct json *v = json_get(body, key);
    if (!v || json_is_null(v))
        return true;
    if (!json_is_array(v) || json_length(v) > LISTED)
        return wrong(w->r, key, "a list of at most 32 texts");
    for (size_t i = 0; i < json_length(v); i++) {
        const char *text = json_text(json_at(v, i));
        if (!text || strlen(text) > 4096)
            return wrong(w->r, key, "a list of at most 32 texts");
        add(w, arena_printf(&w->r->arena, "--%s=%s", option, text));
    }
    return true;
}

/* --name=NAME=VALUE for each member. */
static bool add_map(struct words *w, const struct json *body, const char *key, const char *option)
{
    const struct json *v = json_get(body, key);
    size_t n = 0;
    if (!v || json_is_null(v))
        return true;
    if (!json_is_object(v))
        return wrong(w->r, key, "an object of texts");
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m)) {
        const char *text = json_text(m.value);
        if (!text || ++n > LISTED)
            return wrong(w->r, key, "an object of at most 32 texts");
        add(w, arena_printf(&w->r->arena, "--%s=%s=%s", option, m.key, text));
    }
    return true;
}

static bool is_raw(const struct request *r)
{
    const char *type = request_header(r, "Content-Type");
    return type && !strncasecmp(type, "application/octet-stream", 24);
}

/* The text under that key, or the body itself if it is no JSON. */
static bool read_text(struct request *r, const char *key, const struct json **body, const char **text,
                      size_t *n)
{
    *body = NULL;
    if (is_raw(r)) {
        *text = r->body ? r->body : "";
        *n = r->body_n;
        return true;
    }
    *body = request_json(r);
    if (!*body)
        return false;
    *text = json_bytes(json_get(*body, key), n);
    return *text || wrong(r, key, "a text");
}

static void run(struct words *w, struct child_spec spec)
{
    spec.argv = w->word;
    child_answer(w->r, &spec);
}

/* ---- the commands ---- */

/* The keys of configurations, and examples. */
void api_config(struct request *r)
{
    static const char *const argv[] = { "config", "keys", NULL };
    child_answer(r, &(struct child_spec){ .argv = argv });
}

void api_check(struct request *r)
{
    struct words w = { .r = r, .word = { "config", "check", "-", "--json" }, .n = 4 };
    struct child_spec spec = { .seconds = 10, .memory = (uint64_t)1 << 30 };
    const struct json *body;
    if (read_text(r, "config", &body, &spec.input, &spec.input_n))
        run(&w, spec);
}

void api_plan(struct request *r)
{
    struct words w = { .r = r, .word = { "plan", "/dev/stdin", "--json" }, .n = 3 };
    struct child_spec spec = { .seconds = 120, .opens_gpu = true };
    const struct json *body;
    add_root(&w);
    if (!read_text(r, "config", &body, &spec.input, &spec.input_n) ||
        !add_text(&w, body, "device", "device") || !add_text(&w, body, "gfx", "gfx") ||
        !add_number(&w, body, "memory_gb", "memory") || !add_flag(&w, body, "fit", "fit", true) ||
        !add_map(&w, body, "set", "set"))
        return;
    spec.folder = json_text(json_get(body, "cwd"));
    if (spec.folder && !os_is_folder(spec.folder)) {
        answer_problem(r, 422, "the folder \"cwd\" does not exist");
        return;
    }
    run(&w, spec);
}

void api_env(struct request *r)
{
    struct words w = { .r = r, .word = { "env", "--json" }, .n = 2 };
    const struct json *body = request_json(r);
    add_root(&w);
    if (body && add_number(&w, body, "gpu", "gpu") && add_text(&w, body, "trainer", "trainer") &&
        add_flag(&w, body, "debug", "debug", true) && add_text(&w, body, "gfx", "gfx") &&
        add_list(&w, body, "keep", "keep") && add_map(&w, body, "with", "with"))
        run(&w, (struct child_spec){ 0 });
}

void api_diagnose(struct request *r)
{
    struct words w = { .r = r, .word = { "diagnose", "-", "--json" }, .n = 3 };
    struct child_spec spec = { .seconds = 60 };
    const struct json *body;
    if (!read_text(r, "log", &body, &spec.input, &spec.input_n))
        return;
    if (json_bool(json_get(body, "use_machine"), true)) /* else the log is of another machine */
        add_root(&w);
    if (add_number(&w, body, "exit", "exit") && add_text(&w, body, "gfx", "gfx") &&
        add_flag(&w, body, "hung", "hung", true) && add_flag(&w, body, "use_machine", "no-machine", false))
        run(&w, spec);
}

void api_tensor_check(struct request *r)
{
    struct words w = { .r = r, .word = { "tensor", "check", "--json" }, .n = 3 };
    const struct json *body = request_json(r);
    if (!body)
        return;
    const char *name = json_text(json_get(body, "folder")), *path = json_text(json_get(body, "path")), *why;
    const struct folder *folder = name ? folders_find(&r->web->folders, name) : NULL;
    if (!path || !folder_path_is_valid(path, &why)) {
        wrong(r, "path", "a path below the folder");
        return;
    }
    struct os_info info;
    CLEANUP(fd_close) int fd = folder ? os_open_beneath(folder->fd, path, OS_READ | OS_NO_WAIT) : -1;
    if (fd < 0 || os_info_fd(fd, &info) || info.kind != OS_KIND_FILE) {
        answer_problem(r, 404, "there is no such file");
        return;
    }
    add(&w, arena_printf(&r->arena, "%s/%s", folder->path, path));
    run(&w, (struct child_spec){ .seconds = 600, .memory = (uint64_t)64 << 30 });
}
