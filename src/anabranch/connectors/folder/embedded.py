"""A folder of files as the source of a plan in this process.

    feeds/east/0001.parquet      a folder per replica (or `replica=east`), its files in the order of names
    feeds/west/0001.jsonl

A folder without sub-folders is one sequence of files, whose rows say whose they are. It is read up to what is
there when the run begins; a live one is looked at again and again, for files with later names and for lines
that were appended to the last, of the replicas that are there when it begins.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anabranch.connectors.files.debezium import Debezium, envelopes_named
from anabranch.connectors.files.embedded import element_feed
from anabranch.connectors.files.formats import ENDINGS, UnknownFormatError, format_of
from anabranch.connectors.files.local_path import local_path, path_meant
from anabranch.connectors.files.written_folder import written_files
from anabranch.connectors.folder.growing import is_unfinished, lines_before, readable
from anabranch.connectors.folder.listing import Listing, listing
from anabranch.connectors.folder.reading import end_mark
from anabranch.connectors.folder.row_feeds import file_range, range_intakes, row_intakes, rows_in
from anabranch.engines.embedded.feeds import Extent, Feed, Reading
from anabranch.engines.embedded.intake import Intake
from anabranch.engines.embedded.stopping import Stop
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE

PAUSE = 0.5
"""Seconds between looks at a live folder."""


@dataclass(frozen=True, slots=True)
class FolderFeeds:
    """A folder, as `run` takes it for a source."""

    path: Path
    by_replica: bool | None = None
    """There is a folder for each replica, or there is none; None: as it is now."""
    format: Debezium | None = None
    """Lines are envelopes of this form; None: rows."""

    def feeds(self, source: Source, reading: Reading) -> list[Feed]:
        """A feed for each replica, in the order of names."""
        if not self.path.is_dir():
            error = FileNotFoundError(f"{self.path} is not a folder that is there{path_meant(self.path)}")
            error.add_note("Give the folder that holds the files, or a sub-folder for each replica.")
            raise error
        if source.layout is None:
            return self._of_elements(source)
        now = listing(self.path)
        files = self._files(now, source)
        return [
            self._feed(source, name if now.by_replica else "", list(some.values()), reading)
            for name, some in files.items()
        ]

    def _files(self, now: Listing, source: Source) -> dict[str, dict[str, Path]]:
        by_replica = now.by_replica if self.by_replica is None else self.by_replica
        files = now.in_form(self.path, by_replica=by_replica) if not now.empty else now.files
        if now.by_replica and not source.replicated:
            error = PlanError(
                f"{self.path} has a folder for each replica, and {source.name!r} is not of replicas"
            )
            error.add_note("Give the source replica=… and merge it, or give one of the folders.")
            raise error
        return files

    def _feed(self, source: Source, replica: str, files: Sequence[Path], reading: Reading) -> Feed:
        if reading.live:
            return Feed(source.name, self._growing(source, replica, reading.stop), replica, again=True)
        extent = Extent(rows_in(files))
        rows = row_intakes(source, replica, files, extent, envelopes=self.format)
        return Feed(source.name, rows, replica, extent=extent, again=True)

    def _growing(self, source: Source, replica: str, stop: Stop) -> Iterator[Intake]:
        """The files of a replica, and what is added to them, until a stop."""
        last, number, read = "", -1, 0
        while True:
            now = listing(self.path).files.get(replica or SINGLE, {})
            names = [name for name in now if name >= last]
            for name in names:
                file, is_last = now[name], name == names[-1]
                if is_unfinished(file):
                    break
                if name != last:
                    last, number, read = name, number + 1, 0
                elif not format_of(name).is_text:
                    continue
                part = file_range(source, replica, file, number, self.format)
                if format_of(name).is_text:
                    end = readable(file, is_last=is_last)
                    if end <= read:
                        continue
                    mark, first = end_mark(file, end), lines_before(file, read)
                    part = replace(part, begin=read, end=end, mark=mark, first=first)
                    read = end
                yield from range_intakes(source, part)
            if stop.wait(PAUSE):
                return

    def _of_elements(self, source: Source) -> list[Feed]:
        """Recorded elements: what a sink wrote, or files in the order of their names."""
        try:
            written_files(str(self.path))
        except UnknownFormatError:
            found = listing(self.path, ENDINGS)
        else:
            return [element_feed(source, [str(self.path)])]
        return [
            element_feed(source, [str(file) for file in files.values()], name if found.by_replica else "")
            for name, files in self._files(found, source).items()
        ]


def folder(
    path: str | Path,
    *,
    by_replica: bool | None = None,
    format: str | Debezium | None = None,  # noqa: A002
) -> FolderFeeds:
    """A folder of files, for `run`: Parquet, Arrow, JSON lines and CSV, told by the endings of names.

    Where it has sub-folders, each is a replica, and its name is in the column ``replica`` of the source.
    ``by_replica`` says whether there will be any, where it is empty yet. ``format``: lines are envelopes of
    Debezium's (``"debezium"``), of rows with the other columns of the source.
    """
    return FolderFeeds(local_path(path), by_replica, envelopes_named(format))
