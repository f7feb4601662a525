# SPDX-License-Identifier: Apache-2.0
"""Which decoder is for the records of a topic, by its name."""

from raftlog.records.messages.releases import Release
from raftlog.tools.payloads.mirror_topics import mirror_topic
from raftlog.tools.payloads.payloads import DECODER_OF_TOPIC, PayloadDecoder, PlainDecoder

MIRROR = "mirror"
"""The name of the decoder of MirrorMaker's topics."""


def topic_decoder(topic: str | None, dialect: Release, level: str | None, *, redact: bool) -> PayloadDecoder:
    """Return the decoder for the records of a topic; of an unknown one, keys and values are shown as they are.

    Args:
        topic: the name, or None.
        dialect: the release whose format to follow.
        level: the release whose messages to know; None for all.
        redact: whether to hide secrets.
    """
    name = DECODER_OF_TOPIC.get(topic or "")
    if name is not None:
        from raftlog.tools.payloads.message_payloads import message_decoder  # Slow to import, because of schemas.

        return message_decoder(name, dialect, level, redact=redact)
    if mirror_topic(topic) is not None:
        return mirror_decoder(topic, redact=redact, is_named=False)
    return PlainDecoder(redact)


def mirror_decoder(topic: str | None, *, redact: bool, is_named: bool) -> PayloadDecoder:
    """Return the decoder of MirrorMaker's records.

    Args:
        topic: the name of the topic; one that is none of MirrorMaker's leaves it to the bytes of each record.
        redact: whether to hide secrets.
        is_named: whether the user has named the decoder.
    """
    from raftlog.tools.payloads.mirror_payloads import MirrorDecoder  # Slow to import, because of schemas.

    return MirrorDecoder(mirror_topic(topic), redact, is_named)
