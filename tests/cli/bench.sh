#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn bench: the shapes of the output; figures are not judged.
. "$(dirname "$0")/lib.sh"

measures_copies()
{
    run bench copy --device cpu --json --seconds 0.01
    status_is 0
    json_is 'd["schema"] == 1 and d["device"] == "cpu" and len(d["results"]) == 8'
    json_is 'all(r["bench"] == "copy" and r["rate"] > 0 and 0 < r["ratio"] <= 1 and r["unit"] == "GB/s" for r in d["results"])'
}

prints_a_table()
{
    run bench --device cpu softmax copy --seconds 0.01
    status_is 0
    out_has 'softmax backward'
    out_has 'copy kernel'
    out_has 'GB/s'
    out_lacks 'a b'
}

# The ceiling of a matrix row is the best product of its format, also where products were not asked for.
compares_matrices()
{
    run bench gemm --device cpu --json --seconds 0.01
    status_is 0
    json_is 'all(r["unit"] == "TFLOP/s" and r["sizes"] for r in d["results"])'
    json_is '{r["format"] for r in d["results"]} == {"f32", "bf16", "f16"}'
    json_is 'all(any(r["ratio"] == 1 for r in d["results"] if r["format"] == f) for f in ("f32", "bf16", "f16"))'
    json_is 'all(r["by"] in ("cpu", "openblas") for r in d["results"])'
    run bench attention --device cpu --json --seconds 0.01
    json_is '{r["bench"] for r in d["results"]} == {"attention"}'
    json_is 'all(0 < r["rate"] <= r["ceiling"] for r in d["results"])'
}

shows_what_it_has_when_interrupted()
{
    said='cairn bench, interrupted'
    "$cairn" bench --device cpu --seconds 0.01 >"$out" 2>"$err" &
    sleep 1
    kill -TERM $!
    status=0
    wait $! || status=$?
    status_is 143
    out_has SHARE
    err_has 'interrupted'
}

refuses_what_it_does_not_know()
{
    run bench frob
    status_is 2
    err_has '"frob"'
    run bench copy --seconds soon
    status_is 2
    run bench --device nosuch copy
    status_is 2
    err_has 'no device nosuch'
}

it measures_copies
it prints_a_table
it compares_matrices
it shows_what_it_has_when_interrupted
it refuses_what_it_does_not_know
finish
