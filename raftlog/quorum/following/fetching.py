# SPDX-License-Identifier: Apache-2.0
"""Fetches records: from the leader, or from bootstrap servers while the leader is unknown or does not answer.

Only one Fetch is in flight at a time, and none while the log is being written. So no response is appended twice. A
Fetch also tells the leader what this replica has. If it is a voter, or may become one, all of that is durable then.

Source: KafkaRaftClient#maybeSendFetchToBestNode, #buildFetchRequest, #handleFetchResponse.
"""

from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.following.contact import note_success
from raftlog.quorum.following.fetching_snapshot import fetch_snapshot_request, turn_to_snapshot
from raftlog.quorum.following.truncating import truncate
from raftlog.quorum.replica import LocalReplica, SentRequest
from raftlog.quorum.responses import ResponseOutcome, endpoints_of, handle_common
from raftlog.quorum.roles.roles import Follower
from raftlog.quorum.seam.effects import AppendAsFollower, Destination, FlushLog
from raftlog.records.messages.raft.fetch_messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
    FetchResponse,
    FetchResponsePartitionData,
)
from raftlog.uuid_text import ZERO_UUID


def fetch_from_bootstrap(replica: LocalReplica) -> None:
    """Ask a bootstrap server, to find the leader, unless any request is in flight.

    Source: KafkaRaftClient#maybeSendFetchToAnyBootstrap.
    """
    identity = replica.identity
    servers = identity.bootstrap_servers
    if not servers or not replica.is_log_at_rest or replica.connections.has_request_in_flight(replica.now_ms):
        return
    first = replica.draws.bootstrap_index(len(servers))
    chosen = replica.connections.ready_bootstrap_id(identity.bootstrap_ids, first, replica.now_ms)
    if chosen is not None:
        address = servers[identity.bootstrap_ids.index(chosen)]
        replica.send(Destination(chosen, address.host, address.port), fetch_request(replica))


def flush_as_voter(replica: LocalReplica) -> None:
    """Flush what this replica has appended as an observer, because it is a voter now.

    The leader counts what the next Fetch says, and voters compare what the next vote request says.
    """
    is_possible = replica.is_log_at_rest and not replica.is_fetching_paused and not replica.log.is_quarantined
    if is_possible and replica.is_voter:
        replica.work_on_log(FlushLog)


def fetch_from_leader(replica: LocalReplica, role: Follower) -> None:
    """Fetch records, or a snapshot, from the leader; records from a bootstrap server if the leader does not answer.

    Without bootstrap servers the leader is asked again: a Fetch, or its answer, may have been lost.

    Source: KafkaRaftClient#maybeSendFetchToBestNode.
    """
    connections, leader, now_ms = replica.connections, role.leader, replica.now_ms
    address = leader.endpoints.address(replica.identity.listener)
    is_silent = connections.has_timed_out(leader.id, now_ms) or connections.is_backing_off(leader.id, now_ms)
    if address is None or (is_silent and replica.identity.bootstrap_servers):
        fetch_from_bootstrap(replica)
    elif (
        replica.is_log_at_rest
        and not connections.has_request_in_flight(now_ms)
        and connections.is_ready(leader.id, now_ms)
    ):
        snapshot = role.fetching_snapshot
        message = fetch_request(replica) if snapshot is None else fetch_snapshot_request(replica, snapshot)
        replica.send(Destination(leader.id, address.host, address.port), message)


def fetch_request(replica: LocalReplica) -> FetchRequest:
    """Return the request for the records after the log end.

    Source: KafkaRaftClient#buildFetchRequest.
    """
    identity, log_end = replica.identity, replica.log.end
    partition = FetchRequestFetchPartition(
        partition=0,
        current_leader_epoch=replica.epoch,
        fetch_offset=log_end.offset,
        last_fetched_epoch=log_end.epoch,
        partition_max_bytes=0,
        replica_directory_id=identity.key.directory_id or ZERO_UUID,
        high_watermark=-1 if replica.high_watermark is None else replica.high_watermark,
    )
    return FetchRequest(
        cluster_id=identity.cluster_id,
        replica_state=FetchRequestReplicaState(replica_id=replica.fetching_id),
        max_wait_ms=replica.config.fetch_max_wait_ms,
        min_bytes=0,
        max_bytes=replica.config.fetch_max_bytes,
        topics=(FetchRequestFetchTopic(topic_id=identity.topic_id, partitions=(partition,)),),
    )


