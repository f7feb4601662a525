# SPDX-License-Identifier: Apache-2.0
"""Completion in shells: what bash, zsh and fish offer for a command line that is being typed."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from raftlog.records.messages.releases import DIALECTS
from raftlog.tools.dump.output_formats import FORMATS
from raftlog.tools.log.verb import ACTIONS
from raftlog.tools.verb_help.completion import commands
from raftlog.tools.verb_help.completion_scripts import SCRIPTS, Command
from raftlog.tools.verb_help.verbs import VERBS
from tests.hang_limit import HANG_S
from tests.tools.console import run

COMMANDS = {" ".join(command.words): command for command in commands()}

ASK_BASH = """
source "$1"
while IFS= read -r line; do
    read -ra COMP_WORDS <<< "${line//=/ = }"
    if [[ $line == *" " ]]; then COMP_WORDS+=(""); fi
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _raftlog
    echo "${COMPREPLY[*]}"
done
"""
"""Splits lines as readline does, which makes a word of each equals sign, and asks the function for each."""

ASK_ZSH = """
compdef() {}
_arguments() { print -r -- "${(j:|:)@}" "($words[1] $CURRENT)" }
_files() { print -r -- files }
source "$1"
while IFS= read -r line; do
    words=(${=line})
    if [[ $line == *" " ]]; then words+=(""); fi
    CURRENT=$#words
    _raftlog
done
"""
"""Stands in for zsh's own completion functions, and prints what they are asked for."""

ASK_FISH = """
source $argv[1]
while read -l line
    echo (complete -C $line | string replace -r '\\t.*' '')
end
"""


def script(shell: str, folder: Path) -> Path:
    """Write the script for a shell to a file."""
    outcome = run("completion", shell)
    assert (outcome.exit_code, outcome.messages) == (0, "")
    path = folder / f"raftlog.{shell}"
    path.write_bytes(outcome.output)
    return path


def ask(shell: str, program: str, folder: Path, lines: Sequence[str], *options: str) -> list[str]:
    """Return what a shell makes of some lines that are being typed, each up to the cursor."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    asked = folder / f"ask.{shell}"
    asked.write_text(program)
    done = subprocess.run(
        [shell, *options, asked, script(shell, folder)],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=HANG_S,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines)
    return answers


def ask_bash(folder: Path, *lines: str) -> list[set[str]]:
    """Return the words that bash offers for each line."""
    return [set(answer.split()) for answer in ask("bash", ASK_BASH, folder, lines, "--norc")]


def options_of(command: Command) -> set[str]:
    return {name for option in command.options for name in option.names}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_is_what_the_shell_can_read(shell: str, tmp_path: Path) -> None:
    """Each script is free of syntax errors, by the word of its shell."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", script(shell, tmp_path)], check=True, timeout=HANG_S)


def test_everything_is_described() -> None:
    """The command, each verb and each action is described, with all options that its help names."""
    assert set(COMMANDS) == {"", *VERBS, *(f"log {action}" for action in ACTIONS), "help log"}
    for words in {*COMMANDS} - {"help log"}:
        usage = run(*words.split(), "--help").text.partition("\n\n")[0]
        assert set(re.findall(r"(?<=[\[ ])--?[a-zA-Z][a-z-]*", usage)) <= options_of(COMMANDS[words])


def test_bash_offers_verbs_and_actions(tmp_path: Path) -> None:
    """In place of a verb, bash offers all verbs that begin like the word; after ``log`` and ``help`` too."""
    lines = ("raftlog ", "raftlog ver", "raftlog log ", "raftlog log in", "raftlog help ", "raftlog help log ")
    assert ask_bash(tmp_path, *lines) == [
        set(VERBS),
        {"verify", "verify-mirror"},
        set(ACTIONS),
        {"init", "info"},
        set(VERBS),
        set(ACTIONS),
    ]
    assert ask_bash(tmp_path, "raftlog completion ") == [set(SCRIPTS)]


