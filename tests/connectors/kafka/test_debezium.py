"""Envelopes in: changes of a table, and what is none. Envelopes out: what a reader of them always has."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from anabranch import FOREVER, Adjust, Batch, HalfFrozen, Insert, Merger, Relation, parse
from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.kafka.envelopes import envelopes
from anabranch.kernels.changes import Changes, changes
from anabranch.model.batch import concat
from anabranch.model.op import Op

CASES = 250
TIME = pa.timestamp("us", "UTC")
ADDED = [("op", pa.string()), ("time", TIME)]
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), *ADDED])
OLD, NEW = {"id": 1, "v": "old"}, {"id": 1, "v": "new"}
SOURCE = {"version": "3.0.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": 5, "ts_us": 5001}


def at(micros):
    return datetime.fromtimestamp(micros / 1_000_000, UTC)


def text(**fields):
    return json.dumps(fields).encode()


def envelope(op="c", before=None, after=None, source=SOURCE, **more):
    whole = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 9, "ts_us": 9001, **more}
    return {name: value for name, value in whole.items() if value is not ...}


SCHEMA = {
    "type": "struct",
    "name": "shop.Envelope",
    "fields": [{"type": "int64", "field": f"f{n}"} for n in range(120)],
}
CHANGES = {
    "a create": (envelope("c", after=NEW), {**NEW, "op": "c", "time": at(5001)}),
    "a row of a snapshot": (envelope("r", after=NEW), {**NEW, "op": "r", "time": at(5001)}),
    "a row that is read beside the log": (
        envelope("r", after=NEW, source={**SOURCE, "snapshot": "incremental"}),
        {**NEW, "op": "incremental", "time": at(5001)},
    ),
    "a row of an old connector's snapshot": (
        envelope("r", after=NEW, source={**SOURCE, "snapshot": True}),
        {**NEW, "op": "r", "time": at(5001)},
    ),
    "an update": (envelope("u", OLD, NEW), {**NEW, "op": "u", "time": at(5001)}),
    "an update without the row before": (envelope("u", after=NEW), {**NEW, "op": "u", "time": at(5001)}),
    "a row before of another shape": (envelope("u", {"id": "x"}, NEW), {**NEW, "op": "u", "time": at(5001)}),
    "a delete": (envelope("d", OLD), {**OLD, "op": "d", "time": at(5001)}),
    "a delete with only the key": (
        envelope("d", {"id": 1}),
        {"id": 1, "v": None, "op": "d", "time": at(5001)},
    ),
    "no field for the row that is not there": (
        envelope("d", OLD, ...),
        {**OLD, "op": "d", "time": at(5001)},
    ),
    "a commit time in milliseconds": (
        envelope("c", after=NEW, source={"ts_ms": 7}),
        {**NEW, "op": "c", "time": at(7000)},
    ),
    "the time of the envelope": (
        envelope("c", after=NEW, source={"name": "shop"}),
        {**NEW, "op": "c", "time": at(9001)},
    ),
    "the time of the envelope in milliseconds": (
        envelope("c", after=NEW, source=None, ts_us=...),
        {**NEW, "op": "c", "time": at(9000)},
    ),
    "no source": (envelope("c", after=NEW, source=...), {**NEW, "op": "c", "time": at(9001)}),
    "a time before 1970": (
        envelope("c", after=NEW, source={"ts_us": -1}),
        {**NEW, "op": "c", "time": at(-1)},
    ),
    "columns that nobody asked for": (
        envelope("c", after={**NEW, "more": [1]}, transaction={"id": "5", "total_order": 1}),
        {**NEW, "op": "c", "time": at(5001)},
    ),
    "a column called payload": (
        envelope("c", after={**NEW, "payload": {"x": 1}}),
        {**NEW, "op": "c", "time": at(5001)},
    ),
}


@pytest.mark.parametrize("wrapped", [False, True], ids=["by itself", "beside its schema"])
@pytest.mark.parametrize("what", CHANGES)
def test_an_envelope_is_a_change(what, wrapped):
    value, row = CHANGES[what]
    found = Debezium().read([text(schema=SCHEMA, payload=value) if wrapped else text(**value)], COLUMNS)
    assert found.rows.to_pylist() == [row]
    assert found.rows.schema == COLUMNS
    assert found.origin.tolist() == [0]
    assert not found.refused


PASSED_OVER = {
    "a tombstone": None,
    "a tombstone beside its schema": text(schema=SCHEMA, payload=None),
    "the begin of a transaction": text(status="BEGIN", id="571", event_count=None, data_collections=None),
    "the end of a transaction": text(
        status="END", id="571", ts_ms=3, event_count=1, data_collections=[{"data_collection": "s.a"}]
    ),
    "a marker of a transaction beside its schema": text(
        schema=SCHEMA, payload={"status": "BEGIN", "id": "1"}
    ),
    "a heartbeat": text(ts_ms=17),
    "a heartbeat beside its schema": text(schema=SCHEMA, payload={"ts_ms": 17}),
    "a change of the schema": text(
        source=SOURCE, ts_ms=3, databaseName="shop", schemaName=None, ddl="ALTER TABLE …", tableChanges=[]
    ),
    "a change of the schema without its words": text(source=SOURCE, databaseName="shop", tableChanges=[]),
    "a message": text(op="m", ts_ms=3, source=SOURCE, message={"prefix": "x", "content": "aGk="}),
}
REFUSED = {
    "a truncate": (text(**envelope("t")), "a truncate ends rows that it does not name"),
    "an op that is not known": (text(**envelope("x", OLD, NEW)), "not 'x'"),
    "an op in capitals": (text(**envelope("C", OLD, NEW)), "not 'C'"),
    "an op that is no text": (text(**envelope(3, OLD, NEW)), "op"),
    "no op": (text(**envelope(None, OLD, NEW)), "an envelope has an op"),
    "a create without the row": (text(**envelope("c")), "has the row in 'after'"),
    "an update without the row": (text(**envelope("u", OLD)), "has the row in 'after'"),
    "a delete without the row": (text(**envelope("d", None, NEW)), "has the row in 'before'"),
    "no time": (text(**envelope("c", after=NEW, source={}, ts_ms=None, ts_us=None)), "has a time"),
    "a time that is text": (text(**envelope("c", after=NEW, source={"ts_us": "5"})), "ts_us"),
    "a time beyond dates": (text(**envelope("c", after=NEW, source={"ts_ms": 2**62})), "years 1 to 9999"),
    "a row that does not fit": (text(**envelope("c", after={"id": "one"})), "id"),
    "a row that is no object": (text(**envelope("c", after=[1])), "a row is an object"),
    "a row without its envelope": (text(**NEW), "an envelope has an op"),
    "a heartbeat with something else": (text(ts_ms=3, v="x"), "an envelope has an op"),
    "a status that is no marker": (text(status="shipped", id=1), "an envelope has an op"),
    "an empty object": (b"{}", "an envelope has an op"),
    "a payload that is no envelope": (text(schema=SCHEMA, payload=5), "object"),
    "a list": (b"[1]", "object"),
    "null as text": (b"null", "object"),
    "nothing at all": (b"", "truncated"),
    "cut short": (text(**envelope("c", after=NEW))[:-7], "truncated"),
    "something after it": (text(**envelope("c", after=NEW)) + b"}", "trailing"),
    "bytes that are not UTF-8": (text(**envelope("c", after=NEW)).replace(b"new", b"\xff"), "utf-8"),
    "deep nesting": (b'{"op":"c","after":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
}
WHOLE = text(**envelope("c", after=NEW))


@pytest.mark.parametrize("what", PASSED_OVER)
def test_what_is_no_change_is_passed_over(what):
    found = Debezium().read([WHOLE, PASSED_OVER[what], WHOLE], COLUMNS)
    assert found.origin.tolist() == [0, 2]
    assert found.rows.num_rows == 2
    assert not found.refused


@pytest.mark.parametrize("what", REFUSED)
def test_an_envelope_that_is_broken_is_refused_and_others_are_used(what):
    value, words = REFUSED[what]
    found = Debezium().read([WHOLE, None, value, WHOLE], COLUMNS)
    assert found.origin.tolist() == [0, 3]
    assert found.rows.num_rows == 2
    [(number, reason)] = found.refused
    assert number == 2
    assert words in reason


@pytest.mark.parametrize("values", [[], [None, None]])
def test_no_changes_are_no_rows(values):
    found = Debezium().read(values, COLUMNS)
    assert found.rows.schema == COLUMNS
    assert found.rows.num_rows == len(found.origin) == len(found.refused) == 0


def test_the_added_columns_may_have_other_names_where_the_table_has_theirs():
    columns = pa.schema([("op", pa.int64()), ("time", pa.string()), ("_op", pa.string()), ("_at", TIME)])
    found = Debezium(op="_op", time="_at").read(
        [text(**envelope("c", after={"op": 4, "time": "x"}))], columns
    )
    assert found.rows.to_pylist() == [{"op": 4, "time": "x", "_op": "c", "_at": at(5001)}]


def rows_of(elements, unit=None):
    return Batch.of(elements).to_arrow(unit=unit)


def told(notation, key=("id",)):
    """The envelopes of elements in notation, in short."""
    return [in_short(key, value) for key, value in envelopes([rows_of(parse(notation))], key, "t")]


def in_short(key, value):
    if value is None:
        return f"{json.loads(key)['id']} tombstone"
    said = json.loads(value)
    images = [said[name] and said[name]["v"] for name in ("before", "after")]
    return f"{json.loads(key)['id']} {said['op']} {images[0]}->{images[1]} @{said['source']['ts_us']}"


A, B, C, Z = ('{"id": 1, "v": "a"}', '{"id": 1, "v": "b"}', '{"id": 1, "v": "c"}', '{"id": 2, "v": "z"}')
EFFECTS = {
    "a new row is created": ([f"+ {A} [3, ∞)"], ["1 c None->a @3"]),
    "a row that is followed is updated": (
        [f"~ {A} [3, ∞) -> [3, 5)", f"+ {B} [5, ∞)"],
        ["1 u a->b @5"],
    ),
    "in whatever order that is said": ([f"+ {B} [5, ∞)", f"~ {A} [3, ∞) -> [3, 5)"], ["1 u a->b @5"]),
    "a row that ends is deleted": ([f"~ {A} [3, ∞) -> [3, 5)"], ["1 d a->None @5", "1 tombstone"]),
    "a row that is removed is deleted": ([f"~ {A} [3, ∞) -> [3, 3)"], ["1 d a->None @3", "1 tombstone"]),
    "a row with an end is created and deleted": (
        [f"+ {A} [3, 5)"],
        ["1 c None->a @3", "1 d a->None @5", "1 tombstone"],
    ),
    "a row may come again after a while": (
        [f"~ {A} [3, ∞) -> [3, 5)", f"+ {B} [8, ∞)"],
        ["1 d a->None @5", "1 tombstone", "1 c None->b @8"],
    ),
    "a history is told in the order of time": (
        [f"+ {C} [7, ∞)", f"+ {A} [3, 5)", f"+ {B} [5, 7)"],
        ["1 c None->a @3", "1 u a->b @5", "1 u b->c @7"],
    ),
    "what comes and goes is not told": ([f"+ {A} [3, ∞)", f"~ {A} [3, ∞) -> [3, 3)"], []),
    "an end that is taken back at once is not told": (
        [f"~ {A} [3, ∞) -> [3, 5)", f"~ {A} [3, 5) -> [3, ∞)"],
        [],
    ),
    "an end that is taken back brings the row again": ([f"~ {A} [3, 5) -> [3, ∞)"], ["1 c None->a @5"]),
    "an end that moves is not told": ([f"~ {A} [3, 5) -> [3, 9)"], []),
    "an update that is taken back is one the other way": (
        [f"~ {B} [5, ∞) -> [5, 5)", f"~ {A} [3, 5) -> [3, ∞)"],
        ["1 u b->a @5"],
    ),
    "of rows at one time the one that began last counts": (
        [f"+ {A} [3, 8)", f"+ {B} [5, ∞)"],
        ["1 c None->a @3", "1 u a->b @5"],
    ),
    "keys are apart, and in the order of time": (
        [f"+ {A} [3, ∞)", f"+ {Z} [1, 4)"],
        ["2 c None->z @1", "1 c None->a @3", "2 d z->None @4", "2 tombstone"],
    ),
    "a stable is not told": (["| 5"], []),
    "an update at the time of the create replaces it": (
        [f"~ {A} [3, ∞) -> [3, 3)", f"+ {B} [3, ∞)"],
        ["1 u a->b @3"],
    ),
}


@pytest.mark.parametrize("what", EFFECTS)
def test_envelopes_are_the_net_effect_of_a_micro_batch(what):
    lines, expected = EFFECTS[what]
    assert told("\n".join(lines)) == expected


def test_no_elements_are_no_envelopes():
    assert envelopes([], ("id",), "t") == []
    assert envelopes([rows_of(parse(f"+ {A} [3, 5)"))[:0]], ("id",), "t") == []


def test_an_envelope_is_spelled_as_debezium_does():
    instant = datetime(2026, 3, 1, 12, tzinfo=UTC)
    rows = pa.RecordBatch.from_pylist(
        [{"kind": "insert", "start": instant, "id": 1, "part": "x", "v": 1.5}],
        pa.schema(
            [
                ("kind", pa.string()),
                *((name, pa.timestamp("us", "Europe/Berlin")) for name in ("start", "end", "old_end")),
                ("id", pa.int64()),
                ("part", pa.string()),
                ("v", pa.float64()),
            ]
        ),
    )
    [(key, value)] = envelopes([rows], ("id", "part"), "shop")
    assert json.loads(key) == {"id": 1, "part": "x"}
    micros = int(instant.timestamp()) * 1_000_000
    times = {"ts_ms": micros // 1000, "ts_us": micros}
    assert json.loads(value) == {
        "before": None,
        "after": {"id": 1, "part": "x", "v": 1.5},
        "source": {"connector": "anabranch", "name": "shop", **times},
        "op": "c",
        **times,
    }


def test_days_are_told_as_the_times_at_which_they_begin():
    kinds = [("kind", pa.string()), *((name, pa.date32()) for name in ("start", "end", "old_end"))]
    row = {"kind": "insert", "start": date(1970, 1, 3), "end": date(1970, 1, 5), "id": 1}
    rows = pa.RecordBatch.from_pylist([row], pa.schema([*kinds, ("id", pa.int64())]))
    found = [json.loads(value) for _, value in envelopes([rows], ("id",), "t") if value is not None]
    assert [said["ts_ms"] for said in found] == [2 * 86_400_000, 4 * 86_400_000]


def test_rows_whose_columns_have_names_of_elements_go_out_and_in_again_with_all_types():
    row = {
        "id": 2**53 + 1,
        "kind": "täglich",
        "price": Decimal("12.30"),
        "day": date(2026, 2, 28),
        "start": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        "raw": b"\x00\xff",
        "tags": ["a", None],
        "by": [("x", 1)],
        "where": {"x": 1, "y": None},
        "good": True,
        "nothing": None,
    }
    table = pa.schema(
        [
            ("id", pa.int64()),
            ("kind", pa.string()),
            ("price", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("start", TIME),
            ("raw", pa.binary()),
            ("tags", pa.list_(pa.string())),
            ("by", pa.map_(pa.string(), pa.int64())),
            ("where", pa.struct([("x", pa.int32()), ("y", pa.int32())])),
            ("good", pa.bool_()),
            ("nothing", pa.float64()),
        ]
    )
    payload = pa.RecordBatch.from_pylist([row], table)
    element = Batch(np.zeros(1, np.int8), np.array([5]), np.array([FOREVER]), np.zeros(1, np.int64), payload)
    [(key, value)] = envelopes([element.to_arrow()], ("id",), "t")
    assert key == b'{"id":9007199254740993}'
    found = Debezium().read([value], pa.schema([*table, *ADDED]))
    assert found.rows.to_pylist() == [{**row, "op": "c", "time": at(5)}]


@dataclass
class Row:
    """A row of a table while its history is made up."""

    payload: dict
    start: int
    end: int
    came_again: bool = False


@dataclass
class History:
    """Changes of a small table as elements, also such that take back or move what was said.

    In a history that goes forward nothing is said to have happened before what was said of its key.
    """

    random: Random
    forward: bool
    rows: dict[int, list[Row]] = field(default_factory=lambda: defaultdict(list))
    begun: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Of each key the latest start that was said."""
    reached: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Of each key the latest time that was said."""

    def step(self) -> list:
        """Elements that belong together, and leave a table."""
        key = self.random.randrange(4)
        rows = self.rows[key]
        last = rows[-1] if rows else None
        if last is None or last.end != FOREVER:
            made = self._absent(key, rows, last)
        else:
            made = self._present(key, rows, last)
        before = [row for row in rows[:-1] if self._may_go_back(row)]
        if before and self.random.random() < 0.2:
            row = self.random.choice(before)
            made += self._moved(key, row, self.random.randint(row.start + 1, row.end))
        return made

    def _may_go_back(self, row):
        return not (self.forward and row.came_again)

    def _absent(self, key, rows, last):
        kind = self.random.choice(["open", "open", "closed", "again", "moved", "removed"])
        if last is None or kind in ("open", "closed"):
            start = self._later(key, 0 if last is None else last.end)
            end = FOREVER if kind == "open" else start + self.random.randint(1, 5)
            return self._new(key, start, end)
        if kind == "removed" and self._may_go_back(last):
            rows.pop()
            return self._moved(key, last, last.start)
        if kind == "moved" and self._may_go_back(last):
            return self._moved(key, last, last.start + self.random.randint(1, 9))
        return self._again(key, last)

    def _present(self, key, rows, last):
        kind = self.random.choice(["updated", "updated", "deleted", "anew", "removed", "undone"])
        if kind in ("removed", "undone") and self._may_go_back(last):
            rows.pop()
            made = self._moved(key, last, last.start)
            if kind == "undone" and rows and rows[-1].end == last.start:
                made += self._again(key, rows[-1])
            return self._in_any_order(made)
        end = self._later(key, last.start)
        if end == last.start:
            rows.pop()
        made = self._moved(key, last, end)
        if kind == "deleted":
            return made
        gap = self.random.randint(1, 3) if kind == "anew" else 0
        return self._in_any_order(made + self._new(key, end + gap, FOREVER))

    def _later(self, key, than):
        floor = self.reached[key] if self.forward else self.begun[key]
        return max(than, floor) + self.random.randrange(4)

    def _new(self, key, start, end):
        row = Row({"id": key, "v": self.random.randrange(3)}, start, end)
        self.rows[key].append(row)
        self.begun[key] = max(self.begun[key], start)
        self._reach(key, start, end)
        return [Insert(row.payload, start, end)]

    def _again(self, key, row):
        row.came_again = True
        return self._moved(key, row, FOREVER)

    def _moved(self, key, row, end):
        if end == row.end:
            return []
        old, row.end = row.end, end
        self._reach(key, old, end)
        return [Adjust(row.payload, row.start, old, end)]

    def _reach(self, key, *times):
        self.reached[key] = max(self.reached[key], *(time for time in times if time != FOREVER), 0)

    def _in_any_order(self, made):
        return self.random.sample(made, len(made))


class Reader:
    """A table that envelopes are applied to, which notices those that do not fit."""

    def __init__(self):
        self.table = {}

    def apply(self, records):
        deleted = None
        for key, value in records:
            assert (value is None) == (deleted == key)
            deleted = None
            if value is None:
                continue
            said = json.loads(value)
            assert self.table.get(key) == said["before"]
            assert said["op"] == ("c" if said["before"] is None else "u" if said["after"] else "d")
            image = said["after"] or said["before"]
            assert json.loads(key) == {"id": image["id"]}
            if said["after"] is None:
                del self.table[key]
                deleted = key
            else:
                self.table[key] = said["after"]
        assert deleted is None


def current(relation: Relation) -> list:
    """The rows that are there at the end of time."""
    return by_id(dict(event.payload) for event in relation.events() if event.end == FOREVER)


def by_id(rows):
    return sorted(rows, key=lambda row: row["id"])


OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE}
NUMBERS = pa.schema([("id", pa.int64()), ("v", pa.int64())])


class Table:
    """The same through `Debezium` and the changes of a table."""

    def __init__(self):
        self.changes, self.relation = Changes(["id"]), Relation()

    def apply(self, records):
        found = Debezium().read([value for _, value in records], pa.schema([*NUMBERS, *ADDED]))
        assert not found.refused
        assert len(found.rows) == sum(value is not None for _, value in records)
        op = np.array([OPS[word] for word in found.rows.column("op").to_pylist()], np.int64)
        time = found.rows.column("time").cast(pa.int64()).to_numpy()
        told = self.changes.push("", changes(op, time, found.rows.select(["id", "v"])))
        assert not told.refused
        self.relation.apply(told.events)


@pytest.mark.parametrize("forward", [True, False])
def test_a_reader_has_the_rows_that_are_current_after_every_micro_batch(forward):
    for seed in range(CASES):
        random = Random(seed)
        history, relation = History(random, forward), Relation()
        readers = [Reader(), Table()] if forward else [Reader()]
        for _ in range(random.randint(1, 12)):
            elements = [element for _ in range(random.randint(0, 6)) for element in history.step()]
            if not elements:
                continue
            relation.apply(elements)
            cut = random.randint(0, len(elements))
            parts = [rows_of(part) for part in (elements[:cut], elements[cut:]) if part]
            records = envelopes(parts, ("id",), "t")
            for reader in readers:
                reader.apply(records)
            assert by_id(readers[0].table.values()) == current(relation), seed
            if forward:
                assert current(readers[1].relation) == current(relation), seed


def replica(random: Random, log, parts):
    """The changes of a log as a replica tells them in so many micro-batches, with stables."""
    table = Changes(["id"])
    cuts = sorted(random.randrange(len(log) + 1) for _ in range(parts - 1))
    for begin, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        mine = log[begin:end]
        op = np.array([op for op, _, _ in mine], np.int64)
        time = np.array([time for _, time, _ in mine], np.int64)
        rows = pa.RecordBatch.from_pylist([row for _, _, row in mine], NUMBERS)
        stable = Batch.stable(FOREVER if end == len(log) else log[end][1], rows.schema)
        told = table.push("", changes(op, time, rows))
        assert not told.refused
        yield concat([told.events, stable]) if random.random() < 0.8 or end == len(log) else told.events


def table_log(random: Random):
    """Changes of a small table, in the order of time."""
    there, log, time = {}, [], 0
    for _ in range(random.randint(1, 40)):
        key, time = random.randrange(4), time + random.choice([0, 1, 1, 2])
        row = {"id": key, "v": random.randrange(3)}
        op = random.choice([Op.UPDATE, Op.UPDATE, Op.DELETE]) if key in there else Op.INSERT
        log.append((op, time, row))
        if op == Op.DELETE:
            del there[key]
        else:
            there[key] = row
    return log, by_id(there.values())


@pytest.mark.parametrize("properties", [(), ("keyed",)])
def test_replicas_that_are_merged_when_half_frozen_give_envelopes_of_one_table(properties):
    for seed in range(CASES):
        random = Random(seed)
        log, left = table_log(random)
        merger, relation, reader = Merger(policy=HalfFrozen()), Relation(), Reader()
        names = ("east", "west")
        for name in names:
            merger.attach(name, properties=properties)
        count = random.randint(1, 8)
        for turn in zip(*(replica(random, log, count) for _ in names), strict=True):
            said = concat([merger.push(name, batch) for name, batch in zip(names, turn, strict=True)])
            relation.apply(said)
            reader.apply(envelopes([said.to_arrow()], ("id",), "t"))
            assert by_id(reader.table.values()) == current(relation), seed
        assert by_id(reader.table.values()) == left
        assert relation.frontier == FOREVER
