#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn smi dmon, pmon and topo.  Where a line is told whole, it has the columns of NVIDIA's.
. "$(dirname "$0")/lib.sh"
. "$data/../cli/smi_lib.sh"

dmon()
{
    run smi dmon -c 1 --root "$both"
    status_is 0
    err_is_empty
    lines_are '# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk ' \
        '# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz ' \
        '    0    303     61     84     97     41      -      -      -      -   1249   2482 ' \
        '    1      -      -      -      3      -      -      -      -      -      -      - '
    run smi dmon --select=mp --count=1 --id=0 --root "$both"
    lines_are '# gpu     fb   bar1   ccpm    pwr  gtemp  mtemp ' \
        '# Idx     MB     MB     MB      W      C      C ' \
        '    0   2048   1024      -    303     61     84 '
    run smi dmon -s pucvmet -c 1 -i 1 --root "$both"
    lines_are '# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci ' \
        '# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz      %   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s ' \
        '    1      -      -      -      3      -      -      -      -      -      -      -      -      -  10240      -      -      -      -      -      -      - '
}

with_the_time()
{
    run smi dmon -s m -c 1 -i 0 -o DT --root "$both"
    [ "$(head -n 1 "$out")" = '#Date        Time         gpu     fb   bar1   ccpm ' ] || fail "$(head -n 1 "$out")"
    [ "$(sed -n 2p "$out")" = '#YYYYMMDD    HH:MM:SS     Idx     MB     MB     MB ' ] || fail "$(sed -n 2p "$out")"
    grep -qxE ' [0-9]{8}    [0-9:]{8}       0   2048   1024      - ' "$out" || fail "$(tail -n 1 "$out")"
    run smi dmon -s m -c 1 -i 0 -o T --root "$both"
    [ "$(head -n 1 "$out")" = '#Time         gpu     fb   bar1   ccpm ' ] || fail "$(head -n 1 "$out")"
    grep -qxE ' [0-9:]{8}       0   2048   1024      - ' "$out" || fail "$(tail -n 1 "$out")"
}

pmon()
{
    run smi pmon -c 1 --root "$both"
    status_is 0
    err_is_empty
    lines_are '# gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command ' \
        '# Idx           #    C/G      %      %      %      %      %      %    name ' \
        '    0       4711     C      -      -      -      -      -      -    python3        ' \
        '    1          -     -      -      -      -      -      -      -    -              '
    run smi pmon -c 1 -s um -i 0 --root "$both"
    lines_are '# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command ' \
        '# Idx           #    C/G      %      %      %      %      %      %     MB     MB    name ' \
        '    0       4711     C      -      -      -      -      -      -   1024      -    python3        '
}

# The header once, a line each time, with the pause between them.
several_times()
{
    start=$(date +%s%N)
    run smi dmon -s m -c 3 -i 0 --root "$both"
    status_is 0
    [ "$(grep -c '^#' "$out")" = 2 ] || fail "$(grep -c '^#' "$out") lines of header"
    [ "$(grep -c '^    0 ' "$out")" = 3 ] || fail "$(grep -c '^    0 ' "$out") of 3 lines"
    [ $(($(date +%s%N) - start)) -ge 2000000000 ] || fail "without two pauses of a second"
    run smi dmon -s m -c 1 -i 0 -f "$tmp/dmon.log" --root "$both"
    out_is_empty
    grep -q '2048' "$tmp/dmon.log" || fail "$(cat "$tmp/dmon.log")"
    said="cairn smi dmon"
    status=0
    interrupt_after 3 "$cairn" smi dmon -s m -i 0 --root "$both" >"$out" 2>"$err" || status=$?
    status_is 0
    [ "$(grep -c '^    0 ' "$out")" -ge 2 ] || fail "shown $(grep -c '^    0 ' "$out") times in three seconds"
}

ends_when_nobody_reads()
{
    for command in dmon pmon; do
        ends_with_its_reader "$command" -d 60
        out_has '# gpu'
    done
}

