#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn smi: the queries of programs that call nvidia-smi, as they ask them; its errors, its loops, and the link that
# `cairn run --with-smi` makes.
. "$(dirname "$0")/lib.sh"

. "$data/../cli/smi_lib.sh"

# ostris/ai-toolkit, ui/src/app/api/gpu/route.ts: splits the lines at ", " and reads numbers.
the_ui_of_ai_toolkit()
{
    run smi --root "$both" --query-gpu=index,name,driver_version,temperature.gpu,utilization.gpu,utilization.memory,memory.total,memory.free,memory.used,power.draw,power.limit,clocks.current.graphics,clocks.current.memory,fan.speed --format=csv,noheader,nounits
    status_is 0
    err_is_empty
    lines_are '0, AMD Radeon RX 7900 XTX, 6.17.0, 61, 97, 41, 24560, 22512, 2048, 303.25, 327.00, 2482, 1249, 40' \
        '1, AMD Radeon 8060S, 6.17.0, [N/A], 3, [N/A], 102400, 92160, 10240, [N/A], [N/A], [N/A], [N/A], [N/A]'
}

# anderskm/gputil, GPUtil/GPUtil.py: twelve columns, of which the last is a float.
gputil()
{
    run smi --root "$both" --query-gpu=index,uuid,utilization.gpu,memory.total,memory.used,memory.free,driver_version,name,gpu_serial,display_active,display_mode,temperature.gpu --format=csv,noheader,nounits
    status_is 0
    lines_are "0, $card_uuid, 97, 24560, 2048, 22512, 6.17.0, AMD Radeon RX 7900 XTX, [N/A], [N/A], [N/A], 61" \
        "1, $apu_uuid, 3, 102400, 10240, 92160, 6.17.0, AMD Radeon 8060S, [N/A], [N/A], [N/A], [N/A]"
}

# huggingface/accelerate, src/accelerate/utils/environment.py: counts the lines, takes the second column.
accelerate()
{
    run smi --root "$both" --query-gpu=count,name --format=csv,noheader
    lines_are '2, AMD Radeon RX 7900 XTX' '2, AMD Radeon 8060S'
    run smi --root "$both" --query-gpu=driver_version --format=csv,noheader
    lines_are 6.17.0 6.17.0
}

# Lightning-AI/pytorch-lightning, src/lightning/pytorch/accelerators/cuda.py: one GPU, floats.
lightning()
{
    run smi --query-gpu=utilization.gpu,memory.used,memory.free,utilization.memory,fan.speed,temperature.gpu,temperature.memory --format=csv,nounits,noheader --id=0 --root "$both"
    status_is 0
    lines_are '97, 2048, 22512, 41, 40, 61, 84'
}

# pytorch/pytorch, torch/utils/collect_env.py: the list without its UUIDs, and a word of the table.
collect_env()
{
    run smi -L --root "$both"
    status_is 0
    lines_are "GPU 0: AMD Radeon RX 7900 XTX (UUID: $card_uuid)" "GPU 1: AMD Radeon 8060S (UUID: $apu_uuid)"
    run smi -L --json --root "$both"
    status_is 0
    json_is 'len(d["gpus"]) == 2'
    run smi --root "$both"
    status_is 0
    python3 - "$out" <<'PYTHON' || fail "not the driver's version"
import re, sys
found = re.search(r'Driver Version: (.*?) ', open(sys.argv[1], encoding='utf-8').read())
sys.exit(not found or found.group(1) != '6.17.0')
PYTHON
}

