/* SPDX-License-Identifier: Apache-2.0
 * What this machine is: the facts that every command starts from.
 *
 * Facts are read from sysfs, /proc and installed files in a few milliseconds; nothing is run.  An unknown
 * value has a `from` of NULL: it is never 0 and never guessed.  `from` is the file (or rule) that the value
 * came from.  Anything odd (a damaged file, a number out of range) is in `problems`.  Everything lives in one
 * arena; facts_release frees all of it.  Read-only after facts_read. */
#ifndef CAIRN_HOST_FACTS_H
#define CAIRN_HOST_FACTS_H

#include "host/selftest_record.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/parse.h"
#include "chip/gfx_table.h"
#include "host/root.h"
#include <stdbool.h>
#include <stdint.h>

struct num {
    int64_t v;
    const char *from; /* NULL: not known */
};
struct text {
    const char *s; /* NULL: not known */
    const char *from;
};
/* The gfx targets that something has code for: "gfx1100", "gfx90a", "gfx11-generic". */
struct targets {
    const char **name;
    size_t n;
    const char *from; /* NULL: unknown; an empty list with `from` set means it has none */
};
bool targets_has(const struct targets *t, const char *gfx);

struct problems {
    const char **text;
    size_t n;
};

enum tri { TRI_UNKNOWN, TRI_NO, TRI_YES };

struct gpu_process {
    int64_t pid;
    const char *name; /* NULL: not ours to read */
    int64_t vram_bytes;
};

/* A device node in /dev, as seen by this user. */
enum node_access {
    NODE_UNKNOWN, /* a capture without /dev */
    NODE_MISSING,
    NODE_DENIED,
    NODE_OPEN,
    NODE_OPEN_BY_ACL, /* only a seat's ACL opens it: a desktop login works, ssh and services do not */
};
struct dev_node {
    const char *path;
    enum node_access access;
    int64_t gid;       /* -1: not known */
    const char *group; /* its name, or NULL */
    unsigned mode;
};

struct gpu_facts {
    int hip_index; /* position among the KFD nodes that the runtime shows; -1: it does not show this one */
    struct num kfd_node, gpu_id;
    struct text gfx; /* "gfx1151"; from is "kfd", "ip_discovery", "device_id" or "--gfx" */
    struct text name;
    enum gpu_kind kind;
    const char *kind_from;
    struct text pci;    /* "0000:c5:00.0" */
    struct text card;   /* PCI address of the physical card; the same for all its partitions */
    struct text driver; /* amdgpu, radeon, vfio-pci */
    struct num vendor_id, device_id, revision;
    struct num pci_class, pci_subsystem; /* 0x030000; device and vendor of the board, 0x0123 and 0x1002 */
    struct num pcie_replays;
    struct text uuid; /* "GPU-0123456789abcdef", as in ROCR_VISIBLE_DEVICES; APUs have none */
    struct num compute_units, wave_size;
    struct num vram_total_bytes, vram_used_bytes, vis_vram_total_bytes, vis_vram_used_bytes, gtt_total_bytes,
        gtt_used_bytes;
    struct num kfd_bank_bytes; /* what HIP reports as the device's total */
    struct num usable_bytes;
    const char *usable_reason;
    struct num busy_percent,
        memory_busy_percent; /* memory: the share of time in which it is read or written */
    struct num temperature_mc, memory_temperature_mc;
    struct num temperature_crit_mc, temperature_emergency_mc, memory_temperature_crit_mc;
    struct num voltage_mv;
    struct num power_uw, power_cap_uw, power_cap_default_uw, power_cap_min_uw, power_cap_max_uw;
    struct num clock_mhz, clock_max_mhz, memory_clock_mhz, memory_clock_max_mhz, video_clock_mhz,
        video_clock_max_mhz;
    struct num fan_rpm, fan_duty; /* duty: of 255 */
    struct num link_width, link_width_max;
    struct text link_speed, link_speed_max; /* "16.0 GT/s PCIe" */
    struct text vbios, serial;
    struct text runtime_status; /* "suspended": only what does not wake it was read */
    enum tri pcie_atomics;      /* TRI_UNKNOWN if no link states it */
    enum tri has_cwsr_size;     /* the kernel publishes the context-save size */
    struct num mes_fw, mec_fw, sdma_fw, smc_fw;
    struct text render_node; /* "/dev/dri/renderD128" */
    struct dev_node render;
    struct gpu_process *processes;
    size_t n_processes;
    bool rocm_capable;
    struct problems problems;
};

