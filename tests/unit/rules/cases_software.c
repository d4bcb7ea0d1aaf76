/* SPDX-License-Identifier: Apache-2.0
 * ROCm, PyTorch, libraries and environment: each check where it speaks up and where it does not. */
#include "machine.h"

#define HOST (m->facts.host)
#define GPU (m->gpus[0])
#define TORCH (m->torches[0])

/* clang-format off */
SPOIL(therock_alone) { TORCH.therock = true; TORCH.hip_library = (struct text){ 0 }; }
SPOIL(therock_whole) { therock_alone(m); m->rocms[0] = (struct rocm_facts){ .path = TORCH.site, .kind = ROCM_WHEEL }; m->facts.n_rocms = 1; }
SPOIL(not_live) { m->facts.root.live = false; }
SPOIL(system_rocm) { m->rocms[0] = (struct rocm_facts){ .path = "/opt/rocm-6.4.1", .kind = ROCM_CLASSIC, .version = text_of("6.4.1"),
                     .parsed = { 3, { 6, 4, 1 }, false }, .has_rocminfo = true }; m->facts.n_rocms = 1; }
SPOIL(two_rocms) { m->facts.n_torches = 0; system_rocm(m); m->rocms[1] = (struct rocm_facts){ .path = "/opt/rocm-7.1.0",
                   .version = text_of("7.1.0"), .parsed = { 3, { 7, 1, 0 }, false } }; m->facts.n_rocms = 2; }
SPOIL(only_system_rocm) { system_rocm(m); m->facts.n_torches = 0; }
SPOIL(old_rocm) { machine_torch(m, "2.2.0+rocm5.6"); }
SPOIL(preview_rocm) { machine_torch(m, "2.8.0+rocm6.4.1"); }
SPOIL(rocm_by_hip) { machine_torch(m, "2.12.0+git1234"); }
SPOIL(rocm_unknown) { rocm_by_hip(m); TORCH.hip_parsed = (struct version){ 0 }; }
SPOIL(foreign_hip) { system_rocm(m); TORCH.hip_library = text_of("/opt/rocm-6.4.1/lib/libamdhip64.so.6"); }
SPOIL(hip_of_a_neighbour) { system_rocm(m); TORCH.hip_library = text_of("/opt/rocm-6.4.10/lib/libamdhip64.so.6"); }
SPOIL(no_hip_library) { TORCH.hip_library = (struct text){ 0 }; }
SPOIL(no_compiler) { m->runtimes[0].files.hiprtc = NULL; }
SPOIL(no_runtime) { m->facts.n_runtimes = 0; }
SPOIL(no_runtime_capture) { no_runtime(m); m->facts.root.live = false; }
SPOIL(rocm_71) { machine_torch(m, "2.10.0+rocm7.1"); }
SPOIL(renoir_71) { GPU.gfx = text_of("gfx90c"); rocm_71(m); }
SPOIL(rocm_713) { machine_torch(m, "2.11.0+rocm7.13.0"); }
SPOIL(rocm_713_half) { rocm_713(m); GPU.usable_bytes.v = HOST.memory_total_bytes.v / 2; }
SPOIL(rocm_72) { machine_torch(m, "2.11.0+rocm7.2"); }
SPOIL(rocm_71_cwsr_off) { rocm_71(m); machine_param(m, "amdgpu", "cwsr_enable", "0"); }
SPOIL(rocm_71_cwsr_on) { rocm_71(m); machine_param(m, "amdgpu", "cwsr_enable", "1"); }
SPOIL(renoir) { GPU.gfx = text_of("gfx90c"); machine_torch(m, "2.3.0+rocm6.0"); }
SPOIL(renoir_new) { renoir(m); machine_torch(m, "2.6.0+rocm6.2.4"); }
SPOIL(rocm_710_new_kernel) { machine_torch(m, "2.10.0a0+rocm7.10.0a20251015"); machine_kernel(m, "7.2.1"); }
SPOIL(rocm_710_old_kernel) { machine_torch(m, "2.10.0a0+rocm7.10.0a20251015"); }
SPOIL(rocm_702) { machine_torch(m, "2.9.0+rocm7.0.2"); }

