# SPDX-License-Identifier: Apache-2.0
"""Paths in commands that a user may copy."""

import re
import shlex
from typing import Final

_ODD: Final = re.compile("[^\x20-\x7e]")


def shell_quoted(path: str) -> str:
    """Return a path so that a shell takes it as one word, and a command as no option; all that is seen is ASCII.

    What is not is written as the bytes of the file's name, in the quotes that bash, zsh and ksh have for it.
    """
    path = f"./{path}" if path.startswith("-") and path != "-" else path
    if _ODD.search(path) is None:
        return shlex.quote(path)
    plain = path.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_ODD.sub(_bytes, plain)}'"


def _bytes(match: re.Match[str]) -> str:
    # A three-digit octal escape ends where it ends; \x goes on as long as there are hexadecimal digits.
    errors = "surrogateescape" if "\udc80" <= match[0] <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in match[0].encode("utf-8", errors))
