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

# All of them with ALL_KERNELS, which takes a minute; others see every kernel on the CPU.
kernels_agree()
{
    local only=(--only norm)
    [ -z "${ALL_KERNELS-}" ] || only=()
    FAKE_GFX=gfx1100 run selftest --device hip:0 --json "${only[@]}"
    status_is 0
    json_is 'all(k["ok"] and k["device"] == "hip:0" for k in d["kernels"]) and len(d["kernels"]) >= 6'
    json_is 'd["devices"][0]["arch"] == "gfx1100" and d["devices"][0]["pci"] == "0000:c0:00.0"'
    json_is 'd["devices"][0]["driver"] == "7.0.51831" and d["devices"][0]["wave"] == 32'
    [ -z "${ALL_KERNELS-}" ] || json_is 'len(d["conversions"]) == 6 and not any(c["wrong_direct"] + c["wrong_staged"] + c["wrong_moved"] for c in d["conversions"])'
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
    FAKE_GFX=gfx1100 run selftest --device hip:0 --only rms_norm_backward
    status_is 0
    for entry in "$HOME"/.cache/cairn/kernels/norm-f32-gfx1100-*; do
        : >"$entry"
    done
    FAKE_GFX=gfx1100 run selftest --device hip:0 --only rms_norm_backward
    status_is 0
}

# A hash is no secret: what another user has put there could be any code.
an_entry_of_another_is_made_anew()
{
    [ "$(id -u)" = 0 ] || { skip 'only root can give a file away'; return; }
    FAKE_GFX=gfx1100 CAIRN_KC=/nonexistent run selftest --device hip:0 --only rms_norm_backward
    status_is 0
    chown nobody "$HOME"/.cache/cairn/kernels/norm*-f32-gfx1100-*
    FAKE_GFX=gfx1100 CAIRN_KC=/nonexistent run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    FAKE_GFX=gfx1100 run selftest --device hip:0 --only rms_norm_backward
    status_is 0
    cp -r "$HOME/.cache" "$tmp/theirs" && chown nobody "$tmp/theirs/cairn/kernels"
    FAKE_GFX=gfx1100 CAIRN_KC=/nonexistent XDG_CACHE_HOME=$tmp/theirs run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    err_has "$tmp/theirs/cairn/kernels"
    out_has 'CAIRN_KC: /nonexistent'
}

