#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn sample: text of runs, checkpoints and models.  The model is tiny, and the CPU trains it.
. "$(dirname "$0")/lib.sh"

tiny_job >job.yaml
cat >>job.yaml <<'YAML'
  lr: 0.01
eval:
  every: 0
sample:
  every: 3
  tokens: 30
  prompts: [st, "river ", ""]
checkpoint:
  every: 3
YAML

# train RUN [options]
train()
{
    local dir=$1
    shift
    run train job.yaml --set run.dir="$dir" "$@"
    status_is 0
}

helps()
{
    run sample --help
    status_is 0
    for word in --prompt --tokens --temperature --seed --ema --json; do
        out_has "$word"
    done
    run sample
    status_is 2
    err_has 'a run or a model'
    run sample a b
    status_is 2
    run sample a --temperature warm
    status_is 2
}

# same_as FILE: what was printed last
same_as()
{
    cmp -s "$out" "$1" || fail "not what is in $1: $(head -c 80 "$out")"
}

# The run is used by those that follow.
what_the_run_wrote_itself()
{
    train run
    run sample run -d cpu
    status_is 0
    err_has 'step-6/model.safetensors, on cpu'
    same_as run/samples/step-6.txt
    run sample run/checkpoints/step-3 -d cpu
    same_as run/samples/step-3.txt
    run sample run/checkpoints/latest/model.safetensors -d cpu
    same_as run/samples/step-6.txt
    cmp -s run/samples/step-3.txt run/samples/step-6.txt && fail 'both steps write the same'
    train mean --set train.ema=0.5
    run sample mean -d cpu --ema
    same_as mean/samples/step-6.txt
    cmp -s run/samples/step-6.txt mean/samples/step-6.txt && fail 'the mean writes what the weights write'
    cmp -s {run,mean}/checkpoints/step-6/model.safetensors || fail 'the samples changed the weights'
}

what_a_lora_wrote()
{
    train base
    for how in none int8; do
        train "lora-$how" --set lora.rank=2 --set model.path=base/checkpoints/latest --set model.quantize="$how"
        run sample "lora-$how" -d cpu
        status_is 0
        err_has step-6/lora.safetensors
        same_as "lora-$how/samples/step-6.txt"
    done
}

with_its_own_tokenizer()
{
    train bpe --set data.tokenizer=bpe --set data.vocab=270
    run sample bpe -d cpu
    same_as bpe/samples/step-6.txt
}

asked_for_otherwise()
{
    run sample run -d cpu --prompt 'stone ' --tokens 5 --json
    json_is 'd["schema"] == 1 and d["step"] == 6 and [s["prompt"] for s in d["samples"]] == ["stone "]'
    json_is 'd["samples"][0]["text"].startswith("stone ") and len(d["samples"][0]["text"]) <= 11'
    run sample run -d cpu -p stone --seed 5
    cp "$out" five
    run sample run -d cpu -p stone --seed 5
    same_as five
    run sample run -d cpu -p stone --seed 6
    cmp -s "$out" five && fail 'another seed, the same text'
    run sample run -d cpu -p stone --temperature 0 --seed 5
    cp "$out" likeliest
    run sample run -d cpu -p stone --top-k 1 --seed 6
    same_as likeliest
}

the_mean_of_the_weights()
{
    run sample mean -d cpu -p stone --ema
    status_is 0
    err_has step-6/model-ema.safetensors
    cp "$out" average
    run sample mean/checkpoints/step-6/model-ema.safetensors -d cpu -p stone
    same_as average
    run sample mean/checkpoints/step-6/model.safetensors -d cpu -p stone --ema
    status_is 2
    err_has 'model.safetensors is a file or a model'
    err_has model-ema.safetensors
    run sample mean -d cpu -p stone
    cmp -s "$out" average && fail 'the mean writes what the weights write'
    run sample run -d cpu --ema
    status_is 2
    err_has train.ema
}

# Ids without a text are never drawn, however likely.
a_vocabulary_larger_than_the_tokenizer()
{
    train padded --set model.vocab=400
    run sample padded -d cpu -p stone --temperature 100 --tokens 100
    status_is 0
}

a_model_without_a_run()
{
    mkdir model
    cp run/checkpoints/latest/config.json run/checkpoints/latest/model.safetensors model
    run sample model -d cpu -p st -p 'river ' -p '' -n 30
    same_as run/samples/step-6.txt
    run sample model/model.safetensors -d cpu -p st -n 3 --json
    json_is 'd["step"] is None and d["samples"][0]["text"].startswith("st")'
}

what_is_not_there()
{
    run sample nothing
    status_is 1
    err_has ' nothing'
    err_has 'cairn train --list'
    mkdir empty
    run sample empty -d cpu
    status_is 1
    err_has 'empty has no model.safetensors'
}

# In the background a shell ignores SIGINT.
interrupted()
{
    "$cairn" sample run -d cpu -p stone -n 10000000 >"$out" 2>"$err" &
    local pid=$!
    for _ in {1..200}; do
        grep -q 'on cpu' "$err" && break
        sleep 0.05
    done
    kill -TERM "$pid"
    status=0
    wait "$pid" || status=$?
    status_is 143
    err_has interrupted
}

it helps
it what_the_run_wrote_itself
it what_a_lora_wrote
it with_its_own_tokenizer
it asked_for_otherwise
it the_mean_of_the_weights
it a_vocabulary_larger_than_the_tokenizer
it a_model_without_a_run
it what_is_not_there
it interrupted
finish
