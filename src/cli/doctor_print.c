/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_print.h"

#include "base/str.h"
#include "base/tty.h"
#include "cli/print.h"
#include "cli/shell_text.h"
#include "rules/gfx_table.h"
#include <stdio.h>
#include <string.h>

enum { INDENT = 7 };

static const struct {
    const char *mark;
    enum print_color color;
} marks[] = {
    [CHECK_SKIP] = { "-", COLOR_DIM },       [CHECK_OK] = { "ok", COLOR_GREEN },
    [CHECK_WARN] = { "warn", COLOR_YELLOW }, [CHECK_FAIL] = { "FAIL", COLOR_RED },
    [CHECK_UNKNOWN] = { "?", COLOR_CYAN },
};

static void print_mark(enum check_status s)
{
    printf("  %s%-4s%s ", print_color(marks[s].color), marks[s].mark, print_color(COLOR_PLAIN));
}

/* An arrow stands before the first line of a remedy, and nothing before the others. */
static void print_lead(bool *first)
{
    const char *arrow = tty_knows_utf8() ? "→" : ">";
    printf("%*s%s%s %s", INDENT, "", print_color(COLOR_CYAN), *first ? arrow : " ", print_color(COLOR_PLAIN));
    *first = false;
}

static void print_remedy(const char *remedy)
{
    CLEANUP(str_release) struct str text = { 0 };
    bool first = true;
    shell_remedy(remedy, print_width() - INDENT - 2, &text);
    for (const char *line = text.s; line && *line; line = str_next_line(line)) {
        print_lead(&first);
        printf("%s%.*s%s\n", print_color(*line == '#' ? COLOR_PLAIN : COLOR_BOLD), (int)strcspn(line, "\n"),
               line, print_color(COLOR_PLAIN));
    }
}

static void print_finding(const struct finding *f, const char *head)
{
    print_mark(f->status);
    print_wrapped(stdout, head ? head : f->fact, INDENT, print_width());
    if (f->status == CHECK_OK || f->status == CHECK_SKIP)
        return;
    if (f->why) {
        printf("%*s", INDENT, "");
        print_wrapped(stdout, f->why, INDENT, print_width());
    }
    if (f->remedy)
        print_remedy(f->remedy);
}

static bool is_shown(const struct doctor_view *v, const struct doctor_line *line)
{
    if (v->only && strcmp(v->only, line->check->group))
        return false;
    return v->all || line->found.status != CHECK_SKIP;
}

static void print_group(const char *name)
{
    printf("%s%s%s\n", print_color(COLOR_BOLD), name, print_color(COLOR_PLAIN));
}

static void print_probe(const struct probe_report *r)
{
    print_group("probe");
    for (size_t i = 0; i < r->n; i++) {
        const struct probe_line *line = &r->lines[i];
        CLEANUP(str_release) struct str head = { 0 };
        str_addf(&head, "%s", line->found.fact);
        if (line->predicted && line->differs)
            str_addf(&head, " (predicted: %s)", line->predicted);
        else if (line->predicted)
            str_add(&head, " (as predicted)");
        print_finding(&line->found, head.s);
    }
    putchar('\n');
    print_wrapped(stdout, r->summary, 0, print_width());
}

void doctor_print_text(const struct doctor_view *v)
{
    const struct doctor *d = v->doctor;
    const char *group = NULL;
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_line *line = &d->lines[i];
        if (!is_shown(v, line))
            continue;
        if (!group || strcmp(group, line->check->group))
            print_group(group = line->check->group);
        print_finding(&line->found, NULL);
    }
    putchar('\n');
    printf("%zu ok, %zu warn, %zu fail, %zu unknown; knowledge reviewed %s\n", d->counts[CHECK_OK],
           d->counts[CHECK_WARN], d->counts[CHECK_FAIL], d->counts[CHECK_UNKNOWN], RULES_REVIEWED);
    print_wrapped(stdout, d->summary, 0, print_width());
    if (d->first && d->first->found.remedy)
        print_remedy(d->first->found.remedy);
    if (v->probe)
        print_probe(v->probe);
}

enum verdict doctor_verdict(const struct doctor_view *v)
{
    if (!v->probe || v->probe->reality == VERDICT_UNKNOWN)
        return v->doctor->verdict;
    bool limits = v->probe->prediction == VERDICT_DEGRADED && v->probe->reality == VERDICT_WORKS;
    return limits ? VERDICT_DEGRADED : v->probe->reality; /* it computes, and the warnings stand */
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

void doctor_print_json(const struct doctor_view *v)
{
    const struct doctor *d = v->doctor;
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    struct json *checks = json_add_array(top, "checks");
    for (size_t i = 0; i < d->n; i++) {
        if (!is_shown(v, &d->lines[i]))
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
    json_add_text(top, "reviewed", RULES_REVIEWED);
    if (v->probe)
        add_probe(top, v);
    json_print(top, stdout);
}

void doctor_list_text(const char *only)
{
    size_t n;
    const char *group = NULL;
    const struct check *t = checks_table(&n);
    for (size_t i = 0; i < n; i++) {
        if (only && strcmp(only, t[i].group))
            continue;
        if (!group || strcmp(group, t[i].group))
            print_group(group = t[i].group);
        printf("  %s%-20s%s ", print_color(COLOR_CYAN), t[i].id, print_color(COLOR_PLAIN));
        print_wrapped(stdout, t[i].what, 23, print_width());
        printf("%23s%s", "", print_color(COLOR_DIM));
        print_wrapped(stdout, t[i].source, 23, print_width());
        fputs(print_color(COLOR_PLAIN), stdout);
    }
}

void doctor_list_json(const char *only)
{
    size_t n;
    const struct check *t = checks_table(&n);
    CLEANUP(json_cleanup) struct json *top = json_new_object();
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
    json_print(top, stdout);
}
