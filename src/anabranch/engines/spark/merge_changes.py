"""Logical merge of the tables whose changes the rows of a streaming frame are."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.replica_frames import in_one_frame
from anabranch.engines.spark.rows_merge import REMEMBER, merge_of_changes
from anabranch.engines.spark.transport.packing import ROWS
from anabranch.kernels.merge.settings import Generalise
from anabranch.model.output_policy import OutputPolicy, Pace
from anabranch.model.properties import Case, Fact, Properties
from anabranch.model.validity import Policy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def merge_changes(
    rows: "DataFrame | NativeSource | Mapping[str, DataFrame]",
    *,
    key: str | Iterable[str],
    time: str,
    op: str = "op",
    ops: Mapping[str, str] | None = None,
    by_time: bool = False,
    replica: str | None = None,
    channel: str | None = None,
    sequence: str | None = None,
    payload: str | Iterable[str] | None = None,
    disorder: int | timedelta | str | None = None,
    case: Case | str | None = None,
    policy: OutputPolicy | str | None = None,
    properties: Properties | Fact | str | Iterable[Fact | str] | None = None,
    pace: Pace = Pace.SLOWEST,
    replicas: Iterable[str] = (),
    idle: Iterable[str] = (),
    on_invalid: Policy | None = None,
    on_broken: Policy | Generalise | None = None,
    on_late: Policy | None = None,
    remember: int = REMEMBER,
    rows_per_parcel: int = ROWS,
) -> "DataFrame":
    """The changes of several replicas of a table as one stream of element rows.

    ``key`` names the columns that name a row of the table, ``time`` the commit time, ``op`` what happened:
    insert, update, delete or upsert in any of the usual spellings (`rows/change_words.py`), and more by
    ``ops``, such as ``{"4": "update", "3": "ignore"}``. A row of the table, which is ``payload`` (default:
    all columns that are nothing else, the key among them), is an event from the commit that brought it to the
    one that changed or deleted it; of the row before a change only the key is needed.

    In a log, changes of a key count in the order of ``sequence`` within their ``channel``, or in which a
    native source reads them; all of a key are in one channel. Without that order, and with ``by_time`` in
    spite of it, they count by commit time, in whatever micro-batch they come, and at one time as they are
    read. How far a replica has come is known from rows whose op is stable, or from ``disorder``. A replica
    begins, and after an attach begins anew, with an empty table, or with rows of a snapshot (``r``): these
    are there at their time, and since when is for other replicas to say (`kernels/snapshots.py`).

    A change that does not fit the ones before it (of a row that is not there, or is there already, or of a
    log and earlier than its row) is refused with the reason: in a log at once, by time when a stable of its
    replica has passed it, because the change it follows may come late. So are changes behind the stable, rows
    without key or time and unknown ops.
    Without a ``policy``, it is `EveryChange`, or of keyed replicas `FollowLeader`: the soonest that shows at
    most one row without an end for each key, which `write_table` asks for where it keeps a history.

    Out come the columns that `merge` gives. Where no key goes back in time, ``properties="keyed"`` is true.
    Replicas are complete: one that loses a change shows the row before it with a wrong end.

    Memory: the table of each replica, by time its changes since the last stable too, and what `merge` holds.
    """
    rows, replica, replicas = in_one_frame(rows, replica, replicas)
    made = merge_of_changes(
        key=key,
        time=time,
        op=op,
        ops=ops,
        by_time=by_time,
        replica=replica,
        channel=channel,
        sequence=sequence,
        payload=payload,
        disorder=disorder,
        case=case,
        policy=policy,
        properties=properties,
        pace=pace,
        replicas=replicas,
        idle=idle,
        on_invalid=on_invalid,
        on_broken=on_broken,
        on_late=on_late,
        remember=remember,
    )
    return made.frame(rows, rows_per_parcel)