def handle_fetch_response(replica: LocalReplica, sent: SentRequest, response: FetchResponse) -> ResponseOutcome:
    """Append, truncate, or turn to a snapshot, as the leader says.

    Source: KafkaRaftClient#handleFetchResponse.
    """
    answer = _only_answer(replica, response)
    if response.error_code or answer is None:
        return ResponseOutcome.FAILED
    leader = answer.current_leader
    endpoints = endpoints_of(replica, response.node_endpoints, leader.leader_id)
    outcome = handle_common(replica, answer.error_code, leader.leader_epoch, leader.leader_id, endpoints)
    role = replica.role
    if _calls_for_a_pause(replica, answer):
        return ResponseOutcome.FAILED
    if outcome is not ResponseOutcome.CONTINUE:
        return outcome
    if not isinstance(role, Follower) or sent.epoch != role.epoch or not replica.is_log_at_rest:
        return ResponseOutcome.DONE
    diverging, named = answer.diverging_epoch, answer.snapshot_id
    if diverging.epoch >= 0:
        common = OffsetAndEpoch(diverging.end_offset, diverging.epoch)
        return ResponseOutcome.FAILED if common.offset < 0 else truncate(replica, role, common)
    if max(named.epoch, named.end_offset) >= 0:
        return turn_to_snapshot(replica, role, OffsetAndEpoch(named.end_offset, named.epoch))
    _append(replica, role, answer)
    return ResponseOutcome.DONE


def _calls_for_a_pause(replica: LocalReplica, answer: FetchResponsePartitionData) -> bool:
    """Whether a refused Fetch is followed by a pause, as otherwise the peer would be asked as fast as it answers.

    If it has named a later epoch or a new leader, there is none: requests of the old role are forgotten by now.
    Differs: Kafka asks again at once (DECISIONS.md 54).
    """
    return answer.error_code != 0 and replica.config.pause_after_refusal


def _only_answer(replica: LocalReplica, response: FetchResponse) -> FetchResponsePartitionData | None:
    topics = response.responses
    if len(topics) != 1 or len(topics[0].partitions) != 1 or topics[0].topic_id != replica.identity.topic_id:
        return None
    answer = topics[0].partitions[0]
    return answer if answer.partition_index == 0 else None


def _append(replica: LocalReplica, role: Follower, answer: FetchResponsePartitionData) -> None:
    """Append the records, and learn how far the leader's log is committed once they are in the log.

    Source: KafkaRaftClient#appendAsFollower. Voters flush, and so do replicas that may become voters, because a leader
    counts them as soon as they are. A quarantine ends by a flush.

    Records are a sign of the leader, but not those after bad ones: a leader with a damaged file would be followed for
    ever. They are one once the log has taken some (``note_taken_work``).
    """
    records = answer.records
    if records:
        appending = replica.work_on_log(lambda number: AppendAsFollower(number, records, role.epoch))
        replica.refusals.appending = appending
        if replica.is_voter or replica.identity.can_become_voter or replica.log.is_quarantined:
            replica.work_on_log(FlushLog)
    if not records or not replica.refusals.is_of_bad_records:
        note_success(replica, role)
    replica.fetched_high_watermark = answer.high_watermark
    learn_high_watermark(replica)


def learn_high_watermark(replica: LocalReplica) -> None:
    """Take over the high watermark of the last Fetch, once its records are in the log.

    A lower one is ignored: a new leader may not know yet how far the log is committed.
    """
    if replica.is_log_at_rest and isinstance(replica.role, Follower) and replica.fetched_high_watermark >= 0:
        replica.raise_high_watermark(replica.fetched_high_watermark)
