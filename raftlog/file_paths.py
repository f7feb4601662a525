# SPDX-License-Identifier: Apache-2.0
"""Paths as text: of local files, and URIs of remote ones such as ``s3://bucket/kafka-1?region=eu-west-1``.

The query of a URI configures access to its file system, so it is kept when a path is joined or split. The part between
bucket and query is percent-encoded. To name a local path that looks like a URI, put ``./`` before it.
"""

import re
from typing import Final

import attrs

from raftlog.errors import StorageError

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+://)([^/?]*)([^?]*)(\?.*)?", re.DOTALL)
_LOCAL_URI: Final = re.compile(r"file:(?://([^/]*))?(/.*)", re.DOTALL | re.IGNORECASE)
_NO_CREDENTIALS: Final = re.compile(r"(?:[^:@]*@)?(?:\[[^]@]*\]|[^:@]*)(?::[0-9]*)?")
"""An authority with an optional user name, a host or bucket, and an optional port, but without a password."""
_SECRET_PARAMETER: Final = re.compile(r"[?&][^&=]*(?:secret|password|token|key|sig)[^&=]*=", re.IGNORECASE)
_HIDDEN: Final = "[redacted]"


@attrs.frozen
class RemotePath:
    """The parts of a remote path.

    Attributes:
        root: scheme, host or bucket, and query, which together open the file system.
        key: the path in that file system, decoded, without ``/`` at its ends.
    """

    root: str
    key: str


def is_remote(path: str) -> bool:
    """Whether a path is a URI other than ``file:``; only for paths that ``local_or_remote`` has returned."""
    return "://" in path and _URI.fullmatch(path) is not None


def local_or_remote(path: str) -> str:
    """Normalise a path given by a user: a ``file:`` URI becomes a local path, other URIs lose a ``/`` at the end.

    Paths are printed and stored in results, so they must not hold credentials; those come from the environment.

    Raises:
        StorageError: the URI holds credentials, or names a file of another machine. The error does not show them.
    """
    if path[:5].lower() == "file:" and (local := _LOCAL_URI.fullmatch(path)) is not None:
        return _local(path, *local.groups())
    parts = _parts(path)
    if parts is None:
        return path
    scheme, authority, key, query = parts
    if _NO_CREDENTIALS.fullmatch(authority) is None or (":" in authority and "@" in key):
        raise _credentials(f"{scheme}{_HIDDEN}")
    if _SECRET_PARAMETER.search(query) is not None:
        raise _credentials(f"{scheme}{authority}{key}?{_HIDDEN}")
    return f"{scheme}{authority}{key.rstrip('/')}{query}"


def remote_path(path: str) -> RemotePath:
    """Return the parts of a remote path.

    Raises:
        StorageError: it is not a URI.
    """
    from urllib.parse import unquote

    parts = _parts(path)
    if parts is None:
        raise StorageError(path, "open", "it is not a URI")
    scheme, authority, key, query = parts
    return RemotePath(f"{scheme}{authority}/{query}", unquote(key).strip("/"))


def join_path(directory: str, name: str) -> str:
    """Return the path of a name in a directory; ``""`` is the working directory."""
    parts = _parts(directory)
    if parts is not None:
        from urllib.parse import quote

        scheme, authority, key, query = parts
        return f"{scheme}{authority}{key.rstrip('/')}/{quote(name)}{query}"
    return f"{directory}{name}" if directory.endswith("/") or not directory else f"{directory}/{name}"


def split_path(path: str) -> tuple[str, str]:
    """Return a path's directory and name; for a bucket, as for ``/``, that is itself and the empty name.

    >>> split_path("s3://backup/orders-0/00000000000000000000.log?region=eu-west-1")
    ('s3://backup/orders-0?region=eu-west-1', '00000000000000000000.log')
    """
    parts = _parts(path)
    if parts is not None:
        from urllib.parse import unquote

        scheme, authority, key, query = parts
        parent, _, name = key.rpartition("/")
        return f"{scheme}{authority}{parent.rstrip('/')}{query}", unquote(name)
    directory, slash, name = path.rpartition("/")
    return directory.rstrip("/") or f"{directory}{slash}", name


def name_of(path: str) -> str:
    """Return the last part of a path, without its directory."""
    return split_path(path)[1] if "://" in path else path.rpartition("/")[2]


def directory_of(path: str) -> str:
    """Return the directory that a path is in, ``""`` for the working directory."""
    return split_path(path)[0]


def _credentials(shown: str) -> StorageError:
    cause = "credentials in a path would be shown with it: give them in the environment (AWS_ACCESS_KEY_ID and such)"
    return StorageError(shown, "open", cause)


def _parts(path: str) -> tuple[str, str, str, str] | None:
    """Return scheme, authority, path and query of a URI; None if the path is not a URI."""
    found = _URI.fullmatch(path) if "://" in path else None
    return None if found is None else (found[1], found[2], found[3], found[4] or "")


def _local(path: str, host: str | None, encoded: str) -> str:
    from urllib.parse import unquote

    if host and host.lower() != "localhost":
        raise StorageError(path, "open", f"a file of {host} is not reached by a file: URI")
    return unquote(encoded)
