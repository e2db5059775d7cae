"""Elements check themselves when they are made."""

from dataclasses import FrozenInstanceError, fields
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER, Adjust, Attach, Insert, Stable
from anabranch.model.elements import sync

VALID = [
    Insert({"a": 1}, 3, 9),
    Adjust({"a": 1}, 3, 9, 7),
    Stable(5),
    Attach(5),
]
TIMES = [(element, field.name) for element in VALID for field in fields(element) if field.name != "payload"]
ticks = st.integers(BEGINNING, FOREVER)


def with_field(element, name, value):
    """The element made anew with another value in one field."""
    return type(element)(**{f.name: getattr(element, f.name) for f in fields(element)} | {name: value})


@pytest.mark.parametrize(("element", "name"), TIMES)
@pytest.mark.parametrize("wrong", [3.0, True, "3", None, datetime(2026, 1, 1)])
def test_a_time_that_is_no_int_is_refused_by_name(element, name, wrong):
    what = f"the {name.replace('_', ' ')} of an? {type(element).__name__.lower()} is an int of ticks, not "
    with pytest.raises(TypeError, match=what) as caught:
        with_field(element, name, wrong)
    assert caught.value.__notes__ == [
        "Turn a datetime into ticks with anabranch.ticks(moment); FOREVER means no end."
    ]


@pytest.mark.parametrize(("element", "name"), TIMES)
def test_a_time_beyond_int64_is_refused(element, name):
    with pytest.raises(OverflowError, match=str(FOREVER + 1)):
        with_field(element, name, FOREVER + 1)


@pytest.mark.parametrize(("element", "name"), TIMES)
def test_a_numpy_time_is_kept_as_a_plain_int(element, name):
    made = with_field(element, name, np.int32(4))
    assert type(getattr(made, name)) is int
    assert made == with_field(element, name, 4)


@pytest.mark.parametrize("element", VALID[:2])
@pytest.mark.parametrize("wrong", ["a", 7, None, ["a"], [("a", 1)]])
def test_a_payload_that_is_no_mapping_is_refused_with_the_way_out(element, wrong):
    with pytest.raises(TypeError, match="a payload maps column names to values") as caught:
        with_field(element, "payload", wrong)
    assert caught.value.__notes__ == [f'Name its column: {{"value": {wrong!r}}}.']


@pytest.mark.parametrize("element", VALID)
def test_elements_do_not_change(element):
    with pytest.raises(FrozenInstanceError):
        setattr(element, fields(element)[0].name, 1)


@given(ticks, ticks)
def test_an_insert_changes_the_relation_from_its_start_on(start, end):
    assert sync(Insert({}, start, end)) == start


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_an_adjust_changes_the_relation_from_where_the_old_and_new_lifetime_first_differ(start, old_end, end):
    old, new = set(range(start, start + old_end)), set(range(start, start + end))
    adjust = Adjust({}, start, start + old_end, start + end)
    if old != new:
        assert sync(adjust) == min(old ^ new)
    assert adjust.removes == (not new)


def test_an_input_attaches_from_the_beginning_unless_told():
    assert Attach() == Attach(BEGINNING)
