#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cairn doctor: its contract on every captured machine, and the probe against a torch that is not one.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

halo=$data/sysfs-synthetic/gfx1151-kernel7-with-cwsr-size
both=$data/sysfs-synthetic/gfx1031-gfx1036-rx6750xt-plus-igpu
fake=$data/fake_torch

# status_of ID STATUS: the check of the last --json run.
status_of()
{
    json_is "[c['status'] for c in d['checks'] if c['id'] == '$1'] == ['$2']"
}

remedy_has()
{
    json_is "any('''$2''' in (c['remedy'] or '') for c in d['checks'] if c['id'] == '$1')"
}

every_check_is_documented()
{
    run doctor --list --json
    status_is 0
    err_is_empty
    json_is 'd["schema"] == 1 and len(d["checks"]) >= 40'
    json_is 'all(set(c) == {"id", "group", "what", "source"} for c in d["checks"])'
    json_is 'all("https://" in c["source"] and len(c["what"]) > 10 for c in d["checks"])'
    ids=$(python3 -c 'import json,sys; [print(c["id"]) for c in json.load(sys.stdin)["checks"]]' <"$out")
    run doctor --list
    status_is 0
    for id in $ids; do
        out_has "  $id "
    done
}

a_machine_without_a_gpu_gets_the_truth()
{
    mkdir -p "$tmp/bare/sys/class/drm" "$tmp/bare/sys/module" "$tmp/bare/proc"
    echo 'MemTotal: 16000000 kB' >"$tmp/bare/proc/meminfo"
    run doctor --root "$tmp/bare"
    status_is 3
    out_has 'no AMD GPU found'
    run doctor --root "$tmp/bare" --json
    status_is 3
    status_of gpu-present fail
    json_is 'd["verdict"] == "broken" and d["first"] == "gpu-present" and "no AMD GPU" in d["summary"]'
    json_is 'not any(c["group"] in ("kernel", "libraries") for c in d["checks"])'
}

