"""By which columns the rows of an edge are dealt out to shards."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.engines.spark.transport.shards import shard_of
from anabranch.model.identity import Words, identities


@dataclass(frozen=True, slots=True)
class Dealing:
    """Rows that are equal in some columns go to one shard, on all edges with the same names for them."""

    by: tuple[str, ...]
    """None of them: all rows go to the first shard."""
    names: tuple[str, ...]
    identity: tuple[str, ...] | None = None
    """What tells events apart for whoever hears them first; None: all columns."""
    whole: bool = False
    """The columns are those that tell events apart, under their own names: what is hashed already."""

    @classmethod
    def of(
        cls,
        by: tuple[str, ...],
        names: tuple[str, ...],
        schema: pa.Schema,
        identity: tuple[str, ...] | None = None,
    ) -> "Dealing":
        """How rows of a schema are dealt out."""
        apart = tuple(schema.names) if identity is None else identity
        return cls(by, names, identity, by == names and bool(by) and {*by} == {*apart})

    def shard_of(self, payloads: Sequence[pa.RecordBatch], words: Words, shards: int) -> NDArray[np.int64]:
        """The number of the shard of each row of payloads that stand one after the other."""
        if not self.by or shards == 1:
            return np.zeros(len(words), np.int64)
        if not self.whole:
            words = np.concatenate([self._identities(payload) for payload in payloads])
        return shard_of(words, shards)

    def _identities(self, payload: pa.RecordBatch) -> Words:
        if not payload.num_columns:
            return identities(payload)
        return identities(payload.select(list(self.by)).rename_columns(list(self.names)))
