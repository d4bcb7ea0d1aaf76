#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn train: what is said, what a run leaves, and what is refused.  The model is tiny, and the CPU trains it.
. "$(dirname "$0")/lib.sh"

tiny_job >job.yaml
cat >>job.yaml <<'YAML'
eval:
  every: 3
  batches: 2
sample:
  every: 3
  tokens: 20
checkpoint:
  every: 3
YAML

# python_is EXPRESSION FILE: python, with the file's JSON as d (a list for .jsonl); must be true.
python_is()
{
    python3 - "$1" "$2" 2>"$tmp/python" <<'PYTHON' || fail "not true of $2: $1: $(tail -n 1 "$tmp/python")"
import json, sys
with open(sys.argv[2], encoding='utf-8') as f:
    d = [json.loads(line) for line in f] if sys.argv[2].endswith('.jsonl') else json.load(f)
sys.exit(0 if eval(sys.argv[1]) else 1)
PYTHON
}

same_weights()
{
    for name in model.safetensors optimizer.safetensors; do
        cmp -s "$1/checkpoints/latest/$name" "$2/checkpoints/latest/$name" || fail "$1 and $2 differ in $name"
    done
}

helps()
{
    run train --help
    status_is 0
    for word in --set --resume --steps --dry-run --json-events --list 'Exit status: 0'; do
        out_has "$word"
    done
    run train
    status_is 2
    err_has 'configuration'
    run train job.yaml job.yaml
    status_is 2
}

an_example_is_a_job()
{
    for name in gpt-tiny gpt-small gpt-10m gpt-lora; do
        run train --example "$name"
        status_is 0
        err_is_empty
        cmp -s "$out" "$data/../../configs/$name.yaml" || fail "not configs/$name.yaml"
    done
    run train --example nothing
    status_is 2
    err_has gpt-tiny
}

a_wrong_key_has_a_place()
{
    printf 'data:\n  path: text.txt\ntrain:\n  stepz: 3\n' >wrong.yaml
    run train wrong.yaml
    status_is 2
    err_has 'wrong.yaml:4:3: unknown key train.stepz; did you mean train.steps?'
    run train job.yaml --set model.heads=3
    status_is 2
    err_has '--set model.heads=3: model.heads is 3, which does not divide model.width, 16'
    printf '# \303\266\ndata:\n\tpath: text.txt\n' >wrong.yaml
    run train wrong.yaml
    status_is 2
    err_has 'wrong.yaml:3:1: a tab'
    run train job.yaml --steps 99999999999
    status_is 2
    err_has '--steps takes a number up to 2147483647, not 99999999999'
    run train job.yaml --set run.dir=job.yaml/run
    status_is 1
    err_has '--set run.dir=DIR puts the run elsewhere'
    run train job.yaml --steps 0
    status_is 2
    err_has '--steps: train.steps is 0'
    run train none.yaml
    status_is 1
    err_has 'open none.yaml: No such file'
    [ -z "$(ls runs/job 2>&1)" ] || fail 'something was left'
    printf 'train: [1\n' >wrong.yaml
    run train wrong.yaml
    status_is 2
    err_has 'wrong.yaml:2:1: '
    run train job.yaml --set data.tokenizer=bpee --set run.dir=nothing
    status_is 1
    err_has 'data.tokenizer: bpee: No such file'
    err_has 'bytes, bpe or the path of a tokenizer.json'
}

data_that_is_not_there()
{
    : >empty.txt
    run train job.yaml --set data.path=none.txt --set run.dir=nothing
    status_is 1
    err_has 'data.path: none.txt: No such file'
    err_has '--set data.path=FILE'
    run train job.yaml --set data.val_path=none.txt --set run.dir=nothing
    status_is 1
    err_has 'data.val_path: none.txt: No such file'
    run train job.yaml --set data.path=empty.txt --set run.dir=nothing
    status_is 1
    err_has 'empty.txt is empty'
    [ -z "$(ls nothing 2>&1)" ] || fail 'something was left'
}

# The cache only saves time: without one the tokens are made for this run alone, and somebody else's are not taken.
a_cache_that_cannot_be_used()
{
    touch taken
    XDG_CACHE_HOME=$PWD/taken run train job.yaml --set run.dir=uncached
    status_is 0
    err_has "$PWD/taken"
    [ "$(id -u)" = 0 ] || return
    mkdir -p theirs/cairn/tokens
    chown nobody theirs/cairn/tokens
    XDG_CACHE_HOME=$PWD/theirs run train job.yaml --set run.dir=foreign
    status_is 0
    err_has "$PWD/theirs/cairn/tokens"
    [ -z "$(ls theirs/cairn/tokens)" ] || fail 'tokens were kept there'
}

