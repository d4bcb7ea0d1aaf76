#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn gpu: the captured machines against reviewed answers, then the shapes of the output and bad input.
. "$(dirname "$0")/lib.sh"

golden()
{
    run gpu --json --root "$1"
    status_is 0
    err_is_empty
    python3 - "$out" "$data/golden/gpu/$(basename "$1").json" >"$tmp/diff" <<'PYTHON' || fail "$(cat "$tmp/diff")"
import json, sys
got, want = (json.load(open(p, encoding='utf-8')) for p in sys.argv[1:3])
def differ(a, b, at):
    if isinstance(a, dict) and isinstance(b, dict):
        return [x for k in sorted(a.keys() | b.keys()) for x in differ(a.get(k, 'no key'), b.get(k, 'no key'), f'{at}.{k}')]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return [x for i, (p, q) in enumerate(zip(a, b)) for x in differ(p, q, f'{at}[{i}]')]
    return [] if a == b else [f'{at}: got {a!r}, want {b!r}']
found = differ(got, want, '')
print('; '.join(found[:4]))
sys.exit(bool(found))
PYTHON
}

every_answer_has_its_machine()
{
    for want in "$data"/golden/gpu/*.json; do
        name=$(basename "$want" .json)
        [ -d "$data/sysfs/$name" ] || [ -d "$data/sysfs-synthetic/$name" ] || fail "no machine for $name"
    done
}

fits_a_hundred_columns()
{
    for machine in "$data"/sysfs/* "$data"/sysfs-synthetic/*; do
        run gpu --verbose --root "$machine"
        status_is 0
        longest=$(awk '{ if (length($0) > n) n = length($0) } END { print n }' "$out")
        [ "$longest" -le 100 ] || fail "$(basename "$machine"): a line of $longest columns"
    done
}

names_are_cut_and_cleaned()
{
    mkdir -p "$tmp/odd"
    cp -r "$data/sysfs/gfx1030-rx6900xt-desktop-kfd-excerpt/sys" "$tmp/odd/sys"
    dir=$tmp/odd/sys/class/drm/card0/device
    mkdir -p "$dir" "$tmp/odd/usr/share/libdrm"
    printf 'DRIVER=amd\033gpu\nPCI_ID=1002:73BF\n' >"$dir/uevent"
    echo 0xc0 >"$dir/revision"
    mkdir -p "$tmp/odd/proc/sys/kernel" "$tmp/odd/run/systemd"
    printf '6.17\033]0;x\007\n' >"$tmp/odd/proc/sys/kernel/osrelease"
    printf 'lxc\033[2J\n' >"$tmp/odd/run/systemd/container"
    for name in 'Karte \377\033[31m' "$(printf '\\303\\251%.0s' $(seq 60))"; do
        printf '1.0.0\n73BF,\tC0,\t%b\n' "$name" >"$tmp/odd/usr/share/libdrm/amdgpu.ids"
        run gpu --verbose --root "$tmp/odd"
        status_is 0
        python3 - "$out" <<'PYTHON' || fail "not clean UTF-8 of 100 columns"
import sys
text = open(sys.argv[1], encoding='utf-8').read()
sys.exit('\033' in text or max(map(len, text.splitlines())) > 100)
PYTHON
    done
    out_has éé
}

no_gpu_is_exit_3()
{
    mkdir -p "$tmp/empty/sys"
    run gpu --root "$tmp/empty"
    status_is 3
    out_has "No AMD GPU found"
    run gpu --json --root "$tmp/empty"
    status_is 3
    json_is 'd["gpus"] == [] and d["default_gpu"] is None and d["schema"] == 1'
}

missing_sysfs_is_said()
{
    mkdir -p "$tmp/nothing"
    run gpu --json --root "$tmp/nothing"
    status_is 3
    json_is 'any("sys does not exist" in p for p in d["problems"])'
}

a_root_that_is_no_directory()
{
    : >"$tmp/file"
    run gpu --root "$tmp/file"
    status_is 2
    out_is_empty
    err_has "$tmp/file: Not a directory"
    run gpu --root "$tmp/no-such"
    status_is 2
    err_has "No such file"
}

device_nodes_are_problems()
{
    cp -r "$data/sysfs/gfx1030-rx6900xt-desktop-kfd-excerpt" "$tmp/nodev"
    mkdir "$tmp/nodev/dev"
    run gpu --json --root "$tmp/nodev"
    status_is 0
    json_is 'd["gpus"][0]["rocm_capable"] is True'
    json_is 'any("/dev/kfd" in p for p in d["gpus"][0]["problems"])'
    json_is 'any("/dev/dri/renderD128 does not exist" in p for p in d["gpus"][0]["problems"])'
}

# Empty files: whoever loaded one would fail.
put_libraries()
{
    mkdir -p "$1"
    for name in "${@:2}"; do
        : >"$1/$name"
    done
}

libraries_by_their_files()
{
    machine=$tmp/machine
    cp -r "$data/sysfs/gfx1030-rx6900xt-desktop-kfd-excerpt" "$machine"
    lib=$machine/opt/rocm/lib
    row='{(x["purpose"], x["name"]): x for x in d["gpus"][0]["libraries"]}'
    run gpu --json --root "$machine"
    json_is "all(x['use'] == 'no' for x in $row.values())"
    put_libraries "$lib" libamdhip64.so.6 libhiprtc.so.6 librocblas.so.4 libhipblaslt.so.0
    put_libraries "$lib/rocblas/library" TensileLibrary_lazy_gfx1100.dat
    run gpu --json --root "$machine"
    json_is "${row}['compile', 'hiprtc']['path'] == '/opt/rocm/lib/libhiprtc.so.6'"
    json_is "${row}['compile', 'hiprtc']['use'] == 'if it opens' and ${row}['gemm', 'cairn']['use'] == 'yes'"
    json_is "${row}['gemm', 'rocblas']['use'] == 'no' and 'no kernels for gfx1030' in ${row}['gemm', 'rocblas']['why']"
    json_is "${row}['collectives', None]['use'] == 'no'"
    put_libraries "$lib/rocblas/library" TensileLibrary_lazy_gfx1030.dat
    put_libraries "$lib/hipblaslt/library" TensileLibrary_lazy_gfx1030.dat
    run gpu --json --root "$machine"
    json_is "${row}['gemm', 'rocblas']['use'] == ${row}['gemm', 'hipblaslt']['use'] == 'if it opens'"
    run gpu --root "$machine"
    tr '\n' ' ' <"$out" | tr -s ' ' | grep -q 'compiles with /opt/rocm/lib/libhiprtc.so.6' || fail "no compiler is named"
}

# What the user names comes first, then the newest; the runtime's own compiler and libraries go with it.
libraries_of_the_runtime_that_is_chosen()
{
    machine=$tmp/order
    cp -r "$data/sysfs/gfx1030-rx6900xt-desktop-kfd-excerpt" "$machine"
    put_libraries "$machine/opt/mine/lib" libamdhip64.so.7 libhiprtc.so.7
    path='[x["path"] for x in d["gpus"][0]["libraries"]][0]'
    run gpu --json --root "$machine"
    json_is "$path is None"
    ROCM_PATH=/opt/mine run gpu --json --root "$machine"
    json_is "$path == '/opt/mine/lib/libamdhip64.so.7'"
    put_libraries "$machine/usr/lib/x86_64-linux-gnu" libamdhip64.so.5 libhipblaslt.so.0
    ROCM_PATH=/opt/mine run gpu --json --root "$machine"
    json_is "$path == '/opt/mine/lib/libamdhip64.so.7'"
    run gpu --json --root "$machine"
    json_is "$path == '/usr/lib/x86_64-linux-gnu/libamdhip64.so.5'"
    json_is '[x["use"] for x in d["gpus"][0]["libraries"] if x["name"] == "hipblaslt"] == ["no"]'
    mkdir -p "$machine/etc/ld.so.conf.d"
    printf '# ROCm\n  /opt/mine/lib # here\n' >"$machine/etc/ld.so.conf.d/rocm.conf"
    run gpu --json --root "$machine"
    json_is "$path == '/opt/mine/lib/libamdhip64.so.7'"
    put_libraries "$machine/opt/first" libamdhip64.so.6
    LD_LIBRARY_PATH=/nowhere:/opt/first run gpu --json --root "$machine"
    json_is "$path == '/opt/first/libamdhip64.so.6'"
}

# Where PyTorch is, what cairn itself computes with is a word for -v alone.
libraries_in_a_wheel()
{
    machine=$tmp/wheel
    cp -r "$data/sysfs/gfx1030-rx6900xt-desktop-kfd-excerpt" "$machine"
    site=$machine/venv/lib/python3.12/site-packages
    put_libraries "$site/torch/lib" libamdhip64.so libhiprtc.so
    printf "__version__ = '2.9.1+rocm6.4'\nhip = '6.4.43484'\n" >"$site/torch/version.py"
    export VIRTUAL_ENV=/venv
    run gpu --json --root "$machine"
    json_is '[x["path"] for x in d["gpus"][0]["libraries"]][0].endswith("torch/lib/libamdhip64.so")'
    run gpu --verbose --root "$machine"
    tr '\n' ' ' <"$out" | grep -q 'torch/lib/libamdhip64.so' || fail "the runtime is not named"
    run gpu --root "$machine"
    ! grep -q libamdhip64 "$out" || fail "libraries without -v"
    unset VIRTUAL_ENV
}

the_table_of_chips()
{
    run gpu --chips
    status_is 0
    out_has gfx1151
    out_has "Strix Halo"
    ! grep -q '.\{101\}' "$out" || fail "a line of more than 100 columns"
    run gpu --chips --json
    json_is 'len(d["chips"]) > 25 and all(c["gfx"].startswith("gfx") and c["source"] for c in d["chips"])'
    run gpu --chips --markdown
    out_has "| gfx1201 |"
}

# The table of a terminal of 80 columns has no line that is longer, and says what was cut.
fits_a_narrow_terminal()
{
    said='cairn gpu in a terminal of 80 columns'
    for machine in "$data"/sysfs/* "$data"/sysfs-synthetic/*; do
        python3 - "$cairn" "$machine" >"$out" 2>"$err" <<'PYTHON' || fail "$machine: $(cat "$out")"
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    os.execv(sys.argv[1], ['cairn', 'gpu', '--color=never', '--root', sys.argv[2]])
text = b''
try:
    while piece := os.read(fd, 65536):
        text += piece
except OSError:
    pass
os.waitpid(pid, 0)
lines = text.decode().splitlines()
long = [line for line in lines if len(line) > 80 and ' ' in line.strip()]
print(*long, sep='\n')
sys.exit(bool(long) or not lines)
PYTHON
    done
}

wrong_usage()
{
    run gpu --watch=soon
    status_is 2
    err_has "--watch takes seconds"
    run gpu extra
    status_is 2
    err_has '"extra"'
}

watch_ends_on_interrupt()
{
    interrupt_after 1 "$cairn" gpu --watch 0.2 --root "$data/sysfs/gfx908-mi100" >"$out" 2>"$err"
    said="cairn gpu --watch"
    n=$(grep -c "AMD Instinct MI100" "$out")
    [ "$n" -ge 2 ] || fail "shown $n times in a second"
    run gpu -wsoon
    status_is 2
    err_has '"soon"'
    interrupt_after 1 "$cairn" gpu -w0.2 --root "$data/sysfs/gfx908-mi100" >"$out" 2>"$err"
    n=$(grep -c "AMD Instinct MI100" "$out")
    [ "$n" -ge 2 ] || fail "-w0.2: shown $n times in a second"
}

full_disk_is_not_success()
{
    [ -w /dev/full ] || return 0
    said="cairn gpu >/dev/full"
    status=0
    "$cairn" gpu --json --root "$data/sysfs/gfx908-mi100" >/dev/full 2>"$err" || status=$?
    status_is 1
    err_has "No space left"
}

for machine in "$data"/sysfs/* "$data"/sysfs-synthetic/*; do
    this() { golden "$machine"; }
    it this "$(basename "$machine")"
done
it every_answer_has_its_machine
it fits_a_hundred_columns
it fits_a_narrow_terminal
it names_are_cut_and_cleaned
it no_gpu_is_exit_3
it missing_sysfs_is_said
it a_root_that_is_no_directory
it device_nodes_are_problems
it libraries_by_their_files
it libraries_of_the_runtime_that_is_chosen
it libraries_in_a_wheel
it the_table_of_chips
it wrong_usage
it watch_ends_on_interrupt
it full_disk_is_not_success
finish
