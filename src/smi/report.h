/* SPDX-License-Identifier: Apache-2.0
 * `nvidia-smi -q`: as text or, with -x, as XML. */
#ifndef CAIRN_SMI_REPORT_H
#define CAIRN_SMI_REPORT_H

#include "base/str.h"
#include "smi/smi.h"

/* sections: of smi_section; 0 for all. */
void smi_report_text(struct smi *s, unsigned sections, struct str *out);
void smi_report_xml(struct smi *s, struct str *out);

#endif
