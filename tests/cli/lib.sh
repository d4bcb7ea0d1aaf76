# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What the command-line tests share.  A test is a script that sources this file, has one function a case and
# ends with `finish`:
#
#     . "$(dirname "$0")/lib.sh"
#     lists_the_gpu()
#     {
#         run gpu --root "$data/sysfs/gfx908-mi100"
#         status_is 0
#         out_has gfx908
#     }
#     it lists_the_gpu
#     finish
#
# The test starts itself anew with an empty environment, since the user's own would change the answers.  A
# variable for one run stands before it:  HIP_VISIBLE_DEVICES="0, 1" run gpu
# `run` leaves $out, $err (files) and $status.

if [ -z "${CAIRN_TEST_CLEAN:-}" ]; then
    exec env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 CAIRN_TEST_CLEAN=1 CAIRN="${CAIRN:?the program to test}" \
        CAIRN_TEST_DATA="${CAIRN_TEST_DATA:?the folder tests/data}" CAIRN_VERSION="${CAIRN_VERSION:-}" \
        ASAN_OPTIONS="${ASAN_OPTIONS:-}" UBSAN_OPTIONS="${UBSAN_OPTIONS:-}" bash "$0" "$@"
fi

cairn=$CAIRN
# shellcheck disable=SC2034 # for the scripts that source this
data=$CAIRN_TEST_DATA
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export HOME=$tmp
unset CAIRN CAIRN_TEST_DATA CAIRN_TEST_CLEAN
cd "$tmp" || exit 1

out=$tmp/out
err=$tmp/err
status=
said=
cases=0
failed=0
bad=
skipped=

run()
{
    said="cairn $*"
    status=0
    "$cairn" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

fail()
{
    bad=yes
    echo "# $said: $*"
    sed 's/^/#   stderr: /;5q' "$err"
}

# wait_until COMMAND: tries it until it succeeds, for half a minute at most; a busy machine is slow.
wait_until()
{
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.05
    done
    fail "waited in vain: $*"
}

# skip REASON; return: it can not be tried here.
skip()
{
    skipped=$1
}

# interrupt_after SECONDS COMMAND…: one SIGINT.  Without --foreground there are two, and one that comes while LeakSanitizer
# looks at a process that ends leaves that there for ever.
interrupt_after()
{
    timeout --foreground -s INT --preserve-status "$@"
}

# The sanitizers make each run several times as long: a case that repeats itself need not repeat all of it there.
is_sanitized()
{
    [ -n "${ASAN_OPTIONS:-}" ]
}

status_is()
{
    [ "$status" = "$1" ] || fail "exit $status, want $1"
}

out_has()
{
    grep -qF -e "$1" "$out" || fail "no \"$1\" on stdout"
}

out_lacks()
{
    ! grep -qF -e "$1" "$out" || fail "\"$1\" on stdout"
}

err_has()
{
    for text in "$@"; do
        grep -qF -e "$text" "$err" || fail "no \"$text\" on stderr"
    done
}

out_is_empty()
{
    [ ! -s "$out" ] || fail "stdout is not empty: $(head -n 1 "$out")"
}

err_is_empty()
{
    [ ! -s "$err" ] || fail "stderr is not empty"
}

# json_is EXPRESSION: python, with the parsed stdout as d; must be true.
json_is()
{
    python3 - "$out" "$1" 2>"$tmp/python" <<'PYTHON' || fail "not true of the JSON: $1: $(tail -n 1 "$tmp/python")"
import json, sys
with open(sys.argv[1], encoding='utf-8') as f:
    d = json.load(f)
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}

# tiny_job: makes text.txt, and prints what has the CPU train on it in a moment; other keys of train: may follow.
tiny_job()
{
    awk 'BEGIN { for (i = 0; i < 700; i++) printf "%s ", substr("stone river path moss", 1 + i * 7 % 15, 6) }' >text.txt
    cat <<'YAML'
data:
  path: text.txt
model:
  layers: 1
  heads: 2
  width: 16
  context: 16
train:
  steps: 6
  batch: 4
  device: cpu
YAML
}

# it FUNCTION [TITLE]: runs one case.
it()
{
    bad=
    said=
    skipped=
    : >"$out"
    : >"$err"
    "$1"
    cases=$((cases + 1))
    if [ -n "$bad" ]; then
        failed=$((failed + 1))
        echo "not ok $cases - ${2:-$1}"
    else
        echo "ok $cases - ${2:-$1}${skipped:+ # SKIP $skipped}"
    fi
}

finish()
{
    echo "1..$cases"
    [ "$failed" = 0 ]
    exit
}
