"""Delta tables: whether they open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from anabranch.cli.doctor import disk
from anabranch.cli.doctor.finding import Finding, Request, State, failed, note, ok, trouble
from anabranch.jobs.writable import nearest


def delta(asked: Request) -> Iterator[Finding]:
    """Each table that was asked for."""
    for path in asked.tables:
        yield _table(path)


def fed(asked: Request) -> Iterator[Finding]:
    """Each table that the job reads is there, and its changes are fed."""
    if asked.job is None:
        return
    from anabranch.jobs.ends import SourceSection

    ends = [one.delta for one in asked.job.ends.values() if isinstance(one, SourceSection)]
    for place in (place for tables in ends if tables is not None for place in tables.places(asked.job)):
        try:
            from anabranch.connectors.delta.reading import opened

            yield ok("source", f"changes of {place} are fed, up to version {opened(str(place)).version}")
        except ImportError as reason:
            yield trouble("source", f"{place} cannot be opened: {reason}", "pip install 'anabranch[delta]'")
        except (OSError, ValueError) as error:
            yield failed("source", error)


def of_job(asked: Request) -> Iterator[Finding]:
    """The table that the job keeps, which its first run makes."""
    if asked.job is None or asked.job.sink.table is None:
        return
    place = asked.job.place(asked.job.sink.table.path)
    if not place.is_dir() or not any(place.iterdir()):
        if disk.room(nearest(place), f"sink ({place})").state is State.OK:
            yield ok("sink", f"table {place} is made by the first run")
        else:
            yield note("sink", f"table {place} is not there, and disk says what keeps it from being made")
    elif asked.job.sink.table.format == "parquet":
        if (place / "latest").exists():
            yield ok("sink", f"table {place} is there")
        else:
            yield trouble(
                "sink", f"{place} has no table of Parquet files", "Give the table a folder of its own."
            )
    else:
        yield replace(_table(str(place)), what="sink")


def _table(path: str) -> Finding:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError as reason:
        return trouble("table", f"{path} cannot be opened: {reason}", "pip install 'anabranch[delta]'")
    try:
        table = DeltaTable(path)
        return ok("table", f"{path} is at version {table.version()}, with {len(table.file_uris())} files")
    except (DeltaError, OSError, ValueError) as reason:
        words = f"{type(reason).__name__}: {str(reason).strip().splitlines()[0]}"
        return trouble(
            "table",
            f"{path} does not open: {words}",
            "Give the folder that holds _delta_log, and see that this user may read all of it.",
        )
