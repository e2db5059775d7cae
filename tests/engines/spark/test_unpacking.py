"""Rows that come out are of exactly the types that went in."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from random import Random

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from engines.spark.driving import Query
from engines.spark.merges import Merging
from engines.spark.spark_rows import ODD_NAMES, random_rows, same_rows
from pyspark.sql import Row
from quick import cases

from anabranch import BEGINNING, FOREVER, Adjust, Insert, Stable
from anabranch.engines.spark.parcel_rows import parcel_rows
from anabranch.engines.spark.query.status import ShardStatus
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.transport.packing import Packing
from anabranch.engines.spark.transport.parcel import from_bytes
from anabranch.engines.spark.transport.unpacking import BYTES, Unpacking
from anabranch.model.batch import Batch
from anabranch.model.identity import identities
from anabranch.model.properties import Case
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows
from anabranch.rows.refusal import Refusal

TEXT = pa.schema([("v", pa.string())])
UNPACKING = Unpacking(TEXT, pa.int64(), refusals=True, shards=1)


def status(shard: int = 0, frontier: int = BEGINNING, *, advanced: bool = True) -> ShardStatus:
    return ShardStatus(shard, "R3", frontier, advanced, {}, {}, 0, 0, 0, {})


QUIET = status(advanced=False)


def said(unpacking: Unpacking, *elements, refused: Sequence[Refusal] = (), now: ShardStatus = QUIET):
    """What a shard says, as rows; that its status comes last, and alone, is looked at here."""
    output = [Batch.of([element]) for element in elements]
    *found, last = unpacking.rows_of(output, list(refused), now)
    schema = unpacking.schema().append(pa.field(unpacking.status, pa.string()))
    assert all(batch.schema == schema for batch in (*found, last))
    [told] = last.to_pylist()
    assert msgspec.json.decode(told.pop(unpacking.status), type=ShardStatus) == now
    assert set(told.values()) == {None}
    rows = [row for batch in found for row in batch.to_pylist()]
    assert {row.pop(unpacking.status) for row in rows} <= {None}
    return rows


def through_shards(payload: pa.RecordBatch, case: Case, shards: int) -> pa.RecordBatch:
    """The payloads of events at 0, 1, 2, …: told by two replicas, with a restart half-way."""
    query = Query(Merging(case), shards)
    layout = Layout("~at", replica="~who", payload=tuple(payload.schema.names))
    fields = [*payload.schema, pa.field("~at", pa.int64()), pa.field("~who", pa.string())]
    found = []
    half = payload.num_rows // 2
    for begin, end in ((0, half), (half, payload.num_rows)):
        part = payload.slice(begin, end - begin)
        for name in ("a", "b"):
            columns = [*part.columns, pa.array(range(begin, end)), pa.array([name] * (end - begin))]
            read = read_rows(
                layout, pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)), Place("here")
            )
            packed = list(parcel_rows([[read]], Packing(layout, shards, edge=ROWS_SOURCE), query.ids))
            answers = query.receive(Row(**row) for rows in packed for row in rows.to_pylist())
            found += [from_bytes(data) for answer in answers.values() for data in answer.bodies]
        query.restart()
    unpacking = Unpacking(payload.schema, pa.int64(), refusals=False, shards=1)
    batches = [unpacking.row_batch(one.batch(slice(None))) for one in found]
    out = pa.Table.from_batches(batches, unpacking.schema()).sort_by("start")
    assert out.column("start").to_pylist() == list(range(payload.num_rows))
    if unpacking.nested:
        return pa.RecordBatch.from_struct_array(out.column("payload").combine_chunks())
    return out.select(payload.schema.names).combine_chunks().to_batches()[0]


@pytest.mark.parametrize("case", [Case.R2, Case.R3, Case.R4], ids=lambda case: case.name)
@pytest.mark.parametrize("chunk", range(cases(3)))
def test_payloads_come_out_with_the_types_and_values_they_went_in_with(case, chunk):
    for seed in range(chunk * 20, (chunk + 1) * 20):
        random = Random(seed)
        payload = random_rows(random, 12, columns=random.randint(1, 4))
        out = through_shards(payload, case, random.randint(1, 3))
        assert same_rows(out, payload), seed
        assert identities(out).tolist() == identities(payload).tolist()


def test_payloads_that_are_equal_may_come_out_as_one_another():
    """Zero has two signs and NaN many forms; to a merge they are one value."""
    payload = pa.RecordBatch.from_pydict({"v": [0.0, -0.0, float("nan"), 0.5]})
    assert str(through_shards(payload, Case.R3, 1).to_pydict()["v"]) == "[0.0, 0.0, nan, 0.5]"


class TestRows:
    def test_elements_are_rows(self):
        rows = said(
            UNPACKING,
            Insert({"v": "a"}, 1, 5),
            Adjust({"v": "a"}, 1, 5, FOREVER),
            Insert({"v": "b"}, 3, FOREVER),
            Adjust({"v": "b"}, 3, FOREVER, 3),
        )
        names = ("kind", "start", "end", "old_end", "v", "refused")
        assert rows == [
            dict(zip(names, row, strict=True))
            for row in (
                ("insert", 1, 5, None, "a", None),
                ("adjust", 1, None, 5, "a", None),
                ("insert", 3, None, None, "b", None),
                ("adjust", 3, 3, None, "b", None),
            )
        ]

    def test_a_payload_that_lacks_a_column_has_a_null_there(self):
        unpacking = replace(UNPACKING, payload=pa.schema([("v", pa.string()), ("w", pa.list_(pa.int8()))]))
        (row,) = said(unpacking, Insert({"v": "a"}, 1, 5))
        assert (row["v"], row["w"]) == ("a", None)

    def test_a_payload_may_have_no_columns(self):
        unpacking = Unpacking(pa.schema([]), pa.int64(), refusals=False, shards=1)
        assert said(unpacking, Insert({}, 1, 5)) == [
            {"kind": "insert", "start": 1, "end": 5, "old_end": None}
        ]

    def test_a_stable_is_told_once_for_all_shards(self):
        rows = [row for shard in (0, 1) for row in said(UNPACKING, now=status(shard, 7))]
        assert [(row["kind"], row["start"], row["end"]) for row in rows] == [("stable", 7, None)]

    def test_a_stable_that_says_nothing_new_is_not_told(self):
        assert said(UNPACKING, now=status(0, 7, advanced=False)) == []

    def test_the_stable_at_the_end_of_time_is_null(self):
        (row,) = said(UNPACKING, now=status(0, FOREVER))
        assert (row["kind"], row["start"]) == ("stable", None)

    def test_where_shards_differ_each_tells_where_it_was_and_is(self):
        held = replace(UNPACKING, shards=2, held=True)
        for shard, before, after, start in ((0, 5, 7, 7), (1, 7, 7, 7), (0, BEGINNING, BEGINNING, None)):
            (row,) = said(held, now=msgspec.structs.replace(status(shard, after), before=before))
            assert (row["kind"], row["start"]) == (f"frontier {shard}/2 {before} {after}", start)

    def test_what_was_refused_is_a_row_with_nothing_else(self):
        one = Refusal("malformed", "why", "east", "task 1 row 7", '{"v":1}')
        (row,) = said(UNPACKING, refused=[one])
        assert row.pop("refused") == {
            "rule": "malformed",
            "reason": "why",
            "replica": "east",
            "place": "task 1 row 7",
            "raw": '{"v":1}',
        }
        assert set(row.values()) == {None}

    def test_where_nobody_asked_for_refusals_there_are_none(self):
        silent = replace(UNPACKING, refusals=False)
        assert said(silent, refused=[Refusal("malformed", "why", "east", "here", "")]) == []
        assert "refused" not in silent.schema().names

    def test_many_rows_leave_in_pieces(self):
        wide = pa.RecordBatch.from_pydict({"v": ["x" * 1000] * 10_000})
        count = np.arange(10_000)
        batch = Batch(np.zeros(10_000, np.int8), count, count + 1, np.zeros(10_000, np.int64), wide)
        *found, _ = UNPACKING.rows_of([batch], [], QUIET)
        assert [start for piece in found for start in piece.column("start").to_pylist()] == count.tolist()
        assert [piece.nbytes < 2 * BYTES for piece in found] == [True] * 3

    def test_the_column_of_the_status_has_a_name_that_no_payload_has(self):
        names = [(name, pa.string()) for name in ("status", "Status_", "v")]
        unpacking = replace(UNPACKING, payload=pa.schema(names))
        assert unpacking.status == "status__"
        (row,) = said(unpacking, Insert({"status": "x"}, 1, 5))
        assert row["status"] == "x"


class TestClocks:
    @pytest.mark.parametrize(
        ("clock", "at"),
        [
            (pa.int64(), 20_000),
            (pa.date32(), date(2024, 10, 4)),
            (pa.timestamp("us"), datetime(1970, 1, 1, 0, 0, 0, 20_000)),
            (pa.timestamp("us", "UTC"), datetime(1970, 1, 1, 0, 0, 0, 20_000, tzinfo=UTC)),
        ],
    )
    def test_times_are_on_the_clock_they_came_from(self, clock, at):
        unpacking = replace(UNPACKING, clock=clock)
        row, stable = said(unpacking, Insert({"v": "a"}, 20_000, FOREVER), now=status(0, 20_000))
        assert (row["start"], row["end"], row["old_end"]) == (at, None, None)
        assert stable["start"] == at

    @pytest.mark.parametrize("clock", [pa.int64(), pa.date32(), pa.timestamp("us", "Europe/Berlin")])
    def test_an_adjust_has_three_times(self, clock):
        unpacking = replace(UNPACKING, clock=clock)
        (row,) = unpacking.row_batch(Batch.of([Adjust({"v": "a"}, 3, 9, 7)])).select([1, 2, 3]).to_pylist()
        layout = Layout("start", "end", "old_end", kind="kind")
        rows = unpacking.row_batch(Batch.of([Adjust({"v": "a"}, 3, 9, 7)])).select(range(5))
        assert read_rows(layout, rows, Place("here")).batch.element(0) == Adjust({"v": "a"}, 3, 9, 7)
        assert None not in row.values()


class TestNames:
    @pytest.mark.parametrize(
        "name", ["kind", "start", "end", "old_end", "refused", "payload", "input", "Kind"]
    )
    def test_where_a_payload_column_has_the_name_of_another_the_payload_is_one_column(self, name):
        """Spark takes names that differ only in case for one."""
        unpacking = replace(UNPACKING, payload=pa.schema([(name, pa.string()), ("v", pa.string())]))
        assert unpacking.nested
        (row,) = said(unpacking, Insert({name: "x", "v": "a"}, 1, 5))
        assert row["payload"] == {name: "x", "v": "a"}
        assert unpacking.schema().names == ["kind", "start", "end", "old_end", "payload", "refused"]

    @pytest.mark.parametrize("name", sorted(set(ODD_NAMES) - {"kind", "payload", "Start"}))
    def test_any_other_name_is_kept(self, name):
        unpacking = replace(UNPACKING, payload=pa.schema([(name, pa.string())]))
        (row,) = said(unpacking, Insert({name: "x"}, 1, 5))
        assert row[name] == "x"

    def test_rows_go_in_again_as_they_came_out(self):
        """What one query writes another can read, with the same columns."""
        elements = [Insert({"v": "a"}, 1, 5), Adjust({"v": "a"}, 1, 5, 1), Insert({"v": "b"}, 3, FOREVER)]
        rows = replace(UNPACKING, refusals=False).row_batch(Batch.of([*elements, Stable(4)]))
        read = read_rows(Layout("start", "end", "old_end", kind="kind"), rows, Place("here"))
        assert [read.batch.element(n) for n in range(4)] == [*elements, Stable(4)]
        assert read.batch.start.min() > BEGINNING