SPOIL(no_torch) { m->facts.n_torches = 0; }
SPOIL(no_torch_gfx1031) { no_torch(m); GPU.gfx = text_of("gfx1031"); }
SPOIL(no_torch_capture) { no_torch(m); not_live(m); }
SPOIL(cpu_build) { TORCH.build = TORCH_CPU; machine_torch(m, "2.10.0+cpu"); }
SPOIL(cuda_build_system) { TORCH.build = TORCH_CUDA; TORCH.python = "/usr/bin/python3"; }
SPOIL(build_unknown) { TORCH.build = TORCH_BUILD_UNKNOWN; }
SPOIL(second_torch) { m->torches[1] = m->torches[0]; m->facts.n_torches = 2; }
SPOIL(second_is_cpu) { second_torch(m); m->torches[1].build = TORCH_CPU; m->torches[1].site = "/usr/lib/python3/dist-packages"; }
SPOIL(navi22) { GPU.gfx = text_of("gfx1031"); TORCH.compiled = TORCH.rocblas = targets_of(m, "gfx1030 gfx1100"); }
SPOIL(navi22_planned) { navi22(m); machine_set(m, "HSA_OVERRIDE_GFX_VERSION", "10.3.0"); }
SPOIL(override_replaced) { navi22_planned(m); machine_fatal(m, "HSA_OVERRIDE_GFX_VERSION", "gfx1031"); }
SPOIL(halo_old_wheel) { TORCH.compiled = targets_of(m, "gfx1030 gfx1100"); }
SPOIL(halo_planned) { halo_old_wheel(m); machine_set(m, "HSA_OVERRIDE_GFX_VERSION", "11.0.0"); }
SPOIL(halo_overridden) { halo_old_wheel(m); machine_env(m, "HSA_OVERRIDE_GFX_VERSION=11.0.0"); }
SPOIL(navi22_overridden) { navi22(m); machine_env(m, "HSA_OVERRIDE_GFX_VERSION=10.3.0"); }
SPOIL(navi22_by_node) { navi22(m); machine_env(m, "HSA_OVERRIDE_GFX_VERSION_1=10.3.0"); }
SPOIL(navi22_generic) { navi22(m); TORCH.compiled = targets_of(m, "gfx10-3-generic"); }
SPOIL(no_code) { TORCH.compiled = targets_of(m, "gfx1030 gfx1201"); }
SPOIL(code_unknown) { TORCH.compiled = (struct targets){ 0 }; }
SPOIL(kpack_missing) { TORCH.kpack = TORCH.therock = true; TORCH.device_wheels = targets_of(m, "gfx1100"); }
SPOIL(kpack_there) { TORCH.kpack = TORCH.therock = true; TORCH.device_wheels = targets_of(m, "gfx1151"); }
SPOIL(kpack_unknown) { TORCH.kpack = true; }
SPOIL(damaged_torch) { m->broken[0] = "libtorch_hip.so is not an ELF file"; TORCH.problems = (struct problems){ m->broken, 1 }; }
SPOIL(very_damaged_torch) { damaged_torch(m); m->broken[1] = "version.py is empty"; TORCH.problems.n = 2; }
SPOIL(torch_29) { machine_torch(m, "2.9.1+rocm6.4"); }
SPOIL(torch_29_named) { torch_29(m); TORCH.aotriton_version = text_of("0.11b"); }
SPOIL(torch_29_fixed) { torch_29(m); TORCH.aotriton_version = text_of("0.11.1b"); }

