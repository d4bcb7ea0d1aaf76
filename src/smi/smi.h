/* SPDX-License-Identifier: Apache-2.0
 * The GPUs as `cairn smi` counts them: those that HIP shows, in its order, after ROCR_VISIBLE_DEVICES.
 * What else selects GPUs is not looked at, as nvidia-smi does not look at CUDA_VISIBLE_DEVICES. */
#ifndef CAIRN_SMI_SMI_H
#define CAIRN_SMI_SMI_H

#include "host/facts.h"
#include "host/memory.h"
#include <time.h>

struct smi_gpu {
    const struct gpu_facts *facts;
    size_t index; /* HIP's, and so PyTorch's */
    struct memory_use memory;
};

/* The machine at one moment; all of it lives in the arena of its facts. */
struct smi {
    struct facts facts;
    struct smi_gpu *gpus;
    size_t n_gpus;  /* that are told of */
    size_t count;   /* that there are */
    char now[32];   /* "2026/11/15 19:04:05.123" */
    char date[64];  /* "Sun Nov 15 19:04:05 2026" */
    struct tm time; /* the same */
};

/* root: NULL for the one that CAIRN_SMI_ROOT names, else this machine.  Fails as facts_read does; smi is
 * empty then, and may be released all the same. */
int smi_read(struct smi *s, const char *root, struct cairn_error *err);
void smi_release(struct smi *s);
/* Of amdgpu where AMD's own is installed, else of the kernel; NULL if neither is known. */
const char *smi_driver_version(struct smi *s);
/* As ROCR_VISIBLE_DEVICES takes it.  Programs tell GPUs apart by it, so for a GPU that has none, such as
 * an APU, it is the PCI address in that form, and for a partition, which shares that of its card, KFD's
 * node stands behind it; ROCR_VISIBLE_DEVICES takes neither. */
const char *smi_uuid(struct smi *s, const struct smi_gpu *g);
/* Keeps the GPUs that are named by index, UUID, serial number or PCI address, with commas between; NULL
 * keeps all.  A name that is nobody's is passed over. */
void smi_select(struct smi *s, const char *ids);
/* What stands behind the next comma; NULL if there is none. */
const char *smi_next_word(const char *list);

#endif
