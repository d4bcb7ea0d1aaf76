#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn bench: the shapes of the output; figures are not judged.
. "$(dirname "$0")/lib.sh"

measures_copies()
{
    run bench copy --device cpu --json
    status_is 0
    json_is 'd["schema"] == 1 and d["device"] == "cpu" and len(d["results"]) == 8'
    json_is 'all(r["bench"] == "copy" and r["rate"] > 0 and 0 < r["ratio"] <= 1 and r["unit"] == "GB/s" for r in d["results"])'
}

prints_a_table()
{
    run bench --device cpu norm
    status_is 0
    out_has 'rms_norm'
    out_has 'GB/s'
    out_lacks 'gemm '
}

refuses_what_it_does_not_know()
{
    run bench frob
    status_is 2
    err_has 'there is no bench "frob"'
    run bench copy norm
    status_is 2
    run bench --device nosuch copy
    status_is 3
    err_has 'no device nosuch'
}

it measures_copies
it prints_a_table
it refuses_what_it_does_not_know
finish
