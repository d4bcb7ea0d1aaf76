#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every kernel on a real NVIDIA GPU, the second witness for the one text: plain, in the debug build, then under
# compute-sanitizer's memcheck, racecheck and synccheck where that tool is installed.  Not part of `make test`.
#
#   tests/gpu/h200.sh [FOLDER with cairn and cairn-kc, build-static] [DEVICE, cuda:0]
#
# Logs go to $OUT (a temporary folder if it is not set).  Exit 1 when anything is wrong.
set -u
cairn=${1:-build-static}/cairn
device=${2:-cuda:0}
OUT=${OUT:-$(mktemp -d)}
XDG_CACHE_HOME=${XDG_CACHE_HOME:-$OUT/cache}
export XDG_CACHE_HOME
bad=0

"$cairn" --version | head -n 1 || exit 1
"$cairn" selftest --device "$device" --json >"$OUT/selftest.json" || bad=1
"$cairn" selftest --device "$device" >"$OUT/selftest.txt"
"$cairn" selftest --device "$device" --debug >"$OUT/debug.txt" || bad=1
echo "debug build: $(grep -c -E 'WRONG|FAILED' "$OUT/debug.txt") lines with WRONG or FAILED"
grep -E 'WRONG|FAILED|wrong' "$OUT/selftest.txt"
python3 - "$OUT/selftest.json" <<'PYTHON' || bad=1
import json, sys
with open(sys.argv[1], encoding='utf-8') as f:
    d = json.load(f)
for x in d['devices']:
    print(x['title'], x['arch'], 'driver', x['driver'])
kernels = d['kernels']
wrong = [k for k in kernels if not k['ok']]
for k in wrong:
    print('WRONG', k['name'], k['storage'], k['error'])
values = sum(c['wrong_direct'] + c['wrong_staged'] + c['wrong_moved'] for c in d['conversions'])
print(f'{len(kernels)} checks of {len({k["name"] for k in kernels})} kernels, {len(wrong)} wrong; '
      f'{len(d["conversions"])} conversions, {values} values wrong')
sys.exit(bool(wrong or values))
PYTHON

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
for tool in memcheck racecheck synccheck; do
    if [ -z "$sanitizer" ]; then
        echo "$tool: no compute-sanitizer here"
        continue
    fi
    # Of the kernels for Hopper, racecheck takes a read of another lane for one that the arrival of the warp's first lane
    # at a barrier does not cover, though there is a __syncwarp between them.
    exclude=()
    [ "$tool" = racecheck ] && exclude=(--kernel-name-exclude kernel_substring=wgmma)
    "$sanitizer" --tool "$tool" "${exclude[@]}" --error-exitcode 9 "$cairn" selftest --device "$device" >"$OUT/$tool.log" 2>&1
    status=$?
    echo "$tool: exit $status; $(grep -E 'SUMMARY' "$OUT/$tool.log" | tail -n 1)"
    [ "$status" = 0 ] || bad=1
done
echo "logs: $OUT"
exit "$bad"
