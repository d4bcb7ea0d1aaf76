#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which of several ROCms cairn computes with: stand-ins for AMD's libraries in the places where pip, the distribution and
# AMD's packages put the true ones.
. "$(dirname "$0")/../cli/lib.sh"
fake=$(dirname "$cairn")/tests/gpu/fake
blas=$(dirname "$cairn")/tests/gpu/fake_blas
export FAKE_GFX=gfx1100
site=venv/lib/python3.12/site-packages

wheel()
{
    mkdir -p "$tmp/$1/torch/lib"
    printf "__version__ = '%s'\nhip = '%s'\ncuda = None\n" "$2" "$3" >"$tmp/$1/torch/version.py"
    : >"$tmp/$1/torch/__init__.py"
}

# The names that pytorch.org's wheels have.
whole_wheel()
{
    wheel "$site" 2.10.0+rocm7.0 7.0.51831
    cp "$fake/libamdhip64.so.7" "$tmp/$site/torch/lib/libamdhip64.so"
    cp "$fake/libhiprtc.so.7" "$tmp/$site/torch/lib/libhiprtc.so"
}

library_is()
{
    json_is "d['devices'][0]['library'] == '$1'"
}

tests_with()
{
    rm -rf "$tmp/.cache" # a kernel that is kept needs no compiler
    run selftest --device hip:0 --only rms_norm_backward --json
    status_is 0
    json_is 'all(k["ok"] for k in d["kernels"])'
}

# This machine may have an older one of the distribution as well; it is not taken.
a_wheel_is_enough()
{
    whole_wheel
    VIRTUAL_ENV=$tmp/venv tests_with
    library_is "$tmp/$site/torch/lib/libamdhip64.so"
    json_is '"2.10.0+rocm7.0" in d["devices"][0]["library_source"] and d["devices"][0]["not_used"] is None'
    VIRTUAL_ENV=$tmp/venv run doctor --json
    json_is "any(c['id'] == 'native-runtime' and '$tmp/$site/torch/lib/libamdhip64.so' in c['fact'] for c in d['checks'])"
}

what_the_user_names_comes_first()
{
    whole_wheel
    mkdir -p "$tmp/mine/lib"
    cp "$fake/libamdhip64.so.7" "$fake/libhiprtc.so.7" "$tmp/mine/lib"
    for name in ROCM_PATH HIP_PATH; do
        export VIRTUAL_ENV="$tmp/venv" "$name=$tmp/mine"
        tests_with
        unset VIRTUAL_ENV "$name"
        library_is "$tmp/mine/lib/libamdhip64.so.7"
    done
    VIRTUAL_ENV=$tmp/venv LD_LIBRARY_PATH=$tmp/mine/lib tests_with
    library_is "$tmp/mine/lib/libamdhip64.so.7"
}

therocks_wheels()
{
    wheel other/lib/python3.12/site-packages 2.11.0+rocm7.13.0 7.13.1
    local in=$tmp/other/lib/python3.12/site-packages
    mkdir -p "$in/_rocm_sdk_core/lib" "$in/_rocm_sdk_libraries_gfx1100/lib"
    cp "$fake/libamdhip64.so.7" "$fake/libhiprtc.so.7" "$in/_rocm_sdk_core/lib"
    cp "$blas/librocblas.so.5" "$in/_rocm_sdk_libraries_gfx1100/lib"
    VIRTUAL_ENV=$tmp/other tests_with
    library_is "$in/_rocm_sdk_core/lib/libamdhip64.so.7"
}

# One that does not open is told, and the next one is used, with its own compiler.
a_broken_one_is_passed_over()
{
    whole_wheel
    mkdir -p "$tmp/broken/lib"
    echo 'not a library' >"$tmp/broken/lib/libamdhip64.so.7"
    cp "$fake/libhiprtc.so.7" "$tmp/broken/lib"
    VIRTUAL_ENV=$tmp/venv ROCM_PATH=$tmp/broken tests_with
    library_is "$tmp/$site/torch/lib/libamdhip64.so"
    json_is "'$tmp/broken/lib/libamdhip64.so.7' in d['devices'][0]['not_used']"
    VIRTUAL_ENV=$tmp/venv ROCM_PATH=$tmp/broken run selftest --device hip:0 --only rms_norm_backward
    out_has "$tmp/broken/lib/libamdhip64.so.7"
}

# So is one whose compiler does not open: the runtime of one ROCm is not used with the compiler of another.
a_broken_compiler_is_passed_over()
{
    whole_wheel
    mkdir -p "$tmp/half/lib"
    cp "$fake/libamdhip64.so.7" "$tmp/half/lib"
    echo 'not a library' >"$tmp/half/lib/libhiprtc.so.7"
    VIRTUAL_ENV=$tmp/venv ROCM_PATH=$tmp/half tests_with
    library_is "$tmp/$site/torch/lib/libamdhip64.so"
    json_is "'$tmp/half/lib/libhiprtc.so.7' in d['devices'][0]['not_used']"
    # It is found out once, until the file is another.
    cp "$fake/libhiprtc.so.7" "$tmp/half/lib"
    VIRTUAL_ENV=$tmp/venv ROCM_PATH=$tmp/half run selftest --device hip:0 --only rms_norm_backward --json
    status_is 0
    library_is "$tmp/half/lib/libamdhip64.so.7"
}

# Matrices are multiplied by the library of the same ROCm, or by none: not by what else the loader finds.
the_library_beside_the_runtime()
{
    tiny_job >job.yaml
    sed -i 's/width: 16/width: 64/; s/device: cpu/device: hip:0/' job.yaml
    whole_wheel
    rm -rf "$tmp/.cache"
    VIRTUAL_ENV=$tmp/venv LD_LIBRARY_PATH=$blas run train job.yaml --steps 1 --set run.dir=without
    status_is 0
    [ -z "$(cat "$HOME"/.cache/cairn/probe/rocblas-* 2>/dev/null)" ] || fail "$(cat "$HOME"/.cache/cairn/probe/rocblas-*)"
    cp "$blas/librocblas.so.5" "$tmp/$site/torch/lib/librocblas.so"
    VIRTUAL_ENV=$tmp/venv LD_LIBRARY_PATH=$blas run train job.yaml --steps 1 --set run.dir=with
    status_is 0
    err_has "runtime   $tmp/$site/torch/lib/libamdhip64.so"
    grep -qx "$tmp/$site/torch/lib/librocblas.so" "$HOME"/.cache/cairn/probe/rocblas-* || fail 'another rocBLAS was opened'
}

it a_wheel_is_enough
it what_the_user_names_comes_first
it therocks_wheels
it the_library_beside_the_runtime
it a_broken_one_is_passed_over
it a_broken_compiler_is_passed_over
finish
