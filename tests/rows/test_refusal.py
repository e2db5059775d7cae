"""What a shard refuses, as people read it: times as the rows had them."""

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Detach, Insert, Stable, ticks
from anabranch.connectors.files.json_rows import json_rows
from anabranch.engines.spark.order import TASK_ROWS, place_text
from anabranch.kernels.changes import changes
from anabranch.model.op import Op
from anabranch.model.validity import Rule, Violation
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows
from anabranch.rows.refusal import change_text, from_bytes, refusal, to_bytes

TEN, NOON = (ticks(datetime(2026, 3, 29, hour, tzinfo=UTC)) for hour in (10, 12))
INSTANT = pa.timestamp("us", "Europe/Berlin")


def shown(element, clock, rule=Rule.INSERT_BEHIND_STABLE, frontier=NOON):
    violation = Violation(rule, 7, element, frontier, "east")
    (travelled,) = from_bytes(to_bytes([refusal(violation, "east row 7", clock)]))
    return travelled


def test_times_are_shown_in_the_type_of_the_rows():
    element = Insert({"v": 5}, TEN, NOON)
    assert json.loads(shown(element, INSTANT).raw) == {
        "payload": {"v": 5},
        "start": "2026-03-29T12:00:00+02:00",
        "end": "2026-03-29T14:00:00+02:00",
    }
    local = json.loads(shown(element, pa.timestamp("us")).raw)
    assert local["start"] == "2026-03-29T10:00:00"
    days = json.loads(shown(Insert({}, 20_000, 20_001), pa.date32()).raw)
    assert (days["start"], days["end"]) == ("2024-10-04", "2024-10-05")
    assert json.loads(shown(Insert({}, 3, 4), pa.int64()).raw)["start"] == 3


def test_the_reason_shows_them_too_where_ticks_are_microseconds():
    reason = shown(Insert({"v": 5}, TEN, NOON), pa.timestamp("us", "UTC")).reason
    assert reason.endswith(
        "this one starts at 2026-03-29 10:00:00+00:00, the last stable is 2026-03-29 12:00:00+00:00"
    )
    assert "element 7 of input 'east'" in reason
    numbers = shown(Insert({}, 3, 4), pa.int64(), frontier=7).reason
    assert numbers.endswith("this one starts at 3, the last stable is 7")


def test_numbers_in_a_payload_that_are_no_ticks_stay_however_long_they_are():
    payload = {"v": "9" * 5000, "w": f"{TEN}"}
    reason = shown(Adjust(payload, TEN, NOON, NOON), INSTANT, Rule.NO_SUCH_EVENT).reason
    assert "9" * 5000 in reason


@pytest.mark.parametrize("clock", [INSTANT, pa.timestamp("us"), pa.int64()])
def test_what_is_infinite_is_null(clock):
    element = Adjust({"v": 5}, TEN, FOREVER, NOON)
    assert json.loads(shown(element, clock, Rule.NO_SUCH_EVENT).raw)["old_end"] is None
    assert json.loads(shown(Stable(FOREVER), clock, Rule.DETACHED_INPUT).raw)["start"] is None
    assert json.loads(shown(Attach(BEGINNING), clock, Rule.DETACHED_INPUT).raw)["start"] is None


def test_rows_that_are_no_events_are_shown_as_rows():
    assert json.loads(shown(Stable(TEN), pa.timestamp("us"), Rule.DETACHED_INPUT).raw) == {
        "kind": "stable",
        "start": "2026-03-29T10:00:00",
    }
    assert shown(Detach(), INSTANT, Rule.DETACHED_INPUT).raw == '{"kind":"detach"}'


def test_changes_have_the_time_of_their_commit():
    rows = pa.RecordBatch.from_pylist([{"id": 1, "at": TEN}])
    text = change_text(changes(np.array([Op.UPDATE]), np.array([TEN]), rows), 0)
    told = json.loads(shown(text, pa.timestamp("us", "UTC"), Rule.NO_SUCH_ROW).raw)
    assert told == {"op": "update", "time": "2026-03-29T10:00:00Z", "after": {"id": 1, "at": TEN}}


def test_a_tick_that_no_date_is_stays_a_tick():
    found = shown(Insert({}, 2**62, FOREVER - 1), INSTANT)
    assert json.loads(found.raw)["start"] == 2**62
    assert json.loads(shown(Insert({}, 2**40, 2**41), pa.date32()).raw)["start"] == 2**40


def test_without_a_clock_times_are_ticks():
    assert json.loads(shown(Insert({"v": 5}, TEN, NOON), None).raw)["start"] == TEN


ROLES = Layout("at", "until", "was", kind="kind", replica="who", channel="by", sequence="n")


@pytest.mark.parametrize("clock", [INSTANT, pa.date32(), pa.int64()])
@pytest.mark.parametrize(
    "element", [Insert({"v": 1}, 3, 9), Adjust({"v": 2}, 3, 9, FOREVER), Stable(3), Attach(3)]
)
def test_what_was_refused_is_told_in_the_columns_of_its_rows_and_reads_again(clock, element):
    violation = Violation(Rule.DETACHED_INPUT, 7, element, 4, "west")
    own = {"who": "west", "by": "left", "n": 7}
    raw = refusal(violation, "west/left row 7", clock, roles=ROLES.roles(), own=own).raw
    times = [(name, clock) for name in ("at", "until", "was")]
    texts = [(name, pa.string()) for name in ("kind", "who", "by")]
    columns = pa.schema([("v", pa.int64()), *times, *texts, ("n", pa.int64())])
    read = read_rows(ROLES, json_rows([raw.encode()], columns).rows, Place("again"))
    assert not read.refused
    assert list(read.batch.objects()) == [element]
    assert (read.replicas, read.channels, read.sequence.tolist()) == (["west"], ["left"], [7])


def test_a_refused_change_is_told_in_the_columns_of_its_rows_and_reads_again():
    layout = Layout("committed", kind="did", replica="who", key=("id",), ops=spellings({}))
    columns = pa.schema(
        [("id", pa.int64()), ("committed", INSTANT), ("did", pa.string()), ("who", pa.string())]
    )
    for op in ("insert", "update", "delete", "upsert"):
        row = {"id": 1, "committed": datetime(2026, 3, 1, tzinfo=UTC), "did": op, "who": "west"}
        first = read_rows(layout, pa.RecordBatch.from_pylist([row], columns), Place("first"))
        text = change_text(first.batch, 0, layout.roles(), {"who": "west"})
        violation = Violation(Rule.CHANGE_BEHIND_STABLE, 7, text, 4, "west")
        raw = refusal(violation, "west row 7", INSTANT, roles=layout.roles()).raw
        again = read_rows(layout, json_rows([raw.encode()], columns).rows, Place("again"))
        assert not again.refused
        assert again.batch.start.tolist() == first.batch.start.tolist()
        assert again.batch.old_end.tolist() == first.batch.old_end.tolist()
        assert again.batch.payload.to_pylist() == [{"id": 1}]


def test_a_row_without_a_sequence_is_placed_by_its_task():
    assert place_text("b", "b", TASK_ROWS + 87, by_task=True) == "b, task 1 row 87"
    assert place_text("b", "left", 87) == "b/left row 87"
