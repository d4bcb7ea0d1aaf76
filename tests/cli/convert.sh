#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn tensor convert: numbers against their definition, what is carried over, refusals, and what is left behind.
. "$(dirname "$0")/lib.sh"

# make FILE PYTHON: writes a safetensors file from a list of (name, dtype, shape, bytes); `pack` is struct.pack.
make()
{
    python3 - "$1" "$2" <<'PYTHON'
import json, struct, sys
pack = struct.pack
header, data = {'__metadata__': {'author': 'é'}}, b''
for name, dtype, shape, raw in eval(sys.argv[2]):
    header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header).encode()
open(sys.argv[1], 'wb').write(pack('<Q', len(text)) + text + data)
PYTHON
}

# file_is FILE EXPRESSION: t is {name: (dtype, shape, bytes)}, m the metadata, names the order of the data.
file_is()
{
    python3 - "$1" "$2" 2>"$tmp/python" <<'PYTHON' || fail "not true of $1: $2: $(tail -n 1 "$tmp/python")"
import json, struct, sys
raw = open(sys.argv[1], 'rb').read()
n, = struct.unpack('<Q', raw[:8])
head = json.loads(raw[8:8 + n])
m = head.pop('__metadata__', {})
t = {k: (v['dtype'], v['shape'], raw[8 + n:][slice(*v['data_offsets'])]) for k, v in head.items()}
names = sorted(t, key=lambda k: head[k]['data_offsets'])
unpack, f32 = struct.unpack, lambda k: list(struct.unpack(f'<{len(t[k][2]) // 4}f', t[k][2]))
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}

nothing_new()
{
    [ ! -e "$1" ] || fail "$1 is there"
    [ -z "$(find "$tmp" -name '*.tmp')" ] || fail "a temporary file is left"
}

converts_every_bf16()
{
    make all.st '[("all", "BF16", [256, 256], b"".join(pack("<H", i) for i in range(65536)))]'
    run tensor convert all.st f32.st --dtype f32
    status_is 0
    err_is_empty
    out_has "f32.st: 1 tensor converted, 0 copied, 128 KiB to 256 KiB"
    file_is f32.st 'unpack("<65536I", t["all"][2]) == tuple(i << 16 for i in range(65536))'
    run tensor convert f32.st back.st -d bf16
    status_is 0
    file_is back.st 'all(a == b or (a & 0x7f80 == 0x7f80 and a & 0x7f and b == a | 0x40)
        for a, b in zip(range(65536), unpack("<65536H", t["all"][2])))'
}

carries_over()
{
    make mixed.st '[("z", "F32", [2], pack("<2f", 1, 2)), ("n", "I64", [1], pack("<q", -5)), ("a", "F32", [], pack("<f", 3)),
        ("e", "F32", [0, 7], b""), ("u", "F8_E8M0", [2], b"ab"), ("b", "BOOL", [2], b"\1\0")]'
    run tensor convert mixed.st out.st --dtype f64
    status_is 0
    file_is out.st 'names == ["z", "n", "a", "e", "u", "b"] and m == {"author": "é"}'
    file_is out.st 't["n"][:2] == ("I64", [1]) and unpack("<q", t["n"][2]) == (-5,)'
    file_is out.st 't["a"][:2] == ("F64", []) and t["e"] == ("F64", [0, 7], b"") and t["u"] == ("F8_E8M0", [2], b"ab")'
    run tensor convert mixed.st some.st --dtype bf16 --only z --only 'x*' --json
    status_is 0
    json_is 'd["schema"] == 1 and d["converted"] == 1 and d["copied"] == 5 and d["values"] == 2 and d["written_bytes"] > 0'
    file_is some.st 't["z"][0] == "BF16" and t["a"][0] == "F32"'
}

