/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of `cairn smi`: those that HIP shows, in its order, after ROCR_VISIBLE_DEVICES.  Other
 * variables that select GPUs are ignored, as nvidia-smi ignores CUDA_VISIBLE_DEVICES. */
#ifndef CAIRN_SMI_SMI_H
#define CAIRN_SMI_SMI_H

#include "host/facts.h"
#include "host/memory.h"
#include <time.h>

struct smi_gpu {
    const struct gpu_facts *facts;
    size_t index; /* in HIP and PyTorch */
    struct memory_use memory;
};

/* The machine at one moment; all of it lives in the arena of its facts. */
struct smi {
    struct facts facts;
    struct smi_gpu *gpus;
    size_t n_gpus;  /* shown */
    size_t count;   /* of the machine */
    char now[32];   /* "2026/11/15 19:04:05.123" */
    char date[64];  /* "Sun Nov 15 19:04:05 2026" */
    struct tm time; /* the same */
};

/* root NULL: CAIRN_SMI_ROOT if set, else this machine.  Fails like facts_read; s is empty then, and may be
 * released. */
int smi_read(struct smi *s, const char *root, struct cairn_error *err);
void smi_release(struct smi *s);
/* Version of AMD's amdgpu if installed, else of the kernel; NULL: unknown. */
const char *smi_driver_version(struct smi *s);
/* The UUID for ROCR_VISIBLE_DEVICES.  Programs identify GPUs by it, so a GPU without one, such as an APU,
 * gets its PCI address in that form, and a partition, which shares the PCI address of its card, gets the
 * KFD node appended. ROCR_VISIBLE_DEVICES accepts neither. */
const char *smi_uuid(struct smi *s, const struct smi_gpu *g);
/* Keeps the GPUs named by index, UUID, serial number or PCI address, separated by commas; NULL keeps all.
 * Unknown names are ignored. */
void smi_select(struct smi *s, const char *ids);
/* What follows the next comma; NULL if there is none. */
const char *smi_next_word(const char *list);

#endif
