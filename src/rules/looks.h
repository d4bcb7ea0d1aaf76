/* SPDX-License-Identifier: Apache-2.0
 * What the checks_*.c files share: the look functions of the table, and small words to build findings with.
 * Private to the checks. */
#ifndef CAIRN_RULES_LOOKS_H
#define CAIRN_RULES_LOOKS_H

#include "base/cleanup.h"
#include "rules/checks.h"
#include <stdint.h>

#define GIB ((int64_t)1 << 30)
#define MIB ((int64_t)1 << 20)
enum { PAGE_BYTES = 4096 };

/* The plan may be NULL for remedies; checks need it. */
struct look look_at(const struct facts *f, const struct plan *p, struct arena *a);

/* Text in the look's arena. */
char *say(const struct look *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
const char *say_bytes(const struct look *l, int64_t bytes); /* "512 MiB", "112 GiB", "62.5 GiB" */
/* As one word of a shell, quoted if it holds anything but plain characters: a remedy is made to be pasted. */
const char *say_word(const struct look *l, const char *s);
/* "GPU 0 (AMD Radeon 8060S, gfx1151)" */
const char *say_gpu(const struct look *l, const struct gpu_facts *g);

struct finding found_ok(const struct look *l, const char *fmt, ...) PRINTF_LIKE(2, 3);
struct finding found_skip(const char *why);
struct finding found_unknown(const char *fact, const char *why, const char *remedy);
struct finding found(enum check_status status, const char *fact, const char *why, const char *remedy);

int64_t sum_bytes(int64_t a, int64_t b); /* stays at the largest number: a damaged file may say anything */

/* Facts in the shape that several checks ask for. */
bool look_told(const struct look *l); /* the GPU is only a target that the user gave with --gfx */
bool look_integrated(const struct look *l);
size_t look_capable(const struct look *l); /* how many GPUs KFD can use */
/* Some GPU has a gfx target, or nothing tells what it is; KFD never takes chips without one. */
bool look_may_have_target(const struct look *l);
bool look_is(const struct look *l, const char *gfx);
/* Is something that carries these targets known to run on gfx? */
bool look_carries(const struct targets *t, const char *gfx);
/* " --gpu 1" where the plan is for a GPU that it would not have chosen by itself, " --gfx gfx1031" where the chip was
 * told, else "": for commands to type. */
const char *look_gpu_option(const struct look *l);
/* The user's variable, or what the plan would set; NULL when neither has it or the plan removes it. */
const char *look_planned(const struct look *l, const char *name);
/* The target whose code the runtime will pick: the GPU's own, or the one that an override in force stands
 * for.  NULL when the GPU's target is not known. */
const char *look_target(const struct look *l);
/* The ROCm that torch was built with; n is 0 when not known. */
struct version look_torch_rocm(const struct look *l);
/* The ROCm installation that the path, of this length, is in; NULL: none. */
const struct rocm_facts *look_rocm_of(const struct look *l, const char *path, size_t len);
/* A module parameter as a number. */
bool look_param(const struct look *l, const char *module, const char *name, int64_t *out);
/* The kernel's limit of memory that the GPU may map; false when not known. */
bool look_ttm_limit(const struct look *l, int64_t *bytes);

#define CHECK_LOOK(name) struct finding check_##name(const struct look *l)
CHECK_LOOK(gpu_present);
CHECK_LOOK(gpu_in_kfd);
CHECK_LOOK(gpu_driver);
CHECK_LOOK(gpu_target);
CHECK_LOOK(gpu_support);
CHECK_LOOK(gpu_integrated);
CHECK_LOOK(gpu_asleep);
CHECK_LOOK(gpu_bf16);
CHECK_LOOK(gpu_attention);
CHECK_LOOK(pcie_atomics);
CHECK_LOOK(pcie_link);
CHECK_LOOK(resizable_bar);

CHECK_LOOK(wsl);
CHECK_LOOK(amdgpu_module);
CHECK_LOOK(kfd_topology);
CHECK_LOOK(kernel_chip);
CHECK_LOOK(kernel_unified);
CHECK_LOOK(cwsr_kernel);
CHECK_LOOK(mes_firmware);
CHECK_LOOK(gttsize);
CHECK_LOOK(page_pool);
CHECK_LOOK(system_mem_limit);
CHECK_LOOK(vram_limits);
CHECK_LOOK(iommu_off);
CHECK_LOOK(iommu_pt);

CHECK_LOOK(kfd_access);
CHECK_LOOK(render_access);
CHECK_LOOK(seat_acl);
CHECK_LOOK(container);

CHECK_LOOK(carve_out);
CHECK_LOOK(ttm_limit);
CHECK_LOOK(gtt_over_ttm);
CHECK_LOOK(gtt_over_ram);
CHECK_LOOK(memory_available);
CHECK_LOOK(cgroup_limit);
CHECK_LOOK(swap);
CHECK_LOOK(huge_pages);
CHECK_LOOK(gpu_processes);
CHECK_LOOK(vram_in_use);
CHECK_LOOK(gpu_memory);

CHECK_LOOK(rocm_present);
CHECK_LOOK(rocm_floor);
CHECK_LOOK(rocm_loaded);
CHECK_LOOK(native_runtime);
CHECK_LOOK(rocm_cwsr);
CHECK_LOOK(rocm_known_bad);

CHECK_LOOK(torch_present);
CHECK_LOOK(torch_build);
CHECK_LOOK(torch_several);
CHECK_LOOK(torch_target);
CHECK_LOOK(torch_device_wheels);
CHECK_LOOK(torch_files);
CHECK_LOOK(torch_known_bad);

CHECK_LOOK(rocblas);
CHECK_LOOK(hipblaslt);
CHECK_LOOK(miopen_db);
CHECK_LOOK(miopen_version);
CHECK_LOOK(miopen_cache);
CHECK_LOOK(aotriton);
CHECK_LOOK(bitsandbytes);
CHECK_LOOK(rocminfo);
CHECK_LOOK(triton);
CHECK_LOOK(flash_attn);
CHECK_LOOK(accelerate);
CHECK_LOOK(rccl);

CHECK_LOOK(override);
CHECK_LOOK(visible_devices);
CHECK_LOOK(env_harmful);
CHECK_LOOK(env_planned);
CHECK_LOOK(env_warnings);
CHECK_LOOK(ld_library_path);
CHECK_LOOK(ld_preload);
CHECK_LOOK(mapped_weights);
CHECK_LOOK(hip_memory);

CHECK_LOOK(disk_cache);
CHECK_LOOK(disk_work);
#undef CHECK_LOOK

#endif
