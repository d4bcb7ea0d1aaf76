#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# facts.sh BENCH_FACTS CAIRN: a laptop's capture with a PyTorch and a ROCm of true sizes (sparse files), then
# bench_facts on it.
set -eu
here=$(dirname "$0")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -r "$here/../tests/data/sysfs/gfx1103-phoenix-780m-laptop/sys" "$tree/sys"
python3 "$here/../tests/tools/mktree.py" "$tree" --big --torch 2.9.1+rocm6.4 --hip 6.4.43484 --rocm 6.4.1 \
    --targets gfx900,gfx906,gfx908,gfx90a,gfx942,gfx1030,gfx1100,gfx1101,gfx1102,gfx1200,gfx1201 \
    --bnb 0.49.0:rocm64:gfx1100,gfx1101 --triton 3.5.1 --accelerate 1.11.0
"$1" "$2" "$tree" "${3:-50}"
