# SPDX-License-Identifier: Apache-2.0
"""What signals do in a process of pytest: as at a terminal at its start, and after each test as before it.

A shell starts what is in the background with Ctrl-C ignored, and children inherit it: then a test that interrupts
something waits for ever. A test that leaves a handler behind fails, and not the one that comes after it by chance.
"""

import signal
from collections.abc import Mapping
from typing import Any

_NEVER_CHANGED = {signal.SIGKILL, signal.SIGSTOP}


def let_ctrl_c_interrupt() -> None:
    """Raise ``KeyboardInterrupt`` at SIGINT, here and in children, also if whoever started this process ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def handlers() -> dict[signal.Signals, Any]:
    """Return what each signal does now."""
    return {number: signal.getsignal(number) for number in signal.valid_signals() - _NEVER_CHANGED}


def put_back(before: Mapping[signal.Signals, Any]) -> list[str]:
    """Let signals do again what they did before; return the names of those whose handler had changed."""
    changed = [number for number, handler in handlers().items() if handler != before[number]]
    for number in changed:
        signal.signal(number, before[number])
    return [number.name for number in changed]
