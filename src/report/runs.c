/* SPDX-License-Identifier: Apache-2.0 */
#include "report/runs.h"

#include <math.h>

int64_t run_age_s(const struct run_entry *r, int64_t now)
{
    return now > r->touched ? now - r->touched : 0;
}

static void add_count(struct json *o, const char *key, uint64_t v)
{
    if (v)
        json_add_int(o, key, (int64_t)v);
    else
        json_add_null(o, key);
}

struct json *report_train_runs(const struct run_entry *runs, size_t n, int64_t now)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *list = json_add_array(top, "runs");
    for (size_t i = n; i-- > 0;) {
        const struct run_entry *r = &runs[i];
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "name", r->name);
        json_add_text(o, "dir", r->dir);
        json_add_text(o, "state", run_state_name(r->state));
        json_add_text(o, "model", r->info.model);
        add_count(o, "parameters", r->info.parameters);
        json_add_text(o, "device", r->info.device);
        json_add_int(o, "steps_done", (int64_t)r->done);
        add_count(o, "steps", r->info.steps);
        if (r->has_loss && isfinite(r->loss))
            json_add_real(o, "loss", r->loss);
        else
            json_add_null(o, "loss");
        json_add_int(o, "age_s", run_age_s(r, now));
    }
    return top;
}

static void add_run(struct json *list, const struct run_entry *h, size_t number)
{
    struct json *v = json_add_object(list, NULL);
    json_add_int(v, "index", (int64_t)number);
    json_add_text(v, "id", h->id);
    json_add_text(v, "dir", h->dir);
    json_add_text(v, "started", h->started_text);
    json_add_text(v, "command", h->name);
    json_add_text(v, "state", h->ended ? "ended" : h->state == RUN_RUNNING ? "running" : "cut-short");
    if (h->ended)
        json_add_int(v, "code", h->code);
    else
        json_add_null(v, "code");
    json_add_int(v, "attempts", h->attempts);
    json_add_real(v, "seconds", h->seconds);
    json_add_text(v, "class", h->verdict);
    json_add_text(v, "change", h->change);
}

struct json *report_run_history(const struct run_entry *runs, size_t n)
{
    struct json *root = json_new_object();
    json_add_int(root, "schema", 1);
    struct json *list = json_add_array(root, "runs");
    for (size_t i = 0; i < n; i++)
        add_run(list, &runs[i], i + 1);
    return root;
}
