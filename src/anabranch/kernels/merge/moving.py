"""A merge goes on in a more general case, with nothing lost: the new kernel is told what the old one knew.

For a moment the output is an input of its own: it shows what is out, says the stable it had, and leaves; the
inputs show what they have shown. What comes out at that is what the old case took for something else.
"""

from collections.abc import Mapping

import numpy as np

from anabranch.kernels.merge.nodes import ABSENT, DECIDED, FORGOTTEN, LENGTH, PLACE, START, STATE
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import GIVEN, R3, SHOWN
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.sides import Sides
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.elements import Stable
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy
from anabranch.model.time import BEGINNING


def tell(
    kernel: R3 | R4,
    sides: Sides,
    given: Batch,
    shown: Mapping[int, Batch],
    stable: int,
    reaction: OutputPolicy,
) -> Batch:
    """Let a fresh kernel know what is out, the stable, and what each input shows; a number is free.

    What has an end before the stable is final and need not be told. Gives what the policy ``reaction`` lets
    out at what inputs show.
    """
    policy = kernel.policy
    output = _let_the_output_speak(kernel, sides)
    kernel.policy = FirstThenFinal()
    kernel.push(output, given)
    kernel.push(output, Batch.of([Stable(stable)]))
    kernel.policy = reaction
    news = [kernel.push(i, events) for i, events in shown.items()]
    kernel.policy = policy
    kernel.nodes.queue[FORGOTTEN] = stable
    kernel.forget(output)
    kernel.widen(sides)
    return concat(news)


def tell_in_order(
    kernel: Ordered, old: Ordered, sides: Sides, given: Batch, shown: Mapping[int, Batch]
) -> Batch:
    """Let a fresh kernel of inserts in order go on from another; a number is free.

    Of what is out and shown only events of the latest start matter, and of an input only those that it has
    said since it joined. Gives what comes out at what inputs show.
    """
    output = _let_the_output_speak(kernel, sides)
    news = []
    if old.latest >= old.stable:
        kernel.push(output, given.take(given.start == old.latest))
        for i, events in shown.items():
            if sides.joined[i] and old.said.start[i] == old.latest:
                news.append(
                    kernel.push(
                        i, events.take(np.flatnonzero(events.start == old.latest)[: old.said.times[i]])
                    )
                )
    kernel.forget(output)
    kernel.widen(sides)
    kernel.stable, kernel.latest, kernel.queues = old.stable, old.latest, old.queues
    for new, known in zip(kernel.said, old.said, strict=True):
        new[:] = known
    return concat(news)


def _let_the_output_speak(kernel: Ordered | R3 | R4, sides: Sides) -> int:
    """A number for the output, where all have joined, promise nothing and have said no stable."""
    output = sides.free()
    assert output is not None, "the output needs a number for a moment"
    alone = sides.copied()
    alone.reached[:], alone.guarantee[:] = BEGINNING, BEGINNING
    alone.joined[:], alone.complete[:], alone.keyed[:] = True, True, False
    alone.attach(output, BEGINNING, 0, complete=True, stable=BEGINNING)
    kernel.widen(alone)
    return output


def known_to(kernel: R3) -> tuple[Batch, dict[int, Batch]]:
    """The events that are out and not final, and those that each input shows."""
    nodes = kernel.nodes
    live = nodes.in_order()[0][int(nodes.queue[LENGTH]) :]
    cells = nodes.cells[live]
    assert (cells[:, STATE] != DECIDED).all()

    def events(column: int) -> Batch:
        there = cells[:, column] != ABSENT
        some = cells[there]
        nothing = np.zeros(len(some), np.int64)
        kinds = np.full(len(some), Kind.INSERT, np.int8)
        payload = kernel.payloads.at(some[:, PLACE])
        batch = Batch(kinds, some[:, START], some[:, column], nothing, payload)
        return batch.identified(np.ascontiguousarray(some[:, :2]).view(np.uint64))

    attached = np.flatnonzero(kernel.sides.attached).tolist()
    return events(GIVEN), {i: events(SHOWN + i) for i in attached}
