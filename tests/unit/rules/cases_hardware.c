/* SPDX-License-Identifier: Apache-2.0
 * Hardware, kernel, permissions, memory and disk: each check where it speaks up and where it does not. */
#include "machine.h"

#define GIB ((int64_t)1 << 30)
#define HOST (m->facts.host)
#define GPU (m->gpus[0])

/* clang-format off */
SPOIL(in_wsl) { HOST.wsl = true; HOST.kfd_present = TRI_NO; }
SPOIL(not_in_kfd) { GPU.rocm_capable = false; m->facts.default_gpu = -1; m->plan.gpu = NULL; }
SPOIL(kfd_unreadable) { not_in_kfd(m); HOST.kfd_unreadable = true; }
SPOIL(radeon_driver) { not_in_kfd(m); GPU.driver = text_of("radeon"); }
SPOIL(vfio_driver) { not_in_kfd(m); GPU.driver = text_of("vfio-pci"); }
SPOIL(vfio_odd_address) { vfio_driver(m); GPU.pci = text_of("0000:03:00.0'; reboot #"); }
SPOIL(second_at_vfio) { m->gpus[1].driver = text_of("vfio-pci"); m->gpus[1].rocm_capable = false; }
SPOIL(no_driver_known) { not_in_kfd(m); GPU.driver = (struct text){ 0 }; }
SPOIL(no_target) { GPU.gfx = (struct text){ 0 }; }
SPOIL(new_target) { GPU.gfx = text_of("gfx1399"); }
SPOIL(polaris) { GPU.gfx = text_of("gfx803"); }
SPOIL(built_only) { GPU.gfx = text_of("gfx1153"); }
SPOIL(navi22) { GPU.gfx = text_of("gfx1031"); }
SPOIL(krackan) { GPU.gfx = text_of("gfx1152"); machine_kernel(m, "6.17.0"); }
SPOIL(krackan_new) { GPU.gfx = text_of("gfx1152"); }
SPOIL(krackan_unknown) { GPU.gfx = text_of("gfx1152"); HOST.kernel_version = (struct version){ 0 }; }
SPOIL(nothing_hidden) { m->env[0] = NULL; machine_set(m, "ROCR_VISIBLE_DEVICES", "0"); }
SPOIL(other_not_shown) { m->env[0] = NULL; m->gpus[1].hip_index = -1; }
SPOIL(other_not_in_kfd) { m->env[0] = NULL; m->gpus[1].rocm_capable = false; }
SPOIL(both_chosen) { m->env[0] = "HIP_VISIBLE_DEVICES=0,1"; m->keep[0].name = "HIP_VISIBLE_DEVICES"; machine_show(m, 2); }
SPOIL(suspended) { GPU.runtime_status = text_of("suspended"); }
SPOIL(no_atomics) { GPU.pcie_atomics = TRI_NO; }
SPOIL(atomics_unknown) { GPU.pcie_atomics = TRI_UNKNOWN; }
SPOIL(narrow_link) { GPU.link_width = num_of(4); }
SPOIL(link_unknown) { GPU.link_width = (struct num){ 0 }; }
SPOIL(small_bar) { GPU.vis_vram_total_bytes = num_of(GIB / 4); }
SPOIL(bar_unknown) { GPU.vis_vram_total_bytes = (struct num){ 0 }; }

SPOIL(module_missing) { not_in_kfd(m); HOST.amdgpu_loaded = TRI_NO; }
SPOIL(module_unknown) { not_in_kfd(m); HOST.amdgpu_loaded = TRI_UNKNOWN; }
SPOIL(kfd_missing) { not_in_kfd(m); HOST.kfd_present = TRI_NO; }
SPOIL(kfd_missing_no_name) { kfd_missing(m); GPU.gfx = (struct text){ 0 }; }
SPOIL(kfd_missing_old_chip) { kfd_missing_no_name(m); GPU.device_id = num_of(0x6818); }
SPOIL(radeon_old_chip) { kfd_missing_old_chip(m); GPU.driver = text_of("radeon"); }
SPOIL(told_by_hand) { GPU = (struct gpu_facts){ .gfx = { "gfx1151", "--gfx" }, .kind = GPU_INTEGRATED, .rocm_capable = true };
                      m->facts.n_gpus = 1; m->facts.default_gpu = 0; m->plan.gpu = &GPU;
                      HOST.kfd_present = TRI_NO; HOST.kfd_node.access = NODE_MISSING; }
