"""Record batches as data frames of pandas that Spark takes without looking at their values."""

from typing import Any

import pandas as pd
import pyarrow as pa


class _Column(pd.Series):  # type: ignore[misc]
    """A column that is what Spark wants it to be already."""

    def apply(self, *_: Any, **__: Any) -> "_Column":
        """Spark would rebuild nested values one by one."""
        return self


class _Frame(pd.DataFrame):  # type: ignore[misc]
    """A data frame of such columns."""

    @property
    def _constructor_sliced(self) -> type[_Column]:
        return _Column


def frame(batch: pa.RecordBatch) -> pd.DataFrame:
    """The rows as a data frame whose columns are the Arrow arrays; they have numbers for names."""
    arrays = [pd.arrays.ArrowExtensionArray(pa.chunked_array([column])) for column in batch.columns]
    return _Frame(dict(enumerate(arrays)), copy=False)