# utkuozdemir/nvidia_gpu_exporter: asks for every column that the help names, and takes the header for their names.
every_column_of_the_help()
{
    run smi --help-query-gpu
    status_is 0
    names=$(sed -n 's/^"\([^"]*\)".*/\1/p' "$out" | paste -sd ,)
    run smi --root "$both" --query-gpu="$names" --format=csv
    status_is 0
    python3 - "$out" "$names" <<'PYTHON' || fail "not a column each, in the order asked"
import sys
lines = [line.split(', ') for line in open(sys.argv[1], encoding='utf-8').read().splitlines()]
names = sys.argv[2].split(',')
wrong = [name for name, head in zip(names, lines[0]) if head.split(' [')[0] != name]
sys.exit(len(lines) != 3 or len(set(map(len, lines))) != 1 or len(names) < 150 or bool(wrong))
PYTHON
    run smi --help-query-compute-apps
    out_has '"used_gpu_memory" or "used_memory"'
}

headers_and_units()
{
    run smi --root "$both" --query-gpu=gpu_name,memory.total,power.draw,clocks.sm,fan.speed,temperature.memory --format=csv
    lines_are 'name, memory.total [MiB], power.draw [W], clocks.current.sm [MHz], fan.speed [%], temperature.memory' \
        'AMD Radeon RX 7900 XTX, 24560 MiB, 303.25 W, 2482 MHz, 40 %, 84' \
        'AMD Radeon 8060S, 102400 MiB, [N/A], [N/A], [N/A], N/A'
    run smi --root "$both" --query-gpu=memory.used --format=csv,nounits
    lines_are 'memory.used [MiB]' 2048 10240
    run smi --root "$both" --query-gpu=memory.used
    lines_are 'memory.used [MiB]' '2048 MiB' '10240 MiB'
    run smi --root "$both" --query-gpu=memory.used --format=noheader
    lines_are '2048 MiB' '10240 MiB'
    run smi --root "$both" --query-gpu timestamp --format csv,noheader -i 0
    grep -qxE '[0-9]{4}/[0-9]{2}/[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}' "$out" || fail "$(cat "$out")"
}

processes()
{
    run smi --root "$both" --query-compute-apps=pid,process_name,used_memory --format=csv
    status_is 0
    lines_are 'pid, process_name, used_gpu_memory [MiB]' '4711, python3, 1024 MiB'
    run smi --root "$both" --query-compute-apps=gpu_uuid,pid,used_memory --format=csv,noheader,nounits
    lines_are "$card_uuid, 4711, 1024"
    run smi --root "$both" --query-compute-apps=pid --format=csv,noheader -i 1
    status_is 0
    out_is_empty
}

one_gpu_by_any_of_its_names()
{
    for id in 0 "$card_uuid" 00000000:03:00.0 0000:03:00.0 03:00.0; do
        run smi --root "$both" --query-gpu=index --format=csv,noheader -i "$id"
        status_is 0
        lines_are 0
    done
    for id in 1 0000:C5:00.0 "$apu_uuid"; do
        run smi --root "$both" --query-gpu=index,count --format=csv,noheader --id="$id"
        lines_are '1, 2'
    done
    run smi --root "$both" --query-gpu=index --format=csv,noheader -i 1,0
    lines_are 0 1
    run smi --root "$both" -L -i 1
    lines_are "GPU 1: AMD Radeon 8060S (UUID: $apu_uuid)"
}

# The index is HIP's, which counts what ROCR_VISIBLE_DEVICES leaves; the other variables are HIP's own business.
the_index_is_that_of_hip()
{
    ROCR_VISIBLE_DEVICES=1 run smi --root "$both" --query-gpu=index,name,count --format=csv,noheader
    lines_are '0, AMD Radeon 8060S, 1'
    CUDA_VISIBLE_DEVICES=1 HIP_VISIBLE_DEVICES=1 run smi --root "$both" --query-gpu=index --format=csv,noheader
    lines_are 0 1
    run smi --root "$data/sysfs/gfx90a-mi210-8gpu-2hives" --query-gpu=index,uuid --format=csv,noheader
    [ "$(wc -l <"$out")" = 8 ] || fail "$(wc -l <"$out") of 8 GPUs"
}

