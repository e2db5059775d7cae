"""Runs that go on from where their files had been read: nothing is lost, and nothing comes twice."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from quick import cases

import anabranch as ab
from anabranch import Insert
from anabranch.errors import AnabranchError

ROOMS = {"room": "string", "at": "int64"}


def plan():
    return ab.source("levels", ROOMS, start="at")


def merged():
    rows = ab.source("levels", ROOMS | {"site": "string"}, start="at", disorder=0, replica="site", lossy=True)
    return rows.merge().filter(ab.col("room") != "r1")


def lines(path, *starts, room="A"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(json.dumps({"room": room, "at": at}) + "\n" for at in starts)


def starts_of(batches):
    return [one.start for batch in batches for one in batch.elements() if isinstance(one, Insert)]


def elements_of(batches):
    return [one for batch in batches for one in batch.elements()]


def put(path, starts):
    """Rows in a file of the format that its ending tells."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"room": f"r{at % 5}", "at": at} for at in starts]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows, pa.schema(ROOMS_IN_ARROW)), path)
    elif path.suffix == ".csv":
        path.write_text("room,at\n" + "".join(f"r{at % 5},{at}\n" for at in starts))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))


ROOMS_IN_ARROW = {"room": pa.string(), "at": pa.int64()}


def put_replicas(place, rng):
    """Two replicas of one stream, each in files of its own; some have more rows than are read at a time."""
    rows = sorted(rng.sample(range(80_000), 40_000))
    for replica in ("east", "west"):
        own = [at for at in rows if rng.random() < 0.99]
        cuts = sorted(rng.sample(range(len(own)), rng.randint(0, 3)))
        for n, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(own)], strict=True)):
            put(place / replica / f"{n}{rng.choice(['.parquet', '.csv', '.jsonl'])}", own[begin:end])


def resumed(make, rng, *, most, **settings):
    """All batches of a run that is stopped after some batches and gone on with, until it is at its end."""
    state, found = None, []
    while True:
        run = make(state, **settings)
        wanted = rng.randint(0, most)
        for _ in range(wanted):
            batch = next(run, None)
            if batch is None:
                return found
            found.append(batch)
        state = run.state
        run.close()


@pytest.mark.parametrize("seed", range(cases(8)))
def test_a_run_that_is_stopped_anywhere_and_gone_on_with_gives_the_elements_of_one_run(tmp_path, seed):
    rng = random.Random(seed)
    put_replicas(tmp_path, rng)
    for stream in (merged(), merged().window(1000).agg(count=ab.count())):
        one = elements_of(ab.run(stream, {"levels": tmp_path}))
        found = resumed(
            lambda state, stream=stream: ab.run(stream, {"levels": tmp_path}, state=state), rng, most=3
        )
        assert elements_of(found) == one


@pytest.mark.parametrize("seed", range(cases(8)))
def test_a_live_run_that_is_stopped_anywhere_loses_and_repeats_nothing(tmp_path, seed):
    rng = random.Random(seed)
    starts = iter(range(1_000_000))
    state, written, found = None, 0, []
    for _ in range(12):
        for _ in range(rng.randint(0, 3)):
            count = rng.choice([1, 5, 3_000])
            names = sorted(one.name for one in tmp_path.iterdir())
            last = names[-1] if names and rng.random() < 0.6 else f"{len(names):04}.jsonl"
            lines(tmp_path / last, *(next(starts) for _ in range(count)))
            written += count
        with ab.run(plan(), {"levels": tmp_path}, live=True, waiting=rng.randint(1, 4), state=state) as run:
            while len(found) < written and rng.random() < 0.7:
                found += starts_of([next(run)])
            state = run.state
    rest = ab.run(plan(), {"levels": tmp_path}, state=state)
    found += starts_of(rest)
    assert found == list(range(written))


def test_an_input_of_which_nothing_was_read_is_read_from_its_beginning(tmp_path):
    lines(tmp_path / "1.jsonl", 1, 2)
    run = ab.run(plan(), {"levels": tmp_path})
    assert starts_of(ab.run(plan(), {"levels": tmp_path}, state=run.state)) == [1, 2]


@pytest.mark.parametrize("name", ["1.jsonl", "1.csv"])
@pytest.mark.parametrize("whole_folder", [True, False])
def test_lines_that_were_added_since_are_read_by_the_next_run(tmp_path, name, whole_folder):
    file = tmp_path / "levels" / name
    put(file, [1, 2])
    given = file.parent if whole_folder else file
    state, found = None, []
    for added in ([], [3], [4, 5], [], [6]):
        with file.open("a") as out:
            form = "A,{}\n" if name.endswith(".csv") else '{{"room": "A", "at": {}}}\n'
            out.writelines(form.format(at) for at in added)
        run = ab.run(plan(), {"levels": given}, finish=False, state=state)
        found.append(starts_of(run))
        state = run.state
    assert found == [[1, 2], [3], [4, 5], [], [6]]


