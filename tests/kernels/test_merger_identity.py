"""Columns that tell events apart, the others being carried along from the copy that is out."""

import pytest

from anabranch import Adjust, Batch, Fact, Insert, Merger, Stable
from anabranch.model.batch import concat
from anabranch.model.schema import SchemaError

A = {"value": "a"}


def merger_of(*names, case=None, properties=None, **options) -> Merger:
    merger = Merger(case, **options)
    for name in names:
        merger.attach(name, properties=properties)
    return merger


class TestIdentity:
    """What identifies an event is a choice."""

    def test_other_columns_are_carried_along_from_the_copy_that_is_out(self):
        near, far = {"sensor": 7, "signal": -40}, {"sensor": 7, "signal": -90}
        merger = merger_of("a", "b", identity=["sensor"])
        assert merger.push("a", Insert(near, 1, 5)) == [Insert(near, 1, 5)]
        assert merger.push("b", [Insert(far, 1, 8), Stable(9)]) == [Adjust(near, 1, 5, 8), Stable(9)]

    def test_without_a_choice_they_are_two_events(self):
        near, far = {"sensor": 7, "signal": -40}, {"sensor": 7, "signal": -90}
        merger = merger_of("a", "b")
        merger.push("a", Insert(near, 1, 5))
        assert merger.push("b", Insert(far, 1, 8)) == [Insert(far, 1, 8)]

    def test_a_column_that_is_not_there_is_named(self):
        with pytest.raises(SchemaError, match=r"needs column .seq., which the payload lacks"):
            merger_of("a", identity=["seq"]).push("a", Insert(A, 1, 5))

    def test_a_batch_that_is_refused_for_it_has_changed_nothing(self):
        merger = merger_of("a", identity=["seq"])
        with pytest.raises(SchemaError):
            merger.push("a", [Insert(A, 1, 5), Stable(9)])
        assert merger.status().inputs["a"].elements == 0
        right = Insert({"seq": 7, **A}, 1, 5)
        assert merger.push("a", [right, Stable(9)]) == [right, Stable(9)]

    def test_in_order_too(self):
        merger = merger_of("a", "b", identity=["sensor"], properties=(Fact.PERFECT, Fact.KEYED))
        merger.push("a", Insert({"sensor": 7, "signal": -40}, 1, 5))
        assert merger.push("b", Insert({"sensor": 7, "signal": -90}, 1, 5)) == []


def near(sensor: int) -> dict:
    return {"sensor": sensor, "signal": -40}


def far(sensor: int) -> dict:
    return {"sensor": sensor, "signal": -90}


@pytest.mark.parametrize("case", ["R1", "R2", "R3", "R4"])
class TestJoiners:
    """What waits for a joiner is told apart by the same columns."""

    @pytest.mark.parametrize("pushes", [1, 2])
    @pytest.mark.parametrize("dumped", [False, True])
    def test_what_an_input_shows_before_it_joins_is_no_second_event(self, case, pushes, dumped):
        merger = merger_of("a", case=case, identity=["sensor"])
        merger.attach("j", guarantee=5)
        said = []
        elements = [Insert(far(1), 5, 9), Insert(far(2), 5, 9), Insert(far(3), 6, 9), Stable(6)]
        for begin in range(0, 4, 4 // pushes):
            said += merger.push("j", elements[begin : begin + 4 // pushes])
            if dumped:
                merger = Merger.load(merger.dump())
        said += merger.push("a", [Insert(near(1), 5, 9), Insert(near(2), 5, 9), Insert(near(3), 6, 9)])
        said += merger.push("a", [Stable(9)])
        out = [element for element in said if isinstance(element, Insert)]
        assert sorted((e.payload["sensor"], e.start) for e in out) == [(1, 5), (2, 5), (3, 6)]
        assert not [element for element in said if isinstance(element, Adjust)]
        assert merger.frontier == 9


def test_batches_that_are_told_apart_alike_stay_so_when_they_are_put_together():
    parts = [Batch.of([Insert(one(1), 5, 9), Stable(3)]).told_apart_by(["sensor"]) for one in (near, far)]
    whole = concat([*parts, Batch.of([])])
    assert (whole.identities[0] == whole.identities[2]).all()
    assert (whole.identities == whole.told_apart_by(["sensor"]).identities).all()
    by_all = concat([parts[0], Batch.of([Insert(far(1), 5, 9)])])
    assert (by_all.identities == Batch.of(by_all.elements()).identities).all()
