"""Records of CSV as rows of an Arrow schema: all at once where they fit, one by one where some do not.

The header names the columns: a column that the schema has not is left out. A cell without anything in it is
null; `""` is empty text in a column of text, and null in any other. Times are ISO 8601 (see `time_texts`),
bytes are base 64. A row with more or fewer cells than the header is refused, and one with a cell that is not
of the type of its column. The same rules hold in both ways, so whether a record is a row does not depend on
its neighbours.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from anabranch.connectors.files.csv_header import cells_of
from anabranch.connectors.files.csv_records import is_regular, quoting_error
from anabranch.connectors.files.json_rows import as_written
from anabranch.connectors.files.time_texts import times_of
from anabranch.connectors.files.values import Values
from anabranch.model.schema import SchemaError


class CsvRows:
    """State: whether times were found that Arrow's own reader does not read."""

    def __init__(self, header: Sequence[str], columns: pa.Schema, path: str) -> None:
        self.header = tuple(header)
        self.columns = pa.schema([field for field in columns if field.name in self.header])
        self._has_odd_times = False
        for field in self.columns:
            _check_column(field, self.header, path)

    def read(self, texts: Sequence[bytes]) -> Values:
        """A row of each record that is one; the others are refused."""
        parts: list[pa.RecordBatch] = []
        kept: list[int] = []
        refused: list[tuple[int, str]] = []
        self._read(texts, 0, parts, kept, refused)
        if len(parts) == 1:
            return Values(parts[0], np.array(kept, np.int64), refused)
        table = pa.Table.from_batches(parts, self.columns).combine_chunks().to_batches()
        rows = table[0] if table else pa.RecordBatch.from_pylist([], self.columns)
        return Values(rows, np.array(kept, np.int64), refused)

    def _read(
        self,
        texts: Sequence[bytes],
        first: int,
        parts: list[pa.RecordBatch],
        kept: list[int],
        refused: list[tuple[int, str]],
    ) -> None:
        """Halve what does not fit, until it is one record that does not."""
        if not texts:
            return
        rows = self._rows(texts)
        if isinstance(rows, pa.RecordBatch):
            parts.append(rows)
            kept.extend(range(first, first + len(texts)))
        elif len(texts) == 1:
            refused.append((first, self._misfit(texts[0]) or rows))
        else:
            half = len(texts) // 2
            self._read(texts[:half], first, parts, kept, refused)
            self._read(texts[half:], first + half, parts, kept, refused)

    def _rows(self, texts: Sequence[bytes]) -> pa.RecordBatch | str:
        """The rows of records, or why there are none."""
        data = b"\n".join(texts) + b"\n"
        if b'"' in data and not is_regular(data) and any(map(quoting_error, texts)):
            return "the quotes of a cell are one at each end"
        reason = ""
        for as_text in (False, True) if not self._has_odd_times else (True,):
            try:
                rows = self._parsed(data, as_text=as_text)
            except (ValueError, pa.ArrowException) as problem:
                reason = str(problem)
                continue
            if rows.num_rows != len(texts):
                return f"a row is one line, and this is {rows.num_rows}"
            self._has_odd_times = as_text
            return rows
        return reason

    def _parsed(self, data: bytes, *, as_text: bool) -> pa.RecordBatch:
        """Rows of records, with times read ``as_text`` or by Arrow."""
        if b'""' not in data or all(_is_text(field.type) for field in self.columns):
            found = self._read_csv(data, self.columns, as_text=as_text, empty_is_null=False)
        else:
            texts = pa.schema([field for field in self.columns if _is_text(field.type)])
            others = pa.schema([field for field in self.columns if not _is_text(field.type)])
            found = self._read_csv(data, texts, as_text=as_text, empty_is_null=False)
            found |= self._read_csv(data, others, as_text=as_text, empty_is_null=True)
        if not len(self.columns):
            rows = self._read_csv(data, pa.schema([("", pa.string())]), as_text=True, empty_is_null=False)
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows[""]), pa.struct([])))
        return pa.RecordBatch.from_arrays([found[name] for name in self.columns.names], schema=self.columns)

    def _read_csv(
        self, data: bytes, columns: pa.Schema, *, as_text: bool, empty_is_null: bool
    ) -> dict[str, Any]:
        places = [self.header.index(field.name) if field.name else 0 for field in columns]
        types = [_spelled(field.type, as_text=as_text) for field in columns]
        names = list(map(str, places))
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            read_options=pa.csv.ReadOptions(
                use_threads=False,
                column_names=list(map(str, range(len(self.header)))),
                block_size=max(len(data) + 1, 1 << 20),
            ),
            parse_options=pa.csv.ParseOptions(
                newlines_in_values=b'"' in data, ignore_empty_lines=len(self.header) > 1
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict(zip(names, types, strict=True)),
                include_columns=names,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=empty_is_null,
            ),
        )
        pairs = zip(table.columns, columns, strict=True)
        return {field.name: _meant(column.combine_chunks(), field.type) for column, field in pairs}

    def _misfit(self, text: bytes) -> str | None:
        """Which cell of a record does not fit."""
        if (wrong := quoting_error(text)) is not None:
            return wrong
        try:
            cells = cells_of(text)
        except UnicodeDecodeError:
            return "text is UTF-8, and in this row it is not"
        if len(cells) != len(self.header):
            return f"a row has {len(self.header)} cells as the header has, and this one {len(cells)}"
        for field in self.columns:
            cell = cells[self.header.index(field.name)]
            try:
                _meant(_cell(cell, field.type), field.type)
            except (ValueError, pa.ArrowException):
                shown = cell if len(cell) <= 60 else f"{cell[:57]}..."
                return f"column {field.name!r} is {field.type}, and this row has {shown!r}"
        return None


