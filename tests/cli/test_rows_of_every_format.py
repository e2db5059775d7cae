"""The command, the expression in Python and the plan give the same events of random files of every format."""

import csv
import io
import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch as ab
from anabranch.cli.main import main

Rows = list[dict[str, Any]]
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
ODD_NAMES = [
    "room, 1",
    'say "x"',
    "two\nlines",
    "ß",
    " level",
    "payload",
    "input",
    "end",
    "start",
    "replica",
    "_",
]
TEXTS = ["a", "x,y", 'say "hi"', "two\nlines", '5" pipe', " a", "ß", "null", "NA x", "007 "]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), TEXTS),
    "whole": (pa.int64(), [0, -7, 2**62]),
    "number": (pa.float64(), [0.5, -1e300, 3.25]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [date(2026, 3, 1), date(1969, 12, 31)]),
}
DURATION = 5 * 60 * 1_000_000


def random_replicas(random: Random) -> tuple[pa.Schema, dict[str, Rows]]:
    """Rows that replicas have of one stream, each with holes, some with none at all."""
    kinds = dict(zip(random.sample(ODD_NAMES, 5), VALUES, strict=True))
    at = random.choice(["at", "when, exactly", "time"])
    events = [
        {at: FIRST + timedelta(microseconds=random.randrange(4_000_000_000))}
        | {name: random.choice([None, *VALUES[kind][1]]) for name, kind in kinds.items()}
        for _ in range(random.randrange(1, 12))
    ]
    replicas = {"north": [row for row in events if random.random() < 0.8] or events}
    for name in ("south", "west")[: random.randrange(1, 3)]:
        share = random.choice([0, 0.5, 0.9])
        replicas[name] = [row for row in events if random.random() < share]
    for rows in replicas.values():
        random.shuffle(rows)
    columns = [(at, pa.timestamp("us", "UTC")), *((name, VALUES[kind][0]) for name, kind in kinds.items())]
    return pa.schema(columns), replicas


def moment(value: datetime, random: Random) -> str:
    zone = random.choice([UTC, timezone(timedelta(hours=5, minutes=30)), ZoneInfo("Europe/Berlin")])
    text = value.astimezone(zone).isoformat(timespec="microseconds")
    return text.replace("+00:00", random.choice(["Z", "+00:00"]))


def plain(value: Any, random: Random) -> Any:
    if isinstance(value, datetime):
        return moment(value, random)
    return value.isoformat() if isinstance(value, date) else value


def as_csv(schema: pa.Schema, rows: Rows, random: Random) -> bytes:
    text, ending = io.StringIO(newline=""), random.choice(["\n", "\r\n"])
    writer = csv.writer(text, lineterminator=ending)
    names = random.sample(schema.names, len(schema))
    if rows or random.random() < 0.5:
        writer.writerow(names)
    for row in rows:
        writer.writerow(["" if row[name] is None else plain(row[name], random) for name in names])
    torn = random.choice(["", "torn"]) if rows else ""
    found = text.getvalue() + torn
    if rows and not torn and random.random() < 0.5:
        found = found.removesuffix(ending)
    return random.choice([b"", b"\xef\xbb\xbf"]) + found.encode()


def as_lines(rows: Rows, random: Random) -> bytes:
    lines = []
    for row in rows:
        kept = {
            name: plain(one, random) for name, one in row.items() if one is not None or random.random() < 0.5
        }
        lines.append(json.dumps(kept, ensure_ascii=random.random() < 0.5))
    torn = random.choice(["", '{"at": "2026-03'])
    return random.choice([b"", b"\xef\xbb\xbf"]) + ("".join(f"{line}\n" for line in lines) + torn).encode()


def table(schema: pa.Schema, rows: Rows, random: Random) -> pa.Table:
    zone = pa.timestamp("us", random.choice(["UTC", "Europe/Berlin", "America/New_York"]))
    return pa.Table.from_pylist(rows, schema.set(0, schema.field(0).with_type(zone)))


