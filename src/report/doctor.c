/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doctor.h"

#include "rules/reviewed.h"
#include <string.h>

bool doctor_view_covers(const struct doctor_view *v, const struct doctor_line *line)
{
    return !v->only || !strcmp(v->only, line->check->group);
}

bool doctor_view_shows(const struct doctor_view *v, const struct doctor_line *line)
{
    return doctor_view_covers(v, line) && (v->all || line->found.status != CHECK_SKIP);
}

enum verdict doctor_verdict(const struct doctor_view *v)
{
    if (!v->probe || v->probe->reality == VERDICT_UNKNOWN)
        return v->doctor->verdict;
    bool limits = v->probe->prediction == VERDICT_DEGRADED && v->probe->reality == VERDICT_WORKS;
    return limits ? VERDICT_DEGRADED : v->probe->reality; /* it computes, but the warnings still apply */
}

static void add_finding(struct json *o, const struct finding *f)
{
    json_add_text(o, "status", check_status_name(f->status));
    json_add_text(o, "fact", f->fact);
    json_add_text(o, "why", f->why);
    json_add_text(o, "remedy", f->remedy);
}

static void add_probe(struct json *top, const struct doctor_view *v)
{
    struct json *o = json_add_object(top, "probe");
    json_add_text(o, "prediction", verdict_name(v->probe->prediction));
    json_add_text(o, "reality", verdict_name(v->probe->reality));
    json_add_bool(o, "agrees", v->probe->agrees);
    struct json *lines = json_add_array(o, "lines");
    for (size_t i = 0; i < v->probe->n; i++) {
        const struct probe_line *line = &v->probe->lines[i];
        struct json *row = json_add_object(lines, NULL);
        json_add_text(row, "id", line->id);
        json_add_text(row, "predicted", line->predicted);
        json_add_bool(row, "differs", line->differs);
        add_finding(row, &line->found);
    }
}

static void add_ways(struct json *top, const struct doctor *d)
{
    struct json *ways = json_add_array(top, "ways");
    for (size_t i = 0; i < d->n_ways; i++) {
        struct json *o = json_add_object(ways, NULL);
        json_add_text(o, "way", d->ways[i].name);
        json_add_text(o, "command", d->ways[i].command);
        json_add_bool(o, "proven", d->ways[i].is_proven);
        json_add_text(o, "known", d->ways[i].known);
    }
}

struct json *report_doctor(const struct doctor_view *v)
{
    const struct doctor *d = v->doctor;
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *checks = json_add_array(top, "checks");
    for (size_t i = 0; i < d->n; i++) {
        if (!doctor_view_shows(v, &d->lines[i]))
            continue;
        struct json *row = json_add_object(checks, NULL);
        json_add_text(row, "id", d->lines[i].check->id);
        json_add_text(row, "group", d->lines[i].check->group);
        add_finding(row, &d->lines[i].found);
        json_add_text(row, "source", d->lines[i].check->source);
    }
    json_add_text(top, "summary", v->probe ? v->probe->summary : d->summary);
    json_add_text(top, "verdict", verdict_name(doctor_verdict(v)));
    json_add_text(top, "first", d->first ? d->first->check->id : NULL);
    json_add_bool(top, "plan_cures", d->plan_cures);
    add_ways(top, d);
    json_add_text(top, "reviewed", RULES_REVIEWED);
    if (v->probe)
        add_probe(top, v);
    return top;
}

struct json *report_checks(const char *only)
{
    size_t n;
    const struct check *t = checks_table(&n);
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *checks = json_add_array(top, "checks");
    for (size_t i = 0; i < n; i++) {
        if (only && strcmp(only, t[i].group))
            continue;
        struct json *row = json_add_object(checks, NULL);
        json_add_text(row, "id", t[i].id);
        json_add_text(row, "group", t[i].group);
        json_add_text(row, "what", t[i].what);
        json_add_text(row, "source", t[i].source);
    }
    return top;
}
