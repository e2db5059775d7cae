"""Hypothesis strategies over the generators of this package; failures shrink to small streams."""

from random import Random

from hypothesis import strategies as st

from anabranch.model.elements import Element, Event
from anabranch.model.properties import Case
from anabranch.testing.presentations import Habits, present, replicas
from anabranch.testing.references import Shape, reference


def references(*, case: Case = Case.R4, shape: Shape | None = None) -> st.SearchStrategy[list[Event]]:
    """Relations that streams of a case can denote."""
    return _randoms().map(lambda random: reference(random, case=case, shape=shape))


def streams(
    *, case: Case = Case.R4, shape: Shape | None = None, habits: Habits | None = None
) -> st.SearchStrategy[list[Element]]:
    """Valid streams of a case."""
    return _randoms().map(
        lambda random: present(reference(random, case=case, shape=shape), random, case=case, habits=habits)
    )


def replica_sets(
    count: int = 2, *, case: Case = Case.R4, shape: Shape | None = None, habits: Habits | None = None
) -> st.SearchStrategy[tuple[list[Event], list[list[Element]]]]:
    """A reference with presentations of it."""
    return _randoms().map(lambda random: replicas(random, count, case=case, shape=shape, habits=habits))


def _randoms() -> st.SearchStrategy[Random]:
    return st.randoms(use_true_random=False)
