#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/lib.sh"

desktop=$data/sysfs-synthetic/gfx1031-gfx1036-rx6750xt-plus-igpu
halo=$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt
mi100=$data/sysfs/gfx908-mi100
nothing=$tmp/nothing
mkdir "$nothing"

# make_torch DIR OPTIONS…: a tree with a PyTorch in DIR/venv.
make_torch()
{
    python3 -B "$data/../tools/mktree.py" "$@" || exit 1
}
make_torch "$tmp/wheel" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx900,gfx906,gfx908,gfx1030,gfx1100
make_torch "$tmp/native" --torch 2.10.0+rocm7.0 --hip 7.0.51831 --targets gfx1100,gfx1151 --aotriton 0.11.1 \
    --libs aotriton=gfx1151
make_torch "$tmp/cpu" --torch 2.9.1+cpu --hip none --targets gfx1030

prints_lines_that_a_shell_runs()
{
    HSA_OVERRIDE_GFX_VERSION=gfx1031 run env --root "$desktop" --torch "$tmp/wheel/venv"
    status_is 0
    err_has HSA_OVERRIDE_GFX_VERSION=gfx1031 # eval swallows the remark that says so
    out_has "export ROCR_VISIBLE_DEVICES='0'"
    out_has "export HSA_OVERRIDE_GFX_VERSION='10.3.0'"
    out_has "unset HSA_OVERRIDE_GFX_VERSION"
    ! grep -vE '^(# |export [A-Z_0-9]+=|unset [A-Z_0-9]+$)' "$out" || fail "a line that is none of the three"
    # shellcheck disable=SC2016 # the inner shell expands it
    got=$(HSA_OVERRIDE_GFX_VERSION=gfx1031 OUT=$out sh -c 'eval "$(cat "$OUT")"; echo "$ROCR_VISIBLE_DEVICES $HSA_OVERRIDE_GFX_VERSION"')
    [ "$got" = "0 10.3.0" ] || fail "eval gives \"$got\""
}

prints_the_contract_as_json()
{
    HSA_OVERRIDE_GFX_VERSION=gfx1031 HIP_VISIBLE_DEVICES="0, 1" PYTORCH_ROCM_ARCH=gfx1031 \
        run env --json --root "$desktop" --torch "$tmp/wheel/venv"
    status_is 0
    json_is 'list(d) == ["schema", "gpu", "set", "unset", "keep", "warnings"] and d["schema"] == 1 and d["gpu"] == 0'
    json_is 'all(set(v) == {"name", "value", "why", "source"} and v["why"] and v["source"] for v in d["set"] + d["unset"])'
    json_is 'all(set(v) == {"name", "value", "why"} and v["why"] for v in d["keep"])'
    json_is '{v["name"]: v["value"] for v in d["unset"]} == {"HSA_OVERRIDE_GFX_VERSION": "gfx1031", "HIP_VISIBLE_DEVICES": "0, 1"}'
    json_is '{v["name"]: v["value"] for v in d["set"]} == {"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "ROCR_VISIBLE_DEVICES": "0"}'
    json_is '[v["name"] for v in d["keep"]] == ["PYTORCH_ROCM_ARCH"]'
    json_is 'all(isinstance(w, str) for w in d["warnings"])'
    run env --shell json --root "$mi100"
    json_is 'd["gpu"] == 0'
}

sets_nothing_on_a_supported_card()
{
    run env --json --root "$mi100" --torch "$tmp/wheel/venv"
    status_is 0
    json_is 'd["set"] == [] and d["unset"] == [] and d["keep"] == []'
}

plans_for_shared_memory()
{
    HSA_OVERRIDE_GFX_VERSION=11.0.0 PYTORCH_NO_HIP_MEMORY_CACHING=1 AMD_SERIALIZE_KERNEL=3 \
        run env --json --root "$halo" --torch "$tmp/native/venv"
    status_is 0
    json_is '{v["name"] for v in d["unset"]} == {"HSA_OVERRIDE_GFX_VERSION", "PYTORCH_NO_HIP_MEMORY_CACHING", "AMD_SERIALIZE_KERNEL"}'
    json_is '{v["name"] for v in d["set"]} == {"TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "PYTORCH_HIP_ALLOC_CONF"}'
    json_is 'any("leave" in w and "GiB" in w for w in d["warnings"])'
}

lacks_a_gpu()
{
    run env --root "$nothing"
    status_is 3
    out_has "there is no AMD GPU"
    HSA_OVERRIDE_GFX_VERSION=x run env --json --root "$nothing"
    status_is 3
    json_is 'd["gpu"] is None and d["set"] == [] and d["unset"][0]["name"] == "HSA_OVERRIDE_GFX_VERSION"'
}

