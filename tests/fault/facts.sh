#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The fault test of facts, on the captures and on trees with PyTorch of each packaging.
#
#   facts.sh PROGRAM MKTREE
set -eu
program=$1
mktree=$2
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for layout in wheel therock kpack; do
    python3 "$mktree" "$tmp/$layout" --layout "$layout" --targets gfx1030,gfx1100,gfx1151 --rocm 6.4.1 >"$tmp/log" 2>&1 || {
        sed 's/^/# /' "$tmp/log"
        echo "Bail out! no tree with the layout $layout"
        exit 1
    }
done
"$program" "$tmp/wheel" "$tmp/therock" "$tmp/kpack"