struct module_param {
    const char *module, *name, *value, *from;
};

struct host_facts {
    struct text kernel, os_id, os_like, os_name, cmdline, amdgpu_version;
    bool ostree; /* booted from an image, whose files must not be edited */
    bool grub_defaults, boot_entries,
        boot_cmdline; /* /etc/default/grub, systemd-boot's, /etc/kernel/cmdline */
    struct version kernel_version;
    enum tri amdgpu_loaded, kfd_present; /* kfd_present: the topology directory exists */
    bool kfd_masked;                     /* some node's files answered EPERM: a container hides GPUs */
    bool kfd_unreadable;                 /* some node's files did not read for another reason */
    struct module_param *params; /* of amdgpu, ttm and amdttm: the live value, or the one on the command line
                                  * */
    size_t n_params;
    struct num memory_total_bytes, memory_available_bytes;
    struct num swap_total_bytes, zram_bytes; /* zram: the part of swap that is compressed memory */
    struct num cgroup_limit_bytes, cgroup_used_bytes;
    struct text thp;       /* "always", "madvise", "never" */
    struct text container; /* "docker", "podman", "lxc", … ; unknown: none seen */
    bool wsl;
    struct dev_node kfd_node;
    int64_t render_gid; /* -1: no such group */
    const char *user;   /* NULL in a capture */
};
/* NULL if unknown. */
const struct module_param *host_param(const struct host_facts *h, const char *module, const char *name);

/* What is opened beside libamdhip64; NULL: not installed. */
struct rocm_files {
    const char *hiprtc, *hipblaslt, *rocblas;
};

enum rocm_kind { ROCM_CLASSIC, ROCM_THEROCK, ROCM_DISTRO, ROCM_WHEEL };
struct rocm_facts {
    const char *path;
    const char *how; /* the variable or option that names it; NULL: it is in a usual place */
    enum rocm_kind kind;
    struct text version;
    struct version parsed;
    struct text hip_library; /* the libamdhip64 in it */
    struct rocm_files files;
    struct text miopen_version;
    struct targets rocblas, hipblaslt;
    bool has_rocminfo;
};

enum torch_build { TORCH_BUILD_UNKNOWN, TORCH_ROCM, TORCH_CUDA, TORCH_CPU, TORCH_XPU };

/* A Python package beside torch. */
struct package_facts {
    struct text version; /* unknown: not installed */
    struct version parsed;
    enum tri fits;          /* its binary part fits this torch; TRI_YES for pure Python */
    const char *why;        /* of fits */
    struct targets targets; /* the targets of its binary part, if readable */
};

struct torch_facts {
    const char *site;   /* the site-packages directory that contains it */
    const char *python; /* the interpreter that would import it; NULL if not known */
    const char *how;    /* how it was found: "--torch", "VIRTUAL_ENV", "./venv", "PATH" … */
    bool guess;         /* there is a command, and it need not be the one that the command imports */
    struct text version, hip, cuda;
    struct version parsed, hip_parsed;
    enum torch_build build;
    bool therock; /* loads _rocm_sdk_* wheels instead of carrying ROCm */
    bool kpack;   /* its device code is split off into device wheels */
    struct targets compiled, device_wheels;
    struct targets rocblas, hipblaslt, miopen, aotriton;
    struct text hip_library; /* the libamdhip64 this torch loads */
    struct rocm_files files; /* beside that one */
    struct text miopen_version, aotriton_version;
    struct package_facts bitsandbytes, triton, flash_attn, accelerate;
    const char
        *bnb_rocm; /* the digits of the ROCm library in bitsandbytes that is nearest to torch's; NULL: none */
    struct problems problems;
};