counts_a_told_apu_as_shared_memory()
{
    mkdir -p "$tmp/apu/proc" "$tmp/apu/sys/class"
    printf 'MemTotal: 131072000 kB\nMemAvailable: 120000000 kB\n' >"$tmp/apu/proc/meminfo"
    run env --json --root "$tmp/apu" --gfx gfx1151 --torch "$tmp/wheel/venv"
    json_is '[v for v in d["set"] if v["name"] == "PYTORCH_HIP_ALLOC_CONF"]'
    json_is '[w for w in d["warnings"] if "114.4 GiB usable, leave 16.0 GiB" in w]'
    run doctor --json --root "$tmp/apu" --gfx gfx1151
    json_is '[c["status"] for c in d["checks"] if c["id"] == "gpu-memory"] == ["ok"]'
}

takes_the_chip_by_hand()
{
    run env --json --root "$nothing" --gfx gfx1032 --torch "$tmp/wheel/venv"
    status_is 0
    json_is 'd["gpu"] == 0 and d["set"][0] == {**d["set"][0], "name": "HSA_OVERRIDE_GFX_VERSION", "value": "10.3.0"}'
    run env --root "$nothing" --gfx navi23
    status_is 2
    err_has "is not a gfx target"
}

plans_for_windows()
{
    HSA_OVERRIDE_GFX_VERSION=11.0.0 ROCR_VISIBLE_DEVICES=0 run env --json --os windows --root "$halo" --debug
    status_is 0
    json_is '{v["name"] for v in d["unset"]} == {"HSA_OVERRIDE_GFX_VERSION", "ROCR_VISIBLE_DEVICES"}'
    json_is 'not any(v["name"].startswith(("HSA", "ROCR")) for v in d["set"])'
    json_is 'any(v["name"] == "AMD_SERIALIZE_KERNEL" for v in d["set"])'
    json_is 'not any("GiB" in w for w in d["warnings"])' # of a machine that is not that of the plan
    run env --json --root "$halo"
    json_is 'any("GiB" in w for w in d["warnings"])'
}

takes_second_runtimes_out()
{
    make_torch "$tmp/tree" --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx1100
    mkdir -p "$tmp/tree/srv/lib" "$tmp/tree/srv/other"
    touch "$tmp/tree/srv/lib/libamdhip64.so.6"
    LD_LIBRARY_PATH=/srv/lib:/srv/other run env --json --root "$tmp/tree" --gfx gfx1100
    json_is '[v["value"] for v in d["set"] if v["name"] == "LD_LIBRARY_PATH"] == ["/srv/other"]'
    json_is '[v["value"] for v in d["unset"]] == ["/srv/lib:/srv/other"]'
    make_torch "$tmp/debian" --layout debian --torch 2.6.0 --hip 6.1.0 --targets gfx1100
    LD_LIBRARY_PATH=/opt/rocm/lib run env --json --root "$tmp/debian" --gfx gfx1100
    json_is 'd["unset"] == [] and "system" in d["keep"][0]["why"]'
    mkdir -p "$tmp/debian/opt/rocm-7.0.0/.info" "$tmp/debian/opt/rocm-7.0.0/lib"
    echo 7.0.0 >"$tmp/debian/opt/rocm-7.0.0/.info/version"
    LD_LIBRARY_PATH=/opt/rocm-7.0.0/lib run env --json --root "$tmp/debian" --gfx gfx1100
    json_is '[v["name"] for v in d["unset"]] == ["LD_LIBRARY_PATH"]'
    LD_LIBRARY_PATH=/opt/rocm-7.0.0/lib run doctor --json --root "$tmp/debian" --gfx gfx1100
    json_is '[c["status"] for c in d["checks"] if c["id"] == "ld-library-path"] == ["warn"]'
}

extends_path_for_bitsandbytes()
{
    make_torch "$tmp/bnb" --torch 2.10.0+rocm7.0 --hip 7.0.51831 --targets gfx1100 --bnb 0.49.0:rocm70:gfx1100 --rocm 7.0.1
    run env --json --root "$tmp/bnb" --gfx gfx1100
    json_is '[v["value"] for v in d["set"] if v["name"] == "PATH"] == ["/usr/bin:/bin:/opt/rocm/bin"]'
    PATH=$PATH:/opt/rocm/bin run env --json --root "$tmp/bnb" --gfx gfx1100
    json_is 'd["set"] == [] and d["keep"][0]["name"] == "PATH"'
}

knows_that_device_code_comes_apart()
{
    make_torch "$tmp/split" --layout kpack --torch 2.11.0+rocm7.14 --hip 7.14.0 --targets gfx1030,gfx1100 --device gfx1100
    run env --json --root "$tmp/split" --gfx gfx1100
    json_is 'd["set"] == [] and d["warnings"] == []'
    HSA_OVERRIDE_GFX_VERSION=10.3.0 run env --json --root "$tmp/split" --gfx gfx1031
    json_is 'd["unset"][0]["name"] == "HSA_OVERRIDE_GFX_VERSION" and d["set"] == []'
    json_is 'any("amd-torch-device-gfx1031" in w for w in d["warnings"])'
}

