/* SPDX-License-Identifier: Apache-2.0
 * Memory: what the host has, and how much of it a GPU can really use. */
#ifndef CAIRN_HOST_MEMORY_H
#define CAIRN_HOST_MEMORY_H

#include "host/facts.h"

void memory_read(struct facts *f);
/* Our own cgroup, as a path below the mount: the text after "0::" (v2) or ":memory:" (v1) in
 * /proc/self/cgroup; "" for the root, or if unknown. */
const char *memory_own_cgroup(const struct root *r, struct arena *a, const char *mark);
/* Fills usable_bytes, usable_reason and the problems that go with memory, from what is known already. */
void memory_judge_gpu(const struct host_facts *h, struct arena *a, struct gpu_facts *g);

/* Memory counted as on a card: the total, what all processes hold, and the difference. On unified memory
 * `total` is the budget: the limit of HIP, or what the GPU holds plus what the host has available, if that is
 * less. */
struct memory_use {
    struct num total, used, free;
};
struct memory_use memory_use(const struct host_facts *h, struct arena *a, const struct gpu_facts *g);

/* MI300A: its memory is the host's, all of it; there is no carve-out, and GTT is no limit. */
bool memory_is_one_pool(const struct gpu_facts *g);
/* HIP gets the BIOS carve-out of this APU and nothing else: it is larger than GTT, or KFD counts only it, as
 * kernels before 6.10 do. That memory is not the host's, so what the host has left does not bound it. */
bool memory_is_carve_out(const struct gpu_facts *g);

/* "ttm", or "amdttm" with AMD's DKMS driver: the module whose pages_limit applies. */
const char *memory_ttm_module(const struct host_facts *h);
/* Its pages_limit in bytes: as set, else the kernel's default if that is known. */
struct num memory_ttm_limit(const struct host_facts *h);
/* What HIP reports as the device's memory: VRAM, or the maximum that it may use of the host's. */
struct num memory_total(const struct host_facts *h, struct arena *a, const struct gpu_facts *g);
/* What Linux should keep of memory that it shares with a GPU: a fifth, but no more than 16 GiB. */
int64_t memory_reserve(int64_t bytes);
/* The page limit that suits so much shared RAM: what the reserve leaves, in whole GiB. */
int64_t memory_wanted_limit(int64_t ram);

#endif
