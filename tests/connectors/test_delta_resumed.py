"""Runs that go on from the versions up to which Delta tables had been read."""

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from quick import cases
from test_resumed_runs import elements_of, resumed, starts_of

import anabranch as ab
from anabranch.connectors.delta import commits
from anabranch.connectors.delta.reading import VersionRange, opened
from anabranch.connectors.tables.table_error import TableError
from anabranch.errors import AnabranchError

ROOMS = {"room": "string", "at": "int64"}
IN_ARROW = pa.schema([("room", pa.string()), ("at", pa.int64())])
FEED = {"delta.enableChangeDataFeed": "true"}


def made(path, *, by=None):
    DeltaTable.create(path, schema=IN_ARROW, partition_by=by, configuration=FEED)
    return path


def put(path, starts, **settings):
    starts = list(starts)
    rows = pa.table({"room": [f"r{at % 5}" for at in starts], "at": starts}, IN_ARROW)
    write_deltalake(path, rows, mode="append", **settings)


def plan():
    return ab.source("levels", ROOMS, start="at")


def merged(disorder=40):
    columns = ROOMS | {"site": "string"}
    rows = ab.source("levels", columns, start="at", disorder=disorder, replica="site", lossy=True)
    return rows.merge().filter(ab.col("room") != "r1")


def changes():
    columns = ROOMS | {"site": "string", "op": "string", "time": "timestamp[us, tz=UTC]"}
    return ab.source(
        "levels", columns, start="time", op="op", key="at", replica="site", disorder="1 minute"
    ).merge()


def changed(rng, path, starts):
    """One more version, of any kind."""
    table, at = DeltaTable(path), rng.choice(starts)
    match rng.randrange(5):
        case 0:
            table.update(updates={"room": f"'s{rng.random():.6f}'"}, predicate=f"at % 3 = {at % 3}")
        case 1:
            table.delete(f"at = {at}")
        case 2:
            table.delete(f"room = 'r{at % 5}'")
        case 3:
            table.optimize.compact()
        case _:
            table.create_checkpoint()
            put(path, (80_000 + rng.randrange(10_000) for _ in range(rng.randrange(30))))


def put_replicas(place, rng):
    """Two replicas of one stream, each in versions of its own; rows come a little out of order."""
    rows = sorted(rng.sample(range(2_000), 450))
    for replica in ("east", "west"):
        path = made(place / replica, by=rng.choice([None, ["room"]]))
        own = sorted((at for at in rows if rng.random() < 0.99), key=lambda at: at + rng.uniform(0, 20))
        for begin in range(0, len(own), 60):
            put(path, own[begin : begin + 60])
    return {name: place / name for name in ("east", "west")}


@pytest.mark.parametrize("seed", range(cases(3)))
@pytest.mark.parametrize("of_changes", [False, True])
def test_tables_are_gone_on_with_wherever_a_run_is_stopped(tmp_path, monkeypatch, seed, of_changes):
    rng = random.Random(seed)
    monkeypatch.setattr(commits, "ROWS", rng.choice([7, 50, 300]))
    tables = put_replicas(tmp_path, rng)
    if of_changes:
        for _ in range(4):
            changed(rng, tables["east"], range(2_000))
        tables["west"] = shutil.copytree(tables["east"], tmp_path / "copy")
        changed(rng, tables["east"], range(2_000))
    start, disorder = rng.choice([("earliest", 500), ("snapshot", 2_000)])
    door, rows = ab.delta_changes(tables, start=start), merged(disorder)
    for stream in [changes()] if of_changes else [rows, rows.window(500).agg(count=ab.count())]:
        one = elements_of(ab.run(stream, {"levels": door}))
        assert len(one) > 5
        found = resumed(
            lambda state, stream=stream: ab.run(stream, {"levels": door}, state=state), rng, most=4
        )
        assert elements_of(found) == one