warns_of_a_build_without_rocm()
{
    run env --json --root "$mi100" --torch "$tmp/cpu/venv"
    status_is 0
    json_is 'any("CPU build" in w for w in d["warnings"])'
}

keeps_and_adds_on_demand()
{
    AMD_SERIALIZE_KERNEL=3 run env --json --root "$mi100" --keep AMD_SERIALIZE_KERNEL --with MY_OWN="it's mine" --with A=
    status_is 0
    json_is 'd["keep"][0]["name"] == "AMD_SERIALIZE_KERNEL" and d["unset"] == []'
    json_is 'any("--keep" in w for w in d["warnings"])'
    json_is '{v["name"]: v["value"] for v in d["set"]} == {"MY_OWN": "it\x27s mine", "A": ""}'
}

# The value that is hardest to quote; each dialect has to bring it through.
nasty=$'it\'s "a" $HOME `id` \\ \xe2\x80\x99\n# two; lines\\\''

quotes_for_sh()
{
    run env --root "$mi100" --with "NASTY=$nasty"
    # shellcheck disable=SC2016
    got=$(OUT=$out sh -c 'eval "$(cat "$OUT")"; printf "%s" "$NASTY"')
    [ "$got" = "$nasty" ] || fail "sh gets \"$got\""
}

quotes_for_dotenv()
{
    run env --root "$mi100" --shell dotenv --with "NASTY=$nasty" --with "PLAIN=a b\$c" --with "BARE=10.3.0"
    grep -qx 'BARE=10.3.0' "$out" || fail "quotes that docker's --env-file would take for a part of the value"
    python3 - "$out" "$nasty" <<'PYTHON' || fail "a .env reader gets something else"
import re, sys
values = {}
for line in open(sys.argv[1], encoding='utf-8', newline='\n'):
    name, _, text = line.rstrip('\n').partition('=')
    if line.startswith('#'):
        continue
    if text.startswith("'"):
        values[name] = text[1:-1]
    elif not text.startswith('"'):
        values[name] = text
    else:
        values[name] = re.sub(r'\\(.)', lambda m: {'n': '\n', 'r': '\r'}.get(m[1], m[1]), text[1:-1])
sys.exit(values != {'NASTY': sys.argv[2], 'PLAIN': 'a b$c', 'BARE': '10.3.0'})
PYTHON
}

quotes_for_fish_and_powershell()
{
    run env --root "$mi100" --shell fish --with "NASTY=it's \\ \$x"
    out_has "set -gx NASTY 'it\\'s \\\\ \$x'"
    run env --root "$mi100" --shell powershell --with "NASTY=it's ’ \$x"
    out_has "\$env:NASTY = 'it''s ’’ \$x'"
    HSA_OVERRIDE_GFX_VERSION=x run env --root "$mi100" --shell fish
    out_has "set -e HSA_OVERRIDE_GFX_VERSION"
    HSA_OVERRIDE_GFX_VERSION=x run env --root "$mi100" --shell powershell
    out_has "Remove-Item -ErrorAction SilentlyContinue Env:HSA_OVERRIDE_GFX_VERSION"
    if command -v fish >/dev/null; then
        run env --root "$mi100" --shell fish --with "NASTY=$nasty"
        got=$(OUT=$out fish -c "source \$OUT; printf '%s' \$NASTY")
        [ "$got" = "$nasty" ] || fail "fish gets \"$got\""
    fi
}

lets_no_value_break_out_of_a_remark()
{
    HSA_OVERRIDE_GFX_VERSION=$'x\ntouch broken' PYTORCH_ROCM_ARCH=$'y\rtouch broken\ntouch broken' run env --root "$mi100"
    status_is 0
    ! grep -q '^touch' "$out" || fail "a value starts a line"
    (eval "$(cat "$out")")
    [ ! -e broken ] || fail "a value was run"
}

knows_shells_by_their_names()
{
    for shell in bash zsh; do
        run env --root "$mi100" --shell "$shell" --with A=b
        status_is 0
        out_has "export A='b'"
    done
    run env --root "$mi100" --shell pwsh --with A=b
    out_has "\$env:A = 'b'"
    run env --root "$mi100" --os windows --with A=b
    out_has "\$env:A = 'b'"
    run env --root "$mi100" --os windows --shell sh --with A=b
    out_has "export A='b'"
    HSA_OVERRIDE_GFX_VERSION=x run env --root "$mi100" --shell cmd --with 'A=100% sure'
    out_has 'set "A=100%% sure"'
    out_has 'set "HSA_OVERRIDE_GFX_VERSION="'
    ! grep -vE '^(rem |set ")' "$out" || fail "a line that cmd does not take"
}

