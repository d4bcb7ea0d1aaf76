#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The output that README.md shows is what the program prints, in that order; "…" stands for what was left out.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"

shown_output_is_real()
{
    python3 "$here/../tools/mktree.py" "$tmp/tree" --torch 2.9.1+rocm6.4 --hip 6.4.43484 \
        --targets gfx900,gfx906,gfx908,gfx90a,gfx942,gfx1030,gfx1100,gfx1101,gfx1102,gfx1200,gfx1201 \
        --libs rocblas=gfx1030+gfx1100,hipblaslt=gfx1100 >"$err" 2>&1 || fail 'no tree'
    run doctor --root "$data/sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu" --torch "$tmp/tree/venv"
    sed -n '/^\$ cairn doctor$/,/^```$/p' "$here/../../README.md" | sed '1d;$d' | grep -v '^ *…$' | joined >"$tmp/shown"
    [ "$(wc -l <"$tmp/shown")" -ge 10 ] || fail 'README.md shows less than ten lines'
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

it shown_output_is_real
finish
