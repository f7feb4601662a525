# SPDX-License-Identifier: Apache-2.0
"""Replays the records of features, quotas, ACLs, credentials, tokens and producer ids.

Source: FeaturesDelta, ClientQuotasDelta, ClientQuotaImage#dataToEntity, AclsDelta, ScramDelta, DelegationTokenDelta,
ProducerIdsDelta.
"""

from collections.abc import Mapping
from typing import Any, Final

from raftlog.errors import ReplayRefusedError
from raftlog.tools.image.entries import Acl, DelegationToken, ScramCredential
from raftlog.tools.image.tables import PRODUCER_IDS, Tables
from raftlog.uuid_text import uuid_to_text

Message = Mapping[str, Any]

SCRAM_MECHANISMS: Final = {0: "UNKNOWN", 1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""The names of mechanisms by Kafka's number."""
_KRAFT_VERSION: Final = "kraft.version"


def feature_level(tables: Tables, message: Message) -> None:
    """Set the level of a feature; level 0 is that of a feature that is not in use.

    A level of kraft.version has no effect: a control record sets it.
    """
    if message["name"] == _KRAFT_VERSION:
        return
    if message["featureLevel"]:
        tables.features[message["name"]] = message["featureLevel"]
    else:
        tables.features.pop(message["name"], None)


def client_quota(tables: Tables, message: Message) -> None:
    """Set or remove a quota. Of two names of one type, the last one counts."""
    owner = frozenset({each["entityType"]: each["entityName"] for each in message["entity"]}.items())
    of_owner = tables.quotas.get(owner)
    if message["remove"]:
        if of_owner is not None:
            of_owner.pop(message["key"], None)
            if not of_owner:
                del tables.quotas[owner]
    else:
        if of_owner is None:
            of_owner = tables.quotas[owner] = tables.inner("quotas", owner)
        of_owner[message["key"]] = message["value"]


def acl(tables: Tables, message: Message) -> None:
    """Add an ACL, or replace the one with its id."""
    tables.acls[message["id"]] = Acl(
        message["resourceType"],
        message["resourceName"],
        message["patternType"],
        message["principal"],
        message["host"],
        message["operation"],
        message["permissionType"],
    )


def remove_acl(tables: Tables, message: Message) -> None:
    """Remove an ACL.

    Raises:
        ReplayRefusedError: no ACL has that id.
    """
    if message["id"] not in tables.acls:
        raise ReplayRefusedError(f"no ACL has the id {uuid_to_text(message['id'])}")
    tables.acls.pop(message["id"])


def scram_credential(tables: Tables, message: Message) -> None:
    """Set the credential of a user for a mechanism; those that are not known are one."""
    tables.scram[message["name"], _mechanism(message)] = ScramCredential(
        message["salt"], message["storedKey"], message["serverKey"], message["iterations"]
    )


def remove_scram_credential(tables: Tables, message: Message) -> None:
    """Remove the credential of a user for a mechanism, if it is there."""
    tables.scram.pop((message["name"], _mechanism(message)), None)


def delegation_token(tables: Tables, message: Message) -> None:
    """Add a delegation token, or replace the one with its id.

    Raises:
        ReplayRefusedError: its owner, requester or a renewer is not such as ``User:alice``.
    """
    for principal in (message["owner"], message["requester"], *message["renewers"]):
        if ":" not in principal:
            raise ReplayRefusedError(f"{principal!r} is not a principal, which has a type and a name")
    tables.delegation_tokens[message["tokenId"]] = DelegationToken(
        message["owner"],
        message["requester"],
        tuple(message["renewers"]),
        message["issueTimestamp"],
        message["maxTimestamp"],
        message["expirationTimestamp"],
    )


def remove_delegation_token(tables: Tables, message: Message) -> None:
    """Remove a delegation token, if it is there."""
    tables.delegation_tokens.pop(message["tokenId"], None)


def producer_ids(tables: Tables, message: Message) -> None:
    """Note the first producer id that no broker has been given."""
    tables.producer_ids[PRODUCER_IDS] = message["nextProducerId"]


def no_effect(_tables: Tables, _message: Message) -> None:
    """Change nothing: the image has nothing of this record."""


def _mechanism(message: Message) -> int:
    number: int = message["mechanism"]
    return number if number in SCRAM_MECHANISMS else 0
