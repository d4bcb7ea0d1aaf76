# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of cairn smi share: a machine with two GPUs.  Sourced behind lib.sh.
# shellcheck disable=SC2154,SC2034 # of variables that lib.sh has

# A card with all its sensors, and an APU with the budget of 112 GiB less what the host has taken.
both=$tmp/both
put()
{
    mkdir -p "$both/$(dirname "$1")"
    printf '%b\n' "$2" >"$both/$1"
}
nodes=sys/class/kfd/kfd/topology/nodes
card=sys/class/drm/card1/device
apu=sys/class/drm/card0/device
put $nodes/1/gpu_id 111
put $nodes/1/properties 'simd_count 192\ngfx_target_version 110000\nlocation_id 768\nvendor_id 4098\ndevice_id 29772\nunique_id 1311768467463790320\ndrm_render_minor 129'
put $nodes/2/gpu_id 222
put $nodes/2/properties 'simd_count 80\ngfx_target_version 110501\nlocation_id 50432\nvendor_id 4098\ndevice_id 5510\ndrm_render_minor 128'
put $card/uevent 'DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SUBSYS_ID=1DA2:E471\nPCI_SLOT_NAME=0000:03:00.0'
put $card/revision 0xc8
put $card/mem_info_vram_total 25753026560
put $card/mem_info_vram_used 2147483648
put $card/mem_info_vis_vram_total 25753026560
put $card/mem_info_vis_vram_used 1073741824
put $card/pcie_replay_count 2
put $card/pp_dpm_vclk '0: 400Mhz *\n1: 2000Mhz'
put $card/gpu_busy_percent 97
put $card/mem_busy_percent 41
put $card/current_link_width 16
put $card/current_link_speed '16.0 GT/s PCIe'
put $card/pp_dpm_mclk '0: 96Mhz\n1: 1249Mhz *'
put $card/hwmon/hwmon3/temp1_input 61000
put $card/hwmon/hwmon3/temp3_input 84000
put $card/hwmon/hwmon3/temp1_crit 100000
put $card/hwmon/hwmon3/temp1_emergency 105000
put $card/hwmon/hwmon3/temp3_crit 108000
put $card/hwmon/hwmon3/in0_input 912
put $card/hwmon/hwmon3/power1_average 303250000
put $card/hwmon/hwmon3/power1_cap 327000000
put $card/hwmon/hwmon3/freq1_input 2482000000
put $card/hwmon/hwmon3/pwm1 102
put $apu/uevent 'DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:1586\nPCI_SLOT_NAME=0000:c5:00.0'
put $apu/mem_info_vram_total 536870912
put $apu/mem_info_vram_used 268435456
put $apu/mem_info_gtt_total 120259084288
put $apu/mem_info_gtt_used 10737418240
put $apu/gpu_busy_percent 3
put sys/class/kfd/kfd/proc/4711/vram_111 1073741824
put proc/4711/comm python3
put proc/sys/kernel/osrelease 6.17.0-12-generic
put proc/meminfo 'MemTotal: 131072000 kB\nMemAvailable: 94371840 kB'
# shellcheck disable=SC2034 # for the scripts that source this
card_uuid=GPU-123456789abcdef0 apu_uuid=GPU-0000-c5-00-0

lines_are()
{
    printf '%s\n' "$@" >"$tmp/want"
    diff "$tmp/want" "$out" >"$tmp/diff" || fail "$(head -n 4 "$tmp/diff" | tr '\n' '|')"
}

# nvidia WORDS: as the link is called.
nvidia()
{
    said="nvidia-smi $*"
    status=0
    (exec -a nvidia-smi "$cairn" "$@") >"$out" 2>"$err" </dev/null || status=$?
}

# ends_with_its_reader WORDS: a loop whose reader takes one line, or finds none, and is gone.
ends_with_its_reader()
{
    said="cairn smi $* | head -n 1"
    timeout 20 "$cairn" smi "$@" --root "$both" 2>"$err" | timeout 1 head -n 1 >"$out"
    [ "${PIPESTATUS[0]}" != 124 ] || fail "it went on for 20 seconds"
    err_is_empty
}
