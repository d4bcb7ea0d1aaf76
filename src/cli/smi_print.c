/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi_print.h"

#include "base/json.h"
#include "cli/print.h"
#include "config.h"
#include <stdio.h>
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

void smi_print_header(const struct smi_query *q)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    for (size_t i = 0; i < q->n; i++)
        printf("%s%s", i ? ", " : "", smi_field_header(q->field[i], &a));
    putchar('\n');
}

static void print_line(const struct smi_query *q, const struct smi_line *l)
{
    struct arena *a = &l->smi->facts.arena;
    for (size_t i = 0; i < q->n; i++)
        printf("%s%s", i ? ", " : "", smi_cell_text(q->field[i], smi_field_get(q->field[i], l), q->units, a));
    putchar('\n');
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

/* Either into a list of JSON, or as a line of CSV. */
static void put_line(struct json *list, const struct smi_query *q, const struct smi_line *l)
{
    if (list)
        add_line(list, q, l);
    else
        print_line(q, l);
}

static void put_lines(struct json *list, struct smi *s, const struct smi_query *q)
{
    for (size_t i = 0; i < s->n_gpus; i++) {
        const struct gpu_facts *g = s->gpus[i].facts;
        struct smi_line l = { .smi = s, .gpu = &s->gpus[i] };
        if (q->table == &smi_tables[SMI_GPU])
            put_line(list, q, &l);
        for (size_t k = 0; k < g->n_processes && q->table == &smi_tables[SMI_APPS]; k++) {
            l.process = &g->processes[k];
            put_line(list, q, &l);
        }
    }
}

void smi_print_csv(struct smi *s, const struct smi_query *q)
{
    put_lines(NULL, s, q);
}

void smi_print_json(struct smi *s, const struct smi_query *q)
{
    CLEANUP(json_cleanup) struct json *top = json_new_object();
    json_add_int(top, "schema", 1);
    put_lines(json_add_array(top, q->table->json), s, q);
    json_print(top, stdout);
}

/* A column of one GPU as it stands in the list and in the table: a text, or a number with its unit, "628W". */
static const char *cell(struct smi *s, const struct smi_gpu *g, const char *name, const char *unit)
{
    const struct smi_line l = { .smi = s, .gpu = g };
    const struct smi_field *f = smi_field_of(&l, name);
    struct smi_cell c = smi_field_get(f, &l);
    if (c.kind == SMI_NUMBER)
        return arena_printf(&s->facts.arena, "%.0f%s", c.number, unit);
    return c.kind == SMI_TEXT ? smi_cell_text(f, c, false, &s->facts.arena) : "N/A";
}

void smi_print_list(struct smi *s)
{
    for (size_t i = 0; i < s->n_gpus; i++)
        printf("GPU %zu: %s (UUID: %s)\n", s->gpus[i].index, cell(s, &s->gpus[i], "name", ""),
               cell(s, &s->gpus[i], "uuid", ""));
}

/* A line of '-' or '=' in the columns of the table. */
static void print_rule(char left, char fill, const int *width, int n)
{
    putchar(left);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < width[i]; k++)
            putchar(fill);
        putchar(i + 1 < n ? '+' : left);
    }
    putchar('\n');
}

static const int columns[] = { 41, 24, 22 }, all[] = { 89 };

/* Programs look for the words, and count them, so they are those of nvidia-smi: its version is the driver's. */
static void print_head(struct smi *s)
{
    const char *known = smi_driver_version(s), *version = known ? known : "N/A";
    print_rule('+', '-', all, 1);
    printf("| NVIDIA-SMI %-22s Driver Version: %-14s CUDA Version: %-9s|\n", version, version, "N/A");
    print_rule('+', '-', columns, 3);
    printf("|%-41s|%-24s|%-22s|\n", " GPU  Name                 Persistence-M", " Bus-Id          Disp.A",
           " Volatile Uncorr. ECC");
    printf("|%-41s|%24s|%-22s|\n", " Fan  Temp   Perf          Pwr:Usage/Cap", "Memory-Usage ",
           " GPU-Util  Compute M.");
    printf("|%-41s|%-24s|%22s|\n", "", "", "MIG M. ");
    print_rule('|', '=', columns, 3);
}

static void print_gpu(struct smi *s, const struct smi_gpu *g)
{
    const char *name = cell(s, g, "name", "");
    printf("|%4zu  ", g->index);
    print_cell(stdout, name, 27);
    printf("    %-3s |%19s %3s |%21s |\n", "N/A", cell(s, g, "pci.bus_id", ""), "N/A", "N/A");
    printf("|%4s%6s%6s%16s / %5s |%11s / %9s |%8s %12s |\n", cell(s, g, "fan.speed", "%"),
           cell(s, g, "temperature.gpu", "C"), "N/A", cell(s, g, "power.draw", "W"),
           cell(s, g, "power.limit", "W"), cell(s, g, "memory.used", "MiB"),
           cell(s, g, "memory.total", "MiB"), cell(s, g, "utilization.gpu", "%"),
           cell(s, g, "compute_mode", ""));
    printf("|%41s|%24s|%21s |\n", "", "", "N/A");
    print_rule('+', '-', columns, 3);
}

static void print_processes(const struct smi *s)
{
    size_t n = 0;
    print_rule('+', '-', all, 1);
    printf("|%-89s|\n", " Processes:");
    printf("|  GPU   GI   CI              PID   Type   %-34s%12s |\n", "Process name", "GPU Memory");
    printf("|        ID   ID                           %-34s%-12s |\n", "", "  Usage");
    print_rule('|', '=', all, 1);
    for (size_t i = 0; i < s->n_gpus; i++)
        for (size_t k = 0; k < s->gpus[i].facts->n_processes; k++, n++) {
            const struct gpu_process *p = &s->gpus[i].facts->processes[k];
            printf("|%5zu   N/A  N/A%16lld      C   ", s->gpus[i].index, (long long)p->pid);
            print_cell(stdout, p->name ? p->name : "[N/A]", 34);
            printf("%9lldMiB |\n", (long long)p->vram_bytes >> 20);
        }
    if (!n)
        printf("|%-89s|\n", "  No running processes found");
    print_rule('+', '-', all, 1);
}

void smi_print_table(struct smi *s)
{
    printf("%s       cairn " CAIRN_VERSION "\n", s->date);
    print_head(s);
    for (size_t i = 0; i < s->n_gpus; i++)
        print_gpu(s, &s->gpus[i]);
    putchar('\n');
    print_processes(s);
}

void smi_print_fields(const struct smi_table *t)
{
    printf("The columns that --query-%s takes, with commas between them:\n", t->query);
    for (size_t i = 0; i < t->n; i++) {
        const struct smi_field *f = &t->row[i];
        printf("\n\"%s\"", f->name);
        if (*f->alias)
            printf(" or \"%s\"", f->alias);
        printf("\n%s%s%s%s\n", f->about ? f->about : "never known on an AMD GPU", f->unit ? " (" : "",
               f->unit ? f->unit : "", f->unit ? ")" : "");
    }
}
