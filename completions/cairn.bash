# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion for bash.  Commands and options are asked of the program itself, so they are always those it has.

# The commands of the program, or those below a command ("tensor").
_cairn_commands()
{
    "$@" --list-commands 2>/dev/null | cut -f 1
}

_cairn_values()
{
    case $1 in
    DIR) compgen -d -- "$2" ;;
    FILE* | CONFIG) compgen -f -- "$2" ;;
    WHEN) compgen -W 'auto always never' -- "$2" ;;
    *'|'*) compgen -W "${1//|/ }" -- "$2" ;;
    esac
}

# The value of the option before the word; else an option; else a file.
_cairn_arguments()
{
    local before=$1 word=$2 rows argument
    shift 2
    rows=$("$@" --list-options 2>/dev/null)
    argument=$(awk -F '\t' -v option="$before" '$1 == option { print $2 }' <<<"$rows")
    if [ -n "$argument" ] && [ "$argument" != - ]; then
        _cairn_values "$argument" "$word"
    elif [ -z "$word" ] || [ "${word#-}" != "$word" ]; then
        compgen -W "$(cut -f 1 <<<"$rows")" -- "$word"
    else
        compgen -f -- "$word"
    fi
}

_cairn()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} at=1 below
    local -a verb=("${COMP_WORDS[0]}")
    # Readline cuts --color=never into three words.
    [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
    [ "$word" != = ] || word=
    COMPREPLY=()
    # "cairn help tensor" knows the same commands as "cairn tensor".
    [ "$COMP_CWORD" -lt 2 ] || [ "${COMP_WORDS[1]}" != help ] || at=2
    while below=$(_cairn_commands "${verb[@]}") && [ -n "$below" ]; do
        # "cairn smi" takes options, or a command of its own.
        [ "$at" = 1 ] || [[ ${COMP_WORDS[at]} != -* ]] || break
        if [ "$at" = "$COMP_CWORD" ]; then
            [ "$at" != 1 ] || below="$below help --help --version"
            mapfile -t COMPREPLY < <(compgen -W "$below" -- "$word")
            return
        fi
        verb+=("${COMP_WORDS[at]}")
        at=$((at + 1))
    done
    mapfile -t COMPREPLY < <(_cairn_arguments "$before" "$word" "${verb[@]}")
}

complete -o filenames -F _cairn cairn
