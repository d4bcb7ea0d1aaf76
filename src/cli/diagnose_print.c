/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/diagnose_print.h"

#include "base/shell_text.h"
#include "base/str.h"
#include "cli/print.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { INDENT = 2, NUMBER = 5 };

static enum print_color severity_color(enum diagnose_severity s)
{
    return s == DIAGNOSE_ERROR ? COLOR_RED : s == DIAGNOSE_WARNING ? COLOR_YELLOW : COLOR_GREEN;
}

static void print_evidence(const struct diagnose_evidence *e)
{
    CLEANUP(str_release) struct str place = { 0 };
    if (e->file)
        str_addf(&place, "%s:%" PRIu64 ": ", e->file, e->line);
    else
        str_addf(&place, "line %" PRIu64 ": ", e->line);
    printf("%*s%s%s%s", INDENT, "", print_color(COLOR_DIM), place.s, print_color(COLOR_PLAIN));
    print_wrapped_at(stdout, e->text + strspn(e->text, " \t"), INDENT + print_columns(place.s), INDENT + 2,
                     print_width());
}

static void print_variables(const struct diagnose_fix *f, enum shell shell)
{
    CLEANUP(str_release) struct str lines = { 0 };
    for (size_t i = 0; i < f->n_set; i++)
        if (str_eq(f->set[i].name, "CAIRN_PRELOAD")) /* which cairn run sets itself */
            str_addf(&lines, "cairn run --preload=%s -- COMMAND\n", f->set[i].value);
        else
            shell_set(shell, f->set[i].name, f->set[i].value, &lines);
    for (size_t i = 0; i < f->n_unset; i++)
        shell_unset(shell, f->unset[i], &lines);
    for (const char *line = lines.s; line && *line; line = str_next_line(line))
        printf("%*s%s%.*s%s\n", NUMBER, "", print_color(COLOR_BOLD), (int)strcspn(line, "\n"), line,
               print_color(COLOR_PLAIN));
}

/* A sentence, then the commands. */
static void print_fix(const char *text, enum shell shell)
{
    /* PowerShell continues lines differently, so let the terminal break them. */
    int width = shell == SHELL_POWERSHELL ? INT_MAX : print_width() - NUMBER;
    CLEANUP(str_release) struct str sentence = { 0 }, lines = { 0 };
    str_addn(&sentence, text, strcspn(text, "\n"));
    print_wrapped(stdout, sentence.s, NUMBER, print_width());
    if (str_next_line(text))
        shell_remedy(str_next_line(text), width, &lines);
    for (const char *line = lines.s; line && *line; line = str_next_line(line))
        printf("%*s%s%.*s%s\n", NUMBER, "", print_color(*line == '#' ? COLOR_PLAIN : COLOR_BOLD),
               (int)strcspn(line, "\n"), line, print_color(COLOR_PLAIN));
}

static void print_fixes(const struct diagnosis *d)
{
    if (d->n_fixes)
        printf("\nWhat to do, in this order%s:\n",
               d->severity == DIAGNOSE_WARNING ? ", if the run failed" : "");
    enum shell shell = d->windows ? SHELL_POWERSHELL : SHELL_SH;
    for (size_t i = 0; i < d->n_fixes; i++) {
        printf("%*s%zu. ", i < 9 ? INDENT : INDENT - 1, "", i + 1);
        print_fix(d->fixes[i].text, shell);
        print_variables(&d->fixes[i], shell);
    }
}

static void print_list(const char *title, const char *text)
{
    if (!text)
        return;
    printf("%s: ", title);
    print_wrapped_at(stdout, text, (int)strlen(title) + 2, INDENT, print_width());
}

static void print_context(const struct diagnosis *d)
{
    CLEANUP(str_release) struct str also = { 0 }, facts = { 0 };
    for (size_t i = 0; i < d->n_also; i++)
        str_addf(&also, "%s%s (%.0f %%)", i ? ", " : "", d->also[i].class_id, 100 * d->also[i].confidence);
    for (size_t i = 0; i < d->n_facts_used; i++)
        str_addf(&facts, "%s%s", i ? ", " : "", d->facts_used[i]);
    if (also.s || facts.s)
        putchar('\n');
    print_list("It could also be", also.s);
    print_list("Facts used", facts.s);
}

void diagnose_print_text(const struct diagnosis *d)
{
    const char *word = d->severity == DIAGNOSE_WARNING ? ", not a failure by itself" : "";
    printf("%s%s%s", print_color(severity_color(d->severity)), d->class_id, print_color(COLOR_PLAIN));
    if (!str_eq(d->class_id, "unknown")) /* "unknown" has no confidence */
        printf("  (%.0f %% sure%s)", 100 * d->confidence, word);
    putchar('\n');
    print_wrapped(stdout, d->cause, 0, print_width());
    if (d->n_evidence)
        puts("\nEvidence:");
    for (size_t i = 0; i < d->n_evidence; i++)
        print_evidence(&d->evidence[i]);
    print_fixes(d);
    print_context(d);
}

void diagnose_print_calls(const struct gpu_calls *c)
{
    CLEANUP(str_release) struct str text = { 0 };
    for (size_t i = 0; i < c->n; i++)
        gpu_calls_text(&(struct gpu_calls){ .process = &c->process[i], .n = 1 }, &text);
    for (const char *line = text.s; line && *line; line = str_next_line(line)) {
        CLEANUP(str_release) struct str clean = { 0 };
        str_add_clean(&clean, line, strcspn(line, "\n"));
        puts(clean.s);
    }
}

void diagnose_list_text(void)
{
    for (size_t i = 0; diagnose_class(i).id; i++) {
        printf("%s%-24s%s ", print_color(COLOR_BOLD), diagnose_class(i).id, print_color(COLOR_PLAIN));
        print_wrapped(stdout, diagnose_class(i).about, 25, print_width());
    }
}

void diagnose_list_markdown(void)
{
    puts("| class | what it is |\n|---|---|");
    for (size_t i = 0; diagnose_class(i).id; i++)
        printf("| `%s` | %s |\n", diagnose_class(i).id, diagnose_class(i).about);
}
