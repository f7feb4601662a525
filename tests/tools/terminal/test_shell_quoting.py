# SPDX-License-Identifier: Apache-2.0
"""Words for a shell: bash takes each as the name of the file, byte for byte."""

import os
import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.tools.terminal.shell_quoting import shell_quoted

NAMES = st.binary(min_size=1, max_size=30).map(lambda name: os.fsdecode(name.replace(b"\0", b"0")))


@given(name=NAMES)
def test_a_word_is_printable_ascii(name: str) -> None:
    """Whatever bytes a name has, its word is one line of ASCII, and is not taken for an option."""
    word = shell_quoted(name)
    assert word.isascii()
    assert word.isprintable()
    assert name == "-" or not word.removeprefix("$").removeprefix("'").startswith("-")


@given(name=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1))
def test_a_plain_name_is_quoted_as_usual(name: str) -> None:
    """The word of a name of plain characters is read by any shell."""
    assert shlex.split(shell_quoted(name)) in ([name], [f"./{name}"])


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_reads_the_bytes() -> None:
    """Each byte alone, and bytes beside digits, come back from bash as they were."""
    names = [os.fsdecode(bytes([byte, *after])) for byte in range(1, 256) for after in (b"", b"1", b"a'\\")]
    script = "".join(f"printf '%s\\0' {shell_quoted(name)}\n" for name in names)
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    read = done.stdout.split(b"\0")[:-1]
    assert [word.removeprefix(b"./") for word in read] == [os.fsencode(name) for name in names]
