# SPDX-License-Identifier: Apache-2.0
"""What is printed of a followed log ends with a whole line when the user interrupts."""

import io
import signal

import pytest

from raftlog.tools.follow.whole_output import Output


def write_parts(output: Output, *parts: str, times: int = 1) -> None:
    """Write a first part, interrupt, and write the others."""
    with output.whole_lines():
        output.write(parts[0])
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)
        for part in parts[1:]:
            output.write(part)


def test_an_interrupt_waits_for_the_end_of_a_line() -> None:
    """A line that is begun is written to its end; a second interrupt does not wait."""
    stream = io.BytesIO()
    output = Output(stream)
    with output.whole_at_interrupts():
        with pytest.raises(KeyboardInterrupt):
            write_parts(output, "a line", " in parts\n", "never")
        output.flush()
        assert stream.getvalue() == b"a line in parts\n"
        with pytest.raises(KeyboardInterrupt):
            write_parts(output, "half", "", times=2)
        output.flush()
        assert stream.getvalue() == b"a line in parts\nhalf"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            write_parts(output, "", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
