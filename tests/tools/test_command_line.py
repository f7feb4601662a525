# SPDX-License-Identifier: Apache-2.0
"""The command itself: help, version, usage errors, and what it costs to start it."""

import re
import subprocess
import sys

import pytest

import raftlog
from raftlog.records.kernel_choice import IS_COMPILED
from raftlog.tools.log.verb import ACTIONS
from raftlog.tools.verb_help.verbs import VERBS
from tests.tools.console import COMMAND, run, run_process

FORM = "compiled" if IS_COMPILED else "interpreted"
USAGE_ERRORS = {
    "no path": ["dump-log"],
    "an empty path": ["dump-log", "--files", ","],
    "an unknown option": ["dump-log", "--frobnicate", "x"],
    "an option cut short": ["dump-log", "--print-data", "x"],
    "an unknown format": ["dump-log", "--format", "xml", "x"],
    "an unknown dialect": ["dump-log", "--dialect", "2.8", "x"],
    "no number": ["dump-log", "--from", "ten", "x"],
    "a negative number": ["dump-log", "--max-bytes", "-1", "x"],
    "a number that is too long": ["dump-log", "--limit", "9" * 5000, "x"],
    "a number in other digits": ["dump-log", "--limit", "\u0663", "x"],
    "no time": ["dump-log", "--since", "yesterday", "x"],
    "an option without its value": ["dump-log", "x", "--limit"],
    "two starts": ["dump-log", "--from", "1", "--last", "1", "x"],
    "the end of a pipe": ["dump-log", "--last", "1", "-"],
    "the end of a pipe among files": ["dump-log", "--last", "1", "--files", "x,-"],
    "remote log metadata": ["dump-log", "--remote-log-metadata-decoder", "x"],
    "share groups before 4.0": ["dump-log", "--share-group-state-decoder", "--dialect", "3.9", "x"],
    "a line end": ["dump-log", "--a\nb", "x"],
    "an unknown verb": ["frobnicate"],
    "an option of no verb": ["--frobnicate"],
}


@pytest.mark.parametrize("name", USAGE_ERRORS)
def test_a_usage_error_is_one_line(name: str) -> None:
    """Wrong usage is one line that says what is wrong and where to read more, and exit code 1."""
    outcome = run(*USAGE_ERRORS[name])

    assert (outcome.exit_code, outcome.output) == (1, b"")
    (complaint,) = outcome.complaints
    assert re.fullmatch(r"raftlog( dump-log)?: .+ \(see raftlog( dump-log)? --help\)", complaint)
    assert "_count" not in complaint


MISTYPED = {
    "raftlog: no verb is called 'verfy'; did you mean verify?": ["verfy"],
    "raftlog: no verb is called 'dumplog'; did you mean dump-log?": ["dumplog", "--files", "x"],
    "raftlog log: no action of log is called 'ini'; did you mean init?": ["log", "ini", "directory"],
    "raftlog dump-log: no option is called --formt; did you mean --format?": ["dump-log", "x", "--formt", "jsonl"],
    "raftlog dump-log: no option is called -format; did you mean --format?": ["dump-log", "x", "-format", "jsonl"],
    "raftlog audit: no option is called --outt; did you mean --out?": ["audit", "x", "--outt=y"],
    "raftlog log init: no option is called --node; did you mean --node-id?": ["log", "init", "x", "--node", "1"],
    "raftlog: no option is called --versoin; did you mean --version?": ["--versoin"],
}


@pytest.mark.parametrize("complaint", MISTYPED)
def test_a_mistyped_word_is_answered_with_the_one_that_was_meant(complaint: str) -> None:
    """The message names the verb, action or option that is most like the one that was typed."""
    outcome = run(*MISTYPED[complaint])

    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert outcome.messages.startswith(f"{complaint} (see ")


def test_every_verb_is_suggested_for_itself_with_a_letter_missing() -> None:
    """For each verb without its second letter, that verb is suggested."""
    for verb in VERBS:
        (complaint,) = run(verb[0] + verb[2:]).complaints
        assert f"did you mean {verb}?" in complaint


def test_every_option_of_every_verb_is_suggested_for_itself_with_a_letter_missing() -> None:
    """For each long option without its last letter but one, that option is suggested by the verb that has it."""
    for verb in VERBS:
        for option in set(re.findall(r"--[a-z-]{4,}", run(verb, "--help").text.split("\n\n", 1)[0])):
            (complaint,) = run(verb, option[:-2] + option[-1]).complaints
            assert f"did you mean {option}?" in complaint, complaint


