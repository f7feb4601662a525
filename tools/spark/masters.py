# SPDX-License-Identifier: Apache-2.0
"""Checks that a Spark master can be reached, since Spark itself takes minutes to report that it cannot."""

import os
import re
import socket
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from raftlog.errors import SparkJobError

_FORMS: Final = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|yarn|(spark|k8s|sc)://.+")
_STANDALONE: Final = "spark://"
CONNECT: Final = "sc://"
_CONNECT_PORT: Final = 15002
_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy")
"""The variables by which gRPC finds a proxy, through which it may reach what this machine cannot."""
_TIMEOUT_S: Final = 10.0


def check_master(master: str) -> None:
    """Check that a master has a form that Spark knows, and that one of a host and port of its own accepts connections.

    Args:
        master: a URL. A standalone one may name several masters, separated by commas; one that accepts is enough. A
            server of Spark Connect is not tried if the environment names a proxy.

    Raises:
        SparkJobError: the form is unknown, or no master accepts a connection.
    """
    work = f"starting on {master}"
    if _FORMS.fullmatch(master) is None:
        raise SparkJobError(
            work, "the master must be one of local[N], spark://HOST:PORT, sc://HOST, yarn and k8s://URL"
        )
    if master.startswith(_STANDALONE):
        _check_accepts(work, master.removeprefix(_STANDALONE).split(","), "master", 0)
    elif master.startswith(CONNECT) and not any(os.environ.get(name) for name in _PROXIES):
        _check_accepts(work, [master.removeprefix(CONNECT).partition("/")[0]], "server of Spark Connect", _CONNECT_PORT)


def _check_accepts(work: str, addresses: Iterable[str], noun: str, default_port: int) -> None:
    refused = []
    for address in addresses:
        try:
            parts = urlsplit(f"//{address}")
            with socket.create_connection((parts.hostname or "", parts.port or default_port), _TIMEOUT_S):
                return
        except (OSError, ValueError) as error:  # A ValueError means an invalid port or address.
            refused.append(f"{address}: {getattr(error, 'strerror', None) or error}")
    raise SparkJobError(work, f"no {noun} can be reached: {'; '.join(refused)}")
