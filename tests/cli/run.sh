#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Options and bad input of `cairn run`; processes, terminals and retries are in tests/run.
. "$(dirname "$0")/lib.sh"

desktop=$data/sysfs-synthetic/gfx1031-gfx1036-rx6750xt-plus-igpu
python3 -B "$data/../tools/mktree.py" "$tmp/wheel" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx1030,gfx1100 || exit 1
on_desktop=(run --root "$desktop" --torch "$tmp/wheel/venv")
export XDG_STATE_HOME=$tmp/state

newest()
{
    find "$tmp/state/cairn/runs" -mindepth 1 -maxdepth 1 | sort | tail -n 1
}

wants_a_command()
{
    run run
    status_is 2
    err_has "needs a command"
    run run --
    status_is 2
    run run --retries many -- true
    status_is 2
    err_has "many"
    run run --hang-after soon -- true
    status_is 2
    err_has "soon"
    run run --with NOEQUALS -- true
    status_is 2
    run run --trainer musuby-tuner -- true
    status_is 2
    err_has "musubi-tuner"
    run run --json -- true
    status_is 2
    err_has "--history"
    run run --history -- true
    status_is 2
}

options_end_at_the_command()
{
    run run -- echo --json -x
    status_is 0
    [ "$(cat "$out")" = "--json -x" ] || fail "the command's options were taken"
    run run echo --retries
    status_is 0
    [ "$(cat "$out")" = "--retries" ] || fail "without --"
}

gives_the_planned_environment()
{
    # shellcheck disable=SC2016 # the inner shell expands it
    HSA_OVERRIDE_GFX_VERSION=gfx1031 run "${on_desktop[@]}" -- sh -c 'echo "$HSA_OVERRIDE_GFX_VERSION $ROCR_VISIBLE_DEVICES"'
    status_is 0
    [ "$(cat "$out")" = "10.3.0 0" ] || fail "got $(cat "$out")"
    err_has "set HSA_OVERRIDE_GFX_VERSION=10.3.0"
    err_has "GPU 0: AMD Radeon RX 6700 XT/6750 XT (gfx1031)"
    grep -q "HSA_OVERRIDE_GFX_VERSION='10.3.0'" "$(newest)/env" || fail "not in the journal's env"
    # shellcheck disable=SC2016
    HSA_OVERRIDE_GFX_VERSION=11.0.0 run "${on_desktop[@]}" --no-env -- sh -c 'echo "$HSA_OVERRIDE_GFX_VERSION"'
    [ "$(cat "$out")" = "11.0.0" ] || fail "--no-env: got $(cat "$out")"
    for words in '--gpu 0' --debug; do
        # shellcheck disable=SC2086 # words
        run "${on_desktop[@]}" --no-env $words -- true
        status_is 2
        err_has "${words%% *} does not go with --no-env"
    done
    # shellcheck disable=SC2016
    run "${on_desktop[@]}" --with FOO=bar -- sh -c 'echo "$FOO"'
    [ "$(cat "$out")" = "bar" ] || fail "--with: got $(cat "$out")"
}

says_what_the_doctor_finds_first()
{
    run "${on_desktop[@]}" -- true
    status_is 0
    run "${on_desktop[@]}" --gfx gfx1010 -- true
    status_is 0
    err_has "FAIL"
    run "${on_desktop[@]}" --gfx gfx1010 --strict -- touch started
    status_is 3
    err_has "--strict"
    [ ! -e started ] || fail "it was started"
    run "${on_desktop[@]}" --gfx gfx1010 --no-preflight --strict -- true
    status_is 0
    ! grep -q FAIL "$err" || fail "--no-preflight looked all the same"
}

a_machine_without_a_gpu_runs_it_all_the_same()
{
    mkdir -p empty
    run run --root empty -- echo ran
    status_is 0
    out_has ran
    [ "$(grep -c 'no usable AMD GPU' "$err")" = 1 ] || fail "not said once"
    run run --root empty --strict -- echo ran
    status_is 3
    out_is_empty
    ! grep -q 'anyway' "$err" || fail 'it says that it runs'
}