def test_unlike_words_get_no_suggestion() -> None:
    """Of a verb that is like none, all are listed; of an option that is like none, only that it is unknown is said."""
    assert all(verb in run("xyzzy").messages for verb in VERBS)
    assert "unrecognized arguments: --xyzzy" in run("dump-log", "--xyzzy", "x").messages


@pytest.mark.parametrize(
    "arguments",
    [["dump-log", "--limit", "ten", "--", "--formt"], ["log", "init", "x", "-tformat"], ["dump-log", "--limit", "-5"]],
    ids=["after two dashes", "a short option with its value", "a number"],
)
def test_other_words_are_not_mistyped_options(arguments: list[str]) -> None:
    """Paths after two dashes, values after a short option and numbers are not mistyped options."""
    assert "did you mean" not in run(*arguments).messages


HELPED = [[], *([verb] for verb in VERBS), *(["log", action] for action in ACTIONS)]


@pytest.mark.parametrize("words", HELPED, ids=" ".join)
def test_the_verb_help_prints_what_the_option_prints(words: list[str]) -> None:
    """`raftlog help VERB ACTION` is `raftlog VERB ACTION --help`, and exits with 0."""
    outcome = run("help", *words)

    assert outcome == run(*words, "--help")
    assert (outcome.exit_code, outcome.messages) == (0, "")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["verfy"], "no verb is called 'verfy'; did you mean verify?"),
        (
            ["log", "ini"],
            "no action of log is called 'ini'; did you mean init?",
        ),
        (["verify", "init"], "verify has no actions"),
    ],
)
def test_help_of_what_does_not_exist(words: list[str], complaint: str) -> None:
    """An unknown verb or action is one line with a suggestion, and exit code 1."""
    outcome = run("help", *words)

    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert outcome.complaints == [f"raftlog help: {complaint} (see raftlog help --help)"]


def test_help_of_all() -> None:
    """`raftlog --help` lists every verb, and the exit codes."""
    outcome = run("--help")

    assert (outcome.exit_code, outcome.messages) == (0, "")
    assert all(verb in outcome.text for verb in VERBS)
    assert "130" in outcome.text


def test_help_of_a_verb() -> None:
    """`raftlog dump-log --help` lists kafka-dump-log's own options and ours."""
    outcome = run("dump-log", "--help")

    assert (outcome.exit_code, outcome.messages) == (0, "")
    kafkas = (
        "--files --print-data-log --deep-iteration --cluster-metadata-decoder --skip-record-metadata --offsets-decoder"
        " --transaction-log-decoder --share-group-state-decoder --remote-log-metadata-decoder --index-sanity-check"
        " --verify-index-only --max-message-size --max-bytes --value-decoder-class --key-decoder-class --version --help"
    )
    ours = (
        "--format --dialect --from --to --last --since --until --control --type --epoch --key --limit --no-redact"
        " --all --shallow --decode-corrupt"
    )
    assert all(re.search(rf"{option}\b", outcome.text) for option in (kafkas + " " + ours).split())


@pytest.mark.parametrize("arguments", [["--version"], ["dump-log", "--version"]])
def test_version(arguments: list[str]) -> None:
    """The version is printed on standard output, and which form of the kernel runs."""
    outcome = run(*arguments)

    assert (outcome.exit_code, outcome.text) == (0, f"raftlog {raftlog.__version__} (kernel {FORM})\n")


def test_nothing_at_all() -> None:
    """Without a verb, the help goes to standard error, and the exit code is 1."""
    outcome = run()

    assert (outcome.exit_code, outcome.output) == (1, b"")
    assert "dump-log" in outcome.messages


def test_help_imports_little() -> None:
    """`raftlog --help` imports neither attrs nor the wire format, which take time."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"], capture_output=True, text=True, check=True
    )
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}

    assert "raftlog.tools.terminal.exit_codes" in imported
    assert not {name for name in imported if name.split(".")[0] in {"attr", "attrs", "importlib.metadata", "json"}}
    assert not {name for name in imported if name.startswith(("raftlog.records", "raftlog.storage", "raftlog.errors"))}
    assert "difflib" not in imported


def test_the_exit_code_of_the_process() -> None:
    """The exit code is that of the process."""
    assert run_process("dump-log", "missing.log").exit_code == 1
    assert run_process("--help").exit_code == 0
