"""A merge of the replicas that rows name, as a plan of one source and one merge.

Its settings are checked at once; the plan is made when the columns of the rows are known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from anabranch.engines.spark.columns import Columns, columns_of
from anabranch.engines.spark.frame import frame
from anabranch.engines.spark.native_source import NativeSource
from anabranch.engines.spark.plan_sources import check_progress, check_readable
from anabranch.kernels.merge.settings import case_named, note_value, properties_of
from anabranch.model.output_policy import OutputPolicy
from anabranch.model.properties import Fact, Properties
from anabranch.model.span import span_or_none
from anabranch.model.validity import Policy, check_policy
from anabranch.plan.merge import Merge
from anabranch.plan.merge_changes import MergeChanges
from anabranch.plan.merge_settings import merge_settings
from anabranch.plan.one_row import policy_of_changes
from anabranch.plan.source import Source
from anabranch.plan.stream import Stream
from anabranch.rows.change_words import spellings
from anabranch.rows.layout import SINGLE, Layout, names_of
from anabranch.rows.replica_names import check_in_replicas, named_in
from anabranch.rows.vouching import Lossy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS_SOURCE = "rows"
"""What the source of a merge is called in its plan."""
REMEMBER = 4_096
"""Final events that a shard keeps to compare slower replicas with; they are part of every snapshot."""


@dataclass(frozen=True, slots=True)
class RowsMerge:
    """The settings of a merge of rows."""

    layout: Layout
    source: Mapping[str, Any]
    """Settings of the source beside its layout."""
    merge: Mapping[str, Any]
    """Settings of the merge."""
    on_refused: Mapping[str, Policy | None]
    """What is done with rows that are not used: ``on_invalid``, ``on_broken`` and ``on_late``."""

    def plan(self, rows: Columns) -> Stream:
        """The merge of rows of these columns; what they do not fit is refused."""
        self.layout.check(rows.schema)
        check_progress(rows, self.layout)
        _check_replica_column(rows, self.layout)
        settings = dict(self.source)
        if not rows.is_streaming:
            settings["declared"] |= Properties.of(Fact.PUNCTUATED)
        source = Source(name=ROWS_SOURCE, columns=rows.schema, layout=self.layout, replicas=True, **settings)
        return Stream((MergeChanges if source.of_changes else Merge)(inputs=(source,), **self.merge))

    def frame(self, rows: "DataFrame | NativeSource", rows_per_parcel: int) -> "DataFrame":
        """The result of merging rows, as rows."""
        check_readable(ROWS_SOURCE, rows)
        stream = self.plan(columns_of(rows))
        return frame(stream, {ROWS_SOURCE: rows}, **self.on_refused, rows_per_parcel=rows_per_parcel)


def merge_of_events(
    *,
    start: str,
    end: str | None,
    old_end: str | None,
    duration: int | timedelta | str | None,
    kind: str | None,
    replica: str | None,
    channel: str | None,
    sequence: str | None,
    payload: str | Iterable[str] | None,
    identity: str | Iterable[str] | None,
    disorder: int | timedelta | str | None,
    lossy: Lossy | None,
    **settings: Any,
) -> RowsMerge:
    """The merge that the arguments of `merge` describe; what is wrong in itself is refused."""
    layout = Layout(
        start,
        end,
        old_end,
        span_or_none(duration, "duration"),
        kind,
        replica,
        channel,
        sequence,
        names_of(payload),
        names_of(identity),
        span_or_none(disorder, "disorder"),
    )
    return _rows_merge(layout, lossy=lossy or False, identity=identity, **settings)


def merge_of_changes(
    *,
    key: str | Iterable[str],
    time: str,
    op: str,
    ops: Mapping[str, str] | None,
    replica: str | None,
    channel: str | None,
    sequence: str | None,
    payload: str | Iterable[str] | None,
    disorder: int | timedelta | str | None,
    policy: OutputPolicy | str | None,
    **settings: Any,
) -> RowsMerge:
    """The merge that the arguments of `merge_changes` describe; what is wrong in itself is refused."""
    by = names_of(key)
    if not by:
        error = ValueError("changes of a table name its rows by a key, and key is empty")
        error.add_note("Name the columns of its primary key.")
        raise error
    layout = Layout(
        time,
        kind=op,
        replica=replica,
        channel=channel,
        sequence=sequence,
        payload=names_of(payload),
        disorder=span_or_none(disorder, "disorder"),
        key=by,
        ops=spellings(ops),
    )
    if policy is None:
        policy = policy_of_changes(case_named(settings["case"]), properties_of(settings["properties"]))
    return _rows_merge(layout, policy=policy, **settings)


def _rows_merge(
    layout: Layout,
    *,
    properties: Any,
    replicas: Iterable[str],
    idle: Iterable[str],
    on_invalid: Policy | None,
    on_broken: Any,
    on_late: Policy | None,
    lossy: Lossy = False,
    by_time: bool = False,
    **settings: Any,
) -> RowsMerge:
    merge = merge_settings(on_broken=on_broken, on_late=on_late, **settings)
    try:
        check_policy("on_invalid", on_invalid)
    except TypeError as error:
        note_value(error, "on_invalid", on_invalid)
        raise
    awaited, silent = tuple(names_of(replicas) or ()), tuple(names_of(idle) or ())
    lossy = lossy if isinstance(lossy, bool) else frozenset(names_of(lossy) or ())
    _check_names(layout, named_in(lossy, silent, awaited))
    promised = properties_of(properties) or Properties()
    source = {
        "awaited": awaited,
        "silent": silent,
        "lossy": lossy,
        "declared": promised,
        "by_time": by_time,
    }
    answers = {"on_invalid": on_invalid, "on_broken": merge["on_broken"], "on_late": on_late}
    return RowsMerge(layout, source, merge, answers)


def _check_names(layout: Layout, named: Mapping[str, tuple[str, ...]]) -> None:
    """Raise where replicas are named that no row can be of."""
    if layout.replica is None:
        for name in sorted({name for names in named.values() for name in names} - {SINGLE}):
            error = ValueError(f"{name!r} is named as a replica, and no column says whose a row is")
            error.add_note("Name the column in replica, or leave the names out.")
            raise error
    check_in_replicas(named)


def _check_replica_column(source: Columns, layout: Layout) -> None:
    """Raise where the name of a replica would be payload, so that replicas never agree."""
    named = {*(layout.identity or ()), *(layout.key or ()), *layout.roles().values()}
    if source.replica is None or layout.replica is not None or layout.payload is not None:
        return
    if source.replica not in named:
        error = ValueError(f"column {source.replica!r} says who sent a row, and replica is not given")
        error.add_note(f"Give replica={source.replica!r}; without it, it would be a part of the row.")
        error.add_note("If it is meant to be one, or should be left out, name the columns in payload.")
        raise error
