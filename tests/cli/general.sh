#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What every command has in common: help, usage errors, exit codes, stdout for data and stderr for talk.
. "$(dirname "$0")/lib.sh"

fixture=$data/sysfs/gfx1103-phoenix-780m-laptop
commands=$("$cairn" --list-commands | cut -f 1)
# Those that look at the machine and report, and therefore look at another one too; `run` takes a command instead, `plan` a configuration,
# and `ui` serves.
looking=$(for command in $commands; do
    [[ $command != @(run|plan|ui) ]] && "$cairn" "$command" --list-options | grep -q '^--root' && echo "$command"
done)

three_commands_look_at_the_machine()
{
    for command in gpu doctor env; do
        case " $(echo "$looking" | tr '\n' ' ') " in
        *" $command "*) ;;
        *) fail "$command has no --root" ;;
        esac
    done
}

without_a_command_it_shows_usage()
{
    run
    status_is 2
    out_is_empty
    err_has 'usage: cairn'
}

tells_its_version_and_the_age_of_its_knowledge()
{
    run --version
    status_is 0
    err_is_empty
    out_has "cairn $CAIRN_VERSION"
    grep -Eq 'reviewed 20[0-9]{2}-[01][0-9]-[0-3][0-9]' "$out" || fail 'no date'
}

tells_its_kernels()
{
    run --version --kernels
    status_is 0
    grep -Eq '^[0-9a-f]{32}  norm +layer_norm$' "$out" || fail 'no layer_norm'
    run --version --frob
    status_is 2
    err_has 'not "--frob"'
}

help_lists_every_command()
{
    for word in help --help -h 'help help' 'help --help' 'help -h'; do
        # shellcheck disable=SC2086 # words
        run $word
        status_is 0
        err_is_empty
        for command in $commands; do
            out_has "  $command "
        done
    done
}

help_of_a_command_is_its_help()
{
    for command in $commands; do
        run help "$command"
        status_is 0
        cp "$out" "$tmp/first"
        run "$command" --help
        status_is 0
        err_is_empty
        out_has "usage: cairn $command"
        [ "$command" != config ] || continue # `cairn help config` lists the keys
        cmp -s "$out" "$tmp/first" || fail 'differs from cairn help'
    done
}

help_shows_every_option_with_words()
{
    for command in $commands; do
        run "$command" --list-options
        status_is 0
        cp "$out" "$tmp/rows"
        run "$command" --help
        while IFS=$'\t' read -r name argument help; do
            out_has "$name"
            [ "$argument" = - ] || out_has "$argument"
            [ "${#help}" -ge 5 ] || fail "$name has no help"
        done <"$tmp/rows"
    done
}

help_fits_a_terminal()
{
    for command in $commands; do
        run "$command" --help
        long=$(awk 'length($0) > 100' "$out")
        [ -z "$long" ] || fail "over 100 columns: $long"
        ! grep -q ' $' "$out" || fail 'blanks at the end of a line'
    done
}

# on_terminal COLUMNS ARGUMENTS: what is shown, in $out.
on_terminal()
{
    said="cairn ${*:2}, on a terminal of $1 columns"
    python3 - "$cairn" "$@" >"$out" 2>"$err" <<'PYTHON'
import fcntl, os, pty, struct, subprocess, sys, termios
master, slave = pty.openpty()
fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(sys.argv[2]), 0, 0))
with subprocess.Popen([sys.argv[1], *sys.argv[3:]], stdout=slave):
    os.close(slave)
    try:
        while block := os.read(master, 4096):
            sys.stdout.write(block.decode())
    except OSError:
        pass
PYTHON
}

# What repeats itself is ended by Ctrl-C, which is no failure, and leaves the cursor in a line of its own.
ctrl_c_ends_its_line()
{
    for words in 'gpu -w 9' 'smi -l 9' 'smi dmon -d 9'; do
        said="cairn $words, and Ctrl-C"
        # shellcheck disable=SC2086 # words
        timeout 20 python3 - "$cairn" $words --root "$data/sysfs/gfx908-mi100" >"$out" 2>"$err" <<'PYTHON' || fail "ends with $(tail -c 20 "$out" | od -An -c)"
import os, pty, select, sys
pid, terminal = pty.fork()
if not pid:
    os.execv(sys.argv[1], ['cairn', *sys.argv[2:]])
shown = os.read(terminal, 4096)
while select.select([terminal], [], [], 0.5)[0]:
    shown += os.read(terminal, 4096)
os.write(terminal, b'\3')
try:
    while block := os.read(terminal, 4096):
        shown += block
except OSError:
    pass
sys.stdout.buffer.write(shown)
sys.exit(os.waitpid(pid, 0)[1] != 0 or not shown.endswith(b'^C\r\n'))
PYTHON
    done
}