SPOIL(old_kernel) { machine_kernel(m, "6.8.0-60-generic"); }
SPOIL(backported) { old_kernel(m); GPU.kfd_bank_bytes = GPU.gtt_total_bytes; }
SPOIL(carve_out_only) { old_kernel(m); GPU.kfd_bank_bytes = GPU.vram_total_bytes = num_of(16 * GIB); }
SPOIL(mi300a_old_kernel) { carve_out_only(m); GPU.gfx = text_of("gfx942"); }
SPOIL(no_kernel) { HOST.kernel = (struct text){ 0 }; HOST.kernel_version = (struct version){ 0 }; }
SPOIL(small_save_area) { GPU.has_cwsr_size = TRI_NO; machine_kernel(m, "6.17.4"); }
SPOIL(save_area_off) { small_save_area(m); machine_param(m, "amdgpu", "cwsr_enable", "0"); }
SPOIL(save_area_on) { small_save_area(m); machine_param(m, "amdgpu", "cwsr_enable", "1"); }
SPOIL(save_area_fixed) { GPU.has_cwsr_size = TRI_NO; machine_kernel(m, "6.18.4"); }
SPOIL(save_area_unknown) { GPU.has_cwsr_size = TRI_UNKNOWN; no_kernel(m); }
SPOIL(mes_83) { GPU.mes_fw = num_of(0x83); }
SPOIL(mes_83_with_api) { GPU.mes_fw = num_of(0x7d083); HOST.os_id = text_of("ubuntu"); }
SPOIL(mes_83_other) { GPU.mes_fw = num_of(0x83); HOST.os_id = text_of("gentoo"); }
SPOIL(mes_86) { GPU.mes_fw = num_of(0x86); }
SPOIL(mes_unknown) { GPU.mes_fw = (struct num){ 0 }; }
SPOIL(gttsize_set) { m->params[2].value = "131072"; HOST.cmdline = text_of("quiet amdgpu.gttsize=131072"); }
SPOIL(gttsize_beside_limit) { gttsize_set(m); HOST.cmdline = text_of("amdgpu.gttsize=131072 ttm.pages_limit=9"); }
SPOIL(gttsize_by_modprobe) { m->params[2].value = "65536"; }
SPOIL(gttsize_of_half) { m->params[2].value = "65536"; HOST.cmdline = text_of("amdgpu.gttsize=65536"); }
SPOIL(no_params) { HOST.n_params = 0; HOST.cmdline = (struct text){ 0 }; }
SPOIL(huge_pool) { m->params[1].value = "29360128"; }
SPOIL(absurd_pool) { m->params[1].value = "9223372036854775807"; }
SPOIL(cap_lifted) { machine_param(m, "amdgpu", "no_system_mem_limit", "Y"); }
SPOIL(cap_stated) { machine_param(m, "amdgpu", "no_system_mem_limit", "N"); }
SPOIL(vram_cut) { machine_param(m, "amdgpu", "vramlimit", "4096"); HOST.cmdline = text_of("amdgpu.vramlimit=4096"); }
SPOIL(iommu_off) { HOST.cmdline = text_of("quiet amd_iommu=off"); }
SPOIL(no_cmdline) { HOST.cmdline = (struct text){ 0 }; }
SPOIL(two_cards) { m->gpus[1].kind = GPU_DISCRETE; m->gpus[1].gfx = text_of("gfx1100"); }
SPOIL(two_cards_pt) { two_cards(m); HOST.cmdline = text_of("iommu=pt quiet"); }

SPOIL(kfd_node_missing) { HOST.kfd_node.access = NODE_MISSING; }
SPOIL(kfd_node_denied) { HOST.kfd_node.access = NODE_DENIED; }
SPOIL(kfd_node_of_root) { kfd_node_denied(m); HOST.kfd_node.group = "root"; }
SPOIL(kfd_node_in_docker) { kfd_node_missing(m); HOST.container = text_of("docker"); }
SPOIL(render_denied) { m->gpus[1].render.access = NODE_DENIED; }
SPOIL(render_missing) { GPU.render.access = NODE_MISSING; }
SPOIL(other_render_missing) { m->gpus[1].render.access = NODE_MISSING; }
SPOIL(render_unknown) { GPU.render.access = NODE_UNKNOWN; }
SPOIL(seat_only) { GPU.render.access = NODE_OPEN_BY_ACL; }
SPOIL(docker) { HOST.container = text_of("docker"); }
SPOIL(podman_masked) { HOST.container = text_of("podman"); HOST.kfd_masked = true; }
SPOIL(docker_odd_group) { docker(m); GPU.render = (struct dev_node){ "/dev/dri/renderD128", NODE_DENIED, 993, NULL, 0660 }; }