# OpenBLAS raises SIGINT where it gets no thread, and asks for memory for ever where there is none.
a_limit_of_address_space()
{
    (ulimit -v 150000 && "$cairn" --version) >/dev/null 2>&1 || { skip 'the program itself needs more'; return; }
    status=0
    said='cairn train, with ulimit -v 150000'
    (ulimit -v 150000 && exec timeout -k 1 60 "$cairn" train job.yaml --set run.dir=limited) >"$out" 2>"$err" </dev/null || status=$?
    status_is 0
}

# Somebody makes the file anew while it is trained on.
a_file_of_tokens_that_is_cut()
{
    python3 -c "import sys; sys.stdout.buffer.write(bytes([97, 0]) * 60000)" >live.bin
    said='cairn train --set data.path=live.bin'
    "$cairn" train job.yaml --set data.path=live.bin --set data.val_split=0 --set run.dir=cut --set train.steps=1000000 --set checkpoint.every=0 \
        --set sample.every=0 --set eval.every=0 >"$out" 2>"$err" </dev/null &
    pid=$!
    wait_until test -s cut/log.jsonl
    truncate -s 100 live.bin
    status=0
    wait "$pid" || status=$?
    status_is 1
    err_has 'live.bin'
    [ -s cut/checkpoints/latest/state.json ] || fail 'nothing was saved'
}

a_device_that_is_not_there()
{
    run train job.yaml --device hip:77 --set run.dir=nothing
    status_is 3
    err_has 'no device hip:77'
    run train job.yaml --device tpu --set run.dir=nothing
    status_is 2
    err_has '--device: train.device is "tpu"'
    # A name of PyTorch's for a GPU of any maker, but here is none.
    run train job.yaml --device cuda:77 --set run.dir=nothing
    status_is 3
    err_has 'no device cuda:77'
}

# A device that is typed is meant: only an allow_cpu that is typed, too, makes it a wish.
a_device_that_is_typed()
{
    sed '/device: cpu/d' job.yaml >any.yaml
    sed 's/^train:/train:\n  allow_cpu: true/' any.yaml >allows.yaml
    run train allows.yaml --device hip:77 --set run.dir=nothing
    status_is 3
    err_has 'train.allow_cpu=true'
    run train allows.yaml --set train.device=hip:77 --set run.dir=nothing
    status_is 3
    run plan allows.yaml --device hip:77
    status_is 3
    run train any.yaml --device hip:77 --set train.allow_cpu=true --set run.dir=allowed --dry-run
    status_is 0
    out_has 'device    cpu'
    sed 's/^train:/train:\n  device: hip:77/' allows.yaml >asks.yaml
    run train asks.yaml --set run.dir=allowed --dry-run
    status_is 0
    out_has 'device    cpu'
    [ ! -e nothing ] || [ -z "$(ls nothing)" ] || fail 'something was left'
}

# What it says on a terminal, at its start and end; paths may be longer.
its_talk_fits_a_terminal()
{
    command -v script >/dev/null || { skip 'no script(1)'; return; }
    script -qec "stty cols 80; '$cairn' train job.yaml --set run.dir=narrow" /dev/null </dev/null >"$out" 2>"$err"
    said='cairn train, on a terminal'
    out_has 'finished at step 6'
    python3 - "$out" <<'PYTHON' || fail "lines of more than 80 columns"
import re, sys
text = re.sub(r'\x1b\[[0-9;]*[A-Za-z]', '', open(sys.argv[1], encoding='utf-8', errors='replace', newline='').read())
lines = [l.rstrip() for l in re.split(r'[\r\n]+', text)]
wide = [l for l in lines if len(l) > 80 and '/' not in l]
print('\n'.join(wide))
sys.exit(bool(wide) or not any(l.startswith('memory ') for l in lines))
PYTHON
}

