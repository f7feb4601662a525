# SPDX-License-Identifier: Apache-2.0
"""The page of a report: it says what was found, needs nothing else, and stays small."""

import datetime
import itertools
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raftlog.records.files.file_names import FileKind
from raftlog.records.rules import Severity
from raftlog.tools.auditing.evidence import FileEvidence, LogExtent, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.judgement.judgement import Judged
from raftlog.tools.catalogue.audit_rules import CATALOGUE, UNREAD_RULES
from raftlog.tools.catalogue.findings import Finding
from raftlog.tools.input.coverage import Coverage
from raftlog.tools.report.page import Report
from tests.tools.auditing.made_quorum import MadeLog, log_directory, voter, voters
from tests.tools.auditing.made_segments import data_batch
from tests.tools.made_logs import flip
from tests.tools.report.made_reports import (
    METADATA,
    PARTITION,
    QUORUM,
    change,
    copy_quorum,
    damage_quorum,
    flood,
    forked_quorum,
    hostile_names,
    report_of,
    report_of_evidence,
)
from tests.tools.report.page_outline import Node, outline

WAYS_OUT = {"src", "srcset", "action", "formaction", "data", "poster", "background", "style", "xlink:href"}


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """The page of a damaged quorum, read."""
    return outline(report_of(damage_quorum(tmp_path_factory.mktemp("quorum"))))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """The page of a clean quorum, read."""
    return outline(report_of(copy_quorum(tmp_path_factory.mktemp("quorum"))))


