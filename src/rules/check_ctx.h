/* SPDX-License-Identifier: Apache-2.0
 * What the checks_*.c files share: the check functions of the table, and helpers that build findings.
 * Private to the checks. */
#ifndef CAIRN_RULES_CHECK_CTX_H
#define CAIRN_RULES_CHECK_CTX_H

#include "base/cleanup.h"
#include "rules/checks.h"
#include <stdint.h>

#define GIB ((int64_t)1 << 30)
#define MIB ((int64_t)1 << 20)
enum { PAGE_BYTES = 4096 };

/* The plan may be NULL for remedies; checks need it. */
struct check_ctx check_ctx_of(const struct facts *f, const struct plan *p, struct arena *a);

/* Text in the arena of the context. */
char *ctx_text(const struct check_ctx *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *ctx_bytes(const struct check_ctx *l, int64_t bytes); /* "512 MiB", "112 GiB", "62.5 GiB" */
/* One shell word, quoted if it contains anything but plain characters: users paste remedies. */
const char *ctx_shell_word(const struct check_ctx *l, const char *s);
/* "GPU 0 (AMD Radeon 8060S, gfx1151)" */
const char *ctx_gpu(const struct check_ctx *l, const struct gpu_facts *g);

struct finding found_ok(const struct check_ctx *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct finding found_skip(const char *why);
struct finding found_unknown(const char *fact, const char *why, const char *remedy);
struct finding found(enum check_status status, const char *fact, const char *why, const char *remedy);

int64_t sum_bytes(int64_t a, int64_t b); /* saturates: a damaged file may hold any number */

/* Facts in the form that several checks need. */
bool ctx_gfx_given(const struct check_ctx *l); /* the GPU is only a target that the user gave with --gfx */
bool ctx_integrated(const struct check_ctx *l);
size_t ctx_capable(const struct check_ctx *l); /* how many GPUs KFD can use */
/* Some GPU has a gfx target, or its chip is unknown; KFD never supports chips without a target. */
bool ctx_may_have_target(const struct check_ctx *l);
bool ctx_is(const struct check_ctx *l, const char *gfx);
/* Can code for these targets run on gfx? */
bool ctx_has_code(const struct targets *t, const char *gfx);
/* " --gpu 1" where the plan is for a GPU that it would not choose by default, " --gfx gfx1031" where the user
 * named the chip, else "": for commands to type. */
const char *ctx_gpu_option(const struct check_ctx *l);
/* The user's variable, or what the plan would set; NULL when neither has it or the plan removes it. */
const char *ctx_planned(const struct check_ctx *l, const char *name);
/* The target whose code the runtime will load: the GPU's own, or that of an active override. NULL if the
 * GPU's target is unknown. */
const char *ctx_target(const struct check_ctx *l);
/* The ROCm that torch was built with; n is 0 if unknown. */
struct version ctx_torch_rocm(const struct check_ctx *l);
/* The ROCm installation that contains the path, which has this length; NULL: none. */
const struct rocm_facts *ctx_rocm_of(const struct check_ctx *l, const char *path, size_t len);
/* A module parameter as a number. */
bool ctx_param(const struct check_ctx *l, const char *module, const char *name, int64_t *out);
/* The kernel's limit for memory that the GPU may map; false if unknown. */
bool ctx_ttm_limit(const struct check_ctx *l, int64_t *bytes);

#define CHECK_FUNCTION(name) struct finding check_##name(const struct check_ctx *l)
CHECK_FUNCTION(gpu_present);
CHECK_FUNCTION(gpu_in_kfd);
CHECK_FUNCTION(gpu_driver);
CHECK_FUNCTION(gpu_target);
CHECK_FUNCTION(gpu_support);
CHECK_FUNCTION(gpu_integrated);
CHECK_FUNCTION(gpu_asleep);
CHECK_FUNCTION(gpu_bf16);
CHECK_FUNCTION(gpu_attention);
CHECK_FUNCTION(pcie_atomics);
CHECK_FUNCTION(pcie_link);
CHECK_FUNCTION(resizable_bar);

CHECK_FUNCTION(wsl);
CHECK_FUNCTION(amdgpu_module);
CHECK_FUNCTION(kfd_topology);
CHECK_FUNCTION(kernel_chip);
CHECK_FUNCTION(kernel_unified);
CHECK_FUNCTION(cwsr_kernel);
CHECK_FUNCTION(mes_firmware);
CHECK_FUNCTION(gttsize);
CHECK_FUNCTION(page_pool);
CHECK_FUNCTION(system_mem_limit);
CHECK_FUNCTION(vram_limits);
CHECK_FUNCTION(iommu_off);
CHECK_FUNCTION(iommu_pt);

CHECK_FUNCTION(kfd_access);
CHECK_FUNCTION(render_access);
CHECK_FUNCTION(seat_acl);
CHECK_FUNCTION(container);

CHECK_FUNCTION(carve_out);
CHECK_FUNCTION(ttm_limit);
CHECK_FUNCTION(gtt_over_ttm);
CHECK_FUNCTION(gtt_over_ram);
CHECK_FUNCTION(memory_available);
CHECK_FUNCTION(cgroup_limit);
CHECK_FUNCTION(swap);
CHECK_FUNCTION(huge_pages);
CHECK_FUNCTION(gpu_processes);
CHECK_FUNCTION(vram_in_use);
CHECK_FUNCTION(gpu_memory);

CHECK_FUNCTION(rocm_present);
CHECK_FUNCTION(rocm_floor);
CHECK_FUNCTION(rocm_loaded);
CHECK_FUNCTION(native_runtime);
CHECK_FUNCTION(rocm_cwsr);
CHECK_FUNCTION(rocm_known_bad);

CHECK_FUNCTION(torch_present);
CHECK_FUNCTION(torch_build);
CHECK_FUNCTION(torch_several);
CHECK_FUNCTION(torch_target);
CHECK_FUNCTION(torch_device_wheels);
CHECK_FUNCTION(torch_files);
CHECK_FUNCTION(torch_known_bad);

CHECK_FUNCTION(rocblas);
CHECK_FUNCTION(hipblaslt);
CHECK_FUNCTION(miopen_db);
CHECK_FUNCTION(miopen_version);
CHECK_FUNCTION(miopen_cache);
CHECK_FUNCTION(aotriton);
CHECK_FUNCTION(bitsandbytes);
CHECK_FUNCTION(rocminfo);
CHECK_FUNCTION(triton);
CHECK_FUNCTION(flash_attn);
CHECK_FUNCTION(accelerate);
CHECK_FUNCTION(rccl);

CHECK_FUNCTION(override);
CHECK_FUNCTION(visible_devices);
CHECK_FUNCTION(env_harmful);
CHECK_FUNCTION(env_planned);
CHECK_FUNCTION(env_warnings);
CHECK_FUNCTION(ld_library_path);
CHECK_FUNCTION(ld_preload);
CHECK_FUNCTION(mapped_weights);
CHECK_FUNCTION(hip_memory);

CHECK_FUNCTION(disk_cache);
CHECK_FUNCTION(disk_work);
#undef CHECK_FUNCTION

#endif