# The tree of a desktop: the card behind its own two bridges, the APU behind another port of the same host bridge.
port()
{
    mkdir -p "$1/sys/devices/$2/$3" "$1/sys/bus/pci/devices"
    ln -sfn "../../../devices/$2/$3" "$1/sys/bus/pci/devices/$3"
    [ -z "$4" ] || echo "$4" >"$1/sys/devices/$2/$3/numa_node"
    [ -z "$5" ] || echo "$5" >"$1/sys/devices/$2/$3/local_cpulist"
}

# vllm-project/vllm, collect_env.py, shows it as it is.
topo()
{
    cp -r "$both" "$tmp/desktop"
    port "$tmp/desktop" pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0 0000:03:00.0 -1 0-31
    port "$tmp/desktop" pci0000:00/0000:00:08.1 0000:c5:00.0 -1 0-31
    run smi topo -m --root "$tmp/desktop"
    status_is 0
    err_is_empty
    head -n 3 "$out" >"$tmp/matrix"
    out_has '  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)'
    mv "$tmp/matrix" "$out"
    lines_are "$(printf '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID')" \
        "$(printf 'GPU0\t X \tPHB\t0-31\tN/A\t\tN/A')" "$(printf 'GPU1\tPHB\t X \t0-31\tN/A\t\tN/A')"
    port "$tmp/desktop" pci0000:80/0000:80:01.1 0000:c5:00.0 1 32-63
    port "$tmp/desktop" pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:00.0 0000:03:00.0 0 0-31
    run smi topo --matrix --root "$tmp/desktop"
    out_has "$(printf 'GPU1\tSYS\t X \t32-63\t1\t\tN/A')"
    run smi topo -m --root "$both"
    status_is 0
    out_has "$(printf 'GPU0\t X \tN/A\tN/A\tN/A\t\tN/A')"
    run smi topo -m --root "$data/sysfs/gfx90a-mi210-8gpu-2hives"
    out_has "$(printf 'GPU3\tXGMI\tXGMI\tXGMI\t X \tN/A\tN/A\tN/A\tN/A\tN/A\tN/A\t\tN/A')"
}

no_gpu()
{
    mkdir -p "$tmp/empty/sys"
    for words in 'dmon -c 1' 'pmon -c 1' dmon 'topo -m'; do
        # shellcheck disable=SC2086 # several words
        run smi $words --root "$tmp/empty"
        status_is 6
        lines_are 'No devices were found'
    done
}

# refused WORD…: in cairn's words on stderr, and in nvidia-smi's on stdout.
refused()
{
    run smi "$@"
    status_is 2
    out_is_empty
    err_has 'cairn smi'
    nvidia "$@"
    status_is 255
    err_is_empty
}

# An option that nvidia-smi has not may stand before the word.
the_root_may_come_first()
{
    run smi dmon -c 1 --root "$both"
    cp "$out" first
    for words in "--root $both" "--root=$both"; do
        # shellcheck disable=SC2086 # several words
        run smi $words dmon -c 1
        status_is 0
        cmp -s "$out" first || fail "another answer"
    done
    run smi --root "$both"
    status_is 0
    run smi --root
    status_is 2
    run smi --root "$both" extra
    status_is 2
}

wrong_usage()
{
    for words in 'dmon help' 'pmon --nonsense' 'topo -p2p' 'topo nonsense'; do
        # shellcheck disable=SC2086 # several words
        refused $words
        lines_are "Option \"${words#* }\" is not recognized."
    done
    for words in 'dmon -s x' 'dmon -s' 'pmon -s p' 'dmon -c 0' 'dmon -c soon' 'dmon -d 0' 'dmon -d -1' 'dmon -o X' topo; do
        # shellcheck disable=SC2086 # several words
        refused $words
    done
    for words in dmon pmon topo; do
        run smi "$words" --help
        status_is 0
        out_has "usage: cairn smi $words"
    done
}

it dmon
it with_the_time
it pmon
it several_times
it ends_when_nobody_reads
it topo
it no_gpu
it the_root_may_come_first
it wrong_usage
finish
