# SPDX-License-Identifier: Apache-2.0
"""Logs in which a field has a number that Kafka's enums know, or one beside them: what becomes of it is in the table.

A number that is not known is refused, or stands for UNKNOWN, or is kept as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from tests.tools.loading.poisoned_logs import (
    ABORT,
    ALL,
    BEGIN,
    Poisoned,
    Record,
    V,
    broker,
    changed,
    feature,
    made,
    partition,
    topic,
)

Batches = Sequence[Sequence[Record]]
ANY = range(-128, 128)
"""All numbers of an int8: none is refused."""


class EnumField(NamedTuple):
    """A field whose numbers have names in Kafka.

    Attributes:
        field: its name, with that of the record.
        logs: makes the batches of a log whose last record has a number.
        accepted: the numbers that controllers load.
        rule: what stops them at another one.
        offset: of the last record.
        releases: those that refuse other numbers.
    """

    field: str
    logs: Callable[[int], Batches]
    accepted: range
    rule: str = ""
    offset: int = -1
    releases: tuple[str, ...] = ALL

    @property
    def tried(self) -> list[int]:
        """The ends of what is accepted, one number outside of each, 0, and the ends of an int8."""
        ends = {self.accepted[0], self.accepted[-1]}
        beside = {number - 1 for number in ends} | {number + 1 for number in ends}
        return sorted(number for number in {*ends, *beside, 0, -128, 127} if number in ANY)


def acl_of(number: int, **fields: int) -> Record:
    """An ACL with some numbers."""
    usual = {"resourceType": 2, "patternType": 3, "operation": 3, "permissionType": 3}
    who = {"resourceName": "t", "principal": "User:a", "host": "*"}
    return made("AccessControlEntryRecord", id=UUID(int=number), **(usual | fields), **who)


def removed_acl(number: int) -> Record:
    """The removal of an ACL."""
    return made("RemoveAccessControlEntryRecord", id=UUID(int=number))


def _acl(field: str) -> Callable[[int], Batches]:
    return lambda number: [[V], [acl_of(1, **{field: number})], [removed_acl(1)]]


def _scram(number: int) -> Batches:
    kinds = ("UserScramCredentialRecord", "RemoveUserScramCredentialRecord")
    return [[V], *([made(kind, name="a", mechanism=number)] for kind in kinds)]


def _config(number: int) -> Batches:
    return [[V], [made("ConfigRecord", resourceType=number, resourceName="1", name="k", value="v")]]


def _change(field: str) -> Callable[[int], Batches]:
    return lambda number: [
        [V],
        [broker(1)],
        [made("BrokerRegistrationChangeRecord", brokerId=1, brokerEpoch=5, **{field: number})],
    ]


def _reserved(number: int) -> Batches:
    ids = [UUID(int=number % 256), UUID(int=1)]
    return [[V], [topic("a", 1), broker(1, ids[0])], [partition(directories=ids)], [changed(directories=ids[::-1])]]


FIELDS: Final = (
    EnumField("AccessControlEntryRecord resourceType", _acl("resourceType"), ANY),
    EnumField("AccessControlEntryRecord patternType", _acl("patternType"), ANY),
    EnumField("AccessControlEntryRecord operation", _acl("operation"), ANY),
    EnumField("AccessControlEntryRecord permissionType", _acl("permissionType"), ANY),
    EnumField("UserScramCredentialRecord mechanism", _scram, ANY),
    EnumField("ConfigRecord resourceType", _config, ANY),
    EnumField(
        "PartitionRecord leaderRecoveryState",
        lambda number: [[V], [topic("a", 1)], [partition(leaderRecoveryState=number)]],
        range(2),
        "contradiction",
        3,
    ),
    EnumField(
        "PartitionChangeRecord leaderRecoveryState",
        lambda number: [[V], [topic("a", 1), partition()], [changed(leaderRecoveryState=number)]],
        range(-1, 2),
        "contradiction",
        4,
    ),
    EnumField("BrokerRegistrationChangeRecord fenced", _change("fenced"), range(-1, 2), "contradiction", 3),
    EnumField(
        "BrokerRegistrationChangeRecord inControlledShutdown",
        _change("inControlledShutdown"),
        range(2),
        "contradiction",
        3,
    ),
    EnumField(
        "RegisterBrokerRecord securityProtocol",
        lambda number: [[V], [broker(1, protocol=number)]],
        range(4),
        "security-protocol",
        2,
    ),
    EnumField(
        "ZkMigrationStateRecord zkMigrationState",
        lambda number: [[V], [made("ZkMigrationStateRecord", zkMigrationState=number)]],
        range(4),  # A migration in state 4 loads, and stops 3.9 at the end.
        "zk-migration-state",
        2,
        ("3.9",),
    ),
    EnumField(
        "FeatureLevelRecord level of kraft.version",
        lambda number: [[V], [feature("kraft.version", number)]],
        range(2),
        "feature-level",
        2,
    ),
    EnumField("PartitionRecord reserved directories", _reserved, ANY),
)


def _quota(entity: Sequence[tuple[str, str | None]], key: str = "producer_byte_rate", value: float = 1.0) -> Record:
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
    return made("ClientQuotaRecord", entity=parts, key=key, value=value, remove=False)


def _two_acls(first: dict[str, int], second: dict[str, int]) -> Batches:
    return [[V], [acl_of(1, **first), acl_of(2, **second)], [removed_acl(1)], [removed_acl(2)]]


def _same_acls() -> Iterator[tuple[str, Poisoned]]:
    """Two ACLs whose numbers differ: if neither is known, they say the same, and only one can be removed."""
    for field, highest in (("resourceType", 7), ("patternType", 4), ("operation", 14), ("permissionType", 3)):
        above = highest + 2 if field == "operation" else highest + 1
        for one, other in ((90, above), (0, -1), (90, 0)):
            log = _two_acls({field: one}, {field: other})
            yield f"ACLs with {field} {one} and {other}", Poisoned(log, 5, "acl-content")
        for one, other in ((90, highest), (0, 1)):
            yield f"ACLs with {field} {one} and {other}", Poisoned(_two_acls({field: one}, {field: other}))
    log = _two_acls({"operation": 90}, {"operation": 15})
    yield "ACLs with operation 90 and 15", Poisoned(log, 5, "acl-content", ("3.9", "4.0"))


def _of_fields() -> Iterator[tuple[str, Poisoned]]:
    for each in FIELDS:
        for number in each.tried:
            name = f"{each.field} {number}"
            if number in each.accepted:
                yield name, Poisoned(each.logs(number))
            elif (each.rule, number) == ("zk-migration-state", 4):
                yield name, Poisoned(each.logs(number), 3, each.rule, each.releases)
            else:
                yield name, Poisoned(each.logs(number), each.offset, each.rule, each.releases)


ENUM_LOGS: Final = (
    dict(_of_fields())
    | dict(_same_acls())
    | {
        "a mechanism that is not known, removed as another one": Poisoned(
            [
                [V],
                [made("UserScramCredentialRecord", name="a", mechanism=3)],
                [made("RemoveUserScramCredentialRecord", name="a", mechanism=4)],
            ]
        ),
        "a mechanism that is not known, removed as SCRAM-SHA-256": Poisoned(
            [
                [V],
                [made("UserScramCredentialRecord", name="a", mechanism=3)],
                [made("RemoveUserScramCredentialRecord", name="a", mechanism=1)],
            ],
            3,
            "scram-credential",
        ),
        "a quota of an unknown type": Poisoned([[V], [_quota([("shape", "round")]), _quota([("", "")])]]),
        "a quota of nobody": Poisoned([[V], [_quota([])]]),
        "a quota of an address that is none, beside a user": Poisoned([[V], [_quota([("ip", "none"), ("user", "a")])]]),
        "an unknown quota": Poisoned([[V], [_quota([("user", "a")], "speed", -1.0), _quota([("user", "a")], "", 0.0)]]),
        "the reserved directory of two brokers": Poisoned(
            [[V], [broker(1, UUID(int=1)), broker(2, UUID(int=1))]], 3, "directory-owner"
        ),
        "a broker's listener without a name": Poisoned([[V], [broker(1, listener="")]], 2, "listener-name", ALL[2:]),
        "a controller's listener without a name": Poisoned(
            [
                [V],
                [
                    made(
                        "RegisterControllerRecord",
                        controllerId=1,
                        endPoints=[{"name": "", "host": "", "port": 0, "securityProtocol": 0}],
                    )
                ],
            ]
        ),
        "the removal of an ACL in a transaction that is aborted": Poisoned(
            [[V], [acl_of(1)], [BEGIN], [removed_acl(1)], [ABORT], [removed_acl(1)]]
        ),
        "a broker with a negative number": Poisoned([[V], [broker(-1, epoch=-1)]]),
    }
)
"""By the field and its number, or what else is wrong, or is not."""
