#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Sessions in docs/ and README.md show what the program prints.  Only words are compared: where a line is wrapped depends on paths.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
pages=$here/../../docs

# block PAGE START: the lines from the first one that begins with START to the end of its block.
block()
{
    awk -v start="$2" 'index($0, start) == 1 { on = 1 } /^```$/ && on { exit } on' "$1"
}

words()
{
    tr -s ' \n' ' ' | sed 's/^ //; s/ $//'
}

# shows PAGE START [SKIP]: the block of PAGE from START on, without lines that match SKIP, is in what was printed.
shows()
{
    shown=$(block "$1" "$2" | grep -v '^\$ ' | grep -vE -- "${3:-^never$}" | words)
    [ -n "$shown" ] || fail "$1 has no block with \"$2\""
    cat "$out" "$err" | words | grep -qF -- "$shown" || fail "$1 shows what is not printed: $shown"
}

trainer()
{
    cat >train.py <<'END'
import os, sys
print("torch 2.9.1+rocm6.4, AMD Radeon RX 6750 XT gfx1031", flush=True)
if os.environ.get("HSA_OVERRIDE_GFX_VERSION") != "10.3.0":
    sys.exit("RuntimeError: HIP error: invalid device function")
for i in range(1, 4):
    print(f"step {i} loss {1 / i:.3f}")
END
}

# Both streams in one file, as a terminal shows them.
run_merged()
{
    said="cairn $*"
    status=0
    "$cairn" "$@" >"$out" 2>&1 </dev/null || status=$?
    : >"$err"
}

diagnose_page()
{
    block "$pages/diagnose.md" 'torch 2.9.1+rocm6.4' >train.log
    run diagnose --no-machine --gfx gfx1031 --exit 1 train.log
    shows "$pages/diagnose.md" "\$ cairn diagnose --no-machine --gfx gfx1031 --exit 1"
}

run_page()
{
    trainer
    mkdir -p empty
    run_merged run --root empty -- python3 train.py
    status_is 0
    shows "$pages/run.md" "\$ cairn run -- python3" '^cairn: (exit status|lowest available host memory|journal)'
    run_merged run --root empty -- python3 train.py
    sed -i 's/ on [0-9-]*,/ on 2026-11-15,/' "$out"
    shows "$pages/run.md" 'cairn: set HSA_OVERRIDE_GFX_VERSION=10.3.0: train.py worked'
}

run_page_with_a_gpu()
{
    trainer
    rm -rf .local
    python3 "$here/../tools/mktree.py" "$tmp/tree" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx1030,gfx1100 \
        --libs rocblas=gfx1030+gfx1100,hipblaslt=gfx1100 >"$err" 2>&1 || fail 'no tree'
    run_merged run --root "$data/sysfs-synthetic/gfx1031-gfx1036-rx6750xt-plus-igpu" --torch "$tmp/tree/venv" -- python3 train.py
    sed -i -e "s|$tmp/tree/venv|/home/user/venv|; s|(--torch)|(the command starts it)|" "$out"
    shows "$pages/run.md" 'cairn: GPU 0: AMD Radeon'
}

config_page()
{
    printf 'train:\n  stepz: 1\n' >job.yaml
    run train job.yaml
    cp "$err" all
    printf 'train:\n  steps: 1\n  schedule: cosin\n' >job.yaml
    run train job.yaml
    cat "$err" >>all
    printf 'data:\n  path: job.yaml\n' >job.yaml
    run train job.yaml --set model.heads=7
    cat "$err" >>all
    sed -n 's/^cairn: //p' all >"$out"
    shows "$pages/config.md" 'job.yaml:2:3'
}

memory_page()
{
    block "$pages/memory.md" 'model:' >wan.yaml
    run plan wan.yaml --gfx gfx1201 --memory 16
    shows "$pages/memory.md" "\$ cairn plan wan.yaml"
}

smi_page()
{
    run smi --root "$data/sysfs/gfx1103-phoenix-780m-laptop" --query-gpu=index,name,memory.used,memory.total,power.draw --format=csv
    shows "$pages/smi.md" "\$ cairn smi --query-gpu"
}

readme_training()
{
    run train --example gpt-tiny
    cp "$out" gpt-tiny.yaml
    head -c 20000 "$pages/train.md" >book.txt
    run train gpt-tiny.yaml --set data.path=book.txt --set train.device=cpu --dry-run
    model=$(grep '^model  ' "$pages/../README.md")
    out_has "$model"
}

it diagnose_page
it run_page
it run_page_with_a_gpu
it config_page
it memory_page
it smi_page
it readme_training
finish
