"""What is pushed is used or told: where a pass breaks off, and where what came out has no form to come in."""

from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest

import anabranch as ab
from anabranch import Batch, Insert, Stable
from anabranch.engines.embedded.passes import ClosedError, FailedJobError
from anabranch.errors import AnabranchError
from anabranch.expressions.tree import ExpressionError

ROWS = {"room": "string", "level": "int64"}


def added(one, other):
    """The sum; of certain values there is none."""
    if pc.any(pc.equal(one, 13)).as_py():
        raise ZeroDivisionError("thirteen")
    return pc.add(one, other)


def counted(stream):
    own = ab.aggregate(lift=lambda rows: rows.column("level"), combine=added, finish=lambda sums: sums)
    return stream.window(10).agg(n=own)


def level(value, at):
    return Insert({"room": "A", "level": value}, at, at + 1)


ROOMS = ab.source("rooms", ROWS, properties="insert only")


@pytest.fixture
def broken():
    """A job whose second push broke off, its state of before that, and the error."""
    job = counted(ROOMS).open()
    job.push("rooms", [level(1, 1), level(2, 2)])
    state = job.dump()
    with pytest.raises(ExpressionError, match="raised ZeroDivisionError: thirteen") as caught:
        job.push("rooms", [level(13, 3), level(4, 4), Stable(10)])
    return job, state, caught.value


def test_an_error_in_the_midst_of_a_pass_says_what_was_not_used_and_the_way_out(broken):
    _, _, error = broken
    note = next(note for note in error.__notes__ if "broken off" in note)
    assert "rows 3 to 5 of 'rooms' were not used, or in part" in note
    assert "open the plan again with what dump() gave last" in note


@pytest.mark.parametrize(
    "call",
    [
        lambda job: job.push("rooms", [level(5, 5)]),
        lambda job: job.passes.push("rooms", [level(5, 5)]),
        lambda job: job.passes.end_source("rooms"),
        lambda job: job.close(),
        lambda job: job.dump(),
        lambda job: job.status(),
    ],
    ids=["push", "take", "end", "close", "dump", "status"],
)
def test_a_job_in_which_a_pass_broke_off_is_used_no_more(broken, call):
    job, _, _ = broken
    for _ in range(2):
        with pytest.raises(FailedJobError, match=r"rows 3 to 5 of 'rooms' .*; open the plan again") as caught:
            call(job)
        assert isinstance(caught.value, AnabranchError)


def test_a_job_that_is_opened_from_before_goes_on(broken):
    _, state, _ = broken
    job = counted(ROOMS).open(state)
    assert job.push("rooms", [level(3, 3), Stable(10)]) == [Insert({"n": 6}, 0, 10), Stable(10)]


def test_rows_for_which_a_function_of_the_input_fails_are_set_aside_as_before():
    aside = ab.Quarantine()
    job = ab.source("rooms", ROWS).apply(failing_for_13).open(on_invalid=aside)
    out = job.push("rooms", [level(1, 1), level(13, 2), level(3, 3), Stable(4)])
    assert out == [level(1, 1), level(3, 3), Stable(4)]
    assert len(aside.violations) == 1
    assert job.push("rooms", [level(5, 5)]) == [level(5, 5)]


def failing_for_13(rows):
    if pc.any(pc.equal(rows.column("level"), 13)).as_py():
        raise ZeroDivisionError("thirteen")
    return rows


def test_a_live_run_ends_with_the_error_of_the_pass_and_not_with_that_of_a_source():
    streams = [ab.source(name, ROWS, properties="insert only") for name in ("east", "west")]
    plan = counted(ab.union(*streams))
    rows = [level(13, 1), level(2, 2), Stable(20)]
    with pytest.raises(ExpressionError, match="thirteen") as caught:
        list(ab.run(plan, {"east": rows, "west": rows}, live=True))
    assert any("broken off" in note for note in caught.value.__notes__)


AT = "timestamp[us, tz=UTC]"
LATE = datetime(9999, 12, 31, 23, tzinfo=UTC)


def far(disorder="0 seconds"):
    """Rows of two hours later, which Python has no time for where they are of the last hour of all."""
    source = ab.source("rows", {"room": "string", "at": AT}, start="at", disorder=disorder)
    return source.shift("2 hours")


def of(at):
    return [{"room": "A", "at": at}]


def test_what_came_out_and_has_no_such_form_is_owed_to_the_next_call():
    job = far().open()
    with pytest.raises((OverflowError, ValueError)) as caught:
        job.push("rows", of(LATE))
    assert any("owed to the next call" in note for note in caught.value.__notes__)
    for one in (job, far().open(job.dump())):
        owed = one.push("rows", Batch.of([]))
        assert [element.payload for element in owed.elements() if isinstance(element, Insert)] == [
            {"room": "A"}
        ]
        assert one.push("rows", of(LATE)[:0]) == []


def test_what_came_out_at_the_close_is_owed_to_the_next_close_which_gives_batches():
    job = far("3 hours").sort().open()
    assert [row["kind"] for row in job.push("rows", of(LATE))] == ["stable"]
    with pytest.raises((OverflowError, ValueError)):
        job.close()
    owed = job.close()
    assert [element.payload for element in owed.elements() if isinstance(element, Insert)] == [{"room": "A"}]
    with pytest.raises(ClosedError):
        job.close()
