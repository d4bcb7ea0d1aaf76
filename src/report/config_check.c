/* SPDX-License-Identifier: Apache-2.0 */
#include "report/config_check.h"

static void add_place(struct json *o, const char *key, int at)
{
    if (at)
        json_add_int(o, key, at);
    else
        json_add_null(o, key);
}

struct json *report_config(const struct config_findings *f)
{
    struct json *v = json_new_object();
    json_add_int(v, "schema", 1);
    json_add_bool(v, "ok", !f->n_errors);
    struct json *errors = json_add_array(v, "errors");
    for (size_t i = 0; i < f->n_errors; i++) {
        const struct config_finding *e = &f->errors[i];
        struct json *o = json_add_object(errors, NULL);
        add_place(o, "line", e->line);
        add_place(o, "column", e->column);
        json_add_text(o, "key", e->key);
        json_add_text(o, "message", e->message);
        json_add_text(o, "hint", e->hint);
    }
    struct json *notes = json_add_array(v, "notes");
    for (size_t i = 0; i < f->n_notes; i++)
        json_add_text(notes, NULL, f->notes[i]);
    return v;
}
