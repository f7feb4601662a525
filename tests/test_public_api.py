# SPDX-License-Identifier: Apache-2.0
"""The names that `import raftlog` offers: a list that changes only on purpose, and costs nothing until it is used."""

import ast
import inspect
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import raftlog
from tests.checkout import ROOT

PUBLIC_NAMES = """
    AbortedRange ActionKind AlreadyFormattedError BatchAccumulator BatchColumns BatchTooLargeError
    BufferExhaustedError BufferSource ByteSource Chunk CompletedBatch CompressionType ControlRecord
    ControlRecordType CorruptBatchError CorruptFileError Corruption DecodeError DirectoryFormat
    DirectoryLockedError DiskResult DiskWork DivergedLogError DrainedBatches DuplicateVoterError DynamicVoter
    EmptyVoterSetError EndTxnMarker Endpoints EpochEntry FencedEpochError FileLock FileLog FileSystem
    ForeignDirectoryError ForkedProcessError Header HistoryEntry HostPort IllegalTransitionError
    IncompleteSnapshotError InvalidControlBatchError InvalidRecordError InvalidSnapshotIdError
    InvariantViolation Isolation KRaftControlRecordStateMachine KRaftVersion KRaftVersionRecord KeyedRecord
    LeaderChangeMessage LeaderEpochs LegacyBatch LegacyRecord LocalFileSystem LogAppendInfo LogConfig
    LogDirectory LogDirectoryError LogError LogFetchInfo LogHistory LogOffsetMetadata LogState MemoryLog MemoryPool
    MetaProperties MissingExtraError MissingFileError NoOverlappingMajorityError NonContiguousAppendError
    NotFormattedError NotLeaderError OffsetAndEpoch OffsetOutOfRangeError OpenFile OutOfSpaceError Quarantine
    QuarantinedLogError QueueFullError QuorumError QuorumStateData QuorumStateStore QuorumVotersError RaftLogError
    RawSnapshotReader RawSnapshotWriter Record RecordBatch RecordBatchBuilder RecordColumns RecordView
    RecordsSnapshotReader RecordsSnapshotWriter RecoveryAction RecoveryReport ReplicaKey ReplicatedLog Retention
    Segment SegmentPosition SnapshotError SnapshotFooterRecord SnapshotFrozenError SnapshotHeaderRecord
    SnapshotNotFoundError SnapshotPositionError StorageError SupportedVersionRange TimestampType
    TooManyOpenFilesError TooManyVoterChangesError TornTail Transactions TransferTargetError TreeMapLogHistory
    TruncatedBatchError TruncationBelowHighWatermarkError UnknownEpochError UnsafeReadError
    UnsupportedCompressionError UnsupportedMagicError UnsupportedVersionError ValidOffsetAndEpoch ValidationKind
    Voter VoterNode VoterNotFoundError VoterSet VoterSetError VoterSetHistory VoterSetProblem VoterSetViolation
    VotersRecord VotersRecordEndpoint VotersRecordVoter WorkUnderWayError ZeroPadding begin_snapshot
    check_voter_set_change format_log_directory lead_epoch map_segments open_quorum_state open_segment
    parse_controller_quorum_voters prepare_to_lead read_columns read_control_record read_records split
    static_voter_set update_state voter_set_change_problems
"""


INTERNAL_NAMES = """
    BatchRun DiskStep IndexLimits LocalFile LocalFileLock MemoryLease RollLimits VerifiedRun
"""
"""What signatures of public names mention, and no user makes or names: it passes between our own modules."""


def modules_after(code: str) -> set[str]:
    """Run some code in a fresh interpreter, and return the modules that it imported there."""
    program = (
        f"import json, sys; before = set(sys.modules)\n{code}\nprint(json.dumps([*(sys.modules.keys() - before)]))"
    )
    output = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True)
    return set(json.loads(output.stdout))


