#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn diagnose: one answer for every shape in which a log comes, and clear words for what is no log.
. "$(dirname "$0")/lib.sh"

fault='Memory access fault by GPU node-1 on address 0x1e4000. Reason: Page not present or supervisor privilege.'

class_is()
{
    json_is "d[\"schema\"] == 1 and d[\"class\"] == \"$1\""
}

names_cause_and_fix()
{
    printf 'RuntimeError: HIP error: invalid device function\n' >log
    run diagnose --no-machine --gfx gfx1031 log
    status_is 0
    out_has no-kernel-image
    out_has 'log:1: RuntimeError'
    out_has "export HSA_OVERRIDE_GFX_VERSION='10.3.0'"
    run diagnose -n --gfx gfx1031 --json log
    class_is no-kernel-image
    json_is 'd["severity"] == "error" and 0 < d["confidence"] <= 1 and d["evidence"][0]["line"] == 1'
    json_is 'any(f["auto"] and f["set"] == {"HSA_OVERRIDE_GFX_VERSION": "10.3.0"} for f in d["fix"])'
    json_is '"gfx1031" in d["facts_used"] and d["fix"][-1]["action"] == "cpu"'
}

commands_can_be_pasted()
{
    printf 'RuntimeError: HIP error: invalid device function\n' >log
    run diagnose --no-machine --gfx gfx1031 --json log
    python3 -c 'import json, sys
for fix in json.load(open(sys.argv[1]))["fix"]:
    if "pip install" in fix["text"]:
        print(fix["text"].split("\n")[-1])' "$out" >wanted
    [ -s wanted ] || fail 'no command in the JSON'
    run diagnose --no-machine --gfx gfx1031 log
    sed -n '/-m pip/,/whl/p' "$out" >pasted
    grep -q '\\$' pasted || fail "the command was expected to be wrapped: $(cat pasted)"
    for file in wanted pasted; do
        (printf 'printf "%%s|" ' && cat "$file") | bash >"$file.words"
    done
    cmp -s wanted.words pasted.words || fail "not the same command: $(cat pasted.words)"
}

reads_standard_input()
{
    said='cairn diagnose -'
    printf '%s\n' "$fault" | "$cairn" diagnose -n --json - >"$out" 2>"$err"
    class_is gpu-memory-fault
    printf '%s\n' "$fault" | "$cairn" diagnose -n --json >"$out" 2>"$err"
    class_is gpu-memory-fault
}

reads_a_pipe()
{
    mkfifo pipe
    printf 'RuntimeError: HIP error: invalid device function\n' >pipe &
    timeout 30 "$cairn" diagnose -n pipe >"$out" 2>"$err" </dev/null || fail "exit $?"
    wait $! || fail 'the writer lost its reader'
    out_has 'no-kernel-image'
}

takes_files_together()
{
    printf '%s\n' "$fault" >log
    printf '[1.0] amdgpu 0000:03:00.0: amdgpu: GPU reset begin!\n' >dmesg
    run diagnose -n --json log dmesg
    class_is gpu-reset
    json_is 'd["evidence"][0]["file"] == "dmesg"'
}

reads_every_shape()
{
    printf '%s\r\n' 'first' "$fault" >crlf
    printf '\357\273\277%s\n' "$fault" >utf8-mark
    printf 'first\n%s\n' "$fault" | iconv -t UTF-16LE | (printf '\377\376' && cat) >utf16le
    printf 'first\n%s\n' "$fault" | iconv -t UTF-16BE | (printf '\376\377' && cat) >utf16be
    printf '%s\n' "$fault" | gzip >packed.gz
    printf '%s' "$fault" >no-line-feed
    printf 'Memory access \033[31mfault\033[0m by \033]0;title\007GPU node-1 on address 0x1. Reason: Page not present\n' >colours
    printf '\000\001\377\376%s\377\n' "$fault" >binary
    for shape in crlf utf8-mark utf16le utf16be packed.gz no-line-feed colours binary; do
        run diagnose -n --json "$shape"
        class_is gpu-memory-fault
    done
    run diagnose -n --json utf16le
    json_is 'd["evidence"][0]["line"] == 2'
}

