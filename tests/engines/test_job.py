"""A plan in this process: what is pushed comes out in its own form, refused, or owed; never lost."""

from html import escape

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import (
    FOREVER,
    Adjust,
    Batch,
    Drop,
    Insert,
    InvalidElementError,
    Quarantine,
    Stable,
    Stream,
    Tagged,
    col,
)
from anabranch.kernels.store.saved import StateFormatError
from anabranch.plan.node import PlanError

ROOMS = {"room": "string", "level": "int64"}


def readings(name="readings", **more):
    return ab.source(name, ROOMS, **more)


def event(room, level, start, end):
    return Insert({"room": room, "level": level}, start, end)


def test_elements_give_elements_and_their_stable_comes_last():
    job = readings().filter(col("level") > 1).open()
    assert job.push("readings", [event("A", 2, 1, 5), Stable(1), event("B", 1, 2, 5), Stable(3)]) == [
        event("A", 2, 1, 5),
        Stable(3),
    ]
    assert job.push("readings", event("C", 9, 4, 5)) == [event("C", 9, 4, 5)]


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (lambda batch: batch, Batch),
        (lambda batch: batch.to_arrow(), pa.RecordBatch),
        (lambda batch: pa.Table.from_batches([batch.to_arrow()]), pa.Table),
    ],
)
def test_what_is_pushed_comes_back_in_its_form(form, kind):
    given = form(Batch.of([event("A", 2, 1, 5), Stable(3)]))
    answer = readings().open().push("readings", given)
    assert isinstance(answer, kind)
    assert list(Batch.from_arrow(answer) if kind is not Batch else answer) == [event("A", 2, 1, 5), Stable(3)]


def test_an_invalid_element_is_raised_before_anything_of_its_push_is_used():
    job = readings().open()
    job.push("readings", [Stable(5)])
    with pytest.raises(InvalidElementError, match="element 3 of input 'readings'"):
        job.push("readings", [event("A", 1, 6, 7), event("B", 1, 4, 7)])
    assert job.push("readings", [event("A", 1, 6, 7)]) == [event("A", 1, 6, 7)]


def test_what_is_set_aside_has_its_number_and_the_others_are_used():
    aside = Quarantine()
    job = readings().open(on_invalid=aside)
    out = job.push("readings", [Stable(5), event("A", 1, 4, 7), event("B", 1, 6, 7), event("C", 1, 8, 8)])
    assert out == [event("B", 1, 6, 7), Stable(5)]
    assert [(v.position, v.code) for v in aside.violations] == [
        (2, "insert-behind-stable"),
        (4, "empty-lifetime"),
    ]
    assert job.status().refused == {"empty-lifetime": 1, "insert-behind-stable": 1}


def test_an_adjust_of_an_event_that_is_not_there_is_refused_where_nothing_holds_events():
    aside = Quarantine()
    job = readings().tumble(10).open(on_invalid=aside)
    job.push("readings", [event("A", 1, 1, 5)])
    gone = Adjust({"room": "A", "level": 1}, 1, 6, 1)
    assert job.push("readings", [gone, Adjust({"room": "A", "level": 1}, 1, 5, 1)]) == [
        Adjust({"room": "A", "level": 1}, 0, 10, 0)
    ]
    assert [v.code for v in aside.violations] == ["no-such-event"]


def test_a_row_that_overflows_is_refused_and_names_its_number():
    job = readings().with_columns(level=col("level") * 2).open()
    with pytest.raises(InvalidElementError, match=r"element 2 .*overflow") as caught:
        job.push("readings", [event("A", 1, 1, 2), event("B", 2**62, 1, 2), Stable(1)])
    assert caught.value.output == [event("A", 2, 1, 2), Stable(1)]


