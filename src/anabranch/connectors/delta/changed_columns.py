"""The columns of the changes of Delta tables: those of the tables, and those that are added to them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from anabranch.connectors.delta.descriptions import check_package, tables_named
from anabranch.engines.spark.columns import Columns
from anabranch.engines.spark.session.row_types import in_spark_form, with_columns
from anabranch.model.schema import SchemaError
from anabranch.rows.layout import SINGLE

REPLICA = "replica"
"""The column that holds the name of the table of each row."""


def change_columns(
    tables: str | Path | Iterable[str | Path] | Mapping[str, str | Path],
    op: str,
    time: str | None,
    version: str | None,
    zone: str,
) -> Columns:
    """The columns that `delta_changes` gives rows, without Spark; ``zone`` is where times are shown."""
    check_package()
    named = tables_named(tables)
    columns, names = described_columns(named, op, time, version)
    replica = names.get(REPLICA)
    known = () if replica is None else tuple(named)
    return Columns(in_spark_form(columns, zone), zone, is_native=True, replica=replica, replicas=known, op=op)


def described_columns(
    named: Mapping[str, str], op: str, time: str | None, version: str | None
) -> tuple[pa.Schema, dict[str, str]]:
    """The columns of changes of tables, and what those that are added are called."""
    columns = _columns(named)
    replica = None if list(named) == [SINGLE] else REPLICA
    added = {"op": op, "time": time, "version": version, "replica": replica}
    names = {what: name for what, name in added.items() if name is not None}
    _check_names(columns, names)
    kinds = {"time": pa.timestamp("us", "UTC"), "version": pa.int64()}
    return with_columns(columns, {name: kinds.get(what, pa.string()) for what, name in names.items()}), names


def _columns(tables: Mapping[str, str]) -> pa.Schema:
    """The columns of the tables, which have the same."""
    from anabranch.connectors.delta.reading import opened

    found: dict[str, pa.Schema] = {}
    for path in tables.values():
        found[path] = opened(path).columns
        first, columns = next(iter(found.items()))
        for field in columns:
            theirs = found[path].field(field.name) if field.name in found[path].names else None
            if theirs is None or theirs.type != field.type:
                what = "has none" if theirs is None else f"has {theirs.type}"
                error = SchemaError(f"column {field.name!r} of {first} is {field.type}, and {path} {what}")
                error.add_note("Replicas of one table have the same columns; cast or add it in the table.")
                raise error
    return columns


def _check_names(columns: pa.Schema, names: Mapping[str, str]) -> None:
    lower = [name.lower() for name in columns.names]
    for what, name in names.items():
        if name.lower() in lower:
            error = ValueError(f"{what} is the column {name!r}, and the table has one of that name")
            error.add_note(
                "Rename the column of the table."
                if what == REPLICA
                else f"Call the added one something else: {what}='…'."
            )
            raise error
    if len(set(names.values())) < len(names):
        raise ValueError(f"the columns that are added have different names, not {', '.join(names.values())}")