@pytest.mark.parametrize("live", [True, False])
def test_a_line_that_is_not_complete_is_read_once_it_is(tmp_path, live):
    file = tmp_path / "1.csv"
    file.write_text("room,at\nA,1\nA,2")
    run = ab.run(plan(), {"levels": tmp_path}, finish=False, live=live)
    assert starts_of([next(run)]) == [1]
    run.close()
    with file.open("a") as out:
        out.write("3\n")
    assert starts_of(ab.run(plan(), {"levels": tmp_path}, state=run.state)) == [23]


def test_files_that_are_read_may_be_removed_and_the_run_goes_on_with_later_ones(tmp_path):
    lines(tmp_path / "1.jsonl", 1)
    lines(tmp_path / "2.jsonl", 2)
    run = ab.run(plan(), {"levels": tmp_path}, finish=False)
    assert starts_of(run) == [1, 2]
    for file in tmp_path.iterdir():
        file.unlink()
    lines(tmp_path / "3.jsonl", 3)
    assert starts_of(ab.run(plan(), {"levels": tmp_path}, state=run.state)) == [3]


def big(folder, name="2.jsonl", rows=150_000):
    put(folder / name, range(10, 10 + rows))


def rewrite(folder):
    (folder / "2.jsonl").write_text((folder / "2.jsonl").read_text().replace("r", "s"))


def cut_short(folder):
    (folder / "2.jsonl").write_text("")


def remove(folder):
    (folder / "2.jsonl").unlink()


def put_before(folder):
    lines(folder / "1a.jsonl", 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (rewrite, "2.jsonl or it stays, and what was read of it has changed"),
        (cut_short, "2.jsonl or it stays, and what was read of it has changed"),
        (remove, "2.jsonl was read in part, and is gone"),
        (put_before, "1a.jsonl came or changed since"),
    ],
)
def test_files_that_are_not_as_they_were_are_named(tmp_path, change, message):
    lines(tmp_path / "1.jsonl", 1)
    big(tmp_path)
    run = ab.run(plan(), {"levels": tmp_path})
    next(run)
    assert len(next(run)) < 150_000
    state = run.state
    change(tmp_path)
    with pytest.raises((ValueError, OSError), match=message) as raised:
        list(ab.run(plan(), {"levels": tmp_path}, state=state))
    assert raised.value.__notes__


def test_a_live_run_names_a_file_that_comes_before_what_it_has_read(tmp_path):
    lines(tmp_path / "2.jsonl", 2)
    run = ab.run(plan(), {"levels": tmp_path}, live=True)
    next(run)
    lines(tmp_path / "1.jsonl", 1)
    with pytest.raises(ValueError, match=r"1\.jsonl came or changed since"):
        next(run)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        ({"levels": [{"room": "A", "at": 9}]}, "a position of 'levels east'.*no such input is given"),
        ({"levels": {"east": "folder/east/1.jsonl"}}, "a position of 'levels west'.*no such input is given"),
        ({"levels": "more"}, "no position of 'levels south'"),
    ],
)
def test_a_state_with_positions_opens_with_the_inputs_that_it_had(tmp_path, monkeypatch, later, message):
    monkeypatch.chdir(tmp_path)
    for place in ("folder/east", "folder/west", "more/east", "more/west", "more/south"):
        lines(Path(place, "1.jsonl"), 1)
    run = ab.run(merged(), {"levels": "folder"}, finish=False)
    list(run)
    with pytest.raises(AnabranchError, match=message) as raised:
        ab.run(merged(), later, state=run.state)
    assert "Give the inputs of the run that had this state" in str(raised.value)


def test_what_a_job_dumps_has_no_positions_and_inputs_hold_what_comes_after(tmp_path):
    lines(tmp_path / "1.jsonl", 1)
    run = ab.run(plan(), {"levels": tmp_path}, finish=False)
    assert starts_of(run) == [1]
    again = plan().open(run.state).dump()
    for state in (run.job.dump(), again):
        assert starts_of(ab.run(plan(), {"levels": tmp_path}, state=state)) == [1]


def test_what_an_iterable_is_given_after_a_state_comes_after(tmp_path):
    lines(tmp_path / "1.jsonl", 1, 3)
    both = {
        "levels": plan(),
        "notes": ab.source("notes", ROOMS, start="at"),
    }
    first = {"levels": tmp_path, "notes": [{"room": "B", "at": 2}]}
    run = ab.run(both, first, finish=False)
    assert starts_of(one["notes"] for one in run if "notes" in one) == [2]
    lines(tmp_path / "1.jsonl", 5)
    rest = list(ab.run(both, first | {"notes": [{"room": "B", "at": 4}]}, state=run.state))
    assert starts_of(one["levels"] for one in rest) == [5]
    assert starts_of(one["notes"] for one in rest) == [4]


@pytest.mark.parametrize("ending", [".txt", ".jsonl", ".parquet"])
def test_files_of_elements_are_gone_on_with_too(tmp_path, ending):
    stream = ab.source("levels", {"room": "string"})
    elements = [Insert({"room": f"r{at % 5}"}, at, at + 3) for at in range(20_000)]
    for n in range(2):
        ab.write(tmp_path / f"{n}{ending}", ab.Batch.of(elements[10_000 * n : 10_000 * (n + 1)]))
    one = elements_of(ab.run(stream, {"levels": tmp_path}))
    assert len(one) > 20_000
    rng = random.Random(7)
    found = resumed(lambda state: ab.run(stream, {"levels": tmp_path}, state=state), rng, most=2)
    assert elements_of(found) == one