empty_names_are_refused()
{
    for words in train plan sample plot diagnose bench 'tensor ls' 'tensor check' 'train --list' 'gpu --root' 'smi --filename' \
        'train --json-events' 'run --keep-log'; do
        # shellcheck disable=SC2086 # words
        run $words ''
        status_is 2
        err_has 'empty'
        out_is_empty
    done
    run run ''
    status_is 2
    run run -- printf '%s' ''
    status_is 0
}

help_fits_a_narrow_terminal()
{
    python3 -c 'import pty; pty.openpty()' 2>/dev/null || { skip 'no terminal can be had here'; return; }
    for command in '' $commands; do
        # shellcheck disable=SC2086 # none or one word
        on_terminal 40 $command --help
        # A usage, an example and the name of an option are not broken.
        long=$(tr -d '\r' <"$out" | awk 'length($0) > 40 && !/^usage:|^  .*cairn |^ +(-[a-z], )?--/')
        [ -z "$long" ] || fail "over 40 columns: $long"
        [ -s "$out" ] || fail 'nothing is shown'
    done
}

what_is_told_fits_a_terminal()
{
    python3 -c 'import pty; pty.openpty()' 2>/dev/null || { skip 'no terminal can be had here'; return; }
    printf 'HSA_OVERRIDE_GFX_VERSION=11.0.0 torch 2.10.0+rocm7.0\nSegmentation fault (core dumped)\n' >"$tmp/log"
    halo=$data/sysfs/gfx1151-strixhalo-aurora-112g-gtt
    for words in 'gpu --chips' "gpu --root $halo" "env --root $halo" "diagnose --exit 139 --root $halo $tmp/log"; do
        # shellcheck disable=SC2086 # words
        PYTORCH_NO_HIP_MEMORY_CACHING=1 on_terminal 80 $words
        # An address, a path and what is pasted are not broken.
        long=$(sed 's/\x1b\[[0-9;]*m//g; s/\r//' "$out" | awk 'length($0) > 80 && !/^ *[^ ]+$|^ *export /')
        [ -z "$long" ] || fail "over 80 columns: $long"
        [ -s "$out" ] || fail 'nothing is shown'
    done
}

words_of_the_user_are_shown_without_controls()
{
    word=$(printf 'a\033[31mb\nc')
    for command in '' help gpu 'gpu --watch' 'doctor --only' tensor bench; do
        # shellcheck disable=SC2086 # none, one or two words
        run $command "$word"
        status_is 2
        err_has 'a?[31mb?c'
        [ "$(wc -l <"$err")" = 2 ] || fail 'other than two lines'
    done
}

names_of_files_are_shown_as_they_are()
{
    run tensor ls "$tmp/two  spaces"
    status_is 1
    err_has "$tmp/two  spaces"
    run tensor ls "$tmp/line
cairn: feed"
    status_is 1
    err_has "$tmp/line?cairn: feed"
}

unknown_command_is_named()
{
    run gqu
    status_is 2
    out_is_empty
    err_has '"gqu"'
    run help gqu
    status_is 2
    err_has '"gqu"'
}

a_mistyped_word_gets_the_nearest()
{
    run docter
    status_is 2
    err_has '"docter"; did you mean doctor?'
    run tensor covnert
    status_is 2
    err_has '"covnert"; did you mean convert?'
    run gpu --jsno
    status_is 2
    err_has 'unknown option --jsno; did you mean --json?'
    run gpu --colour=never
    status_is 2
    err_has 'did you mean --color?'
    run --versoin
    status_is 2
    err_has 'unknown option --versoin; did you mean --version?'
    run doctor --only memry
    status_is 2
    err_has '--only takes hardware, kernel,'
    run frobnicate
    status_is 2
    ! grep -q 'did you mean' "$err" || fail 'nothing is near'
}

# --markdown without --chips used to be passed over in silence.
options_that_say_nothing_alone_are_refused()
{
    for words in 'gpu --markdown' 'gpu --chips --watch' 'diagnose --markdown' 'train --json job.yaml' \
        'run --json -- true'; do
        # shellcheck disable=SC2086 # words
        run $words
        status_is 2
        out_is_empty
        grep -Eq ' goes with --| do not go together' "$err" || fail 'does not say what it goes with'
    done
}

help_config_is_a_file_with_every_key()
{
    run help config
    status_is 0
    err_is_empty
    out_has 'train: #'
    out_has '  steps: 1000 '
    run help config wan
    status_is 0
    out_has '  kind: wan '
    out_has '  switch_every: 0 '
    run help config --frob
    status_is 2
    err_has 'not "--frob"'
}

