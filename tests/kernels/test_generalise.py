"""A merge that may generalise goes on where a promise is broken, with nothing lost."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.merge import Scenario, played
from quick import cases

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Case,
    EveryChange,
    Fact,
    FinalOnly,
    FirstThenFinal,
    Generalise,
    HalfFrozen,
    Insert,
    Merger,
    Stable,
)
from anabranch.oracle.payload import payload_key
from anabranch.oracle.relation import World

A, B, C = {"value": "a"}, {"value": "b"}, {"value": "c"}
R0 = (Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY)


def merger_of(*names, case=None, policy=None, properties=None, **options) -> Merger:
    merger = Merger(case, policy, on_broken=Generalise(), **options)
    for name in names:
        merger.attach(name, properties=properties)
    return merger


def ends(said) -> list[tuple]:
    world = World()
    assert [world.apply(element) for element in said] == [None] * len(said)
    return sorted(row[1:] for row in world.bag().elements())


class TestMoving:
    def test_the_merge_can_go_on_in_a_more_general_case(self):
        merger = merger_of("a", "b", properties=R0)
        assert merger.push("a", [Insert(A, 1, 5), Insert(B, 3, 9), Stable(2)])[-1] == Stable(2)
        assert merger.push("b", [Insert(A, 1, 5), Adjust(A, 1, 5, 7)]) == []
        assert merger.status().case == "R3"
        assert merger.status().moves == ("R0 to R3 at 2: b is not insert only, by its element 2",)
        assert merger.push("b", [Insert(B, 3, 9), Stable(8)]) == [Adjust(A, 1, 5, 7), Stable(8)]

    def test_an_input_that_promises_less_moves_a_running_merge(self):
        merger = merger_of("a", properties=(Fact.PERFECT, Fact.KEYED))
        merger.push("a", [Insert(A, 1, 5), Insert(B, 3, 9), Stable(2)])
        merger.attach("b")
        assert merger.status().case == "R4"
        assert merger.push("b", [Insert(A, 1, 6), Insert(B, 3, 9), Stable(4)]) == [Stable(4)]
        assert merger.push("b", [Stable(FOREVER)]) == [Adjust(A, 1, 5, 6), Stable(FOREVER)]

    def test_an_input_that_is_refused_moves_nothing(self):
        merger = merger_of("a", properties=R0)
        merger.push("a", Insert(A, 1, 5))
        with pytest.raises(TypeError, match="a guarantee is an int of ticks"):
            merger.attach("b", guarantee=1.5)
        assert (merger.status().case, merger.status().moves, list(merger.declared)) == ("R0", (), ["a"])

    def test_without_leave_to_generalise_it_is_refused(self):
        merger = Merger()
        merger.attach("a", properties=R0)
        merger.push("a", Insert(A, 1, 5))
        with pytest.raises(ValueError, match="R0 is running, and 'b' needs R4"):
            merger.attach("b")
        assert list(merger.inputs) == ["a"]

    @pytest.mark.parametrize("case", [Case.R1, Case.R2, Case.R3, Case.R4], ids=lambda case: case.name)
    @pytest.mark.parametrize("forced", ["R0", "R1", "R2", "R3"])
    @settings(max_examples=cases(15))
    @given(random=st.randoms(use_true_random=False))
    def test_what_was_not_yet_stable_is_right_whatever_breaks(self, forced, case, random):
        """One that is cut off before it mends what it said breaks nothing that a forced case looks at."""
        fault = random.choice(("none", "detach", "restart", "late join")) if forced >= case.name else "none"
        scenario = Scenario.drawn(random, case, fault)
        merger = Merger(forced, on_broken=Generalise())
        world, moves, before, stable_at_break = World(), 0, BEGINNING, BEGINNING
        for out, _ in played(ByName(merger), scenario):
            for element in out:
                assert world.apply(element) is None
            if len(merger.moves) > moves:
                moves, stable_at_break = len(merger.moves), before
            before = merger.frontier
        assert world.stable == FOREVER
        meant = Counter((payload_key(e.payload), e.start, e.end) for e in scenario.events)
        for bag in (ours := world.bag(), meant):
            for row in [row for row in bag if row[1] < stable_at_break]:
                del bag[row]
        assert ours == meant


class TestWhatIsTold:
    """The new kernel knows what each input has shown, how often, and what is out."""

    @pytest.mark.parametrize("policy", [FirstThenFinal(), EveryChange(), HalfFrozen(), FinalOnly()], ids=str)
    def test_repeats_count(self, policy):
        merger = merger_of("a", policy=policy, properties=R0)
        said = []
        for element in (
            Insert(A, 0, 8),
            Insert(A, 0, 1),
            Adjust(A, 0, 1, 2),
            Stable(2),
            Adjust(A, 0, 8, 2),
            Stable(FOREVER),
        ):
            said += merger.push("a", element)
        assert ends(said) == [(0, 2), (0, 2)]
        assert [move.split(" at ")[0] for move in merger.moves] == ["R0 to R2", "R2 to R4"]

    def test_a_key_that_followed_from_a_broken_promise_is_not_relied_on(self):
        merger = merger_of("a", policy=FinalOnly(), properties=R0)
        assert merger.push("a", [Insert(A, 0, 8), Insert(A, 0, 1), Insert(A, 0, 8)]) == []
        merger.push("a", Adjust(A, 0, 8, 0))
        assert ends(merger.push("a", [Insert(A, 0, 3), Stable(FOREVER)])) == [(0, 1), (0, 3), (0, 8)]

    def test_repeats_in_order_of_one_who_promised_a_key_are_known(self):
        merger = merger_of("a", properties=(Fact.PERFECT, Fact.KEYED))
        said = merger.push("a", [Insert(A, 0, 5), Insert(A, 0, 6), Adjust(A, 0, 5, 7), Stable(FOREVER)])
        assert ends(said) == [(0, 6), (0, 7)]
        assert merger.status().case == "R4"

    def test_what_one_input_took_for_the_same_event_comes_out(self):
        merger = merger_of("a", "b", properties=R0)
        assert merger.push("a", Insert(A, 0, 5)) == [Insert(A, 0, 5)]
        assert merger.push("b", Insert(B, 0, 5)) == []
        assert merger.push("a", Insert(B, 0, 5)) == [Insert(B, 0, 5)]
        assert merger.push("b", [Insert(A, 0, 5), Stable(9)]) == [Stable(9)]

    @pytest.mark.parametrize("dumped", [False, True])
    def test_a_joiner_has_shown_what_began_before_its_guarantee(self, dumped):
        merger = merger_of("a", case="R2")
        merger.attach("j", guarantee=5)
        said = merger.push("a", Insert(A, 0, 10))
        said += merger.push("j", [Insert(A, 0, 10), Insert(B, 5, 7), Stable(6)])
        if dumped:
            merger = Merger.load(merger.dump(), on_broken=Generalise())
        said += merger.push("a", [Insert(B, 5, 7), Adjust(B, 5, 7, 8), Stable(5)])
        merger.detach("a")
        said += merger.push("j", [Adjust(B, 5, 7, 8), Stable(FOREVER)])
        assert ends(said) == [(0, 10), (5, 8)]

    def test_a_joiner_whose_guarantee_only_events_have_reached_waits_again(self):
        merger = merger_of("a", case="R2")
        merger.attach("j", guarantee=4)
        said = merger.push("j", [Insert(B, 5, 9)])
        said += merger.push("a", [Insert(B, 5, 9)])
        assert merger.status().inputs["j"].joined
        said += merger.push("a", [Insert(A, 0, 3)])
        assert not merger.status().inputs["j"].joined
        said += merger.push("j", [Stable(6)])
        assert merger.frontier == BEGINNING
        said += merger.push("a", [Stable(FOREVER)])
        assert ends(said) == [(0, 3), (5, 9)]

    @pytest.mark.parametrize("dumped", [False, True])
    def test_one_that_was_made_to_join_has_joined(self, dumped):
        merger = merger_of("a", case="R2")
        merger.attach("j", guarantee=7)
        merger.force_join("j")
        merger.push("a", Insert(A, 0, 9))
        if dumped:
            merger = Merger.load(merger.dump(), on_broken=Generalise())
        merger.push("a", Adjust(A, 0, 9, 8))
        assert merger.push("j", [Insert(A, 0, 8), Stable(3)]) == [Stable(3)]

    def test_what_a_joiner_had_queued_counts_once(self):
        merger = merger_of("a", case="R1")
        merger.attach("j", guarantee=3)
        said = merger.push("j", [Insert(B, 3, 9), Insert(A, 3, 9), Insert(C, 4, 9), Stable(4)])
        said += merger.push("a", [Insert(A, 3, 9), Insert(B, 3, 9), Insert(C, 4, 9)])
        assert [move.split(" at ")[0] for move in merger.moves] == ["R1 to R2"]
        said += merger.push("a", Adjust(C, 4, 9, 5))
        merger.detach("a")
        said += merger.push("j", [Adjust(C, 4, 9, 5), Stable(FOREVER)])
        assert ends(said) == [(3, 9), (3, 9), (4, 5)]

    def test_other_columns_do_not_stand_in_the_way_of_what_is_final(self):
        one, two = {"p": 1, "q": 1}, {"p": 1, "q": 2}
        merger = Merger("R2", FinalOnly(), identity=["p"], on_broken=Generalise())
        merger.attach("a")
        said = merger.push("a", [Insert(one, 0, 5), Insert(two, 0, 6), Adjust(two, 0, 6, 7), Stable(FOREVER)])
        assert ends(said) == [(0, 5), (0, 7)]

    def test_slow_inputs_do_not_disagree_about_what_was_final_before_a_move(self):
        merger = merger_of("a", "b", properties=R0)
        merger.push("a", [Insert(A, 0, 2), Insert(B, 3, 9), Stable(4), Adjust(B, 3, 9, 8), Stable(9)])
        merger.push("b", [Insert(A, 0, 2), Insert(B, 3, 8), Stable(9)])
        assert merger.status().inputs["b"].disagreements == 0


class ByName:
    """A merger as the laws play it."""

    def __init__(self, merger: Merger) -> None:
        self.merger = merger

    def attach(self, name, guarantee=BEGINNING, *, complete=True):
        time = None if guarantee == BEGINNING else guarantee
        return list(self.merger.attach(name, time, complete=complete).elements())

    def detach(self, name):
        return list(self.merger.detach(name).elements())

    def push(self, name, element):
        return self.merger.push(name, element)


@pytest.mark.parametrize("policy", [FirstThenFinal(), EveryChange()], ids=str)
@pytest.mark.parametrize("value", [2.5, 2], ids=["wider", "as it was"])
def test_what_is_out_and_shown_is_known_after_a_column_became_wider(policy, value):
    merger = merger_of("a", "b", properties=R0, policy=policy)
    assert merger.push("a", Insert({"v": 1}, 1, 9)) == [Insert({"v": 1}, 1, 9)]
    assert merger.push("b", Insert({"v": 1}, 1, 9)) == []
    assert len(merger.push("a", Insert({"v": value}, 2, 9))) == 1
    assert merger.push("b", Insert({"v": 7}, 0, 9)) == [Insert({"v": 7}, 0, 9)]
    assert merger.status().case != "R0"
    said = merger.push("a", [Adjust({"v": 1}, 1, 9, 5), Insert({"v": 7}, 0, 9), Stable(FOREVER)])
    assert said == [Adjust({"v": 1}, 1, 9, 5), Stable(FOREVER)]
