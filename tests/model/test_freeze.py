"""Freeze status is what can still happen, no more and no less."""

from itertools import product

from anabranch import FOREVER, Freeze
from anabranch.model.freeze import freeze
from anabranch.oracle.futures import freeze_by_futures

ENDS = (1, 2, 3, 4, FOREVER)


def test_the_status_of_an_event_is_what_its_futures_have_in_common():
    for start, end, stable in product(range(4), ENDS, (*range(6), FOREVER)):
        if start < end:
            possible = [e for e in (*ENDS, 5, 6) if e > start]
            expected = freeze_by_futures(start, end, stable, possible)
            assert freeze(start, end, stable) is expected, (start, end, stable)


def test_an_end_at_the_stable_is_half_frozen_and_a_start_at_it_unfrozen():
    assert freeze(0, 5, 5) is Freeze.HALF_FROZEN
    assert freeze(0, 5, 6) is Freeze.FULLY_FROZEN
    assert freeze(5, 9, 5) is Freeze.UNFROZEN
    assert freeze(0, FOREVER, FOREVER) is Freeze.FULLY_FROZEN