the_contract_holds_on_every_capture()
{
    for root in "$data"/sysfs/* "$data"/sysfs-synthetic/*; do
        run doctor --json --root "$root"
        err_is_empty
        json_is 'd["schema"] == 1 and d["verdict"] in ("works", "degraded", "broken", "unknown")'
        json_is 'all(list(c) == ["id", "group", "status", "fact", "why", "remedy", "source"] for c in d["checks"])'
        json_is 'all(c["status"] in ("ok", "warn", "fail", "unknown") for c in d["checks"])'
        json_is 'all(c["fact"] and (c["why"] or c["status"] in ("ok", "unknown")) for c in d["checks"])'
        json_is '(d["verdict"] == "broken") == any(c["status"] == "fail" for c in d["checks"])'
        json_is 'd["first"] is None or d["first"] in [c["id"] for c in d["checks"]]'
        json_is 'd["summary"] and "\n" not in d["summary"]'
        case $root in
        *nokfd* | *drm-only* | *smallbar* | *gttsize-only* | *kfd-absent*) status_is 3 ;;
        *gfx801* | *gfx803*) status_is 1 ;;
        *) status_is 0 ;;
        esac
    done
}

every_remedy_can_be_pasted()
{
    for root in "$data"/sysfs/* "$data"/sysfs-synthetic/*; do
        run doctor --json --root "$root"
        python3 - "$out" "$tmp" <<'PYTHON'
import json, sys
for i, check in enumerate(json.load(open(sys.argv[1]))['checks']):
    if check['remedy']:
        open('%s/remedy.%03d' % (sys.argv[2], i), 'w').write(check['remedy'] + '\n')
PYTHON
        for remedy in "$tmp"/remedy.*; do
            bash -n "$remedy" 2>"$err" || fail "not a shell's: $(cat "$remedy")"
        done
        rm -f "$tmp"/remedy.*
    done
}

a_container_is_not_told_to_boot()
{
    cp -r "$data/sysfs/gfx1151-strixhalo-hal0-lxc-container" "$tmp/lxc"
    mkdir -p "$tmp/lxc/run/systemd" "$tmp/lxc/etc/default"
    echo lxc >"$tmp/lxc/run/systemd/container"
    echo ID=debian >"$tmp/lxc/etc/os-release"
    touch "$tmp/lxc/etc/default/grub"
    run doctor --json --root "$tmp/lxc"
    json_is 'not [c for c in d["checks"] if "reboot" in (c["remedy"] or "") and not c["remedy"].startswith("# on the host")]'
    json_is '[c for c in d["checks"] if (c["remedy"] or "").startswith("# on the host")]'
}

the_report_is_short_unless_asked()
{
    run doctor --root "$both"
    out_lacks '  ok '
    out_has 'kernel: '
    short=$(wc -l <"$out")
    run doctor -v --root "$both"
    out_has '  ok '
    [ "$short" -lt "$(wc -l <"$out")" ] || fail 'nothing was left out'
    run doctor --only env --root "$both"
    out_has '  ok '
    out_has ' in environment;'
    run doctor --only torch --json --root "$both"
    json_is '{c["group"] for c in d["checks"]} <= {"pytorch"}'
}

one_command_is_printed_once()
{
    python3 "$here/../tools/mktree.py" "$tmp/old" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx1030,gfx1100
    run doctor --root "$halo" --torch "$tmp/old/venv"
    [ "$(sed '/knowledge reviewed/,$d' "$out" | grep -c 'pip install --force-reinstall torch ')" -le 2 ] ||
        fail 'the same command again and again'
}

both_ways_are_named()
{
    run doctor --json --root "$halo"
    json_is '[w["way"] for w in d["ways"]] == ["pytorch", "native"] and not any(w["proven"] for w in d["ways"])'
    run doctor --json --gpu 1 --root "$both"
    json_is '"--gpu 1" in d["ways"][0]["command"]'
}

the_plan_cures_what_a_variable_can()
{
    python3 "$here/../tools/mktree.py" "$tmp/old" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx1030,gfx1100
    run doctor --json --root "$both" --torch "$tmp/old/venv"
    json_is 'd["verdict"] == "broken" and d["first"] == "torch-target" and d["plan_cures"]'
    json_is '"cairn run -- COMMAND" in d["summary"] and "HSA_OVERRIDE_GFX_VERSION" in d["summary"]'
    run doctor --json --gpu 1 --root "$both" --torch "$tmp/old/venv"
    json_is 'd["plan_cures"] and "cairn run --gpu 1 -- COMMAND" in d["summary"]'
    # shellcheck disable=SC2016 # for the user's shell
    remedy_has env-planned 'eval "$(cairn env --gpu 1)"'
    HIP_VISIBLE_DEVICES=1 run doctor --json --root "$both" --torch "$tmp/old/venv"
    # shellcheck disable=SC2016
    remedy_has env-planned 'eval "$(cairn env)"'
    HSA_OVERRIDE_GFX_VERSION=10.3.0 run doctor --json --root "$both" --torch "$tmp/old/venv"
    json_is 'd["verdict"] == "degraded" and not d["plan_cures"]'
    python3 "$here/../tools/mktree.py" "$tmp/far" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx906
    run doctor --json --root "$both" --torch "$tmp/far/venv"
    json_is 'd["verdict"] == "broken" and not d["plan_cures"]'
    # A wheel for this chip alone: under a foreign name not one kernel is found.
    python3 "$here/../tools/mktree.py" "$tmp/alone" --torch 2.9.1+rocm7.10 --hip 7.1.0 --layout kpack --targets gfx1151
    HSA_OVERRIDE_GFX_VERSION=11.0.0 run doctor --json --root "$halo" --torch "$tmp/alone/venv"
    status_of override fail
    json_is 'd["verdict"] == "broken" and d["first"] == "override" and d["plan_cures"]'
}

a_wrapped_remedy_is_the_same_command()
{
    halo_with debian 65536000
    run doctor --root "$tmp/halo"
    # From the arrow to the next finding, as a person would copy it.
    awk '/may map only/ { on = 1; next } on && /^(  )?[a-zA-Z?]/ { exit } on && /→/ { copy = 1 } on && copy' "$out" |
        sed 's/→//' >"$tmp/pasted"
    grep -q '\\$' "$tmp/pasted" || fail 'the command was expected to be wrapped'
    sed 's/sudo/true/g' "$tmp/pasted" | bash 2>"$err" || fail "does not run: $(cat "$tmp/pasted")"
}

text_fits_a_terminal()
{
    for root in "$data"/sysfs/* "$data"/sysfs-synthetic/*; do
        run doctor --all --root "$root"
        long=$(grep -v https:// "$out" | python3 -c 'import sys; [print(l) for l in sys.stdin if len(l) > 101]')
        [ -z "$long" ] || fail "over 100 columns: $long"
    done
}

ascii_where_the_locale_has_no_more()
{
    for root in "$data"/sysfs/*; do
        LC_ALL=C run doctor --all --root "$root"
        ! LC_ALL=C grep -n '[^ -~]' "$out" >"$err" || fail 'not ASCII'
    done
    LC_ALL=C run doctor --root "$data/sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu"
    out_has '       > export ROCR_VISIBLE_DEVICES=0'
}

# halo_with ID KIB: a captured gfx1151 in $tmp/halo, of that distribution and RAM, with the kernel's default limit.
halo_with()
{
    rm -rf "$tmp/halo"
    cp -r "$halo" "$tmp/halo"
    mkdir -p "$tmp/halo/proc/sys/kernel" "$tmp/halo/etc"
    echo "ID=$1" >"$tmp/halo/etc/os-release"
    echo "6.18.9" >"$tmp/halo/proc/sys/kernel/osrelease"
    echo "quiet splash" >"$tmp/halo/proc/cmdline"
    printf 'MemTotal: %d kB\nMemAvailable: %d kB\nSwapTotal: 8388608 kB\n' "$2" $(($2 / 2)) >"$tmp/halo/proc/meminfo"
    echo $(($2 / 8)) >"$tmp/halo/sys/module/ttm/parameters/pages_limit"
    echo $(($2 * 512)) >"$tmp/halo/sys/class/drm/renderD128/device/mem_info_gtt_total"
}

the_memory_limit_fits_the_ram()
{
    halo_with ubuntu 131072000 # 125 GiB: 16 stay with Linux
    run doctor --json --root "$tmp/halo"
    status_of ttm-limit warn
    remedy_has ttm-limit 'ttm.pages_limit=28573696'
    remedy_has ttm-limit 'sudo update-grub'
    halo_with fedora 32505856 # 31 GiB: a fifth stays
    run doctor --json --root "$tmp/halo"
    remedy_has ttm-limit 'sudo grubby --update-kernel=ALL --args="ttm.pages_limit=6291456"'
    halo_with arch 131072000
    run doctor --json --root "$tmp/halo"
    remedy_has ttm-limit 'grub-mkconfig -o /boot/grub/grub.cfg'
    echo 28573696 >"$tmp/halo/sys/module/ttm/parameters/pages_limit"
    run doctor --json --root "$tmp/halo"
    status_of ttm-limit ok
}

a_large_carve_out_is_the_wrong_way_round()
{
    halo_with ubuntu 32505856
    echo $((96 << 30)) >"$tmp/halo/sys/class/drm/renderD128/device/mem_info_vram_total"
    run doctor --json --root "$tmp/halo"
    status_of carve-out warn
    remedy_has carve-out 'ttm.pages_limit=28835840'
}

gtt_above_ram_is_found_in_a_real_capture()
{
    run doctor --json --root "$data/sysfs/gfx1151-strixhalo-hal0-lxc-container"
    status_of gtt-over-ram warn
    run doctor --json --root "$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt"
    status_of gtt-over-ram ok
    status_of ttm-limit ok
}

a_small_bar_is_found_in_a_real_capture()
{
    run doctor --json --root "$data/sysfs/gfx900-vega56-desktop-smallbar"
    status_of resizable-bar warn
    run doctor --json --root "$data/sysfs/gfx1030-rx6900xt-desktop-drm-only"
    status_of resizable-bar ok
}

bad_firmware_is_a_failure()
{
    halo_with debian 131072000
    echo 0x00000083 >"$tmp/halo/sys/class/drm/renderD128/device/fw_version/mes_fw_version"
    run doctor --json --root "$tmp/halo"
    status_is 1
    status_of mes-firmware fail
}

a_chip_of_the_radeon_driver_is_beyond_help()
{
    run doctor --json --root "$data/sysfs/nokfd-hd7870-radeon-driver"
    status_of gpu-driver warn
    json_is "'no fix' in d['summary'] and 'gpu-in-kfd' in d['summary']"
}

an_integrated_gpu_in_the_way_is_named()
{
    run doctor --json --root "$both"
    status_of gpu-integrated warn
    remedy_has gpu-integrated 'export ROCR_VISIBLE_DEVICES=0'
    ROCR_VISIBLE_DEVICES=0 run doctor --json --root "$both"
    status_of gpu-integrated ok
}

variables_of_old_guides_are_named()
{
    HSA_OVERRIDE_GFX_VERSION=gfx1031 PYTORCH_NO_HIP_MEMORY_CACHING=1 AMD_SERIALIZE_KERNEL=3 \
        run doctor --json --root "$both"
    status_of override fail
    status_of env-harmful warn
    remedy_has env-harmful AMD_SERIALIZE_KERNEL
    status_is 1
    HIP_VISIBLE_DEVICES='' run doctor --json --root "$both"
    status_of visible-devices fail
}

one_group_can_be_asked_for()
{
    run doctor --json --only memory --root "$halo"
    json_is 'd["checks"] and {c["group"] for c in d["checks"]} == {"memory"}'
    run doctor --only memory --root "$halo"
    out_lacks 'hardware'
    run doctor --only nonsense --root "$halo"
    status_is 2
    out_is_empty
    err_has nonsense
}

what_does_not_apply_is_shown_when_asked_for()
{
    run doctor --json --root "$halo"
    json_is 'not [c for c in d["checks"] if c["id"] == "resizable-bar"]'
    run doctor --json --all --root "$halo"
    status_of resizable-bar skip
    json_is 'len(d["checks"]) >= 40'
}

the_chip_can_be_told()
{
    python3 "$here/../tools/mktree.py" "$tmp/old" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx1030,gfx1100
    mkdir -p "$tmp/empty/sys"
    run doctor --json --gfx gfx1031 --root "$tmp/empty" --torch "$tmp/old/venv"
    json_is 'd["plan_cures"] and "cairn run --gfx gfx1031 -- COMMAND" in d["summary"]'
    run doctor --json --gfx gfx1031 --root "$halo"
    status_of gpu-bf16 warn
    run doctor --gfx nonsense --root "$halo"
    status_is 2
    err_has nonsense
}

# probe MODE [OPTION…]: the doctor with a fake torch that behaves so.
probe()
{
    FAKE_TORCH=$1 run doctor --json --probe --torch "$fake" --root "$halo" "${@:2}"
    err_is_empty
    json_is 'd["probe"]["prediction"] in ("works", "degraded")'
}

probe_line()
{
    json_is "any(l['id'] == '$1' and l['status'] == '$2' and '$3' in l['fact'] for l in d['probe']['lines'])"
}

the_probe_confirms_the_prediction()
{
    probe fine
    status_is 0
    json_is 'd["probe"]["reality"] == "works" and d["probe"]["agrees"]'
    json_is 'len([l for l in d["probe"]["lines"] if l["id"] == "probe-convert" and l["status"] == "ok"]) == 6'
    json_is 'len([l for l in d["probe"]["lines"] if l["id"] == "probe-matmul" and l["status"] == "ok"]) == 3'
    json_is 'all("65536 of 65536" in l["fact"] for l in d["probe"]["lines"] if l["id"] == "probe-convert")'
    probe_line probe-accelerate ok 1.12.0
    probe_line probe-torch ok 2.12.0+rocm7.2.1
    probe_line probe-target ok gfx1151
    FAKE_TORCH=fine run doctor --probe --torch "$fake" --root "$halo"
    out_has '(as predicted)'
    out_has 'Found: works'
}

# What cannot be read is not known, which is not the same as not there.
a_topology_that_cannot_be_read()
{
    mkdir -p unread/sys/class/kfd/kfd/topology
    touch unread/sys/class/kfd/kfd/topology/nodes
    run doctor --json --root unread
    json_is 'any(c["id"] == "gpu-present" and c["status"] == "unknown" for c in d["checks"])'
    run smi --root unread
    err_has 'KFD topology'
    run env --json --root unread
    json_is 'any("not readable" in w for w in d["warnings"])'
}

# The working folder may be a clone of anything.
the_probe_runs_nothing_of_the_working_folder()
{
    mkdir -p clone
    for name in json ctypes os signal resource torch accelerate random; do
        echo "open('$tmp/RAN-$name', 'w')" >"clone/$name.py"
    done
    cd clone || return
    FAKE_TORCH=fine run doctor --json --probe --torch "$fake" --root "$halo"
    cd ..
    json_is 'd["probe"]["reality"] == "works"'
    [ -z "$(find "$tmp" -maxdepth 1 -name 'RAN-*')" ] || fail "executed: $(ls "$tmp"/RAN-*)"
}

the_probe_contradicts_the_prediction()
{
    probe no-device
    status_is 1
    json_is 'd["verdict"] == "broken" and not d["probe"]["agrees"]'
    probe_line probe-device fail is_available
    FAKE_TORCH=no-device run doctor --probe --torch "$fake" --root "$halo"
    out_has 'They differ'
}

wrong_numbers_are_found()
{
    probe zeros
    status_is 1
    probe_line probe-convert fail '65535 of 65536 wrong'
    json_is 'any("zeros" in (l["why"] or "") for l in d["probe"]["lines"])'
    json_is 'len([l for l in d["probe"]["lines"] if l["id"] == "probe-convert" and l["status"] == "ok"]) == 4'
    probe off-by-one
    status_is 1
    probe_line probe-convert fail 'f32 to bf16'
    probe wrong-product
    status_is 1
    probe_line probe-matmul fail '1 of 4096 wrong'
}

shared_memory_is_predicted_as_hip_tells_it()
{
    FAKE_TORCH=fine run doctor --json --probe --torch "$fake" --root "$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt"
    json_is '[(l["predicted"], l["differs"]) for l in d["probe"]["lines"] if l["id"] == "probe-memory"] == [("112.0 GiB", False)]'
}

another_target_is_noticed()
{
    FAKE_TORCH_TARGET=gfx1100 FAKE_TORCH=fine run doctor --json --probe --torch "$fake" --root "$halo"
    probe_line probe-target warn gfx1100
    json_is 'd["probe"]["reality"] == "degraded"'
}

failures_in_python_are_findings()
{
    probe import-error
    status_is 1
    probe_line probe-torch fail 'import torch failed'
    json_is 'any("libamdhip64.so.7" in (l["why"] or "") for l in d["probe"]["lines"])'
    probe broken-kernel
    probe_line probe-compute fail 'matmul in f32'
    probe crash
    status_is 1
    probe_line probe-python fail 'signal 11'
    probe crash-late
    probe_line probe-python fail 'bf16 to f32'
    probe exit
    probe_line probe-python fail 'status 7'
    probe noise
    status_is 0
    FAKE_ACCELERATE=missing FAKE_TORCH=fine run doctor --json --probe --torch "$fake" --root "$halo"
    status_is 0
    probe_line probe-accelerate warn 'not imported'
}

a_hang_ends_at_the_time_limit()
{
    before=$SECONDS
    probe hang --probe-timeout 1
    status_is 1
    probe_line probe-python fail 'after 1 s'
    [ $((SECONDS - before)) -lt 20 ] || fail 'took too long'
}

# Is the process there, and not merely waiting to be collected?
is_alive()
{
    state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
    [ -n "$state" ] && [ "$state" != Z ]
}

# The process ids that the fake torch wrote down are gone.
nothing_is_left()
{
    pids=$(sed -n 's/^pid //p' "$tmp/log")
    [ "$(echo "$pids" | wc -w)" -ge 2 ] || fail "two processes were expected: $pids"
    for pid in $pids; do
        is_alive "$pid" && fail "process $pid is left"
    done
}

a_hang_leaves_nothing_behind()
{
    rm -f "$tmp/log"
    export FAKE_TORCH_LOG=$tmp/log
    probe children --probe-timeout 1
    unset FAKE_TORCH_LOG
    nothing_is_left
}

an_interrupt_leaves_nothing_behind()
{
    for signal in INT TERM HUP; do
        rm -f "$tmp/log"
        said="cairn doctor --probe, SIG$signal"
        # A job in the background of a script ignores SIGINT, and one under nohup SIGHUP; python3 starts it as a
        # terminal would.
        FAKE_TORCH=children FAKE_TORCH_LOG=$tmp/log python3 - "$signal" "$tmp/log" "$cairn" doctor --probe \
            --torch "$fake" --root "$halo" >"$out" 2>"$err" <<'PYTHON' || fail 'did not end by the signal'
import os, signal, subprocess, sys, time
number, log = getattr(signal, 'SIG' + sys.argv[1]), sys.argv[2]
signal.signal(number, signal.SIG_DFL)
child = subprocess.Popen(sys.argv[3:])
for _ in range(200):
    time.sleep(0.05)
    if os.path.exists(log) and open(log).read().count('pid ') == 2:
        break
child.send_signal(number)
sys.exit(0 if child.wait(timeout=20) == -number else 1)
PYTHON
        out_is_empty
        nothing_is_left
    done
}

the_probe_gets_the_planned_environment()
{
    rm -f "$tmp/log"
    PYTORCH_NO_HIP_MEMORY_CACHING=1 FAKE_TORCH=fine FAKE_TORCH_LOG=$tmp/log run doctor --json --probe --torch "$fake" \
        --root "$both"
    grep -q '^ROCR_VISIBLE_DEVICES=' "$tmp/log" || fail 'the integrated GPU is not hidden'
    grep -q '^PYTORCH_NO_HIP_MEMORY_CACHING=' "$tmp/log" && fail 'a harmful variable came through'
    grep -q '^HOME=' "$tmp/log" || fail 'the own environment is gone'
    # gfx1031 needs an override with this wheel: the prediction is for the environment that the child got.
    status_of torch-target fail
    grep -q '^HSA_OVERRIDE_GFX_VERSION=10.3.0' "$tmp/log" || fail 'no override'
    json_is 'd["probe"]["prediction"] in ("works", "degraded") and d["probe"]["agrees"]'
}

a_python_that_is_not_there_is_a_finding()
{
    mkdir -p "$tmp/venv/lib/python3.11"
    cp -r "$fake" "$tmp/venv/lib/python3.11/site-packages"
    PATH=/nowhere FAKE_TORCH=fine run doctor --json --probe --torch "$tmp/venv" --root "$halo"
    probe_line probe-python fail 'could not be started'
    json_is 'd["probe"]["reality"] == "unknown"'
}

the_probe_wants_this_machine()
{
    run doctor --probe --root "$halo"
    status_is 2
    err_has --torch
    run doctor --probe --list
    status_is 2
    run doctor --probe --probe-timeout 0 --torch "$fake"
    status_is 2
}

it every_check_is_documented
it a_machine_without_a_gpu_gets_the_truth
it the_contract_holds_on_every_capture
it every_remedy_can_be_pasted
it a_container_is_not_told_to_boot
it the_report_is_short_unless_asked
it one_command_is_printed_once
it both_ways_are_named
it the_plan_cures_what_a_variable_can
it a_wrapped_remedy_is_the_same_command
it text_fits_a_terminal
it ascii_where_the_locale_has_no_more
it the_memory_limit_fits_the_ram
it a_large_carve_out_is_the_wrong_way_round
it gtt_above_ram_is_found_in_a_real_capture
it a_small_bar_is_found_in_a_real_capture
it bad_firmware_is_a_failure
it a_chip_of_the_radeon_driver_is_beyond_help
it an_integrated_gpu_in_the_way_is_named
it variables_of_old_guides_are_named
it one_group_can_be_asked_for
it what_does_not_apply_is_shown_when_asked_for
it the_chip_can_be_told
it the_probe_confirms_the_prediction
it a_topology_that_cannot_be_read
it the_probe_runs_nothing_of_the_working_folder
it the_probe_contradicts_the_prediction
it wrong_numbers_are_found
it shared_memory_is_predicted_as_hip_tells_it
it another_target_is_noticed
it failures_in_python_are_findings
it a_hang_ends_at_the_time_limit
it a_hang_leaves_nothing_behind
it an_interrupt_leaves_nothing_behind
it the_probe_gets_the_planned_environment
it a_python_that_is_not_there_is_a_finding
it the_probe_wants_this_machine
finish