@pytest.mark.parametrize("seed", range(cases(4)))
def test_a_table_that_is_followed_or_not_loses_and_repeats_nothing(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    monkeypatch.setattr(commits, "ROWS", 7)
    path, starts = made(tmp_path / "levels"), iter(range(10_000))
    door = ab.delta_changes(path)
    state, written, found = None, 0, []
    for _ in range(8):
        for _ in range(rng.randint(0, 2)):
            count = rng.choice([1, 5, 30])
            put(path, [next(starts) for _ in range(count)])
            written += count
        live = rng.random() < 0.7
        with ab.run(plan(), {"levels": door}, live=live, finish=live, state=state) as run:
            while len(found) < written and rng.random() < 0.7:
                found += starts_of([next(run)])
            state = run.state
    found += starts_of(ab.run(plan(), {"levels": door}, state=state))
    assert Counter(found) == Counter(range(written))


@pytest.mark.parametrize("seed", range(cases(3)))
@pytest.mark.parametrize("by", [None, ["room"]])
def test_a_version_has_the_rows_of_its_feed_in_one_order(tmp_path, seed, by):
    rng = random.Random(seed)
    path = made(tmp_path / "levels", by=by)
    put(path, rng.sample(range(80_000), 40_000))
    for _ in range(6):
        changed(rng, path, range(80_000))
    table = opened(str(path))
    for version in range(table.version + 1):
        part = VersionRange("", str(path), table.identity, version)
        found = [
            (op, row)
            for op, rows in table.changes(part)
            for row in rows.select(["room", "at", "_commit_timestamp"]).to_pylist()
        ]
        again = [
            (op, rows.num_rows, rows.column("at").to_pylist()) for op, rows in opened(str(path)).changes(part)
        ]
        assert [at for _, _, starts in again for at in starts] == [row["at"] for _, row in found]
        feed = pa.table(table.table.load_cdf(version, version)).to_pylist()
        goes = ("delete", "update_preimage")
        theirs = Counter(
            (row["_change_type"] in goes, row["room"], row["at"], row["_commit_timestamp"]) for row in feed
        )
        assert Counter((op == "delete", *row.values()) for op, row in found) == theirs
        assert [op for op, _ in found] == sorted(op for op, _ in found)


def test_the_columns_of_partitions_have_their_types(tmp_path):
    at = pa.timestamp("us", "UTC")
    kinds = {"day": pa.date32(), "n": pa.int32(), "when": at, "is": pa.bool_(), "name": pa.string()}
    rows = pa.table(
        {
            "day": pa.array(["2026-03-08", None]).cast(pa.date32()),
            "n": pa.array([-4, None], pa.int32()),
            "when": pa.array(["2026-03-08T02:30:00.5Z", None]).cast(at),
            "is": [True, None],
            "name": ["a b/c=d%", None],
            "at": pa.array([1, 2], pa.int64()),
        }
    )
    path = tmp_path / "levels"
    write_deltalake(path, rows, partition_by=list(kinds), configuration=FEED)
    DeltaTable(path).update(updates={"at": "at + 10"})
    source = ab.source("levels", {**kinds, "at": "int64"}, start="at")
    inserted = elements_of(ab.run(source, {"levels": ab.delta_changes(path, time=None)}))
    found = [(one.payload, one.start) for one in inserted if isinstance(one, ab.Insert)]
    first = {name: value for name, value in rows.to_pylist()[0].items() if name != "at"}
    assert [payload for payload, start in found if start in (1, 11)] == [first] * 3
    assert [payload for payload, start in found if start in (2, 12)] == [{}] * 3


def test_a_table_that_was_begun_at_its_end_misses_nothing_between_two_runs(tmp_path):
    path = made(tmp_path / "levels")
    put(path, [1])
    door = ab.delta_changes(path, start="latest")
    state = ab.run(plan(), {"levels": door}).state
    put(path, [2])
    told = []
    assert starts_of(ab.run(plan(), {"levels": door}, state=state, progress=told.append)) == [2]
    assert told[-1] == 1.0


def test_a_table_that_was_begun_with_its_rows_goes_on_with_what_changes(tmp_path):
    path = made(tmp_path / "levels")
    put(path, [1])
    put(path, [2])
    door = ab.delta_changes(path, start="snapshot")
    run = ab.run(plan(), {"levels": door}, finish=False)
    assert sorted(starts_of(run)) == [1, 2]
    put(path, [3])
    with ab.run(plan(), {"levels": door}, live=True, state=run.state) as run:
        assert starts_of([next(run)]) == [3]
        put(path, [4])
        assert starts_of([next(run)]) == [4]
    put(path, [5])
    assert starts_of(ab.run(plan(), {"levels": door}, state=run.state)) == [5]


def part_read(path, **settings):
    """The state of a run that has used a part of the second of three versions."""
    put(path, [1])
    put(path, range(10, 60))
    put(path, [99])
    run = ab.run(plan(), {"levels": ab.delta_changes(path, **settings)})
    assert [len(starts_of([next(run)])) for _ in range(2)] == [1, 20]
    return run.state


def make_anew(path):
    shutil.rmtree(path)
    made(path)
    for starts in ([1], range(10, 60), [99]):
        put(path, starts)


def clean_up(path):
    DeltaTable(path).update(updates={"at": "at + 100"})
    DeltaTable(path).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)


