/* SPDX-License-Identifier: Apache-2.0 */
#include "smi/answer.h"

#include "config.h"
#include <string.h>

void smi_query_parse(struct smi_query *q, const struct smi_table *t, const char *names, struct arena *a,
                     const char **bad)
{
    q->table = t;
    *bad = NULL;
    for (const char *at = names; at && !*bad; at = smi_next_word(at)) {
        size_t n = strcspn(at, ",");
        const struct smi_field *f = smi_field_find(t, at, n);
        if (f)
            *ARENA_PUSH(a, q->field, q->n) = f;
        else
            *bad = arena_strndup(a, at, n);
    }
}

void smi_header_text(const struct smi_query *q, struct str *out)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < q->n; i++)
        str_addf(out, "%s%s", i ? ", " : "", smi_field_header(q->field[i], &a));
    str_add(out, "\n");
}

static void add_csv_line(struct str *out, const struct smi_query *q, const struct smi_line *l)
{
    struct arena *a = &l->smi->facts.arena;
    for (size_t i = 0; i < q->n; i++)
        str_addf(out, "%s%s", i ? ", " : "",
                 smi_cell_text(q->field[i], smi_field_get(q->field[i], l), q->units, a));
    str_add(out, "\n");
}

static void add_line(struct json *list, const struct smi_query *q, const struct smi_line *l)
{
    struct arena *a = &l->smi->facts.arena;
    struct json *o = json_add_object(list, NULL);
    for (size_t i = 0; i < q->n; i++) {
        const char *key = smi_field_header(q->field[i], a);
        struct smi_cell c = smi_field_get(q->field[i], l);
        if (c.kind != SMI_NUMBER)
            json_add_text(o, key, c.kind == SMI_TEXT ? c.text : NULL);
        else if (c.decimals)
            json_add_real(o, key, c.number);
        else
            json_add_int(o, key, (int64_t)(c.number + (c.number < 0 ? -0.5 : 0.5)));
    }
}

/* Calls one of the two functions for each line of the output. */
static void each_line(struct smi *s, const struct smi_query *q, struct json *list, struct str *out)
{
    for (size_t i = 0; i < s->n_gpus; i++) {
        const struct gpu_facts *g = s->gpus[i].facts;
        bool apps = q->table == &smi_tables[SMI_APPS];
        size_t n = apps ? g->n_processes : q->table == &smi_tables[SMI_GPU];
        for (size_t k = 0; k < n; k++) {
            const struct smi_line l = { s, &s->gpus[i], apps ? &g->processes[k] : NULL };
            if (list)
                add_line(list, q, &l);
            else
                add_csv_line(out, q, &l);
        }
    }
}

void smi_csv_text(struct smi *s, const struct smi_query *q, struct str *out)
{
    each_line(s, q, NULL, out);
}

struct json *smi_json(struct smi *s, const struct smi_query *q)
{
    struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    each_line(s, q, json_add_array(top, q->table->json), NULL);
    return top;
}

/* A column of one GPU for the list and the table: a text, or a number with its unit, "628W". */
static const char *cell(struct smi *s, const struct smi_gpu *g, const char *name, const char *unit)
{
    const struct smi_line l = { .smi = s, .gpu = g };
    const struct smi_field *f = smi_field_of(&l, name);
    struct smi_cell c = smi_field_get(f, &l);
    if (c.kind == SMI_NUMBER)
        return arena_printf(&s->facts.arena, "%.0f%s", c.number, unit);
    return c.kind == SMI_TEXT ? smi_cell_text(f, c, false, &s->facts.arena) : "N/A";
}

void smi_list_text(struct smi *s, struct str *out)
{
    for (size_t i = 0; i < s->n_gpus; i++)
        str_addf(out, "GPU %zu: %s (UUID: %s)\n", s->gpus[i].index, cell(s, &s->gpus[i], "name", ""),
                 cell(s, &s->gpus[i], "uuid", ""));
}

/* A line of '-' or '=' in the columns of the table. */
static void add_rule(struct str *out, char left, char fill, const int *width, int n)
{
    str_addn(out, &left, 1);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < width[i]; k++)
            str_addn(out, &fill, 1);
        str_addn(out, i + 1 < n ? "+" : &left, 1);
    }
    str_add(out, "\n");
}

