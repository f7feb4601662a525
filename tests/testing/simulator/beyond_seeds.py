# SPDX-License-Identifier: Apache-2.0
"""Mutants of what a simulated replica runs that no schedule can find, by the reason."""

from typing import Final

BEYOND: Final = {
    "peers that lie, are very many, or speak old versions": (
        *("R-old-fetch", "R25", "K-response-partition", "K-fetch-response-partition", "K33-key", "K-own-report"),
        *("R-static-places", "R-static-counts-once", "R-observers-starve", "R-static-waits", "R-one-read"),
        *("R-same-directory", "K-chunk-topics", "R-snapshot-reads", "R-pins-end-for-good", "R-pins-end"),
        *("K-chunk-position", "K-chunk-id", "K-chunk-end", "K-bad-records"),
    ),
    "an embedder that errs, or a function that the simulator does not use": (
        *("S-nested-settle", "S-effects-lost", "S-work-refused", "S-watched-late", "R24-view", "R24-twice"),
        *("R24-delivery", "R24-failed", "K11", "R-read-lease", "R-read-policy", "R20-unread", "R20-floor", "K17"),
        *("K17-unchecked", "K34-delay", "K34-moved", "K15", "K15-truncated", "K-old-entry", "K-join-answers"),
        *("R-membership-missed", "K27-size", "W1-above", "R9-directory", "S-lock", "S-fork", "S-fork-lock"),
        *("R12", "R13", "R13-vote", "W3-one-copy", "W3-refused", "W3-leads", "K27-order", "R-untimely"),
        *("R-epoch-without-records-in-files", "S-interrupted", "K34-order", "W1-early"),
        *("K-snapshot-uncommitted", "K-deliver-pin"),
    ),
    "checks of what the log and the core are never given: counted in 18 schedules or more, none has struck": (
        *("K21-crc", "K21-epoch", "K21-gap", "K21-order", "K1", "K1-fenced", "K24", "R3", "R3-truncation"),
        *("K27-uncommitted", "R22", "R24", "R7"),
        *("W1-leads", "W1-serves", "W1-leader", "W1-deletes", "S-fsyncgate", "W3-failed", "K27-late", "R-cut-epochs"),
        *("S-answers", "W-guard"),
    ),
    "the same, counted in 1,050 schedules": (
        *("K4", "R27", "K-late-versions", "R18-contradiction", "R5", "R-nothing-left", "R-damaged-follows"),
        *("R-damaged-leaves", "R-damaged-other", "R-snapshot-answers", "K5-snapshot-errors", "K-bootstrap-served"),
        *("R30", "K-told-late", "R-replaced-votes", "R-replaced-wins"),
    ),
    "set right at once, by the core or by the next report of the log, or only kept for longer": (
        *("K25", "R15-start", "R-read-writes", "K-snapshot-superseded"),
        *("K-histories-trimmed", "K-histories-at-the-end"),
    ),
    "set right at once: in all histories of four epochs with at most two records each, 748 of 1,303 logs that end in"
    " another epoch where a leader's log starts are first told to truncate below that, and then named the same"
    " snapshot": ("F6-epoch-at-the-start",),
    "a full disk that has written a part of what does not fit": ("S-full-cut",),
    "bytes of one's own that are wrong once written: only the read that verifies them lies": ("R28-own",),
    "two replicas with one id at a time, replicas that move, or that may never become voters": (
        *("R9-core", "R9-endpoint", "K10-added", "R-witness", "R17-flush"),
    ),
    "another directory of a voter's id that has confirmed a read: of 7,013 looks at reads that wait, in 39 schedules,"
    " 14 came out otherwise, each as an upgrade gave the same replica its directory": ("R9-read",),
    "what is only shown or kept, for operators": (
        *("K-idle-observers", "K-described-directories", "K-silent-voters", "K-committed-voters"),
        *("R-truncation-blame", "R17-silent", "R17-copy", "R17-copy-first", "R17-copy-again", "R17-copy-bound"),
        *("K31-silent", "K31-kept", "K31-kept-snapshots", "W1-kept", "W1-room"),
    ),
    "cost, settings and bounds that no schedule reaches": (
        *("K-room", "R-membership-cost", "R-no-pause", "R-no-pause-announcing", "R-fetch-waits"),
        *("R-cleaning-interval", "R-linger-by-wall", "R-linger-begin", "S-memory", "R29-growth"),
    ),
    "more damage than one file at a time, below the durable point: of 5,970 opens, none comes out otherwise": (
        *("R17-dense", "R14-torn", "W3-behind", "W3-stale", "R14-turns"),
    ),
    "a truncation of more than a segment, which is more than a leader leaves uncommitted: none in 505": ("S-hole",),
    "an open of a full disk that comes so far: none of 66": ("S-reserve-full",),
    "codecs, and records that no leader writes": (
        *("R-codec", "R-compressed", "R-compressed-leader", "K33-machine", "K41-records", "R21", "S-structure"),
        *("R-upgrade-unwritable", "R31", "R31-empty", "R31-writer", "R31-accumulator", "R31-core"),
    ),
    "a page cache that is not the disk": ("S-cache-kept", "S-cache-trusted", "S-cache-dirty"),
    "Kafka in the same directory": (
        *("W3-kafkas", "W1-kafkas", "W1-kafkas-torn", "W1-overwritten", "W1-unwitnessed", "W1-old-epoch"),
    ),
}
"""By the reason, names of ``kill_by_seeds.MUTANTS``."""
