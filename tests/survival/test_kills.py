"""A few kills in the middle of micro-batches; `./run kills` runs hundreds."""

import asyncio
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from survival.killing import Kill, Point
from survival.kills import rounds
from survival.rounds import Round, fault


def survived(one: Round, folder, broker) -> None:
    assert asyncio.run(one.run(folder, broker)) == {}
    assert [kill.number for kill in one.kills if not kill.struck] == [], "every place was reached"


def test_queries_whose_driver_and_whose_workers_are_killed_give_what_they_would_have_given(tmp_path, broker):
    """The driver dies where sinks are ahead of Spark; then each query loses a worker."""
    ahead = Point("folder", 0, "committed"), Point("kafka", 0, "written"), Point("table", 0, "committed")
    kills = [
        Kill(1, "driver", ahead),
        Kill(2, "worker", (Point("folder", 1, "merged"),)),
        Kill(3, "worker", (Point("kafka", 1, "sent"),)),
        Kill(4, "worker", (Point("table", 1, "merging"),)),
    ]
    survived(Round("few", Random(11), "local[6,4]", kills, batches=3), tmp_path / "few", broker)


@pytest.mark.slow
def test_queries_whose_executors_are_killed_give_what_they_would_have_given(tmp_path, broker):
    kills = [
        Kill(1, "executor", (Point("folder", 1, "merged"),)),
        Kill(2, "executor", (Point("kafka", 2, "written"),)),
        Kill(3, "executor", (Point("table", 3, "reading"),)),
    ]
    one = Round("some", Random(12), "local-cluster[2,1,1024]", kills, table="parquet")
    survived(one, tmp_path / "some", broker)


def test_a_row_that_is_there_twice_is_a_fault_even_where_the_events_are_right(tmp_path):
    schema = pa.schema([("kind", pa.string()), *((n, pa.int64()) for n in ("start", "end", "old_end"))])
    schema = schema.append(pa.field("value", pa.string()))
    insert = {"kind": "insert", "start": 1, "end": 5, "old_end": None, "value": "a"}
    stable = {"kind": "stable", "start": 9, "end": None, "old_end": None, "value": None}
    plan = {"sinks": {name: str(tmp_path / name) for name in ("folder", "calm-folder")}}
    meant = Counter([("a", 1, 5)])

    def write(name, *rows):
        (tmp_path / name).mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / name / "q-000000000-0000.parquet")
        return fault(plan, "folder", meant)

    write("calm-folder", insert, stable)
    assert write("folder", insert, stable) is None
    assert "1 × {'kind': 'stable'" in write("folder", insert, stable, stable)
    assert "has besides 1" in write("folder", insert, insert, stable)
    assert "lacks 1" in write("folder", stable)


def test_kills_are_drawn_from_the_seed_alone_and_a_number_is_always_of_the_same_kill():
    def drawn(total, victims=("driver", "worker", "executor")):
        return [
            (kill.number, kill.victim, kill.points, kill.delay)
            for one in rounds(7, victims, total)
            for kill in one.kills
        ]

    assert drawn(40)[:25] == drawn(25)
    assert [number for number, *_ in drawn(40)] == list(range(1, 41))
    assert {victim for _, victim, *_ in drawn(40)} >= {"driver", "worker", "executor"}
