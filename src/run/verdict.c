/* SPDX-License-Identifier: Apache-2.0 */
#include "run/verdict.h"

#include "base/shell_text.h"
#include <stdio.h>
#include <string.h>

void verdict_add_torch(struct json *into, const struct facts *f)
{
    const struct torch_facts *t = facts_torch(f);
    if (!t) {
        json_add_null(into, "torch");
        return;
    }
    struct json *o = json_add_object(into, "torch");
    json_add_text(o, "dir", t->site);
    json_add_text(o, "version", t->version.s);
    json_add_text(o, "python", t->python);
    json_add_text(o, "how", t->how);
    json_add_bool(o, "sure", !t->guess);
}

/* name: room for it. */
static const char *split(const char *variable, char *name, size_t size)
{
    size_t n = strcspn(variable, "=");
    snprintf(name, size, "%.*s", (int)n, variable);
    return n < size && variable[n] ? variable + n + 1 : NULL;
}

char *verdict_env_text(const char *const *before, const char *const *after)
{
    const char *const *was = before;
    struct str text = { 0 };
    char name[256];
    for (; before && *before; before++)
        if (split(*before, name, sizeof(name)) && !str_env(after, name))
            shell_unset(SHELL_SH, name, &text);
    for (; *after; after++) {
        const char *value = split(*after, name, sizeof(name));
        if (value && !str_eq(str_env(was, name), value))
            shell_set(SHELL_SH, name, value, &text);
    }
    str_add(&text, "");
    return text.s;
}

static void add_try(struct json *list, const struct supervise_try *t)
{
    struct json *v = json_add_object(list, NULL);
    json_add_text(v, "end", attempt_end_name(t->attempt.end));
    json_add_int(v, "code", t->attempt.code);
    json_add_real(v, "seconds", t->attempt.seconds);
    json_add_bool(v, "saw_step", t->attempt.saw_step);
    json_add_int(v, "log_offset_bytes", t->log_offset_bytes);
    json_add_text(v, "change", t->change);
    json_add_text(v, "resumed", t->resumed);
    json_add_text(v, "class", t->diagnosis.class_id);
    json_add_real(v, "confidence", t->diagnosis.confidence);
    json_add_text(v, "cause", t->diagnosis.cause);
    struct json *evidence = json_add_array(v, "evidence");
    for (size_t i = 0; i < t->diagnosis.n_evidence; i++)
        json_add_text(evidence, NULL, t->diagnosis.evidence[i].text);
    json_add_int(v, "refused", (int64_t)t->calls.refused);
    json_add_int(v, "refused_bytes", (int64_t)t->calls.refused_bytes);
    gpu_calls_json(&t->calls, json_add_array(v, "gpu_calls"));
    json_add_text(v, "gpu_use", diagnose_gpu_use_name(t->attempt.gpu_use));
    if (t->attempt.memory.watched)
        memory_monitor_memory_json(&t->attempt.memory, json_add_object(v, "memory"));
}

static void add_undone(struct json *list, const struct supervise_result *r)
{
    for (size_t i = 0; i < r->n_undone; i++) {
        struct json *v = json_add_object(list, NULL);
        json_add_text(v, "name", r->undone[i].name);
        json_add_text(v, "value", r->undone[i].value);
        json_add_text(v, "given", r->undone[i].given);
        json_add_text(v, "where", r->undone[i].where);
    }
}

struct json *verdict_json(const struct supervise_result *r, const struct outputs *o, char *const *argv,
                          const struct facts *f)
{
    struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    json_add_int(root, "code", r->code);
    struct json *command = json_add_array(root, "command");
    for (; *argv; argv++)
        json_add_text(command, NULL, *argv);
    json_add_text(root, "trainer", r->trainer);
    verdict_add_torch(root, f);
    json_add_text(root, "torch_loaded", r->torch);
    add_undone(json_add_array(root, "environment"), r);
    struct json *tries = json_add_array(root, "attempts");
    for (size_t i = 0; i < r->n_tries; i++)
        add_try(tries, &r->tries[i]);
    memory_monitor_json(&r->peak, json_add_object(root, "peak"));
    json_add_int(root, "outputs_checked", (int64_t)o->n_files);
    json_add_int(root, "outputs_left", (int64_t)o->n_left);
    struct json *damaged = json_add_array(root, "outputs_damaged");
    for (size_t i = 0; i < o->n_damaged; i++)
        json_add_text(damaged, NULL, o->damaged[i].path);
    return root;
}
