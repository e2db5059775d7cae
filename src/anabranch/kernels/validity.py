"""The elements of a stream that are valid by their times, and those that are not, in columns."""

from itertools import pairwise

import numpy as np

from anabranch.kernels.kernel import Refused
from anabranch.model.application import BROKEN, VALID, check_times
from anabranch.model.batch import Batch, Kind
from anabranch.model.time import BEGINNING


def checked(batch: Batch, stable: int) -> tuple[Batch, tuple[Refused, ...], int]:
    """What is valid after a stable, what is not and why, and the stable then; runs of one rule together."""
    rules = np.full(len(batch), VALID, np.int8)
    after = check_times(batch.kind, batch.start, batch.end, batch.old_end, stable, rules)
    if after == stable and len(batch) == 1 and rules[0] == VALID:
        return batch, (), stable
    invalid = np.flatnonzero(rules != VALID)
    if not len(invalid):
        return batch, (), after
    stables = np.where(batch.kind == Kind.STABLE, batch.start, BEGINNING)
    known = np.maximum(np.maximum.accumulate(stables), stable)[invalid]
    broken, rows = rules[invalid], batch.take(invalid)
    cuts = [0, *(np.flatnonzero(np.diff(broken)) + 1).tolist(), len(invalid)]
    refused = tuple(
        Refused(BROKEN[broken[begin]], rows[begin:end], known[begin:end]) for begin, end in pairwise(cuts)
    )
    return batch.take(rules == VALID), refused, after
