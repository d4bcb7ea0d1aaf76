/* SPDX-License-Identifier: Apache-2.0
 * The columns that nvidia-smi has, filled from our facts.
 *
 * A column has the names, the unit and the look that the tool of NVIDIA gives it, since programs parse
 * them.  What nothing tells on an AMD GPU is a column all the same, without a value: one name that is not
 * there would fail a whole query. */
#ifndef CAIRN_SMI_FIELDS_H
#define CAIRN_SMI_FIELDS_H

#include "smi/smi.h"

/* What a line of the answer is about. */
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
    const char *about;                                /* NULL: never known here */
    struct smi_cell (*get)(const struct smi_line *l); /* NULL: what is at `at` in struct gpu_facts */
    size_t at;
    double divide; /* the number there by this; 0: it is a text */
    int decimals;
};

/* What can be asked for with --query-NAME.  The last three list what AMD GPUs do not tell: their answer
 * has no lines. */
enum smi_query_kind { SMI_GPU, SMI_APPS, SMI_CLOCKS, SMI_ACCOUNTED, SMI_RETIRED, SMI_TABLES };
struct smi_table {
    const char *query; /* "gpu" */
    const char *json;  /* the list's name in JSON */
    const struct smi_field *row;
    size_t n;
};
extern const struct smi_table smi_tables[SMI_TABLES];

/* By its name or its alias; NULL if there is none. */
const struct smi_field *smi_field_find(const struct smi_table *t, const char *name, size_t len);
/* The same for what -q and the monitors tell of a GPU or, where the line has one, of a process. */
const struct smi_field *smi_field_of(const struct smi_line *l, const char *name);
struct smi_cell smi_field_get(const struct smi_field *f, const struct smi_line *l);
/* "memory.total [MiB]" */
const char *smi_field_header(const struct smi_field *f, struct arena *a);
/* "98304 MiB", "[N/A]" */
const char *smi_cell_text(const struct smi_field *f, struct smi_cell c, bool units, struct arena *a);

#endif
