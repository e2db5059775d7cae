"""Plans over iterables, files and folders, without Spark."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch as ab
from anabranch import Adjust, Insert, Quarantine, Relation, Stable, col
from anabranch.cli.main import main
from anabranch.connectors.files.output import FolderOutput
from anabranch.model.schema import SchemaError
from anabranch.model.time import FOREVER

ROOMS = {"room": "string", "at": "int64"}
HEARD = {**ROOMS, "who": "string"}


def lines(path: Path, rows: list[Any], ending: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + ending)
    return path


def rows_of(*pairs: tuple[str, int]) -> list[dict[str, Any]]:
    return [{"room": room, "at": at} for room, at in pairs]


def relation_of(run: Any) -> Relation:
    relation = Relation()
    for batch in run:
        relation.apply(batch)
    return relation


def events_of(run: Any) -> Counter[tuple[str, int, int]]:
    relation = relation_of(run)
    return Counter(
        {(event.payload["room"], event.start, event.end): count for event, count in relation.current().rows()}
    )


def written(path: Path, rows: list[dict[str, Any]], form: str, schema: dict[str, str] = ROOMS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, pa.schema(list(schema.items())))
    if form == "parquet":
        pq.write_table(table, path, row_group_size=3)
    elif form == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    else:
        lines(path, rows)


class TestIterables:
    def test_a_plan_over_lists_of_rows_gives_what_they_mean_and_ends(self):
        levels = ab.source("levels", ROOMS, start="at", duration=3)
        run = ab.run(levels.filter(col("room") == "A"), {"levels": rows_of(("A", 1), ("B", 2))})
        assert [element for batch in run for element in batch.elements()] == [
            Insert({"room": "A"}, 1, 4),
            Stable(FOREVER),
        ]

    def test_replicas_may_be_given_by_their_names(self):
        heard = ab.source("heard", HEARD, start="at", disorder=2, replica="who", lossy=True)
        inputs = {"heard": {"east": rows_of(("A", 1), ("C", 9)), "west": rows_of(("B", 2))}}
        rows = {name: [{**row, "who": name} for row in some] for name, some in inputs["heard"].items()}
        assert events_of(ab.run(heard.merge(), {"heard": rows})) == {
            ("A", 1, 2): 1,
            ("B", 2, 3): 1,
            ("C", 9, 10): 1,
        }

    def test_several_outputs_come_as_a_dict(self):
        levels = ab.source("levels", ROOMS, start="at")
        streams = {"a": levels.filter(col("room") == "A"), "all": levels}
        output = list(ab.run(streams, {"levels": rows_of(("A", 1), ("B", 2))}))
        assert {name for part in output for name in part} == {"a", "all"}

    def test_a_source_without_input_is_named_before_anything_is_read(self):
        with pytest.raises(ab.PlanError, match="nothing is given for it"):
            ab.run(ab.source("levels", ROOMS, start="at"), {})

    def test_a_row_by_itself_is_no_mapping_of_replicas(self):
        with pytest.raises(ab.PlanError, match="is given as a mapping"):
            ab.run(ab.source("levels", ROOMS, start="at"), {"levels": {"room": "A", "at": 1}})

    def test_progress_rises_to_one(self):
        told: list[float] = []
        levels = ab.source("levels", ROOMS, start="at")
        list(ab.run(levels, {"levels": rows_of(*(("A", n) for n in range(9)))}, rows=2, progress=told.append))
        assert told == sorted(told)
        assert told[-1] == 1.0


class TestFiles:
    @pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
    def test_a_file_of_rows_is_read_by_its_ending(self, tmp_path, form):
        written(tmp_path / f"rows.{form}", rows_of(("A", 1), ("B", 2)), form)
        levels = ab.source("levels", ROOMS, start="at")
        found = events_of(ab.run(levels, {"levels": tmp_path / f"rows.{form}"}))
        assert found == {("A", 1, 2): 1, ("B", 2, 3): 1}

    @pytest.mark.parametrize("form", ["jsonl", "txt", "parquet", "arrow"])
    def test_a_file_of_elements_is_read_where_the_source_is_of_elements(self, tmp_path, form):
        recorded = [Insert({"room": "A"}, 1, 9), Stable(5)]
        ab.write(str(tmp_path / f"stream.{form}"), recorded)
        stream = ab.source("stream", {"room": "string"})
        run = ab.run(stream, {"stream": str(tmp_path / f"stream.{form}")})
        elements = [element for batch in run for element in batch.elements()]
        assert elements == [*recorded, Stable(FOREVER)]

    def test_recordings_that_promise_everything_are_compared_before_that(self, tmp_path):
        for name, end in (("east", 7), ("west", 9)):
            recorded = [Insert({"room": "A"}, 1, end), Stable(FOREVER)]
            ab.write(str(tmp_path / f"{name}.jsonl"), recorded)
        east, west = (ab.source(name, {"room": "string"}) for name in ("east", "west"))
        run = ab.run(ab.merge(east, west), {name: tmp_path / f"{name}.jsonl" for name in ("east", "west")})
        elements = [element for batch in run for element in batch.elements()]
        assert Stable(FOREVER) not in elements[:-1]
        assert len(elements) >= 2

    def test_a_line_that_is_no_element_is_refused_with_file_and_line(self, tmp_path):
        ab.write(str(tmp_path / "stream.jsonl"), [Insert({"room": "A"}, 1, 9)])
        with (tmp_path / "stream.jsonl").open("a") as file:
            file.write("nothing\n")
        aside = Quarantine()
        stream = ab.source("stream", {"room": "string"})
        assert events_of(ab.run(stream, {"stream": tmp_path / "stream.jsonl"}, on_invalid=aside)) == {
            ("A", 1, 9): 1
        }
        assert [one.place for one in aside.violations] == [f"{tmp_path}/stream.jsonl:2"]

    def test_an_ending_that_tells_no_format_is_refused_with_those_that_do(self, tmp_path):
        (tmp_path / "rows.xml").write_text("room,at\n")
        with pytest.raises(ValueError, match="tells no format of rows") as raised:
            ab.run(ab.source("levels", ROOMS, start="at"), {"levels": tmp_path / "rows.xml"})
        assert ".parquet" in raised.value.__notes__[0]

    def test_a_file_that_is_not_there_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"rows\.jsonl"):
            ab.run(ab.source("levels", ROOMS, start="at"), {"levels": tmp_path / "rows.jsonl"})


class TestFolders:
    @pytest.mark.parametrize("seed", range(12))
    def test_random_folders_of_replicas_mean_the_union_of_what_they_hold(self, tmp_path, seed):
        random = Random(seed)
        truth = [(random.choice("ABC") + str(n), n + random.randrange(3)) for n in range(40)]
        for replica in ("east", "west", "north")[: random.randint(1, 3)]:
            kept = [event for event in truth if random.random() < 0.8 or replica == "east"]
            shuffled = sorted(kept, key=lambda event: event[1] + random.randrange(4))
            cuts = sorted(random.sample(range(len(shuffled)), random.randint(0, 3)))
            parts = [shuffled[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
            for n, part in enumerate(parts):
                form = random.choice(["jsonl", "parquet", "arrow"])
                written(tmp_path / replica / f"{n:03}.{form}", rows_of(*part), form)
        heard = ab.source("heard", HEARD, start="at", duration=5, disorder=4, replica="who", lossy=True)
        found = events_of(ab.run(heard.merge(), {"heard": tmp_path}))
        assert found == Counter({(room, at, at + 5): 1 for room, at in truth})

    @pytest.mark.parametrize("seed", range(4))
    def test_recordings_run_to_what_the_merge_of_the_command_line_gives(self, tmp_path, seed):
        random = Random(seed)
        for name in ("east", "west"):
            recorded: list[Any] = []
            for start in range(0, 60, 3):
                end = start + (10 if random.random() < 0.6 else random.randint(1, 9))
                recorded.append(Insert({"room": f"R{start}"}, start, end))
                if end != start + 10:
                    recorded.append(Adjust({"room": f"R{start}"}, start, end, start + 10))
                if random.random() < 0.3:
                    recorded.append(Stable(start))
            ab.write(str(tmp_path / f"{name}.jsonl"), [*recorded, Stable(FOREVER)])
        paths = {name: str(tmp_path / f"{name}.jsonl") for name in ("east", "west")}
        assert main(["merge", *paths.values(), "--out", str(tmp_path / "merged.jsonl")]) == 0
        merged = ab.merge(*(ab.source(name, {"room": "string"}) for name in paths))
        expected = relation_of(ab.read(str(tmp_path / "merged.jsonl"))).events()
        for rows in (1, 7, 4096):
            assert relation_of(ab.run(merged, paths, rows=rows)).events() == expected

    def test_steps_run_on_every_replica_before_they_are_merged(self, tmp_path):
        lines(tmp_path / "east/1.jsonl", rows_of(("A", 1), ("B", 2)))
        lines(tmp_path / "west/1.jsonl", rows_of(("B", 2), ("A", 5)))
        heard = ab.source("heard", HEARD, start="at", disorder=0, replica="who", lossy=True)
        merged = heard.filter(col("room") == "A").merge()
        assert events_of(ab.run(merged, {"heard": tmp_path})) == {("A", 1, 2): 1, ("A", 5, 6): 1}

    def test_files_of_one_sequence_are_read_in_the_order_of_their_names(self, tmp_path):
        lines(tmp_path / "2.jsonl", rows_of(("B", 5)))
        lines(tmp_path / "1.jsonl", rows_of(("A", 1)))
        run = ab.run(ab.source("levels", ROOMS, start="at", disorder=0), {"levels": tmp_path})
        starts = [e.start for batch in run for e in batch.elements() if isinstance(e, Insert)]
        assert starts == [1, 5]

    def test_an_empty_folder_is_a_stream_without_events(self, tmp_path):
        run = ab.run(ab.source("levels", ROOMS, start="at"), {"levels": tmp_path})
        assert [list(batch.elements()) for batch in run] == [[Stable(FOREVER)]]

    def test_bad_rows_are_set_aside_with_file_and_line_and_a_torn_last_line_is_one(self, tmp_path):
        lines(tmp_path / "east/1.jsonl", [*rows_of(("A", 1)), "no row", *rows_of(("B", 20))])
        torn = lines(tmp_path / "east/2.jsonl", rows_of(("late", -9)), '{"room": "to')
        lines(tmp_path / "west/1.jsonl", [{"room": "C", "at": None}])
        aside = Quarantine()
        heard = ab.source("heard", HEARD, start="at", disorder=3, replica="who", lossy=True)
        found = events_of(ab.run(heard.merge(), {"heard": tmp_path}, on_invalid=aside))
        assert found == {("A", 1, 2): 1, ("B", 20, 21): 1}
        assert sorted((one.place, one.input, one.code) for one in aside.violations) == [
            (f"{tmp_path}/east/1.jsonl:2", "east", "malformed"),
            (f"{torn}:1", "east", "insert-behind-stable"),
            (f"{torn}:2", "east", "malformed"),
            (f"{tmp_path}/west/1.jsonl:1", "west", "malformed"),
        ]

    def test_a_bad_row_is_raised_with_its_place_unless_it_is_to_be_set_aside(self, tmp_path):
        file = lines(tmp_path / "1.jsonl", ["no row"])
        with pytest.raises(ValueError, match=f"{file}:1"):
            list(ab.run(ab.source("levels", ROOMS, start="at"), {"levels": tmp_path}))

    def test_replicas_in_a_folder_need_a_source_of_replicas(self, tmp_path):
        lines(tmp_path / "east/1.jsonl", rows_of(("A", 1)))
        with pytest.raises(ab.PlanError, match="not of replicas") as raised:
            ab.run(ab.source("levels", ROOMS, start="at"), {"levels": tmp_path})
        assert "replica=" in raised.value.__notes__[0]

    def test_a_column_that_a_file_lacks_is_named_with_the_file(self, tmp_path):
        written(tmp_path / "1.parquet", [{"room": "A"}], "parquet", {"room": "string"})
        with pytest.raises(SchemaError, match=r"1\.parquet has no column 'at'"):
            list(ab.run(ab.source("levels", ROOMS, start="at"), {"levels": tmp_path}))

    def test_two_sources_are_read_side_by_side(self, tmp_path):
        lines(tmp_path / "a/1.jsonl", rows_of(*(("A", n) for n in range(0, 40, 2))))
        lines(tmp_path / "b.jsonl", rows_of(*(("B", n) for n in range(1, 40, 2))))
        first, second = (ab.source(name, ROOMS, start="at", disorder=0) for name in "ab")
        run = ab.run(
            ab.union(first, second).final(ordered=True), {"a": tmp_path / "a", "b": tmp_path / "b.jsonl"}
        )
        starts = [e.start for batch in run for e in batch.elements() if isinstance(e, Insert)]
        assert starts == list(range(40))

    def test_a_run_can_stop_and_go_on_another_day(self, tmp_path):
        lines(tmp_path / "monday/east/1.jsonl", rows_of(("A", 1), ("B", 4)))
        lines(tmp_path / "monday/west/1.jsonl", rows_of(("A", 1)))
        lines(tmp_path / "tuesday/east/1.jsonl", rows_of(("D", 9)))
        lines(tmp_path / "tuesday/west/1.jsonl", rows_of(("B", 4), ("C", 5), ("D", 9)))

        def plan() -> ab.Stream:
            heard = ab.source("heard", HEARD, start="at", disorder=3, replica="who", lossy=True)
            return heard.merge().final()

        monday = ab.run(plan(), {"heard": tmp_path / "monday"}, finish=False)
        before = [e for batch in monday for e in batch.elements()]
        state = monday.job.dump()
        tuesday = ab.run(plan(), {"heard": tmp_path / "tuesday"}, state=state)
        after = [e for batch in tuesday for e in batch.elements()]
        rooms = [e.payload["room"] for e in [*before, *after] if isinstance(e, Insert)]
        assert sorted(rooms) == ["A", "B", "C", "D"]
        assert after[-1] == Stable(FOREVER)

    def test_a_folder_that_grows_is_followed_until_the_run_is_closed(self, tmp_path):
        lines(tmp_path / "1.jsonl", rows_of(("A", 1)))
        run = ab.run(ab.source("levels", ROOMS, start="at"), {"levels": tmp_path}, live=True)
        assert [e.payload["room"] for e in next(run).elements()] == ["A"]
        with (tmp_path / "1.jsonl").open("a") as file:
            file.write(json.dumps({"room": "B", "at": 2}) + "\n")
        assert [e.payload["room"] for e in next(run).elements()] == ["B"]
        lines(tmp_path / "2.jsonl", rows_of(("C", 3)))
        assert [e.payload["room"] for e in next(run).elements()] == ["C"]
        run.close()

    @pytest.mark.parametrize("form", ["parquet", "jsonl", "arrow"])
    def test_what_a_run_has_written_is_read_as_elements(self, tmp_path, form):
        levels = ab.source("levels", ROOMS, start="at", disorder=0)
        run = ab.run(levels, {"levels": rows_of(*(("A", n) for n in range(20)))}, rows=4)
        FolderOutput(tmp_path / form, form, elements=6).write(run, levels)
        assert len(list((tmp_path / form).glob(f"*-0000.{form}"))) > 1
        again = ab.run(ab.source("stream", {"room": "string"}), {"stream": tmp_path / form})
        assert events_of(again) == Counter({("A", n, n + 1): 1 for n in range(20)})


def test_no_spark_is_in_a_process_that_runs_a_plan(tmp_path):
    lines(tmp_path / "east/1.jsonl", rows_of(("A", 1)))
    program = (
        "import sys, anabranch as ab\n"
        f"heard = ab.source('heard', {HEARD!r}, start='at', disorder=1, replica='who', lossy=True)\n"
        f"for batch in ab.run(heard.merge(), {{'heard': {str(tmp_path)!r}}}): pass\n"
        "ab.kafka, ab.delta_changes, ab.folder\n"
        "sys.exit(any(name.split('.')[0] in ('pyspark', 'py4j') for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("of_rows", [True, False], ids=["rows", "elements"])
def test_a_merge_of_sources_that_end_at_different_times_has_the_events_of_each(of_rows):
    """Whichever ends first leaves the merge; the job is finished without it."""
    given = {
        "long": rows_of(("A", 1), ("B", 30), ("C", 70)),
        "short": rows_of(("A", 1)),
        "empty": [],
    }
    if not of_rows:
        given = {
            name: [Insert({"room": row["room"]}, row["at"], row["at"] + 1) for row in rows]
            for name, rows in given.items()
        }
    for names in (["long", "short"], ["short", "long"], ["empty", "long", "short"], ["short", "short 2"]):
        inputs = {name: given[name.split()[0]] for name in names}
        columns, more = (ROOMS, {"start": "at", "disorder": 5}) if of_rows else ({"room": "string"}, {})
        plan = ab.merge(*(ab.source(name, columns, **more) for name in names))
        meant = {("A", 1, 2), *([("B", 30, 31), ("C", 70, 71)] if "long" in names else [])}
        relation = relation_of(ab.run(plan, inputs))
        assert {(one.payload["room"], one.start, one.end) for one in relation.events()} == meant
        assert relation.frontier == FOREVER


def test_a_job_is_closed_after_one_of_its_sources_has_ended_and_it_was_opened_again():
    plan = ab.merge(*(ab.source(name, ROOMS, start="at", disorder=5) for name in "ab"))
    job = plan.open()
    job.push("a", rows_of(("A", 1)))
    job.passes.end_source("a")
    again = plan.open(job.dump())
    for one in (job, again):
        said = [*one.push("b", rows_of(("A", 1), ("B", 9))), *one.close()]
        assert [row["room"] for row in said if row["kind"] == "insert"] == ["B"]
        assert said[-1]["kind"] == "stable"


@pytest.mark.parametrize(
    "operator",
    [
        lambda stream: stream.filter(col("room") != "Z"),
        lambda stream: stream.sort(),
        lambda stream: stream.final(),
        lambda stream: stream.distinct(),
        lambda stream: stream.window(1, 1).group_by("room").agg(ab.count()),
        lambda stream: stream.session(1).group_by("room").agg(ab.count()),
        lambda stream: ab.union(stream.sort(), stream.filter(col("room") == "Z")),
        lambda stream: ab.merge(stream.sort(), stream.sort()),
    ],
    ids=["filter", "sort", "final", "distinct", "window", "session", "union", "merge"],
)
def test_the_end_of_a_source_removes_nothing_from_a_merge_whatever_is_between(operator):
    """That the rows of one source are read to their end says nothing of what the others still have."""
    short, long = rows_of(("A", 1)), rows_of(("A", 1), ("B", 30), ("C", 70))
    sources = [ab.source(name, ROOMS, start="at", disorder=5) for name in ("x", "y")]
    for inputs in ({"x": short, "y": long}, {"x": long, "y": short}):
        run = ab.run(ab.merge(*map(operator, sources)), inputs)
        assert events_of(run) == {("A", 1, 2): 1, ("B", 30, 31): 1, ("C", 70, 71): 1}
        assert run.status().remarks() == []


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (pa.binary(), [b"hi", b"", None]),
        (pa.list_(pa.binary()), [[b"\x00\xff"], [], None]),
        (pa.struct([("raw", pa.large_binary()), ("n", pa.int64())]), [{"raw": b"x", "n": 1}, None]),
    ],
    ids=str,
)
def test_a_folder_of_json_lines_gives_back_bytes_where_columns_are_declared(dtype, values, tmp_path):
    schema = pa.schema([("value", dtype)])
    table = pa.table({"value": pa.array(values, dtype), "at": list(range(len(values)))})
    rows = ab.source("s", table.schema, start="at", disorder=1)
    FolderOutput(tmp_path / "out", "jsonl").write(ab.run(rows, {"s": table}), rows)
    given = [batch.payload for batch in ab.run(ab.source("s", schema), {"s": tmp_path / "out"})]
    read = [value for batch in given for value in batch.column("value").cast(dtype).to_pylist()]
    assert [one for one in read if one is not None] == [one for one in values if one is not None]


def test_a_line_whose_bytes_are_no_base_64_is_refused_with_the_reason(tmp_path):
    line = {"kind": "insert", "end": 9, "old_end": None}
    texts = [json.dumps({**line, "start": n, "value": value}) for n, value in enumerate(("aGk=", "a"))]
    (tmp_path / "0badcafe-000000000-0000.jsonl").write_text("\n".join(texts) + "\n")
    aside = Quarantine()
    plan = ab.source("s", pa.schema([("value", pa.binary())]))
    found = [e for b in ab.run(plan, {"s": tmp_path}, on_invalid=aside) for e in b.elements()]
    assert [one.payload["value"] for one in found if isinstance(one, Insert)] == [b"hi"]
    assert len(aside.violations) == 1


def test_inputs_that_are_no_mapping_are_refused_with_the_way_out():
    rows = ab.source("rows", {"at": "int64"}, start="at", disorder=1)
    with pytest.raises(TypeError, match="a mapping from names of sources to what is read, not Table"):
        list(ab.run(rows, pa.table({"at": [1]})))


@pytest.mark.parametrize("merged", [False, True])
def test_a_lossy_source_is_reported_where_no_merge_uses_that(merged):
    def lossy(name):
        return ab.source(name, {"at": "int64"}, start="at", disorder=1, lossy=True)

    plan = ab.merge({"a": lossy("a"), "b": lossy("b")}) if merged else lossy("a").shift(1)
    running = ab.run(plan, {name: [{"at": 1}] for name in ("ab" if merged else "a")})
    list(running)
    told = [words for words in running.status().remarks() if "no merge uses that" in words]
    assert len(told) == (0 if merged else 1)


def test_events_in_no_window_are_reported_after_a_run():
    rows = ab.source("rows", {"at": "int64"}, start="at", disorder=1)
    running = ab.run(rows.window(3, every=10).agg(n=ab.count()), {"rows": [{"at": at} for at in range(40)]})
    list(running)
    assert running.status().remarks() == [
        "window: 28 events are in no window, as every is greater than size or they start before the first"
    ]


def test_a_run_shows_its_plan_and_its_status_without_reading():
    def rows():
        yield pytest.fail("something was read")

    running = ab.run(ab.source("a", {"x": "int64"}), {"a": rows()})
    assert repr(running).splitlines()[0] == "<Run of <Job: a to one output>, read as it is asked for>"
    assert "a: 0 in" in repr(running)
    assert running._repr_html_().startswith("<pre>&lt;Run of ")