SPOIL(no_rocblas) { TORCH.rocblas = targets_of(m, "gfx1030"); }
SPOIL(rocblas_unknown) { TORCH.rocblas = (struct targets){ 0 }; }
SPOIL(no_hipblaslt) { TORCH.hipblaslt = targets_of(m, "gfx90a gfx942"); }
SPOIL(hipblaslt_unknown) { TORCH.hipblaslt = (struct targets){ 0 }; }
SPOIL(no_aotriton) { TORCH.aotriton = targets_of(m, "gfx90a gfx942"); }
SPOIL(aotriton_off) { machine_set(m, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "1"); }
SPOIL(aotriton_on) { aotriton_off(m); machine_env(m, "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1"); }
SPOIL(no_miopen_db) { TORCH.miopen = targets_of(m, "gfx1030"); }
SPOIL(miopen_fast) { no_miopen_db(m); machine_env(m, "MIOPEN_FIND_MODE=FAST"); }
SPOIL(miopen_db_unknown) { TORCH.miopen = (struct targets){ 0 }; }
SPOIL(miopen_version_unknown) { TORCH.miopen_version = (struct text){ 0 }; }
static const char *cached[] = { "3.5.1.f00f", "3.3.0.abc123" };
SPOIL(own_cache) { m->facts.miopen_cache = (struct miopen_cache){ "/home/user/.cache/miopen", cached, 1 }; }
SPOIL(old_caches) { own_cache(m); m->facts.miopen_cache.n_versions = 2; }
SPOIL(old_caches_unknown) { old_caches(m); miopen_version_unknown(m); }
SPOIL(no_triton) { TORCH.triton = (struct package_facts){ 0 }; }
SPOIL(foreign_triton) { TORCH.triton.fits = TRI_NO; TORCH.triton.why = "it is the CUDA build"; }
SPOIL(triton_unknown) { TORCH.triton.fits = TRI_UNKNOWN; }
SPOIL(no_accelerate) { TORCH.accelerate = (struct package_facts){ 0 }; }
SPOIL(no_accelerate_odd_path) { no_accelerate(m); TORCH.python = "/home/user/it's/bin/python3"; }
SPOIL(bnb) { TORCH.bitsandbytes = (struct package_facts){ .version = text_of("0.50.0"), .fits = TRI_YES, .targets = targets_of(m, "gfx1100 gfx1151") }; }
SPOIL(bnb_misfit) { bnb(m); TORCH.bitsandbytes.fits = TRI_NO; TORCH.bitsandbytes.why = "no libbitsandbytes_rocm72.so"; }
SPOIL(bnb_other_chip) { bnb(m); TORCH.bitsandbytes.targets = targets_of(m, "gfx90a gfx942"); }
SPOIL(bnb_with_rocminfo) { bnb(m); system_rocm(m); }
SPOIL(flash) { TORCH.flash_attn = (struct package_facts){ .version = text_of("2.8.3"), .fits = TRI_YES }; }
SPOIL(flash_triton) { flash(m); machine_env(m, "FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE"); }
SPOIL(flash_planned) { flash(m); machine_set(m, "FLASH_ATTENTION_TRITON_AMD_ENABLE", "TRUE"); }
SPOIL(flash_wrong_word) { flash_planned(m); machine_unset(m, "FLASH_ATTENTION_TRITON_AMD_ENABLE", "1"); }
SPOIL(two_apus) { GPU.gfx = text_of("gfx1150"); m->gpus[1] = m->gpus[0]; m->facts.n_gpus = 2; }
SPOIL(two_cards) { m->gpus[1] = m->gpus[0]; m->facts.n_gpus = 2; }

SPOIL(override_word) { machine_fatal(m, "HSA_OVERRIDE_GFX_VERSION", "gfx1031"); }
SPOIL(override_two_parts) { machine_fatal(m, "HSA_OVERRIDE_GFX_VERSION", "11.0"); }
SPOIL(override_space) { machine_fatal(m, "HSA_OVERRIDE_GFX_VERSION", "11.0.0 "); }
SPOIL(override_other_major) { machine_fatal(m, "HSA_OVERRIDE_GFX_VERSION", "10.3.0"); }
SPOIL(override_no_chip) { machine_fatal(m, "HSA_OVERRIDE_GFX_VERSION", "11.9.9"); }
SPOIL(override_no_code) { machine_fatal(m, "HSA_OVERRIDE_GFX_VERSION", "11.0.0"); TORCH.compiled = targets_of(m, "gfx1151"); }
SPOIL(override_same) { machine_unset(m, "HSA_OVERRIDE_GFX_VERSION", "11.5.1"); }
SPOIL(devices_empty) { machine_fatal(m, "HIP_VISIBLE_DEVICES", ""); }
SPOIL(devices_beyond) { machine_fatal(m, "ROCR_VISIBLE_DEVICES", "3"); }
SPOIL(serialized) { machine_unset(m, "AMD_SERIALIZE_KERNEL", "3"); machine_unset(m, "PYTORCH_NO_HIP_MEMORY_CACHING", "1"); override_word(m); }
SPOIL(something_planned) { machine_set(m, "PYTORCH_ALLOC_CONF", "garbage_collection_threshold:0.8"); }
SPOIL(selection_planned) { machine_set(m, "ROCR_VISIBLE_DEVICES", "0"); }
SPOIL(plan_doubts) { machine_env(m, "ACCELERATE_USE_CPU=1"); m->warnings[0] = "ACCELERATE_USE_CPU=1 makes Accelerate train on the CPU"; m->plan.warnings.n = 1; }
SPOIL(plan_chooses) { m->warnings[0] = "your choice of GPUs hides every GPU"; m->plan.warnings.n = 1; }
SPOIL(plan_notes) { machine_env(m, "_=/usr/bin/env"); m->warnings[0] = "torch.cuda.is_bf16_supported() says it has bf16"; m->plan.warnings.n = 1; }
SPOIL(path_opt_rocm) { machine_unset(m, "LD_LIBRARY_PATH", "/opt/rocm/lib"); }
SPOIL(path_planned) { machine_unset(m, "LD_LIBRARY_PATH", "/somewhere/lib"); machine_set(m, "LD_LIBRARY_PATH", "/else"); }
SPOIL(path_harmless) { machine_env(m, "LD_LIBRARY_PATH=/usr/local/lib"); }
SPOIL(preload_hip) { machine_unset(m, "LD_PRELOAD", "/opt/rocm/lib/libamdhip64.so.7"); }
SPOIL(preload_malloc) { machine_env(m, "LD_PRELOAD=/usr/lib/libtcmalloc.so.4"); }

