#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cairn plot: charts, tables and pictures of made-up runs.
. "$(dirname "$0")/lib.sh"

# make_run DIR STEPS: a loss that falls from 8 to 2.
make_run()
{
    rm -rf "$1"
    mkdir -p "$1"
    awk -v n="$2" 'BEGIN { for (i = 1; i <= n; i++)
        printf "{\"step\":%d,\"loss\":%.4f,\"lr\":0.001,\"tokens_per_s\":100,\"mem_bytes\":5000000,\"elapsed_s\":%d}\n",
            i, 2 + 6 / i, i }' >"$1/log.jsonl"
}

is_xml()
{
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1" 2>"$tmp/python" ||
        fail "$1: $(tail -n 1 "$tmp/python")"
}

shows_a_run()
{
    make_run runs/one 100
    printf '{"schema":1,"name":"first & <best>"}' >runs/one/run.json
    echo '{"step":100,"val_loss":2.25,"event":"eval"}' >>runs/one/log.jsonl
    run plot runs/one
    status_is 0
    out_has '┤'
    out_has 'first & <best>'
    grep -Eq '100 +2\.06 +2\.06 +2\.25 +2\.25 +100 +0:01:40' "$out" || fail 'no row of the run'
    out_has runs/one/loss.svg
    err_is_empty
    is_xml runs/one/loss.svg
    grep -q 'first &amp; &lt;best&gt;' runs/one/loss.svg || fail 'no title'
}

# The loss of a run that has the pool's figures, and trouble at its 40th step.
make_pool_run()
{
    make_run "$1" 100
    sed -i 's/"mem_bytes"/"mem_allocated_bytes":3000000,"mem_reserved_bytes":4000000,"mem_bytes"/
            40s/}/,"event":"oom","note":"\\"full\\""}/' "$1/log.jsonl"
}

shows_memory_and_trouble()
{
    make_pool_run runs/one
    run plot one
    status_is 0
    out_has 'memory, MiB:  a reserved  b allocated'
    out_has '▲ 40 oom'
    is_xml runs/one/loss.svg
    grep -q 'class="reserved c0"' runs/one/loss.svg || fail 'no memory'
    grep -q '<title>step 40: oom</title>' runs/one/loss.svg || fail 'no mark'
    make_pool_run runs/two
    LC_ALL=C run plot one two --out both.svg
    status_is 0
    out_has 'memory, MiB: reserved'
    out_has '^ 40 oom (a), 40 oom (b)'
    is_xml both.svg
    make_run runs/one 100
    run plot one
    status_is 0
    ! grep -q memory "$out" || fail 'memory of a run that did not tell'
}

plain_without_utf8()
{
    make_run runs/one 100
    LC_ALL=C run plot one
    status_is 0
    out_has '+*'
    ! LC_ALL=C grep -q '[^ -~]' "$out" || fail 'more than ASCII'
}

compares_two()
{
    make_run runs/one 100
    make_run elsewhere/two 50
    run plot one elsewhere/two --out both.svg --log --smooth 5
    status_is 0
    out_has 'a one '
    out_has 'b two '
    is_xml both.svg
    grep -q '>two<' both.svg || fail 'no legend'
    grep -q logarithmic both.svg || fail 'no logarithmic axis'
    rm -f runs/one/loss.svg
    run plot one elsewhere/two
    status_is 0
    [ ! -e runs/one/loss.svg ] || fail 'a picture nobody asked for'
}

tells_runs_of_one_name_apart()
{
    make_run runs/one 3
    make_run elsewhere/one 3
    run plot runs/one elsewhere/one
    status_is 0
    out_has 'a runs/one '
    out_has 'b elsewhere/one '
}

shows_a_run_that_cannot_be_written_to()
{
    make_run runs/one 3
    mkdir runs/one/loss.svg
    run plot one
    status_is 0
    grep -Eq ' 3 +4 +4' "$out" || fail 'no row of the run'
    err_has 'plot: '
}

tells_in_json()
{
    make_run runs/one 100
    run plot runs/one --json
    status_is 0
    json_is 'd["schema"] == 1 and d["svg"] is None and len(d["runs"]) == 1'
    json_is 'd["runs"][0]["name"] == "one" and d["runs"][0]["steps"] == 100 and d["runs"][0]["bad_lines"] == 0'
    json_is 'd["runs"][0]["loss"] == 2.06 and d["runs"][0]["best_loss_step"] == 100 and d["runs"][0]["val_loss"] is None'
    json_is 'd["runs"][0]["tokens_per_s"] == 100 and d["runs"][0]["peak_mem_bytes"] == 5e6 and d["runs"][0]["time_s"] == 100'
    [ ! -e runs/one/loss.svg ] || fail 'a picture nobody asked for'
}

passes_over_a_torn_line()
{
    make_run runs/torn 10
    printf '{"step":11,"lo' >>runs/torn/log.jsonl
    run plot torn --json
    status_is 0
    json_is 'd["runs"][0]["steps"] == 10 and d["runs"][0]["bad_lines"] == 1'
    err_has '1 damaged line'
}

an_empty_log_is_no_error()
{
    mkdir -p runs/empty && : >runs/empty/log.jsonl
    run plot empty
    status_is 0
    out_has 'no loss'
    is_xml runs/empty/loss.svg
    run plot empty --json
    json_is 'd["runs"][0]["steps"] == 0 and d["runs"][0]["loss"] is None'
}

a_loss_that_is_no_number()
{
    mkdir -p runs/nan
    printf '{"step":1,"loss":3}\n{"step":2,"loss":null,"loss_is":"nan"}\n' >runs/nan/log.jsonl
    run plot nan
    status_is 0
    out_has ' nan '
    is_xml runs/nan/loss.svg
    grep -q 'step 2: the loss is nan' runs/nan/loss.svg || fail 'no mark'
    run plot nan --json
    json_is 'd["runs"][0]["loss"] is None and d["runs"][0]["best_loss"] == 3'
}

lists_runs()
{
    rm -rf runs
    run plot
    status_is 0
    out_has 'no training runs'
    make_run runs/one 7
    printf '{"schema":1,"name":"one","model":"gpt","state":"running","pid":999999999,"steps":10}' >runs/one/run.json
    make_run .local/state/cairn/train/two 3
    run plot
    status_is 0
    out_has '7/10'
    out_has crashed
    out_has .local/state/cairn/train/two
    run plot --json
    json_is 'sorted(r["name"] for r in d["runs"]) == ["one", "two"]'
    json_is 'all(r["steps_done"] in (3, 7) and r["age_s"] >= 0 for r in d["runs"])'
}

refuses_what_is_no_run()
{
    mkdir -p folder
    run plot folder
    status_is 1
    err_has 'log.jsonl'
    run plot no/such
    status_is 1
    err_has 'no/such'
    run plot --out x.svg
    status_is 2
    run plot --smooth much
    status_is 2
    make_run runs/one 3
    run plot one --out no/such/folder.svg
    status_is 1
    err_has 'no/such/folder.svg'
}

it shows_a_run
it shows_memory_and_trouble
it plain_without_utf8
it compares_two
it tells_runs_of_one_name_apart
it shows_a_run_that_cannot_be_written_to
it tells_in_json
it passes_over_a_torn_line
it an_empty_log_is_no_error
it a_loss_that_is_no_number
it lists_runs
it refuses_what_is_no_run
finish
