/* SPDX-License-Identifier: Apache-2.0
 * What `nvidia-smi -q` and `nvidia-smi -q -x` say of a GPU: one list for both, in the order of driver 550,
 * the last whose power readings every monitor knows. */
#ifndef CAIRN_SMI_ROWS_H
#define CAIRN_SMI_ROWS_H

#include <stdbool.h>
#include <stddef.h>

struct smi_row {
    int depth;           /* 1 is a GPU's own; a row without a column heads the deeper ones that follow */
    unsigned sections;   /* of -d; rows beneath a heading go with it */
    const char *label;   /* in the text; NULL: only in XML */
    const char *element; /* in XML; NULL: only in the text */
    const char *column;  /* of smi/fields.h; "=word": a constant; "": not available */
    const char *suffix;  /* follows the value; NULL: none */
    bool asked;          /* in the text only if -d selects its section */
};

/* The rows of a GPU, and of one of its processes. */
extern const struct smi_row smi_gpu_rows[], smi_process_rows[];
extern const size_t smi_n_gpu_rows, smi_n_process_rows;

/* The bit of a section such as "MEMORY", ignoring case; 0 if unknown. */
unsigned smi_section(const char *name, size_t len);

#endif
