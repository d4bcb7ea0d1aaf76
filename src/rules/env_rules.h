/* SPDX-License-Identifier: Apache-2.0
 * The rules that set variables, and the notes for a machine: rows with a condition, a value, a reason and a
 * source.  The plan is a loop over them.
 *
 * A condition tests a situation: the machine as the trainer will see it, after GPUs are hidden and renamed.
 * Empty fields mean any.  An unknown version never meets a version range. */
#ifndef CAIRN_RULES_ENV_RULES_H
#define CAIRN_RULES_ENV_RULES_H

#include "host/facts.h"
#include "chip/gfx_table.h"

enum env_os { ENV_OS_ANY, ENV_OS_LINUX, ENV_OS_WINDOWS };
enum env_gpus { ENV_GPUS_ANY, ENV_GPUS_SEVERAL };
enum env_library { ENV_LIBRARY_ANY, ENV_LIBRARY_HIPBLASLT, ENV_LIBRARY_AOTRITON };

struct env_when {
    const char *gfx;    /* one target; properties shared by several targets are fields of their rows */
    const char *family; /* names of families, separated by spaces: "RDNA3 RDNA4" */
    enum tri unified;   /* CPU and GPU share memory */
    const char *torch_from, *torch_below;
    const char *rocm_from, *rocm_below;
    const char *aotriton_from, *aotriton_below;
    bool experimental; /* the AOTriton calls the chip experimental */
    const char *kernel_from, *kernel_below;
    enum env_os os;
    enum env_gpus gpus;       /* GPUs that stay visible */
    enum env_library library; /* not known to lack code for the chip */
    bool flash_attn;          /* the flash-attn package is installed */
    bool debug;               /* with --debug only */
    const char *trainer;
};

/* Values that need more than a condition; the plan computes them, NULL if there is nothing to set. */
enum env_value {
    ENV_VALUE_LITERAL,
    ENV_VALUE_VISIBLE,   /* the GPUs to show */
    ENV_VALUE_OVERRIDE,  /* the override for all visible GPUs */
    ENV_VALUE_NODES,     /* the same for single KFD nodes; the name ends in the node number */
    ENV_VALUE_ALLOCATOR, /* options of torch's allocator */
    ENV_VALUE_PATH,      /* PATH with ROCm's bin appended */
    ENV_N_VALUES,
};

struct env_rule {
    const char *name, *value;
    enum env_value computed;
    struct env_when when;
    const char *why, *source;
};
struct env_note {
    struct env_when when;
    const char *text, *source;
};

struct situation {
    const char *gfx;             /* the target that torch sees, after any override; NULL: unknown */
    const struct gfx_chip *chip; /* its row; NULL: not in the table */
    enum tri unified;
    struct version torch, rocm, aotriton, kernel; /* n is 0 if unknown */
    const struct torch_facts *lists;              /* of that torch; NULL: no ROCm build found */
    size_t n_visible;
    bool windows, debug;
    const char *trainer;
};

/* The tables; both end with a row of NULLs. */
const struct env_rule *env_rules(void);
const struct env_note *env_notes(void);

bool env_when_met(const struct env_when *when, const struct situation *s);
/* Does code for something in the list run on this chip? Unknown if the list is. */
enum tri env_targets_cover(const struct targets *t, const char *gfx);

#endif
