"""Recorded inputs in step: in an order that depends on nothing but what they say."""

from anabranch import FOREVER, Batch, Insert, Relation, Stable, difference, in_step
from anabranch.engines.embedded.in_step import merge_in_step
from anabranch.testing.workload import Workload


def readings(*starts: int) -> list[Insert]:
    return [Insert({"reading": start}, start, start + 1) for start in starts]


def relation_of(batches) -> Relation:
    relation = Relation()
    for batch in batches:
        relation.apply(batch)
    return relation


def test_inputs_in_step_take_turns_by_their_last_stable():
    east = [*readings(1, 2), Stable(2), *readings(3, 4), Stable(4)]
    west = [*readings(1), Stable(1), *readings(2), Stable(3)]
    turns = [(name, len(batch)) for name, batch in in_step({"east": [east], "west": [west]}, rows=2)]
    assert turns == [
        ("east", 2),
        ("west", 2),
        ("east", 2),
        ("west", 2),
        ("east", 2),
        ("west", 0),
        ("east", 0),
    ]


def test_in_step_everything_is_said_before_the_end_of_time():
    closed = [*readings(1), Stable(FOREVER)]
    turns = [
        [name, *(type(e).__name__ for e in batch.elements())]
        for name, batch in in_step({"east": [closed], "west": [[], closed], "north": []})
    ]
    assert turns == [
        ["east", "Insert"],
        ["west", "Insert"],
        ["north"],
        ["east", "Stable"],
        ["west", "Stable"],
        ["east"],
        ["west"],
    ]


def test_inputs_in_step_give_the_same_stream_every_time():
    workload = Workload(events=3000, seed=5, active=100, revisions=0.2)
    runs = []
    for _ in range(2):
        inputs = {str(n): workload.replica(n) for n in range(3)}
        runs.append([e for batch in merge_in_step(inputs, rows=100) for e in batch.elements()])
    assert runs[0] == runs[1]
    assert difference(relation_of([Batch.of(runs[0])]), relation_of(workload.replica(0))) is None


def test_inputs_in_step_are_closed_with_the_merge():
    closed = []

    def feed():
        try:
            yield readings(1)
            yield readings(2)
        finally:
            closed.append(True)

    merged = merge_in_step({"east": feed()}, rows=1)
    next(merged)
    merged.close()
    assert closed
