/* SPDX-License-Identifier: Apache-2.0
 * What is known about each gfx target: one row per chip, and nowhere else a list of them
 * (tests/lint/chips.py). `cairn gpu --chips`, docs/chips.md and the list in README.md are made from
 * this table. */
#ifndef CAIRN_CHIP_GFX_TABLE_H
#define CAIRN_CHIP_GFX_TABLE_H

#include "base/parse.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gfx_family {
    GFX_GCN,
    GFX_VEGA,
    GFX_CDNA,
    GFX_CDNA2,
    GFX_CDNA3,
    GFX_CDNA4,
    GFX_RDNA1,
    GFX_RDNA2,
    GFX_RDNA3,
    GFX_RDNA35,
    GFX_RDNA4,
};
const char *gfx_family_name(enum gfx_family f);

enum gpu_kind { GPU_KIND_UNKNOWN, GPU_DISCRETE, GPU_INTEGRATED };
const char *gpu_kind_name(enum gpu_kind k); /* NULL when not known */

/* The version of the graphics block, which is not the target's number: 11.0.1 is gfx1103. */
struct gfx_gc {
    uint8_t major, minor, revision;
};

/* PCI device ids. */
struct gfx_ids {
    uint16_t first, last;
};

struct gfx_chip {
    const char *gfx;      /* "gfx1151" */
    const char *codename; /* "Strix Halo" */
    const char *products;
    enum gpu_kind kind;    /* not known: it exists in both kinds */
    uint16_t apu_id;       /* then: the PCI id of the one that is an APU */
    uint8_t mach;          /* EF_AMDGPU_MACH of an ELF file's e_flags */
    struct gfx_gc gc[2];   /* up to the first of zeros */
    struct gfx_ids ids[6]; /* the same; no two chips share one */
    enum gfx_family family;
    int wave;
    int vgpr_kib;        /* vector registers per compute unit: code tuned for 384 must not run on 256 */
    const char *generic; /* "gfx11-generic", or NULL */
    const char *bf16;    /* "none", "emulated", "native" */
    bool fp16_dot;
    const char *matrix_core;                /* "WMMA", "MFMA", or NULL */
    const char *fp8;                        /* "OCP", "FNUZ", or NULL */
    bool train_f16;                         /* cairn train's 16-bit format is f16, elsewhere bf16 */
    const char *wheel;                      /* first pytorch.org wheel that lists it, in words; NULL: none */
    int wheel_major, wheel_minor;           /* the same as a torch version; 0: none */
    bool wheel_rocm7;                       /* before torch 2.10 only in wheels built with ROCm >= 7.0 */
    const char *therock;                    /* "ready", "build", or NULL */
    int rocm_major, rocm_minor, rocm_patch; /* ROCm from which AMD supports it; 0: never, or not known */
    const char *support;                    /* AMD's support in words */
    int aotriton[3];                        /* the first AOTriton with images for it; zeros: none */
    int aotriton_stable[3];                 /* the first that does not call it experimental; zeros: none */
    bool one_pool;                          /* as an APU, CPU and GPU have one memory, without a carve-out */
    bool desktop_igpu;                      /* the small GPU of desktop processors, beside a card */
    bool slow_lt_gradients;                 /* hipBLASLt is slow where weight gradients are computed */
    bool no_rccl;                           /* RCCL is not built for it */
    bool slow_mapped;     /* there are reports that mapped weights load slowly with ROCm 7 */
    const char *problems; /* what is known to break, in words; NULL: nothing known */
    const char *source;
};

/* NULL for a target that is not in the table. */
const struct gfx_chip *gfx_find(const char *gfx);
/* The whole table; ends with a row whose gfx is NULL. */
const struct gfx_chip *gfx_table(void);

/* From hardware ids and files to the name of a target; NULL: unknown. These, and gfx_find_arch, also know
 * targets that the table has no row for. */
const char *gfx_from_mach(unsigned mach);
const char *gfx_from_gc(int major, int minor, int revision);
const char *gfx_from_device_id(uint64_t device_id);
/* By the name that HIP has: "gfx90a:sramecc+:xnack-". */
const struct gfx_chip *gfx_find_arch(const char *arch);
/* By target, and by PCI id (0: not known) where a target exists in both kinds. */
enum gpu_kind gfx_kind(const char *gfx, uint64_t device_id);
/* Does pytorch.org build this release, with this major version of ROCm, for the chip? */
bool gfx_in_wheel(const struct gfx_chip *c, struct version torch, int rocm);
/* Does this AOTriton have images for the chip? An unknown version counts as the newest. */
bool gfx_in_aotriton(const struct gfx_chip *c, struct version aotriton);
/* It has, but calls the chip experimental, so that PyTorch keeps fused attention off. */
bool gfx_is_experimental(const struct gfx_chip *c, struct version aotriton);

/* Can code compiled for `code` run on the chip `gfx`?  Exact, or its generic target.  A code object that
 * demands page-fault retry ("gfx90a:xnack+") does not run in an ordinary process. */
bool gfx_code_runs(const char *code, const char *gfx);
/* The value for HSA_OVERRIDE_GFX_VERSION ("10.3.0") of a target; out has 16 bytes. */
bool gfx_override_value(const char *gfx, char *out);
/* Is it a value that the runtime reads?  Anything else stops it. */
bool gfx_override_is_valid(const char *value);
/* The target of such a value; NULL if it is not valid, or none in the table has this version. */
const struct gfx_chip *gfx_find_override(const char *value);

/* May code for `code` run on `real`, as far as instructions and registers go? */
bool gfx_is_safe_relative(const struct gfx_chip *code, const struct gfx_chip *real);
/* The nearest chip whose code may replace the chip's own, among those available; NULL: none. */
const struct gfx_chip *gfx_stand_in(const struct gfx_chip *real,
                                    bool (*serves)(const void *data, const struct gfx_chip *c),
                                    const void *data);

#endif
