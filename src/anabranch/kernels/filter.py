"""The events whose payload a predicate is true of; null is not true."""

import numpy as np

from anabranch.expressions.evaluation import evaluate
from anabranch.expressions.tree import Tree
from anabranch.kernels.failed import failed
from anabranch.kernels.kernel import Result
from anabranch.model.batch import Batch, Kind


class Filter:
    """A step. Every element of an event has its payload, so all of them pass or none does."""

    def __init__(self, predicate: Tree) -> None:
        self.predicate = predicate

    def map(self, batch: Batch) -> Result:
        """The elements of the events that pass, and stables as they are."""
        values = evaluate(self.predicate, batch.payload, batch.start, batch.end)
        passes = np.asarray(values.values.fill_null(False)) | (batch.kind == Kind.STABLE)
        refused = failed(batch, values.failed, values.why)
        if refused:
            passes[values.failed] = False
        return Result(batch if passes.all() else batch.take(passes), refused)

    def reached(self, time: int) -> int:
        """As far as the input."""
        return time