SPOIL(carve_96) { GPU.vram_total_bytes = num_of(96 * GIB); GPU.gtt_total_bytes = num_of(15 * GIB);
                  HOST.memory_total_bytes = num_of(31 * GIB); }
SPOIL(carve_32) { GPU.vram_total_bytes = num_of(32 * GIB); }
SPOIL(carve_8) { GPU.vram_total_bytes = num_of(8 * GIB); }
SPOIL(carve_unknown) { GPU.vram_total_bytes = (struct num){ 0 }; }
SPOIL(default_limit) { m->params[0].value = "16384000"; GPU.gtt_total_bytes = num_of(16384000LL * 4096); }
SPOIL(default_limit_debian) { default_limit(m); HOST.os_id = text_of("debian"); }
SPOIL(default_limit_entries) { default_limit(m); HOST.os_id = text_of("arch"); HOST.boot_entries = true; }
SPOIL(default_limit_cmdline) { default_limit_entries(m); HOST.boot_cmdline = true; }
SPOIL(default_limit_both_loaders) { default_limit_entries(m); HOST.grub_defaults = true; }
SPOIL(default_limit_like) { default_limit(m); HOST.os_id = text_of("tuxedo"); HOST.os_like = text_of("something debian"); }
SPOIL(default_limit_gentoo) { default_limit(m); HOST.os_id = text_of("gentoo"); HOST.grub_defaults = true; }
SPOIL(default_limit_in_docker) { default_limit_debian(m); HOST.container = text_of("docker"); }
SPOIL(default_limit_image) { default_limit_gentoo(m); HOST.ostree = true; }
SPOIL(default_limit_pop) { default_limit(m); HOST.os_id = text_of("pop"); }
SPOIL(default_limit_atomic) { default_limit(m); HOST.os_name = text_of("Fedora Linux 43 (Silverblue)"); }
SPOIL(default_limit_nixos) { default_limit(m); HOST.os_id = text_of("nixos"); }
SPOIL(default_limit_suse) { default_limit(m); HOST.os_id = text_of("opensuse-tumbleweed"); }
SPOIL(default_limit_other) { default_limit(m); HOST.os_id = text_of("gentoo"); }
SPOIL(iommu_off_nixos) { iommu_off(m); HOST.os_id = text_of("nixos"); }
SPOIL(old_kernel_mint) { old_kernel(m); HOST.os_id = text_of("linuxmint"); }
SPOIL(gttsize_debian) { gttsize_set(m); HOST.os_id = text_of("debian"); }
SPOIL(gttsize_atomic) { gttsize_set(m); HOST.os_id = text_of("bazzite"); }
SPOIL(gttsize_quoted) { gttsize_set(m); HOST.cmdline = text_of("amdgpu.gttsize=$(reboot)"); }
SPOIL(default_limit_dkms) { default_limit(m); m->params[0].module = "amdttm"; }
SPOIL(limit_on_cmdline) { default_limit(m); HOST.cmdline = text_of("ttm.pages_limit=16384000 quiet"); }
SPOIL(limit_unknown) { HOST.n_params = 0; GPU.gtt_total_bytes = (struct num){ 0 }; }
SPOIL(ram_unknown) { HOST.memory_total_bytes = (struct num){ 0 }; }
SPOIL(gttsize_only) { m->params[0].value = "16384000"; m->params[2].value = "131072"; GPU.gtt_total_bytes = num_of(120 * GIB); }
SPOIL(gtt_a_bit_above) { default_limit(m); GPU.gtt_total_bytes = num_of(64 * GIB); }
SPOIL(gtt_above_ram) { HOST.n_params = 0; GPU.gtt_total_bytes = num_of(128 * GIB); }
SPOIL(in_container_above_ram) { gtt_above_ram(m); HOST.container = text_of("lxc"); }
SPOIL(small_gpu) { GPU.usable_bytes = num_of(3 * GIB); }
SPOIL(size_unknown) { GPU.usable_bytes = (struct num){ 0 }; }
SPOIL(vram_taken) { GPU.vram_used_bytes = num_of(9 * GIB); }
SPOIL(use_unknown) { GPU.vram_used_bytes = (struct num){ 0 }; }
SPOIL(trainer_left) { m->processes[0] = (struct gpu_process){ 4711, "python3", 11 * GIB };
                      GPU.processes = m->processes; GPU.n_processes = 1; }
