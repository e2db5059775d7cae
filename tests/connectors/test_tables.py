"""Kinds of tables: after every micro-batch a table is what the elements so far denote."""

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch import FOREVER, Adjust, Insert, Stable
from anabranch.connectors.tables.current import Current
from anabranch.connectors.tables.history import History
from anabranch.connectors.tables.micro_batch import MicroBatch
from anabranch.connectors.tables.table_error import TableError
from anabranch.connectors.tables.views import Change, Elements
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import denoted
from anabranch.testing.presentations import Habits, present
from anabranch.testing.references import Shape, reference

PAYLOAD = pa.schema([("sensor", pa.int64()), ("level", pa.string())])
TIMES = pa.schema([(name, pa.int64()) for name in ("start", "end", "old_end")])
COLUMNS = pa.schema([pa.field("kind", pa.string()), *TIMES, *PAYLOAD])
HISTORY = History(PAYLOAD, pa.int64())
CURRENT = Current(PAYLOAD, pa.int64(), ("sensor",))
OPEN = Current(PAYLOAD, pa.int64(), ("sensor",), open_only=True)


def rows_of(elements, columns=COLUMNS):
    """Elements as rows."""
    rows = []
    for element in elements:
        match element:
            case Insert(payload, start, end):
                row = {"kind": "insert", "start": start, "end": end, **payload}
            case Adjust(payload, start, old_end, end):
                row = {"kind": "adjust", "start": start, "end": end, "old_end": old_end, **payload}
            case Stable(time):
                row = {"kind": "stable", "start": time}
        rows.append({name: None if value == FOREVER else value for name, value in row.items()})
    return pa.Table.from_pylist(rows, columns)


def stream_of(random, **habits):
    """A stream with ties, true duplicates, infinite ends, removals and revisions."""

    def payload(element):
        number = ord(element.payload["value"]) - ord("a")
        return (
            {"sensor": number % 2, "level": "low" if number < 2 else "high"} if number < 4 else {"sensor": 9}
        )

    def renamed(element):
        match element:
            case Insert(_, start, end):
                return Insert(payload(element), start, end)
            case Adjust(_, start, old_end, end):
                return Adjust(payload(element), start, old_end, end)
        return element

    events = reference(random, shape=Shape(events=12, payloads=5, horizon=7, unending=0.3))
    return [renamed(element) for element in present(events, random, habits=Habits(**habits))]


def micro_batches(random, elements):
    """The elements cut at random; inside a micro-batch rows have no order."""
    cuts = sorted(random.randrange(len(elements) + 1) for _ in range(random.randrange(6)))
    return [elements[a:b] for a, b in zip([0, *cuts], [*cuts, len(elements)], strict=True)]


class Rows:
    """A table as a list of rows, to which changes are made one by one."""

    def __init__(self, view):
        self.view, self.rows, self.frontier, self.read, self.changed = view, {}, -(2**63), 0, 0

    def find(self, wanted):
        ids = set(wanted.ids.to_pylist())
        least, greatest = (
            one.as_py() for one in wanted.between or (pa.scalar(-(2**63)), pa.scalar(2**63 - 1))
        )
        found = [
            r for r in self.rows.values() if r[wanted.column] in ids and least <= r["valid_from"] <= greatest
        ]
        self.read += len(found)
        schema = pa.schema([self.view.schema.field(name) for name in wanted.columns])
        return pa.Table.from_pylist([{name: row[name] for name in wanted.columns} for row in found], schema)

    def apply(self, elements):
        batch = MicroBatch(rows_of(elements), self.frontier)
        changes = self.view.changes(batch, self.find)
        self.frontier = batch.frontier
        self.changed += len(changes)
        for row, change in zip(changes.rows.to_pylist(), changes.change.tolist(), strict=True):
            name = tuple(row[column] for column in self.view.by)
            assert (name in self.rows) == (change != Change.INSERT)
            if change == Change.DELETE:
                del self.rows[name]
            else:
                self.rows[name] = row

    def events(self):
        """A history as the oracle has it."""
        return Counter(
            (
                payload_key({n: row[n] for n in PAYLOAD.names if row[n] is not None}),
                row["valid_from"],
                FOREVER if row["valid_to"] is None else row["valid_to"],
            )
            for row in self.rows.values()
        )

    def values(self):
        """What a table of current values shows."""
        return {row["sensor"]: (row["valid_from"], row["level"]) for row in self.rows.values()}


