"""A merge says what the one that vouches made it leave out, and for whom it waits."""

import pytest

from anabranch import Adjust, Case, FinalOnly, HalfFrozen, Insert, Merger, Stable
from anabranch.kernels.merge.settings import Generalise

A, B, C = ({"value": value} for value in "abc")

KEYED = pytest.mark.parametrize("case", [Case.R3, Case.R4], ids=lambda case: case.name)


def merger_of(*names, complete=True, **settings):
    merger = Merger(**settings)
    for name in names:
        merger.attach(name, complete=complete)
    return merger


def removed(merger):
    return {name: one.removed for name, one in merger.status().inputs.items()}


@KEYED
class TestRemoved:
    def test_an_event_that_the_leader_never_showed_is_counted_for_those_who_show_it(self, case):
        merger = merger_of("north", "south", "west", case=case)
        merger.push("north", [Insert(A, 1, 5), Insert(B, 2, 6)])
        merger.push("west", Insert(A, 1, 5))
        merger.push("south", [Insert(B, 2, 6), Stable(9)])
        assert removed(merger) == {"north": 1, "south": 0, "west": 1}

    def test_one_that_comes_after_the_stable_is_counted_too(self, case):
        merger = merger_of("north", "south", case=case)
        merger.push("south", [Insert(B, 2, 6), Stable(9)])
        merger.push("north", [Insert(A, 1, 5), Insert(B, 2, 6), Stable(9)])
        assert removed(merger) == {"north": 1, "south": 0}

    @pytest.mark.parametrize("policy", [HalfFrozen(), FinalOnly()], ids=str)
    def test_one_that_was_never_let_out_is_counted_too(self, case, policy):
        merger = merger_of("north", "south", case=case, policy=policy)
        merger.push("north", Insert(A, 1, 5))
        assert merger.push("south", Stable(9)) == [Stable(9)]
        assert removed(merger) == {"north": 1, "south": 0}

    def test_what_the_leader_showed_and_took_back_does_not_count(self, case):
        merger = merger_of("north", "south", case=case)
        merger.push("north", Insert(A, 1, 5))
        merger.push("south", [Insert(A, 1, 5), Adjust(A, 1, 5, 1), Stable(9)])
        assert removed(merger) == {"north": 0, "south": 0}

    def test_what_is_taken_back_later_no_longer_counts(self, case):
        merger = merger_of("north", "south", case=case)
        merger.push("north", Insert(A, 1, 20))
        merger.push("south", Stable(9))
        assert removed(merger)["north"] == 1
        merger.push("north", [Adjust(A, 1, 20, 1), Stable(9)])
        assert removed(merger)["north"] == 0

    def test_one_that_leads_in_the_place_of_one_that_left_has_not_shown_what_that_one_had(self, case):
        merger = merger_of("north", "west", case=case)
        for name in ("north", "west"):
            merger.push(name, Insert(A, 5, 9))
        merger.detach("north")
        merger.attach("south")
        merger.push("south", Stable(7))
        assert removed(merger)["west"] == 1

    def test_the_count_survives_a_dump_and_the_leaving_of_the_input(self, case):
        merger = merger_of("north", "south", case=case)
        merger.push("north", [Insert(A, 1, 20), Insert(B, 1, 20)])
        merger.push("south", Stable(9))
        merger = Merger.load(merger.dump())
        merger.push("north", Adjust(A, 1, 20, 1))
        merger.detach("north")
        merger.attach("north")
        assert removed(merger) == {"north": 1, "south": 0}

    def test_lossy_inputs_remove_nothing_from_one_another(self, case):
        merger = merger_of("north", "south", complete=False)
        merger.push("north", [Insert(A, 1, 5), Stable(9)])
        merger.push("south", Stable(9))
        assert removed(merger) == {"north": 0, "south": 0}

    def test_the_status_says_it_with_the_way_out(self, case):
        merger = merger_of("north", "south", case=case)
        merger.push("north", [Insert(A, 1, 5), Insert(B, 1, 5)])
        merger.push("south", Stable(9))
        told = str(merger.status())
        assert "2 events of north that south does not have were removed; " in told
        assert "inputs that may lose rows are lossy (complete=False, --lossy)" in told


def test_of_repeats_those_count_that_the_leader_never_showed():
    merger = merger_of("north", "south")
    merger.push("north", [Insert(A, 1, 5)] * 3)
    merger.push("south", [Insert(A, 1, 5), Stable(9)])
    assert removed(merger) == {"north": 2, "south": 0}


def test_a_merge_that_generalises_goes_on_counting():
    merger = Merger(on_broken=Generalise())
    for name in ("north", "south"):
        merger.attach(name, properties="keyed")
    merger.push("north", [Insert(A, 1, 20), Insert(C, 12, 20), Insert(C, 12, 21)])
    assert merger.status().case == "R4"
    merger.push("south", [Insert(C, 12, 20), Stable(14)])
    assert removed(merger) == {"north": 2, "south": 0}


class TestHolding:
    def holding(self, merger):
        return [name for name, one in merger.status().inputs.items() if one.holds]

    def test_the_slowest_lossy_input_holds_what_is_final(self):
        merger = merger_of("east", "west", complete=False)
        assert self.holding(merger) == []
        merger.push("east", Stable(9))
        assert self.holding(merger) == ["west"]
        merger.push("west", Stable(5))
        assert self.holding(merger) == ["west"]
        assert "holds what is final" in str(merger.status())
        merger.push("west", Stable(9))
        assert self.holding(merger) == []

    def test_one_that_is_idle_does_not(self):
        merger = merger_of("east", "west", complete=False)
        merger.push("east", Stable(9))
        assert list(merger.idle("west").elements()) == [Stable(9)]
        assert self.holding(merger) == []

    def test_beside_a_complete_input_nobody_does(self):
        merger = merger_of("east", "west", complete=False)
        merger.attach("whole")
        merger.push("whole", Stable(9))
        assert self.holding(merger) == []


@KEYED
@pytest.mark.parametrize("dumped", [False, True])
def test_an_input_differs_in_what_it_guarantees_and_in_what_it_shows(case, dumped):
    merger = merger_of("a", case=case)
    merger.attach("j", 10)
    merger.push("a", [Insert(A, 1, 5), Insert(B, 1, 10), Insert(C, 1, 7), Stable(20)])
    merger.push("j", [Insert(C, 1, 12), Stable(20)])
    if dumped:
        merger = Merger.load(merger.dump())
    found = {one.payload["value"]: one for one in merger.status().disagreements}
    assert {value: (one.input, one.shown, one.since) for value, one in found.items()} == {
        "b": ("j", None, 20),
        "c": ("j", 12, 20),
    }
    assert found["b"].given == 10
    assert merger.status().inputs["j"].disagreements == 2
