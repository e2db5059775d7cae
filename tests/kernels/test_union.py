"""A union shows what all its inputs show, at once, and promises what all of them have promised."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import cases

from anabranch import BEGINNING, FOREVER, Batch, Insert, Stable
from anabranch.kernels.kernel import Kernel, State
from anabranch.kernels.union import Union
from anabranch.model.origin import Origin
from anabranch.oracle.relation import World
from anabranch.oracle.union import frontier, united
from anabranch.testing.presentations import Habits, present
from anabranch.testing.references import reference

CHANGING = Habits(revisions=0.6, comebacks=0.3, spurious=0.6, stables=0.6)


def stored_and_read_back(union: Union) -> Union:
    version, values, batches = union.saved()
    return Union.load(State(version, json.loads(json.dumps(values)), batches))


@settings(max_examples=cases(50))
@given(count=st.integers(1, 3), random=st.randoms(use_true_random=False))
def test_after_every_push_it_is_the_sum_of_its_inputs_and_keeps_its_promises(count, random):
    streams = {f"i{n}": present(reference(random), random, habits=CHANGING) for n in range(count)}
    kernel: Kernel = Union(streams)
    worlds, output = {name: World() for name in streams}, World()
    while streams:
        name = random.choice(list(streams))
        length = random.choice([len(streams[name]), 4, 1])
        part, streams[name] = streams[name][:length], streams[name][length:]
        if not streams[name]:
            del streams[name]
        for element in part:
            assert worlds[name].apply(element) is None
        for element in kernel.push(name, Batch.of(part)).events:
            assert output.apply(element) is None
        assert not len(kernel.advance(name, worlds[name].stable).events)
        assert sorted(output.rows, key=str) == sorted(united(worlds.values()), key=str)
        assert kernel.frontier == frontier(worlds.values())
        output.apply(Stable(kernel.frontier))
        if random.random() < 0.3:
            kernel = stored_and_read_back(kernel)
    assert kernel.frontier == FOREVER
    assert kernel.report().live == 0


def test_nothing_is_promised_until_every_input_has_promised_something():
    union = Union(["east", "west"])
    union.advance("east", 9)
    assert union.frontier == BEGINNING
    union.advance("west", 4)
    union.advance("west", 2)
    assert union.frontier == 4


def test_rows_keep_their_origin_and_stables_are_left_out():
    batch = Batch.of([Insert({"v": 1}, 0, 5), Stable(3)]).with_origin(Origin(np.array([7, 8])))
    events = Union(["a"]).push("a", batch).events
    assert list(events) == [Insert({"v": 1}, 0, 5)]
    assert events.origin.number.tolist() == [7]
