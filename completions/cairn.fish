# SPDX-License-Identifier: Apache-2.0
# Completion for fish.  Commands and options are asked of the program itself, so they are always those it has.

# What can follow the words so far: commands, or the options of the command that they name.
function __cairn_next
    set -l words (commandline -opc)[2..-1]
    set -l verb
    set -l help (test "$words[1]" = help; and echo yes)
    test -n "$help"; and set -e words[1]
    while set -l below (cairn $verb --list-commands 2>/dev/null)
        # "cairn smi" takes options, or a command of its own.
        test (count $verb) -gt 0; and string match -q -- '-*' "$words[1]"; and break
        if test (count $words) -eq 0
            printf '%s\n' $below
            test (count $verb) -gt 0; and break
            test -z "$help"; and printf 'help\tshow help for a command\n--version\tprint the version\n'
            return
        end
        set -a verb $words[1]
        set -e words[1]
    end
    test -n "$help"; and return
    cairn $verb --list-options 2>/dev/null | while read -l -d \t name argument help
        printf '%s\t%s\n' $name $help
    end
end

# Without a file where only a command can stand.
function __cairn_wants_command
    set -l words (commandline -opc)
    test (count $words) -lt 2; or test "$words[2]" = help; or begin
        test (count $words) -eq 2
        and cairn $words[2] --list-commands >/dev/null 2>&1
    end
end

complete -c cairn -n __cairn_wants_command -f
complete -c cairn -a '(__cairn_next)'