# `cairn gpu` and `cairn smi` agree on what an APU can use.
the_budget_is_that_of_cairn_gpu()
{
    machine=$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt
    run gpu --json --root "$machine"
    usable=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["gpus"][0]["usable_bytes"] >> 20)' "$out")
    run smi --root "$machine" --query-gpu=memory.total --format=csv,noheader,nounits
    lines_are "$usable"
}

the_table()
{
    run smi --root "$both"
    status_is 0
    out_has '|   0  AMD Radeon RX 7900 XTX         N/A |   00000000:03:00.0 N/A |                  N/A |'
    out_has '| 40%   61C   N/A            303W /  327W |    2048MiB /  24560MiB |     97%      Default |'
    out_has '|    0   N/A  N/A            4711      C   python3                                1024MiB |'
    # Scripts look for NVIDIA-SMI, take the third word for its version, and the ninth for that of CUDA.
    [ "$(awk '/NVIDIA-SMI/ { print NR, $3, $6, $9 }' "$out")" = '3 6.17.0 6.17.0 N/A' ] || fail "$(sed -n 3p "$out")"
    grep -q "^[A-Z][a-z][a-z] .* [0-9]\{4\}       cairn $CAIRN_VERSION\$" "$out" || fail "$(head -n 1 "$out")"
    ! tail -n +2 "$out" | grep -v '^$' | grep -qv '^.\{91\}$' || fail "a line that is not 91 columns wide"
    run smi --root "$data/sysfs/gfx908-mi100"
    out_has 'No running processes found'
}

# A monitor that knows no load or memory of a GPU leaves the GPU out, or breaks: nvsmi, GPUtil, Lightning.
a_card_that_sleeps()
{
    cp -r "$both" "$tmp/asleep"
    both=$tmp/asleep put "$card"/power/runtime_status suspended
    run smi --root "$tmp/asleep" -i 0 --query-gpu=utilization.gpu,utilization.memory,memory.total,memory.used,memory.free,temperature.gpu,power.draw,clocks.sm,pcie.link.gen.current,pcie.link.width.current --format=csv,noheader,nounits
    status_is 0
    lines_are '0, 0, 24560, 2048, 22512, [N/A], [N/A], [N/A], [N/A], [N/A]'
    run smi --root "$tmp/asleep" -i 0
    out_has '| N/A   N/A   N/A             N/A /   N/A |    2048MiB /  24560MiB |      0%      Default |'
}

as_json()
{
    run smi --json --root "$both" --query-gpu=index,memory.total,power.draw,uuid
    status_is 0
    json_is 'd == {"schema": 1, "gpus": [{"index": 0, "memory.total [MiB]": 24560, "power.draw [W]": 303.25, "uuid": "'"$card_uuid"'"}, {"index": 1, "memory.total [MiB]": 102400, "power.draw [W]": None, "uuid": "'"$apu_uuid"'"}]}'
    run smi --json --root "$both" -i 1
    json_is 'd["gpus"][0]["name"] == "AMD Radeon 8060S" and len(d["gpus"]) == 1'
    run smi --json --root "$both" --query-compute-apps=pid,name
    json_is 'd["compute_apps"] == [{"pid": 4711, "process_name": "python3"}]'
}

