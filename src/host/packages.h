/* SPDX-License-Identifier: Apache-2.0
 * Python packages with binary parts beside torch: which version, and does the binary part fit this torch. */
#ifndef CAIRN_HOST_PACKAGES_H
#define CAIRN_HOST_PACKAGES_H

#include "host/facts.h"
#include "host/python_site.h"

/* Fills t->bitsandbytes, triton, flash_attn and accelerate from the sites of the Python that has this torch,
 * in the order of import.  t's version and build are known already; what cannot be read is added to
 * t->problems.  bnb_version is the value of BNB_ROCM_VERSION, or NULL. */
void packages_read(struct torch_facts *t, const struct python_site *sites, size_t n_sites,
                   const char *bnb_version);

#endif
