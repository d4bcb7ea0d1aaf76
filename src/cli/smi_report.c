/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi_report.h"

#include "base/str.h"
#include "cli/smi_fields.h"
#include "cli/smi_rows.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { LABEL_WIDTH = 42, DEEPEST = 8 };

/* "N/A" where it is not known; made safe for a terminal, and for XML but for its markup. */
static const char *row_value(const struct smi_row *r, const struct smi_line *l)
{
    struct arena *a = &l->smi->facts.arena;
    if (r->column[0] == '=')
        return r->column + 1;
    const struct smi_field *f = smi_field_of(l, r->column);
    struct smi_cell c = f ? smi_field_get(f, l) : (struct smi_cell){ .kind = SMI_UNKNOWN };
    if (c.kind == SMI_UNKNOWN)
        return "N/A";
    const char *text = c.kind == SMI_TEXT ? c.text : smi_cell_text(f, c, true, a);
    CLEANUP(str_release) struct str clean = { 0 };
    str_add_clean(&clean, text, strlen(text));
    return arena_printf(a, "%s%s", clean.s, r->suffix ? r->suffix : "");
}

/* Behind row i and all that stands beneath it. */
static size_t skip_row(const struct smi_row *rows, size_t n, size_t i)
{
    int depth = rows[i].depth;
    for (i++; i < n && rows[i].depth > depth; i++)
        continue;
    return i;
}

static void print_text(int depth, const char *label, const char *value)
{
    printf("%*s%-*s: %s\n", 4 * depth, "", LABEL_WIDTH - 4 * depth, label, value);
}

static void print_text_processes(struct smi *s, const struct smi_gpu *g)
{
    if (!g->facts->n_processes)
        print_text(1, "Processes", "None");
    else
        puts("    Processes");
    for (size_t k = 0; k < g->facts->n_processes; k++) {
        const struct smi_line l = { s, g, &g->facts->processes[k] };
        for (size_t i = 0; i < smi_n_process_rows; i++)
            print_text(2, smi_process_rows[i].label, row_value(&smi_process_rows[i], &l));
    }
}

/* A row of depth 1 says for all beneath it whether they are shown. */
static bool is_shown(const struct smi_row *r, unsigned sections)
{
    if (!r->label)
        return false;
    return r->depth > 1 || (sections ? (r->sections & sections) != 0 : !r->asked);
}

static void print_text_gpu(struct smi *s, const struct smi_gpu *g, unsigned sections)
{
    const struct smi_line l = { .smi = s, .gpu = g };
    for (size_t i = 0; i < smi_n_gpu_rows;) {
        const struct smi_row *r = &smi_gpu_rows[i];
        if (!is_shown(r, sections)) {
            i = skip_row(smi_gpu_rows, smi_n_gpu_rows, i);
            continue;
        }
        if (r->column)
            print_text(r->depth, r->label, row_value(r, &l));
        else if (str_eq(r->element, "processes"))
            print_text_processes(s, g);
        else
            printf("%*s%s\n", 4 * r->depth, "", r->label);
        i++;
    }
}

/* What stands before the GPUs. */
struct head {
    const char *label, *element, *value;
};
enum { N_HEAD = 4 };

static void fill_head(struct smi *s, struct head *h)
{
    const char *version = smi_driver_version(s);
    h[0] = (struct head){ "Timestamp", "timestamp", s->date };
    h[1] = (struct head){ "Driver Version", "driver_version", version ? version : "N/A" };
    h[2] = (struct head){ "CUDA Version", "cuda_version", "N/A" };
    h[3] = (struct head){ "Attached GPUs", "attached_gpus", arena_printf(&s->facts.arena, "%zu", s->count) };
}

static const char *bus_id(struct smi *s, const struct smi_gpu *g)
{
    const struct smi_row row = { .column = "pci.bus_id" };
    const struct smi_line l = { .smi = s, .gpu = g };
    return row_value(&row, &l);
}