# Words, streams and statuses as NVIDIA's driver 580 has them.
errors_as_nvidia_smi_has_them()
{
    for names in name,no_such,other no_such; do
        run smi --root "$both" --query-gpu="$names" --format=csv
        status_is 2
        err_is_empty
        lines_are 'Field "no_such" is not a valid field to query.' ''
    done
    run smi --root "$both" '--query-gpu=index, name' --format=csv
    status_is 2
    lines_are 'Field " name" is not a valid field to query.' ''
    run smi --root "$both" --query-gpu=$'\e[31m' --format=csv
    status_is 2
    lines_are 'Field "?[31m" is not a valid field to query.' ''
    run smi --root "$both" --query-compute-apps=pid,uuid --format=csv
    status_is 2
    out_has 'Field "uuid" is not a valid field to query.'
    for format in xml csv,nonsense noheadercsv; do
        run smi --root "$both" --query-gpu=name --format="$format"
        status_is 2
        err_is_empty
        lines_are 'Format modifier is not recognized.'
    done
    run smi --root "$both" --query-gpu=index --query-compute-apps=pid --format=csv
    status_is 2
    lines_are 'Only one --query-* switch can be used at a time.'
    # Without a GPU a loop that is not refused ends.
    mkdir -p "$tmp/empty/sys"
    for words in '-l 0' '-l soon' --loop=86401 '-lms 0' --loop-ms= --loop-ms=1s --loop-ms=86400001; do
        for as in 'run smi' nvidia; do
            # shellcheck disable=SC2086 # several words
            $as --root "$tmp/empty" -L $words
            status_is 2
            err_is_empty
            lines_are 'Provided [-l(ms) | --loop(-ms)=] value is incorrect. Loop frequency must be greater than 0.' ''
        done
    done
}

no_gpu_is_exit_6()
{
    mkdir -p "$tmp/empty/sys"
    for question in -L --query-gpu=name\ --format=csv ''; do
        # shellcheck disable=SC2086 # two words
        run smi --root "$tmp/empty" $question
        status_is 6
        lines_are 'No devices were found'
    done
    err_is_empty
    run smi --root "$data/sysfs/gfx1201-rx9070xt-desktop-drm-only" -L
    status_is 6
    lines_are 'No devices were found'
    err_has "HIP shows none"
    ROCR_VISIBLE_DEVICES='' run smi --root "$both" -L
    status_is 6
    err_has "HIP shows none"
    for id in 7 nonsense GPU-0000000000000000 0000:09:00.0 :; do
        run smi --root "$both" --query-gpu=index --format=csv -i "$id"
        status_is 6
        lines_are 'No devices were found'
    done
    run smi --root "$both" --query-gpu=index --format=csv,noheader -i 0,7,0
    status_is 0
    lines_are 0
    run smi --root "$tmp/empty" --json
    status_is 6
    json_is 'd["gpus"] == []'
    run smi --root "$tmp/no-such" -L
    status_is 2
    err_has "No such file"
}

# An option that is none is wrong usage; nvidia-smi says so on stdout and ends with 255, and so does the link.
wrong_usage()
{
    for words in --nonsense nonsense -Z -pm -lms100 --query-gpu; do
        run smi "$words"
        status_is 2
        out_is_empty
        err_has 'cairn smi'
        nvidia "$words"
        status_is 255
        err_is_empty
        lines_are "ERROR: Option $words is not recognized. Please run 'nvidia-smi -h'."
        nvidia -L "$words"
        status_is 255
        lines_are "ERROR: Option $words is not recognized. Please run 'nvidia-smi -h' for help."
    done
    for words in --format=csv -x '-d MEMORY' '-q -x -d MEMORY' '-q --query-gpu=name' '-L --query-gpu=name' '-L -q' \
        '-q --json' '--json --query-gpu=name --format=csv' '-l 1 --loop-ms=100'; do
        # shellcheck disable=SC2086 # several words
        run smi --root "$tmp/empty" $words
        status_is 2
        out_is_empty
        err_has ' go'
        # shellcheck disable=SC2086 # several words
        nvidia --root "$tmp/empty" $words
        status_is 255
        err_is_empty
        lines_are "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help." ''
    done
}

# Nothing that changes a GPU is understood.
no_option_changes_a_gpu()
{
    for words in '-pm 1' '-pl 200' '-ac 877,1530' '-r' '-c 0' '-lgc 1000' '-e 0' '-mig 1' '--gpu-reset' '--power-limit=200'; do
        # shellcheck disable=SC2086 # several words
        nvidia $words
        status_is 255
        out_has "is not recognized"
    done
}

