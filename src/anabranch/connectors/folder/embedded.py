"""A folder of files as the source of a plan in this process.

    feeds/east/0001.parquet      a folder per replica (or `replica=east`), its files in the order of names
    feeds/west/0001.jsonl

A folder without sub-folders is one sequence of files, whose rows say whose they are. It is read up to what is
there when the run begins; a live one is looked at again and again, for files with later names and for lines
that were appended to the last, of the replicas that are there when it begins.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.connectors.files.debezium import Debezium, envelopes_named
from anabranch.connectors.files.embedded import element_feed
from anabranch.connectors.files.formats import ENDINGS, UnknownFormatError
from anabranch.connectors.files.local_path import local_path, path_meant
from anabranch.connectors.files.written_folder import written_files
from anabranch.connectors.folder.file_sequence import row_feed
from anabranch.connectors.folder.listing import Listing, listing
from anabranch.engines.embedded.feeds import Feed, Reading
from anabranch.plan.node import PlanError
from anabranch.plan.source import Source
from anabranch.rows.layout import SINGLE


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
        def look() -> Mapping[str, Path]:
            return listing(self.path).files.get(replica or SINGLE, {})

        return row_feed(source, replica, files, reading, look=look, envelopes=self.format)

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
