"""What rows cannot be merged, or not so, told before any are read."""

from collections.abc import Sequence

from anabranch.engines.spark.columns import Columns
from anabranch.engines.spark.merging import Merging
from anabranch.rows.layout import SINGLE, Layout
from anabranch.rows.replica_names import Named, check_in_replicas, check_replicas, named_in


def check_progress(rows: Columns, layout: Layout) -> None:
    """Raise where nothing says how far a stream has come."""
    if rows.is_native:
        progress = layout.kind not in (None, rows.op)
    else:
        progress = layout.kind is not None or not rows.is_streaming
    if progress or layout.disorder is not None:
        return
    known = "its kind column or from disorder, and neither is given"
    if layout.kind is not None:
        known = "disorder where its source never says stable, and disorder is not given"
    error = ValueError(
        f"how far a stream has come is known from {known}; "
        "nothing would ever become stable, and the state would grow for ever"
    )
    error.add_note("Say how late rows may be, such as disorder='10 minutes'.")
    if layout.kind is None:
        error.add_note("Where rows say stable themselves, name the column in which they do: kind='kind'.")
    raise error


def check_names(layout: Layout, merging: Merging) -> None:
    """Raise where replicas are named that no row can be of."""
    lossy = frozenset[str]() if isinstance(merging.lossy, bool) else merging.lossy
    if layout.replica is None:
        for name in sorted({*lossy, *merging.replicas, *merging.idle} - {SINGLE}):
            error = ValueError(f"{name!r} is named as a replica, and no column says whose a row is")
            error.add_note("Name the column in replica, or leave the names out.")
            raise error
    check_in_replicas(named_in(merging.lossy, merging.idle, merging.replicas))


def check_known(named: Named, there: Sequence[str]) -> None:
    """Raise where replicas are named that a source, which knows its replicas by name, does not have."""
    check_in_replicas(named)
    if there:
        later = "One that sends nothing yet has its folder, topic or table all the same."
        check_replicas(named, there, "its source", later)


def replicas_of(rows: Columns, replica: str | None) -> tuple[str, ...]:
    """The replicas that a source knows by name, where it is the one that says whose a row is."""
    return () if replica is None or replica != rows.replica else rows.replicas


def has_channels(rows: Columns, channel: str | None, replica: str | None) -> bool:
    """Whether a replica may speak through several channels, each in its own order."""
    return rows.channels if channel is None else channel != replica


def check_case(merging: Merging) -> None:
    """Raise where a case is forced that needs the order of rows that come by several channels."""
    if merging.case is None or not merging.by_channel:
        return
    if not merging.case.admits(merging.case.value.spread()):
        error = ValueError(
            f"{merging.case.name} is forced, and needs the rows of a replica in one order; "
            "they come by several channels, and are in order within each"
        )
        error.add_note("Let the case be picked, or force R3 or R4.")
        raise error


def check_replica(source: Columns, layout: Layout) -> None:
    """Raise where who sent a row would be a part of it, so that replicas never agree."""
    named = {*(layout.identity or ()), *(layout.key or ()), *layout.roles().values()}
    if source.replica is None or layout.replica is not None or layout.payload is not None:
        return
    if source.replica not in named:
        error = ValueError(f"column {source.replica!r} says who sent a row, and replica is not given")
        error.add_note(f"Give replica={source.replica!r}; without it, it would be a part of the row.")
        error.add_note("If it is meant to be one, or should be left out, name the columns in payload.")
        raise error
