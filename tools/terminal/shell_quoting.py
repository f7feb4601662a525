# SPDX-License-Identifier: Apache-2.0
"""Quotes paths in commands that a user may copy."""

import re
import shlex
from typing import Final

_ODD: Final = re.compile("[^\x20-\x7e]")


def shell_quoted(path: str) -> str:
    """Quote a path in ASCII, so that a shell reads it as one word, and no command as an option.

    Other characters are written as the bytes of the file's name, in the ``$'...'`` quotes of bash, zsh and ksh.
    """
    path = f"./{path}" if path.startswith("-") and path != "-" else path
    if _ODD.search(path) is None:
        return shlex.quote(path)
    plain = path.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_ODD.sub(_bytes, plain)}'"


def _bytes(match: re.Match[str]) -> str:
    # An octal escape has at most three digits; \x would continue over all hexadecimal digits that follow.
    errors = "surrogateescape" if "\udc80" <= match[0] <= "\udcff" else "surrogatepass"
    return "".join(f"\\{byte:03o}" for byte in match[0].encode("utf-8", errors))
