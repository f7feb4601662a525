# SPDX-License-Identifier: Apache-2.0
"""``raftlog log init``: make a log directory for a node, with the options of ``kafka-storage format``."""

import argparse
import re
import uuid
from contextlib import closing
from typing import Final

from raftlog.errors import AlreadyFormattedError
from raftlog.file_system import join
from raftlog.records.files.file_names import FileKind
from raftlog.records.messages.releases import NEWEST_DIALECT
from raftlog.storage.local_file_system import LocalFileSystem
from raftlog.storage.state.log_directory import (
    DirectoryFormat,
    LogDirectory,
    format_log_directory,
    random_directory_id,
)
from raftlog.tools.log.overlay_file_system import OverlayFileSystem
from raftlog.tools.payloads.format_features import METADATA_VERSION, Features, choose_features
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN
from raftlog.tools.terminal.json_lines import path_member
from raftlog.tools.terminal.verb_output import Fact, add_format_option, write_facts
from raftlog.uuid_text import uuid_from_text, uuid_to_text
from raftlog.voters.voter_set import DynamicVoter, HostPort, ReplicaKey, VoterSet

_DEFAULT_LISTENER: Final = "CONTROLLER://localhost:9093"
_LISTENER: Final = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)://(?:\[(?P<bracketed>[^\]]+)\]|(?P<host>[^:/\[\]]+)):(?P<port>[0-9]{1,5})"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``raftlog log init``."""
    parser.add_argument("-t", "--cluster-id", required=True, metavar="ID", help="the cluster's id")
    parser.add_argument("--node-id", required=True, type=int, metavar="N", help="the node's id")
    voters = parser.add_mutually_exclusive_group()
    voters.add_argument("-s", "--standalone", action="store_true", help="the node is the only voter of a new quorum")
    voters.add_argument(
        "-I", "--initial-controllers", metavar="ID@HOST:PORT:DIRECTORY-ID,...", help="the voters of a new quorum"
    )
    voters.add_argument("-N", "--no-initial-controllers", action="store_true", help="the node joins an existing quorum")
    parser.add_argument(
        "--listener",
        default=_DEFAULT_LISTENER,
        metavar="NAME://HOST:PORT",
        help="where the node listens; the name is that of the other controllers' listeners too (default: %(default)s)",
    )
    parser.add_argument("--directory-id", metavar="ID", help="the directory's id (default: a random one)")
    parser.add_argument(
        "-r",
        "--release-version",
        default=NEWEST_DIALECT.name,
        metavar="RELEASE",
        help="the release whose feature levels to start with, such as 4.2 or 4.2-IV1 (default: %(default)s)",
    )
    parser.add_argument(
        "-f",
        "--feature",
        action="append",
        default=[],
        metavar="NAME=LEVEL",
        help="start with another level of a feature; kraft.version=0 requires that the configuration names the voters",
    )
    parser.add_argument(
        "--no-features",
        action="store_true",
        help="write no bootstrap.checkpoint: the log is for a state machine of your own, and not for Kafka",
    )
    parser.add_argument(
        "-g", "--ignore-formatted", action="store_true", help="leave an existing directory of this node as it is"
    )
    add_format_option(parser)


def run(given: argparse.Namespace, now_ms: int) -> int:
    """Make the directory, and return the exit code.

    Raises:
        AlreadyFormattedError: it exists, and ``--ignore-formatted`` is not given. Nothing was changed.
        ForeignDirectoryError: it exists, and belongs to another node or cluster.
        ValueError: an option's value is wrong, or conflicts with another option.
        LogDirectoryError, StorageError: as for ``format_log_directory``.
    """
    is_dynamic = given.standalone or given.initial_controllers is not None or given.no_initial_controllers
    features = choose_features(given.release_version, given.feature, is_dynamic=is_dynamic)
    if given.no_features:
        features = Features(features.kraft_version, {})
    directory_format = _directory_format(given, features)
    file_system = LocalFileSystem()
    if given.ignore_formatted and file_system.exists(join(given.directory, FileKind.META_PROPERTIES.value)):
        write_facts(given.format, [_fact_of_existing(given)])
        return EXIT_CLEAN
    try:
        format_log_directory(file_system, given.directory, directory_format, now_ms)
    except AlreadyFormattedError as error:
        advice = "Use --ignore-formatted to leave it as it is."
        raise AlreadyFormattedError(f"{given.directory} is already formatted: {error}. {advice}") from None
    write_facts(given.format, [_fact(given.directory, directory_format.directory_id, features, is_new=True)])
    return EXIT_CLEAN


def _directory_format(given: argparse.Namespace, features: Features) -> DirectoryFormat:
    listener, address = _parse_listener(given.listener)
    directory_id = None if given.directory_id is None else uuid_from_text(given.directory_id)
    voters = None
    if given.standalone:
        directory_id = directory_id or random_directory_id()
        voters = VoterSet.of([DynamicVoter(ReplicaKey(given.node_id, directory_id), address).to_voter_node(listener)])
    elif given.initial_controllers is not None:
        controllers = [DynamicVoter.parse(text) for text in given.initial_controllers.split(",")]
        voters = VoterSet.of(controller.to_voter_node(listener) for controller in controllers)
        own = voters.voters.get(given.node_id)
        directory_id = directory_id or (own.voter_key.directory_id if own else None)
    return DirectoryFormat(
        given.cluster_id,
        given.node_id,
        directory_id or random_directory_id(),
        features.kraft_version,
        voters,
        features.records(),
    )


def _parse_listener(text: str) -> tuple[str, HostPort]:
    match = _LISTENER.fullmatch(text)
    if match is None:
        raise ValueError(f"not a listener like {_DEFAULT_LISTENER}: {text[:80]!r}")
    return match["name"], HostPort(match["bracketed"] or match["host"], int(match["port"]))


def _fact_of_existing(given: argparse.Namespace) -> Fact:
    """Check which node a directory belongs to. Writes nothing: all that opening writes stays in memory."""
    file_system = OverlayFileSystem(LocalFileSystem())
    with (
        closing(file_system),
        LogDirectory.open(
            file_system, given.directory, cluster_id=given.cluster_id, node_id=given.node_id
        ) as directory,
    ):
        return _fact(directory.path, directory.meta.directory_id, None, is_new=False)


def _fact(directory: str, directory_id: uuid.UUID | None, features: Features | None, *, is_new: bool) -> Fact:
    id_text = None if directory_id is None else uuid_to_text(directory_id)
    text = f"{directory}: formatted, directory.id {id_text}" if is_new else f"{directory}: is already formatted"
    if features is not None:
        levels = f", {METADATA_VERSION} {features.levels[METADATA_VERSION]}" if features.levels else ""
        text += f"{levels}, kraft.version {features.kraft_version.value}"
    return Fact(
        text,
        "formatted" if is_new else "already_formatted",
        {
            **path_member("directory", directory),
            "directory_id": id_text,
            "kraft_version": None if features is None else features.kraft_version.value,
            "features": None if features is None else dict(features.levels),
        },
    )
