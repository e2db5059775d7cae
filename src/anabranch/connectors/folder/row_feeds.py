"""Rows of a file as a plan in this process takes them in."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.folder.reading import (
    FILE_ROWS,
    REPLICA,
    FileRange,
    last_changed,
    reads,
    rows_of_file,
)
from anabranch.engines.embedded.feeds import Extent
from anabranch.engines.embedded.intake import Intake, read_intake
from anabranch.model.origin import Origin
from anabranch.plan.source import Source
from anabranch.rows.row_keys import RowKeys

ROWS, BYTES = 16_384, 16 << 20
"""Rows of Parquet that are read at a time, fewer where they are wide."""


def rows_in(files: Iterable[Path]) -> int:
    """How many rows some files have, lines that are none among them."""
    return sum(rows_of_file(str(file)) for file in files)


def file_range(
    source: Source, replica: str, file: Path, number: int, envelopes: Debezium | None = None
) -> FileRange:
    """The whole of a file of a replica, which is the one with this number."""
    assert source.layout is not None, "files of rows have columns with meanings"
    return FileRange(
        replica,
        str(file),
        number,
        in_folder=bool(replica),
        named_in=source.layout.replica or REPLICA,
        changed=last_changed(file),
        envelopes=envelopes,
    )


def range_intakes(source: Source, part: FileRange, extent: Extent | None = None) -> Iterator[Intake]:
    """What a range of a file says, with the file and line of each row."""
    assert source.columns is not None, "rows have columns"
    numbered = source.reads.sequence is None
    keys = RowKeys()
    for turn in reads([part], source.columns, source.reads, ROWS, BYTES, keys):
        for read in turn:
            lines = read.sequence - part.number * FILE_ROWS + 1
            origin = Origin(lines, None, (part.path,)) if numbered else None
            taken = replace(read_intake(source, read, origin), keys=keys)
            keys = RowKeys()
            if extent is not None:
                extent.done += len(taken)
            yield taken
