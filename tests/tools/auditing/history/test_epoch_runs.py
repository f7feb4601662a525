# SPDX-License-Identifier: Apache-2.0
"""Which epochs of a log are trusted."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.files.file_names import FileKind
from raftlog.tools.auditing.evidence import EpochSeen, FileEvidence, LogExtent, PartitionEvidence, Place, SurveyTask
from raftlog.tools.auditing.history.epoch_runs import LogEpochs

PLACE = Place("node", "__cluster_metadata", 0)


def log(*segments: list[tuple[int, int, int]]) -> PartitionEvidence:
    """Return a log of segments with epochs, each with where it starts and ends."""
    return PartitionEvidence(PLACE, tuple(segment(epochs) for epochs in segments))


def segment(epochs: list[tuple[int, int, int]]) -> FileEvidence:
    """Return a segment."""
    start, end = epochs[0][1], epochs[-1][2]
    task = SurveyTask(PLACE, f"node/{start:020}.log", FileKind.LOG, base_offset=start, is_raft=True)
    return FileEvidence(
        task,
        extent=LogExtent(start, end, epochs[0][0], epochs[-1][0], -1, 1, end - start),
        epochs=tuple(EpochSeen(epoch, first, first * 10, last) for epoch, first, last in epochs),
    )


def spans(epochs: LogEpochs) -> list[tuple[int, int, int]]:
    """Return epochs with where they start and end."""
    return [(span.epoch, span.start_offset, span.end_offset) for span in epochs.spans]


def runs_of(epochs: list[int]) -> list[tuple[int, int, int]]:
    """Return the runs of a log that has one epoch an offset."""
    runs: list[tuple[int, int, int]] = []
    for offset, epoch in enumerate(epochs):
        if runs and runs[-1][0] == epoch:
            runs[-1] = (epoch, runs[-1][1], offset + 1)
        else:
            runs.append((epoch, offset, offset + 1))
    return runs


long_runs = st.lists(st.integers(3, 6), min_size=1, max_size=5)


@given(long_runs, st.integers(1, 20))
def test_a_sound_log_is_trusted(sizes: list[int], border: int) -> None:
    """Epochs that do not go back are all trusted, also where segments divide them."""
    per_offset = [epoch for epoch, size in enumerate(sizes) for _ in range(size)]
    whole = runs_of(per_offset)
    border = min(border, len(per_offset) - 1)
    first = runs_of(per_offset[:border])
    second = [(epoch, start + border, end + border) for epoch, start, end in runs_of(per_offset[border:])]

    for evidence in (log(whole), log(first, second)):
        epochs = LogEpochs(evidence)
        assert spans(epochs) == whole
        assert list(epochs.doubted) == list(epochs.broken_between_segments) == []
        for offset, epoch in enumerate(per_offset):
            span = epochs.span_at(offset)
            assert span is not None
            assert span.epoch == epoch
        assert epochs.span_at(len(per_offset)) is None


@given(st.data(), long_runs, st.sampled_from([0, 100]))
def test_one_wrong_batch_is_doubted(data: st.DataObject, sizes: list[int], wrong: int) -> None:
    """A batch whose epoch breaks the order is doubted, and no other: the others agree."""
    per_offset = [epoch + 10 for epoch, size in enumerate(sizes) for _ in range(size)]
    index = data.draw(st.integers(1, len(per_offset) - 2))
    spoiled = [*per_offset[:index], wrong, *per_offset[index + 1 :]]

    epochs = LogEpochs(log(runs_of(spoiled)))

    assert [(run.seen.epoch, run.seen.start_offset) for run in epochs.doubted] == [(wrong, index)]
    assert {span.epoch for span in epochs.spans} == set(per_offset)


@given(st.lists(st.integers(-3, 9), min_size=1, max_size=80), st.lists(st.integers(-3, 9), max_size=20))
def test_trusted_epochs_are_in_order(first: list[int], second: list[int]) -> None:
    """Whatever batches claim, the epochs that are trusted increase, and each run is trusted or doubted."""
    segments = [runs_of(first)]
    if second:
        segments.append([(epoch, start + len(first), end + len(first)) for epoch, start, end in runs_of(second)])
    epochs = LogEpochs(log(*segments))
    trusted = [span.epoch for span in epochs.spans]
    assert trusted == sorted(set(trusted))
    assert {run.seen.epoch for run in epochs.doubted} | set(trusted) == {each for each in first + second if each >= 0}


def test_an_order_that_breaks_between_segments() -> None:
    """The run beside the border that is doubted is to be reported; what breaks within a segment is reported there."""
    last_is_wrong = LogEpochs(log([(1, 0, 9), (7, 9, 10)], [(2, 10, 30)]))
    first_is_wrong = LogEpochs(log([(5, 0, 10)], [(3, 10, 11), (5, 11, 30)]))
    within = LogEpochs(log([(5, 0, 10), (3, 10, 11), (5, 11, 30)]))
    assert [run.seen.epoch for run in last_is_wrong.broken_between_segments] == [7]
    assert [run.seen.epoch for run in first_is_wrong.broken_between_segments] == [3]
    assert list(within.broken_between_segments) == []
