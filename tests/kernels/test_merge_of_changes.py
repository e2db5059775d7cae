"""Replicas of changes are merged as rows; one that begins with a snapshot meets the merge first."""

import numpy as np

from anabranch import FOREVER, Adjust, EveryChange, Insert, OutputPolicy, Rule
from anabranch.kernels.changes import changes
from anabranch.kernels.kernel import Joinable, Shows
from anabranch.kernels.merge.merge import Merge
from anabranch.kernels.merge_changes import MergeChanges
from anabranch.kernels.store.saved import from_bytes, to_bytes
from anabranch.model.op import Op
from anabranch.model.rows import rows_of

A, B, C = {"id": 1, "v": "a"}, {"id": 1, "v": "b"}, {"id": 2, "v": "c"}


def of(*said):
    ops, times, rows = zip(*said, strict=True)
    return changes(np.array(ops), np.array(times), rows_of(rows))


def kernel(*names: str, policy: OutputPolicy | None = None) -> MergeChanges:
    made = MergeChanges(["id"], Merge("R3", policy))
    for name in names:
        made.attach(name)
    return made


def restored(made: MergeChanges) -> MergeChanges:
    return MergeChanges.load(from_bytes(to_bytes({"": made.saved()}))[""])


def test_what_one_replica_has_said_another_does_not_say_again():
    merge = kernel("a", "b")
    assert list(merge.push("a", of((Op.INSERT, 3, A))).events) == [Insert(A, 3, FOREVER)]
    assert not len(merge.push("b", of((Op.INSERT, 3, A))).events)
    merge = restored(merge)
    assert list(merge.push("b", of((Op.UPDATE, 5, B))).events) == [Insert(B, 5, FOREVER)]
    assert list(merge.advance("b", 7).events) == [Adjust(A, 3, FOREVER, 5)]
    assert (merge.frontier, merge.agreed, merge.held) == (7, 7, False)


def test_a_change_that_does_not_fit_is_refused_under_the_name_of_its_replica():
    merge = kernel("a", "b")
    (refused,) = merge.push("b", of((Op.UPDATE, 3, A))).refused
    assert (refused.rule, refused.name) == (Rule.NO_SUCH_ROW, "b")
    assert merge.merge.status().inputs["b"].refused == 1


def test_a_snapshot_that_nobody_knows_better_begins_alone_and_waits_for_one_who_comes():
    merge = kernel("a", policy=EveryChange())
    merge.begins("a", 9)
    assert not len(merge.push("a", of((Op.SNAPSHOT, 9, A))).events)
    assert list(merge.settle().events) == [Insert(A, 9, FOREVER)]
    assert merge.snapshots() == {"a": (9, 1)}
    merge.attach("b")
    assert list(merge.begins("b").events) == [Adjust(A, 9, FOREVER, 9)]


def test_a_snapshot_takes_its_starts_from_those_who_know():
    merge = kernel("a", "b")
    merge.push("a", of((Op.INSERT, 3, A), (Op.INSERT, 4, C)))
    merge.begins("b", 9)
    merge.push("b", of((Op.SNAPSHOT, 9, A), (Op.SNAPSHOT, 9, C)))
    merge = restored(merge)
    for name in ("a", "b"):
        assert not len(merge.advance(name, 20).events)
    merge.detach("a")
    assert list(merge.push("b", of((Op.UPDATE, 25, B))).events) == [Insert(B, 25, FOREVER)]
    assert list(merge.advance("b", 30).events) == [Adjust(A, 3, FOREVER, 25)]
    assert merge.snapshots() == {}


def test_it_is_a_kernel_whose_inputs_come_and_go():
    merge = kernel("a")
    assert isinstance(merge, Joinable)
    assert isinstance(merge, Shows)
    merge.push("a", of((Op.INSERT, 3, A)))
    merge.advance("a", FOREVER)
    assert (merge.report().live, merge.frontier) == (0, FOREVER)
