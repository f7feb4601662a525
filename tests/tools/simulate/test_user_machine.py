# SPDX-License-Identifier: Apache-2.0
"""``raftlog simulate --machine``: violations of a user's state machine are shown and shrunk, and no call hangs it."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.hang_limit import HANG_S
from tests.tools.console import COMMAND
from tests.tools.simulate.test_interrupts import PROCESSES
from tests.tools.simulate.test_simulate import simulated

BANK, FORGETFUL = "tests.testing.bank:Bank", "tests.testing.wrong_banks:Forgetful"
HANGING = """\
import itertools
import os
import signal
import sys

print("imported")
sys.path.append({root!r})
from tests.testing.bank import Bank


class Looping(Bank):
    def apply(self, offset, command):
        while offset > 20:
            pass


class Catching(Bank):
    def apply(self, offset, command):
        while offset > 20:
            try:
                while True:
                    pass
            except BaseException:
                pass


class Counting(Bank):
    def apply(self, offset, command):
        if offset > 20:
            sum(itertools.repeat(0))


class Disabling(Bank):
    def apply(self, offset, command):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        while offset > 20:
            pass


class Killed(Bank):
    def apply(self, offset, command):
        os.kill(os.getpid(), signal.SIGKILL)


class Unmade(Bank):
    def __init__(self):
        sum(itertools.repeat(0))


class Printing(Bank):
    def __init__(self):
        super().__init__()
        os.write(1, b"made")

    def apply(self, offset, command):
        super().apply(offset, command)
        if not sys.stdout.closed:
            print("applied", offset)
            sys.stdout.close()


class Ending(Bank):
    def apply(self, offset, command):
        os._exit(0)


class Endless(Bank):
    def __init__(self):
        while True:
            pass


class Quick(Bank):
    pass