says_what_was_lost()
{
    make lost.st '[("x", "F32", [5], pack("<5f", 1e30, 1e-30, float("inf"), float("nan"), 1))]'
    run tensor convert lost.st lost16.st --dtype f16
    status_is 0
    err_has "1 finite values became Inf"
    err_has "1 values underflowed"
    run tensor convert lost.st lost16.st --dtype f16 --clamp --nan 0 --force --json
    status_is 0
    json_is 'd["clamped"] == 2 and d["nans_replaced"] == 1'
    file_is lost16.st 'unpack("<5H", t["x"][2]) == (0x7bff, 0, 0x7bff, 0, 0x3c00)'
    run tensor convert lost.st mended.st --clamp --nan 7
    status_is 0
    file_is mended.st 'f32("x")[3:] == [7, 1] and f32("x")[2] > 3.4e38'
    run tensor convert lost.st mended.st --clamp=2.5 --force --json
    status_is 0
    json_is 'd["clamped"] == 2'
    file_is mended.st 'f32("x")[0] == 2.5 and f32("x")[2] == 2.5 and f32("x")[4] == 1 and f32("x")[3] != f32("x")[3]'
    make signs.st '[("x", "BF16", [4], pack("<4H", 0xff80, 0xc000, 0x3f80, 0x7f80))]'
    run tensor convert signs.st limited.st --clamp=1.5
    status_is 0
    file_is limited.st 'unpack("<4H", t["x"][2]) == (0xbfc0, 0xbfc0, 0x3f80, 0x3fc0)'
}

scales_both_ways()
{
    make wide.st '[("blocks.0.q.weight", "F32", [2, 64], b"".join(pack("<f", i - 64) for i in range(128))),
        ("blocks.0.q.bias", "F32", [2], pack("<2f", 1, 2)), ("norm.weight", "F32", [2, 64], b"\0" * 512)]'
    for grain in --scaled --scaled=channel --scaled=block64; do
        run tensor convert wide.st fp8.st --dtype f8_e4m3 "$grain" --force
        status_is 0
        err_has "1 weights got scales"
        file_is fp8.st 't["scaled_fp8"] == ("F8_E4M3", [0], b"") and t["norm.weight"][0] == "F32"'
        file_is fp8.st 't["blocks.0.q.weight"][0] == "F8_E4M3" and t["blocks.0.q.weight"][2][0] == 0xfe'
        run tensor convert fp8.st plain.st --dtype f32 --force
        err_has "NOT applied"
        run tensor convert fp8.st wide-again.st --dtype f32 --scaled --force
        status_is 0
        err_has "1 weights were multiplied by their scales"
        file_is wide-again.st 'set(names) == {"blocks.0.q.weight", "blocks.0.q.bias", "norm.weight"}'
        file_is wide-again.st 'all(abs(v - (i - 64)) <= 2.29 for i, v in enumerate(f32("blocks.0.q.weight")))'
    done
    run tensor convert wide.st none.st --dtype f8_e4m3 --scaled --only '*.bias'
    status_is 2
    err_has "no tensor to scale"
    nothing_new none.st
}

a_seed_repeats()
{
    make ones.st '[("x", "F32", [4096], pack("<f", 1.001953125) * 4096)]'
    run tensor convert ones.st r1.st --dtype bf16 --stochastic 7 --threads 1
    run tensor convert ones.st r2.st --dtype bf16 --stochastic 7
    run tensor convert ones.st r3.st --dtype bf16 --stochastic 8
    cmp -s r1.st r2.st || fail "the same seed gives other numbers"
    ! cmp -s r1.st r3.st || fail "another seed gives the same numbers"
    file_is r1.st '900 < sum(b == 0x81 for b in t["x"][2][::2]) < 1150'
}

keeps_an_old_file()
{
    make a.st '[("x", "F32", [1], pack("<f", 1))]'
    echo old >old.st
    run tensor convert a.st old.st --dtype bf16
    status_is 2
    err_has "old.st exists"
    err_has "--force"
    [ "$(cat old.st)" = old ] || fail "old.st was changed"
    head -c 20 a.st >cut.st
    run tensor convert cut.st old.st --dtype bf16 --force
    status_is 1
    err_has "cut.st: "
    [ "$(cat old.st)" = old ] || fail "old.st was changed"
    run tensor convert a.st old.st --dtype bf16 --force
    status_is 0
    file_is old.st 't["x"][0] == "BF16"'
    run tensor convert a.st a.st --dtype bf16
    status_is 2
    run tensor convert a.st a.st --dtype bf16 --force
    status_is 0
    file_is a.st 't["x"] == ("BF16", [1], b"\x80\x3f")'
}

bad_input_writes_nothing()
{
    mkdir -p folder
    : >empty
    for input in empty folder no-such-file; do
        run tensor convert "$input" new.st --dtype f32
        status_is 1
        err_has "$input"
        [ "$(wc -l <"$err")" = 1 ] || fail "more than one line on stderr"
        nothing_new new.st
    done
    make b.st '[("x", "F32", [1], pack("<f", 1))]'
    run tensor convert b.st no-such-folder/new.st --dtype f32
    status_is 1
    err_has "no-such-folder/new.st"
}

