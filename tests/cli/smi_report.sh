#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn smi -q: the text, and the XML as programs read it.
. "$(dirname "$0")/lib.sh"
. "$data/../cli/smi_lib.sh"

# xml_is EXPRESSION: python, with the GPUs of the XML on stdout as g, and of(gpu, path) for the text of an element.
xml_is()
{
    python3 - "$out" "$1" 2>"$tmp/python" <<'PYTHON' || fail "not true of the XML: $1: $(tail -n 1 "$tmp/python")"
import sys
import xml.etree.ElementTree as ET
root = ET.parse(sys.argv[1]).getroot()
g = root.findall('gpu')
of = ET.Element.findtext
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}

# paths_are NUMBER PATH VALUE...: elements of that GPU, each of which is there once.
paths_are()
{
    python3 - "$out" "$@" >"$tmp/python" 2>&1 <<'PYTHON' || fail "$(tail -n 1 "$tmp/python")"
import sys
import xml.etree.ElementTree as ET
gpu = ET.parse(sys.argv[1]).getroot().findall('gpu')[int(sys.argv[2])]
for path, value in zip(sys.argv[3::2], sys.argv[4::2]):
    found = [e.text for e in gpu.findall(path)]
    if found != [value]:
        sys.exit(f'{path} is {found}, want {value!r}')
PYTHON
}

# influxdata/telegraf, plugins/inputs/nvidia_smi: the schema by the DOCTYPE, then these paths; it takes the first word of a
# value, without an x behind it, and passes over N/A.
telegraf()
{
    run smi -q -x --root "$both"
    status_is 0
    err_is_empty
    [ "$(sed -n 2p "$out")" = '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">' ] || fail "$(sed -n 2p "$out")"
    xml_is 'root.tag == "nvidia_smi_log" and root.findtext("driver_version") == "6.17.0" and root.findtext("attached_gpus") == "2"'
    xml_is '__import__("time").strptime(root.findtext("timestamp"), "%a %b %d %H:%M:%S %Y")'
    paths_are 0 product_name 'AMD Radeon RX 7900 XTX' uuid "$card_uuid" performance_state N/A compute_mode Default \
        fan_speed '40 %' fb_memory_usage/total '24560 MiB' fb_memory_usage/used '2048 MiB' fb_memory_usage/free '22512 MiB' \
        fb_memory_usage/reserved N/A temperature/gpu_temp '61 C' temperature/memory_temp '84 C' utilization/gpu_util '97 %' \
        utilization/memory_util '41 %' utilization/encoder_util N/A pci/pci_gpu_link_info/pcie_gen/current_link_gen 4 \
        pci/pci_gpu_link_info/link_widths/current_link_width 16x clocks/graphics_clock '2482 MHz' clocks/sm_clock '2482 MHz' \
        clocks/mem_clock '1249 MHz' clocks/video_clock '400 MHz' gpu_power_readings/power_draw '303.25 W' \
        gpu_power_readings/current_power_limit '327.00 W' module_power_readings/power_draw N/A \
        product_architecture RDNA3 max_clocks/video_clock '2000 MHz' pci/replay_counter 2 pci/pci_base_class 3 \
        pci/pci_sub_class 0 pci/pci_sub_system_id E4711DA2 temperature/gpu_temp_max_threshold '105 C' \
        temperature/gpu_temp_slow_threshold '100 C' temperature/gpu_temp_max_mem_threshold '108 C' \
        retired_pages/multiple_single_bit_retirement/retired_count N/A encoder_stats/session_count N/A fbc_stats/average_fps N/A \
        ecc_mode/current_ecc N/A display_active N/A serial N/A
    xml_is 'not g[0].findall("mig_devices/mig_device")'
}

# netdata/netdata, go.d/nvidia_smi: leaves out a GPU without a UUID, so an APU needs one, too.
netdata()
{
    run smi -q -x --root "$both"
    xml_is '[gpu.get("id") for gpu in g] == ["00000000:03:00.0", "00000000:C5:00.0"]'
    xml_is 'len({of(gpu, "uuid") for gpu in g} - {"", "N/A"}) == 2'
    paths_are 0 pci/tx_util N/A pci/rx_util N/A pci/pci_gpu_link_info/pcie_gen/max_link_gen N/A bar1_memory_usage/used '1024 MiB' bar1_memory_usage/free '23536 MiB' \
        mig_mode/current_mig N/A voltage/graphics_volt '912.000 mV' processes/process_info/pid 4711 \
        processes/process_info/process_name python3 processes/process_info/used_memory '1024 MiB' processes/process_info/type C
    xml_is 'g[1].find("processes") is not None and not g[1].findall("processes/process_info")'
}