# What a probe found is written to the folder, not through a link in it.
a_link_in_the_cache_is_not_followed()
{
    local file blas=$LD_LIBRARY_PATH:$LD_LIBRARY_PATH/../fake_blas
    echo precious >"$tmp/precious"
    LD_LIBRARY_PATH=$blas FAKE_GFX=gfx1032 run selftest --device hip:0 --only blas
    status_is 0
    [ -n "$(ls "$HOME/.cache/cairn/probe")" ] || fail 'nothing was probed'
    for file in "$HOME"/.cache/cairn/probe/* "$HOME"/.cache/cairn/gemm/*; do
        ln -sf "$tmp/precious" "$file"
    done
    LD_LIBRARY_PATH=$blas FAKE_GFX=gfx1032 run selftest --device hip:0 --only blas
    status_is 0
    rm -rf "$HOME/.cache/cairn/probe" "$HOME/.cache/cairn/gemm"
    [ "$(cat "$tmp/precious")" = precious ] || fail "written through a link: $(head -n 2 "$tmp/precious")"
}

works_without_a_cache()
{
    HOME='' run selftest --device hip:0 --only rms_norm_backward
    status_is 0
    touch "$tmp/file"
    XDG_CACHE_HOME=$tmp/file run selftest --device hip:0 --only rms_norm_backward
    status_is 0
}

features_go_to_the_compiler()
{
    FAKE_GFX=gfx90a:sramecc+:xnack- run selftest --device hip:0 --only rms_norm_backward
    status_is 0
    out_has 'gfx90a:sramecc+:xnack-'
}

# The libraries compute here, and refuse what the real ones would: what they are given is what they should be given.
libraries_multiply()
{
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$LD_LIBRARY_PATH/../fake_blas FAKE_GFX=gfx1030 \
        run selftest --device hip:0 --only blas
    status_is 0
    grep -q good "$HOME/.cache/cairn/probe/rocblas-gfx1030-"* || fail 'rocBLAS was not opened'
    grep -q good "$HOME/.cache/cairn/probe/hipblaslt-gfx1030-"* || fail 'hipBLASLt was not opened'
}

several_devices()
{
    CAIRN_FAKE_HIP=devices=2 run selftest --device hip:1 --only rms_norm_backward
    status_is 0
    out_has 'Fake Radeon 1'
    CAIRN_FAKE_HIP=devices=2 run selftest --only rms_norm_backward --json
    status_is 0
    json_is '[x["name"] for x in d["devices"]] == ["hip:0", "hip:1", "cpu"]'
    CAIRN_FAKE_HIP=devices=2 run selftest --device hip:2
    status_is 3
    err_has 'hip:0, hip:1, cpu'
}

no_device_and_an_old_library()
{
    CAIRN_FAKE_HIP=devices=0 run selftest --device hip
    status_is 3
    err_has 'libamdhip64.so.7 finds no device'
    CAIRN_FAKE_HIP=version=40500000 run selftest --device hip
    status_is 3
    err_has 'is version 4.5; '
}

out_of_memory()
{
    CAIRN_FAKE_HIP=memory=8192 run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    out_has 'out of memory (hipErrorOutOfMemory)'
    out_has '0 of 0 MiB are free'
    CAIRN_FAKE_HIP=memory=1048576 run bench --device hip:0 copy
    status_is 1
    err_has 'out of memory (hipErrorOutOfMemory)'
    err_has 'of 1 MiB are free'
}

without_its_compiler_nothing_is_called_wrong()
{
    mkdir alone
    cp "$cairn" alone/cairn
    cairn=$PWD/alone/cairn XDG_CACHE_HOME=$PWD/alone run selftest --device hip:0 --only layer_norm
    status_is 1
    out_has ' FAILED '
    out_has 'norm f32: the kernel compiler cairn-kc'
    out_has 'more for the same reason'
    out_has ' 0 wrong, '
    ! grep -q WRONG "$out" || fail 'nothing was computed'
}

a_lost_device_is_told_once_and_stays_lost()
{
    CAIRN_FAKE_HIP=fail=hipModuleLaunchKernel:2:700 run selftest --device hip:0 --only layer_norm
    status_is 1
    out_has 'hip:0: launch layer_norm_f32: hipErrorIllegalAddress (700)'
    out_has 'a new process may'
    out_has '1 checks, 0 wrong, 1 failed'
    ! grep -qE '[0-9]e[-+][0-9]' "$out" || fail 'a check passed after the loss'
}

an_error_in_its_memory_is_told()
{
    CAIRN_FAKE_HIP=fail=hipStreamSynchronize:3:214 run selftest --device hip:0 --only norm --json
    status_is 1
    json_is 'd["kernels"][-1]["error"].endswith("(214)") and "the card is faulty" in d["kernels"][-1]["hint"]'
    CAIRN_FAKE_HIP=fail=hipMemcpyDtoDAsync:1:214 run bench --device hip:0 copy
    status_is 1
    err_has 'hip:0: copy'
    err_has 'the card is faulty'
}

# Wherever the driver goes: an error with a remedy, and nothing that keeps the next run from working.
a_driver_that_goes_away()
{
    local codes='4 100 719'
    ! is_sanitized || codes=719
    for call in hipStreamCreateWithFlags hipMalloc hipMemcpyHtoDAsync hipStreamQuery hipStreamSynchronize hipModuleLoadData \
        hipModuleGetFunction hipModuleLaunchKernel hipMemcpyDtoHAsync; do
        for code in $codes; do
            CAIRN_FAKE_HIP=gone=$call:1:$code run selftest --device hip:0 --only rms_norm_backward
            status_is 1
            grep -q "($code)" "$out" "$err" || fail "$call: no word of $code"
            grep -q "dmesg" "$out" "$err" || fail "$call: no remedy"
        done
    done
    CAIRN_FAKE_HIP=gone=hipFree:1:999 run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    CAIRN_FAKE_HIP=gone=hipModuleUnload:1:999 run selftest --device hip:0 --only rms_norm_backward
    status_is 0
    CAIRN_FAKE_HIP=gone=hipInit:1:999 run selftest --device hip:0 --only rms_norm_backward
    status_is 3
    [ -z "$(find "$HOME/.cache/cairn" -name '*.tmp' -o -name '*lock*')" ] || fail 'something was left behind'
    run selftest --device hip:0 --only rms_norm_backward
    status_is 0
}

# It queues what never ends: the wait for it does.
a_hang_is_told()
{
    CAIRN_FAKE_HIP=hang=hipModuleLaunchKernel:2 run selftest --device hip:0 --only layer_norm --hang-after 1
    status_is 1
    out_has 'hip:0: launch layer_norm_f32: timed out after 1 s'
    out_has 'dmesg'
    CAIRN_FAKE_HIP=hang=hipMemcpyHtoDAsync:1 run selftest --device hip:0 --only rms_norm_backward --hang-after 1 --json
    status_is 1
    json_is 'd["kernels"][-1]["error"].endswith("bytes to the device: timed out after 1 s") and d["kernels"][-1]["hint"]'
    CAIRN_FAKE_HIP=hang=hipMemcpyDtoHAsync:1 run selftest --device hip:0 --only rms_norm_backward --hang-after 1
    status_is 1
    out_has 'bytes from the device: timed out after 1 s'
    CAIRN_FAKE_HIP=hang=hipMemcpyDtoDAsync:1 run bench --device hip:0 copy --hang-after 1
    status_is 1
    err_has 'bytes on the device: timed out after 1 s'
    CAIRN_FAKE_HIP=devices=2,hang=hipModuleLaunchKernel:1 run selftest --only rms_norm_backward --hang-after 1 --json
    status_is 1
    json_is '[x["name"] for x in d["devices"]] == ["hip:0", "hip:1", "cpu"]'
    json_is 'all(k["ok"] for k in d["kernels"] if k["device"] != "hip:0")'
}

# A call that never returns.
a_stuck_driver_is_told()
{
    for call in hipInit hipMalloc hipMemcpyHtoDAsync hipStreamQuery hipStreamSynchronize hipModuleLoadData hipModuleLaunchKernel \
        hipFree hipModuleUnload hipStreamDestroy; do
        CAIRN_FAKE_HIP=block=$call:1 run selftest --device hip:0 --only rms_norm_backward --hang-after 1
        status_is 1
        err_has 'the driver has not answered for 1 s'
        err_has 'dmesg'
    done
    CAIRN_FAKE_HIP=block=hipModuleLaunchKernel:1 run selftest --device hip:0 --only rms_norm_backward --hang-after 1
    err_has 'hip:0: launch rms_norm_f32: '
}

as_somebody_else()
{
    if [ "$(id -u)" = 0 ]; then
        chmod 755 "$tmp"
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        "$@"
    fi
}

a_cache_that_may_only_be_read()
{
    local cache=$tmp/readonly
    mkdir -p "$cache/cairn/kernels" && chmod -R a=rx "$cache"
    if as_somebody_else test -w "$cache/cairn/kernels" || ! as_somebody_else test -x "$cairn"; then
        skip 'no way to a folder that cannot be written'
        return
    fi
    said='with a cache that may only be read'
    status=0
    XDG_CACHE_HOME=$cache as_somebody_else "$cairn" selftest --device hip:0 --only rms_norm_backward >"$out" 2>"$err" || status=$?
    status_is 0
    [ -z "$(find "$cache" -type f)" ] || fail 'it was written all the same'
}

a_disk_that_is_full()
{
    mkdir -p "$tmp/full"
    # shellcheck disable=SC2016 # for the inner shell
    local script='mount -t tmpfs -o size=16k none "$1" || exit 77
        head -c 100000 /dev/zero >"$1/filler" 2>/dev/null
        XDG_CACHE_HOME=$1 "$2" selftest --device hip:0 --only rms_norm_backward || exit
        find "$1" -size +0 ! -name filler -type f'
    said='with a full disk'
    status=0
    unshare -rm sh -c "$script" - "$tmp/full" "$cairn" >"$out" 2>"$err" || status=$?
    if [ "$status" = 77 ] || grep -q '^unshare' "$err"; then
        skip 'no small file system can be made here'
        return
    fi
    status_is 0
    ! grep -q '\.co' "$out" || fail 'an entry is there'
}

a_failed_call_names_itself()
{
    for call in hipMemcpyHtoDAsync hipMemcpyDtoHAsync hipStreamSynchronize hipModuleLoadData hipModuleGetFunction; do
        CAIRN_FAKE_HIP=fail=$call:1:1 run selftest --device hip:0 --only rms_norm_backward
        status_is 1
        out_has 'hipErrorOther (1)'
    done
    CAIRN_FAKE_HIP=fail=hipStreamCreateWithFlags:1:1 run selftest --device hip:0
    status_is 1
    err_has 'hip:0: create a stream: hipErrorOther (1)'
}

a_compiler_may_fail()
{
    FAKE_GFX=gfx1 CAIRN_FAKE_HIP=compile=error run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    out_has 'compile norm for gfx1: norm.k:7:3: error: told to fail'
    FAKE_GFX=gfx1 CAIRN_FAKE_HIP=compile=abort run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    out_has 'the compiler was killed by signal 6'
    out_has 'this ROCm may be older than the chip'
    FAKE_GFX=gfx1 CAIRN_FAKE_HIP=compile=killed run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    out_has 'the compiler was killed by signal 9'
    out_has 'OOM killer'
    FAKE_GFX=gfx1 CAIRN_FAKE_HIP=compile=garbage run selftest --device hip:0 --only rms_norm_backward
    status_is 1
    out_has 'load the kernels norm for gfx1: hipErrorOther (209)'
}

it kernels_agree
it the_cache_needs_no_compiler
it a_damaged_entry_is_made_anew
it an_entry_of_another_is_made_anew
it a_link_in_the_cache_is_not_followed
it works_without_a_cache
it features_go_to_the_compiler
it libraries_multiply
it several_devices
it no_device_and_an_old_library
it out_of_memory
it without_its_compiler_nothing_is_called_wrong
it a_lost_device_is_told_once_and_stays_lost
it an_error_in_its_memory_is_told
it a_driver_that_goes_away
it a_hang_is_told
it a_stuck_driver_is_told
it a_cache_that_may_only_be_read
it a_disk_that_is_full
it a_failed_call_names_itself
it a_compiler_may_fail
finish
