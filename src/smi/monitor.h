/* SPDX-License-Identifier: Apache-2.0
 * `nvidia-smi dmon` and `pmon`: one line per GPU, or per process. */
#ifndef CAIRN_SMI_MONITOR_H
#define CAIRN_SMI_MONITOR_H

#include "base/str.h"
#include "smi/smi.h"

struct smi_monitor {
    bool processes; /* pmon; else dmon */
    bool date, time;
    const char *select; /* letters, in the order of the columns */
};

/* Does every letter select columns? */
bool smi_monitor_has(const struct smi_monitor *m);
void smi_monitor_text(const struct smi_monitor *m, struct smi *s, bool header, struct str *out);

#endif