# netdata 1.37, python.d/nvidia_smi.chart.py, and experiment-impact-tracker 0.1.8: the power where older drivers have it.
older_monitors()
{
    run smi -q -x --root "$both"
    paths_are 0 power_readings/power_draw '303.25 W' power_readings/power_limit '327.00 W' power_readings/enforced_power_limit '327.00 W'
    paths_are 1 power_readings/power_draw N/A
    run smi -q --root "$both" -i 0
    [ "$(grep -c 'Power Draw .*303.25 W' "$out")" = 1 ] || fail "the text tells the power $(grep -c 'Power Draw .*303.25 W' "$out") times"
}

an_apu()
{
    run smi -q -x --root "$both" -i 1
    status_is 0
    xml_is 'len(g) == 1 and root.findtext("attached_gpus") == "2"'
    paths_are 0 product_name 'AMD Radeon 8060S' uuid "$apu_uuid" minor_number 1 fb_memory_usage/total '102400 MiB' \
        utilization/gpu_util '3 %' gpu_power_readings/power_draw N/A fan_speed N/A pci/pci_bus C5 pci/pci_device_id 15861002 \
        pci/pci_bus_id 00000000:C5:00.0
    run smi -q -x --root "$data/sysfs/gfx1103-phoenix-780m-laptop"
    paths_are 0 product_name 'AMD Radeon 780M' fb_memory_usage/total '29977 MiB' gpu_power_readings/power_draw '3.10 W'
}

a_card_that_sleeps()
{
    cp -r "$both" "$tmp/asleep"
    both=$tmp/asleep put "$card"/power/runtime_status suspended
    run smi -q -x --root "$tmp/asleep" -i 0
    status_is 0
    paths_are 0 product_name 'AMD Radeon RX 7900 XTX' fb_memory_usage/total '24560 MiB' fb_memory_usage/used '2048 MiB' \
        utilization/gpu_util '0 %' pci/pci_gpu_link_info/link_widths/current_link_width N/A temperature/gpu_temp N/A gpu_power_readings/power_draw N/A clocks/graphics_clock N/A
}

many_gpus()
{
    run smi -q -x --root "$data/sysfs/gfx90a-mi210-8gpu-2hives"
    xml_is 'len(g) == 8 and len({of(gpu, "uuid") for gpu in g}) == 8 and [of(gpu, "minor_number") for gpu in g] == list("01234567")'
    run smi -q --root "$data/sysfs/gfx90a-mi210-8gpu-2hives"
    [ "$(grep -c '^GPU 0000' "$out")" = 8 ] || fail "$(grep -c '^GPU 0000' "$out") of 8 GPUs"
}

# One card with one serial number, of which netdata and others would make one GPU.
partitions()
{
    machine=$data/sysfs/gfx942-mi300x-cpx-partitions
    run smi -q -x --root "$machine"
    xml_is 'len(g) == 8 and len({of(gpu, "uuid") for gpu in g}) == 8'
    run smi --root "$machine" --query-gpu=index,uuid --format=csv,noheader
    uuid=$(sed -n 's/^3, //p' "$out")
    run smi --root "$machine" --query-gpu=index,uuid --format=csv,noheader -i "$uuid"
    lines_are "3, $uuid"
    ROCR_VISIBLE_DEVICES=3 run smi --root "$machine" --query-gpu=index,uuid --format=csv,noheader
    lines_are "0, $uuid"
}

