#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files of torch.save through every command that takes a file of tensors.
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
torch=$data/torch

lists_a_torch_file()
{
    run tensor ls "$torch/views.pth" --json
    status_is 0
    json_is 'd["schema"] == 1 and len(d["tensors"]) == 11'
    json_is '[t["shape"] for t in d["tensors"] if t["name"] == "permuted"] == [[5, 3, 4]]'
    json_is '[t["dtype"] for t in d["tensors"] if t["name"] == "tied.b"] == ["BF16"]'
}

checks_a_torch_file()
{
    run tensor check "$torch/checkpoint.pth"
    status_is 0
}

makes_a_safetensors_file_of_it()
{
    for name in checkpoint dtypes model protocol5 single views wide; do
        run tensor convert "$torch/$name.pth" "$name.safetensors"
        status_is 0
        run tensor diff "$name.safetensors" "$torch/$name.safetensors"
        status_is 0
        run tensor diff "$name.safetensors" "$torch/$name.pth"
        status_is 0
    done
}

still_asks_what_to_do_with_a_safetensors_file()
{
    run tensor convert "$torch/single.safetensors" same.safetensors
    status_is 2
    err_has "nothing to do"
    [ ! -e same.safetensors ] || fail "it was written"
}

converts_it_on_the_way()
{
    run tensor convert "$torch/views.pth" wide.safetensors --dtype f64 --force
    status_is 0
    run tensor diff wide.safetensors "$torch/views.safetensors" --json
    json_is 'len(d["differ"]) == 10 and all(t["differing"] == 0 for t in d["differ"])'
    run tensor ls wide.safetensors --json
    json_is '[t["dtype"] for t in d["tensors"] if t["name"] == "transposed"] == ["F64"]'
}

extracts_from_it()
{
    run tensor extract "$torch/checkpoint.pth" part.safetensors --only 'state_dict.*'
    status_is 0
    run tensor ls part.safetensors --json
    json_is 'sorted(t["name"] for t in d["tensors"]) == ["state_dict.bias", "state_dict.weight"]'
}

refuses_by_name_and_writes_nothing()
{
    for command in ls check "convert x.safetensors"; do
        # shellcheck disable=SC2086 # a command and its operands
        set -- $command
        run tensor "$1" "$torch/function.pth" "${@:2}"
        status_is 1
        grep -qF "posix.system" "$out" "$err" || fail "does not say what it refuses"
    done
    [ ! -e x.safetensors ] || fail "a file was written"
    run tensor ls "$torch/legacy.pth"
    status_is 1
    err_has "before 1.6"
    run tensor ls "$torch/module.pth"
    status_is 1
    err_has "torch.nn.modules.container.Sequential"
}

tells_a_damaged_archive()
{
    head -c 2000 "$torch/views.pth" >cut.pth
    run tensor ls cut.pth
    status_is 1
    err_has "cut.pth"
    out_is_empty
    run tensor check cut.pth
    status_is 1
}

# flipped FILE NEW: for each entry of FILE with data a copy NEW-i.pth in which one bit of it is another; prints their names.
flipped()
{
    python3 - "$1" "$2" <<'PYTHON'
import struct, sys, zipfile
raw = open(sys.argv[1], 'rb').read()
for i, e in enumerate(e for e in zipfile.ZipFile(sys.argv[1]).infolist() if '/data/' in e.filename and e.file_size):
    name, extra = struct.unpack('<HH', raw[e.header_offset + 26:e.header_offset + 30])
    at = e.header_offset + 30 + name + extra + e.file_size - 1
    with open(f'{sys.argv[2]}-{i}.pth', 'wb') as f:
        f.write(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1:])
    print(e.filename)
PYTHON
}

compares_the_sums_of_the_archive()
{
    for name in checkpoint views dtypes; do
        run tensor check "$torch/$name.pth" --json
        json_is "d['damaged'] == 0"
        flipped "$torch/$name.pth" "$name" >entries
        n=0
        while read -r entry; do
            run tensor check "$name-$n.pth" --json
            status_is 1
            json_is "d['files'][0]['verdict'] == 'bad-checksum' and '$entry ' in d['files'][0]['why']"
            json_is "d['files'][0]['damaged_tensors'] == sum(t['verdict'] == 'bad-checksum' for t in d['files'][0]['tensors'])"
            n=$((n + 1))
        done <entries
        [ "$n" -gt 1 ] || fail 'no entry was tried'
    done
}

# torch.serialization.set_crc32_options(False) leaves zeros in their place.
takes_an_archive_without_sums()
{
    python3 - "$torch/checkpoint.pth" bare.pth <<'PYTHON'
import struct, sys
raw = bytearray(open(sys.argv[1], 'rb').read())
at = 0
while (at := raw.find(b'PK\x01\x02', at)) >= 0:
    raw[at + 16:at + 20] = bytes(4)
    at += 4
open(sys.argv[2], 'wb').write(raw)
PYTHON
    run tensor check bare.pth --json
    status_is 0
    json_is "d['healthy'] == 1"
}

it lists_a_torch_file
it checks_a_torch_file
it makes_a_safetensors_file_of_it
it still_asks_what_to_do_with_a_safetensors_file
it converts_it_on_the_way
it extracts_from_it
it refuses_by_name_and_writes_nothing
it tells_a_damaged_archive
it compares_the_sums_of_the_archive
it takes_an_archive_without_sums
finish
