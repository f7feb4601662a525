# SPDX-License-Identifier: Apache-2.0
"""Completion scripts for bash, zsh and fish, made from a description of all verbs.

If neither a word nor a value of an option is known, each shell completes file names.
"""

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

_QUOTE: Final = shlex.quote


class Option(NamedTuple):
    """An option.

    Attributes:
        names: short and long ones, with their dashes.
        help: one line.
        choices: all valid values; empty if any other value is valid too.
        takes_value: whether a value follows it.
        may_repeat: whether it may be given again.
    """

    names: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    takes_value: bool
    may_repeat: bool


class Command(NamedTuple):
    """The command, a verb or an action of one.

    Attributes:
        words: the verb and the action; empty for the command itself.
        options: the options that may follow.
        following: the words that may follow, with their descriptions; empty if paths follow.
    """

    words: tuple[str, ...]
    options: tuple[Option, ...]
    following: Mapping[str, str]


# bash

_BASH: Final = """\
# Completion of raftlog in bash, made by: raftlog completion bash
_raftlog() {{
    local IFS=$' \\t\\n' word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
    local command="" options="" following="" values=""
    COMPREPLY=()
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $before == "=" ]]; then
        before=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    if ((COMP_CWORD > 1)); then
        command=${{COMP_WORDS[1]}}
    fi
    if ((COMP_CWORD > 2)) && [[ $command =~ ^({nested})$ ]]; then
        command="$command ${{COMP_WORDS[2]}}"
    fi
    case $command in
{cases}
        *) return ;;
    esac
    if [[ -n $values ]]; then
        following=$values
    elif [[ $word == -* ]]; then
        following=$options
    fi
    COMPREPLY=($(compgen -W "$following" -- "$word"))
}}
complete -o default -F _raftlog raftlog
"""


def bash_script(commands: Sequence[Command]) -> str:
    """Return the script for bash."""
    return _BASH.format(nested=_nested(commands), cases="\n".join(_bash_case(command) for command in commands))


def _bash_case(command: Command) -> str:
    values = [
        f"                {'|'.join(option.names)}) "
        + (f'values="{" ".join(option.choices)}" ;;' if option.choices else "return ;;")
        for option in command.options
        if option.takes_value
    ]
    lines = [
        f"        {_QUOTE(' '.join(command.words))})",
        f'            options="{" ".join(name for option in command.options for name in option.names)}"',
        f'            following="{" ".join(command.following)}"',
        *(["            case $before in", *values, "            esac"] if values else []),
        "            ;;",
    ]
    return "\n".join(lines)


# zsh

_ZSH: Final = """\
#compdef raftlog
# Completion of raftlog in zsh, made by: raftlog completion zsh
_raftlog() {{
    local command="" depth=0
    local -a following
    if ((CURRENT > 2)); then
        command=$words[2] depth=1
    fi
    if ((CURRENT > 3)) && [[ $command == ({nested}) ]]; then
        command="$command $words[3]" depth=2
    fi
    shift $depth words
    ((CURRENT -= depth))
    case $command in
{cases}
        (*) _files ;;
    esac
}}
if [[ $funcstack[1] == _raftlog ]]; then
    _raftlog "$@"
else
    compdef _raftlog raftlog
fi
"""


def zsh_script(commands: Sequence[Command]) -> str:
    """Return the script for zsh: to be sourced, or as the file ``_raftlog`` in a folder of ``fpath``."""
    return _ZSH.format(nested=_nested(commands), cases="\n".join(_zsh_case(command) for command in commands))


def _zsh_case(command: Command) -> str:
    following = [f"{word}:{meaning}" if meaning else word for word, meaning in command.following.items()]
    last = "1:word:{_describe word following}" if following else "*:file:_files"
    specs = [*map(_zsh_option, command.options), _QUOTE(last)]
    lines = [
        f"        ({_QUOTE(' '.join(command.words))})",
        *([f"            following=({' '.join(map(_QUOTE, following))})"] if following else []),
        "            _arguments \\",
        *(f"                {spec} \\" for spec in specs[:-1]),
        f"                {specs[-1]}",
        "            ;;",
    ]
    return "\n".join(lines)


def _zsh_option(option: Option) -> str:
    """Return the specifications of an option, one per name, as words of a shell."""
    help_ = option.help.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    values = f"({' '.join(option.choices)})" if option.choices else "_files"
    value = f":value:{values}" if option.takes_value else ""
    others = "*" if option.may_repeat else f"({' '.join(option.names)})"
    signs = [("=" if name.startswith("--") else "+") if option.takes_value else "" for name in option.names]
    specs = (f"{others}{name}{sign}[{help_}]{value}" for name, sign in zip(option.names, signs, strict=True))
    return " ".join(map(_QUOTE, specs))


# fish

_FISH: Final = """\
# Completion of raftlog in fish, made by: raftlog completion fish
function __raftlog_command
    set -l given (commandline -opc)
    set -e given[1]
    set -l command $given[1]
    if contains -- "$command" {nested}; and test (count $given) -gt 1
        set command "$command $given[2]"
    end
    test "$command" = "$argv"
end
complete -c raftlog -e
"""


def fish_script(commands: Sequence[Command]) -> str:
    """Return the script for fish."""
    head = _FISH.format(nested=_nested(commands).replace("|", " "))
    return head + "".join(f"{line}\n" for command in commands for line in _fish_lines(command))


def _fish_lines(command: Command) -> Iterable[str]:
    condition = " ".join(("__raftlog_command", *command.words))
    start = f"complete -c raftlog -n {_fish_quote(condition)}"
    for word, meaning in command.following.items():
        yield f"{start} -f -a {word}" + (f" -d {_fish_quote(meaning)}" if meaning else "")
    for option in command.options:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        value = f" -x -a {_fish_quote(' '.join(option.choices))}" if option.choices else " -r" * option.takes_value
        yield f"{start} {names}{value} -d {_fish_quote(option.help)}"


def _fish_quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _nested(commands: Iterable[Command]) -> str:
    """Return the verbs that have actions, as alternatives of a pattern."""
    return "|".join(dict.fromkeys(command.words[0] for command in commands if len(command.words) > 1))


SCRIPTS: Final[Mapping[str, Callable[[Sequence[Command]], str]]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
"""The function that makes the script for each shell."""
