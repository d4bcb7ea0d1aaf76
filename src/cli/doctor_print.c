/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_print.h"

#include "base/shell_text.h"
#include "base/str.h"
#include "os/terminal.h"
#include "cli/print.h"
#include "rules/reviewed.h"
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

/* Only the first line of a remedy has an arrow. */
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

/* Lines to show by default: findings, and the one that decides the verdict. */
static bool is_finding(const struct doctor_view *v, const struct doctor_line *line)
{
    enum check_status s = line->found.status;
    return s == CHECK_WARN || s == CHECK_FAIL || line == v->doctor->first;
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

/* The lines of one group, which are adjacent and begin at `at`. */
struct group {
    const char *name;
    size_t at, n, findings;
    size_t counts[CHECK_UNKNOWN + 1];
};

static bool next_group(const struct doctor_view *v, struct group *g)
{
    const struct doctor *d = v->doctor;
    size_t at = g->at + g->n;
    *g = (struct group){ .at = at };
    for (; at + g->n < d->n; g->n++) {
        const struct doctor_line *line = &d->lines[at + g->n];
        if (g->name && strcmp(g->name, line->check->group))
            break;
        g->name = line->check->group;
        g->counts[line->found.status]++;
        g->findings += is_finding(v, line);
    }
    return g->n;
}

/* "9 ok, 1 unknown" */
static void add_counts(const size_t counts[CHECK_UNKNOWN + 1], struct str *out)
{
    static const enum check_status order[] = { CHECK_FAIL, CHECK_WARN, CHECK_OK, CHECK_UNKNOWN };
    bool first = true;
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        if (!counts[order[i]])
            continue;
        str_addf(out, "%s%zu %s", first ? "" : ", ", counts[order[i]], check_status_name(order[i]));
        first = false;
    }
}

/* One command may fix several findings; it is printed once.  Returns the line that has it already, or
 * NULL. */
static const struct doctor_line *printed_at(const struct doctor_view *v, const struct doctor_line *line)
{
    for (const struct doctor_line *l = v->doctor->lines; l < line && line->found.remedy; l++)
        if (doctor_view_covers(v, l) && (l->found.status == CHECK_WARN || l->found.status == CHECK_FAIL) &&
            str_eq(l->found.remedy, line->found.remedy))
            return l;
    return NULL;
}

static void print_line(const struct doctor_view *v, const struct doctor_line *line)
{
    CLEANUP(str_release) struct str where = { 0 };
    struct finding f = line->found;
    const struct doctor_line *printed = printed_at(v, line);
    if (printed)
        str_addf(&where, "# the command under %s: %s", printed->check->group, printed->found.fact);
    f.remedy = printed ? where.s : f.remedy;
    print_finding(&f, NULL);
}

static void print_findings(const struct doctor_view *v, bool everything)
{
    struct group g = { 0 };
    while (next_group(v, &g)) {
        bool headed = false;
        for (size_t i = g.at; i < g.at + g.n; i++) {
            const struct doctor_line *line = &v->doctor->lines[i];
            if (!doctor_view_shows(v, line) || !(everything || is_finding(v, line)))
                continue;
            if (!headed)
                print_group(g.name);
            headed = true;
            print_line(v, line);
        }
    }
}

/* One line per group without findings. */
static void print_healthy(const struct doctor_view *v)
{
    struct group g = { 0 };
    while (next_group(v, &g)) {
        if (g.findings || g.counts[CHECK_SKIP] == g.n)
            continue;
        CLEANUP(str_release) struct str text = { 0 };
        add_counts(g.counts, &text);
        printf("%s%s%s: %s\n", print_color(COLOR_BOLD), g.name, print_color(COLOR_PLAIN), text.s);
    }
}

static void print_total(const struct doctor_view *v, bool everything)
{
    size_t counts[CHECK_UNKNOWN + 1] = { 0 };
    for (size_t i = 0; i < v->doctor->n; i++)
        if (doctor_view_covers(v, &v->doctor->lines[i]))
            counts[v->doctor->lines[i].found.status]++;
    CLEANUP(str_release) struct str text = { 0 };
    add_counts(counts, &text);
    if (!text.len)
        str_add(&text, "nothing applies");
    str_addf(&text, "%s%s; knowledge reviewed %s%s", v->only ? " in " : "", v->only ? v->only : "",
             RULES_REVIEWED, everything ? "" : "; -v shows every check");
    print_wrapped(stdout, text.s, 0, print_width());
}

/* The command for the finding that decides; if environment variables are enough, cairn sets them. */
static void print_cure(const struct doctor *d)
{
    CLEANUP(str_release) struct str text = { 0 };
    bool runs = false;
    for (const char *line = d->first ? d->first->found.remedy : NULL; line; line = str_next_line(line)) {
        bool variable = d->plan_cures && (str_starts(line, "export ") || str_starts(line, "unset "));
        if (variable && runs)
            continue;
        str_add(&text, text.len ? "\n" : "");
        if (variable)
            str_addf(
                &text,
                "cairn run%s -- COMMAND    # or, for all that this shell starts: eval \"$(cairn env%s)\"",
                d->gpu_option, d->gpu_option);
        else
            str_addn(&text, line, strcspn(line, "\n"));
        runs |= variable;
    }
    if (text.len)
        print_remedy(text.s);
}

static void print_ways(const struct doctor *d)
{
    if (d->n_ways)
        puts("\nways to train here:");
    for (size_t i = 0; i < d->n_ways; i++) {
        printf("  %s%-28s%s ", print_color(COLOR_CYAN), d->ways[i].command, print_color(COLOR_PLAIN));
        print_wrapped(stdout, d->ways[i].known, 31, print_width());
    }
}

void doctor_print_text(const struct doctor_view *v, bool verbose)
{
    bool everything = verbose || v->all || v->only;
    print_findings(v, everything);
    if (!everything)
        print_healthy(v);
    putchar('\n');
    print_total(v, everything);
    print_wrapped(stdout, v->doctor->summary, 0, print_width());
    print_cure(v->doctor);
    if (!v->only)
        print_ways(v->doctor);
    if (v->probe)
        print_probe(v->probe);
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
