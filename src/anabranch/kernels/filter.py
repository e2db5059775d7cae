"""The events whose payload a predicate is true of; null is not true."""

from anabranch.expressions.evaluation import Evaluation
from anabranch.expressions.tree import Tree
from anabranch.kernels.failed import failed
from anabranch.kernels.kernel import Result
from anabranch.model.application import STABLE
from anabranch.model.batch import Batch


class Filter:
    """A step. Every element of an event has its payload, so all of them pass or none does."""

    def __init__(self, predicate: Tree) -> None:
        self.predicate = Evaluation(predicate)

    def map(self, batch: Batch) -> Result:
        """The elements of the events that pass, and stables as they are."""
        values = self.predicate.of(batch.payload, batch.start, batch.end)
        if values.values.true_count == len(batch):
            return Result(batch)
        truths = values.values.fill_null(False) if values.values.null_count else values.values
        passes = truths.to_numpy(zero_copy_only=False) | (batch.kind == STABLE)
        return Result(batch if passes.all() else batch.take(passes), failed(batch, values.failed, values.why))

    def reached(self, time: int) -> int:
        """As far as the input."""
        return time
