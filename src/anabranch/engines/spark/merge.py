"""Logical merge of the replicas that the rows of a streaming frame name."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.replica_frames import in_one_frame
from anabranch.engines.spark.rows_merge import REMEMBER, merge_of_events
from anabranch.engines.spark.transport.packing import ROWS
from anabranch.kernels.merge.settings import Generalise
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.validity import Policy
from anabranch.rows.vouching import Lossy, check_answered, is_inferred

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def merge(
    rows: "DataFrame | NativeSource | Mapping[str, DataFrame]",
    *,
    start: str,
    end: str | None = None,
    old_end: str | None = None,
    duration: int | timedelta | str | None = None,
    kind: str | None = None,
    replica: str | None = None,
    channel: str | None = None,
    sequence: str | None = None,
    payload: str | Iterable[str] | None = None,
    identity: str | Iterable[str] | None = None,
    disorder: int | timedelta | str | None = None,
    case: Case | str | None = None,
    policy: OutputPolicy | str | None = None,
    properties: Properties | Fact | str | Iterable[Fact | str] | None = None,
    lossy: Lossy | None = None,
    pace: Pace = Pace.SLOWEST,
    replicas: Iterable[str] = (),
    idle: Iterable[str] = (),
    on_invalid: Policy | None = None,
    on_broken: Policy | Generalise | None = None,
    on_late: Policy | None = None,
    remember: int = REMEMBER,
    rows_per_parcel: int = ROWS,
) -> "DataFrame":
    """The rows of several replicas as one stream of element rows.

    ``rows`` are a frame, a source such as `folder`, or frames by the names of their replicas.
    ``start`` and ``end`` name the columns of the lifetime (or ``duration``; neither: a point); ``replica``
    the column that says who sent a row; ``payload`` what an event is (default: all other columns) and
    ``identity`` what of it tells events apart. How far a replica has come is known from rows whose ``kind``
    column says stable, or from ``disorder``, a bound on how late its rows are. ``channel`` and ``sequence``
    say in which order a replica meant its rows; without them a micro-batch is one instant.

    ``replicas`` are awaited from the beginning (default: those that the source knows by name), but for those
    in ``idle`` while they are silent. What ``properties`` promise holds for each channel of a replica.
    ``lossy`` says whether replicas, or which, may have lost rows: it is asked for where how far they have
    come is inferred (`vouching.py`); those that say stable themselves are complete unless it says otherwise.

    Out come the columns kind, start, end, old_end and the payload, with at most one stable per micro-batch
    after all it covers, and ``refused`` for rows that were not used (null for elements).
    """
    rows, replica, replicas = in_one_frame(rows, replica, replicas)
    static = kind is None and disorder is None and _is_static(rows)
    inferred = is_inferred(replica=replica, kind=kind, disorder=disorder, static=static)
    check_answered(lossy, inferred=inferred)
    made = merge_of_events(
        start=start,
        end=end,
        old_end=old_end,
        duration=duration,
        kind=kind,
        replica=replica,
        channel=channel,
        sequence=sequence,
        payload=payload,
        identity=identity,
        disorder=disorder,
        case=case,
        policy=policy,
        properties=properties,
        lossy=lossy,
        pace=pace,
        replicas=replicas,
        idle=idle,
        on_invalid=on_invalid,
        on_broken=on_broken,
        on_late=on_late,
        remember=remember,
    )
    return made.frame(rows, rows_per_parcel)


def _is_static(rows: object) -> bool:
    from pyspark.sql import DataFrame

    return isinstance(rows, DataFrame) and not rows.isStreaming
