/* SPDX-License-Identifier: Apache-2.0
 * What failures look like: the classes, the texts that identify them in a log, and the ladder of fixes
 * of each. Everything here is data; rules/diagnose.c is the loop over it. */
#ifndef CAIRN_RULES_ISSUE_RULES_H
#define CAIRN_RULES_ISSUE_RULES_H

#include "rules/diagnose.h"
#include <stddef.h>
#include <stdint.h>

enum issue {
    ISSUE_NO_KERNEL_IMAGE,
    ISSUE_TENSILE_MISSING,
    ISSUE_OVERRIDE_BAD,
    ISSUE_INVALID_ARGUMENT,
    ISSUE_NO_DEVICE,
    ISSUE_PERMISSION,
    ISSUE_TORCH_NOT_ROCM,
    ISSUE_OOM_VRAM,
    ISSUE_OOM_FRAGMENTATION,
    ISSUE_OOM_UNIFIED,
    ISSUE_HOST_OOM,
    ISSUE_HANG,
    ISSUE_GPU_RESET,
    ISSUE_MEMORY_FAULT,
    ISSUE_NATIVE_CRASH,
    ISSUE_MIOPEN,
    ISSUE_HIPBLASLT,
    ISSUE_ATTENTION,
    ISSUE_BITSANDBYTES,
    ISSUE_NAN,
    ISSUE_TRITON,
    ISSUE_LIB_LOAD,
    ISSUE_RCCL,
    ISSUE_WRONG_GPU,
    ISSUE_VISIBLE_DEVICES,
    ISSUE_DRIVER_OLD,
    ISSUE_SDMA,
    ISSUE_SAFETENSORS,
    ISSUE_DISK_FULL,
    ISSUE_NOT_ROCM,
    ISSUE_NO_FAILURE,
    ISSUE_UNKNOWN,
    N_ISSUES,
};

/* One row per class; the texts are for a person. */
struct issue_class {
    const char *id, *about;
    const char
        *cause; /* with {keys} that diagnose_say fills; text in [brackets] is omitted if one is unknown */
    const char *cause_guard; /* the same where judge_by_guard; NULL: it never is */
    const char *cause_watch; /* and where judge_by_watch */
    const char *cause_may;   /* and where judge_may_hang */
    bool any_machine;        /* independent of the GPU's vendor */
    bool often_caught;       /* often only printed, while the run continues */
};
extern const struct issue_class issue_classes[N_ISSUES];

enum issue_flags {
    RULE_SOFT = 1,       /* often caught by the program: a real error beside it counts more */
    RULE_WARN = 2,       /* harmless unless the run failed and nothing else explains it */
    RULE_ECHO = 4,       /* follows from another error; counts only if that is not in the log */
    RULE_KERNEL = 8,     /* written by the kernel */
    RULE_CUDA = 16,      /* the same words come from a CUDA process */
    RULE_WORD = 32,      /* the whole line, or the last word of a shell's report on a job */
    RULE_LOST = 64,      /* a program whose GPU was reset says so too */
    RULE_SIGKILL = 128,  /* tells of SIGKILL, whoever sent it, and not of memory */
    RULE_NO_GPU = 256,   /* no GPU is usable, whatever the variables that choose GPUs say */
    RULE_GPU_GONE = 512, /* the whole GPU stopped: timeouts of its copy engines follow from that */
    RULE_VAGUE = 1024,   /* an exception of which nothing is known */
    RULE_GUESS = 2048,   /* by log_guess: no row knows the line */
};

/* A line holds `text`, and one of `with`, and none of `without` (both separated by '|', NULL: no condition).
 * score is how sure the class is when nothing else is known, in percent; it never says which row it was,
 * flags do. */
struct issue_rule {
    const char *text, *with, *without;
    enum issue issue;
    uint8_t score;
    uint16_t flags;     /* enum issue_flags */
    const char *source; /* who prints it */
};

/* A name of HIP's errors in both spellings, hipErrorNoDevice and, as TensorFlow prints it,
 * HIP_ERROR_NoDevice: the first two fields of a row. */
#define HIP_ERROR(name) name, "hipError" name "|HIP_ERROR_" name

/* The rows of one file; each table ends with a row whose text is NULL. */
extern const struct issue_rule issue_rules_device[], issue_rules_fault[], issue_rules_memory[],
    issue_rules_library[], issue_rules_other[], issue_rules_not_rocm[];

/* What was found in a log without a row, as a row would say it; score 0: nothing. */
struct log_find {
    enum issue issue;
    uint8_t score;
    uint16_t flags;
};

/* A sign of the vendor of the GPU that the log is of; weight is how much it says. */
struct issue_sign {
    const char *text, *with, *without;
    int8_t weight; /* above 0: AMD, below: NVIDIA */
};
extern const struct issue_sign issue_signs[];

/* Lines that healthy runs have too: an optional part is not there, or the program helps itself. A line holds
 * one of `words`, separated by '|'. */
struct issue_noise {
    const char *words;
    const char *source; /* who prints it */
};
extern const struct issue_noise issue_noises[]; /* ends with a row of NULLs */

