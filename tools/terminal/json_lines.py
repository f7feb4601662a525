# SPDX-License-Identifier: Apache-2.0
"""JSON lines, as every verb writes them: one object per line, its ``kind`` first, in UTF-8.

Bytes, and the names of files and directories, need not be text. All verbs use one convention for them: the member is
text if the bytes are UTF-8 without control characters, else base64 under the member's name with ``_base64`` appended. A
list of names is base64 as a whole if any of them is not text.
"""

import base64
import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

_CONTROL_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_UNSAFE: Final = re.compile("[\x85\u2028\u2029\ud800-\udfff]")
"""Characters that some readers treat as line ends, and those that UTF-8 cannot encode."""


@functools.cache
def _encoder() -> Callable[[dict[str, Any]], str]:
    """Return the JSON encoder: that of the extra ``json`` if installed, else Python's. Both write the same bytes."""
    import json  # Slow to import, and text output does not need it.

    by_standard_library = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    try:
        import orjson
    except ImportError:
        return by_standard_library

    def encode(members: dict[str, Any]) -> str:
        try:
            return orjson.dumps(members).decode()
        except TypeError:  # A lone surrogate, from a file name that a reason quotes.
            return by_standard_library(members)

    return encode


def encode(members: dict[str, Any]) -> str:
    """Return an object as compact JSON, in which ``one_line`` must still escape characters."""
    return _encoder()(members)


def text_or_base64(name: str, data: bytes | None) -> dict[str, str | None]:
    """Return the member of an object for some bytes; None is null."""
    if data is None:
        return {name: None}
    text = _text(data)
    return {f"{name}_base64": _base64(data)} if text is None else {name: text}


@functools.lru_cache(maxsize=8)
def path_member(name: str, path: str | None) -> dict[str, str | None]:
    """Return the member of an object that names a file or directory; None is null. Do not modify the result."""
    return text_or_base64(name, None if path is None else _name_bytes(path))


def path_list_member(name: str, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the member of an object that lists names of files or directories."""
    names = [_name_bytes(path) for path in paths]
    texts = [text for data in names if (text := _text(data)) is not None]
    return {name: texts} if len(texts) == len(names) else {f"{name}_base64": [_base64(data) for data in names]}


def json_line(kind: str, path: str | None, /, **members: Any) -> str:
    """Return an object as one line, its end included.

    Args:
        kind: what the object is.
        path: the file that it is about, for its member ``file``; None for no such member.
        members: JSON values by name. Names of files and bytes come from ``path_member`` and its siblings.
    """
    if path is None:
        return one_line(encode({"kind": kind} | members))
    return one_line(encode({"kind": kind} | path_member("file", path) | members))


def one_line(text: str) -> str:
    """Return JSON as text that every reader treats as exactly one line, its end included.

    A lone surrogate becomes U+FFFD. That loses nothing that a program needs: names that are not text are base64.
    """
    return (text if text.isascii() else _UNSAFE.sub(_escape, text)) + "\n"


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"


def _name_bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _text(data: bytes) -> str | None:
    """Return bytes as text, or None if they are not UTF-8 or have control characters."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROL_CHARACTER.search(text) else text


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
