# SPDX-License-Identifier: Apache-2.0
"""A master that cannot be is said at once."""

import socket

import pytest

from raftlog.errors import SparkJobError
from raftlog.tools.spark.masters import check_master
from raftlog.tools.spark.session import session


@pytest.fixture
def unused() -> str:
    """An address of this machine without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("master", ["local", "local[*,4]", "local[2]", "yarn", "k8s://https://h:443"])
def test_known_masters(master: str) -> None:
    """Masters that are not standalone are left to Spark."""
    check_master(master)


@pytest.mark.parametrize("master", ["", "nonsense", "http://h:1", "spark://", "local 2"])
def test_unknown_masters(master: str) -> None:
    """Anything else is none, and the error names the forms that are."""
    with pytest.raises(SparkJobError, match=r"the master must be one of local\[N\], spark://HOST:PORT"):
        check_master(master)


@pytest.mark.parametrize("address", ["127.0.0.1:99999", "[::1:7", "127.0.0.1", "127.0.0.1:x"])
def test_addresses_that_cannot_be(address: str) -> None:
    """An invalid address is an error of raftlog."""
    with pytest.raises(SparkJobError, match="no master can be reached"):
        check_master(f"spark://{address}")


def test_no_master_listens(unused: str) -> None:
    """The error names the address; of several, one that listens is enough."""
    with pytest.raises(SparkJobError, match=f"no master can be reached: {unused}: Connection refused"):
        check_master(f"spark://{unused}")
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://{unused},127.0.0.1:{server.getsockname()[1]}")


def test_no_server_of_spark_connect_listens(unused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreachable server is named at once; one that listens, or may be reached by a proxy, is left to Spark."""
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    for master in (f"sc://{unused}", f"sc://{unused}/;user_id=me;token=x"):
        with pytest.raises(SparkJobError, match=f"no server of Spark Connect can be reached: {unused}: Connection"):
            check_master(master)
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"sc://127.0.0.1:{server.getsockname()[1]}/;use_ssl=true")
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    check_master(f"sc://{unused}")


def test_a_session_of_an_unreachable_server(unused: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is named by the caller or by SPARK_REMOTE."""
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("raftlog.tools.spark.session.existing_session", lambda: None)
    with pytest.raises(SparkJobError, match="no server of Spark Connect"), session(f"sc://{unused}"):
        pass
    monkeypatch.setenv("SPARK_REMOTE", f"sc://{unused}")
    with pytest.raises(SparkJobError, match="no server of Spark Connect"), session():
        pass
