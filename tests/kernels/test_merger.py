"""`Merger` by itself: what users see of a merge."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest

from anabranch import (
    BEGINNING,
    FOREVER,
    Adjust,
    Attach,
    Batch,
    BrokenPropertyError,
    Drop,
    EveryChange,
    Fact,
    FinalOnly,
    FollowLeader,
    Generalise,
    HalfFrozen,
    Insert,
    InvalidElementError,
    Merger,
    Pace,
    Quarantine,
    Quorum,
    Rule,
    Stable,
    Tagged,
    merge,
    parse,
    source,
    text,
)
from anabranch.engines.embedded.in_step import merge_in_step
from anabranch.oracle.relation import World

A, B = {"value": "a"}, {"value": "b"}
R0 = (Fact.STRICTLY_INCREASING, Fact.INSERT_ONLY)


def merger_of(*names, case=None, policy=None, complete=True, properties=None, **options) -> Merger:
    merger = Merger(case, policy, **options)
    for name in names:
        merger.attach(name, properties=properties, complete=complete)
    return merger


class TestForms:
    """What goes in comes out in the same form."""

    def test_elements_give_elements(self):
        merger = merger_of("a")
        assert merger.push("a", Insert(A, 1, 5)) == [Insert(A, 1, 5)]
        assert merger.push("a", [Stable(3)]) == [Stable(3)]
        assert merger.push("a", iter([Stable(4)])) == [Stable(4)]

    def test_a_batch_gives_a_batch(self):
        out = merger_of("a").push("a", Batch.of([Insert(A, 1, 5)]))
        assert isinstance(out, Batch)
        assert list(out.elements()) == [Insert(A, 1, 5)]

    def test_arrow_gives_arrow(self):
        rows = Batch.of([Insert(A, 1, 5), Stable(2)]).to_arrow()
        assert merger_of("a").push("a", rows).to_pylist() == rows.to_pylist()
        table = merger_of("a").push("a", pa.Table.from_batches([rows]))
        assert isinstance(table, pa.Table)
        assert table.to_pylist() == rows.to_pylist()


class TestChoice:
    """The case is picked from what inputs declare."""

    @pytest.mark.parametrize(
        ("properties", "case"),
        [
            (R0, "R0"),
            ((Fact.PERFECT, Fact.DETERMINISTIC_TIES), "R1"),
            ((Fact.PERFECT, Fact.KEYED), "R2"),
            ((Fact.PERFECT,), "R2"),
            ((Fact.KEYED,), "R3"),
            (None, "R4"),
        ],
    )
    def test_the_narrowest_case_is_picked(self, properties, case):
        merger = merger_of("a", "b", properties=properties)
        assert merger.status().case == case
        assert merger.explain().startswith(case)

    def test_one_input_that_promises_nothing_makes_it_general(self):
        merger = merger_of("a", properties=R0)
        merger.attach("b")
        assert merger.explain().startswith("R4: keyed is not declared for b")

    def test_a_policy_that_waits_for_others_needs_the_index(self):
        merger = merger_of("a", "b", properties=R0, policy=Quorum(fraction=1.0))
        assert merger.status().case == "R3"

    def test_lossy_inputs_are_merged_by_evidence(self):
        merger = merger_of("a", complete=False, properties=R0)
        assert "a is lossy" in merger.explain()
        with pytest.raises(ValueError, match="R0 has no lossy inputs, a is") as error:
            merger_of("a", complete=False, case="R0").push("a", [])
        assert "force R4" in error.value.__notes__[0]


class TestBrokenProperties:
    """An input that breaks what it declared is caught at the element that does."""

    def test_by_default_the_element_is_refused_and_nothing_else(self):
        merger = merger_of("a", "b", properties=R0)
        elements = [Insert(A, 1, 5), Insert(B, 3, 5), Insert(A, 2, 5), Insert(A, 4, 6)]
        with pytest.raises(
            BrokenPropertyError, match="element 3 of input 'a' breaks a declared property"
        ) as error:
            merger.push("a", elements)
        assert list(error.value.output.elements()) == [Insert(A, 1, 5), Insert(B, 3, 5), Insert(A, 4, 6)]
        assert merger.push("b", [Insert(A, 1, 5), Insert(A, 7, 8)]) == [Insert(A, 7, 8)]
        assert merger.status().inputs["a"].refused == 1

    def test_it_can_be_set_aside(self):
        aside = Quarantine()
        merger = merger_of("a", properties=R0, on_broken=aside)
        assert merger.push("a", [Insert(A, 3, 5), Insert(A, 2, 5), Insert(B, 4, 6)]) == [
            Insert(A, 3, 5),
            Insert(B, 4, 6),
        ]
        (violation,) = aside.violations
        assert (violation.rule, violation.position, violation.element) == (
            Rule.BROKEN_PROPERTY,
            2,
            Insert(A, 2, 5),
        )


class TestNames:
    def test_who_is_not_attached_says_nothing(self):
        with pytest.raises(KeyError, match="no input 'b' is attached"):
            merger_of("a").push("b", [])
        with pytest.raises(ValueError, match="'a' is attached"):
            merger_of("a").attach("a")

    @pytest.mark.parametrize("name", [7, b"a", None, ("a", 1)])
    def test_a_name_is_a_text(self, name):
        merger = merger_of("a")
        with pytest.raises(TypeError, match="an input is named by a text") as error:
            merger.attach(name)
        assert repr(str(name)) in error.value.__notes__[0]
        with pytest.raises(TypeError, match="an input is named by a text"):
            merger.play(Batch.of([Tagged(name, Insert(A, 1, 5))]))
        with pytest.raises(TypeError, match="an input is named by a text"):
            merge_in_step({name: [[Stable(1)]]})
        with pytest.raises(TypeError, match="an input is named by a text"):
            merge({name: source("a")})
        assert list(Merger.load(merger.dump()).inputs) == ["a"]


class TestLossyInputs:
    """The replica with the hole."""

    def test_a_complete_replica_with_a_hole_deletes_and_is_seen(self):
        merger = merger_of("a", "b")
        merger.push("a", [Insert(A, 1, 5), Insert(B, 2, 6)])
        assert merger.push("b", [Insert(B, 2, 6), Stable(9)]) == [Adjust(A, 1, 5, 1), Stable(9)]
        merger.push("a", Stable(9))
        status = merger.status()
        assert status.inputs["a"].disagreements == 1
        assert str(status.disagreements[0]) == (
            "a has {'value': 'a'} [1, 5) where the output has none (noticed at 9)"
        )

    def test_a_lossy_one_never_does(self):
        merger = merger_of("a", "b", complete=False)
        merger.push("a", [Insert(A, 1, 5), Stable(9)])
        assert merger.push("b", [Insert(B, 2, 6), Stable(9)]) == [Insert(B, 2, 6), Stable(9)]
        status = merger.status()
        assert [(one.holes, one.filled) for one in status.inputs.values()] == [(1, 1), (1, 1)]
        assert status.inputs["a"].disagreements == 0

    def test_what_was_heard_to_be_removed_is_removed(self):
        merger = merger_of("a", "b", complete=False)
        merger.push("a", [Insert(A, 1, 5)])
        merger.push("b", [Insert(A, 1, 5), Adjust(A, 1, 5, 1)])
        merger.push("a", Stable(9))
        assert merger.push("b", Stable(9)) == [Adjust(A, 1, 5, 1), Stable(9)]

    def test_a_correction_counts_though_its_event_was_never_heard(self):
        merger = merger_of("a", "b", complete=False)
        merger.push("a", [Insert(A, 1, 5), Stable(9)])
        assert merger.push("b", [Adjust(A, 1, 5, 7), Stable(9)]) == [Adjust(A, 1, 5, 7), Stable(9)]

    def test_a_complete_input_beside_lossy_ones_decides(self):
        merger = merger_of("a", "b", complete=False)
        merger.attach("whole")
        merger.push("a", [Insert(A, 1, 5), Stable(9)])
        merger.push("b", [Stable(9)])
        assert merger.frontier == BEGINNING
        assert merger.push("whole", [Insert(B, 2, 6), Stable(9)])[-2:] == [Adjust(A, 1, 5, 1), Stable(9)]

    def test_late_elements_are_counted_and_can_be_seen(self):
        aside = Quarantine()
        merger = merger_of("a", "b", complete=False, pace=Pace.FASTEST, on_late=aside)
        merger.push("a", [Insert(A, 1, 5), Stable(9)])
        assert merger.push("b", [Insert(B, 2, 6)]) == []
        (violation,) = aside.violations
        assert violation.message == (
            "element 1 of input 'b' is late: what a lossy input shows comes before the output is stable "
            "beyond its start; this one starts at 2, the output is stable until 9"
        )
        assert merger.status().inputs["b"].late == 1

    def test_a_lossy_input_guarantees_nothing(self):
        with pytest.raises(ValueError, match="a lossy input guarantees nothing"):
            Merger().attach("a", guarantee=5, complete=False)


class TestComingAndGoing:
    def test_all_but_one_may_die(self):
        merger = merger_of("a", "b", "c")
        merger.push("a", [Insert(A, 1, 5), Stable(1)])
        merger.detach("a")
        merger.push("b", [Insert(A, 1, 7)])
        merger.detach("b")
        assert merger.push("c", [Insert(A, 1, 6), Stable(9)]) == [Adjust(A, 1, 5, 6), Stable(9)]
        assert merger.status().inputs["a"].attached is False

    def test_a_joiner_leads_when_its_guarantee_is_reached(self):
        merger = merger_of("a")
        merger.push("a", [Insert(A, 1, 5)])
        merger.attach("b", guarantee=6)
        assert merger.push("b", [Insert(B, 6, 9), Stable(7)]) == [Insert(B, 6, 9)]
        assert not merger.status().inputs["b"].joined
        assert merger.push("a", Stable(6)) == [Stable(6), Stable(7)]
        assert merger.status().inputs["b"].joined

    def test_of_those_who_are_equally_far_the_first_to_attach_leads(self):
        merger = merger_of("a", "b", policy=FollowLeader())
        merger.detach("a")
        merger.attach("c")
        assert merger.push("c", [Stable(1), Insert(A, 2, 5)]) == [Stable(1), Insert(A, 2, 5)]
        assert merger.push("b", [Stable(1), Insert(B, 2, 5)]) == [Insert(B, 2, 5)]
        assert merger.push("c", Insert(B, 3, 5)) == []

    def test_a_stuck_merge_says_so_and_has_a_way_out(self):
        merger = merger_of("a")
        merger.attach("b", guarantee=6)
        merger.push("b", [Insert(B, 6, 9), Stable(7)])
        merger.detach("a")
        assert "force_join('b')" in merger.status().stuck
        assert list(merger.force_join("b").elements()) == [Stable(7)]
        assert merger.status().stuck is None

    def test_a_recording_is_played(self):
        lines = parse(
            "a: attach\na: + x [1, 5)\nb: + x [1, 6)\na: detach\nb: | 3\n"
            "a: attach from 2\na: + x [1, 6)\nb: | 8"
        )
        out = Merger().play(Batch.of(lines))
        assert text(list(out.elements())) == "+ x [1, 5)\n| 3\n~ x [1, 5) -> [1, 6)\n| 8"

    def test_a_recording_attaches_lossy_inputs_as_the_caller_does(self):
        merger = Merger()
        said = [Tagged("a", Attach()), Tagged("a", Insert(A, 1, 5)), Tagged("a", Stable(2))]
        out = merger.play(Batch.of(said), attach=partial(merger.attach, complete=False))
        assert list(out.elements()) == [Insert(A, 1, 5), Stable(2)]
        assert not merger.status().inputs["a"].complete

    def test_what_came_out_before_a_recording_broke_is_with_the_error(self):
        lines = parse("a: + x [1, 5)\nb: + y [1, 6)\na: | 9\na: + z [3, 7)\nb: | 9")
        with pytest.raises(InvalidElementError) as error:
            Merger().play(Batch.of(lines))
        assert text(list(error.value.output.elements())) == "+ x [1, 5)\n+ y [1, 6)"


class TestPolicies:
    def test_final_only_says_nothing_twice(self):
        merger = merger_of("a", policy=FinalOnly())
        assert merger.push("a", [Insert(A, 1, 5), Adjust(A, 1, 5, 7), Stable(6)]) == [Stable(1)]
        assert merger.frontier == 1
        assert merger.push("a", Stable(8)) == [Insert(A, 1, 7), Stable(8)]

    def test_half_frozen_waits_for_the_start(self):
        merger = merger_of("a", policy=HalfFrozen(lag=2))
        assert merger.push("a", [Insert(A, 1, 5), Stable(3)]) == [Stable(1)]
        assert merger.push("a", [Stable(4)]) == [Insert(A, 1, 5), Stable(2)]

    def test_every_change_is_forwarded(self):
        merger = merger_of("a", "b", policy=EveryChange())
        merger.push("a", Insert(A, 1, 5))
        merger.push("b", Insert(A, 1, 6))
        assert merger.push("a", Adjust(A, 1, 5, 8))[-1].end == 8

    def test_a_quorum_is_the_share_as_it_is_written(self):
        for places in (1, 2, 3):
            for parts in range(1, 10**places + 1):
                quorum = Quorum(fraction=parts / 10**places)
                for attached in range(1, 100):
                    assert quorum.votes(attached) == -(-parts * attached // 10**places)

    def test_a_quorum_of_thirds_is_whole(self):
        assert [Quorum(fraction=parts / 3).votes(99) for parts in (1, 2, 3)] == [33, 66, 99]

    def test_seven_of_twenty_five_are_28_percent(self):
        merger = merger_of(*map(str, range(25)), policy=Quorum(fraction=0.28))
        said = [merger.push(str(n), Insert(A, 1, 5)) for n in range(8)]
        assert said == [[]] * 6 + [[Insert(A, 1, 5)], []]

    def test_a_policy_checks_itself(self):
        with pytest.raises(ValueError, match="lags by 0 ticks or more"):
            HalfFrozen(lag=-1)
        with pytest.raises(ValueError, match="a share above 0 and at most 1"):
            Quorum(fraction=1.5)


def test_in_r0_payloads_need_not_be_told_apart():
    spans = pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval())
    rows = pa.record_batch({"kind": ["insert"] * 2, "start": [1, 2], "end": [5, 6], "span": spans})
    assert merger_of("a", "b", case="R0").push("a", rows).column("span") == spans
    with pytest.raises(TypeError, match="'span' has type month_day_nano_interval"):
        merger_of("a", "b", case="R2").push("a", rows)


class TestStatus:
    def test_who_leads_and_lags_is_shown(self):
        merger = merger_of("a", "b")
        merger.push("a", [Insert(A, 1, 5), Insert(B, 2, 6), Stable(4)])
        merger.push("b", [Insert(A, 1, 5), Stable(2)])
        status = merger.status()
        assert (status.inserts, status.adjusts, status.stables, status.live) == (2, 0, 1, 2)
        assert (status.inputs["a"].share, status.inputs["b"].lag) == (1.0, 2)
        assert status.as_dict()["inputs"]["a"]["led"] == 3
        assert "a      4       0    3         100%" in str(status)

    def test_it_says_what_differs_where_it_moved_and_why_it_is_stuck(self):
        merger = Merger(on_broken=Generalise())
        for name in ("a", "b"):
            merger.attach(name, properties="keyed")
        merger.push("a", [Insert(A, 1, 5), Insert(B, 7, 9), Insert(B, 7, 8), Stable(6)])
        merger.push("b", Stable(6))
        for name in ("a", "b"):
            merger.detach(name)
        merger.attach("c", guarantee=9)
        status = merger.status()
        told = [*map(str, status.disagreements), *status.moves, status.stuck]
        assert len(told) == 3
        assert str(status).splitlines()[-3:] == told

    def test_a_merge_in_order_remembers_nothing_for_slow_inputs(self):
        merger = merger_of("a", "b", properties=R0)
        merger.push("a", [Insert(A, 1, 5), Stable(9)])
        assert (merger.status().remembered, merger.status().unchecked) == (0, 0)

    def test_nothing_is_held_when_all_have_ended(self):
        merger = merger_of("a", "b")
        for name in ("a", "b"):
            merger.push(name, [Insert(A, 1, FOREVER), Stable(FOREVER)])
        assert (merger.status().live, merger.status().remembered) == (0, 0)

    def test_what_is_remembered_for_slow_inputs_is_bounded(self):
        merger = merger_of("a", "b", remember=10)
        for start in range(100):
            merger.push("a", [Insert(A, start, start + 1), Stable(start)])
        status = merger.status()
        assert status.remembered == 10
        assert status.unchecked > 80


class TestDumping:
    def test_bytes_that_are_not_a_state_are_refused(self):
        with pytest.raises(ValueError, match="a state begins with"):
            Merger.load(b"something else")
        with pytest.raises(ValueError, match=r"these \d+ bytes were changed"):
            Merger.load(merger_of("a").dump()[:-3])

    def test_everything_is_there_again(self):
        merger = merger_of("a", "b", policy=Quorum(fraction=0.7, lag=1), identity=["value"], on_broken=Drop())
        merger.push("a", [Insert(A, 1, 5), Insert(B, 2, FOREVER), Stable(4)])
        merger.push("b", [Insert(B, 2, 8), Stable(9)])
        merger.detach("b")
        merger.attach("b", guarantee=20)
        again = Merger.load(merger.dump())
        assert replace(again.status(), bytes=0) == replace(merger.status(), bytes=0)
        assert again.explain() == merger.explain()
        assert again.dump() == merger.dump()
        for one in (merger, again):
            one.push("a", Stable(30))
        assert replace(again.status(), bytes=0) == replace(merger.status(), bytes=0)

    def test_a_merge_without_payload_columns_is_dumped_too(self):
        merger = merger_of("a")
        merger.push("a", [Insert({}, 1, 5), Insert({}, 1, 5)])
        again = Merger.load(merger.dump())
        assert again.push("a", Stable(9)) == [Stable(9)]
        assert again.status().inserts == 2


class TestSettings:
    """What a merge is made with is checked when it is made."""

    @pytest.mark.parametrize(
        ("settings", "wrong"),
        [
            ({"case": "R7"}, "a case is one of R0, R1, R2, R3, R4, 'R7' is none"),
            ({"policy": 3}, "policy takes a value of OutputPolicy, not 3"),
            ({"policy": FinalOnly}, "policy takes a value of OutputPolicy, not <class"),
            ({"pace": "fastest"}, "pace takes a value of Pace, not 'fastest'"),
            ({"identity": "sensor"}, "identity is a list of column names, 'sensor' is one name"),
            ({"on_invalid": "drop"}, "on_invalid is Raise(), Drop() or Quarantine(), not 'drop'"),
            ({"on_invalid": Generalise()}, "on_invalid is Raise(), Drop() or Quarantine()"),
            ({"remember": -1}, "a merge remembers 0 events or more, and fewer than"),
            ({"remember": "x"}, "remember takes a value of int, not 'x'"),
        ],
    )
    def test_a_wrong_one_is_refused(self, settings, wrong):
        with pytest.raises((TypeError, ValueError)) as error:
            Merger(**settings)
        assert wrong in str(error.value)

    def test_facts_may_be_named(self):
        assert merger_of("a", properties=["keyed"]).status().case == "R3"
        assert merger_of("a", properties="keyed").status().case == "R3"
        with pytest.raises(ValueError, match="'nonsense' is none") as error:
            merger_of("a", properties=["nonsense"])
        assert "insert only" in error.value.__notes__[0]

    def test_a_lag_is_a_number_of_ticks(self):
        with pytest.raises(TypeError, match="the lag of a policy is an int of ticks"):
            HalfFrozen(lag=1.5)

    def test_a_lag_that_is_a_length_of_time_is_for_those_who_know_how_long_a_tick_is(self):
        policy = HalfFrozen(lag="90 seconds")
        assert (str(policy), policy) == ("half-frozen, 1 minute 30 seconds behind", HalfFrozen(lag="PT1M30S"))
        merger = merger_of("a", policy=policy)
        with pytest.raises(
            ValueError, match="counted in ticks, the lag of the policy is 1 minute 30 seconds"
        ):
            merger.push("a", Insert(A, 3, 9))
        assert merger.status().inputs["a"].elements == 0
        with pytest.raises(ValueError, match="lags by 0 or more, not by -2 seconds"):
            HalfFrozen(lag=timedelta(seconds=-2))

    def test_a_state_that_cannot_generalise_is_not_loaded_to(self):
        merger = merger_of("a", case="R0")
        merger.push("a", Insert(A, 3, 9))
        with pytest.raises(ValueError, match="R0 kept nothing to generalise from"):
            Merger.load(merger.dump(), on_broken=Generalise())

    def test_a_damaged_state_is_refused_wherever_it_is_damaged(self):
        merger = merger_of("a")
        merger.push("a", [Insert(A, 3, 9), Stable(4)])
        data = merger.dump()
        for place in range(0, len(data), 97):
            damaged = bytearray(data)
            damaged[place] ^= 1
            with pytest.raises(ValueError, match="a state "):
                Merger.load(bytes(damaged))


def test_lossy_inputs_that_end_alike_end_right_whatever_they_went_through():
    """An end that one input left and another is still at must not fall back to one that nobody is at."""
    merger = merger_of("a", "b", complete=False)
    said = []
    for line in (
        "a: + b [0, 5)",
        "a: ~ b [0, 5) -> [0, 0)",
        "a: + b [0, 7)",
        "b: + b [0, 4)",
        "b: ~ b [0, 4) -> [0, ∞)",
        "b: ~ b [0, ∞) -> [0, 9)",
        "b: | ∞",
        "a: ~ b [0, 7) -> [0, 9)",
        "a: ~ b [0, 9) -> [0, ∞)",
        "a: | 7",
        "a: ~ b [0, ∞) -> [0, 9)",
        "a: | ∞",
    ):
        (item,) = parse(line)
        said += merger.push(item.input, item.element)
    world = World()
    assert [world.apply(element) for element in said] == [None] * len(said)
    assert [row[1:] for row in world.bag()] == [(0, 9)]