def written(folder: Path, name: str, schema: pa.Schema, rows: Rows, random: Random) -> str:
    ending = random.choice(["csv", "jsonl", "parquet", "arrow"])
    path = folder / f"{name}.{ending}"
    match ending:
        case "csv":
            path.write_bytes(as_csv(schema, rows, random))
        case "jsonl":
            path.write_bytes(as_lines(rows, random))
        case "parquet":
            pq.write_table(table(schema, rows, random), path)
        case _:
            made = table(schema, rows, random)
            with pa.ipc.new_file(path, made.schema) as writer:
                writer.write_table(made)
    return str(path)


def events(batches: Any) -> Counter[Any]:
    relation = ab.Relation()
    for batch in batches:
        relation.apply(batch)
    return Counter(
        {
            (event.start, event.end, tuple(sorted(event.payload.items()))): count
            for event, count in relation.current().rows()
        }
    )


def expected(at: str, replicas: dict[str, Rows]) -> Counter[Any]:
    """Of each event as many as the replica has that has most of it."""
    found: Counter[Any] = Counter()
    for rows in replicas.values():
        found |= Counter(
            (
                (start := (row[at] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)),
                start + DURATION,
                tuple(sorted((name, one) for name, one in row.items() if name != at and one is not None)),
            )
            for row in rows
        )
    return found


def plan(at: str, columns: Any) -> Any:
    source = ab.source(
        "rows", columns, start=at, duration="5 minutes", disorder="2 hours", replica="which", lossy=True
    )
    return source.merge()


def run(at: str, feeds: dict[str, Any]) -> Counter[Any]:
    columns = ab.columns(feeds, replica="which")
    return events([ab.run(plan(at, columns), {"rows": feeds}, on_invalid=ab.Drop()).table()])


@pytest.mark.parametrize("seed", range(60))
def test_the_command_the_expression_and_the_plan_give_the_same_events(tmp_path, seed):
    random = Random(seed)
    schema, replicas = random_replicas(random)
    at = schema.names[0]
    wanted = expected(at, replicas)
    files = {name: written(tmp_path, name, schema, rows, random) for name, rows in replicas.items()}
    out = str(tmp_path / "out" / f"merged.{random.choice(['parquet', 'arrow', 'jsonl'])}")
    Path(out).parent.mkdir()
    options = ["--start", at, "--duration", "5 minutes", "--disorder", "2 hours", "--lossy", "all"]
    assert main(["merge", *files.values(), *options, "--on-violation", "drop", "-o", out]) == 0
    lines = out.endswith("jsonl")
    assert events(ab.read(out)) == (as_in_lines(wanted) if lines else wanted)
    assert run(at, files) == wanted
    assert (
        run(at, {name: at_hand(table(schema, rows, random), random) for name, rows in replicas.items()})
        == wanted
    )
    job = plan(at, schema.append(pa.field("which", pa.string()))).open()
    pushed = [job.push("rows", table(schema, rows, random), replica=name) for name, rows in replicas.items()]
    assert events([*pushed, job.passes.close()[""]]) == wanted


def at_hand(rows: pa.Table, random: Random) -> Any:
    match random.choice(["pyarrow", "pandas", "polars", "duckdb"]):
        case "pandas":
            return rows.to_pandas(types_mapper=pd.ArrowDtype)
        case "polars":
            return pl.from_arrow(rows)
        case "duckdb":
            return duckdb.from_arrow(rows)
        case _:
            return rows


def as_in_lines(wanted: Counter[Any]) -> Counter[Any]:
    """The same with dates as lines have them, as text."""
    return Counter(
        {
            (
                start,
                end,
                tuple((name, one.isoformat() if isinstance(one, date) else one) for name, one in payload),
            ): n
            for (start, end, payload), n in wanted.items()
        }
    )