static const int columns[] = { 41, 24, 22 }, all[] = { 89 };

/* Programs parse these words, so they are those of nvidia-smi; its version is the driver's. */
static void add_head(struct str *out, struct smi *s)
{
    const char *known = smi_driver_version(s), *version = known ? known : "N/A";
    add_rule(out, '+', '-', all, 1);
    str_addf(out, "| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-9s|\n", version, version, "N/A");
    add_rule(out, '+', '-', columns, 3);
    str_addf(out, "|%-41s|%-24s|%-22s|\n", " GPU  Name                 Persistence-M",
             " Bus-Id          Disp.A", " Volatile Uncorr. ECC");
    str_addf(out, "|%-41s|%24s|%-22s|\n", " Fan  Temp   Perf          Pwr:Usage/Cap", "Memory-Usage ",
             " GPU-Util  Compute M.");
    str_addf(out, "|%-41s|%-24s|%22s|\n", "", "", "MIG M. ");
    add_rule(out, '|', '=', columns, 3);
}

static void add_gpu(struct str *out, struct smi *s, const struct smi_gpu *g)
{
    const char *name = cell(s, g, "name", "");
    str_addf(out, "|%4zu  ", g->index);
    str_add_cell(out, name, 27);
    str_addf(out, "    %-3s |%19s %3s |%21s |\n", "N/A", cell(s, g, "pci.bus_id", ""), "N/A", "N/A");
    str_addf(out, "|%4s%6s%6s%16s / %5s |%11s / %9s |%8s %12s |\n", cell(s, g, "fan.speed", "%"),
             cell(s, g, "temperature.gpu", "C"), "N/A", cell(s, g, "power.draw", "W"),
             cell(s, g, "power.limit", "W"), cell(s, g, "memory.used", "MiB"),
             cell(s, g, "memory.total", "MiB"), cell(s, g, "utilization.gpu", "%"),
             cell(s, g, "compute_mode", ""));
    str_addf(out, "|%41s|%24s|%21s |\n", "", "", "N/A");
    add_rule(out, '+', '-', columns, 3);
}

static void add_processes(struct str *out, const struct smi *s)
{
    size_t n = 0;
    add_rule(out, '+', '-', all, 1);
    str_addf(out, "|%-89s|\n", " Processes:");
    str_addf(out, "|  GPU   GI   CI              PID   Type   %-34s%12s |\n", "Process name", "GPU Memory");
    str_addf(out, "|        ID   ID                           %-34s%-12s |\n", "", "  Usage");
    add_rule(out, '|', '=', all, 1);
    for (size_t i = 0; i < s->n_gpus; i++)
        for (size_t k = 0; k < s->gpus[i].facts->n_processes; k++, n++) {
            const struct gpu_process *p = &s->gpus[i].facts->processes[k];
            str_addf(out, "|%5zu   N/A  N/A%16lld      C   ", s->gpus[i].index, (long long)p->pid);
            str_add_cell(out, p->name ? p->name : "[N/A]", 34);
            str_addf(out, "%9lldMiB |\n", (long long)p->vram_bytes >> 20);
        }
    if (!n)
        str_addf(out, "|%-89s|\n", "  No running processes found");
    add_rule(out, '+', '-', all, 1);
}

void smi_table_text(struct smi *s, struct str *out)
{
    str_addf(out, "%s       cairn " CAIRN_VERSION "\n", s->date);
    add_head(out, s);
    for (size_t i = 0; i < s->n_gpus; i++)
        add_gpu(out, s, &s->gpus[i]);
    str_add(out, "\n");
    add_processes(out, s);
}

void smi_fields_text(const struct smi_table *t, struct str *out)
{
    str_addf(out, "Columns of --query-%s, to be separated by commas:\n", t->query);
    for (size_t i = 0; i < t->n; i++) {
        const struct smi_field *f = &t->row[i];
        str_addf(out, "\n\"%s\"", f->name);
        if (*f->alias)
            str_addf(out, " or \"%s\"", f->alias);
        str_addf(out, "\n%s%s%s%s\n", f->about ? f->about : "not available on AMD GPUs", f->unit ? " (" : "",
                 f->unit ? f->unit : "", f->unit ? ")" : "");
    }
}
