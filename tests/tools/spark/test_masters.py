# SPDX-License-Identifier: Apache-2.0
"""A master that cannot be is said at once."""

import socket

import pytest

from raftlog.errors import SparkJobError
from raftlog.tools.spark.masters import check_master


@pytest.fixture
def unused() -> str:
    """An address of this machine without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("master", ["local", "local[*,4]", "local[2]", "yarn", "k8s://https://h:443", "sc://h"])
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
