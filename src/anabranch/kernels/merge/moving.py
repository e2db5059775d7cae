"""A merge goes on in a more general case, with nothing lost: the new kernel is told what the old one knew.

For a moment the output is an input of its own: it shows what is out, says the stable it had, and leaves; the
inputs show what they have shown. What comes out at that is what the old case took for something else. As the
output leaves, it corrects what no input shows any more, and shows what those showed that have left before:
nobody says so again, and it is evidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.merge.nodes import ABSENT, DECIDED, FORGOTTEN, LENGTH, PLACE, START, STATE
from anabranch.kernels.merge.ordered import Ordered
from anabranch.kernels.merge.r3 import GIVEN, LEFT, R3, SHOWN
from anabranch.kernels.merge.r4 import R4
from anabranch.kernels.merge.sides import Sides
from anabranch.model.batch import Batch, Kind, concat
from anabranch.model.elements import Stable
from anabranch.model.output_policy import FirstThenFinal, OutputPolicy
from anabranch.model.time import BEGINNING


@dataclass(frozen=True, slots=True)
class Known:
    """What R3 knows of events that are not final."""

    given: Batch
    """The events that are out."""
    shown: dict[int, Batch]
    """Those that each input shows."""
    evidence: list[Batch]
    """What inputs have moved or taken back and the output has not; then what inputs that have left showed, as
    far as no other speaks for them."""


def tell(
    kernel: R3 | R4,
    sides: Sides,
    given: Batch,
    shown: Mapping[int, Batch],
    stable: int,
    reaction: OutputPolicy,
    evidence: Sequence[Batch] = (),
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
    for elements in evidence:
        kernel.push(output, elements)
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
            if sides.joined[i] and old.last.start[i] == old.latest:
                news.append(
                    kernel.push(
                        i, events.take(np.flatnonzero(events.start == old.latest)[: old.last.number[i]])
                    )
                )
    kernel.forget(output)
    kernel.widen(sides)
    kernel.stable, kernel.latest, kernel.queues, kernel.keys = old.stable, old.latest, old.queues, old.keys
    for new, known in zip(kernel.last, old.last, strict=True):
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


def known_to(kernel: R3) -> Known:
    """What R3 knows of the events that are not final."""
    nodes = kernel.nodes
    live = nodes.in_order()[0][int(nodes.queue[LENGTH]) :]
    cells = nodes.cells[live]
    assert (cells[:, STATE] != DECIDED).all()
    start, given = cells[:, START], cells[:, GIVEN]

    def elements(
        kind: Kind, rows: NDArray[np.bool_], end: NDArray[np.int64], old_end: NDArray[np.int64]
    ) -> Batch:
        kinds, payload = np.full(int(rows.sum()), kind, np.int8), kernel.payloads.at(cells[rows, PLACE])
        batch = Batch(kinds, start[rows], end[rows], old_end[rows], payload)
        return batch.identified(np.ascontiguousarray(cells[rows, :2]).view(np.uint64))

    def events(end: NDArray[np.int64]) -> Batch:
        return elements(Kind.INSERT, end != ABSENT, end, given)

    attached = np.flatnonzero(kernel.sides.attached).tolist()
    voices = cells[:, [LEFT, *(SHOWN + i for i in attached)]]
    last = voices.max(axis=1, initial=ABSENT)
    is_out, is_gone = given != ABSENT, (last == ABSENT) & (start >= kernel.stable)
    moves = is_out & (last != ABSENT) & (last >= kernel.stable) & (voices != given[:, None]).all(axis=1)
    left = cells[:, LEFT]
    evidence = [
        elements(Kind.ADJUST, moves, last, given),
        elements(Kind.INSERT, is_gone & ~is_out, start + 1, given),
        elements(Kind.ADJUST, is_gone, start, np.where(is_out, given, start + 1)),
        elements(Kind.INSERT, (left != ABSENT) & ~is_out, left, given),
    ]
    return Known(events(given), {i: events(cells[:, SHOWN + i]) for i in attached}, evidence)
