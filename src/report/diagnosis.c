/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diagnosis.h"

static void add_fix(struct json *list, const struct diagnose_fix *f)
{
    struct json *o = json_add_object(list, NULL);
    json_add_text(o, "text", f->text);
    json_add_bool(o, "auto", f->automatic);
    json_add_text(o, "action", diagnose_action_name(f->action));
    struct json *set = json_add_object(o, "set");
    for (size_t i = 0; i < f->n_set; i++)
        json_add_text(set, f->set[i].name, f->set[i].value);
    struct json *unset = json_add_array(o, "unset");
    for (size_t i = 0; i < f->n_unset; i++)
        json_add_text(unset, NULL, f->unset[i]);
}

/* More than two digits would be false precision. */
static double rounded(double confidence)
{
    return (double)(int)(confidence * 100 + 0.5) / 100;
}

static void add_diagnosis(struct json *top, const struct diagnosis *d)
{
    json_add_text(top, "class", d->class_id);
    json_add_text(top, "severity", diagnose_severity_name(d->severity));
    json_add_real(top, "confidence", rounded(d->confidence));
    json_add_text(top, "cause", d->cause);
    struct json *list = json_add_array(top, "evidence");
    for (size_t i = 0; i < d->n_evidence; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_int(o, "line", (int64_t)d->evidence[i].line);
        json_add_text(o, "text", d->evidence[i].text);
        json_add_text(o, "file", d->evidence[i].file);
    }
    list = json_add_array(top, "fix");
    for (size_t i = 0; i < d->n_fixes; i++)
        add_fix(list, &d->fixes[i]);
    list = json_add_array(top, "also");
    for (size_t i = 0; i < d->n_also; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "class", d->also[i].class_id);
        json_add_real(o, "confidence", rounded(d->also[i].confidence));
    }
    list = json_add_array(top, "facts_used");
    for (size_t i = 0; i < d->n_facts_used; i++)
        json_add_text(list, NULL, d->facts_used[i]);
}

struct json *report_diagnosis(const struct diagnosis *d, const struct gpu_calls *c)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    if (d)
        add_diagnosis(top, d);
    struct json *list = c->n ? json_add_array(top, "gpu_calls") : NULL;
    for (size_t i = 0; i < c->n; i++)
        gpu_calls_json(&(struct gpu_calls){ .process = &c->process[i], .n = 1 }, list);
    return top;
}

struct json *report_classes(void)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *list = json_add_array(top, "classes");
    for (size_t i = 0; diagnose_class(i).id; i++) {
        struct json *o = json_add_object(list, NULL);
        json_add_text(o, "class", diagnose_class(i).id);
        json_add_text(o, "what", diagnose_class(i).about);
    }
    return top;
}