def latest(elements, *, open_only=False):
    """The slow way: of each key the greatest start, and the levels that events have there."""
    payloads = {payload_key(e.payload): e.payload for e in elements if not isinstance(e, Stable)}
    found = {}
    for key, start, end in denoted(elements).rows:
        if open_only and end != FOREVER:
            continue
        sensor, level = payloads[key]["sensor"], payloads[key].get("level")
        greatest, levels = found.get(sensor, (start, set()))
        if start > greatest:
            greatest, levels = start, set()
        if start == greatest:
            found[sensor] = start, levels | {level}
    return found


def shows(table, expected):
    shown = table.values()
    assert len(shown) == len(table.rows), "one row per key"
    assert {key: start for key, (start, _) in shown.items()} == {
        k: start for k, (start, _) in expected.items()
    }
    assert all(level in expected[key][1] for key, (_, level) in shown.items())


randoms = st.randoms(use_true_random=False)


@given(randoms)
@settings(max_examples=80)
def test_a_history_has_the_events_of_the_relation_after_every_micro_batch(random):
    table, prefix = Rows(HISTORY), []
    for part in micro_batches(random, stream_of(random)):
        prefix += part
        table.apply(random.sample(part, len(part)))
        assert table.events() == denoted(prefix).bag()
        assert all(row["_copy"] >= 0 for row in table.rows.values())


@given(randoms)
@settings(max_examples=80)
def test_current_values_are_the_latest_events_of_the_relation_after_every_micro_batch(random):
    table, prefix = Rows(CURRENT), []
    for part in micro_batches(random, stream_of(random)):
        prefix += part
        table.apply(random.sample(part, len(part)))
        shows(table, latest(prefix))


@given(randoms)
@settings(max_examples=80)
def test_current_values_without_an_end_are_the_latest_of_those_events(random):
    table, prefix = Rows(OPEN), []
    for part in micro_batches(random, stream_of(random)):
        prefix += part
        table.apply(random.sample(part, len(part)))
        shows(table, latest(prefix, open_only=True))


@given(randoms)
@settings(max_examples=80)
def test_how_a_stream_is_cut_does_not_change_what_a_table_shows(random):
    elements = stream_of(random)
    shown = []
    for _ in range(2):
        history, current = Rows(HISTORY), Rows(CURRENT)
        for part in micro_batches(random, elements):
            history.apply(part)
            current.apply(random.sample(part, len(part)))
        shown.append((history.events(), current.values()))
    assert shown[0] == shown[1]


def test_a_removal_gives_the_value_before_back():
    table = Rows(CURRENT)
    low, high = {"sensor": 1, "level": "low"}, {"sensor": 1, "level": "high"}
    table.apply([Insert(low, 1, 5)])
    table.apply([Insert(high, 3, 9)])
    assert table.values() == {1: (3, "high")}
    table.apply([Adjust(high, 3, 9, 7)])
    assert table.values() == {1: (3, "high")}
    table.apply([Adjust(high, 3, 7, 3)])
    assert table.values() == {1: (1, "low")}
    table.apply([Adjust(low, 1, 5, 1)])
    assert not table.rows


def test_of_two_equal_events_one_may_be_removed():
    low, high = {"sensor": 1, "level": "low"}, {"sensor": 1, "level": "high"}
    current, history = Rows(CURRENT), Rows(HISTORY)
    for table in (current, history):
        table.apply([Insert(low, 1, 5), Insert(high, 3, 9), Insert(high, 3, 9)])
        table.apply([Adjust(high, 3, 9, 3)])
    assert current.values() == {1: (3, "high")}
    assert sorted(row["_copy"] for row in history.rows.values()) == [0, 0]
    current.apply([Adjust(high, 3, 9, 3)])
    assert current.values() == {1: (1, "low")}


