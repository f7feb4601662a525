# SPDX-License-Identifier: Apache-2.0
"""``raftlog state DIR… --against BROKER_DIR…``: compares a state of the metadata with the directories of brokers."""

import argparse
from collections.abc import Sequence
from uuid import UUID

import attrs

from raftlog.errors import DecodeError, StorageError
from raftlog.tools.auditing.history.quorum_view import QuorumView
from raftlog.tools.beliefs.comparison import BrokerComparison, compare
from raftlog.tools.beliefs.difference_kinds import FOREIGN_CLUSTER, NO_IDENTITY, RECREATED_TOPIC, UNKNOWN_TOPIC
from raftlog.tools.beliefs.given import GivenDirectory
from raftlog.tools.beliefs.given_files import GivenFiles
from raftlog.tools.catalogue.findings import Tally
from raftlog.tools.state.against_lines import comparison_json, comparison_lines
from raftlog.tools.state.state_lines import head_lines, state_json
from raftlog.tools.state.state_search import State, StateSource, find_state
from raftlog.tools.state.topic_origins import FittingStates, TopicOrigin, fitting_states, topic_origins
from raftlog.tools.terminal.exit_codes import EXIT_CLEAN, EXIT_DAMAGE, EXIT_ERROR, EXIT_SUSPICIOUS
from raftlog.tools.terminal.standard_error import say
from raftlog.tools.terminal.text_width import fit_lines
from raftlog.tools.terminal.verb_output import write_lines, write_text


@attrs.frozen
class Compared:
    """A state that was compared.

    Attributes:
        state: the state.
        comparison: with what result.
        has_damage, has_errors: whether files of brokers were damaged, or could not be read.
    """

    state: State
    comparison: BrokerComparison
    has_damage: bool
    has_errors: bool

    def exit_code(self, tally: Tally, of_state: int) -> int:
        """Return the exit code: the worst of what is wrong with the state, with brokers' files, and between both.

        Args:
            tally: of the findings in the metadata's files.
            of_state: the exit code that these and the state's records give.
        """
        if self.has_damage or of_state == EXIT_DAMAGE:
            return EXIT_DAMAGE
        if self.has_errors or tally.errors:
            return EXIT_ERROR
        return of_state or (EXIT_SUSPICIOUS if self.comparison.is_harmful else EXIT_CLEAN)


def compare_with_brokers(
    given: argparse.Namespace, among: Sequence[StateSource], view: QuorumView, program: str, *, is_damaged: bool
) -> Compared:
    """Print how the state that was asked for and the directories of brokers differ, and return both.

    Args:
        given: the command line.
        among: the replicas of the metadata log.
        view: of its quorum.
        program: says what is wrong with a file.
        is_damaged: whether files of the metadata log are damaged.

    Raises:
        RaftLogError: there is no such state, or a path has no log directory.
    """
    problems: list[DecodeError | StorageError] = []
    state = find_state(among, given.at)
    directories = GivenFiles(problems.append).read(given.against)
    for problem in problems:
        say(str(problem), program)
    comparison = compare(state.image.tables, view.cluster_id, directories, max(each.end for each in among))
    unknown = [each for each in comparison.differences if each.kind in (UNKNOWN_TOPIC, RECREATED_TOPIC)]
    origins = topic_origins(among) if unknown else None
    foreign = {each.path for each in comparison.differences if each.kind in (FOREIGN_CLUSTER, NO_IDENTITY)}
    compared = [each for each in directories if each.path not in foreign]
    fitting = None if origins is None else fitting_states(origins, _topic_ids(compared))
    if fitting is not None and fitting.has(state.image.end_offset):
        fitting = attrs.evolve(fitting, first=None, last=None, known=0)  # It has no more than this one.
    _write(given, state, view, comparison, origins or {}, fitting, is_damaged=is_damaged)
    damaged = [isinstance(each, DecodeError) for each in problems]
    return Compared(state, comparison, any(damaged), not all(damaged))


def _write(
    given: argparse.Namespace,
    state: State,
    view: QuorumView,
    comparison: BrokerComparison,
    origins: dict[UUID, TopicOrigin],
    fitting: FittingStates | None,
    *,
    is_damaged: bool,
) -> None:
    if given.format == "json":
        write_text(state_json(state, given.at.text, view.high_watermark, cluster_id=view.cluster_id))
        write_text(comparison_json(comparison, origins, fitting))
    else:
        write_lines(fit_lines(head_lines(state, view.high_watermark, cluster_id=view.cluster_id)))
        write_lines(comparison_lines(comparison, origins, fitting, is_damaged=is_damaged))


def _topic_ids(directories: Sequence[GivenDirectory]) -> set[UUID]:
    """Return the topics that brokers have replicas of; those that were set aside or deleted do not count."""
    return {
        each.topic_id
        for directory in directories
        for each in directory.partitions
        if each.topic_id is not None and each.is_current
    }