sees_through_prefixes()
{
    for prefix in '[rank0]: ' '[1,0]<stderr>:' 'trainer-1  | ' 'Nov 15 10:00:00 box trainer[412]: ' '2026-11-15T10:00:00Z ERROR '; do
        printf '%sRuntimeError: HIP error: invalid argument\n' "$prefix" >log
        run diagnose -n --json log
        class_is hip-invalid-argument
        printf 'step 1\n%sKilled\n' "$prefix" >log
        run diagnose -n --json log
        class_is host-oom
    done
}

reads_a_progress_bar_without_line_feeds()
{
    python3 - "$cairn" >rss <<'PYTHON' || fail "needs memory by the size of the log: $(cat rss)"
import resource, subprocess, sys
def most_memory(name, steps):
    with open(name, 'w') as f:
        for i in range(1, steps):
            f.write(f'\rsteps:  {i // 2000}%|#    | {i}/200000 [01:00<10:00,  3.10it/s, avr_loss=0.0{600 + i % 50}]')
        f.write('\nHIP error: an illegal memory access was encountered\n')
    subprocess.run([sys.argv[1], 'diagnose', '-n', name], check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
small, large = most_memory('short', 1000), most_memory('bar', 200000)
print(f'{small} and {large} KiB')
sys.exit(large > small + 8192)  # the log grew by 15 MB
PYTHON
    run diagnose -n --json bar
    class_is gpu-memory-fault
    json_is 'd["evidence"][0]["line"] == 2'
}

reads_a_journal()
{
    mkdir -p run
    printf 'export HSA_OVERRIDE_GFX_VERSION=%s\n' "'9.0.0'" >run/env
    printf 'gfx1100\n%s\n' "$fault" >run/log
    echo '{"schema":1,"code":134}' >run/verdict.json
    : >run/events.jsonl
    for path in run run/log; do
        run diagnose -n --json "$path"
        class_is hsa-override-bad
        json_is '"exit status 134 (signal 6)" in d["facts_used"]'
    done
}

agrees_with_the_journals_verdict()
{
    mkdir -p hung guarded
    printf 'step 1 loss 1.0\n' >hung/log
    echo '{"schema":1,"code":130,"attempts":[{"end":"ended"},{"end":"hung","code":130}]}' >hung/verdict.json
    run diagnose -n --json hung
    class_is hang
    echo '{"schema":1,"code":137,"attempts":[{"end":"out-of-host-memory","code":137}]}' >hung/verdict.json
    run diagnose -n --json hung
    class_is host-oom
    json_is '"cairn stopped the trainer" in d["cause"]'
    # What an attempt before it suffered from is over.
    echo '{"schema":1,"code":0,"attempts":[{"end":"hung"},{"end":"ended","code":0}]}' >hung/verdict.json
    run diagnose -n --json hung
    class_is no-failure
    printf 'gfx1151\nHIP out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 62.00 GiB of which 1.00 GiB is free.\n' >guarded/log
    echo '{"schema":1,"code":1,"attempts":[{"end":"ended","code":1,"refused":2,"refused_bytes":4294967296}]}' >guarded/verdict.json
    run diagnose -n --json guarded
    class_is oom-unified-limit
    json_is '"refused 2 allocations (4 GiB in all)" in d["cause"] and not any("pages_limit" in f["text"] for f in d["fix"])'
}

what_cairn_run_sets_itself_is_its_option()
{
    mkdir -p staged
    printf 'RuntimeError: HIP error: invalid argument\n' >staged/log
    echo '{"schema":1,"code":1,"attempts":[{"end":"ended","code":1}]}' >staged/verdict.json
    echo '{"schema":1,"gpus":[{"gfx":"gfx1151","kind":"integrated","index":0,"rocm_capable":true}],"default_gpu":0,"env":{"CAIRN_PRELOAD":"record"}}' >staged/context.json
    run diagnose -n staged
    out_has 'cairn run --preload=record,stage,retry -- COMMAND'
    out_lacks "export CAIRN_PRELOAD"
    run diagnose -n --json staged
    class_is hip-invalid-argument
    json_is '"gfx1151" in d["facts_used"] and d["fix"][0]["set"] == {"CAIRN_PRELOAD": "record,stage,retry"}'
    # Told by hand, the journal's own machine does not count.
    run diagnose -n --gfx gfx1100 --json staged
    json_is '"gfx1151" not in d["facts_used"]'
    echo '{"schema":1,"gpus":[' >staged/context.json
    run diagnose -n --json staged
    class_is hip-invalid-argument
}

uses_the_exit_status()
{
    : >empty
    run diagnose -n --json --exit 137 empty
    class_is host-oom
    run diagnose -n --json --exit 3221225477 empty
    class_is native-crash
    run diagnose -n --json --exit 0 empty
    class_is no-failure
    run diagnose -n --json empty
    status_is 1
    class_is unknown
    json_is '"empty" in d["cause"]'
    echo 'something else' >log
    run diagnose -n --json --exit 1 log
    status_is 1
    class_is unknown
}

leaves_healthy_and_foreign_logs_alone()
{
    printf 'step 1 loss 0.5\nno NaN loss so far, 0 errors\nnothing is stuck\nstep 2 loss 0.4\n' >log
    run diagnose -n --json --exit 0 log
    class_is no-failure
    json_is 'd["severity"] == "none" and d["fix"] == []'
    printf 'NVIDIA GeForce RTX 3090\nRuntimeError: CUDA error: invalid device ordinal\n' >log
    run diagnose -n --json --exit 1 log
    class_is not-rocm
}

tells_this_machine_from_another()
{
    printf 'Device 0: AMD Radeon RX 6700 XT, gfx1031\nRuntimeError: HIP error: invalid device function\n' >log
    run diagnose --json --root "$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt" log
    class_is no-kernel-image
    json_is 'any("gfx1031, which this machine does not have" in f for f in d["facts_used"])'
    printf 'HIP out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 62.00 GiB of which 1.00 GiB is free.\n' >log
    run diagnose --json --root "$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt" log
    class_is oom-unified-limit
    json_is 'd["fix"] and not any("pages_limit" in f["text"] for f in d["fix"])' # it is at 112 GiB of 125
}

lists_the_classes()
{
    run diagnose --list
    status_is 0
    out_has hsa-override-bad
    run diagnose --list --json
    json_is 'len(d["classes"]) == 32 and all(c["class"] and c["what"] for c in d["classes"])'
}

refuses_bad_input()
{
    run diagnose /nonexistent.log
    status_is 1
    err_has '/nonexistent.log'
    out_is_empty
    mkdir -p folder
    run diagnose folder
    status_is 1
    err_has 'no file "log"'
    : >log
    for wrong in --exit=x --exit=-1 --exit=99999999999 --gfx=radeon --gfx=gfx1031+ '--no-machine --root=/'; do
        # shellcheck disable=SC2086 # two words
        run diagnose $wrong log
        status_is 2
        out_is_empty
    done
    { seq -f 'steps: 1%%|x| %.0f/9000 [00:01<01:00, 1.1it/s, avr_loss=0.1]' 9000; echo 'RuntimeError: HIP error: invalid device function'; } | gzip >whole.gz
    head -c 9000 whole.gz >cut.gz
    run diagnose -n --json whole.gz
    json_is 'd["class"] == "no-kernel-image"'
    run diagnose -n --json cut.gz
    status_is 1
    json_is 'd["class"] == "unknown"'
    err_has 'cut.gz'
    head -c 100 /dev/urandom | gzip | head -c 40 >cut.gz
    run diagnose -n --json cut.gz
    [ "$status" -le 1 ] || fail "exit $status"
}

it names_cause_and_fix
it commands_can_be_pasted
it reads_standard_input
it reads_a_pipe
it takes_files_together
it reads_every_shape
it sees_through_prefixes
it reads_a_progress_bar_without_line_feeds
it reads_a_journal
it agrees_with_the_journals_verdict
it what_cairn_run_sets_itself_is_its_option
it uses_the_exit_status
it leaves_healthy_and_foreign_logs_alone
it tells_this_machine_from_another
it lists_the_classes
it refuses_bad_input
finish