"""


def test_a_right_machine_passes() -> None:
    """The exit code is 0, and equal seeds give equal words."""
    arguments = ("--machine", BANK, "--schedules", "2", "-j", "1", "--format", "jsonl")
    done = simulated(*arguments)
    assert done.exit_code == 0, done.messages
    assert simulated(*arguments).text == done.text
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_wrong_machine_is_shrunk_saved_and_shown(tmp_path: Path) -> None:
    """The command that is printed does so; a replay file names the machine, and is refused without it."""
    done = simulated("--machine", FORGETFUL, "--seed", "2", "--schedules", "1", "-j", "1")
    assert done.exit_code == 2
    assert "s1-2: machine-restores: Forgetful: its snapshot at offset " in done.text
    assert f"raftlog simulate --machine {FORGETFUL} --replay s1-2 --shrink" in done.text
    timed = ("--machine", FORGETFUL, "--machine-timeout", "7.5")
    done = simulated(*timed, "--seed", "2", "--schedules", "1", "-j", "1")
    assert f"raftlog simulate --machine {FORGETFUL} --machine-timeout 7.5 --replay s1-2 --shrink" in done.text
    saved = tmp_path / "run.json"
    named = ("--machine", FORGETFUL)
    done = simulated(*named, "--replay", "s1-2", "--shrink", "--shrink-runs", "12", "--save", saved)
    assert done.exit_code == 2
    assert done.text.startswith("violated: machine-restores: Forgetful: ")
    again = simulated(*named, "--replay", saved)
    assert again.exit_code == 2
    assert again.text == done.text
    assert "both have the same" in simulated(*named, "--diff", saved, saved).text
    for other in ((), ("--machine", BANK)):
        refused = simulated(*other, "--replay", saved)
        assert refused.exit_code == 1
        assert refused.complaints[-1].endswith(f"with another state machine: it needs --machine {FORGETFUL}")
    simulated("--replay", "s1-0", "--save", tmp_path / "own.json")
    refused = simulated(*named, "--replay", tmp_path / "own.json")
    assert refused.complaints[-1].endswith("it needs no --machine")


def test_an_interrupt_by_the_machine() -> None:
    """It is a violation, as any exception is: the processes that run schedules ignore those of the user."""
    done = simulated("--machine", "tests.testing.wrong_banks:Interrupting", "--schedules", "1", "-j", "1")
    assert done.exit_code == 2
    assert "machine-fails: Interrupting.apply at offset " in done.text
    assert "raised KeyboardInterrupt (wrong_banks.py, line " in done.text


@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("bank", "'bank' is no module and class, such as bank:Bank"),
        ("a:b:c", "'a:b:c' is no module and class"),
        (":Bank", "':Bank' is no module and class"),
        ("no_such_module:Bank", "no_such_module cannot be imported: ModuleNotFoundError: No module named"),
        ("tests.testing.bank:Tank", "tests.testing.bank has no class Tank"),
        ("tests.testing.bank:NAMES", "tests.testing.bank has no class NAMES"),
        ("builtins:dict", "dict() made a dict, not a StateMachine"),
        ("raftlog.testing.state_machine:StateMachine", "StateMachine() raised TypeError: Can't instantiate abstract"),
        ("tests.testing.wrong_banks:Textual", "Textual.snapshot at offset 0 returned a record of a str, not bytes"),
    ],
)
def test_a_machine_that_there_is_not(place: str, complaint: str) -> None:
    """It is one clear line, and the exit code is 1."""
    done = simulated("--machine", place, "--schedules", "1", "-j", "1")
    assert done.exit_code == 1
    assert complaint in done.complaints[-1]
    assert done.output == b""


@pytest.mark.parametrize("text", ["0", "0.009", "86401", "x", "nan"])
def test_a_timeout_that_is_none(text: str) -> None:
    """It is from 0.01 seconds to a day."""
    done = simulated("--machine", BANK, "--machine-timeout", text)
    assert done.exit_code == 1
    assert "is not a number of seconds from 0.01 to 86,400" in done.complaints[-1]


@pytest.mark.parametrize(("machine", "is_same"), [("bank:Bank", True), ("wrong_banks:Unsorted", False)])
def test_states_in_processes_with_other_hashes(machine: str, is_same: bool) -> None:
    """They are the same, unless the machine depends on the order of a set of texts."""
    command = [*COMMAND, "simulate", "--machine", f"tests.testing.{machine}", "--schedules", "1", "--format", "jsonl"]
    states = set()
    for hash_seed in ("1", "3"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [*command, "-j", "1"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=HANG_S
        )
        (line,) = (json.loads(each) for each in done.stdout.splitlines()[:1])
        states.add(line["states"])
    assert (len(states) == 1) is is_same


def run_hanging(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder with machines that hang."""
    (folder / "hanging.py").write_text(HANGING.format(root=str(ROOT)), encoding="utf-8")
    count = () if "--replay" in arguments else ("--schedules", "6")
    command = [*COMMAND, "simulate", "--machine-timeout", "0.5", *count, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=HANG_S)


def test_a_call_that_does_not_return(tmp_path: Path) -> None:
    """It is a violation of each schedule, with the line that hangs; so it is if the machine cannot be made."""
    done = run_hanging(tmp_path, "--machine", "hanging:Looping", "-j", "2", "--faults", "none")
    assert done.returncode == 2, done.stderr
    line = "Looping.apply at offset 21 raised TimeoutError: it did not return within 0.5 s (hanging.py, line 1"
    assert done.stdout.count(line) == 6
    done = run_hanging(tmp_path, "--machine", "hanging:Endless")
    assert done.returncode == 1
    assert "Endless() raised TimeoutError: it did not return within 0.5 s (hanging.py, line " in done.stderr


@pytest.mark.parametrize(
    ("machine", "processes"),
    [("Counting", "1"), ("Catching", "2"), pytest.param("Disabling", "1", marks=pytest.mark.slow)],
)
def test_a_call_that_cannot_be_interrupted(tmp_path: Path, machine: str, processes: str) -> None:
    """It ends the process that runs it: that is a violation of each schedule; the lines that hang are printed."""
    done = run_hanging(tmp_path, "--machine", f"hanging:{machine}", "-j", processes, "--schedules", "1")
    assert done.returncode == 2
    line = f"machine-fails: a call of {machine} did not return within 1 s of CPU, and could not be interrupted"
    told = [each for each in done.stdout.splitlines() if "machine-fails" in each]
    assert told == [f"s1-0: {line}"]
    assert "1 schedules, of which 0 count; 1 violations" in done.stdout
    assert f'File "{tmp_path}/hanging.py", line ' in done.stderr
    assert "in apply" in done.stderr