SPOIL(not_live) { m->facts.root.live = false; }
SPOIL(ram_full) { HOST.memory_available_bytes = num_of(2 * GIB); }
SPOIL(ram_low) { HOST.memory_available_bytes = num_of(5 * GIB); }
SPOIL(free_unknown) { HOST.memory_available_bytes = (struct num){ 0 }; }
SPOIL(tight_cgroup) { HOST.cgroup_limit_bytes = num_of(16 * GIB); }
SPOIL(wide_cgroup) { HOST.cgroup_limit_bytes = num_of(64 * GIB); }
SPOIL(little_ram) { HOST.memory_total_bytes = num_of(31 * GIB); HOST.swap_total_bytes = num_of(8 * GIB); HOST.zram_bytes = num_of(8 * GIB); }
SPOIL(little_ram_swap) { little_ram(m); HOST.swap_total_bytes = num_of(40 * GIB); }
SPOIL(small_card) { GPU.vram_total_bytes = num_of(8 * GIB); HOST.memory_total_bytes = num_of(16 * GIB); }
SPOIL(swap_unknown) { HOST.swap_total_bytes = (struct num){ 0 }; }
SPOIL(no_thp) { HOST.thp = text_of("never"); }
SPOIL(thp_unknown) { HOST.thp = (struct text){ 0 }; }
SPOIL(cache_full) { m->disks[0].free_bytes = num_of(GIB / 2); }
SPOIL(cache_low) { m->disks[0].free_bytes = num_of(5 * GIB); }
SPOIL(work_low) { m->disks[1].free_bytes = num_of(20 * GIB); }
SPOIL(work_full) { m->disks[1].free_bytes = num_of(GIB); }
SPOIL(no_disks) { m->facts.n_disks = 0; }

