"""The command line of examples that are queries: which of them, on which engine, and their pictures."""

import argparse
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from scene.local_spark import local_spark
from scene.query import Query, answered, answered_by_spark, counted, judged


def main(words: str, queries: Mapping[str, Query], tables: Mapping[str, pa.Table]) -> int:
    """Run queries, print what each says beside DuckDB's SQL, and say with the status whether all agree."""
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("queries", nargs="*", metavar="QUERY", help=f"of {', '.join(queries)} (default all)")
    parser.add_argument("--spark", action="store_true", help="on Spark; without, in this process")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw the plans, run nothing")
    given = parser.parse_args()
    unknown = [name for name in given.queries if name not in queries]
    if unknown:
        parser.error(f"there is no query {unknown[0]!r}, only {', '.join(queries)}")
    chosen = [queries[name] for name in given.queries or queries]
    if given.pictures is not None:
        given.pictures.mkdir(parents=True, exist_ok=True)
        for query in chosen:
            (given.pictures / f"{query.name.lower()}.svg").write_text(query.plan().picture(), "utf-8")
        return 0
    with ExitStack() as stack:
        session = None
        if given.spark:
            session = stack.enter_context(local_spark(Path(stack.enter_context(TemporaryDirectory()))))
        agreed = [_shown(query, tables, session) for query in chosen]
        return 0 if all(agreed) else 1


def _shown(query: Query, tables: Mapping[str, pa.Table], session: object) -> bool:
    """Print what a query says; true if another engine says the same.

    In this process sources end, and SQL over all rows is the judge. On Spark they go on, so that the last
    windows are open, and the judge is this process before the end.
    """
    if session is None:
        found, expected, judge = answered(query, tables), judged(query, tables), "SQL over all rows"
    else:
        found, judge = answered_by_spark(query, tables, session), "one process before the end"
        expected = answered(query, tables, finish=False)
    agrees = counted(found) == counted(expected)
    print(f"{query.name}: {query.words}")
    print(f"    {found.num_rows:,} rows, {'as' if agrees else 'NOT as'} {judge} says")
    if found.num_rows:
        print(f"    such as {found.slice(0, 1).to_pylist()[0]}")
    return agrees
