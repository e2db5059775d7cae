"""Random plans as micro-batches of a query of levels, beside what they mean, restarted after each of them.

The plan, its streams and how they are cut are drawn from a seed alone (`laws.plans`). After every micro-batch
what the shards of the last level say is valid together; what is out is what the plan means.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
from engines.spark.plan_driving import LeveledQuery
from laws.operators import OPERATORS, Operator
from laws.plans import compare, drawn_plan, drawn_shape, drawn_stream, interleaved

from anabranch.engines.spark.query.status import ShardStatus
from anabranch.engines.spark.transport.frontier_rows import with_least
from anabranch.model.elements import Adjust, Element, Insert, Stable
from anabranch.model.time import BEGINNING, FOREVER
from anabranch.oracle.relation import World

ROWS = pa.schema(
    [
        ("kind", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("old_end", pa.int64()),
        ("value", pa.string()),
        ("n", pa.int64()),
        ("x", pa.int64()),
    ]
)


def rows(elements: Sequence[Element]) -> pa.RecordBatch:
    """Elements as the rows of a frame."""
    return pa.RecordBatch.from_pylist([_row(element) for element in elements], schema=ROWS)


def _row(element: Element) -> dict[str, Any]:
    match element:
        case Insert(payload, start, end):
            return {"kind": "insert", "start": start, "end": _null(end), **payload}
        case Adjust(payload, start, old_end, end):
            return {"kind": "adjust", "start": start, "end": _null(end), "old_end": _null(old_end), **payload}
        case Stable(time):
            return {"kind": "stable", "start": _null(time)}


def _null(time: int) -> int | None:
    return None if time == FOREVER else time


def _time(value: int | None) -> int:
    return FOREVER if value is None else value


def elements(batches: Sequence[pa.RecordBatch]) -> list[Element]:
    """The elements among rows of the output."""
    found: list[Element] = []
    for row in (row for batch in batches for row in batch.to_pylist()):
        payload = {name: row[name] for name in ("value", "n", "x") if row.get(name) is not None}
        match row["kind"]:
            case "insert":
                found.append(Insert(payload, row["start"], _time(row["end"])))
            case "adjust":
                found.append(Adjust(payload, row["start"], _time(row["old_end"]), _time(row["end"])))
    return found


def statuses(batches: Sequence[pa.RecordBatch]) -> list[ShardStatus]:
    """What shards say of themselves."""
    texts = [row["status"] for batch in batches for row in batch.to_pylist() if row["status"] is not None]
    return [msgspec.json.decode(text, type=ShardStatus) for text in texts]


def stables(batches: Sequence[pa.RecordBatch]) -> list[int]:
    """The stable that a sink would say of the rows of a micro-batch, if any."""
    written = with_least(pa.Table.from_batches(batches)).select(["kind", "start"]).to_pylist()
    return [_time(row["start"]) for row in written if row["kind"] == "stable"]


def check(seed: int, operators: Sequence[Operator] = OPERATORS) -> int:
    """Judge the plan of a seed; how many levels it has."""
    random = Random(seed)
    plan = drawn_plan(random, operators)
    shape = drawn_shape(random)
    streams = {name: drawn_stream(random, shape=shape) for name in plan.sources}
    query = LeveledQuery(plan.stream, random.randint(1, 3))
    worlds = {name: World() for name in plan.sources if name in query.reads}
    output, frontiers, pending = World(), dict[int, int](), dict[str, list[Element]]()
    pieces = interleaved(random, {name: streams[name] for name in worlds})
    for number, (name, piece) in enumerate(pieces):
        pending.setdefault(name, []).extend(piece)
        if number + 1 < len(pieces) and random.random() < 0.6:
            continue
        said = query.receive({one: [rows(part)] for one, part in pending.items()})
        for one, part in pending.items():
            for element in part:
                assert worlds[one].apply(element) is None
        pending = {}
        for element in elements(said):
            broken = output.apply(element)
            assert broken is None, f"{plan.text}: {element} breaks {broken}"
        now = statuses(said)
        frontiers |= {one.shard: one.frontier for one in now}
        stable = min(frontiers.values()) if len(frontiers) == len(query.ids) else BEGINNING
        told = stables(said) if said else []
        assert told == ([stable] if stable > output.stable else []), (
            f"{plan.text} says {told}, is at {stable}"
        )
        if stable > output.stable:
            output.apply(Stable(stable))
        if not plan.waits:
            compare(plan, worlds, output)
        if random.random() < 0.7:
            query.restart()
    assert output.stable == FOREVER, f"{plan.text}: all sources are stable for ever, the output is not"
    compare(plan, worlds, output)
    assert sum(one.live for one in now) == 0, f"{plan.text} holds something at the end"
    return len(query.parts)