def homes_for_type_checkers() -> dict[str, str]:
    """Return the module that each public name is imported from where type checkers look."""
    tree = ast.parse((ROOT / "raftlog" / "__init__.py").read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def test_the_public_names_are_these() -> None:
    """A public name comes or goes only together with the list above and a line in CHANGELOG.md."""
    assert raftlog.__all__ == PUBLIC_NAMES.split()


def test_the_list_is_sorted_and_has_no_name_twice() -> None:
    """`__all__` is in the order of `sorted`, each name once."""
    assert sorted(set(raftlog.__all__)) == raftlog.__all__


@pytest.mark.parametrize("name", raftlog.__all__)
def test_each_name_is_what_type_checkers_take_it_for(name: str) -> None:
    """At run time a public name is the object that the type checkers' import names, and it is defined there."""
    home = homes_for_type_checkers()[name]
    assert getattr(raftlog, name) is getattr(import_module(home), name)
    assert getattr(raftlog, name).__module__ == home


@pytest.mark.parametrize("name", raftlog.__all__)
def test_each_name_is_documented(name: str) -> None:
    """A public name has a docstring of its own."""
    public = getattr(raftlog, name)
    own = vars(public).get("__doc__") if inspect.isclass(public) else public.__doc__
    assert inspect.cleandoc(own or "")


def _annotations(name: str) -> Iterator[str]:
    """Yield the types that the signatures and attributes of a public name mention, as text."""
    public = getattr(raftlog, name)
    members = [public]
    if inspect.isclass(public):
        members = [member for key, member in vars(public).items() if not key.startswith("_")]
        yield from (str(kind) for key, kind in inspect.get_annotations(public).items() if not key.startswith("_"))
    for member in members:
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        for kind in getattr(function, "__annotations__", {}).values():
            yield kind if isinstance(kind, str) else inspect.formatannotation(kind)


def test_what_a_signature_mentions_is_public_too() -> None:
    """Every type in the signature of a public function can be imported from `raftlog`."""
    folders = ("raftlog/voters", "raftlog/log", "raftlog/storage", "records", "snapshot")
    paths = itertools.chain((ROOT / "raftlog").glob("*.py"), *((ROOT / folder).rglob("*.py") for folder in folders))
    trees = [ast.parse(path.read_text("utf-8")) for path in paths]
    ours = {node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    mentioned = {
        word for name in raftlog.__all__ for text in _annotations(name) for word in re.findall(r"\w+", text)
    } & ours
    assert mentioned - {*raftlog.__all__} == {*INTERNAL_NAMES.split()}


def test_type_checkers_see_no_other_names() -> None:
    """The imports for type checkers are the public list."""
    assert sorted(homes_for_type_checkers()) == raftlog.__all__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """Asking for an unknown name fails as for any module, and says which name."""
    with pytest.raises(AttributeError, match="'raftlog' has no attribute 'Nonsense'"):
        raftlog.Nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_dir_lists_the_public_names() -> None:
    """`dir(raftlog)` shows the public names before anything was imported for them."""
    assert set(raftlog.__all__) <= set(dir(raftlog))


def test_importing_raftlog_imports_nothing_else() -> None:
    """`import raftlog` loads one module: no layer, no third-party package, nothing of the standard library."""
    assert modules_after("import raftlog") == {"raftlog"}


def test_a_value_of_the_floor_does_not_load_the_layers_above() -> None:
    """Asking for a voter set loads no wire format, storage or tool."""
    loaded = modules_after("from raftlog import VoterSet")
    assert not {name for name in loaded if name.startswith(("raftlog.records", "raftlog.storage", "raftlog.tools"))}


def test_a_star_import_gives_the_public_names() -> None:
    """`from raftlog import *` works, and gives nothing that is not public."""
    names: dict[str, object] = {}
    exec("from raftlog import *", names)
    assert sorted(names.keys() - {"__builtins__"}) == raftlog.__all__


def _importable(name: str) -> bool:
    """Whether a name is one of raftlog's own, a module, or what a module has."""
    if "." not in name:
        return name in raftlog.__all__
    package, _, member = name.rpartition(".")
    module = import_module(package)
    return hasattr(module, member) or find_spec(name) is not None


def test_the_concordance_names_what_is_there() -> None:
    """Each name of raftlog's in docs/concordance.md can be imported as written."""
    rows = [line.split("|") for line in (ROOT / "docs" / "concordance.md").read_text("utf-8").splitlines()]
    names = [name for row in rows if len(row) == 4 for name in re.findall(r"`([\w.]+)`", row[2])]
    assert len(names) > 50
    assert [name for name in names if not _importable(name)] == []


def test_the_rooms_of_the_architecture_are_there() -> None:
    """Each row of the tables of rooms names a folder or a module, and the module to start reading at is in it."""
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    parts = re.split(r"^#+ ", text[text.index("## Rooms") : text.index("## How a byte")], flags=re.MULTILINE)
    seen = 0
    for part in parts:
        for room, start in re.findall(r"^\| `([\w/]+)`[^|]* \|.*\| (?:`(\w+)`)? \|$", part, re.MULTILINE):
            places = [place for place in _places(room.strip("/")) if not start or _has(place, start)]
            assert places, f"{room}: {start}"
            seen += 1
    assert seen > 25


def _places(room: str) -> list[Path]:
    """Return the folders, or the modules, that a room may be."""
    tops = ("", "raftlog", "records", "tools", "tools/auditing", "tools/spark")
    found = [ROOT / top / room for top in tops]
    return [place for place in found if place.is_dir() or place.with_suffix(".py").is_file()]


def _has(place: Path, module: str) -> bool:
    return (place / f"{module}.py").is_file()
