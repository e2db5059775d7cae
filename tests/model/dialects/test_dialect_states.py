"""What dialects keep: payload keys, agendas, the events alive."""

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.model.dialects.agenda import Agenda
from anabranch.model.dialects.alive import Alive
from anabranch.model.dialects.error import DialectError
from anabranch.model.dialects.payload_key import payload_key
from anabranch.model.time import FOREVER

NAN = float("nan")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, Decimal("1.00")),
        (0, -0.0),
        (NAN, -NAN),
        (NAN, float("nan")),
        (0.5, 0.5),
        ([1, None, NAN], (1.0, None, NAN)),
        ({"a": 1, "b": None}, {"a": 1.0}),
        (b"x", bytearray(b"x")),
        (NOON, NOON.astimezone(timezone(timedelta(hours=5)))),
    ],
)
def test_values_that_are_the_same_have_one_key(one, other):
    assert payload_key({"x": one}) == payload_key({"x": other, "y": None})
    assert hash(payload_key({"x": one})) == hash(payload_key({"x": other}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, False),
        (1, "1"),
        ("x", b"x"),
        (0.5, Decimal("0.5")),
        (NAN, None),
        (NAN, float("inf")),
        (2**63, 2.0**63),
        ([1, 2], [2, 1]),
        ([1], [True]),
        ([], None),
        ([], {}),
        ([None], []),
        ({"a": 1}, {"b": 1}),
        ({"a": True}, {"a": 1}),
        (date(2026, 1, 1), datetime(2026, 1, 1)),
        (NOON, NOON.replace(tzinfo=None)),
    ],
)
def test_values_that_differ_have_two_keys(one, other):
    assert payload_key({"x": one}) != payload_key({"x": other})


def test_a_value_without_a_canonical_form_is_named():
    with pytest.raises(TypeError, match=r"\{1\} of type set has no canonical form"):
        payload_key({"x": {1}})


@given(st.randoms(use_true_random=False))
def test_an_agenda_is_a_list_of_things_sorted_by_time(random):
    agenda, plain = Agenda(), []
    for _ in range(80):
        time, thing = random.randrange(40), random.randrange(3)
        match random.randrange(5):
            case 0 | 1 | 2:
                agenda.add(time, thing)
                plain.append((time, thing))
            case 3:
                assert agenda.discard(time, thing) == ((time, thing) in plain)
                if (time, thing) in plain:
                    plain.remove((time, thing))
            case 4 if random.random() < 0.2:
                taken = list(agenda.take_before(time))
                assert [t for t, _ in taken] == sorted(t for t, _ in taken)
                assert sorted(taken) == sorted(entry for entry in plain if entry[0] < time)
                plain = [entry for entry in plain if entry[0] >= time]
        assert len(agenda) == len(plain)
        assert agenda.count_at(time) == sum(t == time for t, _ in plain)


def test_an_agenda_remembers_no_times_that_nothing_waits_for():
    agenda = Agenda()
    agenda.add(0, "event")
    for time in range(10_000):
        agenda.discard(time, "event")
        agenda.add(time + 1, "event")
    assert len(agenda._times) < 100


def test_an_end_that_equals_a_stable_is_not_frozen():
    alive, key = Alive(), payload_key({"x": 1})
    alive.add(key, (1, 5))
    alive.add(key, (1, FOREVER))
    alive.freeze(5)
    assert alive.lifetimes(key) == [(1, 5), (1, FOREVER)]
    alive.freeze(6)
    assert alive.lifetimes(key) == [(1, FOREVER)]
    alive.freeze(FOREVER)
    assert len(alive) == 0
    assert alive.lifetimes(key) == []


def test_a_dialect_error_says_three_things_and_survives_a_process_border():
    error = pickle.loads(pickle.dumps(DialectError("rule with 7", "meaning", "Way out.")))
    assert str(error) == "rule with 7: meaning"
    assert error.__notes__ == ["Way out."]


def test_a_payload_without_events_is_forgotten():
    alive, key = Alive(), payload_key({"x": 1})
    alive.add(key, (1, 5))
    alive.add(key, (1, 9))
    alive.move(key, (1, 5), 1)
    alive.freeze(10)
    assert (len(alive), alive._lifetimes) == (0, {})
