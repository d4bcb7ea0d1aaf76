#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The output that README.md shows is what the program prints, in that order; "…" stands for what was left out.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

targets=gfx900,gfx906,gfx908,gfx90a,gfx942,gfx1030,gfx1100,gfx1101,gfx1102,gfx1200,gfx1201

good_machine_is_real()
{
    tree --torch 2.10.0+rocm7.1 --hip 7.1.52802 --libs rocblas=gfx1100,hipblaslt=gfx1100,miopen=gfx1100,aotriton=gfx1100 \
        --aotriton 0.11.1 --triton 3.6.0 --accelerate 1.12.0
    : >"$tmp/tree/venv/lib/python3.11/site-packages/torch/lib/libhiprtc.so"
    run doctor --root "$data/sysfs/gfx1100-rx7900xtx-tinybox" --torch "$tmp/tree/venv"
    shown_is_printed 1 7
}

broken_machine_is_real()
{
    tree --torch 2.9.1+rocm6.4 --hip 6.4.43484 --libs rocblas=gfx1030+gfx1100,hipblaslt=gfx1100
    run doctor --root "$data/sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu" --torch "$tmp/tree/venv"
    shown_is_printed 2 10
}

tree()
{
    rm -rf "$tmp/tree"
    python3 "$here/../tools/mktree.py" "$tmp/tree" --targets "$targets" "$@" >"$err" 2>&1 || fail 'no tree'
}

# shown_is_printed N LEAST: the Nth screen of `cairn doctor`, which has at least LEAST lines.
shown_is_printed()
{
    awk -v n="$1" '/^\$ cairn doctor$/ { on = ++seen == n; next } /^```$/ { on = 0 } on' "$here/../../README.md" |
        grep -v '^ *…$' | joined >"$tmp/shown"
    [ "$(wc -l <"$tmp/shown")" -ge "$2" ] || fail "README.md shows less than $2 lines"
    joined <"$out" >"$tmp/printed"
    in_order "$tmp/shown" "$tmp/printed"
}

# A command in one line, whose breaks hang on the length of a path, and without the folder of this test.
joined()
{
    sed -e ':a' -e '/\\$/{N;s/\\\n *//;ta' -e '}' -e "s|$tmp/tree/||"
}

# Are the lines of the first file in the second one, in their order?
in_order()
{
    missing=$(awk 'BEGIN { n = at = 0 } NR == FNR { want[n++] = $0; next } at < n && $0 == want[at] { at++ }
        END { if (at < n) print want[at] }' "$1" "$2")
    [ -z "$missing" ] || fail "README.md shows a line that is not printed (there): $missing"
}

it good_machine_is_real
it broken_machine_is_real
finish
