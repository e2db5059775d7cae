"""Rows and elements that come one by one are pushed together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import anabranch as ab
from anabranch import Insert, Stable
from anabranch.engines.embedded.gathering import gathered

ROOMS = {"room": "string", "at": "int64"}
_items = st.lists(
    st.one_of(
        st.builds(lambda at: {"room": "A", "at": at}, st.integers(0, 9)),
        st.builds(Stable, st.integers(0, 9)),
        st.lists(st.just({"room": "B", "at": 1}), max_size=3),
    )
)


@given(_items, st.integers(1, 5))
def test_nothing_is_lost_or_put_in_another_order_by_being_gathered(items, most):
    found = []
    for piece, count in gathered(iter(items), most):
        assert 1 <= count <= most
        found += [piece] if piece in items else piece
    assert found == items


def test_rows_that_an_iterable_gives_one_by_one_come_out_together():
    levels = ab.source("levels", ROOMS, start="at")
    run = ab.run(levels, {"levels": ({"room": "A", "at": at} for at in range(10_000))}, finish=False)
    assert [len(batch) for batch in run] == [4_096, 4_096, 1_808]


def test_rows_before_an_error_come_out_before_it():
    def broken():
        yield {"room": "A", "at": 1}
        raise OSError("the line is dead")

    run = ab.run(ab.source("levels", ROOMS, start="at"), {"levels": broken()})
    assert [one.start for one in next(run).elements() if isinstance(one, Insert)] == [1]
    with pytest.raises(OSError, match="the line is dead"):
        next(run)