# All machines that were captured, read back.
every_machine()
{
    for machine in "$data"/sysfs/*; do
        run smi -q -x --root "$machine"
        [ "$status" = 6 ] || xml_is 'len(g) == int(root.findtext("attached_gpus"))'
    done
}

# What sysfs and /proc say is text, whatever it looks like.
hostile_names()
{
    cp -r "$both" "$tmp/hostile"
    both=$tmp/hostile put "$card"/vbios_version '</gpu><&"\x27\033[31m\x01\xff\xef\xbf\xbf]]>'
    both=$tmp/hostile put proc/4711/comm 'a<b>&,c\033'
    run smi -q -x --root "$tmp/hostile"
    status_is 0
    paths_are 0 vbios_version "</gpu><&\"'?[31m???]]>" processes/process_info/process_name 'a<b>&,c?'
    xml_is 'len(g) == 2'
    run smi -q --root "$tmp/hostile"
    ! LC_ALL=C grep -q "$(printf '[\001\033]')" "$out" || fail "a control character"
    out_has '            Name                          : a<b>&,c?'
    run smi --root "$tmp/hostile" --query-compute-apps=process_name,pid --format=csv,noheader
    lines_are 'a<b>& c?, 4711'
}

the_text()
{
    run smi -q --root "$both"
    status_is 0
    err_is_empty
    [ "$(sed -n 2p "$out")" = '==============NVSMI LOG==============' ] || fail "$(sed -n 2p "$out")"
    out_has 'Driver Version                            : 6.17.0'
    out_has 'Attached GPUs                             : 2'
    out_has '    Product Name                          : AMD Radeon RX 7900 XTX'
    out_has '        Bus                               : 0xC5'
    out_has '                Current                   : 16x'
    out_has '        GPU Current Temp                  : 61 C'
    out_has '        Power Draw                        : 303.25 W'
    out_has '        Process ID                        : 4711'
    out_has '    Processes                             : None'
    out_lacks 'Samples'
    out_lacks '[N/A]'
    ! grep ': ' "$out" | grep -qv '^.\{42\}: ' || fail "a colon that is not in column 43"
    cp "$out" "$tmp/q"
    run smi -a --root "$both"
    diff <(tail -n +5 "$tmp/q") <(tail -n +5 "$out") >/dev/null || fail "-a is not -q"
}

# As programs cut it: grep -A4 GPU | grep Free, or -A5 of the drivers that tell what is reserved.
sections()
{
    run smi -q -d Memory --root "$both"
    for after in 4 5; do
        [ "$(grep -A "$after" GPU "$out" | grep Free | awk '{ print $3 }' | paste -sd ' ')" = '22512 92160' ] || fail "grep -A$after GPU | grep Free"
    done
    run smi -q -d MEMORY --root "$both" -i 0
    status_is 0
    tail -n +5 "$out" >"$tmp/rest"
    mv "$tmp/rest" "$out"
    lines_are 'Driver Version                            : 6.17.0' \
        'CUDA Version                              : N/A' '' \
        'Attached GPUs                             : 2' 'GPU 00000000:03:00.0' \
        '    FB Memory Usage' \
        '        Total                             : 24560 MiB' \
        '        Used                              : 2048 MiB' \
        '        Free                              : 22512 MiB' \
        '    BAR1 Memory Usage' \
        '        Total                             : 24560 MiB' \
        '        Used                              : 1024 MiB' \
        '        Free                              : 23536 MiB' \
        '    Conf Compute Protected Memory Usage' \
        '        Total                             : N/A' \
        '        Used                              : N/A' \
        '        Free                              : N/A' ''
    run smi -q --display=temperature,Pids --root "$both" -i 0
    out_has '        GPU Current Temp                  : 61 C'
    out_has '        Process ID                        : 4711'
    out_lacks 'Memory Usage'
    out_lacks 'Product Name'
    run smi -q -d POWER,CLOCK --root "$both" -i 0
    out_has '    Power Samples'
    out_has '    SM Clock Samples'
    run smi -q -d SUPPORTED_CLOCKS --root "$both" -i 0
    out_has '    Supported Clocks                      : N/A'
    for name in NONSENSE 'MEMORY,' MEM ''; do
        run smi -q -d "$name" --root "$both"
        status_is 2
        err_is_empty
        out_has 'is not recognized'
    done
}

# Every section is there and says something.
every_section()
{
    for name in MEMORY UTILIZATION ECC TEMPERATURE POWER CLOCK COMPUTE PIDS PERFORMANCE SUPPORTED_CLOCKS PAGE_RETIREMENT ACCOUNTING \
        ENCODER_STATS SUPPORTED_GPU_TARGET_TEMP VOLTAGE FBC_STATS ROW_REMAPPER RESET_STATUS GSP_FIRMWARE_VERSION; do
        run smi -q -d "$name" --root "$both" -i 0
        status_is 0
        [ "$(wc -l <"$out")" -gt 10 ] || fail "$(wc -l <"$out") lines"
        [ "$(wc -l <"$out")" -lt 60 ] || fail "$(wc -l <"$out") lines"
    done
}

no_gpu()
{
    mkdir -p "$tmp/empty/sys"
    for words in -q '-q -x' '-q -d MEMORY'; do
        # shellcheck disable=SC2086 # several words
        run smi $words --root "$tmp/empty"
        status_is 6
        lines_are 'No devices were found'
    done
}

into_a_file_and_again()
{
    run smi -q -x --root "$both" -f "$tmp/log.xml"
    status_is 0
    out_is_empty
    cp "$tmp/log.xml" "$out"
    xml_is 'len(g) == 2'
    said="cairn smi -q -x -lms"
    interrupt_after 2 "$cairn" smi -q -x --root "$both" -lms 100 >"$out" 2>"$err"
    [ "$(grep -c '^<nvidia_smi_log>$' "$out")" -ge 2 ] || fail "shown $(grep -c '^<nvidia_smi_log>$' "$out") times in two seconds"
}

it telegraf
it netdata
it older_monitors
it an_apu
it a_card_that_sleeps
it many_gpus
it partitions
it every_machine
it hostile_names
it the_text
it sections
it every_section
it no_gpu
it into_a_file_and_again
finish