@PROCESSES
def test_a_machine_that_ends_its_process(tmp_path: Path, processes: str) -> None:
    """It is a violation of each schedule, in JSON lines, too."""
    done = run_hanging(tmp_path, "--machine", "hanging:Ending", "-j", processes, "--format", "jsonl")
    assert done.returncode == 2
    *lines, total = (json.loads(each) for each in done.stdout.splitlines())
    assert [each["token"] for each in lines] == [f"s1-{seed}" for seed in range(6)]
    assert lines[0].keys() == json.loads(simulated("--schedules", "1", "--format", "jsonl").text.split("\n")[0]).keys()
    what = "Ending has ended its process, with exit code 0"
    assert all(each["violation"] == {"invariant": "machine-fails", "description": what} for each in lines)
    assert total["violations"] == 6


@PROCESSES
def test_a_process_that_is_killed(tmp_path: Path, processes: str) -> None:
    """It may be nobody's fault: the table so far, then one line with the schedule, and the exit code is 1."""
    done = run_hanging(tmp_path, "--machine", "hanging:Killed", "-j", processes, "--faults", "none")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 schedules, of which 0 count; 0 violations"
    line = "raftlog simulate: s1-0-none: its process was ended by SIGKILL, and nothing is known of this schedule"
    assert done.stderr.splitlines()[-1] == line


def test_a_machine_that_ends_the_process_of_a_replay(tmp_path: Path) -> None:
    """It is one line, and the same exit code as among others."""
    done = run_hanging(tmp_path, "--machine", "hanging:Ending", "--replay", "s1-4")
    assert done.returncode == 2
    what = "raftlog simulate: s1-4: machine-fails: Ending has ended its process, with exit code 0"
    assert done.stderr.splitlines()[1:] == [what]


def test_a_token_whose_runs_differ() -> None:
    """That is said: what was found cannot be found again by it."""
    done = simulated("--machine", "tests.testing.wrong_banks:Chancy", "--replay", "s1-0")
    assert done.exit_code == 2
    what = "two runs of s1-0 differ, it is not deterministic: first machine-is-deterministic: Chancy: "
    assert what in done.messages


@pytest.mark.slow
def test_a_machine_that_cannot_be_made(tmp_path: Path) -> None:
    """The first instance is made in a process of its own, so that one line says what is wrong."""
    done = run_hanging(tmp_path, "--machine", "hanging:Unmade")
    assert done.returncode == 1
    what = "a call of Unmade did not return within 1 s of CPU, and could not be interrupted"
    assert done.stderr.splitlines()[-1] == f"raftlog simulate: option machine: {what}"


def test_what_a_machine_prints(tmp_path: Path) -> None:
    """It goes to standard error, where nobody reads it as JSON; a machine that closes its standard output may."""
    arguments = ("--schedules", "1", "--faults", "none", "--format", "jsonl", "-j", "1")
    done = run_hanging(tmp_path, "--machine", "hanging:Printing", *arguments, "--machine-timeout", "60")
    assert done.returncode == 0, done.stderr
    assert [json.loads(each)["kind"] for each in done.stdout.splitlines()] == ["schedule", "total"]
    assert all(each in done.stderr for each in ("imported", "made", "applied"))


def test_a_machine_in_the_current_directory(tmp_path: Path) -> None:
    """It is found, in all processes."""
    arguments = ("-j", "2", "--schedules", "2", "--faults", "none", "--machine-timeout", "60")
    done = run_hanging(tmp_path, "--machine", "hanging:Quick", *arguments)
    assert done.returncode == 0, done.stderr