void smi_report_text(struct smi *s, unsigned sections)
{
    struct head head[N_HEAD];
    fill_head(s, head);
    puts("\n==============NVSMI LOG==============\n");
    for (int i = 0; i < N_HEAD; i++)
        printf("%s%-*s: %s\n", i == N_HEAD - 1 ? "\n" : "", LABEL_WIDTH, head[i].label, head[i].value);
    for (size_t i = 0; i < s->n_gpus; i++) {
        printf("GPU %s\n", bus_id(s, &s->gpus[i]));
        print_text_gpu(s, &s->gpus[i], sections);
        putchar('\n');
    }
}

static void print_tabs(int n)
{
    while (n-- > 0)
        putchar('\t');
}

/* Two characters that UTF-8 can write are none in XML: U+FFFE and U+FFFF. */
static void print_escaped(const char *s)
{
    static const char marks[] = "&<>\"'", *const names[] = { "amp", "lt", "gt", "quot", "apos" };
    for (; *s; s++) {
        if (str_starts(s, "\xef\xbf\xbe") || str_starts(s, "\xef\xbf\xbf")) {
            putchar('?');
            s += 2;
            continue;
        }
        const char *mark = strchr(marks, *s);
        if (mark)
            printf("&%s;", names[mark - marks]);
        else
            putchar(*s);
    }
}

static void print_element(int depth, const char *name, const char *value)
{
    print_tabs(depth);
    printf("<%s>", name);
    print_escaped(value);
    printf("</%s>\n", name);
}

static void print_tag(int depth, const char *mark, const char *name)
{
    print_tabs(depth);
    printf("<%s%s>\n", mark, name);
}

static void print_xml_processes(struct smi *s, const struct smi_gpu *g)
{
    for (size_t k = 0; k < g->facts->n_processes; k++) {
        const struct smi_line l = { s, g, &g->facts->processes[k] };
        print_tag(3, "", "process_info");
        for (size_t i = 0; i < smi_n_process_rows; i++)
            print_element(4, smi_process_rows[i].element, row_value(&smi_process_rows[i], &l));
        print_tag(3, "/", "process_info");
    }
}

static void print_xml_row(const struct smi_row *r, const struct smi_line *l)
{
    const char *value = row_value(r, l);
    /* The text has hexadecimal numbers with their mark, XML without. */
    if (str_starts(r->element, "pci_") && str_starts(value, "0x"))
        value += 2;
    if (!str_eq(r->element, "mig_devices")) {
        print_element(r->depth + 1, r->element, value);
        return;
    }
    print_tag(2, "", r->element);
    printf("\t\t\t%s\n", value);
    print_tag(2, "/", r->element);
}

static void print_xml_gpu(struct smi *s, const struct smi_gpu *g)
{
    const struct smi_line l = { .smi = s, .gpu = g };
    const char *open[DEEPEST];
    int n = 0; /* that many headings are open; the depth of the next row tells how many stay so */
    for (size_t i = 0; i <= smi_n_gpu_rows;) {
        const struct smi_row *r = i < smi_n_gpu_rows ? &smi_gpu_rows[i] : NULL;
        for (; n > (r ? r->depth - 1 : 0); n--)
            print_tag(n + 1, "/", open[n - 1]);
        if (!r)
            break;
        if (!r->element) {
            i = skip_row(smi_gpu_rows, smi_n_gpu_rows, i);
            continue;
        }
        if (r->column) {
            print_xml_row(r, &l);
        } else {
            assert(n < DEEPEST);
            print_tag(r->depth + 1, "", r->element);
            open[n++] = r->element;
        }
        if (str_eq(r->element, "processes"))
            print_xml_processes(s, g);
        i++;
    }
}

void smi_report_xml(struct smi *s)
{
    struct head head[N_HEAD];
    fill_head(s, head);
    puts(
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>");
    for (int i = 0; i < N_HEAD; i++)
        print_element(1, head[i].element, head[i].value);
    for (size_t i = 0; i < s->n_gpus; i++) {
        printf("\t<gpu id=\"%s\">\n", bus_id(s, &s->gpus[i]));
        print_xml_gpu(s, &s->gpus[i]);
        puts("\t</gpu>\n");
    }
    puts("</nvidia_smi_log>");
}