const struct check_case software_cases[] = {
    { "rocm-present", machine_card, therock_alone, CHECK_FAIL, "rocm_sdk" },
    { "rocm-present", machine_card, no_torch, CHECK_OK, "no ROCm is installed" },
    { "rocm-present", machine_card, no_torch_capture, CHECK_UNKNOWN, NULL },
    { "rocm-present", machine_card, system_rocm, CHECK_OK, "7.2.1" },
    { "rocm-present", machine_card, two_rocms, CHECK_OK, "/opt/rocm-7.1.0" },
    { "rocm-loaded", machine_card, foreign_hip, CHECK_FAIL, "/opt/rocm-6.4.1" },
    { "rocm-loaded", machine_card, hip_of_a_neighbour, CHECK_OK, NULL },
    { "rocm-loaded", machine_card, no_hip_library, CHECK_UNKNOWN, NULL },
    { "rocm-loaded", machine_card, NULL, CHECK_OK, "libamdhip64" },
    { "native-runtime", machine_card, NULL, CHECK_OK, "torch/lib/libamdhip64.so" },
    { "native-runtime", machine_card, no_compiler, CHECK_WARN, "libhiprtc" },
    { "native-runtime", machine_card, no_runtime, CHECK_WARN, "no HIP runtime" },
    { "native-runtime", machine_card, no_runtime_capture, CHECK_UNKNOWN, NULL },
    { "rocm-floor", machine_card, old_rocm, CHECK_WARN, "5.7.0" },
    { "rocm-floor", machine_halo, preview_rocm, CHECK_WARN, "6.4.4" },
    { "rocm-floor", machine_halo, only_system_rocm, CHECK_WARN, "ROCm 6.4.1 is older" },
    { "rocm-floor", machine_halo, rocm_unknown, CHECK_UNKNOWN, NULL },
    { "rocm-floor", machine_halo, rocm_by_hip, CHECK_OK, "7.2" },
    { "rocm-floor", machine_card, NULL, CHECK_OK, NULL },
    { "rocm-cwsr", machine_halo, rocm_71, CHECK_WARN, "7.2.1" },
    { "rocm-cwsr", machine_halo, rocm_71_cwsr_on, CHECK_WARN, NULL },
    { "rocm-cwsr", machine_halo, rocm_72, CHECK_UNKNOWN, NULL },
    { "rocm-cwsr", machine_halo, rocm_71_cwsr_off, CHECK_OK, NULL },
    { "rocm-cwsr", machine_halo, NULL, CHECK_OK, NULL },
    { "rocm-cwsr", machine_card, rocm_71, CHECK_SKIP, NULL },
    { "rocm-known-bad", machine_halo, rocm_710_new_kernel, CHECK_FAIL, "7.13" },
    { "rocm-known-bad", machine_halo, rocm_702, CHECK_WARN, "torch.compile" },
    { "rocm-known-bad", machine_halo, renoir, CHECK_WARN, "HSA_ENABLE_SDMA=0" },
    { "rocm-known-bad", machine_halo, renoir_new, CHECK_OK, NULL },
    { "rocm-known-bad", machine_halo, rocm_710_old_kernel, CHECK_OK, NULL },
    { "rocm-known-bad", machine_card, rocm_702, CHECK_OK, NULL },
    { "mapped-weights", machine_halo, rocm_71, CHECK_OK, "--preload=+stage" },
    { "mapped-weights", machine_halo, preview_rocm, CHECK_OK, "no report" },
    { "mapped-weights", machine_halo, renoir_71, CHECK_OK, "no report" },
    { "mapped-weights", machine_halo, rocm_unknown, CHECK_UNKNOWN, NULL },
    { "mapped-weights", machine_halo, no_torch, CHECK_SKIP, NULL },
    { "hip-memory", machine_halo, rocm_713, CHECK_WARN, "--preload=+memory" },
    { "hip-memory", machine_halo, rocm_713_half, CHECK_OK, NULL },
    { "hip-memory", machine_halo, rocm_72, CHECK_OK, NULL },
    { "hip-memory", machine_halo, rocm_unknown, CHECK_UNKNOWN, NULL },
    { "hip-memory", machine_card, rocm_713, CHECK_SKIP, NULL },

    { "torch-present", machine_card, no_torch, CHECK_FAIL, "-m venv .venv && .venv/bin/python3 -m pip install torch" },
    { "torch-present", machine_card, no_torch_gfx1031, CHECK_FAIL, "\"torch[device-gfx1031]\"" },
    { "torch-present", machine_card, no_torch_capture, CHECK_UNKNOWN, "--torch" },
    { "torch-present", machine_card, NULL, CHECK_OK, "2.12.0" },
    { "torch-build", machine_card, cpu_build, CHECK_FAIL, "/home/user/venv/bin/python3 -m pip install --force-reinstall torch" },
    { "torch-build", machine_card, cuda_build_system, CHECK_FAIL, "python3 -m venv .venv" },
    { "torch-build", machine_card, build_unknown, CHECK_UNKNOWN, NULL },
    { "torch-build", machine_card, NULL, CHECK_OK, NULL },
    { "torch-several", machine_card, second_is_cpu, CHECK_WARN, "/usr/lib/python3/dist-packages" },
    { "torch-several", machine_card, second_torch, CHECK_OK, NULL },
    { "torch-several", machine_card, NULL, CHECK_SKIP, NULL },
    { "torch-target", machine_card, no_code, CHECK_FAIL, "gfx1100" },
    { "torch-target", machine_card, navi22, CHECK_FAIL, "device-gfx1031" },
    { "torch-target", machine_card, navi22_planned, CHECK_FAIL, "\"torch[device-gfx1031]\"" },
    { "torch-target", machine_card, navi22_planned, CHECK_FAIL, "\nexport HSA_OVERRIDE_GFX_VERSION=10.3.0" },
    { "torch-target", machine_card, override_replaced, CHECK_FAIL, "export HSA_OVERRIDE_GFX_VERSION=10.3.0" },
    { "torch-target", machine_card, navi22_overridden, CHECK_OK, "gfx1030" },
    { "torch-target", machine_halo, halo_planned, CHECK_FAIL, "pip install" },
    { "torch-target", machine_halo, halo_planned, CHECK_FAIL, "\nexport HSA_OVERRIDE_GFX_VERSION=11.0.0" },
    { "torch-target", machine_halo, halo_overridden, CHECK_WARN, "pip install" },
    { "torch-target", machine_card, navi22_by_node, CHECK_OK, "gfx1030" },
    { "torch-target", machine_card, navi22_generic, CHECK_OK, NULL },
    { "torch-target", machine_card, code_unknown, CHECK_UNKNOWN, NULL },
    { "torch-target", machine_card, NULL, CHECK_OK, NULL },
    { "torch-device-wheels", machine_halo, kpack_missing, CHECK_FAIL, "\"torch[device-gfx1151]\"" },
    { "torch-device-wheels", machine_halo, kpack_unknown, CHECK_UNKNOWN, NULL },
    { "torch-device-wheels", machine_halo, kpack_there, CHECK_OK, NULL },
    { "torch-device-wheels", machine_halo, NULL, CHECK_SKIP, NULL },
    { "torch-files", machine_card, damaged_torch, CHECK_WARN, "not an ELF" },
    { "torch-files", machine_card, very_damaged_torch, CHECK_WARN, "and 1 more" },
    { "torch-files", machine_card, NULL, CHECK_OK, NULL },
    { "torch-known-bad", machine_card, torch_29, CHECK_WARN, "0.11b" },
    { "torch-known-bad", machine_card, torch_29_named, CHECK_WARN, "0.11b" },
    { "torch-known-bad", machine_card, torch_29_fixed, CHECK_OK, NULL },
    { "torch-known-bad", machine_halo, torch_29, CHECK_OK, NULL },
    { "torch-known-bad", machine_card, NULL, CHECK_OK, NULL },

    { "rocblas", machine_card, no_rocblas, CHECK_FAIL, "TensileLibrary" },
    { "rocblas", machine_card, rocblas_unknown, CHECK_UNKNOWN, NULL },
    { "rocblas", machine_card, navi22_overridden, CHECK_OK, "gfx1030" },
    { "rocblas", machine_card, NULL, CHECK_OK, NULL },
    { "hipblaslt", machine_card, no_hipblaslt, CHECK_WARN, NULL },
    { "hipblaslt", machine_card, hipblaslt_unknown, CHECK_UNKNOWN, NULL },
    { "hipblaslt", machine_card, navi22, CHECK_SKIP, NULL },
    { "hipblaslt", machine_card, NULL, CHECK_OK, NULL },
    { "aotriton", machine_card, no_aotriton, CHECK_WARN, NULL },
    { "aotriton", machine_card, navi22, CHECK_SKIP, NULL },
    { "aotriton", machine_halo, aotriton_off, CHECK_WARN, "export TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1" },
    { "aotriton", machine_halo, aotriton_on, CHECK_OK, NULL },
    { "aotriton", machine_card, NULL, CHECK_OK, NULL },
    { "miopen-db", machine_card, no_miopen_db, CHECK_WARN, "--with MIOPEN_FIND_MODE=FAST" },
    { "miopen-db", machine_card, miopen_db_unknown, CHECK_UNKNOWN, NULL },
    { "miopen-db", machine_card, miopen_fast, CHECK_OK, "FAST" },
    { "miopen-db", machine_card, NULL, CHECK_OK, NULL },
    { "miopen-version", machine_halo, NULL, CHECK_UNKNOWN, "3.5.1" },
    { "miopen-version", machine_halo, miopen_version_unknown, CHECK_UNKNOWN, NULL },
    { "miopen-version", machine_card, NULL, CHECK_SKIP, NULL },
    { "miopen-cache", machine_card, old_caches, CHECK_WARN, "rm -r /home/user/.cache/miopen/3.3.0.abc123" },
    { "miopen-cache", machine_card, old_caches_unknown, CHECK_UNKNOWN, NULL },
    { "miopen-cache", machine_card, own_cache, CHECK_OK, "3.5.1" },
    { "miopen-cache", machine_card, NULL, CHECK_SKIP, NULL },
    { "triton", machine_card, no_triton, CHECK_WARN, "not installed" },
    { "triton", machine_card, foreign_triton, CHECK_WARN, "CUDA build" },
    { "triton", machine_card, triton_unknown, CHECK_UNKNOWN, NULL },
    { "triton", machine_card, NULL, CHECK_OK, NULL },
    { "accelerate", machine_card, no_accelerate, CHECK_WARN, "/home/user/venv/bin/python3 -m pip install accelerate" },
    { "accelerate", machine_card, no_accelerate_odd_path, CHECK_WARN, "'/home/user/it'\\''s/bin/python3' -m pip" },
    { "accelerate", machine_card, NULL, CHECK_OK, NULL },
    { "bitsandbytes", machine_card, bnb_misfit, CHECK_WARN, "rocm72" },
    { "bitsandbytes", machine_card, bnb_other_chip, CHECK_WARN, "gfx1100" },
    { "bitsandbytes", machine_card, bnb, CHECK_OK, NULL },
    { "bitsandbytes", machine_card, NULL, CHECK_SKIP, NULL },
    { "rocminfo", machine_card, bnb, CHECK_WARN, "sudo apt install rocminfo" },
    { "rocminfo", machine_card, bnb_with_rocminfo, CHECK_OK, NULL },
    { "rocminfo", machine_card, NULL, CHECK_SKIP, NULL },
    { "flash-attn", machine_card, flash_planned, CHECK_WARN, "FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE" },
    { "flash-attn", machine_card, flash_wrong_word, CHECK_WARN, NULL },
    { "flash-attn", machine_card, flash_triton, CHECK_OK, NULL },
    { "rccl", machine_halo, two_apus, CHECK_WARN, "gloo" },
    { "rccl", machine_card, two_cards, CHECK_OK, NULL },
    { "rccl", machine_both, NULL, CHECK_SKIP, NULL },
    { "rccl", machine_card, NULL, CHECK_SKIP, NULL },

    { "override", machine_card, override_word, CHECK_FAIL, "unset HSA_OVERRIDE_GFX_VERSION" },
    { "override", machine_card, override_two_parts, CHECK_FAIL, NULL },
    { "override", machine_card, override_space, CHECK_FAIL, NULL },
    { "override", machine_card, override_other_major, CHECK_FAIL, NULL },
    { "override", machine_card, override_no_chip, CHECK_FAIL, NULL },
    { "override", machine_halo, override_no_code, CHECK_FAIL, NULL },
    { "override", machine_halo, override_same, CHECK_WARN, "11.5.1" },
    { "override", machine_card, override_replaced, CHECK_FAIL, "export HSA_OVERRIDE_GFX_VERSION=10.3.0" },
    { "override", machine_card, navi22_overridden, CHECK_OK, "10.3.0" },
    { "override", machine_card, NULL, CHECK_OK, NULL },
    { "visible-devices", machine_card, devices_empty, CHECK_FAIL, "unset HIP_VISIBLE_DEVICES" },
    { "visible-devices", machine_card, devices_beyond, CHECK_FAIL, NULL },
    { "visible-devices", machine_both, NULL, CHECK_OK, "ROCR_VISIBLE_DEVICES=0" },
    { "env-harmful", machine_card, serialized, CHECK_WARN, "unset AMD_SERIALIZE_KERNEL\nunset PYTORCH_NO_HIP_MEMORY_CACHING" },
    { "env-harmful", machine_card, override_word, CHECK_OK, NULL },
    { "env-harmful", machine_card, devices_empty, CHECK_OK, NULL },
    { "env-harmful", machine_card, path_planned, CHECK_OK, NULL },
    { "env-harmful", machine_card, NULL, CHECK_OK, NULL },
    { "env-planned", machine_card, something_planned, CHECK_WARN, "eval \"$(cairn env)\"" },
    { "env-planned", machine_card, navi22_planned, CHECK_WARN, "HSA_OVERRIDE_GFX_VERSION=10.3.0" },
    { "env-planned", machine_card, selection_planned, CHECK_WARN, "ROCR_VISIBLE_DEVICES=0" },
    { "env-planned", machine_card, NULL, CHECK_OK, NULL },
    { "env-planned", machine_bare, NULL, CHECK_SKIP, NULL },
    { "env-warnings", machine_card, plan_doubts, CHECK_WARN, "ACCELERATE_USE_CPU" },
    { "env-warnings", machine_card, plan_notes, CHECK_OK, NULL },
    { "env-warnings", machine_card, plan_chooses, CHECK_WARN, NULL },
    { "env-warnings", machine_card, NULL, CHECK_OK, NULL },
    { "ld-library-path", machine_card, path_opt_rocm, CHECK_WARN, "/opt/rocm/lib" },
    { "ld-library-path", machine_card, path_planned, CHECK_WARN, "export LD_LIBRARY_PATH=/else" },
    { "ld-library-path", machine_card, path_harmless, CHECK_OK, NULL },
    { "ld-library-path", machine_card, NULL, CHECK_OK, NULL },
    { "ld-preload", machine_card, preload_hip, CHECK_WARN, "unset LD_PRELOAD" },
    { "ld-preload", machine_card, preload_malloc, CHECK_OK, NULL },
    { "ld-preload", machine_card, NULL, CHECK_OK, NULL },
    { "rocm-present", machine_card, therock_whole, CHECK_OK, NULL },
    { "rocm-present", machine_card, no_hip_library, CHECK_WARN, "libamdhip64" },
    { 0 },
};
/* clang-format on */
