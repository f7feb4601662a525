# SPDX-License-Identifier: Apache-2.0
"""The verbs of the command ``raftlog``. A verb's module is imported when the verb is used."""

import argparse
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from raftlog.tools.terminal.argument_parser import Parser, word_list
from raftlog.tools.terminal.exit_codes import EXIT_CODES_HELP

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class VerbModule(Protocol):
        """The interface of a verb's module."""

        def run(self, arguments: Sequence[str]) -> int:
            """Run the verb with what follows it on the command line, and return the exit code."""
            ...

        def make_parser(self) -> Parser:
            """Return the parser of the verb's arguments."""
            ...


class Verb(NamedTuple):
    """A verb of the command: its module under ``raftlog.tools``, and its description."""

    module: str
    description: str


VERBS: Final = {
    "dump-log": Verb("dump.dump_log", "print the contents of a log's files, in Kafka's own format or as JSON lines"),
    "follow": Verb("dump.follow_log", "print a log as it grows, and what becomes of what was printed"),
    "diff": Verb("diff.diff", "show where replicas of a partition diverge, and how"),
    "explain": Verb("dump.explain", "explain a rule, or show the bytes of one batch"),
    "verify": Verb("audit_verbs.verify", "report what is wrong with files, partitions, log directories or replicas"),
    "audit": Verb("audit_verbs.audit", "verify any number of log directories, and leave tables of the results"),
    "voters": Verb("audit_verbs.voters", "show the voters from each offset on, and each change"),
    "epochs": Verb("audit_verbs.epochs", "show the leaders from each offset on, and for how long"),
    "quorum": Verb(
        "audit_verbs.quorum",
        "show who votes, who could be elected and what may be lost, of a quorum that is not running",
    ),
    "state": Verb(
        "state.state",
        "show the cluster as the metadata records say, at any offset or time that log and snapshots reach",
    ),
    "snapshot": Verb(
        "image_snapshot.snapshot", "write a snapshot of the cluster at an offset, without what Kafka dies of"
    ),
    "salvage": Verb(
        "salvage.salvage",
        "plan and make the longest log that damaged replicas of the metadata or a topic can vouch for",
    ),
    "query": Verb("querying.query", "answer a question in SQL over batches, records, voters, epochs and findings"),
    "stats": Verb("stats.stats", "count what logs are made of, by partition, type, key, producer, codec and hour"),
    "free": Verb("free.free", "list what could be removed on a full disk, in safe order; it removes nothing"),
    "verify-mirror": Verb("mirrors.verify_mirror", "compare topics with their mirrors in another cluster"),
    "topics": Verb("mirrors.topics", "list topics, and whose they are by MirrorMaker's names"),
    "rewrite-voters": Verb(
        "repair.rewrite_voters", "plan and make a directory with other voters, for a quorum whose majority is gone"
    ),
    "simulate": Verb("simulate.simulate", "run quorums with faults in virtual time, and look for violated invariants"),
    "log": Verb("log.verb", "make, write and show a log directory, for tests and demos"),
    "spark-env": Verb("spark.spark_env", "print what to export, so that your own Spark sessions run raftlog"),
    "help": Verb("verb_help.help", "show the help of a verb"),
    "completion": Verb("verb_help.completion", "print a script that completes all of this in bash, zsh or fish"),
}
"""Each verb and its description; ``dump-log`` is run by ``raftlog.tools.dump.dump_log.run``, and so on."""


def load_verb(name: str) -> "VerbModule":
    """Import the module of a verb."""
    from importlib import import_module

    return cast("VerbModule", import_module(f"raftlog.tools.{VERBS[name].module}"))


def make_command_parser() -> Parser:
    """Return the parser of the command without a verb: its help lists the verbs."""
    parser = Parser(
        prog="raftlog",
        description="Read, check and explain Kafka's replicated logs.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=word_list({name: verb.description for name, verb in VERBS.items()})
        + f"\n\n'raftlog VERB --help' says more. {EXIT_CODES_HELP}",
    )
    parser.add_argument("verb", nargs="?", choices=VERBS, metavar="VERB", help="one of those below")
    return parser