def test_bash_offers_every_option_of_every_verb(tmp_path: Path) -> None:
    """After a dash bash offers all options of the verb or action, wherever on the line the cursor is."""
    for end, without in ((" -", {"help log"}), (" some/path -", {"", "log", "help", "help log"})):
        names = [words for words in COMMANDS if words not in without]
        answers = ask_bash(tmp_path, *(f"raftlog {words}{end}".replace("  ", " ") for words in names))
        assert dict(zip(names, answers, strict=True)) == {words: options_of(COMMANDS[words]) for words in names}


def test_bash_offers_the_choices_of_every_option(tmp_path: Path) -> None:
    """After an option with choices bash offers them, with a blank or an equals sign between, and only what fits."""
    choices = {
        f"raftlog {words} {name}": set(option.choices)
        for words, command in COMMANDS.items()
        for option in command.options
        for name in option.names
        if option.choices
    }
    assert choices["raftlog dump-log --format"] == set(FORMATS)
    assert "data-loss" in choices["raftlog verify --fail-on"]
    for sign in (" ", "="):
        answers = ask_bash(tmp_path, *(f"{line}{sign}" for line in choices))
        assert dict(zip(choices, answers, strict=True)) == choices
    lines = ("raftlog dump-log --format j", "raftlog dump-log --format=ta", "raftlog dump-log x --dialect 4.")
    assert ask_bash(tmp_path, *lines) == [{"jsonl"}, {"table"}, {name for name in DIALECTS if name.startswith("4.")}]


def test_bash_leaves_everything_else_to_its_own_completion_of_file_names(tmp_path: Path) -> None:
    """For paths and for values without choices the function offers nothing, and bash falls back to file names."""
    lines = (
        "raftlog verify ",
        "raftlog verify x",
        "raftlog dump-log --files ",
        "raftlog log info ",
        "raftlog nonsense x",
    )
    assert ask_bash(tmp_path, *lines) == [set()] * len(lines)
    shown = subprocess.run(
        ["bash", "--norc", "-c", 'source "$1" && complete -p raftlog', "bash", script("bash", tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert shlex.split(shown.stdout) == ["complete", "-o", "default", "-F", "_raftlog", "raftlog"]


def test_fish_offers_verbs_options_choices_and_files(tmp_path: Path) -> None:
    """The completions of fish match the descriptions."""
    (tmp_path / "00000000000000000000.log").touch()
    verbs, actions, values, options, files = ask(
        "fish",
        ASK_FISH,
        tmp_path,
        ["raftlog ", "raftlog log ", "raftlog verify --fail-on ", "raftlog log init --", "raftlog dump-log 0"],
        "--no-config",
    )
    assert set(verbs.split()) == set(VERBS)
    assert set(actions.split()) == set(ACTIONS)
    assert set(values.split()) == {"harmless", "suspicious", "damaged", "data-loss"}
    assert set(options.split()) == {name for name in options_of(COMMANDS["log init"]) if name.startswith("--")}
    assert files == "00000000000000000000.log"


def test_zsh_asks_for_the_options_of_the_verb(tmp_path: Path) -> None:
    """The function calls ``_arguments`` with the options of the verb or action, as if that were the command."""
    lines = ["raftlog ", "raftlog verify ", "raftlog verify x --fail-on ", "raftlog log init --", "raftlog nonsense x "]
    root, verify, later, init, unknown = ask("zsh", ASK_ZSH, tmp_path, lines, "-f")
    assert root.endswith("(raftlog 2)")
    assert "1:word:{_describe word following}" in root
    assert ":value:(harmless suspicious damaged data-loss)|" in verify
    assert verify.endswith("*:file:_files (verify 2)")
    assert later.endswith("(verify 4)")
    assert init.endswith("(init 2)")
    assert all(f"{name}" in init for name in options_of(COMMANDS["log init"]))
    assert unknown == "files"


def test_an_unknown_shell_is_a_usage_error() -> None:
    """A shell without a script, or no shell at all, is one line and exit code 1."""
    for arguments in (["tcsh"], []):
        outcome = run("completion", *arguments)
        assert (outcome.exit_code, outcome.output, len(outcome.complaints)) == (1, b"", 1)
