# SPDX-License-Identifier: Apache-2.0
"""An object store that speaks S3, on the loopback interface; the fixture ``object_store`` has one for a session."""

import http.client
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.hang_limit import HANG_S

_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "not-a-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",  # Or whoever has no credentials asks the network for some.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


class ObjectStore:
    """A running store with a bucket for each test that uses it.

    Attributes:
        requests: the requests, such as ``GET /bucket/key``; cleared by tests that count them.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self.requests: list[str] = []

    @property
    def query(self) -> str:
        """The query of a URI that reaches it."""
        return f"?endpoint_override={self._host}:{self._port}&scheme=http"

    def uri(self, bucket: str, key: str = "") -> str:
        """Return the URI of a key."""
        return f"s3://{bucket}{'/' if key else ''}{quote(key)}{self.query}"

    def put(self, bucket: str, key: str, data: bytes) -> None:
        """Make an object."""
        self._send("PUT", f"/{bucket}/{quote(key)}", data)

    def delete(self, bucket: str, key: str) -> None:
        """Remove an object."""
        self._send("DELETE", f"/{bucket}/{quote(key)}")

    def upload(self, directory: Path, bucket: str, prefix: str = "") -> None:
        """Copy all files of a directory to a bucket, which is made."""
        self.make_bucket(bucket)
        for path in sorted(directory.rglob("*")):
            if path.is_file():
                self.put(bucket, f"{prefix}{path.relative_to(directory)}", path.read_bytes())

    def make_bucket(self, bucket: str) -> None:
        """Make a bucket."""
        self._send("PUT", f"/{bucket}")

    @contextmanager
    def asking_for_credentials(self) -> Iterator[None]:
        """Let it refuse the tester's credentials, as it refuses all that it does not know."""
        self._send("POST", "/moto-api/reset-auth", b"0")
        try:
            yield
        finally:
            self._send("POST", "/moto-api/reset-auth", b"inf")

    def _send(self, method: str, path: str, body: bytes = b"") -> None:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=HANG_S)
        try:
            connection.request(method, path, body, {"Authorization": "AWS tester"})
            response = connection.getresponse()
            answer = response.read()
            assert response.status < 300, (method, path, response.status, answer)
        finally:
            connection.close()


class _Requests(logging.Handler):
    """Takes down what the server logs of each request."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__()
        self._store = store

    def emit(self, record: logging.LogRecord) -> None:
        self._store.requests.append(record.getMessage())


@contextmanager
def running_object_store() -> Iterator[ObjectStore]:
    """Start a store, and set the environment so that this process and its children reach it and nothing else."""
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    with pytest.MonkeyPatch.context() as environment:
        for name, value in _ENVIRONMENT.items():
            environment.setenv(name, value)
        for name in _PROXIES:
            environment.delenv(name, raising=False)
            environment.delenv(name.upper(), raising=False)
        log = logging.getLogger("werkzeug")
        was_propagated, log.propagate = log.propagate, False
        log.setLevel(logging.INFO)
        server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        store = ObjectStore(*server.get_host_and_port())
        handler = _Requests(store)
        log.addHandler(handler)
        try:
            yield store
        finally:
            server.stop()
            log.removeHandler(handler)
            log.propagate = was_propagated


def copied(uri: str, folder: Path) -> Path:
    """Copy an output to a folder, for a reading without our code for object stores."""
    from pyarrow.fs import FileSelector, FileSystem, FileType

    store, key = FileSystem.from_uri(uri)
    for info in store.get_file_info(FileSelector(key, recursive=True, allow_not_found=True)):
        if info.type == FileType.File:
            path = folder / info.path.removeprefix(f"{key}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(store.open_input_file(info.path).read())
    return folder