# The folder of a run is all that is needed to go on with it, or to begin with what it learned.
a_run_is_enough()
{
    run train job.yaml --set run.dir=whole
    status_is 0
    run train job.yaml --set run.dir=half --steps 3 --set train.schedule=constant --set train.warmup=1
    status_is 0
    err_has 'cairn sample half'
    err_has 'cairn plot half'
    for how in --resume=half '--resume half'; do
        rm -rf copy && cp -a half copy
        # shellcheck disable=SC2086 # two words
        run train ${how/half/copy} --steps 6
        status_is 0
        err_has 'resuming from copy/checkpoints/step-3'
        [ -e copy/checkpoints/step-6 ] || fail "$how: no step 6"
    done
    cp job.yaml other.yaml
    rm -rf copy && cp -a half copy
    run train other.yaml --resume copy --set train.schedule=constant --set train.warmup=1
    status_is 0
    [ -e copy/checkpoints/step-6 ] || fail 'a configuration and a run: no step 6'
    run train --resume=text.txt
    status_is 2
    run train --resume
    status_is 2
    run train job.yaml --set run.dir=second --set model.path=whole
    status_is 0
    grep -q 'path: "*whole/checkpoints/step-6' second/config.yaml || fail "$(grep path: second/config.yaml)"
    run train job.yaml --set run.dir=lora --set model.path=whole --set lora.rank=2
    status_is 0
    run train job.yaml --set run.dir=third --set model.path=lora
    status_is 2
    err_has 'model.path'
}

a_run_that_is_stopped_says_how_to_go_on()
{
    interrupt_after 1 "$cairn" train job.yaml --set "run.dir=a dir" --steps 1000000 --set train.schedule=constant >"$out" 2>"$err"
    said='cairn train, interrupted'
    err_has "cairn train --resume='a dir'"
}

jobs_of_other_trainers_are_known()
{
    printf 'job: extension\nconfig:\n  name: x\n  process:\n    - type: sd_trainer\n      model: {name_or_path: x}\n' >wan.yaml
    printf '[general]\n[[datasets]]\nvideo_directory = "/v"\n' >set.toml
    printf 'pretrained_model_name_or_path = "x"\n' >kohya.toml
    for file in wan.yaml set.toml kohya.toml; do
        for command in train plan; do
            run "$command" "$file"
            status_is 2
            err_has 'cairn run -- '
            err_has "/$file"
        done
    done
    run train wan.yaml
    err_has 'ai-toolkit'
    run train set.toml
    err_has 'musubi-tuner'
}

several_wrong_keys_are_told_at_once()
{
    printf 'data:\n  path: text.txt\n  vocap: 3\nmodl:\n  width: 3\ntrain:\n  steps: many\n' >wrong.yaml
    run train wrong.yaml
    status_is 2
    for place in 3:3 4:1 7:10; do
        err_has "wrong.yaml:$place: "
    done
    run train job.yaml --set 'lora.targets=[*attn.c_proj]'
    status_is 2
    err_has "['*"
}

a_plan_tokenizes_nothing()
{
    for bpe in 0 1; do
        rm -rf planned
        [ "$bpe" = 0 ] || set -- --set data.tokenizer=bpe --set data.vocab=300 --set model.vocab=300
        XDG_CACHE_HOME=$PWD/planned run plan job.yaml "$@" --json
        status_is 0
        XDG_CACHE_HOME=$PWD/planned run train job.yaml "$@" --dry-run --set run.dir=planned/none
        status_is 0
        [ ! -e planned/cairn/tokens ] || fail 'it tokenized the data'
    done
}

a_dry_run_writes_nothing()
{
    rm -rf dry && mkdir dry && cp text.txt job.yaml dry
    cd dry || return
    run train job.yaml --dry-run --json-events events.jsonl
    cd ..
    status_is 0
    out_has 'memory '
    out_has 'requested'
    out_has 'k parameters: 1 layer of 2 heads'
    run train job.yaml --dry-run --set run.dir=dry/none --set train.optimizer=prodigy --set train.lr=1e-3
    out_has 'train.lr (0.001); 1 is the usual value'
    run train job.yaml --dry-run --set run.dir=dry/none --set train.optimizer=prodigy
    ! grep -q '1 is usual' "$out" || fail 'a rate that nobody gave is told'
    [ "$(ls dry)" = "$(printf 'job.yaml\ntext.txt')" ] || fail "left: $(ls dry)"
}

events_that_are_lost_are_told()
{
    run train job.yaml --set run.dir=lost --json-events /dev/full
    status_is 0
    [ "$(grep -c -e '--json-events.*No space left' "$err")" = 1 ] || fail 'not told once'
}

