/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/report.h"

#include "base/str.h"
#include "smi/fields.h"
#include "smi/rows.h"
#include <assert.h>
#include <string.h>

enum { LABEL_WIDTH = 42, DEEPEST = 8 };

/* "N/A" if unknown; without control characters, but not yet escaped for XML. */
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

/* The row after row i and its children. */
static size_t skip_row(const struct smi_row *rows, size_t n, size_t i)
{
    int depth = rows[i].depth;
    for (i++; i < n && rows[i].depth > depth; i++)
        continue;
    return i;
}

static void add_text(struct str *out, int depth, const char *label, const char *value)
{
    str_addf(out, "%*s%-*s: %s\n", 4 * depth, "", LABEL_WIDTH - 4 * depth, label, value);
}

static void add_text_processes(struct str *out, struct smi *s, const struct smi_gpu *g)
{
    if (!g->facts->n_processes)
        add_text(out, 1, "Processes", "None");
    else
        str_add(out, "    Processes\n");
    for (size_t k = 0; k < g->facts->n_processes; k++) {
        const struct smi_line l = { s, g, &g->facts->processes[k] };
        for (size_t i = 0; i < smi_n_process_rows; i++)
            add_text(out, 2, smi_process_rows[i].label, row_value(&smi_process_rows[i], &l));
    }
}

/* A row of depth 1 decides for its children whether they are shown. */
static bool is_shown(const struct smi_row *r, unsigned sections)
{
    if (!r->label)
        return false;
    return r->depth > 1 || (sections ? (r->sections & sections) != 0 : !r->asked);
}

static void add_text_gpu(struct str *out, struct smi *s, const struct smi_gpu *g, unsigned sections)
{
    const struct smi_line l = { .smi = s, .gpu = g };
    for (size_t i = 0; i < smi_n_gpu_rows;) {
        const struct smi_row *r = &smi_gpu_rows[i];
        if (!is_shown(r, sections)) {
            i = skip_row(smi_gpu_rows, smi_n_gpu_rows, i);
            continue;
        }
        if (r->column)
            add_text(out, r->depth, r->label, row_value(r, &l));
        else if (str_eq(r->element, "processes"))
            add_text_processes(out, s, g);
        else
            str_addf(out, "%*s%s\n", 4 * r->depth, "", r->label);
        i++;
    }
}

/* The lines before the GPUs. */
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

void smi_report_text(struct smi *s, unsigned sections, struct str *out)
{
    struct head head[N_HEAD];
    fill_head(s, head);
    str_add(out, "\n==============NVSMI LOG==============\n\n");
    for (int i = 0; i < N_HEAD; i++)
        str_addf(out, "%s%-*s: %s\n", i == N_HEAD - 1 ? "\n" : "", LABEL_WIDTH, head[i].label, head[i].value);
    for (size_t i = 0; i < s->n_gpus; i++) {
        str_addf(out, "GPU %s\n", bus_id(s, &s->gpus[i]));
        add_text_gpu(out, s, &s->gpus[i], sections);
        str_add(out, "\n");
    }
}

static void add_tabs(struct str *out, int n)
{
    while (n-- > 0)
        str_add(out, "\t");
}

/* XML does not allow U+FFFE and U+FFFF. */
static void add_escaped(struct str *out, const char *s)
{
    static const char marks[] = "&<>\"'", *const names[] = { "amp", "lt", "gt", "quot", "apos" };
    for (; *s; s++) {
        if (str_starts(s, "\xef\xbf\xbe") || str_starts(s, "\xef\xbf\xbf")) {
            str_add(out, "?");
            s += 2;
            continue;
        }
        const char *mark = strchr(marks, *s);
        if (mark)
            str_addf(out, "&%s;", names[mark - marks]);
        else
            str_addn(out, s, 1);
    }
}

static void add_element(struct str *out, int depth, const char *name, const char *value)
{
    add_tabs(out, depth);
    str_addf(out, "<%s>", name);
    add_escaped(out, value);
    str_addf(out, "</%s>\n", name);
}

static void add_tag(struct str *out, int depth, const char *mark, const char *name)
{
    add_tabs(out, depth);
    str_addf(out, "<%s%s>\n", mark, name);
}

static void add_xml_processes(struct str *out, struct smi *s, const struct smi_gpu *g)
{
    for (size_t k = 0; k < g->facts->n_processes; k++) {
        const struct smi_line l = { s, g, &g->facts->processes[k] };
        add_tag(out, 3, "", "process_info");
        for (size_t i = 0; i < smi_n_process_rows; i++)
            add_element(out, 4, smi_process_rows[i].element, row_value(&smi_process_rows[i], &l));
        add_tag(out, 3, "/", "process_info");
    }
}

static void add_xml_row(struct str *out, const struct smi_row *r, const struct smi_line *l)
{
    const char *value = row_value(r, l);
    /* Hexadecimal numbers have 0x in text, but not in XML. */
    if (str_starts(r->element, "pci_") && str_starts(value, "0x"))
        value += 2;
    if (!str_eq(r->element, "mig_devices")) {
        add_element(out, r->depth + 1, r->element, value);
        return;
    }
    add_tag(out, 2, "", r->element);
    str_addf(out, "\t\t\t%s\n", value);
    add_tag(out, 2, "/", r->element);
}

static void add_xml_gpu(struct str *out, struct smi *s, const struct smi_gpu *g)
{
    const struct smi_line l = { .smi = s, .gpu = g };
    const char *open[DEEPEST];
    int n = 0; /* that many headings are open; the depth of the next row tells how many stay so */
    for (size_t i = 0; i <= smi_n_gpu_rows;) {
        const struct smi_row *r = i < smi_n_gpu_rows ? &smi_gpu_rows[i] : NULL;
        for (; n > (r ? r->depth - 1 : 0); n--)
            add_tag(out, n + 1, "/", open[n - 1]);
        if (!r)
            break;
        if (!r->element) {
            i = skip_row(smi_gpu_rows, smi_n_gpu_rows, i);
            continue;
        }
        if (r->column) {
            add_xml_row(out, r, &l);
        } else {
            assert(n < DEEPEST);
            add_tag(out, r->depth + 1, "", r->element);
            open[n++] = r->element;
        }
        if (str_eq(r->element, "processes"))
            add_xml_processes(out, s, g);
        i++;
    }
}

void smi_report_xml(struct smi *s, struct str *out)
{
    struct head head[N_HEAD];
    fill_head(s, head);
    str_add(
        out,
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n");
    for (int i = 0; i < N_HEAD; i++)
        add_element(out, 1, head[i].element, head[i].value);
    for (size_t i = 0; i < s->n_gpus; i++) {
        str_addf(out, "\t<gpu id=\"%s\">\n", bus_id(s, &s->gpus[i]));
        add_xml_gpu(out, s, &s->gpus[i]);
        str_add(out, "\t</gpu>\n\n");
    }
    str_add(out, "</nvidia_smi_log>\n");
}