const struct check_case hardware_cases[] = {
    { "gpu-present", machine_bare, NULL, CHECK_FAIL, "no AMD GPU found" },
    { "gpu-present", machine_bare, in_wsl, CHECK_UNKNOWN, "/dev/dxg" },
    { "gpu-present", machine_both, NULL, CHECK_OK, "gfx1036), integrated" },
    { "gpu-present", machine_both, NULL, CHECK_OK, "gfx1100), discrete; GPU 1" },
    { "gpu-in-kfd", machine_card, not_in_kfd, CHECK_FAIL, "dmesg" },
    { "gpu-in-kfd", machine_card, kfd_unreadable, CHECK_UNKNOWN, "not fully readable" },
    { "gpu-in-kfd", machine_card, NULL, CHECK_OK, "1 of 1" },
    { "gpu-in-kfd", machine_bare, NULL, CHECK_SKIP, NULL },
    { "gpu-driver", machine_card, radeon_driver, CHECK_FAIL, "amdgpu.si_support=1" },
    { "gpu-driver", machine_card, radeon_old_chip, CHECK_WARN, "no target" },
    { "gpu-driver", machine_card, vfio_driver, CHECK_FAIL, "echo 0000:03:00.0 > /sys/bus/pci/drivers/vfio-pci/unbind" },
    { "gpu-driver", machine_card, vfio_odd_address, CHECK_FAIL, "lspci -nnk -d 1002:" },
    { "gpu-driver", machine_both, second_at_vfio, CHECK_WARN, NULL },
    { "gpu-driver", machine_card, no_driver_known, CHECK_UNKNOWN, NULL },
    { "gpu-driver", machine_card, NULL, CHECK_OK, "amdgpu" },
    { "gpu-target", machine_card, no_target, CHECK_UNKNOWN, NULL },
    { "gpu-target", machine_card, new_target, CHECK_WARN, "gfx1399" },
    { "gpu-target", machine_card, NULL, CHECK_OK, "gfx1100" },
    { "gpu-support", machine_card, polaris, CHECK_FAIL, "gfx803" },
    { "gpu-support", machine_halo, built_only, CHECK_WARN, "gfx1153" },
    { "gpu-support", machine_card, NULL, CHECK_OK, NULL },
    { "gpu-integrated", machine_both, nothing_hidden, CHECK_WARN, "export ROCR_VISIBLE_DEVICES=0" },
    { "gpu-integrated", machine_both, both_chosen, CHECK_WARN, "cairn env --gpu 0" },
    { "gpu-integrated", machine_both, NULL, CHECK_OK, "ROCR_VISIBLE_DEVICES=0 hides" },
    { "gpu-integrated", machine_both, other_not_in_kfd, CHECK_OK, "no integrated GPU" },
    { "gpu-integrated", machine_both, other_not_shown, CHECK_OK, "no integrated GPU" },
    { "gpu-integrated", machine_card, NULL, CHECK_OK, NULL },
    { "gpu-integrated", machine_halo, NULL, CHECK_SKIP, NULL },
    { "gpu-bf16", machine_card, navi22, CHECK_WARN, "fp16" },
    { "gpu-bf16", machine_card, NULL, CHECK_OK, NULL },
    { "gpu-attention", machine_card, navi22, CHECK_WARN, "gfx1031" },
    { "gpu-attention", machine_card, NULL, CHECK_OK, "WMMA" },
    { "gpu-asleep", machine_card, suspended, CHECK_UNKNOWN, "/sys/bus/pci/devices/0000:03:00.0/power/control" },
    { "gpu-asleep", machine_card, NULL, CHECK_OK, NULL },
    { "pcie-atomics", machine_card, no_atomics, CHECK_WARN, "lspci -vvv -s 0000:03:00.0" },
    { "pcie-atomics", machine_card, atomics_unknown, CHECK_UNKNOWN, NULL },
    { "pcie-atomics", machine_card, NULL, CHECK_OK, NULL },
    { "pcie-link", machine_card, narrow_link, CHECK_WARN, "x4 of x16" },
    { "pcie-link", machine_card, link_unknown, CHECK_UNKNOWN, NULL },
    { "pcie-link", machine_card, NULL, CHECK_OK, NULL },
    { "pcie-link", machine_halo, narrow_link, CHECK_SKIP, NULL },
    { "resizable-bar", machine_card, small_bar, CHECK_WARN, "256 MiB of 24 GiB" },
    { "resizable-bar", machine_card, bar_unknown, CHECK_UNKNOWN, NULL },
    { "resizable-bar", machine_card, NULL, CHECK_OK, NULL },

    { "wsl", machine_bare, in_wsl, CHECK_WARN, "/dev/dxg" },
    { "wsl", machine_card, NULL, CHECK_SKIP, NULL },
    { "amdgpu-module", machine_card, module_missing, CHECK_FAIL, "modprobe amdgpu" },
    { "amdgpu-module", machine_card, module_unknown, CHECK_UNKNOWN, NULL },
    { "amdgpu-module", machine_card, NULL, CHECK_OK, NULL },
    { "kfd", machine_card, kfd_missing, CHECK_FAIL, "/boot/config-6.19.12" },
    { "kfd", machine_bare, told_by_hand, CHECK_SKIP, NULL },
    { "kfd-access", machine_bare, told_by_hand, CHECK_SKIP, NULL },
    { "gpu-present", machine_bare, told_by_hand, CHECK_OK, "GPU 0 (gfx1151)" },
    { "kfd", machine_card, kfd_missing_no_name, CHECK_FAIL, NULL },
    { "kfd", machine_card, kfd_missing_old_chip, CHECK_SKIP, NULL },
    { "kfd", machine_card, NULL, CHECK_OK, NULL },
    { "kernel-chip", machine_halo, krackan, CHECK_WARN, "6.19.10" },
    { "kernel-chip", machine_halo, krackan_unknown, CHECK_UNKNOWN, NULL },
    { "kernel-chip", machine_halo, krackan_new, CHECK_OK, NULL },
    { "kernel-chip", machine_card, old_kernel, CHECK_SKIP, NULL },
    { "kernel-unified", machine_halo, old_kernel, CHECK_WARN, "dnf upgrade" },
    { "kernel-unified", machine_halo, old_kernel_mint, CHECK_WARN, "case $UBUNTU_CODENAME in jammy) echo 22.04" },
    { "kernel-unified", machine_halo, backported, CHECK_OK, "6.8.0" },
    { "kernel-unified", machine_halo, carve_out_only, CHECK_WARN, "carve-out" },
    { "kernel-unified", machine_halo, mi300a_old_kernel, CHECK_SKIP, NULL },
    { "kernel-unified", machine_halo, no_kernel, CHECK_UNKNOWN, NULL },
    { "kernel-unified", machine_halo, NULL, CHECK_OK, NULL },
    { "kernel-unified", machine_card, old_kernel, CHECK_SKIP, NULL },
    { "cwsr", machine_halo, small_save_area, CHECK_WARN, "amdgpu.cwsr_enable=0" },
    { "cwsr", machine_halo, save_area_on, CHECK_WARN, NULL },
    { "cwsr", machine_halo, save_area_unknown, CHECK_UNKNOWN, NULL },
    { "cwsr", machine_halo, save_area_off, CHECK_OK, "cwsr_enable=0" },
    { "cwsr", machine_halo, save_area_fixed, CHECK_OK, "6.18.4" },
    { "cwsr", machine_halo, NULL, CHECK_OK, NULL },
    { "cwsr", machine_card, old_kernel, CHECK_SKIP, NULL },
    { "mes-firmware", machine_halo, mes_83, CHECK_FAIL, "amd-gpu-firmware" },
    { "mes-firmware", machine_halo, mes_83_with_api, CHECK_FAIL, "linux-firmware" },
    { "mes-firmware", machine_halo, mes_83_other, CHECK_FAIL, "# update linux-firmware" },
    { "mes-firmware", machine_halo, mes_86, CHECK_WARN, "0x86" },
    { "mes-firmware", machine_halo, mes_unknown, CHECK_UNKNOWN, NULL },
    { "mes-firmware", machine_halo, NULL, CHECK_OK, "0x80" },
    { "mes-firmware", machine_card, mes_83, CHECK_SKIP, NULL },
    { "gttsize", machine_halo, gttsize_set, CHECK_WARN,
      "grubby --update-kernel=ALL --remove-args=\"amdgpu.gttsize=131072\" --args=\"ttm.pages_limit=28573696\"" },
    /* The same figure as ttm-limit's, whatever gttsize says. */
    { "gttsize", machine_halo, gttsize_of_half, CHECK_WARN, "--args=\"ttm.pages_limit=28573696\"" },
    { "gttsize", machine_halo, gttsize_beside_limit, CHECK_WARN,
      "grubby --update-kernel=ALL --remove-args=\"amdgpu.gttsize=131072\" && sudo reboot" },
    { "gttsize", machine_halo, gttsize_by_modprobe, CHECK_WARN, "grep -rn 'gttsize' /etc/modprobe.d" },
    { "gttsize", machine_halo, no_params, CHECK_UNKNOWN, NULL },
    { "gttsize", machine_halo, NULL, CHECK_OK, NULL },
    { "page-pool", machine_halo, huge_pool, CHECK_WARN, "29360128" },
    { "page-pool", machine_halo, absurd_pool, CHECK_WARN, NULL },
    { "page-pool", machine_halo, no_params, CHECK_UNKNOWN, NULL },
    { "page-pool", machine_halo, NULL, CHECK_OK, NULL },
    { "system-mem-limit", machine_halo, cap_lifted, CHECK_WARN, NULL },
    { "system-mem-limit", machine_halo, cap_stated, CHECK_OK, NULL },
    { "system-mem-limit", machine_halo, no_params, CHECK_UNKNOWN, NULL },
    { "vram-limits", machine_card, vram_cut, CHECK_WARN, "amdgpu\\.vramlimit" },
    { "vram-limits", machine_card, NULL, CHECK_OK, NULL },
    { "iommu-off", machine_halo, iommu_off_nixos, CHECK_WARN, "\"amd_iommu=off\" from boot.kernelParams" },
    { "iommu-off", machine_halo, iommu_off, CHECK_WARN, "--remove-args=\"amd_iommu=off\"" },
    { "iommu-off", machine_halo, no_cmdline, CHECK_UNKNOWN, NULL },
    { "iommu-off", machine_halo, NULL, CHECK_OK, NULL },
    { "iommu-pt", machine_both, two_cards, CHECK_WARN, "\\1 iommu=pt\"/' /etc/default/grub && sudo update-grub" },
    { "iommu-pt", machine_both, two_cards_pt, CHECK_OK, NULL },
    { "iommu-pt", machine_both, NULL, CHECK_SKIP, NULL },

    { "kfd-access", machine_card, kfd_node_missing, CHECK_FAIL, NULL },
    { "kfd-access", machine_card, kfd_node_denied, CHECK_FAIL, "sudo usermod -aG render user && newgrp render" },
    { "kfd-access", machine_card, kfd_node_of_root, CHECK_FAIL, "udevadm" },
    { "kfd-access", machine_card, kfd_node_in_docker, CHECK_FAIL, "--device=/dev/kfd --device=/dev/dri --group-add 105" },
    { "kfd-access", machine_card, NULL, CHECK_OK, NULL },
    { "kfd-access", machine_blank, NULL, CHECK_UNKNOWN, NULL },
    { "kfd-access", machine_bare, NULL, CHECK_SKIP, NULL },
    { "render-access", machine_both, render_denied, CHECK_FAIL, "/dev/dri/renderD129" },
    { "render-access", machine_card, render_missing, CHECK_FAIL, NULL },
    { "render-access", machine_both, other_render_missing, CHECK_WARN, "/dev/dri/renderD129" },
    { "render-access", machine_card, render_unknown, CHECK_UNKNOWN, NULL },
    { "render-access", machine_both, NULL, CHECK_OK, NULL },
    { "seat-acl", machine_card, seat_only, CHECK_WARN, "usermod -aG render user" },
    { "seat-acl", machine_card, NULL, CHECK_OK, NULL },
    { "container", machine_card, podman_masked, CHECK_WARN, "podman run" },
    { "container", machine_card, docker_odd_group, CHECK_WARN, "--group-add 993" },
    { "container", machine_card, docker, CHECK_OK, NULL },
    { "container", machine_card, NULL, CHECK_SKIP, NULL },

    { "carve-out", machine_halo, carve_96, CHECK_WARN, "ttm.pages_limit=28835840" },
    { "carve-out", machine_halo, carve_32, CHECK_WARN, "carve-out" },
    { "carve-out", machine_halo, carve_8, CHECK_OK, "8 GiB" },
    { "carve-out", machine_halo, carve_unknown, CHECK_UNKNOWN, NULL },
    { "carve-out", machine_halo, carve_out_only, CHECK_SKIP, "carve-out" },
    { "carve-out", machine_halo, NULL, CHECK_OK, "512 MiB" },
    { "carve-out", machine_card, NULL, CHECK_SKIP, NULL },
    { "ttm-limit", machine_halo, default_limit, CHECK_WARN, "sudo grubby --update-kernel=ALL --args=\"ttm.pages_limit=28573696\"" },
    { "ttm-limit", machine_halo, default_limit_debian, CHECK_WARN, "\\1 ttm.pages_limit=28573696\"/' /etc/default/grub" },
    { "ttm-limit", machine_halo, default_limit_pop, CHECK_WARN, "kernelstub -a \"ttm.pages_limit=28573696\"" },
    { "ttm-limit", machine_halo, default_limit_atomic, CHECK_WARN, "kargs --append-if-missing=ttm.pages_limit=28573696" },
    { "ttm-limit", machine_halo, default_limit_entries, CHECK_WARN, "/boot/loader/entries -name '*.conf' -exec sed -i '/^options/ s/$/ ttm.pages_limit=" },
    { "ttm-limit", machine_halo, default_limit_cmdline, CHECK_WARN, "/etc/kernel/cmdline && sudo kernel-install add-all" },
    { "ttm-limit", machine_halo, default_limit_both_loaders, CHECK_WARN, "/etc/default/grub && sudo grub-mkconfig" },
    { "ttm-limit", machine_halo, default_limit_like, CHECK_WARN, "/etc/default/grub && sudo update-grub" },
    { "ttm-limit", machine_halo, default_limit_image, CHECK_WARN, "rpm-ostree kargs --append-if-missing=ttm.pages_limit=" },
    { "ttm-limit", machine_halo, default_limit_gentoo, CHECK_WARN, "/etc/default/grub && sudo grub-mkconfig" },
    { "ttm-limit", machine_halo, default_limit_in_docker, CHECK_WARN, "# on the host, not in this container: add ttm.pages_limit=" },
    { "ttm-limit", machine_halo, default_limit_nixos, CHECK_WARN, "boot.kernelParams = [ \"ttm.pages_limit=28573696\" ];" },
    { "ttm-limit", machine_halo, default_limit_suse, CHECK_WARN, "/etc/default/grub && sudo grub2-mkconfig" },
    { "ttm-limit", machine_halo, default_limit_other, CHECK_WARN, "# add ttm.pages_limit=28573696" },
    { "gttsize", machine_halo, gttsize_debian, CHECK_WARN, "s/ *\\bamdgpu\\.gttsize=[^ \"]*//g; s/^" },
    { "gttsize", machine_halo, gttsize_atomic, CHECK_WARN, "--delete-if-present=amdgpu.gttsize=131072 --append" },
    { "gttsize", machine_halo, gttsize_quoted, CHECK_WARN, "--remove-args=\"amdgpu.gttsize\"" },
    { "ttm-limit", machine_halo, default_limit_dkms, CHECK_WARN, "amdttm.pages_limit=28573696" },
    { "ttm-limit", machine_halo, limit_on_cmdline, CHECK_WARN, "--remove-args=\"ttm.pages_limit=16384000\"" },
    { "ttm-limit", machine_halo, limit_unknown, CHECK_UNKNOWN, NULL },
    { "ttm-limit", machine_halo, ram_unknown, CHECK_UNKNOWN, NULL },
    { "ttm-limit", machine_halo, carve_96, CHECK_SKIP, NULL },
    { "ttm-limit", machine_halo, carve_out_only, CHECK_SKIP, NULL },
    { "ttm-limit", machine_halo, gtt_above_ram, CHECK_SKIP, "larger than RAM" },
    { "ttm-limit", machine_halo, NULL, CHECK_OK, "112 GiB of 125 GiB" },
    { "gtt-over-ttm", machine_halo, gttsize_only, CHECK_WARN, "ttm.pages_limit=28573696" },
    { "gtt-over-ttm", machine_halo, gtt_a_bit_above, CHECK_WARN, "ttm.pages_limit=28573696" },
    { "gtt-over-ttm", machine_halo, carve_out_only, CHECK_SKIP, NULL },
    { "gtt-over-ttm", machine_halo, limit_unknown, CHECK_UNKNOWN, NULL },
    { "gtt-over-ttm", machine_halo, NULL, CHECK_OK, NULL },
    { "gtt-over-ram", machine_halo, gtt_above_ram, CHECK_WARN, "128 GiB" },
    { "gtt-over-ram", machine_halo, ram_unknown, CHECK_UNKNOWN, NULL },
    { "gtt-over-ram", machine_halo, in_container_above_ram, CHECK_WARN, "# on the host" },
    { "gtt-over-ram", machine_halo, NULL, CHECK_OK, NULL },
    { "gpu-memory", machine_card, small_gpu, CHECK_WARN, "3 GiB" },
    { "gpu-memory", machine_card, size_unknown, CHECK_UNKNOWN, NULL },
    { "gpu-memory", machine_card, NULL, CHECK_OK, NULL },
    { "vram-in-use", machine_card, vram_taken, CHECK_WARN, "9 GiB of 24 GiB" },
    { "vram-in-use", machine_card, use_unknown, CHECK_UNKNOWN, NULL },
    { "vram-in-use", machine_card, NULL, CHECK_OK, NULL },
    { "gpu-processes", machine_card, trainer_left, CHECK_WARN, "kill 4711" },
    { "gpu-processes", machine_card, not_live, CHECK_UNKNOWN, NULL },
    { "gpu-processes", machine_card, NULL, CHECK_OK, NULL },
    { "memory-available", machine_card, ram_full, CHECK_WARN, "2 GiB of 64 GiB" },
    { "memory-available", machine_card, ram_low, CHECK_WARN, "5 GiB of 64 GiB" },
    { "memory-available", machine_card, free_unknown, CHECK_UNKNOWN, NULL },
    { "memory-available", machine_card, NULL, CHECK_OK, NULL },
    { "cgroup-limit", machine_card, tight_cgroup, CHECK_WARN, "16 GiB of 64 GiB" },
    { "cgroup-limit", machine_card, wide_cgroup, CHECK_OK, NULL },
    { "cgroup-limit", machine_card, NULL, CHECK_SKIP, NULL },
    { "swap", machine_card, little_ram, CHECK_WARN, "fallocate -l 40G" },
    { "swap", machine_card, little_ram_swap, CHECK_OK, NULL },
    { "swap", machine_card, small_card, CHECK_OK, "small LoRA" },
    { "swap", machine_card, swap_unknown, CHECK_UNKNOWN, NULL },
    { "swap", machine_halo, NULL, CHECK_OK, "14B" },
    { "huge-pages", machine_card, no_thp, CHECK_WARN, "transparent_hugepage" },
    { "huge-pages", machine_card, thp_unknown, CHECK_UNKNOWN, NULL },
    { "huge-pages", machine_card, NULL, CHECK_OK, NULL },

    { "disk-cache", machine_card, cache_full, CHECK_FAIL, "/home/user/.cache" },
    { "disk-cache", machine_card, cache_low, CHECK_WARN, NULL },
    { "disk-cache", machine_card, no_disks, CHECK_UNKNOWN, NULL },
    { "disk-cache", machine_card, NULL, CHECK_OK, NULL },
    { "disk-work", machine_card, work_low, CHECK_WARN, "20 GiB" },
    { "disk-work", machine_card, work_full, CHECK_FAIL, NULL },
    { "disk-work", machine_card, no_disks, CHECK_UNKNOWN, NULL },
    { "disk-work", machine_card, NULL, CHECK_OK, NULL },
    { 0 },
};
/* clang-format on */