versions()
{
    nvidia --version --root "$both"
    status_is 0
    lines_are 'NVIDIA-SMI version  : 6.17.0' 'NVML version        : N/A' 'DRIVER version      : 6.17.0' 'CUDA Version        : N/A' \
        "Cairn version       : $CAIRN_VERSION"
    run smi --version --root "$tmp"
    status_is 0
    out_has 'DRIVER version      : N/A'
    CAIRN_SMI_ROOT=$both nvidia -h
    status_is 0
    [ "$(head -n 1 "$out")" = 'NVIDIA System Management Interface -- v6.17.0' ] || fail "$(head -n 1 "$out")"
    out_has '--query-gpu'
    run smi --help
    [ "$(head -n 1 "$out")" = 'usage: cairn smi [options]' ] || fail "$(head -n 1 "$out")"
}

# What AMD GPUs do not list is a list without lines.
lists_that_are_empty()
{
    for query in 'supported-clocks=gr,memory|graphics [MHz], memory [MHz]' \
        'accounted-apps=pid,gpu_util,max_memory_usage,time|pid, gpu_utilization [%], max_memory_usage [MiB], time [ms]' \
        'retired-pages=timestamp,gpu_uuid,retired_pages.address,retired_pages.cause|timestamp, gpu_uuid, retired_pages.address, retired_pages.cause'; do
        run smi --root "$both" --query-"${query%%|*}" --format=csv
        status_is 0
        err_is_empty
        lines_are "${query#*|}"
        run smi --root "$both" --query-"${query%%|*}" --format=csv,noheader
        status_is 0
        out_is_empty
        run smi --root "$tmp/empty" --query-"${query%%|*}" --format=csv
        status_is 6
    done
    run smi --root "$both" --query-retired-pages=pid --format=csv
    status_is 2
    run smi --help-query-supported-clocks
    out_has '"graphics" or "gr"'
    run smi --json --root "$both" --query-retired-pages=gpu_uuid
    json_is 'd["retired_pages"] == []'
}

loops_end_on_interrupt()
{
    said="cairn smi --loop-ms"
    status=0
    interrupt_after 2 "$cairn" smi --root "$both" --query-gpu=index,name --format=csv -lms 100 >"$out" 2>"$err" || status=$?
    status_is 0
    err_is_empty
    [ "$(grep -c '^index, name$' "$out")" = 1 ] || fail "the header is not there once"
    [ "$(grep -c '^0, ' "$out")" -ge 2 ] || fail "shown $(grep -c '^0, ' "$out") times in two seconds"
}

# With SIGPIPE as usual, and ignored as some parents leave it: the error of the write ends it then.
loops_end_when_nobody_reads()
{
    said="cairn smi --loop-ms | head"
    for handler in - ''; do
        # shellcheck disable=SC2064 # it is to be expanded now
        (trap "$handler" PIPE; exec timeout 20 "$cairn" smi --root "$both" --query-gpu=index --format=csv,noheader -lms 50) 2>"$err" | head -n 3 >"$out"
        status=${PIPESTATUS[0]}
        lines_are 0 1 0
        [ "$status" != 124 ] || fail "it went on for 20 seconds"
        err_is_empty
    done
}

# Also where there is nothing to say, and in the middle of a pause.
loops_end_without_a_write()
{
    ends_with_its_reader --query-compute-apps=pid -i 1 --format=csv,noheader -lms 100
    out_is_empty
    ends_with_its_reader --query-retired-pages=gpu_uuid --format=csv,noheader -lms 100
    out_is_empty
    ends_with_its_reader -L -l 60
    out_has 'GPU 0'
}

into_a_file()
{
    run smi --root "$both" --query-gpu=index --format=csv,noheader -f "$tmp/log.csv"
    status_is 0
    out_is_empty
    [ "$(paste -sd , "$tmp/log.csv")" = 0,1 ] || fail "$(cat "$tmp/log.csv")"
    run smi --root "$both" -L -f "$tmp/no/folder"
    status_is 1
    err_has "$tmp/no/folder"
    for words in -L 'dmon -c 1'; do
        # shellcheck disable=SC2086 # words
        run smi $words --root "$both" -f /dev/full
        status_is 1
        err_has 'write to /dev/full: No space left'
    done
}

