/* SPDX-License-Identifier: Apache-2.0 */
#include "report/cache.h"

static void add_count(struct json *top, const char *key, const struct cache_count *c)
{
    struct json *o = json_add_object(top, key);
    json_add_int(o, "made", (int64_t)c->made);
    json_add_int(o, "current", (int64_t)c->current);
    json_add_int(o, "failed", (int64_t)c->failed);
    json_add_int(o, "repaired_values", (int64_t)c->repaired);
    json_add_real(o, "seconds", c->seconds);
}

struct json *report_cache(const struct dataset *d, const struct cache_result *r,
                          const struct cache_stale *stale)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    add_count(top, "text", &r->text);
    add_count(top, "latents", &r->latents);
    struct json *skipped = json_add_array(top, "skipped");
    for (size_t i = 0; i < dataset_count(d); i++) {
        const struct dataset_item *item = dataset_item(d, i);
        if (!item->problem)
            continue;
        struct json *o = json_add_object(skipped, NULL);
        json_add_text(o, "file", item->path);
        json_add_text(o, "problem", dataset_problem_name(item->problem));
        json_add_text(o, "why", item->why);
    }
    struct json *failed = json_add_array(top, "failed");
    for (size_t i = 0; i < r->n_failures; i++) {
        struct json *o = json_add_object(failed, NULL);
        json_add_text(o, "file", r->failures[i].path);
        json_add_text(o, "why", r->failures[i].why);
    }
    struct json *o = json_add_object(top, "stale");
    struct json *files = json_add_array(o, "files");
    for (size_t i = 0; i < stale->n; i++)
        json_add_text(files, NULL, stale->paths[i]);
    json_add_int(o, "bytes", (int64_t)stale->bytes);
    json_add_int(o, "removed", (int64_t)stale->removed);
    return top;
}