def check_page(page: Node) -> None:
    """Check what holds of every page: it reaches for nothing, and everybody can read it."""
    every = list(page.every())
    names = {node.name for node in every}
    assert names.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "image", "foreignobject", "base"})
    assert not any(WAYS_OUT & node.attributes.keys() for node in every)
    assert not any(name.startswith("on") for node in every for name in node.attributes)
    ids = [node.attributes["id"] for node in every if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    links = [node.attributes["href"] or "" for node in every if "href" in node.attributes]
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert all(link.startswith("#") for link in links)
    levels = [int(node.name[1]) for node in every if re.fullmatch("h[1-6]", node.name)]
    assert levels[0] == 1
    assert all(later <= before + 1 and later > 1 for before, later in itertools.pairwise(levels))
    for figure in page.all("svg"):
        assert "role" not in figure.attributes or figure.children[0].words
    for table in page.all("table"):
        assert table.children[0].name == "caption"
        assert all("scope" in cell.attributes for cell in table.all("th"))
    policy = next(node for node in page.all("meta") if "http-equiv" in node.attributes).attributes["content"] or ""
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def section(page: Node, name: str) -> str:
    """The words of a section."""
    titles = {node.children[0].words: node.words for node in page.all("section")}
    return next(
        words for title, words in titles.items() if title == name or title.startswith((f"{name} of ", f"{name}, "))
    )


def titles(page: Node) -> str:
    """All that is shown when something is pointed at."""
    return "\n".join(node.words for node in page.all("title"))


def test_a_clean_quorum_needs_nothing(clean: Node) -> None:
    """The page of clean directories says so at the top, and what holds of every page holds."""
    check_page(clean)
    assert clean.all("h1")[0].words.startswith("Clean: nothing above harmless in ")
    assert section(clean, "What to do next") == "What to do nextNothing needs to be done."
    assert "22 of 22 segments and snapshots" in section(clean, "What is safe")
    assert re.search(rf"4 partitions without such a finding in .*/n4/{METADATA}", section(clean, "What is safe"))
    quorum = section(clean, "Log __cluster_metadata-0")
    for words in (
        "3 of epoch 4",
        "here: 3 of 3 voters",
        "Kafka could elect, if all voters here were started: 3, 4.",
        "5_Wp38SKlmI15kjtncBbcA",
    ):
        assert words in quorum
    assert "offset 114, epoch 3: added 4" in titles(clean)
    assert "epoch 3, led by 1: offsets 67 to 147" in titles(clean)


def test_what_to_do_with_a_quorum_comes_first_and_once(clean: Node) -> None:
    """The section of a quorum begins with the steps, numbered, with their commands; what explains them has none."""
    (steps,) = clean.all("ol")
    (reasons,) = (node for node in clean.all("ul") if "Verdict: " in node.words)
    assert "Seed to go on from" in steps.words
    assert "kafka-metadata-quorum.sh" in steps.words
    assert "Seed to go on from" not in reasons.words


@pytest.mark.parametrize("is_of_a_topic", [True, False])
def test_damage_beside_what_a_quorum_needs_is_named(is_of_a_topic: bool, tmp_path: Path) -> None:
    """A node to start whose disk has damage that the quorum does not need is named before the start."""
    quorum = copy_quorum(tmp_path)
    path = quorum / "n3" / METADATA / f"{0:020}.log"
    if is_of_a_topic:
        (quorum / "n3/orders-0").mkdir()
        path = quorum / "n3/orders-0" / f"{0:020}.log"
        path.write_bytes(data_batch(0, 1, 11, 1))
    flip(path, path.stat().st_size // 2)
    log = section(outline(report_of(quorum)), f"Log {METADATA}")

    assert re.search(r"Look first at the damaged files of node 3 \(.*/n3\), as the start of this page says", log)
    assert log.index("Look first at the damaged files") < log.index("Start: ")


def test_a_damaged_quorum_is_explained(damaged: Node) -> None:
    """The page says what is damaged, what to keep, what to fetch again and from where, and what is safe."""
    check_page(damaged)
    assert damaged.all("h1")[0].words.startswith("Damaged: ")
    steps = section(damaged, "What to do next")
    assert "copy all directories" in steps
    assert re.search(r"Seed to go on from: node 3 \([^)]*/n3\), up to offset 230 of epoch 4\.", steps)
    assert "Verdict: nothing committed is missing: 3 of 3 voters are here" in steps
    assert "Look first at the 1 suspicious finding there." in steps
    assert re.search(
        r"Fetch again from node 1 \(.*/n1\), node 3 \(.*/n3\) what is damaged on node 2 \(.*/n2\): ", steps
    )
    assert "offsets 105 to 106 are lost" in steps
    safe = section(damaged, "What is safe")
    assert safe.endswith("19 of 22 segments and snapshots have no finding above harmless inside them.")
    assert "missing or unreadable" in section(damaged, f"Log {METADATA}")
    assert re.search(r"position 8759, offset 105: batch-crc, damaged: the stored CRC", titles(damaged))


def test_every_finding_is_in_the_table_with_its_command(damaged: Node) -> None:
    """Each finding has a row: severity, rule with an anchor, file and command, place and reason; the worst first."""
    table = next(node for node in damaged.all("table") if node.attributes.get("class") == "findings cards")
    rows = [[cell.words for cell in row.children] for row in table.all("tbody")[0].children]
    ranks = [list(Severity).index(Severity(row[0][1:])) for row in rows]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] == 2
    assert {row[1] for row in rows} >= {"batch-crc", "tail-torn", "election-missing"}
    first = next(row for row in rows if row[3] == "4967")
    assert re.search(r"raftlog explain \S+/n2/__cluster_metadata-0/0{20}\.log --position 4967$", first[2])
    assert first[4] == "58"
    anchors = {node.attributes["id"] for node in damaged.all("th") if "id" in node.attributes}
    assert {f"rule-{row[1]}" for row in rows} == anchors
    assert CATALOGUE["batch-crc"].claim in section(damaged, "Numbers")


def test_all_bytes_are_accounted_for(damaged: Node) -> None:
    """The rows of the coverage table add up to its last one, and those of the files to their sizes."""
    tables = {node.children[0].words.split(" of ")[0]: node for node in damaged.all("table")}
    counts = [int(row.children[1].words.replace(",", "")) for row in tables["Where every byte"].all("tr")[1:]]
    assert sum(counts[:-1]) == counts[-1] > 0
    for row in tables["Where the bytes"].all("tr")[1:]:
        size, *parts = (int(cell.words) for cell in row.children[1:5])
        assert size == sum(parts)


def test_the_largest_logs_are_drawn(damaged: Node) -> None:
    """Each log has a row with its bytes, batches and records, the largest first; snapshots do not count."""
    table = next(node for node in damaged.all("table") if node.children[0].words.startswith("The largest logs"))
    rows = [[cell.words.replace(",", "") for cell in row.children] for row in table.all("tr")[1:]]
    sizes = [int(row[1]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) > 1
    for _, size, _, batches, records, per_batch, records_per_batch, _ in rows:
        assert int(per_batch) == int(size) // int(batches)
        assert abs(float(records_per_batch) - int(records) / int(batches)) <= 0.05


def test_the_title_says_whether_anything_committed_is_missing(clean: Node, damaged: Node) -> None:
    """Sound files of one of three voters are not all there is; damage of one voter of three loses nothing."""
    assert clean.all("h1")[0].words.startswith("Clean: nothing above harmless in ")
    assert damaged.all("h1")[0].words.endswith(". No committed record of a raft log is missing")
    alone = outline(report_of(QUORUM / "n3"))
    assert alone.all("h1")[0].words.startswith("Not known: the ")
    assert alone.all("h1")[0].words.endswith(" here are sound, and cannot tell whether committed records are missing")
    assert [node.attributes["class"] for node in alone.all("div")][:1] == ["verdict unreadable"]
    found = []
    for node_id, end in ((1, 9), (2, 9), (3, 20)):
        log = MadeLog(node=f"n{node_id}").bootstrap(voters(1, 2, 3)).data(end)
        if node_id == 3:
            log.snapshot(log.end_offset, epoch=1, named=voters(1, 2, 3))
        found += [log_directory(log.node, node_id, voter(node_id).voter_key.directory_id), log.evidence()]
    cut = outline(report_of_evidence(found))
    assert cut.all("h1")[0].words.endswith(". A copy here still has all that is proven")
    assert "so that no majority has it. All of them are on node 3 (n3)." in section(cut, "What to do next")


def test_damaged_indexes_are_no_damaged_records() -> None:
    """Where all damage of a replica is in indexes, nothing is to be fetched again."""
    found = []
    for node_id in (1, 2, 3):
        log = MadeLog(node=f"n{node_id}").bootstrap(voters(1, 2, 3)).data(9)
        log.state(1, leader_id=1)
        path = log.path.replace(".log", ".index")
        faults = [Finding(path, "index-order", "the offset 4 after 7", 8)] if node_id == 2 else []
        directory_id = voter(node_id).voter_key.directory_id
        found += [log_directory(log.node, node_id, directory_id), log.evidence(*faults)]
    steps = section(outline(report_of_evidence(found)), "What to do next")
    assert "only indexes are damaged, no record (n2/__cluster_metadata-0/" in steps
    assert "Fetch again" not in steps


def test_what_is_found_between_directories_is_not_safe() -> None:
    """A partition that is sound by itself is not called so if another directory contradicts one of its files."""
    found = []
    for node_id in (1, 2, 3):
        log = MadeLog(node=f"n{node_id}").bootstrap(voters(1, 2, 3)).data(9)
        log.lead(1, (1, 2, 3))
        log.state(1 if node_id == 2 else 2, leader_id=1)
        found += [log_directory(log.node, node_id, voter(node_id).voter_key.directory_id), log.evidence()]
    page = outline(report_of_evidence(found))
    assert "election-stale" in section(page, "Findings")
    assert "n2/__cluster_metadata-0" not in section(page, "What is safe")


def test_a_single_partition_has_no_quorum() -> None:
    """The page of one data partition has its epochs, and nothing about voters."""
    page = outline(report_of(PARTITION))
    check_page(page)
    log = section(page, "Log txn-0")
    assert "Epochs" in log
    assert "Voters" not in log
    assert "Could lead" not in log


def damaged_topics(count: int, *, has_twin: bool = False) -> str:
    """Return the advice if as many partitions have a batch whose CRC is wrong, each on one replica."""
    found = []
    for number in range(count):
        for node in ("n1", "n2") if has_twin else ("n1",):
            place = Place(node, f"topic{number}", 0)
            path = f"{node}/topic{number}-0/{0:020}.log"
            fault = Finding(path, "batch-crc", "the stored CRC is not that of the bytes", 0, 100, offset=0)
            task = SurveyTask(place, path, FileKind.LOG, base_offset=0)
            extent = LogExtent(0, 10, 0, 0, -1, 10, 10)
            evidence = FileEvidence(task, (fault,) if node == "n1" else (), Coverage(1000, 900, 100), extent)
            found.append(PartitionEvidence(place, (evidence,)))
    return section(outline(report_of_evidence(found)), "What to do next")


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("rule_count", [1, 11, 12, 13])
def test_suspicious_findings_are_named_by_rule(count: int, rule_count: int) -> None:
    """The first one of each rule is named, with a cause and how many more there are; many rules are cut short."""
    suspicious = (rule for rule in CATALOGUE.values() if rule.severity is Severity.SUSPICIOUS)
    rules = [rule for rule in suspicious if rule.id not in UNREAD_RULES][:rule_count]
    place, path = Place("n1", "topic", 0), f"n1/topic-0/{0:020}.log"
    findings = tuple(Finding(path, rule.id, f"reason {rule.id}", at) for rule in rules for at in range(count))
    task = SurveyTask(place, path, FileKind.LOG, base_offset=0)
    evidence = FileEvidence(task, findings, Coverage(1000, 1000, 0), LogExtent(0, 10, 0, 0, -1, 10, 10))
    steps = section(outline(report_of_evidence([PartitionEvidence(place, (evidence,))])), "What to do next")
    more = f", and {count - 1} more of this rule" if count > 1 else ""
    told = [f"Look at {path}: reason {rule.id}{more}. One cause of that: {rule.example}." in steps for rule in rules]
    assert sum(told) == min(rule_count, 12)
    assert ("1 more rule: see the findings." in steps) == (rule_count == 13)


@pytest.mark.parametrize("count", [2, 3])
def test_few_damaged_replicas_are_described_one_by_one(count: int) -> None:
    """With three damaged replicas of topics' partitions or fewer, each has a step of its own."""
    steps = damaged_topics(count)
    assert steps.count("No other replica was given to replace what is damaged on n1") == count
    assert "break the rule" not in steps


@pytest.mark.parametrize("count", [4, 40])
@pytest.mark.parametrize("has_twin", [False, True])
def test_many_damaged_replicas_are_one_step(count: int, *, has_twin: bool) -> None:
    """With more, all that break one rule are one step, which says whether undamaged replicas are here."""
    steps = damaged_topics(count, has_twin=has_twin)
    assert f"{count} replicas break the rule batch-crc, that {CATALOGUE['batch-crc'].claim}: topic0-0 on n1, " in steps
    assert ("and 28 more." in steps) == (count == 40)
    assert ("undamaged: fetch again from them." in steps) == has_twin
    assert ("No undamaged replica of them was given" in steps) != has_twin
    assert "what is damaged on" not in steps


def test_logs_of_two_clusters_are_told_apart() -> None:
    """Headings, links and steps name the cluster of a log, and the nodes whose replicas are here."""
    found = []
    for node_id, cluster_id in ((1, "one"), (2, "one"), (3, "two")):
        log = MadeLog(node=f"n{node_id}").bootstrap(voters(*((1, 2) if node_id < 3 else (3,)))).data(5)
        found.append(log.evidence(Finding(log.path, "batch-crc", "the stored CRC is not that of the bytes", 100, 100)))
        directory_id = voter(node_id).voter_key.directory_id
        found.append(log_directory(f"n{node_id}", node_id, directory_id, cluster_id=cluster_id))
    page = outline(report_of_evidence(found))
    labels = [f"{METADATA} of cluster one, nodes 1, 2", f"{METADATA} of cluster two, node 3"]
    headings = {node.words for node in page.all("h2")}
    links = {node.words for node in page.all("a")}
    assert {f"Log {each}" for each in labels} <= headings
    assert set(labels) <= links
    steps = section(page, "What to do next")
    assert all(f"{each}: " in steps for each in labels)


def test_a_fork_is_visible() -> None:
    """If replicas contradict each other, both histories are drawn as forks, and no replica is called complete."""
    page = outline(report_of_evidence(forked_quorum()))
    check_page(page)
    assert re.search(
        r"Fork: node 1 \(n1\) has other records of epoch \d+ from offset \d+ on", section(page, "What to do next")
    )
    assert any("bar fork" in (node.attributes.get("class") or "") for node in page.all("rect"))


def test_a_minority_is_advised_to_get_the_other_directories() -> None:
    """With one of three voters here, the page names the absent ones before anything else is decided."""
    log = MadeLog(node="n1").bootstrap(voters(1, 2, 3)).data(5)
    page = outline(report_of_evidence([log.evidence(), log_directory("n1", 1, voter(1).voter_key.directory_id)]))
    assert "Only 1 of 3 voters are here, but 2 are needed: get the directories of 2, 3" in page.words
    assert "Absent" in section(page, f"Log {METADATA}")


def steps_with_damage_at(offset: int) -> str:
    """Return the advice if two of three voters are damaged at an offset, and the third is sound but shorter."""
    found = []
    for node_id in (1, 2, 3):
        log = MadeLog(node=f"n{node_id}").bootstrap(voters(1, 2, 3)).data(10 if node_id == 3 else 20)
        fault = Finding(log.path, "batch-crc", "the stored CRC is not that of the bytes", 100, 100, offset=offset)
        found.append(log.evidence(*([] if node_id == 3 else [fault])))
        found.append(log_directory(f"n{node_id}", node_id, voter(node_id).voter_key.directory_id))
    return section(outline(report_of_evidence(found)), "What to do next")


def test_a_damaged_leader_is_not_kept_without_a_word() -> None:
    """If all that have what is proven are damaged, the best of them is the seed, and none is started as it is."""
    steps = steps_with_damage_at(20)
    assert "committed records are missing, or may be, from offset 20 on" in steps
    assert "Seed to go on from: node 1 (n1), up to offset 20 of epoch 1." in steps
    assert "Start none of them as they are" in steps
    assert "No undamaged replica here has all that is damaged on node 1 (n1): offset 20" in steps


def test_a_replica_that_only_absent_voters_could_elect_is_named() -> None:
    """With too few voters here, the page names those that absent voters could elect, and what a restart truncates."""
    log = MadeLog(node="n1").bootstrap(voters(1, 2, 3)).data(5)
    fault = Finding(log.path, "batch-crc", "the stored CRC is not that of the bytes", 100, 100, offset=6)
    page = outline(report_of_evidence([log.evidence(fault), log_directory("n1", 1, voter(1).voter_key.directory_id)]))
    steps = section(page, "What to do next")
    assert "the files cannot tell whether committed records are missing: 1 of 3 voters is here" in steps
    assert "Start nothing yet: find the directories of the other voters first." in steps
    assert "If the others cannot be found at all: what only they had is gone, committed or not." in steps
    assert "Copy before a restart truncates it: what is left of node 1 (n1) from offset 6 on." in steps
    quorum = section(page, f"Log {METADATA}")
    assert "with absent voters" in quorum
    assert "from offset 6" in quorum


def test_advice_warns_of_records_that_a_sound_leader_would_lose() -> None:
    """If a sound replica is shorter than damaged ones, it is the seed, and the page names the records that it lacks."""
    steps = steps_with_damage_at(4)
    assert "Seed to go on from: node 3 (n3), up to offset 13 of epoch 1." in steps
    assert "committed records are missing, or may be, from offset 13 on" in steps
    assert "Fetch again from node 3 (n3) what is damaged on node 1 (n1): offset 4" in steps


def test_hostile_names_are_text(tmp_path: Path) -> None:
    """Names of files with markup, quotes, bidirectional controls and no Unicode are shown, and do nothing."""
    text = report_of(hostile_names(tmp_path))
    page = outline(text)
    check_page(page)
    assert text.encode().decode() == text
    assert "\u202e" not in text
    assert "a<script>document.title='owned'<script>-0" in page.words
    assert r"c\u202egpj.exe-0" in page.words
    assert r"d\udcff\udcfe-0" in page.words
    assert r"c\342\200\256gpj.exe-0/" in page.words


def test_the_same_input_gives_the_same_page(tmp_path: Path) -> None:
    """Two audits of the same files give the same bytes; a run that has a name has it on the page."""
    assert report_of(damage_quorum(tmp_path)) == report_of(tmp_path)
    assert "run-7" in Report(["x"]).html("run-7")
    plain = outline(Report(["x"]).html()).words
    assert "Run" not in plain
    assert "Finished" not in plain
    finished = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert "Finished2026-01-02 03:04:05 UTC" in outline(Report(["x"]).html(finished=finished)).words


@pytest.mark.slow
def test_a_flood_stays_small() -> None:
    """100,000 findings with long reasons give less than 5 MiB, the counts are whole, and what is left out is said."""
    page = report_of_evidence(flood(100_000, "x" * 5000))
    assert len(page.encode()) < 5 * 1024 * 1024
    words = outline(page).words
    assert "100,000 findings of damage" in words
    assert re.search(r"The worst [0-9,]+ of 100,000 findings are shown", words)
    assert "400 more segments and snapshots are not drawn" in words


def test_a_small_flood_is_capped_too() -> None:
    """Of 2,400 findings 2,000 are shown, and the page says so."""
    page = outline(report_of_evidence(flood(2400)))
    check_page(page)
    assert "The worst 2,000 of 2,400 findings are shown, 400 are not" in section(page, "Findings")
    assert section(page, "Findings").count("raftlog explain ") == 2000


@pytest.mark.slow
@settings(max_examples=25)
@given(data=st.data())
def test_any_damage_gives_a_page(data: st.DataObject) -> None:
    """Whatever bytes of a quorum's files are, there is a page of them."""
    with tempfile.TemporaryDirectory() as folder:
        copy_quorum(Path(folder))
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.stat().st_size)
        for path in data.draw(st.lists(st.sampled_from(files), min_size=1, max_size=6)):
            if data.draw(st.booleans()):
                at = data.draw(st.lists(st.integers(0, path.stat().st_size - 1), max_size=20))
                change(path, {position: data.draw(st.integers(1, 255)) for position in at})
            else:
                os.truncate(path, data.draw(st.integers(1, path.stat().st_size)))
        check_page(outline(report_of(folder)))


@settings(max_examples=20)
@given(
    path=st.text(st.characters(codec=None, exclude_characters="\0"), min_size=1, max_size=30),
    reason=st.text(st.characters(codec=None), max_size=30),
    rule=st.sampled_from(sorted(CATALOGUE)),
    position=st.none() | st.integers(0, 1 << 63),
)
def test_any_finding_is_shown(path: str, reason: str, rule: str, position: int | None) -> None:
    """A finding about a file that was not read is on the page, whatever its name."""
    report = Report([path])
    report.add(Judged((), (Finding(path, rule, reason, position),)))
    page = outline(report.html())
    check_page(page)
    assert f"#rule-{rule}" in {node.attributes.get("href") for node in page.all("a")}