def test_an_event_whose_end_moves_is_one_row_that_is_updated():
    table = Rows(HISTORY)
    low = {"sensor": 1, "level": "low"}
    table.apply([Insert(low, 1, 5), Insert(low, 1, 7)])
    before = set(table.rows)
    changes = HISTORY.changes(
        MicroBatch(rows_of([Adjust(low, 1, 5, 6), Adjust(low, 1, 6, FOREVER)])), table.find
    )
    assert changes.change.tolist() == [Change.UPDATE]
    table.apply([Adjust(low, 1, 5, FOREVER)])
    assert set(table.rows) == before


def test_what_a_micro_batch_takes_back_itself_changes_nothing():
    for view in (HISTORY, CURRENT):
        table = Rows(view)
        low = {"sensor": 1, "level": "low"}
        table.apply([Insert(low, 1, 5), Adjust(low, 1, 5, 9), Adjust(low, 1, 9, 1), Stable(1)])
        assert (table.rows, table.read, table.changed) == ({}, 0, 0)


def test_only_the_rows_that_change_are_read_and_written():
    for view in (HISTORY, CURRENT):
        table = Rows(view)
        table.apply([Insert({"sensor": n, "level": "low"}, n, 2000) for n in range(1000)])
        assert (table.read, table.changed) == (0, 1000)
        table.apply(
            [
                Insert({"sensor": 3, "level": "low"}, 1000, 2000),
                Adjust({"sensor": 4, "level": "low"}, 4, 2000, 4),
            ]
        )
        assert table.read <= 2
        assert table.changed == 1002


def test_a_stable_lets_a_key_forget_what_it_cannot_fall_back_to():
    table = Rows(CURRENT)
    for start in range(100):
        table.apply([Insert({"sensor": 1, "level": str(start)}, start, FOREVER), Stable(start)])
        [row] = table.rows.values()
        assert len(row["_fallback"] or []) <= 3
    table.apply([Stable(FOREVER)])
    table.apply([Insert({"sensor": 2, "level": "x"}, 100, FOREVER)])
    assert table.values()[1] == (99, "99")


def test_an_event_without_an_end_may_get_one_after_a_stable():
    table = Rows(OPEN)
    low, high = {"sensor": 1, "level": "low"}, {"sensor": 1, "level": "high"}
    table.apply([Insert(low, 1, FOREVER), Insert(high, 3, FOREVER), Stable(5)])
    assert table.values() == {1: (3, "high")}
    table.apply([Adjust(high, 3, FOREVER, 9)])
    assert table.values() == {1: (1, "low")}
    table.apply([Adjust(low, 1, FOREVER, 7)])
    assert not table.rows


def test_without_stables_a_key_holds_all_its_events_unless_they_are_final():
    final = Current(PAYLOAD, pa.int64(), ("sensor",), final=True)
    for view, held in ((CURRENT, 50), (final, 0)):
        table = Rows(view)
        for start in Random(1).sample(range(50), 50):
            table.apply([Insert({"sensor": 1, "level": str(start)}, start, start + 1)])
        [row] = table.rows.values()
        assert len(row["_fallback"] or []) == held
        assert table.values() == {1: (49, "49")}


def test_keys_are_equal_as_payloads_are():
    payload = pa.schema([("f", pa.float64()), ("g", pa.list_(pa.int64())), ("v", pa.int64())])
    columns = pa.schema([pa.field("kind", pa.string()), *TIMES, *payload])
    table = Rows(Current(payload, pa.int64(), ("f", "g")))
    nan = float("nan")
    keys = [(nan, [1, None]), (None, [1, None]), (0.0, None), (None, None), (0.0, [])]
    for start, turn in enumerate((keys, [(-0.0 if f == 0 else f, g) for f, g in keys])):
        batch = [Insert({"f": f, "g": g, "v": n}, start, 99) for n, (f, g) in enumerate(turn)]
        changes = table.view.changes(MicroBatch(rows_of(batch, columns)), table.find)
        assert len(changes) == len(keys)
        assert set(changes.change.tolist()) == {Change.UPDATE if start else Change.INSERT}
        for row in changes.rows.to_pylist():
            table.rows[row["_key"],] = row


