/* SPDX-License-Identifier: Apache-2.0
 * Output of nvidia-smi: a query as CSV or JSON, the list of GPUs, and the table. */
#ifndef CAIRN_SMI_ANSWER_H
#define CAIRN_SMI_ANSWER_H

#include "base/json.h"
#include "base/str.h"
#include "smi/fields.h"

/* Columns of one table. */
struct smi_query {
    const struct smi_table *table; /* NULL: no query */
    const struct smi_field **field;
    size_t n;
    bool header, units;
};

/* Names separated by commas; *bad is the first unknown one, or NULL. */
void smi_query_parse(struct smi_query *q, const struct smi_table *t, const char *names, struct arena *a,
                     const char **bad);

/* Each is added to out. */
void smi_header_text(const struct smi_query *q, struct str *out);
void smi_csv_text(struct smi *s, const struct smi_query *q, struct str *out);
void smi_list_text(struct smi *s, struct str *out);
void smi_table_text(struct smi *s, struct str *out);
/* The columns of a query, each in quotes at the beginning of a line. */
void smi_fields_text(const struct smi_table *t, struct str *out);

struct json *smi_json(struct smi *s, const struct smi_query *q); /* the caller frees it */

#endif
