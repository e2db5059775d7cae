"""Rows of files, one file after the other, as a plan in this process takes them in."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.folder.reading import (
    FILE_ROWS,
    REPLICA,
    FileStretch,
    last_changed,
    reads,
    rows_of_file,
)
from anabranch.engines.embedded.feeds import Extent
from anabranch.engines.embedded.intake import Intake, read_intake
from anabranch.model.origin import Origin
from anabranch.plan.source import Source

ROWS, BYTES = 16_384, 16 << 20
"""Rows of Parquet that are read at a time, fewer where they are wide."""


def rows_in(files: Iterable[Path]) -> int:
    """How many rows some files have, lines that are none among them."""
    return sum(rows_of_file(str(file)) for file in files)


def row_intakes(
    source: Source,
    replica: str,
    files: Sequence[Path],
    extent: Extent | None = None,
    *,
    first: int = 0,
    envelopes: Debezium | None = None,
) -> Iterator[Intake]:
    """What the files of a replica say; ``first`` is the number of the first of them.

    No replica: the rows say whose they are.
    """
    for number, file in enumerate(files, first):
        stretch = file_stretch(source, replica, file, number, envelopes)
        yield from stretch_intakes(source, stretch, extent)


def file_stretch(
    source: Source, replica: str, file: Path, number: int, envelopes: Debezium | None = None
) -> FileStretch:
    """The whole of a file of a replica, which is the one with this number."""
    assert source.layout is not None, "files of rows have columns with meanings"
    return FileStretch(
        replica,
        str(file),
        number,
        in_folder=bool(replica),
        named_in=source.layout.replica or REPLICA,
        changed=last_changed(file),
        envelopes=envelopes,
    )


def stretch_intakes(source: Source, stretch: FileStretch, extent: Extent | None = None) -> Iterator[Intake]:
    """What a stretch of a file says, with the file and line of each row."""
    assert source.columns is not None, "rows have columns"
    numbered = source.reads.sequence is None
    for turn in reads([stretch], source.columns, source.reads, ROWS, BYTES):
        for read in turn:
            lines = read.sequence - stretch.number * FILE_ROWS + 1
            origin = Origin(lines, None, (stretch.path,)) if numbered else None
            taken = read_intake(source, read, origin)
            if extent is not None:
                extent.done += len(taken)
            yield taken
