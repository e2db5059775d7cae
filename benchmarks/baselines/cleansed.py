"""Enforcing order first: a Cleanse on every input, and the merge of case R1 behind them (C+LM of LM VI-D).

Memory: every input holds the payloads of all its events that are not out. An event comes out when it is final
and everything that starts before it is.
"""

from anabranch.kernels.cleanse import Cleanse
from anabranch.kernels.merge.ordered import Ordered
from anabranch.model.batch import Batch
from anabranch.model.properties import Case
from baselines.attached import attached


class Cleansed:
    """A logical merge whose output is ordered and has no adjusts."""

    def __init__(self, inputs: int) -> None:
        self.cleanses = [Cleanse(ordered=True) for _ in range(inputs)]
        self.merge = Ordered(Case.R1, attached(inputs))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(cleanse.nbytes for cleanse in self.cleanses) + self.merge.nbytes

    def push(self, i: int, batch: Batch) -> Batch:
        """What comes out when input number i says elements."""
        return self.merge.push(i, self.cleanses[i].act(batch))