events_go_to_standard_output()
{
    run train job.yaml --set run.dir=told --json-events -
    status_is 0
    cp "$out" told.jsonl
    python_is '[x["step"] for x in d] == [1, 2, 3, 4, 5, 6]' told.jsonl
    [ ! -e ./- ] || fail 'there is a file'
    said='cairn train --json-events - >/dev/full'
    "$cairn" train job.yaml --set run.dir=told-full --json-events - >/dev/full 2>"$err" || fail "exit $?"
    err_has 'No space left'
    said='cairn train --json-events - >&-'
    ! "$cairn" train job.yaml --set run.dir=told-nobody --json-events - >&- 2>"$err" || fail 'nobody hears it'
    err_has 'open standard output'
    run train job.yaml --set run.dir=told-odd --profile -
    status_is 2
    err_has './-'
}

a_profile_leaves_its_file_only()
{
    run train job.yaml --profile trace.json --set run.dir=profiled
    status_is 0
    err_has 'attention_backward'
    python_is 'len(d["traceEvents"]) > 50 and all(e["dur"] >= 0 for e in d["traceEvents"] if e["ph"] == "X")' trace.json
    [ ! -e profiled ] || fail 'there is a folder'
    run train job.yaml --profile nowhere/trace.json --set run.dir=profiled
    status_is 1
    err_has 'nowhere/trace.json'
    mkdir full && touch full/something
    run train job.yaml --profile trace.json --set run.dir=full
    status_is 0
}

a_run_leaves_its_files()
{
    rm -rf runs
    run train job.yaml --json-events events.jsonl
    status_is 0
    out_is_empty
    err_has 'finished at step 6 of 6; runs/job/checkpoints/latest, runs/job/loss.svg'
    python3 - "$err" 2>"$tmp/python" <<'PYTHON' || fail "memory: $(tail -n 1 "$tmp/python")"
import re, sys
said = [line for line in open(sys.argv[1]) if line.startswith('memory ')]
parts = re.findall(r'[ ,]([a-z][a-z ]*) ([\d.]+)/([\d.]+)', said[1])
names = [name.strip() for name, _, _ in parts]
assert 'planned: weights' in said[0] and 'peak' in said[1], said
assert names == ['weights', 'gradients', 'optimizer', 'activations', 'samples', 'work'], said[1]
assert all(abs(float(taken) - float(planned)) <= 0.1 for _, taken, planned in parts), said[1]
assert any(float(taken) > 0 for _, taken, _ in parts), said[1]
PYTHON
    python_is '[x["step"] for x in d] == [1, 2, 3, 4, 5, 6]' runs/job/log.jsonl
    python_is '[x["step"] for x in d if x.get("event") == "eval" and x["val_loss"] > 0] == [3, 6]' runs/job/log.jsonl
    python_is 'all(x["tokens_per_s"] > 0 and x["lr"] > 0 and x["grad_norm"] > 0 for x in d if "loss" in x)' runs/job/log.jsonl
    python_is '[x["step"] for x in d] == [1, 2, 3, 4, 5, 6] and all("loss" in x for x in d)' events.jsonl
    python_is 'd["schema"] == 1 and d["name"] == "job" and d["state"] == "finished" and d["steps"] == 6' runs/job/run.json
    python_is 'd["device"] == "cpu" and d["finished"] >= d["started"]' runs/job/run.json
    python_is 'd["step"] == 6 and len(d["files"]) == 3' runs/job/checkpoints/latest/state.json
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' runs/job/loss.svg || fail 'loss.svg'
    for step in 0 3 6; do
        [ "$(head -c 1 "runs/job/samples/step-$step.txt" | od -An -c | tr -d ' ')" = '\n' ] || fail "no prompt in sample $step"
        [ "$(wc -c <"runs/job/samples/step-$step.txt")" -ge 22 ] || fail "sample $step is short"
    done
    run tensor check runs/job/checkpoints/latest/model.safetensors
    status_is 0
}

its_talk_stays_out_of_files()
{
    said='cairn train, stderr closed'
    "$cairn" train job.yaml --set run.dir=mute --json-events mute.jsonl 2>&-
    status=$?
    status_is 0
    python_is '[r["step"] for r in d] == [1, 2, 3, 4, 5, 6]' mute.jsonl
    python_is 'len(d) == 6' mute/log.jsonl
}

