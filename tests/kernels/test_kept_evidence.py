"""What was shown and not withdrawn stays, whoever shows it no longer, and before any lossy input came."""

import pytest
from kernels.merging import by_identity
from laws.merge import POLICIES

from anabranch import FOREVER, Adjust, Case, FollowLeader, Generalise, Insert, Merger, Quorum, Stable
from anabranch.oracle.indexed_merge import IndexedMerge
from anabranch.oracle.relation import denoted

A = {"value": "A"}
EVENT = Insert(A, 4, 5)


def relation(said: list) -> list[tuple[int, int]]:
    return sorted((start, end) for _, start, end in denoted(said).rows)


class Recorded:
    """A merge of inputs that come and go, with all that came out."""

    def __init__(self, *arguments, **settings) -> None:
        self.merger, self.said = Merger(*arguments, **settings), []

    def attach(self, name, properties=None, *, complete=True) -> None:
        self.said += self.merger.attach(name, properties=properties, complete=complete).elements()

    def push(self, name, *elements) -> None:
        self.said += self.merger.push(name, list(elements))

    def detach(self, name) -> None:
        self.said += self.merger.detach(name).elements()

    def relation(self) -> list[tuple[int, int]]:
        return relation(self.said)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_lossy_input_that_comes_later_takes_nothing_away(policy):
    merge, oracle = Recorded("R4", policy), IndexedMerge(Case.R4, by_identity, policy)
    merge.attach("a")
    merge.push("a", EVENT)
    merge.detach("a")
    merge.attach("b", complete=False)
    merge.push("b", Stable(6), Stable(FOREVER))
    meant = [*oracle.attach("a"), *oracle.push("a", EVENT), *oracle.detach("a")]
    meant += oracle.attach("b", complete=False)
    meant += [out for time in (6, FOREVER) for out in oracle.push("b", Stable(time))]
    assert merge.relation() == relation(meant) == [(4, 5)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_what_a_complete_input_withdrew_or_moved_before_it_left_stays_so(policy):
    merge = Recorded("R4", policy)
    merge.attach("a")
    merge.push("a", EVENT, Adjust(A, 4, 5, 4), Insert(A, 6, 9), Adjust(A, 6, 9, 7))
    merge.detach("a")
    merge.attach("b", complete=False)
    merge.attach("c", complete=False)
    merge.push("b", EVENT, Insert(A, 6, 9))
    merge.detach("b")
    merge.push("c", Stable(FOREVER))
    assert merge.relation() == [(6, 7)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("leaves", [False, True], ids=["is there", "has left"])
def test_r3_knows_what_was_shown_moved_and_withdrawn_when_a_lossy_input_comes(policy, leaves):
    merge = Recorded(policy=policy)
    merge.attach("a", "keyed")
    merge.push("a", Insert(A, 1, 3), Stable(2))
    merge.push("a", EVENT, Insert(A, 6, 9), Adjust(A, 6, 9, 7), Insert(A, 8, 9), Adjust(A, 8, 9, 8))
    if leaves:
        merge.detach("a")
    merge.attach("b", complete=False)
    assert merge.merger.merge.choice.case is Case.R4
    if not leaves:
        merge.detach("a")
    merge.push("b", Insert(A, 8, 9), Stable(FOREVER))
    assert merge.relation() == [(1, 3), (4, 5), (6, 7)]


def test_r3_knows_what_a_restarted_input_withdrew():
    merge = Recorded()
    for name in ("a", "again"):
        merge.attach(name, "keyed")
        merge.push(name, EVENT, Insert(A, 6, 9))
        if name == "a":
            merge.detach(name)
    merge.push("again", Adjust(A, 4, 5, 4), Adjust(A, 6, 9, 7))
    merge.detach("again")
    merge.attach("b", complete=False)
    merge.push("b", Stable(FOREVER))
    assert merge.relation() == [(6, 7)]


@pytest.mark.parametrize("case", ["R0", "R1", "R2"])
@pytest.mark.parametrize("policy", [p for p in POLICIES if not isinstance(p, Quorum | FollowLeader)], ids=str)
def test_a_merge_in_order_knows_what_was_shown_when_a_lossy_input_comes(case, policy):
    facts = {"R0": "strictly increasing", "R1": "deterministic ties", "R2": "perfect"}[case]
    merge = Recorded(policy=policy, on_broken=Generalise())
    merge.attach("a", ["perfect", facts])
    merge.push("a", EVENT, Insert({"value": "B"}, 6, 9))
    assert merge.merger.merge.choice.case is Case[case]
    merge.detach("a")
    merge.attach("b", complete=False)
    merge.push("b", Stable(FOREVER))
    assert merge.relation() == [(4, 5), (6, 9)]


def test_evidence_outlives_a_dump():
    merge = Recorded("R4")
    merge.attach("a")
    merge.push("a", EVENT, Insert(A, 6, 9), Adjust(A, 6, 9, 7))
    merge.detach("a")
    merge.merger = Merger.load(merge.merger.dump())
    merge.attach("b", complete=False)
    merge.push("b", Stable(FOREVER))
    assert merge.relation() == [(4, 5), (6, 7)]
