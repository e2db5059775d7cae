"""Streams come out of files as they went in, a batch at a time, whole or not at all."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import FOREVER, Insert, Relation, Stable
from anabranch.connectors.files import reading
from anabranch.connectors.files.formats import Format, UnknownFormatError, format_of
from anabranch.connectors.files.reading import Source, UnreadableError
from anabranch.connectors.files.writing import Target, objects
from anabranch.model.batch import Batch
from anabranch.model.consistency import difference
from anabranch.model.json_lines import UnwritableError
from anabranch.model.schema import SchemaError
from anabranch.model.validity import Drop, InvalidElementError, Quarantine, Rule
from anabranch.testing.faults import interleave
from anabranch.testing.presentations import replicas
from anabranch.testing.strategies import streams
from anabranch.testing.workload import Workload

ENDINGS = ["jsonl", "txt", "parquet", "arrow"]


def elements_of(path: Path) -> list:
    return [element for batch in Source.named(str(path)).batches() for element in objects(batch)]


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=25)
@given(stream=streams())
def test_a_file_gives_back_the_elements_that_were_written(tmp_path_factory, ending, stream):
    path = tmp_path_factory.mktemp("files") / f"stream.{ending}"
    assert Target.named(str(path)).write([Batch.of(stream)]) == len(stream)
    assert elements_of(path) == stream


@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=10)
@given(random=st.randoms(use_true_random=False))
def test_a_recording_of_several_inputs_keeps_their_names_and_order(tmp_path_factory, ending, random):
    path = tmp_path_factory.mktemp("files") / f"both.{ending}"
    _, copies = replicas(random, 2)
    both = interleave({"east": copies[0], "far west": copies[1]}, random)
    Target.named(str(path)).write([Batch.of(both)] if both else [])
    assert elements_of(path) == both


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_types_survive_columnar_files_exactly(tmp_path, ending):
    moment = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
    payload = {"d": Decimal("1.50"), "t": moment, "b": b"\x00\xff", "l": [1, None], "s": {"x": 1}, "n": 2**60}
    path = tmp_path / f"typed.{ending}"
    batch = Batch.of([Insert(payload, 0, FOREVER), Stable(0)])
    Target.named(str(path)).write([batch])
    (read,) = Source.named(str(path)).batches()
    assert read.payload.schema == batch.payload.schema
    assert next(iter(read.elements())).payload == payload


@pytest.mark.parametrize("ending", ["jsonl", "txt"])
def test_what_lines_cannot_hold_is_refused_and_leaves_no_file(tmp_path, ending):
    path = tmp_path / f"typed.{ending}"
    with pytest.raises(ValueError, match="JSON"):
        Target.named(str(path)).write([Batch.of([Insert({"b": b"\x00"}, 0, 1)])])
    assert list(tmp_path.iterdir()) == []


def test_values_json_has_no_type_for_are_written_as_text_where_asked(tmp_path):
    path = tmp_path / "typed.jsonl"
    rows = [Insert({"b": b"\x00", "d": Decimal("1.5"), "f": float("nan")}, 0, 1)]
    with pytest.raises(UnwritableError):
        Target.named(str(path)).write([Batch.of(rows)])
    Target.named(str(path), as_text=True).write([Batch.of(rows)])
    assert elements_of(path)[0].payload == {"b": "00", "d": "1.5", "f": "nan"}


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_batches_with_different_columns_become_one_file_with_all_of_them(tmp_path, ending):
    path = tmp_path / f"drift.{ending}"
    rows = [Insert({"a": 1}, 0, 1), Insert({"a": 1.5}, 0, 1), Insert({"a": 2, "b": "x"}, 0, 1), Stable(1)]
    Target.named(str(path)).write([Batch.of([row]) for row in rows])
    assert elements_of(path) == rows


def test_lines_are_read_in_batches_and_batching_does_not_show(tmp_path, monkeypatch):
    path = tmp_path / "many.jsonl"
    workload = Workload(events=500, active=50, payload_bytes=5, revisions=0.3)
    Target.named(str(path)).write(workload.replica(0))
    whole = elements_of(path)
    monkeypatch.setattr(reading, "ROWS", 7)
    parts = list(Source.named(str(path)).batches())
    assert max(map(len, parts)) == 7
    assert [e for part in parts for e in part.elements()] == whole


@pytest.mark.parametrize(("policy", "kept"), [(Drop(), 2), (Quarantine(), 2)])
def test_malformed_lines_go_to_the_policy_and_the_rest_is_read(tmp_path, policy, kept):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(
        b'{"kind":"stable","time":1}\n\xff\xfe\n\n{"kind":"stable"}\n{"kind":"stable","time":2}\n'
    )
    batches = list(Source.named(str(path)).batches(policy=policy))
    assert sum(map(len, batches)) == kept
    if isinstance(policy, Quarantine):
        assert [(v.rule, v.position) for v in policy.violations] == [(Rule.MALFORMED, 2), (Rule.MALFORMED, 4)]
    with pytest.raises(InvalidElementError, match="malformed"):
        list(Source.named(str(path)).batches())


def test_a_file_that_another_tool_wrote_is_read_with_its_timestamps(tmp_path):
    path = tmp_path / "foreign.parquet"
    moments = pa.array([1_000, 2_000], pa.timestamp("ms", "UTC"))
    rows = {
        "kind": ["insert", "insert"],
        "start": moments,
        "end": pa.array([3_000, None], moments.type),
        "v": [1, 2],
    }
    pq.write_table(pa.table(rows), path)
    assert elements_of(path) == [Insert({"v": 1}, 1_000_000, 3_000_000), Insert({"v": 2}, 2_000_000, FOREVER)]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_is_not_what_it_says_is_named(tmp_path, ending):
    path = tmp_path / f"broken.{ending}"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(UnreadableError, match=path.name):
        list(Source.named(str(path)).batches())


def test_a_file_without_the_columns_of_a_batch_is_named(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(SchemaError, match="'kind' is missing") as caught:
        list(Source.named(str(path)).batches())
    assert any("other.parquet" in note for note in caught.value.__notes__)


def test_progress_goes_from_nothing_to_everything(tmp_path):
    path = tmp_path / "feed.parquet"
    Target.named(str(path)).write(Workload(events=200_000, payload_bytes=2).replica(0))
    told: list[float] = []
    relation = Relation()
    for batch in Source.named(str(path)).batches(progress=told.append):
        relation.apply(batch)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert len(relation) == 200_000


def test_an_interrupted_write_leaves_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "kept.jsonl"
    path.write_text("old\n")

    def interrupted():
        yield Batch.of([Stable(1)])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Target.named(str(path)).write(interrupted())
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_stream_is_a_file_that_denotes_nothing(tmp_path):
    for ending in ENDINGS:
        path = tmp_path / f"empty.{ending}"
        assert Target.named(str(path)).write([]) == 0
        relation = Relation()
        for batch in Source.named(str(path)).batches():
            relation.apply(batch)
        assert difference(relation, Relation()) is None


def test_the_ending_tells_the_format_or_the_error_lists_them():
    assert format_of("a.PARQUET") is Format.PARQUET
    assert format_of("-") is Format.JSON_LINES
    with pytest.raises(UnknownFormatError, match=r"feed\.xml") as caught:
        format_of("feed.xml")
    assert ".jsonl" in caught.value.__notes__[0]
