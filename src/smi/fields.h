/* SPDX-License-Identifier: Apache-2.0
 * The columns of nvidia-smi, filled from cairn's facts.
 *
 * A column has nvidia-smi's names, unit and format, since programs parse them.  Columns that no AMD GPU
 * reports exist too, without a value: one unknown name would fail the whole query. */
#ifndef CAIRN_SMI_FIELDS_H
#define CAIRN_SMI_FIELDS_H

#include "smi/smi.h"

/* The subject of an output line. */
struct smi_line {
    struct smi *smi;
    const struct smi_gpu *gpu;
    const struct gpu_process *process; /* NULL in a query of GPUs */
};

enum smi_kind { SMI_UNKNOWN, SMI_TEXT, SMI_NUMBER };
struct smi_cell {
    enum smi_kind kind;
    const char *text;
    double number;
    int decimals;
};

struct smi_field {
    const char *name, *alias;                         /* alias: "" if it has none */
    const char *unit;                                 /* "MiB"; or NULL */
    const char *about;                                /* NULL: not available on AMD GPUs */
    struct smi_cell (*get)(const struct smi_line *l); /* NULL: what is at `at` in struct gpu_facts */
    size_t at;
    double divide; /* divides the number; 0: it is a text */
    int decimals;
};

/* The tables of --query-NAME.  AMD GPUs have no data for the last three, so their output has no lines. */
enum smi_query_kind { SMI_GPU, SMI_APPS, SMI_CLOCKS, SMI_ACCOUNTED, SMI_RETIRED, SMI_TABLES };
struct smi_table {
    const char *query; /* "gpu" */
    const char *json;  /* the list's name in JSON */
    const struct smi_field *row;
    size_t n;
};
extern const struct smi_table smi_tables[SMI_TABLES];

/* By name or alias; NULL if unknown. */
const struct smi_field *smi_field_find(const struct smi_table *t, const char *name, size_t len);
/* The same for the columns of -q and the monitors, of a GPU or, if the line has one, a process. */
const struct smi_field *smi_field_of(const struct smi_line *l, const char *name);
struct smi_cell smi_field_get(const struct smi_field *f, const struct smi_line *l);
/* "memory.total [MiB]" */
const char *smi_field_header(const struct smi_field *f, struct arena *a);
/* "98304 MiB", "[N/A]" */
const char *smi_cell_text(const struct smi_field *f, struct smi_cell c, bool units, struct arena *a);

#endif
