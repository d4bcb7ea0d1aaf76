/* SPDX-License-Identifier: Apache-2.0
 * Joins the other processes that a launcher started for the same job, and divides what the machine has among them. */
#ifndef CAIRN_START_RANKS_H
#define CAIRN_START_RANKS_H

#include "dist/comm.h"
#include "gpu/gpu.h"

/* *out: NULL where no launcher started several; after a failure it may be set (comm_open).  CPUs that several ranks may use
 * are divided among them. */
int start_join_ranks(struct comm **out, struct cairn_error *err);
/* The name of this rank's device for what was asked for: "auto", "hip" and "cuda" are the GPUs of a machine in turn. */
const char *start_rank_device(const struct comm *c, const char *asked, const struct gpu_info *list, size_t n);
/* Fails if two ranks have opened the same GPU. */
int start_check_devices(struct comm *c, const struct gpu_info *mine, struct cairn_error *err);

#endif
