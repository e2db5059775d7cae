"""Connectors that snapshot one database at different moments, beside DuckDB over its log."""

import json
from random import Random

import duckdb
import pyarrow as pa
import pytest

from anabranch import spark as ab

BEGIN = 1_772_366_400_000
LENGTH, SNAPSHOT, DEAD = 600, 300, 450


def log_of(random: Random) -> list[tuple[str, int, int, int]]:
    """Changes of a table of 60 rows: what happened, when, to which row, and its new value."""
    there, log, now = set(), [], BEGIN
    for _ in range(LENGTH):
        now += random.choice((0, 1, 400, 1_000))
        row = random.randrange(60)
        op = random.choice("uud") if row in there else "c"
        there = there - {row} if op == "d" else there | {row}
        log.append((op, now, row, random.randrange(3)))
    return log


def envelope(op: str, at: int, row: int, value: int, **source) -> str:
    image = {"id": row, "value": value}
    before, after = (image, None) if op == "d" else (None, image)
    return json.dumps({"before": before, "after": after, "op": op, "source": {"ts_ms": at, **source}})


def snapshot_of(log: list) -> list[str]:
    there = {}
    for op, _, row, value in log:
        there[row] = None if op == "d" else value
    at = log[-1][1]
    return [
        envelope("r", at + n // 20, row, value, snapshot="true")
        for n, (row, value) in enumerate(there.items())
        if value is not None
    ]


def put(place, parts: list[list[str]]) -> None:
    for number, lines in enumerate(parts):
        (place / f"{number:04}.jsonl").write_text("\n".join(lines) + "\n")


def history_of(log: list) -> list[tuple]:
    """DuckDB's answer: each version until the next change of its row."""
    names = ("op", "since", "id", "value")
    rows = [{"n": n, **dict(zip(names, one, strict=True))} for n, one in enumerate(log)]
    changes = pa.Table.from_pylist(rows)
    assert changes.num_rows == LENGTH
    return duckdb.sql(
        "with versions as (select *, lead(since) over (partition by id order by n) as until from changes) "
        "select id, value, since, until from versions "
        "where op <> 'd' and (until is null or until > since) order by all",
    ).fetchall()


@pytest.mark.parametrize("first", ["a", "b"])
def test_two_connectors_with_a_snapshot_give_the_history_of_the_log(spark, tmp_path, first):
    log = log_of(Random(7))
    whole = [envelope(*one) for one in log]
    after = [*snapshot_of(log[:SNAPSHOT]), *whole[SNAPSHOT:]]
    said = {"a": [whole[:200], whole[200:DEAD]], "b": [after[:20], after[20:100], after[100:]]}
    place, out = tmp_path / "in", tmp_path / "out"
    for name in said:
        (place / name).mkdir(parents=True)

    def run():
        rows = ab.folder(spark, place, schema="id int, value int", format="debezium", files_per_trigger=1)
        merged = ab.merge_changes(rows, key="id", time="time", replica="replica", disorder="2 seconds")
        query = ab.write_table(
            merged, out, kind="history", format="parquet", checkpoint=tmp_path / "c", available_now=True
        )
        assert ab.wait(query, 240)
        return ab.status(query)

    put(place / first, said[first])
    run()
    [other] = said.keys() - {first}
    put(place / other, said[other])
    status = run()
    files = f"{out}/latest/*.parquet"
    found = duckdb.sql(
        f"select id, value, epoch_ms(valid_from), epoch_ms(valid_to) from '{files}' order by all"
    ).fetchall()
    assert found == history_of(log)
    assert sum(one.refused for one in status.replicas.values()) == 0
    assert [(one.disagreements, one.since_snapshot) for one in status.replicas.values()] == [(0, 0)] * 2
