"""A kernel of merge with named inputs, one element or one batch at a time, as the laws play it."""

from dataclasses import replace

import numpy as np

from anabranch import BEGINNING, Batch
from anabranch.kernels.merge.sides import Sides
from anabranch.model.batch import Kind
from anabranch.model.identity import identities
from anabranch.model.rows import rows_of


def by_identity(payload) -> tuple:
    return tuple(identities(rows_of([payload]))[0].tolist())


class Named:
    """A kernel, which knows numbers, behind the names of its inputs."""

    def __init__(self, make) -> None:
        self.sides = Sides.of_capacity(2)
        self.kernel = make(self.sides)
        self.numbers: dict[str, int] = {}
        self.attaches = 0

    def attach(self, name, guarantee=BEGINNING, *, complete=True):
        number = self.sides.free()
        if number is None:
            self.sides = self.sides.doubled()
            self.kernel.widen(self.sides)
            number = self.sides.free()
        self.attaches += 1
        self.numbers[name] = number
        self.sides.attach(number, guarantee, self.attaches, complete=complete, stable=self.kernel.stable)
        return list(self.kernel.settle().elements())

    def detach(self, name):
        number = self.numbers.pop(name)
        self.kernel.forget(number)
        self.sides.attached[number] = False
        return list(self.kernel.settle().elements())

    def idle(self, name):
        number = self.numbers[name]
        if not self.sides.complete[number]:
            self.sides.idle[number], self.sides.joined[number] = True, False
        return list(self.kernel.settle().elements())

    def lagged(self, batch):
        policy = getattr(self.kernel, "policy", None)
        if policy is not None:
            kinds = zip(batch.kind, batch.start.tolist(), strict=True)
            start = np.array([policy.lagging(time) if kind == Kind.STABLE else time for kind, time in kinds])
            return replace(batch, start=start)
        return batch

    def push(self, name, element):
        return self.push_all(name, [element])

    def push_all(self, name, elements):
        return list(self.kernel.push(self.numbers[name], self.lagged(Batch.of(elements))).elements())
