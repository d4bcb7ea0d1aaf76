#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cairn config check: all errors of a configuration, with their places.
. "$(dirname "$0")/lib.sh"

cat >wrong.yaml <<'YAML'
# a remark
data:
  path: x.txt
train:
  stepz: 10
  lr: fast
  schedule: cosin
modle:
  kind: gpt
YAML

lists_every_error_with_its_place()
{
    run config check wrong.yaml --json
    status_is 1
    err_is_empty
    json_is 'd["schema"] == 1 and d["ok"] is False and d["notes"] == []'
    json_is '[(e["line"], e["column"]) for e in d["errors"]] == [(5, 3), (6, 7), (7, 13), (8, 1)]'
    json_is '[e["key"] for e in d["errors"]] == ["train.stepz", "train.lr", "train.schedule", "modle"]'
    json_is 'd["errors"][0]["message"] == "unknown key train.stepz; did you mean train.steps?"'
    json_is 'd["errors"][0]["hint"] == "cairn help config gpt lists the keys" and d["errors"][1]["hint"] is None'
}
it lists_every_error_with_its_place

prints_them_as_a_compiler_does()
{
    run config check wrong.yaml
    status_is 1
    out_has 'wrong.yaml:5:3: unknown key train.stepz; did you mean train.steps?'
    out_has 'wrong.yaml:8:1: unknown key modle; did you mean model?'
}
it prints_them_as_a_compiler_does

reads_standard_input()
{
    said='cairn config check -'
    "$cairn" config check - --json <wrong.yaml >file.json 2>"$err"
    sed -n p wrong.yaml | "$cairn" config check - --json >"$out" 2>>"$err"
    err_is_empty
    cmp -s file.json "$out" || fail 'a pipe gives another answer than a file'
    json_is 'len(d["errors"]) == 4'
    echo 'train: [1]' | "$cairn" config check - >"$out" 2>"$err"
    out_has 'standard input:1:8: train is a list'
    out_lacks /proc
}
it reads_standard_input

knows_contradictions_and_syntax()
{
    printf 'data:\n  path: x\ntrain:\n  warmup: 50\n  steps: 10\n' >clash.yaml
    run config check clash.yaml --json
    status_is 1
    json_is '[(e["line"], e["column"], e["key"]) for e in d["errors"]] == [(4, 11, "train.warmup")]'
    printf 'data: {path: x\n' >syntax.yaml
    run config check syntax.yaml --json
    status_is 1
    json_is 'len(d["errors"]) == 1 and d["errors"][0]["line"] == 2 and d["errors"][0]["key"] is None'
    : >empty.yaml
    run config check empty.yaml --json
    json_is 'd["errors"][0]["line"] is None and d["errors"][0]["key"] == "data.path"'
}
it knows_contradictions_and_syntax

accepts_what_is_right()
{
    tiny_job >job.yaml
    rm -f text.txt
    run config check job.yaml --json
    status_is 0
    json_is 'd == {"schema": 1, "ok": True, "errors": [], "notes": []}'
    run config check job.yaml
    out_has 'job.yaml: no errors'
}
it accepts_what_is_right

knows_jobs_of_ai_toolkit()
{
    export TOOLKIT_DATA=/nowhere HF_HUB_CACHE=$tmp/hub
    run config check "$data/toolkit/ok-wan22-14b.yaml" --json
    status_is 0
    json_is 'd["ok"] and d["notes"] and all(n.startswith("ai-toolkit: ") for n in d["notes"])'
    run config check "$data/toolkit/no-lokr.yaml" --json
    status_is 1
    json_is 'd["errors"][0]["line"] == 9 and "network.type" in d["errors"][0]["message"]'
}
it knows_jobs_of_ai_toolkit

says_what_it_cannot_read()
{
    run config check no-such.yaml
    status_is 1
    err_has no-such.yaml 'No such file'
    run config check
    status_is 2
    run config check a b
    status_is 2
    run config check wrong.yaml -o x
    status_is 2
    run config chekc wrong.yaml
    status_is 2
}
it says_what_it_cannot_read

finish
