"""A merge goes on in a more general case, with nothing lost: the new kernel is told what the old one knew.

For a moment the output is an input of its own: it shows what is out, the inputs show what they have shown,
the output says the stable it had, and leaves. What the new kernel says to that has been said before.
"""

from collections.abc import Mapping

import numpy as np

from anabranch.kernels.merge.nodes import ABSENT, DECIDED, LENGTH, PLACE, START, STATE
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import GIVEN, R3, SHOWN
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.sides import Sides
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.elements import Stable
from anabranch.model.output_policy import FirstThenFinal, HalfFrozen
from anabranch.model.time import BEGINNING


def tell(
    kernel: Ordered | R3 | R4, sides: Sides, given: Batch, shown: Mapping[int, Batch], stable: int
) -> Batch:
    """Let a fresh kernel know what is out, what each input shows, and the stable; a number is free.

    Gives what comes out all the same: what an input has shown may be news to a more general case.
    """
    output = sides.free()
    assert output is not None, "the output needs a number for a moment"
    alone = sides.copied()
    alone.reached[:], alone.guarantee[:] = BEGINNING, BEGINNING
    alone.joined[:], alone.complete[:] = True, True
    alone.attach(output, BEGINNING, 0, complete=True, stable=BEGINNING)
    kernel.widen(alone)
    if isinstance(kernel, Ordered):
        kernel.push(output, given)
        kernel.push(output, Batch.of([Stable(stable)]))
        news = [kernel.push(i, events) for i, events in shown.items()]
    else:
        policy, kernel.policy = kernel.policy, FirstThenFinal()
        kernel.push(output, given)
        kernel.policy = HalfFrozen()
        for i, events in shown.items():
            kernel.push(i, events)
        kernel.push(output, Batch.of([Stable(stable)]))
        kernel.policy = policy
        news = []
    kernel.forget(output)
    kernel.widen(sides)
    return concat(news)


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
