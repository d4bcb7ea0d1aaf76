/* SPDX-License-Identifier: Apache-2.0
 * The answers of `cairn smi`, on stdout: a query as lines of CSV or as JSON, the list of GPUs, and the table. */
#ifndef CAIRN_CLI_SMI_PRINT_H
#define CAIRN_CLI_SMI_PRINT_H

#include "cli/smi_fields.h"

/* Columns of one table. */
struct smi_query {
    const struct smi_table *table; /* NULL: nothing is asked */
    const struct smi_field **field;
    size_t n;
    bool header, units;
};

/* Names with commas between; *bad is the first that is none, or NULL. */
void smi_query_parse(struct smi_query *q, const struct smi_table *t, const char *names, struct arena *a,
                     const char **bad);

void smi_print_header(const struct smi_query *q);
void smi_print_csv(struct smi *s, const struct smi_query *q);
void smi_print_json(struct smi *s, const struct smi_query *q);
void smi_print_list(struct smi *s);
void smi_print_table(struct smi *s);
/* The columns that can be asked for, each in quotes at the beginning of a line. */
void smi_print_fields(const struct smi_table *t);

#endif