export XDG_STATE_HOME=$tmp/state
links_left()
{
    find "$tmp/state" -name nvidia-smi | wc -l
}

a_trainer_finds_it()
{
    run run --with-smi --no-preflight --root "$both" -- sh -c 'command -v nvidia-smi && nvidia-smi --query-gpu=index,name --format=csv,noheader'
    status_is 0
    err_has "nvidia-smi is \`cairn smi\` for this run"
    grep -q "^$tmp/state/cairn/runs/.*/bin/nvidia-smi$" "$out" || fail "$(head -n 1 "$out") is not the link"
    # Beside a card the APU is hidden, and so HIP does not count it.
    out_has '0, AMD Radeon RX 7900 XTX'
    out_lacks '1, AMD Radeon 8060S'
    [ "$(links_left)" = 0 ] || fail "a link is left"
    run run --with-smi --no-preflight --no-env --root "$both" -- nvidia-smi -L
    out_has 'GPU 1: AMD Radeon 8060S'
    run run --no-preflight --root "$both" -- sh -c 'command -v nvidia-smi'
    out_lacks "$tmp"
}

a_failed_trainer_leaves_no_link()
{
    run run --with-smi --no-preflight --retries 0 --root "$both" -- sh -c 'nvidia-smi -L; kill -9 $$'
    status_is 137
    out_has 'GPU 0'
    [ "$(links_left)" = 0 ] || fail "a link is left"
}

a_killed_run_leaves_it_to_nobody()
{
    said="kill -9 of cairn run --with-smi"
    "$cairn" run --with-smi --no-preflight --root "$both" -- sh -c 'nvidia-smi -L >started.tmp; mv started.tmp started; sleep 60' 2>"$err" &
    pid=$!
    wait_until test -e started
    grep -q 'GPU 0' started || fail "it did not start"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    [ "$(links_left)" = 1 ] || fail "$(links_left) links"
    ! command -v nvidia-smi | grep -q "$tmp" || fail "it is in our PATH"
}

the_real_one_stays()
{
    cp -r "$both" "$tmp/mixed"
    both=$tmp/mixed put sys/bus/pci/devices/0000:01:00.0/uevent 'DRIVER=nvidia\nPCI_CLASS=30000\nPCI_ID=10DE:2684'
    run run --with-smi --no-preflight --root "$tmp/mixed" -- sh -c 'command -v nvidia-smi || echo none'
    status_is 0
    err_has "nvidia-smi is \`cairn smi\`"
    both=$tmp/mixed put usr/bin/nvidia-smi ''
    run run --with-smi --no-preflight --root "$tmp/mixed" -- sh -c 'command -v nvidia-smi || echo none'
    status_is 0
    err_has '/usr/bin/nvidia-smi'
    out_lacks "$tmp"
    run run --with-smi --no-preflight --root "$tmp/empty" -- true
    status_is 0
    err_has 'no AMD GPU'
}

it the_ui_of_ai_toolkit
it gputil
it accelerate
it lightning
it collect_env
it every_column_of_the_help
it headers_and_units
it processes
it one_gpu_by_any_of_its_names
it the_index_is_that_of_hip
it the_budget_is_that_of_cairn_gpu
it the_table
it a_card_that_sleeps
it as_json
it errors_as_nvidia_smi_has_them
it no_gpu_is_exit_6
it wrong_usage
it no_option_changes_a_gpu
it versions
it lists_that_are_empty
it loops_end_on_interrupt
it loops_end_when_nobody_reads
it loops_end_without_a_write
it into_a_file
it a_trainer_finds_it
it a_failed_trainer_leaves_no_link
it a_killed_run_leaves_it_to_nobody
it the_real_one_stays
finish