@pytest.mark.parametrize(
    "over",
    [
        lambda stream: stream.filter(12 // col("level").fill_null(0) > 0),
        lambda stream: stream.select("room", level=12 // col("level").fill_null(0)),
    ],
)
def test_a_stable_has_no_payload_for_which_an_expression_fails(over):
    job = over(readings()).open()
    given = [event("A", 2, 1, 5), Stable(1), event("B", 3, 3, 5), Stable(2)]
    assert [type(one) for one in job.push("readings", given)] == [Insert, Insert, Stable]


def test_output_is_owed_where_a_function_that_sets_aside_fails():
    def fail(violation):
        raise OSError("disk full")

    job = readings().open(on_invalid=Quarantine(fail))
    with pytest.raises(OSError, match="disk full"):
        job.push("readings", [event("A", 1, 1, 2), event("B", 1, 3, 3)])
    again = readings().open(job.dump())
    assert job.push("readings", [Stable(4)]) == [event("A", 1, 1, 2), Stable(4)]
    assert again.push("readings", [Stable(4)]) == [event("A", 1, 1, 2), Stable(4)]


def test_replicas_of_a_source_come_and_go():
    heard = ab.source("heard", ROOMS, replica="gateway", properties="keyed")
    job = heard.filter(col("level") > 1).merge().open()
    assert job.push("heard", [event("A", 2, 1, 5)], replica="north") == [event("A", 2, 1, 5)]
    assert job.push("heard", [Tagged("south", event("A", 2, 1, 6)), Tagged("south", Stable(6))]) == [
        Adjust({"room": "A", "level": 2}, 1, 5, 6),
        Stable(6),
    ]
    assert job.detach("heard", "south") == []
    with pytest.raises(InvalidElementError, match="detached"):
        job.push("heard", [event("B", 2, 7, 8)], replica="south")
    job.attach("heard", "south", 7)
    assert job.push("heard", [event("B", 2, 7, 8)], replica="south") == [event("B", 2, 7, 8)]


def test_a_silent_lossy_replica_is_not_waited_for_once_it_is_idle():
    heard = ab.source("heard", ROOMS, replica="gateway", lossy=True, replicas=["north", "south"])
    job = heard.merge().open()
    assert job.push("heard", [event("A", 2, 1, 2), Stable(5)], replica="north") == [event("A", 2, 1, 2)]
    assert job.idle("heard", "south") == [Stable(5)]


def test_a_replica_named_in_idle_is_not_waited_for_whenever_it_is_silent_and_catches_up_first():
    names = ["north", "south"]
    job = (
        ab.source("heard", ROOMS, replica="gateway", lossy=True, replicas=names, idle=["south"])
        .merge()
        .open()
    )

    def stable(replica: str, time: int) -> list:
        return job.push("heard", [Stable(time)], replica=replica)

    assert stable("north", 5) == [Stable(5)]
    assert stable("south", 3) == []
    assert job.status().sources["heard"].replicas == {"north": 5, "south": 3}
    assert stable("north", 8) == [Stable(8)]
    assert stable("south", 9) == []
    assert job.push("heard", [Tagged("north", Stable(12)), Tagged("south", Stable(10))]) == [Stable(10)]
    assert stable("north", 15) == [Stable(15)]


def test_rows_are_read_as_their_columns_say_and_come_out_on_their_clock():
    rows = ab.source(
        "rows", {"at": "timestamp[us]", "room": "string"}, start="at", duration="1 minute", disorder=0
    )
    job = rows.open()
    table = pa.table({"at": pa.array([0, 60_000_000], pa.timestamp("us")), "room": ["A", None]})
    answer = job.push("rows", table)
    assert answer.column("kind").to_pylist() == ["insert", "insert", "stable"]
    assert answer.schema.field("start").type == pa.timestamp("us")
    assert answer.column("room").to_pylist() == ["A", None, None]


def test_a_row_without_a_start_is_set_aside_and_the_others_are_used():
    aside = Quarantine()
    rows = ab.source("rows", {"at": "int64", "room": "string"}, start="at", disorder=0)
    job = rows.open(on_invalid=aside)
    answer = job.push("rows", [{"at": 1, "room": "A"}, {"at": None, "room": "B"}])
    assert [row["kind"] for row in answer] == ["insert", "stable"]
    assert [v.code for v in aside.violations] == ["malformed"]


def test_a_row_that_is_filtered_out_has_been_seen_all_the_same():
    rows = ab.source("rows", {"at": "int64", "level": "int64"}, start="at", disorder=5)
    job = rows.filter(col("level") > 1).open()
    assert [row["kind"] for row in job.push("rows", [{"at": 100, "level": 0}])] == ["stable"]
    with pytest.raises(InvalidElementError):
        job.push("rows", [{"at": 90, "level": 3}])


def test_several_outputs_answer_by_their_names_and_share_what_is_alike():
    base = readings().filter(col("level") > 1)
    job = ab.open({"all": base, "hot": base.filter(col("level") > 5)})
    assert job.push("readings", [event("A", 2, 1, 2), event("B", 9, 1, 2)]) == {
        "all": [event("A", 2, 1, 2), event("B", 9, 1, 2)],
        "hot": [event("B", 9, 1, 2)],
    }
    tapped = readings().tap("raw").filter(col("level") > 1).open()
    assert tapped.push("readings", [event("A", 1, 1, 2)]) == {"": [], "raw": [event("A", 1, 1, 2)]}


def test_a_job_that_is_closed_has_said_everything_and_takes_no_more():
    job = readings().final().open()
    job.push("readings", [event("A", 1, 1, FOREVER)])
    assert job.close() == [event("A", 1, 1, FOREVER), Stable(FOREVER)]
    with pytest.raises(RuntimeError, match="closed"):
        job.push("readings", [Stable(1)])


def test_a_state_is_refused_by_a_plan_that_means_something_else():
    state = readings().filter(col("level") > 1).final().open().dump()
    with pytest.raises(StateFormatError, match=r"level > 1.*level > 2"):
        readings().filter(col("level") > 2).final().open(state)


def test_a_source_that_the_plan_has_not_is_named_with_those_it_has():
    job = readings().open()
    with pytest.raises(PlanError, match="no source 'reading'") as caught:
        job.push("reading", [])
    assert "'readings'" in caught.value.__notes__[0]


def test_a_status_shows_itself_in_a_notebook_as_it_prints():
    job = readings("a<b").open()
    job.push("a<b", [event("A", 1, 3, 9), Stable(5)])
    status = job.status()
    shown = status._repr_html_()
    assert shown.startswith("<pre>a&lt;b: 2 in, stable to 5\n")
    assert shown.removeprefix("<pre>").removesuffix("</pre>") == escape(str(status))


def test_status_says_how_far_each_part_is():
    job = ab.union(readings("a"), readings("b")).final().open()
    job.push("a", [event("A", 1, 1, 2), Stable(9)])
    status = job.status()
    assert status.sources["a"].frontier == 9
    assert status.operators["final"].live == 1
    assert "a: 2 in, stable to 9" in str(status)


def test_a_value_that_is_not_of_its_column_is_set_aside_with_its_row():
    aside = Quarantine()
    rows = ab.source("rows", {"at": "int64", "level": "int64"}, start="at", disorder=0)
    job = rows.open(on_invalid=aside)
    given = [{"at": 1, "level": 1}, {"at": 2, "level": "high"}, {"at": 3, "level": 3}]
    assert [row["level"] for row in job.push("rows", given)] == [1, 3, None]
    (violation,) = aside.violations
    assert "'high'" in str(violation.element)
    assert ", and this row has " in violation.detail


OVER = {"sort": Stream.sort, "final": Stream.final, "union": ab.union, "nothing": lambda stream: stream}


@pytest.mark.parametrize("over", OVER.values(), ids=OVER.keys())
def test_whatever_is_behind_a_source_an_adjust_of_nothing_changes_nothing(over):
    job = over(readings()).open(on_invalid=Drop())
    relation = ab.Relation()
    relation.apply(job.push("readings", [event("A", 1, 1, 5), Adjust({"room": "B", "level": 1}, 1, 5, 9)]))
    relation.apply(job.push("readings", [Stable(FOREVER)]))
    assert [one.payload["room"] for one in relation.events()] == ["A"]


def test_changes_of_a_table_are_its_rows_from_one_commit_to_the_next():
    orders = ab.source(
        "orders",
        {"id": "int64", "state": "string", "op": "string", "at": "int64"},
        start="at",
        key="id",
        op="op",
    )
    job = orders.open(on_invalid=Quarantine())
    rows = [
        {"id": 1, "state": "new", "op": "c", "at": 3},
        {"id": 1, "state": "paid", "op": "u", "at": 5},
        {"id": 2, "state": "paid", "op": "u", "at": 6},
    ]
    answer = job.push("orders", rows)
    assert [(row["kind"], row["state"], row["start"], row["end"]) for row in answer] == [
        ("insert", "new", 3, None),
        ("adjust", "new", 3, 5),
        ("insert", "paid", 5, None),
    ]
    assert job.status().refused == {"no-such-row": 1}
    again = orders.open(job.dump())
    assert [row["kind"] for row in again.push("orders", [{"id": 1, "state": None, "op": "d", "at": 9}])] == [
        "adjust"
    ]
