# SPDX-License-Identifier: Apache-2.0
# Completion for fish.  Commands and options are asked of the program itself, so they are always those it has.

function __cairn_command
    set -l words (commandline -opc)
    test (count $words) -gt 1; and echo $words[2]
end

function __cairn_options
    cairn (__cairn_command) --list-options 2>/dev/null | while read -l -d \t name argument help
        printf '%s\t%s\n' $name $help
    end
end

complete -c cairn -n __fish_use_subcommand -f -a '(cairn --list-commands)'
complete -c cairn -n __fish_use_subcommand -f -a 'help\t"all about one command"'
complete -c cairn -n __fish_use_subcommand -l version -d 'the version, and when its knowledge was reviewed'
complete -c cairn -n '__fish_seen_subcommand_from help' -f -a '(cairn --list-commands)'
complete -c cairn -n 'not __fish_use_subcommand' -a '(__cairn_options)'