unknown_option_is_named()
{
    for command in $commands; do
        for option in --nonsense -Z; do
            run "$command" "$option"
            status_is 2
            out_is_empty
            err_has "$option"
            err_has "cairn $command --help"
        done
    done
}

a_shortened_option_must_be_one()
{
    run doctor --pro
    status_is 2
    err_has '--probe, --probe-timeout'
    run doctor --lis --root "$fixture"
    status_is 0
    out_has gpu-present
    run gpu --json=yes
    status_is 2
    err_has '--json takes no argument'
    out_is_empty
}

missing_argument_is_named()
{
    for command in $looking; do
        run "$command" --root
        status_is 2
        out_is_empty
        err_has --root
    done
}

an_operand_too_many_is_refused()
{
    for command in $looking; do
        [ "$command" != diagnose ] || continue # takes files
        run "$command" --root "$fixture" surplus
        status_is 2
        out_is_empty
        err_has surplus
    done
}

a_number_must_be_one()
{
    for value in x -1 1.5 '' 99999999999999; do
        run env --root "$fixture" --gpu "$value"
        status_is 2
        out_is_empty
    done
}

a_color_must_be_known()
{
    for command in $commands; do
        run "$command" --color=pink
        status_is 2
        err_has pink
    done
}

color_only_when_asked()
{
    escape=$(printf '\033')
    run doctor --root "$fixture"
    out_lacks "$escape"
    run doctor --root "$fixture" --color=always
    out_has "$escape"
    run doctor --root "$fixture" --color=never
    out_lacks "$escape"
}

json_is_one_object_with_a_schema()
{
    for command in $looking; do
        run "$command" --json --root "$fixture"
        err_is_empty
        json_is 'd["schema"] == 1'
    done
}

a_root_that_is_not_there_is_an_error()
{
    : >"$tmp/file"
    for root in "$tmp/nothing" "$tmp/file"; do
        for command in $looking; do
            run "$command" --root "$root"
            status_is 2
            out_is_empty
            err_has "$root"
        done
    done
    # An unset shell variable is not this machine.
    for command in $looking; do
        run "$command" --root ''
        status_is 2
        out_is_empty
        err_has '--root: the name is empty'
    done
}

an_empty_root_lacks_a_gpu()
{
    mkdir -p "$tmp/empty"
    run gpu --root "$tmp/empty"
    status_is 3
    run doctor --root "$tmp/empty"
    status_is 3
}

a_full_disk_is_not_success()
{
    for arguments in --version help 'gpu --chips' "gpu --root $fixture" "doctor --root $fixture" \
        "env --root $fixture"; do
        said="cairn $arguments"
        # shellcheck disable=SC2086 # words
        "$cairn" $arguments >/dev/full 2>"$err"
        status=$?
        status_is 1
        err_has 'No space left'
    done
}

a_closed_stdin_and_stderr_are_fine()
{
    said='cairn gpu, stdin and stderr closed'
    "$cairn" gpu --root "$fixture" >"$out" <&- 2>&-
    status=$?
    status_is 0
    out_has gfx1103
}

a_reader_may_leave_early()
{
    said='cairn gpu --chips | head'
    "$cairn" gpu --chips 2>"$err" | head -n 1 >"$out"
    err_is_empty
    [ -s "$out" ] || fail 'nothing was read'
}

the_environment_can_be_evaluated()
{
    for machine in "$data"/sysfs/*; do
        run env --root "$machine"
        cp "$out" "$tmp/script"
        said="sh, on cairn env --root $machine"
        sh -eu "$tmp/script" >"$out" 2>"$err" || fail 'the output is no script'
        out_is_empty
    done
}

it three_commands_look_at_the_machine
it without_a_command_it_shows_usage
it tells_its_version_and_the_age_of_its_knowledge
it tells_its_kernels
it help_lists_every_command
it help_of_a_command_is_its_help
it help_shows_every_option_with_words
it help_fits_a_terminal
it help_fits_a_narrow_terminal
it ctrl_c_ends_its_line
it empty_names_are_refused
it what_is_told_fits_a_terminal
it words_of_the_user_are_shown_without_controls
it names_of_files_are_shown_as_they_are
it unknown_command_is_named
it a_mistyped_word_gets_the_nearest
it options_that_say_nothing_alone_are_refused
it help_config_is_a_file_with_every_key
it unknown_option_is_named
it a_shortened_option_must_be_one
it missing_argument_is_named
it an_operand_too_many_is_refused
it a_number_must_be_one
it a_color_must_be_known
it color_only_when_asked
it json_is_one_object_with_a_schema
it a_root_that_is_not_there_is_an_error
it an_empty_root_lacks_a_gpu
it a_full_disk_is_not_success
it a_closed_stdin_and_stderr_are_fine
it a_reader_may_leave_early
it the_environment_can_be_evaluated
finish