def _check_column(field: pa.Field, header: Sequence[str], path: str) -> None:
    """Raise where it is not known which cells of a row are of a column, or cells hold no such values."""
    if header.count(field.name) > 1:
        error = SchemaError(f"{path}: the header names {header.count(field.name)} columns {field.name!r}")
        error.add_note("Give each a name of its own: which of them is meant is not known.")
        raise error
    if pa.types.is_nested(field.type) or pa.types.is_interval(field.type):
        error = SchemaError(f"{path}: a cell of CSV holds no {field.type}, and column {field.name!r} is that")
        error.add_note("Read it as string, or give JSON lines, Parquet or Arrow.")
        raise error


def _is_text(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype)
    )


def _is_odd(dtype: pa.DataType) -> bool:
    """Arrow does not read what is written for a type."""
    return bool(
        pa.types.is_duration(dtype)
        or pa.types.is_binary(dtype)
        or pa.types.is_large_binary(dtype)
        or pa.types.is_fixed_size_binary(dtype)
    )


def _spelled(dtype: pa.DataType, *, as_text: bool) -> pa.DataType:
    """The type in which Arrow reads what is written for another."""
    if _is_odd(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_timestamp(dtype) and (as_text or dtype.unit == "ns"):
        return pa.string()
    return _spelled(dtype.value_type, as_text=as_text) if pa.types.is_dictionary(dtype) else dtype


def _meant(column: Any, dtype: pa.DataType) -> Any:
    """What was read for a type as values of that type."""
    if column.type == dtype:
        return column
    if pa.types.is_timestamp(dtype):
        return times_of(column, dtype)
    return as_written(column, dtype) if _is_odd(dtype) else column.cast(dtype)


def _cell(cell: str, dtype: pa.DataType) -> Any:
    """A cell as Arrow reads it by itself."""
    if cell == "" and not _is_text(dtype):
        return pa.nulls(1, dtype)
    spelled = _spelled(dtype, as_text=True)
    if _is_text(spelled):
        return pa.array([cell], spelled)
    quoted = '"' + cell.replace('"', '""') + '"\n'
    options = pa.csv.ConvertOptions(column_types={"0": spelled})
    reading = pa.csv.ReadOptions(column_names=["0"], use_threads=False)
    table = pa.csv.read_csv(pa.BufferReader(quoted.encode()), reading, convert_options=options)
    return table.column(0).combine_chunks()
