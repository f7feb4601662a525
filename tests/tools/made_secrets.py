# SPDX-License-Identifier: Apache-2.0
"""Metadata records with secrets, made for a test."""

from typing import Any

from raftlog.records.messages.metadata import metadata_record, write_metadata_record

SECRET = "the-very-secret"
SCRAM_FIELDS = ("salt", "storedKey", "serverKey")
MADE_RECORDS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("UserScramCredentialRecord", {"name": "u", "mechanism": 1, "iterations": 4096}, SCRAM_FIELDS),
    ("DelegationTokenRecord", {"owner": "User:o", "requester": "User:r", "renewers": []}, ("tokenId",)),
    ("RemoveDelegationTokenRecord", {}, ("tokenId",)),
    *(
        ("ConfigRecord", {"resourceType": 4, "resourceName": "1", "name": name}, ("value",))
        for name in (
            "ssl.keystore.password",
            "listener.name.internal.ssl.key.password",
            "ssl.keystore.key",
            "sasl.jaas.config",
            "delegation.token.secret.key",
            "password.encoder.secret",
            "a.plugin.token",
            "a.plugin.passphrase",
            "a.plugin.credentials",
            "a.plugin.PRIVATE.KEY",
            "ssl.keystore.certificate.chain",
            "ssl.truststore.certificates",
        )
    ),
]
"""Records with a secret: schema, plain fields, secret fields."""


def made_value(name: str, plain: dict[str, Any], secret_fields: tuple[str, ...]) -> bytes:
    """Write a metadata record whose secret fields hold the secret."""
    secret: bytes | str = SECRET.encode() if name.startswith("UserScram") else SECRET
    times = dict.fromkeys(("issueTimestamp", "maxTimestamp", "expirationTimestamp"), 1)
    fields = plain | dict.fromkeys(secret_fields, secret) | (times if name == "DelegationTokenRecord" else {})
    return write_metadata_record(metadata_record(name, fields))
