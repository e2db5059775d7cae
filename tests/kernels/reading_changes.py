"""Changes and progress in one batch, as the kernel takes them: runs of changes, then each stable."""

from dataclasses import dataclass

import numpy as np

from anabranch import Batch, Rule, Stable
from anabranch.kernels.answers import in_words
from anabranch.kernels.changes import Changes
from anabranch.kernels.kernel import Refused
from anabranch.model.batch import Kind, concat
from anabranch.model.origin import Origin


@dataclass
class Refusals:
    """All that was refused, by channel and number."""

    groups: list[Refused]

    def __post_init__(self) -> None:
        rows = [(group, row) for group in self.groups for row in range(len(group.batch))]
        self.rows = sorted(rows, key=lambda one: self._place(*one))

    def _place(self, group: Refused, row: int) -> tuple[str, int]:
        return group.batch.origin.channel_of(row), int(group.batch.origin.number[row])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def number(self) -> np.ndarray:
        return np.array([self._place(*one)[1] for one in self.rows], np.int64)

    @property
    def channel(self) -> list[str]:
        return [self._place(*one)[0] for one in self.rows]

    @property
    def changes(self) -> Batch:
        return concat([group.batch[row : row + 1] for group, row in self.rows])

    def rule(self, n: int) -> Rule:
        return self.rows[n][0].rule

    def detail(self, n: int) -> str:
        group, row = self.rows[n]
        return in_words(group.detail, int(group.known[row]), "")


@dataclass
class Told:
    """What came of a batch: elements with the stables that it had, and what was refused."""

    elements: Batch
    origin: np.ndarray
    refused: Refusals


def push(kernel: Changes, batch: Batch, numbers=None, channel="", *, ordered=False) -> Told:
    """Hand a kernel what changes and stables there are, one after the other."""
    number = np.arange(len(batch)) if numbers is None else numbers
    batch = batch.with_origin(Origin(number, None, (channel,), ordered))
    parts, origins, refused = [batch[:0].plain()], [], []
    begin = 0
    for cut in [*np.flatnonzero(batch.kind == Kind.STABLE).tolist(), len(batch)]:
        result = kernel.push("", batch[begin:cut])
        parts.append(result.events.plain())
        origins.append(result.events.origin.number)
        refused += result.refused
        if cut < len(batch):
            refused += kernel.advance("", int(batch.start[cut])).refused
            parts.append(Batch.of([Stable(int(batch.start[cut]))]))
        begin = cut + 1
    return Told(
        concat([part for part in parts if len(part)] or parts[:1]), np.concatenate(origins), Refusals(refused)
    )