@pytest.mark.parametrize("view", [HISTORY, CURRENT])
def test_an_event_that_changes_and_is_not_there_is_named(view):
    table = Rows(view)
    table.apply([Insert({"sensor": 1, "level": "low"}, 1, 5)])
    with pytest.raises(TableError, match=r"the event \{'sensor': 1, 'level': 'low'\} of 2 changes") as caught:
        table.apply([Adjust({"sensor": 1, "level": "low"}, 2, 5, 2)])
    assert "new checkpoint" in caught.value.__notes__[0]


@pytest.mark.parametrize("clock", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.date32()])
def test_times_are_timestamps_and_dates_too(clock):
    columns = pa.schema([pa.field(f.name, clock) if f.name in TIMES.names else f for f in COLUMNS])
    narrow = pa.int32() if pa.types.is_date(clock) else pa.int64()
    low = {"sensor": 1, "level": "low"}
    numbers = rows_of([Insert(low, 1, FOREVER), Insert({"sensor": 1}, 2, 5), Stable(FOREVER)])
    timed = [
        column.cast(narrow).cast(clock) if field.type == clock else column
        for column, field in zip(numbers.columns, columns, strict=True)
    ]
    batch = MicroBatch(pa.Table.from_arrays(timed, schema=columns))
    assert batch.frontier == FOREVER
    for view, starts in ((History(PAYLOAD, clock), [1, 2]), (Current(PAYLOAD, clock, ("sensor",)), [2])):
        rows = view.changes(batch, Rows(view).find).rows
        assert rows.schema == view.schema
        assert rows.column("valid_from").cast(narrow).to_pylist() == starts
        if view.kind == "history":
            assert rows.column("valid_to").cast(narrow).to_pylist() == [None, 5]


def test_a_payload_in_a_struct_becomes_columns():
    inner = pa.struct([("start", pa.string()), ("sensor", pa.int64())])
    columns = pa.schema([pa.field("kind", pa.string()), *TIMES, pa.field("payload", inner)])
    row = {"kind": "insert", "start": 1, "end": 2, "payload": {"start": "x", "sensor": 3}}
    view = History(pa.schema(list(inner)), pa.int64())
    rows = view.changes(MicroBatch(pa.Table.from_pylist([row], columns)), Rows(view).find).rows
    shown = rows.select(["start", "sensor", "valid_from"]).to_pylist()
    assert shown == [{"start": "x", "sensor": 3, "valid_from": 1}]


def test_events_without_a_payload_have_a_history_too():
    columns = pa.schema([pa.field("kind", pa.string()), *TIMES])
    table = Rows(History(pa.schema([]), pa.int64()))
    changes = table.view.changes(
        MicroBatch(rows_of([Insert({}, 1, 5), Insert({}, 1, 5)], columns)), table.find
    )
    assert changes.rows.select(["valid_from", "_copy"]).to_pylist() == [
        {"valid_from": 1, "_copy": 0},
        {"valid_from": 1, "_copy": 1},
    ]


def test_names_that_a_table_needs_itself_are_refused():
    for name in ("Valid_From", "valid_to", "_event", "_copy"):
        with pytest.raises(TableError, match="has a column"):
            History(pa.schema([(name, pa.int64())]), pa.int64())
    for name in ("valid_from", "_KEY", "_fallback"):
        with pytest.raises(TableError, match="has a column"):
            Current(pa.schema([(name, pa.int64())]), pa.int64(), (name,))


def test_current_values_need_a_key_of_the_payload():
    with pytest.raises(TableError, match="none is named"):
        Current(PAYLOAD, pa.int64(), ())
    with pytest.raises(TableError, match="'room' is none") as caught:
        Current(PAYLOAD, pa.int64(), ("room",))
    assert "'sensor', 'level'" in caught.value.__notes__[0]


def test_elements_are_rows_as_they_came():
    rows = rows_of([Insert({"sensor": 1}, 1, 5), Adjust({"sensor": 1}, 1, 5, 1), Stable(4)])
    changes = Elements(COLUMNS).changes(MicroBatch(rows), None)
    assert changes.rows.equals(rows)
    assert changes.only_inserts
    assert isinstance(changes.change, np.ndarray)