def test_another_file_of_elements_is_named(tmp_path):
    file = tmp_path / "levels.txt"
    ab.write(file, ab.Batch.of([Insert({"room": "A"}, at, at + 3) for at in range(20_000)]))
    stream = ab.source("levels", {"room": "string"})
    run = ab.run(stream, {"levels": file})
    next(run)
    state = run.state
    ab.write(file, ab.Batch.of([Insert({"room": "B"}, at, at + 3) for at in range(20_000)]))
    with pytest.raises(ValueError, match="is not the same"):
        ab.run(stream, {"levels": file}, state=state)


def test_a_batch_that_is_being_made_is_not_yet_in_a_state():
    refused = []

    def failing():
        yield {"room": "A", "at": 1}
        raise OSError("gone")

    def on_failure(name, error):
        with pytest.raises(RuntimeError, match="the next batch is being waited for") as raised:
            _ = run.state
        refused.append(raised.value)

    run = ab.run(plan(), {"levels": failing()}, live=True, on_failure=on_failure)
    assert starts_of(run) == [1]
    assert len(refused) == 1
    assert run.state


def test_an_input_that_failed_is_read_again_and_one_that_ended_is_not(tmp_path):
    east, west = tmp_path / "east.jsonl", tmp_path / "west.jsonl"
    lines(east, 1, 2)
    lines(west, 1, "soon")
    failed = []
    inputs = {"levels": {"east": east, "west": west}}
    run = ab.run(merged(), inputs, live=True, on_failure=lambda name, error: failed.append(name))
    first = starts_of(run)
    assert (first, failed) == ([1, 2], ["levels west"])
    west.unlink()
    lines(west, 1, 2, 3)
    run = ab.run(merged(), inputs, state=run.state)
    assert first + starts_of(run) == [1, 2, 3]
    assert run.status().sources["levels"].received == 5


CHILD = """
import json, os, sys
from pathlib import Path
import anabranch as ab

folder, kept = map(Path, sys.argv[1:])
state, rows = None, []
if kept.exists():
    text = kept.read_bytes()
    head, _, state = text.partition(b"\\n")
    rows = json.loads(head)
stream = ab.source("levels", {"room": "string", "at": "int64"}, start="at")
for batch in (run := ab.run(stream, {"levels": folder}, live=True, state=state)):
    rows += [one.start for one in batch.elements() if isinstance(one, ab.Insert)]
    part = kept.with_suffix(".part")
    part.write_bytes(json.dumps(rows).encode() + b"\\n" + run.state)
    os.replace(part, kept)
    print(len(rows), flush=True)
"""


def test_a_process_that_is_killed_and_started_again_loses_and_repeats_nothing(tmp_path):
    folder, kept = tmp_path / "in", tmp_path / "kept"
    put(folder / "1.jsonl", range(60_000))
    written, rows = 60_000, []
    for turn in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", CHILD, str(folder), str(kept)], stdout=subprocess.PIPE, text=True
        ) as child:
            wanted = written if turn == 2 else 1 + 25_000 * turn
            for line in child.stdout:
                if int(line) >= wanted:
                    break
            child.send_signal(signal.SIGKILL)
        rows = json.loads(kept.read_bytes().partition(b"\n")[0])
        if turn < 2:
            put(folder / f"{turn + 2}.csv", range(written, written + 1000))
            written += 1000
    assert rows == list(range(written))


def test_a_run_that_is_at_its_end_gives_nothing_when_it_is_gone_on_with(tmp_path):
    lines(tmp_path / "1.jsonl", 1)
    run = ab.run(plan(), {"levels": tmp_path})
    assert [starts_of([batch]) for batch in run] == [[1], []]
    lines(tmp_path / "1.jsonl", 2)
    again = ab.run(plan(), {"levels": tmp_path}, state=run.state)
    assert list(again) == []
    assert ab.run(plan(), {"levels": tmp_path}, state=again.state).table().num_rows == 0


def test_files_are_read_side_by_side_in_time_however_many_rows_each_has(tmp_path):
    dense, sparse = tmp_path / "dense.parquet", tmp_path / "sparse.parquet"
    put(dense, range(100_000))
    put(sparse, range(0, 1_000_000, 10))
    both = {name: ab.source(name, ROOMS, start="at", disorder=0) for name in ("dense", "sparse")}
    reached, turns = dict.fromkeys(both, -1), []
    for batch in ab.run(both, {"dense": dense, "sparse": sparse}, finish=False):
        [(name, starts)] = ((name, starts) for name, one in batch.items() if (starts := starts_of([one])))
        turns.append((name, reached[name] == min(reached.values())))
        reached[name] = max(starts)
        if reached["dense"] == 99_999:
            break
    assert {name for name, _ in turns} == set(both)
    assert all(is_behind for _, is_behind in turns)
