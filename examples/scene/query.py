"""A query with its words, its plan, and the SQL that says the same of all rows once they are there."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

import anabranch as ab

ROWS = 1_000
"""How many rows of a source are pushed at once."""


@dataclass(frozen=True)
class Query:
    """A standing query over sources that are tables by their names once they have ended."""

    name: str
    words: str
    plan: Callable[[], ab.Stream]
    sql: str
    """Over tables with the names of the sources, in which times are microseconds."""


def answered(
    query: Query, tables: Mapping[str, pa.Table], *, rows: int = ROWS, finish: bool = True
) -> pa.Table:
    """What a query says of rows in the order in which they come, in this process.

    Unless they are to ``finish``, sources may go on after their last row.
    """
    plan = query.plan()
    said = ab.Relation()
    for batch in ab.run(plan, read_by(plan, tables), rows=rows, finish=finish):
        said.apply(batch)
    return _table(plan, [event.payload for event in said.events()])


def answered_by_spark(query: Query, tables: Mapping[str, pa.Table], session: Any) -> pa.Table:
    """The same on Spark, where sources go on: one query over folders of files, and what its rows denote."""
    import pyarrow.parquet as pq

    from anabranch import spark

    plan = query.plan()
    with TemporaryDirectory() as there:
        place = Path(there)
        doors = {}
        for name, table in read_by(plan, tables).items():
            (place / name).mkdir()
            pq.write_table(table, place / name / "1.parquet")
            doors[name] = spark.folder(session, place / name, by_replica=False)
        frame = spark.frame(plan, doors)
        writing = spark.write_folder(frame, place / "out", checkpoint=place / "at", available_now=True)
        spark.wait(writing)
        found = spark.table(session.read.parquet(f"{place}/out")).select(*plan.schema.names)
        return _table(plan, [row.asDict() for row in found.collect()])


def judged(query: Query, tables: Mapping[str, pa.Table]) -> pa.Table:
    """What DuckDB's SQL says of all rows at once."""
    import duckdb

    con = duckdb.connect()
    for name, table in tables.items():
        con.register(name, in_ticks(table))
    return con.sql(query.sql).to_arrow_table()


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The rows of a table as a bag, with times as microseconds, whatever the order of rows and columns."""
    plain = in_ticks(table)
    return Counter(zip(*(plain.column(name).to_pylist() for name in sorted(plain.column_names)), strict=True))


def read_by(plan: ab.Stream, tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The tables that a plan reads."""
    return {name: tables[name] for name in plan.open().status().sources}


def _table(plan: ab.Stream, rows: list[Any]) -> pa.Table:
    return pa.Table.from_pylist(rows, plan.schema)


def in_ticks(table: pa.Table) -> pa.Table:
    """A table with its times as microseconds."""
    columns = {
        name: column.cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        if pa.types.is_timestamp(column.type)
        else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns)
