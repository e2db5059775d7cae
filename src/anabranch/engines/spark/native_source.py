"""What `merge` takes in place of a frame: a source that packs its rows itself."""

from typing import TYPE_CHECKING, Protocol

from anabranch.engines.spark.query.provenance import Provenance
from anabranch.engines.spark.transport.packing import Packing
from anabranch.rows.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class NativeSource(Protocol):
    """A native source: its rows never cross the JVM one by one. Their order in each channel is known."""

    @property
    def sparkSession(self) -> "SparkSession":  # noqa: N802
        """The session it reads in."""
        ...

    @property
    def schema(self) -> "StructType":
        """The columns of its rows."""
        ...

    @property
    def replica(self) -> str | None:
        """The column in which it says who sent a row, if it adds one."""
        ...

    @property
    def op(self) -> str | None:
        """The column in which it says what was done to a row, if it adds one; it never says stable there."""
        ...

    @property
    def replicas(self) -> tuple[str, ...]:
        """The replicas that it knows by name before they send a row; none where rows say whose they are."""
        ...

    @property
    def channels(self) -> bool:
        """Its replicas may have several channels, each in its own order."""
        ...

    def in_zone(self, zone: str | None, instants: "Mapping[str, pa.DataType]") -> "NativeSource":
        """The same, with times that name no zone in this one, unless another was asked for.

        ``instants`` has columns of local times that are instants of that zone, with their types.
        """
        ...

    def provenance(self, layout: Layout) -> Provenance:
        """Where its rows are from, for sinks."""
        ...

    def parcels(self, packing: Packing, ids: tuple[int, ...]) -> "DataFrame":
        """Its rows as parcels for the shards with these ids."""
        ...
