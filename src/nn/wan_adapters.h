/* SPDX-License-Identifier: Apache-2.0
 * LoRAs of files that are applied and not trained: for samples, such as those that need few steps.
 *
 * They lie beside the model's own LoRA, whatever form and place the weights have.  A file may be in any dialect, and its
 * modules may differ in rank.  The linears of the blocks get its matrices as they are; what it changes besides (norms,
 * biases, linears before and behind the blocks) is added to the weights, and their values of before are kept.  Closing
 * gives back exactly what was there. */
#ifndef CAIRN_NN_WAN_ADAPTERS_H
#define CAIRN_NN_WAN_ADAPTERS_H

#include "nn/wan.h"

struct wan_adapter_file {
    const char *path;
    double strength; /* 0: left out */
    size_t base;     /* for which it is; WAN_EXPERTS: for all */
};
/* What became of a file. */
struct wan_adapter_report {
    size_t modules; /* that are applied, to any base */
    size_t unknown; /* that the model does not have: left out */
    char first_unknown[LORA_NAME_MAX];
};

/* One file's LoRA over a base. */
struct wan_adapter {
    size_t base;
    struct lora lora; /* scale 1: it is in the matrices */
    struct lora_site (*sites)[WAN_MATRICES];
};

/* m->adapters must be NULL.  reports: one for each file; may be NULL. */
int wan_adapters_open(struct wan *m, const struct wan_adapter_file *files, size_t n,
                      struct wan_adapter_report *reports, struct cairn_error *err);
/* Fails only where the device does; then the weights are not what they were. */
int wan_adapters_close(struct wan *m, struct cairn_error *err);
/* Once a base was loaded again from its file. */
int wan_adapters_apply(struct wan *m, size_t base, struct cairn_error *err);

size_t wan_adapters_count(const struct wan *m);
const struct wan_adapter *wan_adapters_at(const struct wan *m, size_t i);
size_t wan_adapters_rank(const struct wan *m); /* the largest; 0: none */

#endif
