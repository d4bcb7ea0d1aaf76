#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn selftest: every kernel on the CPU, the shapes of the output, and devices that are not there.
. "$(dirname "$0")/lib.sh"

agrees_on_the_cpu()
{
    run selftest --device cpu --json
    status_is 0
    err_is_empty
    json_is 'd["schema"] == 1 and d["device"] == "cpu" and len(d["kernels"]) >= 6'
    json_is 'all(k["ok"] and k["error"] is None and k["worst_error"] <= k["tolerance"] for k in d["kernels"])'
    json_is '{k["storage"] for k in d["kernels"] if k["name"] == "layer_norm"} == {"f32", "bf16", "f16"}'
    json_is 'd["devices"][0]["units"] >= 1 and d["devices"][0]["memory_bytes"] > 0'
    # Every value of bf16 is kept.
    json_is 'len(d["conversions"]) == 6 and all(c["values"] >= 65536 for c in d["conversions"])'
    json_is 'not any(c[k] for c in d["conversions"] for k in ("wrong_direct", "wrong_staged", "wrong_moved"))'
    json_is '[(c["from"], c["to"]) for c in d["conversions"]][2:] == [("bf16", "f32"), ("bf16", "f16"), ("f32", "bf16"), ("f16", "bf16")]'
}

prints_a_table()
{
    run selftest --device cpu --only norm
    status_is 0
    out_has 'layer_norm'
    out_has ', 0 wrong'
    longest=$(awk '{ if (length($0) > n) n = length($0) } END { print n }' "$out")
    [ "$longest" -le 110 ] || fail "a line of $longest columns"
}

knows_no_such_kernel()
{
    run selftest --device cpu --only nosuch
    status_is 2
    err_has 'no kernel has "nosuch" in its name'
}

names_the_devices_there_are()
{
    run selftest --device hip:9
    status_is 3
    err_has 'no device hip:9'
    err_has 'cpu'
    run selftest --device frob
    status_is 2
    err_has 'no device frob'
}

cleans_its_own_environment()
{
    HSA_OVERRIDE_GFX_VERSION=gfx1031 run selftest --device cpu --only rms_norm
    status_is 0
    err_has 'HSA_OVERRIDE_GFX_VERSION=gfx1031: malformed'
}

it agrees_on_the_cpu
it prints_a_table
it knows_no_such_kernel
it names_the_devices_there_are
it cleans_its_own_environment
finish
