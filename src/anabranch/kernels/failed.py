"""Rows for which an expression has no value, as rows that are refused."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.kernel import Refused
from anabranch.model.application import STABLE
from anabranch.model.batch import Batch
from anabranch.model.time import BEGINNING
from anabranch.model.validity import Rule


def failed(batch: Batch, rows: NDArray[np.int64], why: Sequence[str]) -> tuple[Refused, ...]:
    """The rows that failed, those with one reason together; a stable has no payload, and fails by nothing."""
    found: dict[str, list[int]] = {}
    for row, reason in zip(rows.tolist(), why, strict=True):
        if batch.kind[row] != STABLE:
            found.setdefault(reason, []).append(row)
    return tuple(
        Refused(Rule.FAILED, batch.take(np.array(some)), np.full(len(some), BEGINNING), reason)
        for reason, some in found.items()
    )