/* The command that is to be started: which Python it starts. */
struct command_facts {
    bool given;
    bool sure;               /* of the Python */
    const char *python;      /* NULL: not known */
    const char *how;         /* how it was found, or why it was not */
    const char *const *argv; /* the words that start it, after scripts and wrappers; NULL: unknown */
};

/* One that cairn itself could compute with. */
struct hip_runtime {
    const char *what;       /* "ROCM_PATH", "/opt/rocm-6.4.1", "PyTorch 2.9.1+rocm6.4", "LD_LIBRARY_PATH" */
    bool named;             /* by the user */
    struct version version; /* n is 0: not known */
    const char *hip;        /* the file of libamdhip64 */
    struct rocm_files files;
    struct targets rocblas, hipblaslt; /* what the libraries have kernels for */
};

struct disk_facts {
    const char *path; /* where caches and checkpoints go */
    const char *what; /* "cache", "work" */
    struct num free_bytes;
};

struct miopen_cache {
    const char *dir;      /* NULL: not known */
    const char **version; /* of the MIOpens that have a folder in it: "3.4.0.a85ca8a54" */
    size_t n_versions;
};

struct facts {
    struct arena arena;
    struct root root;
    struct gpu_facts *gpus; /* KFD order first, then those KFD does not have */
    size_t n_gpus;
    int default_gpu; /* index into gpus; -1: none that can train */
    struct host_facts host;
    struct rocm_facts *rocms;
    size_t n_rocms;
    struct torch_facts *torches; /* the command's own, then in the order in which a shell would find them */
    size_t n_torches;
    struct command_facts command;
    struct hip_runtime *runtimes; /* in the order in which cairn tries them: runtimes.h */
    size_t n_runtimes;
    struct disk_facts *disks;
    size_t n_disks;
    struct miopen_cache miopen_cache;
    struct selftest_record selftest; /* of the default GPU's chip */
    bool has_selftest;
    const char *const *env; /* the user's environment, "NAME=value", NULL-terminated */
    bool still;             /* as the option says */
    struct problems problems;
};

enum facts_parts { FACTS_HARDWARE = 1, FACTS_SOFTWARE = 2, FACTS_ALL = 3 };
struct facts_options {
    const char *root;           /* NULL: this machine */
    const char *torch_dir;      /* --torch: never below root */
    const char *rocm_dir;       /* --rocm: never below root */
    const char *const *command; /* that is to be started, NULL-terminated; never below root; NULL: none */
    const char *const *env;     /* NULL-terminated */
    enum facts_parts parts;
    bool still; /* read nothing that keeps an idle card from falling asleep: no load, sensors, clocks */
};

/* Fails only for a root that is not a directory, or a --torch/--rocm that does not exist; f is then empty,
 * and may still be released. */
int facts_read(struct facts *f, const struct facts_options *o, struct cairn_error *err);
void facts_release(struct facts *f);

/* The user names the chip (--gfx): replaces the target of the default GPU (or of the first), or adds one GPU
 * that is only a target. Fails for a text that is not a target name. */
int facts_set_gfx(struct facts *f, const char *gfx, struct cairn_error *err);

/* The user's value of a variable, or NULL. */
const char *facts_env(const struct facts *f, const char *name);
/* The torch that would be used: the first one found; NULL if none. */
const struct torch_facts *facts_torch(const struct facts *f);

/* For the readers in this folder. */
/* The text of a small file; unknown if it does not exist or is empty. */
struct text text_read(const struct root *r, struct arena *a, const char *path);
void problems_add(struct problems *p, struct arena *a, const char *fmt, ...) PRINTF_LIKE(3, 4);
void targets_add(struct targets *t, struct arena *a, const char *gfx, size_t len);

#endif