/* A rung of a class's ladder. The text has {keys} and [brackets] as above, and a row with a key outside of
 * brackets that is not known is left out, as is one whose condition is not met. */
enum fix_when {
    FIX_ALWAYS,
    FIX_EXPANDABLE,   /* expandable segments are on */
    FIX_NO_CACHING,   /* the caching allocator is off */
    FIX_SDMA_ON,      /* the copy engines have not been switched off */
    FIX_INTERRUPT_ON, /* interrupts have not been switched off */
    FIX_AOTRITON_ON,
    FIX_AOTRITON_OFF, /* on Linux or not: the flag is not set, and the chip's attention waits for it */
    FIX_OVERRIDDEN,   /* an override is in force, and PyTorch has no code of the chip's own */
    FIX_OVERRIDE_SET, /* one is in force, and PyTorch is not known to need one */
    FIX_SECOND_ROCM, /* LD_LIBRARY_PATH leads to a ROCm, while PyTorch is not known to have none of its own */
    FIX_LIBRARY_PATH,      /* LD_LIBRARY_PATH is set, and is not known to be needed */
    FIX_OVERRIDE_FLAWED,   /* the same, and something speaks against its value */
    FIX_NOT_CARRIED,       /* PyTorch is not known to have code for the chip */
    FIX_NEEDS_OVERRIDE,    /* PyTorch is known to have none, but code that can stand in */
    FIX_MAY_NEED_NONE,     /* the opposite: PyTorch may have code for the chip, and run without an override */
    FIX_LACKS_CODE,        /* PyTorch is known to have no code for the chip */
    FIX_NO_STACK,          /* the log has no stack of the crash */
    FIX_NOT_STARTING,      /* it did not crash while a library started */
    FIX_CARRIED_ELSEWHERE, /* PyTorch has code for the chip, and nobody knows the run's environment */
    FIX_NO_CHIP,           /* nobody knows which GPU it is */
    FIX_HIDE_FIRST,        /* an integrated GPU is in sight, and the card is not what lacks code */
    FIX_HIDE_LATER,        /* an integrated GPU is in sight, and may be what lacks code */
    FIX_SEVERAL_GPUS,
    FIX_HIPBLASLT_ON,
    FIX_P2P_ON,
    FIX_IN_COPY, /* a copy failed or did not return, and the library that could stage it is in the process */
    FIX_PRELOAD, /* the library is in the process, and nothing speaks for a copy */
    FIX_STAGE,   /* the library is not in the process, but could be */
    FIX_LOADING, /* the log ends while weights are loaded, and the library is in the process */
    FIX_LOADING_STAGE,  /* the same without the library */
    FIX_PRELOAD_SHARED, /* it is, and GPU and host share memory */
    FIX_BY_GUARD,       /* one of cairn's own guards did it */
    FIX_NOT_BY_GUARD,
    FIX_BY_WATCH,    /* judge_by_watch; the other rungs are for the usual cause, and are left out then */
    FIX_NO_DUMP,     /* nobody has written down where it stood */
    FIX_MAY_HANG,    /* judge_may_hang */
    FIX_END_UNKNOWN, /* nobody said how the run ended */
    /* a package of attention (flash_attn, xformers, …) is demanded, and missing or of no use */
    FIX_ATTENTION_PACKAGE,
    FIX_FLASH,         /* it is flash_attn */
    FIX_ATTENTION_OWN, /* it is PyTorch's own attention */
    FIX_NO_TRITON,     /* Triton is not installed */
    FIX_TRITON_THERE,
    FIX_VENDOR_UNSURE,    /* nobody knows whose GPU it is */
    FIX_ACCELERATE,       /* Accelerate stands in the traceback */
    FIX_GLOO,             /* the verdict's lines are of the gloo backend */
    FIX_STRIX_HALO,       /* gfx1151 */
    FIX_CPU_BUILD,        /* PyTorch is known not to be a ROCm build */
    FIX_NOT_IN_CONTAINER, /* it is not known to have run in a container */
    FIX_MAYBE_CONTAINER,  /* it did, or nothing is known of its machine */
    FIX_LIMIT_UNKNOWN,    /* the limit is that of a machine that cannot be looked at */
    FIX_LIMIT_LOW,        /* nor is the kernel's limit known to be wide enough */
};
/* In place of an assignment: all that the plan does about overrides. */
#define FIX_OVERRIDE "{override}"
enum fix_os { FIX_ON_ANY, FIX_ON_LINUX, FIX_ON_WINDOWS };
struct issue_fix {
    enum issue issue;
    enum diagnose_action action; /* DIAGNOSE_ACT_NONE: for a person */
    enum fix_when when;
    const char *set;   /* "NAME=value", with {keys}, or FIX_OVERRIDE; NULL: none */
    const char *unset; /* names separated by spaces */
    const char *text;
    enum fix_os os; /* variables that Windows does not read are left out there in any case */
};
extern const struct issue_fix issue_fixes[]; /* ends with a row whose text is NULL */

#endif
