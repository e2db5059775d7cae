"""A push that is refused for its columns leaves a merge as it was, whatever holds the values before it."""

import pyarrow as pa
import pytest

from anabranch import (
    Case,
    FinalOnly,
    FirstThenFinal,
    Generalise,
    Insert,
    InvalidElementError,
    Merger,
    Quarantine,
    Stable,
)
from anabranch.model.schema import SchemaError

LONG = 2**53 + 1


def merger_of(case, policy, *, moves):
    merger = Merger(case, policy, on_broken=Generalise() if moves else None)
    merger.attach("east")
    merger.attach("late", guarantee=50)
    return merger


ORDERED = (Case.R0, Case.R1, Case.R2)
MERGES = [
    (case, policy, moves, speaker)
    for case in Case
    for policy in (FirstThenFinal(), FinalOnly())
    for moves in (False, True)
    for speaker in ("east", "late")
    if moves or speaker == "late" or case not in ORDERED  # else nothing is held
]


@pytest.mark.parametrize(("case", "policy", "moves", "speaker"), MERGES, ids=str)
def test_what_is_refused_for_its_type_does_not_refuse_what_follows(case, policy, moves, speaker):
    merger, beside = (merger_of(case, policy, moves=moves) for _ in range(2))
    for one in (merger, beside):
        one.push(speaker, [Insert({"v": LONG}, 60, 70)])
    before = merger.dump()
    for refused in ([Insert({"v": 0.5}, 61, 70)], [Insert({"v": "x"}, 61, 70), Stable(61)]):
        with pytest.raises(SchemaError, match="'v'"):
            merger.push(speaker, refused)
        assert merger.dump() == before
    rest = [Insert({"v": 7}, 61, 70), Stable(61), Insert({"v": LONG}, 63, 71), Stable(80)]
    for element in rest:
        assert merger.push(speaker, element) == beside.push(speaker, element)
    assert merger.dump() == beside.dump()


def batch(value, kind):
    return pa.record_batch({"kind": ["insert"], "start": [1], "end": [9], "v": pa.array([value], kind)})


def test_a_large_unsigned_number_is_not_made_signed_and_neither_is_what_follows():
    merger = Merger()
    merger.attach("east")
    merger.push("east", batch(2**63 + 1, pa.uint64()))
    with pytest.raises(SchemaError, match="cannot be int64 without loss"):
        merger.push("east", batch(-1, pa.int64()))
    assert merger.push("east", batch(1, pa.uint64())).column("v").to_pylist() == [1]
    assert merger.push("east", Stable(1)) == [Stable(1)]


def test_a_push_that_is_refused_for_an_element_does_not_widen_a_column():
    merger = Merger()
    merger.attach("east")
    merger.push("east", [Insert({"v": 1}, 1, 5), Stable(4)])
    with pytest.raises(InvalidElementError):
        merger.push("east", [Insert({"v": 0.5}, 2, 5)])
    assert len(merger.push("east", Insert({"v": LONG}, 6, 7))) == 1


def test_nobody_hears_of_elements_whose_batch_is_refused():
    aside = Quarantine()
    merger = Merger(on_invalid=aside)
    merger.attach("east")
    merger.push("east", [Insert({"v": LONG}, 1, 5), Stable(4)])
    with pytest.raises(SchemaError):
        merger.push("east", [Insert({"v": 0.5}, 2, 5)])
    assert not aside.violations
    assert merger.status().inputs["east"].refused == 0


def test_a_merge_that_was_dumped_knows_which_columns_have_had_values():
    merger = Merger()
    merger.attach("east")
    merger.push("east", batch(None, pa.string()))
    restored = Merger.load(merger.dump())
    assert restored.push("east", batch(1, pa.int64())).schema.field("v").type == pa.int64()
    with pytest.raises(SchemaError, match="was int64 and is now string"):
        Merger.load(restored.dump()).push("east", batch("x", pa.string()))


def test_replicas_in_two_time_zones_are_one_stream():
    merger = Merger()
    merger.attach("east")
    merger.attach("west")
    merger.push("east", batch(0, pa.timestamp("us", "UTC")))
    assert len(merger.push("west", batch(0, pa.timestamp("ms", "Europe/Berlin")))) == 0
