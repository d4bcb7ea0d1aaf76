#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bash completion, as readline would ask for it.  Readline cuts words at "=", so it stands alone in the list.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
. "$here/../../completions/cairn.bash"

# complete_words WORD…: what would be offered for the last word, into $out.
complete_words()
{
    said="completing: $*"
    COMP_WORDS=("$cairn" "$@")
    COMP_CWORD=$#
    _cairn
    printf '%s\n' "${COMPREPLY[@]}" >"$out"
}

offers_every_command()
{
    complete_words ''
    for command in $("$cairn" --list-commands | cut -f 1) help --version; do
        out_has "$command"
    done
}

offers_commands_that_begin_so()
{
    complete_words 'do'
    [ "$(cat "$out")" = doctor ] || fail "offered: $(tr '\n' ' ' <"$out")"
}

offers_commands_after_help()
{
    complete_words help ''
    out_has doctor
    out_lacks --version
}

offers_every_option()
{
    for command in $("$cairn" --list-commands | cut -f 1); do
        complete_words "$command" --
        "$cairn" "$command" --list-options | cut -f 1 | sort >"$tmp/want"
        sort "$out" | diff "$tmp/want" - >"$tmp/diff" || fail "$(cat "$tmp/diff")"
        [ -s "$tmp/want" ] || fail "$command lists no options"
    done
}

offers_the_commands_below_a_command()
{
    found=no
    for command in $("$cairn" --list-commands | cut -f 1); do
        below=$("$cairn" "$command" --list-commands 2>"$err" | cut -f 1)
        [ -n "$below" ] || continue
        found=yes
        for words in "$command" "help $command"; do
            # shellcheck disable=SC2086 # words
            complete_words $words ''
            [ "$(cat "$out")" = "$below" ] || fail "offered: $(tr '\n' ' ' <"$out")"
        done
        complete_words "$command" "${below%%$'\n'*}" --
        "$cairn" "$command" "${below%%$'\n'*}" --list-options | cut -f 1 | cmp -s - "$out" || fail 'other options'
    done
    [ "$found" = yes ] || fail 'no command has commands below it'
}

offers_both_where_both_may_stand()
{
    complete_words smi d
    [ "$(cat "$out")" = dmon ] || fail "offered: $(tr '\n' ' ' <"$out")"
    complete_words smi --query-g
    [ "$(cat "$out")" = --query-gpu ] || fail "offered: $(tr '\n' ' ' <"$out")"
    complete_words smi -q --xml
    [ "$(cat "$out")" = --xml-format ] || fail "offered: $(tr '\n' ' ' <"$out")"
    complete_words smi dmon --cou
    [ "$(cat "$out")" = --count ] || fail "offered: $(tr '\n' ' ' <"$out")"
}

offers_the_values_of_a_choice()
{
    complete_words gpu --color al
    [ "$(cat "$out")" = always ] || fail "offered: $(tr '\n' ' ' <"$out")"
    complete_words gpu --color = ''
    out_has never
}

offers_folders_for_a_folder()
{
    mkdir -p "$tmp/folder/below" && : >"$tmp/folder/file"
    complete_words gpu --root "$tmp/folder/"
    out_has "$tmp/folder/below"
    out_lacks "$tmp/folder/file"
}

it offers_every_command
it offers_commands_that_begin_so
it offers_commands_after_help
it offers_every_option
it offers_the_commands_below_a_command
it offers_both_where_both_may_stand
it offers_the_values_of_a_choice
it offers_folders_for_a_folder
finish