# Every command that writes; m.st is a model, l.st a LoRA for it.
writers=("convert m.st NEW --dtype f64" "extract m.st NEW --only *" "merge m.st l.st NEW" "convert l.st NEW --lora musubi")

make_model()
{
    make m.st '[("blocks.0.ffn.0.weight", "F32", [64, 64], b"\0" * 16384)]'
    make l.st '[("diffusion_model.blocks.0.ffn.0.lora_A.weight", "F32", [32, 64], b"\0" * 8192),
        ("diffusion_model.blocks.0.ffn.0.lora_B.weight", "F32", [64, 32], b"\0" * 8192)]'
}

# write_to NEW COMMAND: a command of the list above.
write_to()
{
    local -a words
    read -ra words <<<"${2/NEW/"$1"}"
    run tensor "${words[@]}"
}

# The signal that a limit on file sizes sends must not end the program before it has cleaned up.
a_full_disk()
{
    make_model
    for command in "${writers[@]}"; do
        status=0
        (ulimit -f 4; write_to full.st "$command"; exit "$status") || status=$?
        said="$command, with a limit on file sizes"
        status_is 1
        err_has "full.st"
        nothing_new full.st
    done
}

no_place_for_the_new_file()
{
    make_model
    mkdir -p folder
    ln -s nowhere link
    for command in "${writers[@]}"; do
        write_to missing/new.st "$command"
        status_is 1
        err_has "create missing/new.st: No such file or directory"
        err_has "mkdir -p 'missing'"
        write_to folder "$command"
        status_is 2
        err_has "folder is a directory"
        write_to link "$command"
        status_is 2
        err_has "link exists: "
        write_to /dev/null "$command"
        status_is 2
        err_has "/dev/null is not a regular file"
        nothing_new nowhere
    done
    run tensor convert m.st "" --dtype f16
    status_is 2
    err_has "empty"
}

# Whether the file system of the test can is its own business; the numbers are the same, and a refusal is said once.
past_the_page_cache()
{
    make i.st '[("x", "BF16", [9000], bytes(i % 60 for i in range(18000))), ("y", "I8", [3], b"abc")]'
    run tensor convert i.st one.st --dtype f32
    run tensor convert i.st two.st --dtype f32 --direct
    status_is 0
    [ ! -s "$err" ] || err_has "i.st through the page cache"
    cmp -s one.st two.st || fail "--direct changes the file"
    run tensor check one.st --json
    cp "$out" plain
    run tensor check one.st --json --direct
    cmp -s "$out" plain || fail "--direct changes the answer"
}

# A sparse file of 8 GiB takes many seconds to convert; the first of them must be enough to stop.
stops_and_cleans_up()
{
    python3 - <<'PYTHON'
import json, struct
n = 1 << 30
text = json.dumps({'x': {'dtype': 'F64', 'shape': [n], 'data_offsets': [0, 8 * n]}}).encode()
with open('sparse.st', 'wb') as f:
    f.write(struct.pack('<Q', len(text)) + text)
    f.truncate(8 + len(text) + 8 * n)
PYTHON
    said="convert, terminated"
    status=0
    timeout --preserve-status -s TERM 0.5 "$cairn" tensor convert sparse.st dense.st --dtype f8_e4m3 --threads 1 \
        >"$out" 2>"$err" || status=$?
    rm -f sparse.st
    status_is 143
    err_has "interrupted; nothing was written"
    nothing_new dense.st
}

wrong_usage()
{
    make d.st '[("x", "F32", [1], pack("<f", 1))]'
    local -a wrong=("--dtype f31" "--dtype i32" "" "--dtype f32 --nan x" "--dtype f32 --scaled=row" "--dtype f32 --stochastic x"
        "--dtype f32 --only nothing" "--dtype f32 extra" "--clamp --scaled" "--clamp=0" "--clamp=x" "--clamp=inf"
        "--dtype f8_e4m3 --scaled --clamp=2")
    for words in "${wrong[@]}"; do
        # shellcheck disable=SC2086 # words, on purpose
        run tensor convert d.st e.st $words
        status_is 2
        [ -s "$err" ] || fail "nothing on stderr for: $words"
        out_is_empty
        nothing_new e.st
    done
    run tensor convert d.st
    status_is 2
}

it converts_every_bf16
it carries_over
it says_what_was_lost
it scales_both_ways
it a_seed_repeats
it keeps_an_old_file
it bad_input_writes_nothing
it a_full_disk
it no_place_for_the_new_file
it past_the_page_cache
it stops_and_cleans_up
it wrong_usage
finish