# 1 might be the trainer's.
a_failure_of_cairn_itself_has_its_own_status()
{
    status=0
    (ulimit -n 5 && exec "$cairn" run --no-preflight -- true) >"$out" 2>"$err" </dev/null || status=$?
    status_is 125
    err_has 'Too many open files'
}

debugging_adds_variables()
{
    # shellcheck disable=SC2016
    run "${on_desktop[@]}" --debug -- sh -c 'echo "$AMD_SERIALIZE_KERNEL $PYTHONFAULTHANDLER"'
    [ "$(cat "$out")" = "3 1" ] || fail "got $(cat "$out")"
    err_has core
}

a_log_must_be_a_file()
{
    mkdir -p folder
    run run --keep-log folder -- touch started2
    status_is 2
    err_has folder
    [ ! -e started2 ] || fail "it was started"
    run run --keep-log kept -- echo words
    run run --keep-log kept -- echo more
    [ "$(cat kept)" = "words
more" ] || fail "kept: $(cat kept)"
    run run --json-events /nonexistent/x -- touch started3
    status_is 2
    err_has /nonexistent/x
    [ ! -e started3 ] || fail "it was started"
    run run --json-events - -- touch started4
    status_is 2
    err_has './-'
    [ ! -e started4 ] || fail "it was started"
    run run --json-events events -- true
    python3 -c 'import json, sys; e = [json.loads(l) for l in open("events")]; sys.exit(e[0]["event"] != "start" or e[-1]["event"] != "end")' ||
        fail "events: $(cat events)"
}

events_may_go_into_a_pipe()
{
    mkfifo pipe
    cat pipe >events.read &
    timeout 30 "$cairn" run --json-events pipe -- true 2>"$err" </dev/null || fail "exit $?"
    wait $!
    [ "$(grep -c '"event"' events.read)" -ge 3 ] || fail "events: $(cat events.read)"
}

a_full_disk_does_not_stop_it()
{
    run run --keep-log /dev/full -- echo words
    status_is 0
    out_has words
    [ "$(grep -c 'cannot write the log' "$err")" = 1 ] || fail "not said once"
    run run --json-events /dev/full -- echo words
    status_is 0
    [ "$(grep -c 'file of --json-events' "$err")" = 1 ] || fail "not said once"
    ! grep -q 'journal is not written' "$err" || fail "it is kept"
}

no_state_folder_does_not_stop_it()
{
    : >blocked
    XDG_STATE_HOME=$tmp/blocked run run -- echo words
    status_is 0
    out_has words
    [ "$(grep -c 'journal is not written' "$err")" = 1 ] || fail "not said once"
    err_has blocked
    XDG_STATE_HOME='' HOME='' run run -- echo words
    status_is 0
    out_has words
    err_has "neither XDG_STATE_HOME nor HOME"
}

starts_without_descriptors()
{
    for closed in '<&-' '>&-' '2>&-' '<&- 2>&-' '<&- >&- 2>&-'; do
        rm -f seen
        # shellcheck disable=SC2016
        CAIRN=$cairn sh -c '"$CAIRN" run -- sh -c "echo words; echo words >&2; cat; echo done >seen" </dev/null '"$closed" >"$out" 2>"$err" || fail "$closed: exit $?"
        [ -e seen ] || fail "$closed: it did not come to its end"
        [ "$closed" != '<&-' ] || out_has words
    done
}

preloading_is_quiet()
{
    run run --preload=auto -- echo words
    status_is 0
    ! grep -q -i preload "$err" || fail "auto is said"
    run run --preload=speed -- echo words
    status_is 2
    err_has "--preload"
}

preloading_in_another_run()
{
    beside=$(dirname "$cairn")/libcairn-preload.so
    LD_PRELOAD=/nonexistent/libcairn-preload.so run run --preload=off --retries 0 -- printenv LD_PRELOAD
    status_is 1 # it is not set
    LD_PRELOAD=/nonexistent/libcairn-preload.so:/nonexistent/other.so run run --preload=off -- printenv LD_PRELOAD
    out_has /nonexistent/other.so
    ! grep -q libcairn "$out" || fail "the library is still there"
    [ -e "$beside" ] || { skip "the library is not beside the program"; return; }
    LD_PRELOAD=/nonexistent/libcairn-preload.so run run -- printenv LD_PRELOAD
    out_has "$beside"
    ! grep -q nonexistent "$out" || fail "the other one is still there"
    CAIRN_PRELOAD=all run run -- printenv CAIRN_PRELOAD
    out_has record,stage,retry
}

a_program_without_its_library_says_what_is_missing()
{
    mkdir -p carried
    cp "$cairn" carried/cairn
    halo=$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt
    cairn=$PWD/carried/cairn run run --no-preflight --root "$halo" -- true
    status_is 0
    err_has 'libcairn-preload.so'
    err_has "host's memory"
    cairn=$PWD/carried/cairn run "${on_desktop[@]}" -- true
    ! grep -q 'is not beside' "$err" || fail 'a card has memory of its own'
}

lists_the_runs()
{
    XDG_STATE_HOME=$tmp/other run run --history
    status_is 0
    out_has "no runs"
    export XDG_STATE_HOME=$tmp/other
    run run --retries 0 -- sh -c 'echo first; exit 6'
    mv "$(echo "$tmp"/other/cairn/runs/*)" "$tmp/other/cairn/runs/20200229T235959Z-11"
    run run --retries 0 -- sh -c 'echo "RuntimeError: HIP error: invalid device function"; exit 5'
    run run --history
    status_is 0
    out_has "sh -c echo first; exit 6"
    [ "$(grep -c '^#[12] ' "$out")" = 2 ] || fail "no two rows: $(cat "$out")"
    grep -q '^#1 .* 5  *no-kernel-image ' "$out" || fail "the newest does not come first"
    grep -q '^#2 .*  6  .*20200229T235959Z-11 ' "$out" || fail "status or folder"
    run run --history --json
    json_is 'd["schema"] == 1 and [r["code"] for r in d["runs"]] == [5, 6]'
    json_is 'd["runs"][0]["attempts"] == 1 and d["runs"][0]["state"] == "ended"'
    json_is '[r["index"] for r in d["runs"]] == [1, 2] and d["runs"][1]["id"] == "20200229T235959Z-11"'
    json_is 'd["runs"][1]["dir"].endswith("/cairn/runs/20200229T235959Z-11")'
}

# By the names that the list gives them.
a_run_has_a_name()
{
    for name in last '#1' 1; do
        run diagnose --json "$name"
        json_is 'd["class"] == "no-kernel-image"'
    done
    for name in '#2' 20200229T235959Z-11; do
        run run --log "$name"
        status_is 0
        [ "$(cat "$out")" = first ] || fail "log of $name: $(cat "$out")"
        err_has "$tmp/other/cairn/runs/20200229T235959Z-11/log"
    done
    run diagnose '#3'
    status_is 2
    run run --log 20200229T235959Z-12
    status_is 2
    run run --log train.py
    status_is 2
    mkfifo "$tmp/other/cairn/runs/20200229T235959Z-11/log.first" # would wait for ever
    run run --log '#2'
    status_is 1
    rm "$tmp/other/cairn/runs/20200229T235959Z-11/log.first"
    echo 'step 1 loss 0.5' >last # a file of that name comes first
    run diagnose --json --no-machine last
    json_is 'd["class"] == "no-failure"'
    rm last
    run run --all
    status_is 2
    run run --log last -- true
    status_is 2
}

the_list_is_as_long_as_a_screen()
{
    for i in $(seq 10 35); do
        mkdir "$tmp/other/cairn/runs/202101${i}T000000Z-1"
    done
    run run --history
    [ "$(grep -c '^#[0-9]' "$out")" = 20 ] || fail "$(grep -c '^#[0-9]' "$out") rows"
    run run --history --all
    [ "$(grep -c '^#[0-9]' "$out")" = 28 ] || fail "--all: $(grep -c '^#[0-9]' "$out") rows"
    run run --history --json
    json_is 'len(d["runs"]) == 28'
    unset XDG_STATE_HOME
}

# Nothing of our own, unless it fails.
quiet_says_nothing()
{
    run "${on_desktop[@]}" --no-preflight --quiet -- sh -c 'echo out; echo trouble >&2'
    status_is 0
    [ "$(cat "$out")$(cat "$err")" = outtrouble ] || fail "said: $(cat "$err")"
    run "${on_desktop[@]}" --no-preflight -q --retries 0 -- sh -c 'echo "HIP error: invalid device function"; exit 3'
    status_is 3
    err_has no-kernel-image
}

# The whole summary the first time for a trainer, one line after that, and all of it when something has changed.
what_was_said_is_not_said_again()
{
    export XDG_STATE_HOME=$tmp/told
    run "${on_desktop[@]}" --no-preflight -- sh -c :
    grep -q 'set ROCR_VISIBLE_DEVICES' "$err" || fail "not said"
    lines=$(grep -c ^cairn "$err")
    run "${on_desktop[@]}" --no-preflight -- sh -c :
    ! grep -q 'set ROCR_VISIBLE_DEVICES' "$err" || fail "said again"
    [ "$(grep -c ^cairn "$err")" -lt "$lines" ] || fail "as long as before"
    err_has "cairn env"
    run "${on_desktop[@]}" --no-preflight -- env
    err_has 'set ROCR_VISIBLE_DEVICES' # another trainer
    run "${on_desktop[@]}" --no-preflight --with A=1 -- sh -c :
    err_has 'set A=1'
    printf 'nonsense' >"$tmp/told/cairn/told"
    run "${on_desktop[@]}" --no-preflight -- sh -c :
    status_is 0
    err_has 'set ROCR_VISIBLE_DEVICES'
    unset XDG_STATE_HOME
}

# What the job's file asks for is looked at before the trainer starts.
notes_of_a_job_file()
{
    printf 'job: extension\nconfig:\n  process:\n    - train:\n        optimizer: adamw8bit\n      model:\n        low_vram: true\n' >job.yaml
    run "${on_desktop[@]}" -- true job.yaml
    status_is 0
    tr -s ' \n' ' ' <"$err" >"$tmp/said"
    grep -q 'job.yaml:5: .*config.process\[0\].train.optimizer: adamw ' "$tmp/said" || fail "the optimizer is not told: $(cat "$err")"
    ! grep -q low_vram "$tmp/said" || fail 'a card has memory of its own'
    sed -i 's/adamw8bit/adamw/' job.yaml
    run "${on_desktop[@]}" -- true job.yaml
    ! grep -q 'job.yaml:5' "$err" || fail 'there is nothing to change'
    python3 -B "$data/../tools/mktree.py" "$tmp/halo" --torch 2.10.0+rocm7.0 --hip 7.0.51831 --targets gfx1151 --bnb 0.50.0:rocm70:gfx1151 || return
    sed -i 's/: adamw$/: adamw8bit/' job.yaml
    run run --root "$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt" --torch "$tmp/halo/venv" -- true job.yaml
    tr -s ' \n' ' ' <"$err" >"$tmp/said"
    grep -q 'job.yaml:7: config.process\[0\].model.low_vram' "$tmp/said" || fail "low_vram is not told: $(cat "$err")"
    ! grep -q 'job.yaml:5' "$tmp/said" || fail 'bitsandbytes is there'
}

checks_what_was_written()
{
    mkdir -p job && cd job || exit 1
    cat >write.py <<'PYTHON'
import json, os, struct, sys
os.makedirs(sys.argv[1], exist_ok=True)
header = json.dumps({"latents_1x4x4_float32": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}).encode()
with open(sys.argv[1] + "/a.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header + b"".join(struct.pack("<f", float(sys.argv[2]) * i) for i in range(16)))
PYTHON
    run run -- python3 write.py cache 0.5
    status_is 0
    err_has "1 written safetensors"
    run run -- python3 write.py cache 0
    status_is 1
    err_has "DAMAGED"
    err_has "all-zero"
    run run -- python3 write.py weights 0
    status_is 0
    run run --check-outputs -- python3 write.py weights 0
    status_is 1
    run run -- true
    status_is 0 # what lies there from before is not its work
    cd ..
}

# Whoever can write to the state folder could choose the trainer's environment.
a_state_folder_of_another_is_left_alone()
{
    [ "$(id -u)" = 0 ] || { skip "only root can give a folder away"; return; }
    mkdir -p "$tmp/theirs/cairn/runs"
    chown -R nobody "$tmp/theirs/cairn"
    XDG_STATE_HOME=$tmp/theirs run run --no-preflight -- sh -c 'echo trained'
    status_is 0
    [ "$(cat "$out")" = trained ] || fail "it was not started"
    err_has "$tmp/theirs/cairn"
    err_has "sudo"
    [ -z "$(ls "$tmp/theirs/cairn/runs")" ] || fail "the journal is there"
    XDG_STATE_HOME=$tmp/theirs run run --history
    status_is 1
    XDG_STATE_HOME=$tmp/theirs run env
    out_has "belongs to"
    XDG_STATE_HOME=$tmp/wide run run --no-preflight -- true
    chmod 777 "$tmp/wide/cairn" "$tmp/wide/cairn/runs"
    XDG_STATE_HOME=$tmp/wide run run --no-preflight -- true
    [ "$(stat -c %a "$tmp/wide/cairn")$(stat -c %a "$tmp/wide/cairn/runs")" = 755755 ] || fail "others may still write"
}

# The trainer's status is known by then.
a_signal_ends_the_check_and_not_the_run()
{
    mkdir -p after && cd after || return
    cat >sparse.py <<'PYTHON'
import json, os, struct
os.makedirs("cache", exist_ok=True)
n = 1 << 36
header = json.dumps({"latents": {"dtype": "F32", "shape": [n // 4], "data_offsets": [0, n]}}).encode()
with open("cache/a.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(header)) + header)
    f.truncate(8 + len(header) + n)
PYTHON
    said='cairn run --check-outputs, and SIGTERM after the trainer'
    XDG_STATE_HOME=$tmp/state "$cairn" run --no-preflight --check-outputs -- python3 sparse.py >"$out" 2>"$err" </dev/null &
    pid=$!
    wait_until grep -q 'checking' "$err"
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    rm -rf cache
    cd ..
    status_is 0
    [ -s "$(newest)/verdict.json" ] || fail "there is no verdict"
    grep -q '"outputs_left":1' "$(newest)/verdict.json" || fail "it was read to its end"
}

it wants_a_command
it options_end_at_the_command
it gives_the_planned_environment
it says_what_the_doctor_finds_first
it a_machine_without_a_gpu_runs_it_all_the_same
it a_failure_of_cairn_itself_has_its_own_status
it debugging_adds_variables
it a_log_must_be_a_file
it events_may_go_into_a_pipe
it a_full_disk_does_not_stop_it
it no_state_folder_does_not_stop_it
it a_state_folder_of_another_is_left_alone
it starts_without_descriptors
it preloading_is_quiet
it preloading_in_another_run
it a_program_without_its_library_says_what_is_missing
it lists_the_runs
it a_run_has_a_name
it the_list_is_as_long_as_a_screen
it quiet_says_nothing
it what_was_said_is_not_said_again
it notes_of_a_job_file
it checks_what_was_written
it a_signal_ends_the_check_and_not_the_run
finish