prints_the_page_behind_a_rule()
{
    HSA_OVERRIDE_GFX_VERSION=x run env --root "$mi100"
    out_has '[cairn help rules/override]'
    run help rules
    status_is 0
    sed -n '2s/[, ][, ]*/\n/gp' "$out" | grep . >"$tmp/pages"
    [ "$(wc -l <"$tmp/pages")" -ge 8 ] || fail "few pages"
    while read -r page; do
        run help "rules/$page"
        status_is 0
        cmp -s "$out" "$data/../../docs/rules/$page.md" || fail "not docs/rules/$page.md"
    done <"$tmp/pages"
    run help rules/nothing
    status_is 2
    run help --help
    status_is 0
}

explains_every_variable()
{
    run env --explain
    status_is 0
    out_has HSA_OVERRIDE_GFX_VERSION
    ! grep -q '.\{101\}' "$out" || fail "a line of more than 100 columns"
    run env --explain --json
    json_is 'len(d["variables"]) > 120 and all(v["name"] and v["verdict"] and v["reader"] and v["source"] for v in d["variables"])'
    while read -r name; do
        run env --explain "$name" --json --root "$mi100"
        json_is 'd["known"] and d["verdict"] and d["source"]'
    done <<EOT
HSA_OVERRIDE_GFX_VERSION
HSA_OVERRIDE_GFX_VERSION_1
PYTORCH_MAX_SPLIT_SIZE_MB
UCX_TLS
LD_LIBRARY_PATH
EOT
}

explains_one_variable()
{
    HSA_OVERRIDE_GFX_VERSION=10.3 run env --explain=HSA_OVERRIDE_GFX_VERSION --root "$mi100"
    status_is 0
    out_has "libhsakmt"
    out_has "unset '10.3'"
    HSA_OVERRIDE_GFX_VERSION=gfx1031 run env --explain=HSA_OVERRIDE_GFX_VERSION --root "$desktop" \
        --torch "$tmp/wheel/venv"
    out_has "unset 'gfx1031'"
    out_has "set '10.3.0'"
    run env --explain TORCH_USE_HIP_DSA
    out_has "nobody reads it"
    run env --explain PYTORCH_ROCM_ARCH
    out_has "build time only"
    run env --explain PATH
    out_has "set by you"
}

is_honest_about_what_it_does_not_know()
{
    run env --explain hip_visible_device
    status_is 1
    out_has "unknown to cairn"
    out_has "HIP_VISIBLE_DEVICES"
    run env --explain=XYZZY --json --root "$mi100"
    json_is 'd["known"] is False and d["nearest"] == []'
}

refuses_wrong_usage()
{
    run env --shell tcsh
    status_is 2
    err_has "--shell takes"
    run env --os beos
    status_is 2
    run env extra
    status_is 2
    run env --root "$mi100" --gpu 3
    status_is 2
    err_has "no GPU 3"
    run env --root "$mi100" --trainer musubi-tunr
    status_is 2
    err_has "musubi-tuner"
    run env --root "$mi100" --trainer photoshop
    status_is 2
    err_has "ai-toolkit, "
    run env --root "$mi100" --with NAME
    status_is 2
    run env --root "$tmp/absent"
    [ "$status" != 0 ] || fail "a root that is not there passes"
}

a_folder_that_is_not_there_shadows_nothing()
{
    LD_LIBRARY_PATH=/opt/rocm-0.0/lib run env --json --gfx gfx1151
    json_is 'not [v for v in d["unset"] if v["name"] == "LD_LIBRARY_PATH"]'
    LD_LIBRARY_PATH=/opt/rocm-0.0/lib run doctor --json --gfx gfx1151
    json_is '[c["status"] for c in d["checks"] if c["id"] == "ld-library-path"] == ["ok"]'
}

for case in counts_a_told_apu_as_shared_memory a_folder_that_is_not_there_shadows_nothing knows_shells_by_their_names prints_the_page_behind_a_rule prints_lines_that_a_shell_runs prints_the_contract_as_json sets_nothing_on_a_supported_card \
    plans_for_shared_memory lacks_a_gpu takes_the_chip_by_hand plans_for_windows takes_second_runtimes_out \
    extends_path_for_bitsandbytes knows_that_device_code_comes_apart warns_of_a_build_without_rocm \
    keeps_and_adds_on_demand quotes_for_sh quotes_for_dotenv quotes_for_fish_and_powershell \
    lets_no_value_break_out_of_a_remark explains_every_variable explains_one_variable \
    is_honest_about_what_it_does_not_know refuses_wrong_usage; do
    it "$case"
done
finish
