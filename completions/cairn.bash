# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Completion for bash.  Commands and options are asked of the program itself, so they are always those it has.

# The name of the argument that an option takes; "-" if it takes none, nothing if there is no such option.
_cairn_argument()
{
    "$1" "$2" --list-options 2>/dev/null | awk -F '\t' -v option="$3" '$1 == option { print $2 }'
}

_cairn_values()
{
    case $1 in
    DIR) compgen -d -- "$2" ;;
    FILE | CONFIG) compgen -f -- "$2" ;;
    WHEN) compgen -W 'auto always never' -- "$2" ;;
    *'|'*) compgen -W "${1//|/ }" -- "$2" ;;
    esac
}

_cairn()
{
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]}
    local before=${COMP_WORDS[COMP_CWORD - 1]} argument words
    [ "$before" != = ] || before=${COMP_WORDS[COMP_CWORD - 2]}
    if [ "$word" = = ]; then
        word=
    fi
    COMPREPLY=()
    if [ "$COMP_CWORD" = 1 ] || { [ "$COMP_CWORD" = 2 ] && [ "$command" = help ]; }; then
        words=$("$program" --list-commands 2>/dev/null | cut -f 1)
        [ "$COMP_CWORD" != 1 ] || words="$words help --help --version"
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        return
    fi
    argument=$(_cairn_argument "$program" "$command" "$before")
    if [ -n "$argument" ] && [ "$argument" != - ]; then
        mapfile -t COMPREPLY < <(_cairn_values "$argument" "$word")
        return
    fi
    words=$("$program" "$command" --list-options 2>/dev/null | cut -f 1)
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}

complete -o filenames -F _cairn cairn
