"""Floods of senseless elements, small ones beside the oracle; `laws.flood` lets thousands come."""

import pytest
from laws.flood import Flood, failures, fault_of
from quick import cases

from anabranch import Insert, Merger


@pytest.mark.parametrize("number", range(cases(4)))
def test_a_flood_gives_what_the_oracle_gives(number):
    assert not failures(range(number * 100, (number + 1) * 100))


def test_a_large_flood_gives_what_is_valid():
    assert not failures(range(30), large=True)


def test_a_merge_that_loses_an_element_is_found_out(monkeypatch):
    push = Merger.push

    def loses_inserts_at_one(self, name, elements):
        return push(self, name, [e for e in elements if not (isinstance(e, Insert) and e.start == 1)])

    monkeypatch.setattr(Merger, "push", loses_inserts_at_one)
    assert len(failures(range(60))) > 20


def test_a_flood_is_drawn_from_its_seed_alone():
    assert Flood.drawn(17) == Flood.drawn(17)
    assert fault_of(Flood.drawn(17)) is None
