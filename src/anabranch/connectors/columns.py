"""The columns of plain rows: those of tables and columnar files, or of the first rows of files of text."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from anabranch.connectors.files.formats import Format, format_of
from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.files.sampled_columns import csv_columns, json_columns, with_text
from anabranch.connectors.folder.listing import listing
from anabranch.connectors.folder.reading import file_schema
from anabranch.model.arrow import plain_type
from anabranch.model.schema import SchemaError, sorts_agree, unified
from anabranch.model.spelling import did_you_mean
from anabranch.plan.columns import schema_of, type_of


def columns(
    rows: Any,
    *,
    replica: str | None = None,
    schema: Mapping[str, Any] | None = None,
    zone: str | None = None,
) -> pa.Schema:
    """The columns of rows, as `source` takes them.

    ``rows`` is a table (of pyarrow, pandas, Polars, DuckDB: anything with Arrow's C stream), the path of a
    file or of a folder, or a mapping from names of replicas to such, which then have the same columns, in
    types that hold the values of all. Texts of CSV and JSON lines have the types of the first 1,000 rows,
    except those that ``schema`` names. Times that name no zone, texts or not, are in ``zone``. ``replica`` is
    a column for the name of the replica, added where the rows have none.

    >>> import pyarrow as pa
    >>> north, south = pa.table({"at": [1], "level": [2]}), pa.table({"at": [1], "level": [2.5]})
    >>> columns({"north": north, "south": south}, replica="feed").names
    ['at', 'level', 'feed']
    """
    declared = {name: type_of(dtype, name) for name, dtype in (schema or {}).items()}
    found = [
        (label, _declared(known, declared), form)
        for label, known, form in _parts(rows, zone)
        if len(known) or form is None
    ]
    if not found:
        if not declared:
            error = SchemaError("columns are those of the first rows or of a header, and there is neither")
            error.add_note(
                "Give the columns: schema={'at': 'timestamp[us, tz=UTC]', …} (--schema COLUMN=TYPE)."
            )
            raise error
        found = [("schema", pa.schema(list(declared.items())), None)]
    _check_same(found)
    complete = _together(found)
    for name in declared:
        if name not in complete.names:
            error = SchemaError(
                f"schema names column {name!r}, and no row has it{did_you_mean(name, complete.names)}"
            )
            error.add_note(f"The columns are {', '.join(map(repr, complete.names)) or 'none'}.")
            raise error
    complete = with_text(complete)
    if replica is not None and replica not in complete.names:
        complete = complete.append(pa.field(replica, pa.string()))
    return schema_of(complete)


def _declared(known: pa.Schema, declared: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns in the types that are declared of them."""
    return pa.schema([field.with_type(declared.get(field.name, field.type)) for field in known])


_Part = tuple[str, pa.Schema, Format | None]
"""Some rows: what they are called, their columns, and the format of the file that they are in."""


def _parts(rows: Any, zone: str | None, name: str = "") -> Iterator[_Part]:
    if isinstance(rows, Mapping):
        for replica, one in rows.items():
            yield from _parts(one, zone, str(replica))
    elif isinstance(rows, str | Path):
        place = local_path(rows)
        files = (
            [file for some in listing(place).files.values() for file in some.values()]
            if place.is_dir()
            else [place]
        )
        for file in files:
            yield str(file), _columns_of_file(str(file), zone), format_of(file)
    else:
        label = f"the table of {name!r}" if name else "the table"
        yield label, _in_zone(_columns_of_table(rows, label), zone), None


def _columns_of_file(path: str, zone: str | None) -> pa.Schema:
    match format_of(path):
        case Format.CSV:
            return csv_columns(path, zone)
        case Format.JSON_LINES:
            return json_columns(path, zone)
        case Format.PARQUET | Format.ARROW:
            return _in_zone(file_schema(path), zone)
        case form:
            error = SchemaError(f"{path} is {form.value}, which holds elements, and rows are asked for")
            error.add_note("Give CSV, JSON lines, Parquet or Arrow.")
            raise error


def _columns_of_table(rows: Any, label: str) -> pa.Schema:
    if isinstance(rows, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        known = rows.schema
    elif hasattr(rows, "__arrow_c_stream__"):
        known = pa.RecordBatchReader.from_stream(rows).schema
    else:
        error = TypeError(f"columns are those of a table or of a file, and {label} is {rows!r:.100}")
        error.add_note("Give a table of pyarrow, pandas, Polars or DuckDB, or a path;")
        error.add_note('or write the columns: {"at": "timestamp[us, tz=UTC]", "level": "float64"}.')
        raise error
    # What pandas calls the index of a frame when it exports it: row numbers, no part of what is meant.
    own = (field for field in known if not field.name.startswith("__index_level_"))
    return pa.schema([(field.name, plain_type(field.type)) for field in own])


def _in_zone(known: pa.Schema, zone: str | None) -> pa.Schema:
    """The columns with their local times in a zone, if one is given."""
    if zone is None:
        return known
    return pa.schema(
        [
            field.with_type(pa.timestamp(field.type.unit, zone))
            if pa.types.is_timestamp(field.type) and field.type.tz is None
            else field
            for field in known
        ]
    )


def _check_same(parts: list[_Part]) -> None:
    """Raise where one has a column that another lacks: no row of one would ever be equal to one of the other.

    A line of JSON may leave out what is null.
    """
    for label, known, _ in parts:
        for name in known.names:
            for other, theirs, form in parts:
                if name not in theirs.names and form is not Format.JSON_LINES:
                    error = SchemaError(
                        f"{label} has column {name!r}, and {other} has not{did_you_mean(name, theirs.names)}"
                    )
                    error.add_note(
                        "Rows of replicas are compared by all their columns, so none would be equal."
                    )
                    error.add_note(
                        f"Give both the same columns; {other} has {', '.join(map(repr, theirs.names))}."
                    )
                    raise error


def _together(parts: list[_Part]) -> pa.Schema:
    """One schema of all; where all are CSV, a column whose cells have several forms is text."""
    are_cells = all(form is Format.CSV for _, _, form in parts)
    known = pa.schema([])
    label_of: dict[str, str] = {}
    for label, own, _ in parts:
        differing = [
            field.name
            for field in own
            if field.name in known.names and not sorts_agree(known.field(field.name).type, field.type)
        ]
        if differing and not are_cells:
            raise _conflict(differing[0], label_of, known, label, own)
        known = unified(_as_text(known, differing), _as_text(own, differing))
        label_of = dict.fromkeys(own.names, label) | label_of
    return known


def _as_text(known: pa.Schema, names: Collection[str]) -> pa.Schema:
    return pa.schema([field.with_type(pa.string()) if field.name in names else field for field in known])


def _conflict(
    name: str, label_of: Mapping[str, str], known: pa.Schema, label: str, own: pa.Schema
) -> SchemaError:
    first, other = known.field(name).type, own.field(name).type
    error = SchemaError(f"column {name!r} of {label_of[name]} holds {first}, and that of {label} {other}")
    error.add_note(
        "Values of two sorts are never equal, so no row of one would be a copy of one of the other."
    )
    error.add_note(
        f"Give the type of both, where one is text: schema={{{name!r}: …}} (--schema {name}=TYPE);"
    )
    error.add_note("of times without a zone, the zone: zone='Europe/Berlin' (--zone Europe/Berlin).")
    return error