def clean_up_log(path):
    DeltaTable(path).create_checkpoint()
    for version in range(3):
        (path / "_delta_log" / f"{version:020}.json").unlink()


def put_back(path):
    shutil.rmtree(path)
    shutil.copytree(path.parent / "copy", path)


def put_back_and_go_on(path):
    put_back(path)
    put(path, range(10, 60))
    put(path, [99])


def turn_off(path):
    DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (make_anew, "was deleted and made again since it was read"),
        (clean_up, "version 2 of .* is no longer there: it was cleaned up before it was read"),
        (clean_up_log, "version 2 of .* is no longer there: it was cleaned up before it was read"),
        (put_back, "was read up to version 1, and its last is 0"),
        (put_back_and_go_on, "version 1 of the table .* is not the one that was read"),
        (turn_off, "the change data feed of .* is off"),
    ],
)
@pytest.mark.parametrize("live", [True, False])
def test_a_table_that_is_not_as_it_was_is_named(tmp_path, monkeypatch, live, change, message):
    monkeypatch.setattr(commits, "ROWS", 20)
    path = made(tmp_path / "levels")
    shutil.copytree(path, tmp_path / "copy")
    state = part_read(path)
    change(path)
    with pytest.raises(TableError, match=message) as raised:
        list(ab.run(plan(), {"levels": ab.delta_changes(path)}, live=live, state=state))
    assert raised.value.__notes__


def test_versions_that_have_been_read_may_be_cleaned_up(tmp_path):
    path = made(tmp_path / "levels")
    put(path, [1])
    run = ab.run(plan(), {"levels": ab.delta_changes(path)}, finish=False)
    assert starts_of(run) == [1]
    state = run.state
    put(path, [7])
    DeltaTable(path).create_checkpoint()
    for version in range(2):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    assert starts_of(ab.run(plan(), {"levels": ab.delta_changes(path)}, state=state)) == [7]


def test_another_table_is_another_input(tmp_path):
    tables = {name: made(tmp_path / name) for name in ("east", "west", "south")}
    run = ab.run(merged(), {"levels": ab.delta_changes([tables["east"], tables["west"]])}, finish=False)
    list(run)
    for given, message in (
        (["east"], "a position of 'levels west'.*no such input is given"),
        (["east", "west", "south"], "no position of 'levels south'"),
    ):
        with pytest.raises(AnabranchError, match=message):
            ab.run(merged(), {"levels": ab.delta_changes([tables[one] for one in given])}, state=run.state)


CHILD = """
import json, os, sys
from pathlib import Path
import anabranch as ab

table, kept = map(Path, sys.argv[1:])
state, rows = None, []
if kept.exists():
    text = kept.read_bytes()
    head, _, state = text.partition(b"\\n")
    rows = json.loads(head)
stream = ab.source("levels", {"room": "string", "at": "int64"}, start="at")
for batch in (run := ab.run(stream, {"levels": ab.delta_changes(table)}, live=True, state=state)):
    rows += [one.start for one in batch.elements() if isinstance(one, ab.Insert)]
    part = kept.with_suffix(".part")
    part.write_bytes(json.dumps(rows).encode() + b"\\n" + run.state)
    os.replace(part, kept)
    print(len(rows), flush=True)
"""


def test_a_process_that_is_killed_and_started_again_loses_and_repeats_nothing(tmp_path):
    path, kept = made(tmp_path / "levels"), tmp_path / "kept"
    put(path, range(60_000))
    written = 60_000
    for turn in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(kept)], stdout=subprocess.PIPE, text=True
        ) as child:
            wanted = written if turn == 2 else 1 + 25_000 * turn
            for line in child.stdout:
                if int(line) >= wanted:
                    break
            child.send_signal(signal.SIGKILL)
        rows = json.loads(kept.read_bytes().partition(b"\n")[0])
        if turn < 2:
            assert rows
            put(path, range(written, written + 1000))
            written += 1000
    assert rows == starts_of(ab.run(plan(), {"levels": ab.delta_changes(path)}))
    assert sorted(rows) == list(range(written))
