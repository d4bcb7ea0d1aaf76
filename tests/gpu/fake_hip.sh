#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn on an AMD GPU that is none (fake_hip.c): every kernel end to end, and what goes wrong on the way.
. "$(dirname "$0")/../cli/lib.sh"
LD_LIBRARY_PATH=$(dirname "$cairn")/tests/gpu/fake
export LD_LIBRARY_PATH

entries()
{
    find "$HOME/.cache/cairn/kernels" -type f | wc -l
}

every_kernel_agrees()
{
    FAKE_GFX=gfx1100 run selftest --device hip:0 --json
    status_is 0
    json_is 'all(k["ok"] and k["device"] == "hip:0" for k in d["kernels"]) and len(d["kernels"]) >= 6'
    json_is 'd["devices"][0]["arch"] == "gfx1100" and d["devices"][0]["pci"] == "0000:c0:00.0"'
    json_is 'd["devices"][0]["driver"] == "7.0.51831" and d["devices"][0]["wave"] == 32'
    json_is 'len(d["conversions"]) == 6 and not any(c["wrong_direct"] + c["wrong_staged"] + c["wrong_moved"] for c in d["conversions"])'
    [ "$(entries)" -ge 3 ] || fail "$(entries) entries in the cache"
}

the_cache_needs_no_compiler()
{
    FAKE_GFX=gfx1100 CAIRN_KC=/nonexistent run selftest --device hip:0 --only norm
    status_is 0
    FAKE_GFX=gfx1201 CAIRN_KC=/nonexistent run selftest --device hip:0 --only norm
    status_is 1
    out_has 'CAIRN_KC: /nonexistent: No such file'
}

a_damaged_entry_is_made_anew()
{
    for entry in "$HOME"/.cache/cairn/kernels/norm-f32-gfx1100-*; do
        printf 'x' | dd of="$entry" bs=1 seek=40 conv=notrunc 2>/dev/null
    done
    FAKE_GFX=gfx1100 run selftest --device hip:0 --only rms_norm
    status_is 0
    for entry in "$HOME"/.cache/cairn/kernels/norm-f32-gfx1100-*; do
        : >"$entry"
    done
    FAKE_GFX=gfx1100 run selftest --device hip:0 --only rms_norm
    status_is 0
}

works_without_a_cache()
{
    HOME='' run selftest --device hip:0 --only rms_norm
    status_is 0
    touch "$tmp/file"
    XDG_CACHE_HOME=$tmp/file run selftest --device hip:0 --only rms_norm
    status_is 0
}

features_go_to_the_compiler()
{
    FAKE_GFX=gfx90a:sramecc+:xnack- run selftest --device hip:0 --only rms_norm
    status_is 0
    out_has 'gfx90a:sramecc+:xnack-'
}

several_devices()
{
    CAIRN_FAKE_HIP=devices=2 run selftest --device hip:1 --only rms_norm
    status_is 0
    out_has 'Fake Radeon 1'
    CAIRN_FAKE_HIP=devices=2 run selftest --only rms_norm --json
    status_is 0
    json_is '[x["name"] for x in d["devices"]] == ["hip:0", "hip:1", "cpu"]'
    CAIRN_FAKE_HIP=devices=2 run selftest --device hip:2
    status_is 3
    err_has 'there are hip:0, hip:1, cpu'
}

no_device_and_an_old_library()
{
    CAIRN_FAKE_HIP=devices=0 run selftest --device hip
    status_is 3
    err_has 'libamdhip64.so.7 finds no device'
    CAIRN_FAKE_HIP=version=40500000 run selftest --device hip
    status_is 3
    err_has 'is version 4.5; 5.0 or newer is needed'
}

out_of_memory()
{
    CAIRN_FAKE_HIP=memory=8192 run selftest --device hip:0 --only rms_norm
    status_is 1
    out_has 'out of memory (hipErrorOutOfMemory)'
}

a_lost_device_is_told_once_and_stays_lost()
{
    # What belongs to a lost device is not given back: its runtime may hang in that.
    ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 CAIRN_FAKE_HIP=fail=hipModuleLaunchKernel:2:700 \
        run selftest --device hip:0 --only norm
    status_is 1
    out_has 'hip:0: launch layer_norm_f32: hipErrorIllegalAddress (700)'
    ! grep -qE '[0-9]e[-+][0-9]' "$out" || fail 'a check passed after the loss'
}

a_failed_call_names_itself()
{
    for call in hipMemcpyHtoDAsync hipMemcpyDtoHAsync hipStreamSynchronize hipModuleLoadData hipModuleGetFunction; do
        CAIRN_FAKE_HIP=fail=$call:1:1 run selftest --device hip:0 --only rms_norm
        status_is 1
        out_has 'hipErrorOther (1)'
    done
    CAIRN_FAKE_HIP=fail=hipStreamCreateWithFlags:1:1 run selftest --device hip:0
    status_is 1
    err_has 'hip:0: create a stream: hipErrorOther (1)'
}

a_compiler_may_fail()
{
    FAKE_GFX=gfx1 CAIRN_FAKE_HIP=compile=error run selftest --device hip:0 --only rms_norm
    status_is 1
    out_has 'compile norm for gfx1: norm.k:7:3: error: told to fail'
    FAKE_GFX=gfx1 CAIRN_FAKE_HIP=compile=abort run selftest --device hip:0 --only rms_norm
    status_is 1
    out_has 'the compiler was ended by signal 6'
    FAKE_GFX=gfx1 CAIRN_FAKE_HIP=compile=garbage run selftest --device hip:0 --only rms_norm
    status_is 1
    out_has 'load the kernels norm for gfx1: hipErrorOther (209)'
}

it every_kernel_agrees
it the_cache_needs_no_compiler
it a_damaged_entry_is_made_anew
it works_without_a_cache
it features_go_to_the_compiler
it several_devices
it no_device_and_an_old_library
it out_of_memory
it a_lost_device_is_told_once_and_stays_lost
it a_failed_call_names_itself
it a_compiler_may_fail
finish
