"""What a kernel says when an input breaks a promise that the kernel relies on."""

from anabranch.model.batch import Batch
from anabranch.model.properties import Fact


class Broken(Exception):  # noqa: N818 - not an error: the merge decides whether it is one
    """An element that a stream with this fact does not have. It has changed nothing; all before it is done.

    ``output`` is what came of all before it. ``pending`` is what has been taken from inputs and is not done,
    in the order in which it is to be done: numbers of inputs with elements; the first one breaks the fact.
    """

    def __init__(self, fact: Fact, output: Batch, pending: list[tuple[int, Batch]]) -> None:
        super().__init__(fact)
        self.fact = fact
        self.output = output
        self.pending = pending
