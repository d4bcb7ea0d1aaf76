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

# One block of a Wan model, with its weights in each place.
trains_a_wan_block()
{
    run bench wan --device cpu --json --seconds 0.01 --tokens 8
    status_is 0
    json_is '[r["by"] for r in d["results"]] == ["device", "fp8", "int8", "host"]'
    json_is 'all(r["bench"] == "wan" and r["name"] == "tiny" and r["sizes"][:2] == [8, 256] for r in d["results"])'
    json_is 'd["results"][0]["relative"] == 1 and all("ops" not in r for r in d["results"])'
}

shows_the_ops_of_a_wan_block()
{
    run bench wan --device cpu --json --seconds 0.01 --tokens 8 --base int8 --profile
    status_is 0
    json_is 'len(d["results"]) == 1 and "relative" not in d["results"][0]'
    json_is '{o["part"] for o in d["results"][0]["ops"]} >= {"self_attn", "cross_attn", "ffn"}'
    json_is 'sum(o["calls"] for o in d["results"][0]["ops"] if o["op"] == "attention_backward") == 2'
    run bench wan --device cpu --seconds 0.01 --tokens 8 --base device --profile
    out_has 'attention_backward'
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
    run bench wan --model 3B
    status_is 2
    err_has '"3B"'
    run bench wan --base int4
    status_is 2
    run bench --device nosuch copy
    status_is 2
    err_has 'no device nosuch'
}

it measures_copies
it prints_a_table
it compares_matrices
it trains_a_wan_block
it shows_the_ops_of_a_wan_block
it shows_what_it_has_when_interrupted
it refuses_what_it_does_not_know
finish