its_configuration_is_the_same_job()
{
    run train runs/job/config.yaml --set run.dir=again
    status_is 0
    same_weights runs/job again
    diff <(grep -v '^  dir:' runs/job/config.yaml) <(grep -v '^  dir:' again/config.yaml) >"$err" || fail 'other keys'
    run train runs/job
    status_is 2
    err_has 'runs/job is a directory'
    err_has '--resume=runs/job'
    run train runs/job/config.yaml --resume
    status_is 0
    err_has 'runs/job is already finished (6 steps)'
}

a_folder_that_is_not_empty()
{
    before=$(find runs/job -type f -exec cksum {} + | sort)
    run train job.yaml
    status_is 2
    err_has 'runs/job is not empty'
    err_has '--resume'
    run train job.yaml --resume
    status_is 0
    err_has 'runs/job is already finished (6 steps)'
    [ "$before" = "$(find runs/job -type f -exec cksum {} + | sort)" ] || fail 'the run was changed'
}

resume_without_a_checkpoint()
{
    run train job.yaml --resume --set run.dir=fresh
    status_is 0
    err_has 'no complete checkpoint in fresh: starting at step 0'
    same_weights runs/job fresh
    # A folder that is named must be there: it may be mistyped.
    run train job.yaml --resume=frehs
    status_is 1
    err_has '--resume=frehs: No such file'
    [ ! -e frehs ] || fail 'it was made'
}

# The rate is constant and the warmup given, since both follow from the steps.
more_steps_go_on()
{
    keys=(--set train.schedule=constant --set train.warmup=1)
    run train job.yaml --set run.dir=long "${keys[@]}"
    status_is 0
    run train job.yaml --set run.dir=short "${keys[@]}" --steps 4
    status_is 0
    err_has 'finished at step 4 of 4'
    run train job.yaml --resume=short "${keys[@]}"
    status_is 0
    err_has 'resuming from short/checkpoints/step-4'
    same_weights long short
    python_is '[x["step"] for x in d if "loss" in x] == [1, 2, 3, 4, 5, 6]' short/log.jsonl
}

keeps_so_many()
{
    run train job.yaml --set run.dir=kept --set checkpoint.every=1 --set checkpoint.keep=2
    status_is 0
    [ "$(cd kept/checkpoints && echo * .[!.]*)" = 'latest step-5 step-6 .[!.]*' ] || fail "$(ls -A kept/checkpoints)"
    [ "$(readlink kept/checkpoints/latest)" = step-6 ] || fail "latest is $(readlink kept/checkpoints/latest)"
}

lists_runs()
{
    run train --list
    status_is 0
    out_has 'finished'
    out_has 'runs/job'
    run train --list --json runs
    status_is 0
    json_is '[(r["name"], r["state"], r["steps_done"]) for r in d["runs"]] == [("job", "finished", 6)]'
    run train --list runs again
    status_is 2
}

# Weights grow a thousandfold with each step.
numbers_that_are_none()
{
    run train job.yaml --set run.dir=nan --set checkpoint.every=1 --set train.lr=100 --set train.weight_decay=10 \
        --set train.schedule=constant --set train.warmup=0 --steps 50
    status_is 1
    # The gradients may be finite, and only their norm not: which comes first depends on how products are rounded here.
    grep -Eq "first non-finite values: |gradient norm (-?inf|-?nan)" "$err" || fail "what went wrong: $(cat "$err")"
    err_has 'a lower train.lr'
    python_is 'd["state"] == "crashed"' nan/run.json
    run tensor check nan/checkpoints/latest/model.safetensors
    status_is 0
}

it helps
it an_example_is_a_job
it a_wrong_key_has_a_place
it data_that_is_not_there
it a_cache_that_cannot_be_used
it a_file_of_tokens_that_is_cut
it a_limit_of_address_space
it a_device_that_is_not_there
it a_device_that_is_typed
it its_talk_fits_a_terminal
it a_run_is_enough
it a_run_that_is_stopped_says_how_to_go_on
it several_wrong_keys_are_told_at_once
it jobs_of_other_trainers_are_known
it a_plan_tokenizes_nothing
it a_dry_run_writes_nothing
it a_profile_leaves_its_file_only
it a_run_leaves_its_files
it events_that_are_lost_are_told
it events_go_to_standard_output
it its_talk_stays_out_of_files
it its_configuration_is_the_same_job
it a_folder_that_is_not_empty
it resume_without_a_checkpoint
it more_steps_go_on
it keeps_so_many
it lists_runs
it numbers_that_are_none
finish
