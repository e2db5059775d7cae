"""Jobs that merge changes of a table: from folders and from Delta tables."""

import inspect
import json
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.spark_commands import run
from deltalake import DeltaTable, write_deltalake

from anabranch import FOREVER, EveryChange, Insert, Relation, difference
from anabranch import spark as ab
from anabranch.cli.doctor import tables
from anabranch.cli.doctor.finding import Request, State
from anabranch.cli.plan import plan
from anabranch.engines.spark.session.jvm import SHORT_LIVED
from anabranch.jobs.delta_sections import DeltaSourceSection
from anabranch.jobs.job import Job
from anabranch.jobs.job_file import read_job
from anabranch.jobs.merge_sections import ChangesSection
from anabranch.model.batch import Batch

FOLDER = '[source]\npath = "feeds"\nschema = "op string, at long, id long, price double"\n'
DELTA = '[source.delta]\ntables = { home = "lake/home", mirror = "lake/mirror" }\n'
TOPICS = (
    '[source]\nschema = "id long"\n'
    '[source.kafka]\nservers = "localhost:9"\ntopics = ["a", "b"]\nvalues = "debezium"\n'
)
CHANGES = '[changes]\nkey = "id"\nreplica = "replica"\n'
AT, TIME = 'time = "at"\n', 'time = "time"\ndisorder = "1 second"\npolicy = "every-change"\n'
SINK = '[sink]\npath = "out"\n'
SPARK = '[spark]\nmaster = "local[2]"\nshards = 2\n'
QUICK = "".join(f"config.'{key}' = '{value}'\n" for key, value in SHORT_LIVED.items())
DOCS = Path(__file__).parents[2] / "docs"


def job_file(folder: Path, *parts: str, name: str = "job.toml") -> str:
    (folder / name).write_text("".join(parts))
    return str(folder / name)


def job(folder: Path, *parts: str) -> Job:
    return read_job(job_file(folder, *parts))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FOLDER + SINK, ["one of [merge] and [changes]", "neither", "has key and time", "has a start"]),
        (FOLDER + CHANGES + AT + "[merge]\nstart = 'at'\n" + SINK, ["one of [merge] and [changes]", "both"]),
        (FOLDER + CHANGES + SINK, ["[changes] has no time"]),
        (
            FOLDER + CHANGES + AT + "opps = {}\n" + SINK,
            ["[changes] has no key 'opps'", "'ops'", "are key, time, replica"],
        ),
        (FOLDER + CHANGES + AT + "start = 'at'\n" + SINK, ["[changes] has no key 'start'"]),
        (FOLDER + CHANGES + AT + "ops = {x = 'gone'}\n" + SINK, ["'x' means, and 'gone'", "upsert"]),
        (FOLDER + CHANGES + AT + "ops = {x = 1}\n" + SINK, ["[changes] ops", "text, not a whole number"]),
        (FOLDER + CHANGES + AT + "by_time = 1\n" + SINK, ["[changes] by_time is true or false"]),
        (FOLDER + CHANGES + AT + "policy = 'fast'\n" + SINK, ["'fast'", "half-frozen"]),
        (
            DELTA + "[merge]\nstart = 'time'\n" + SINK,
            ["[source.delta]", "[merge] is for rows that are events"],
        ),
        (DELTA + CHANGES + AT + SINK, ["never says how far", "no disorder", "disorder = '10 seconds'"]),
        (TOPICS + CHANGES + AT + SINK, ["never says how far", "no disorder"]),
        ("[source.delta]\nop = 'what'\n" + CHANGES + TIME + SINK, ["[source.delta] has no tables"]),
        (DELTA + "begin = 3\n" + CHANGES + TIME + SINK, ["[source.delta] has no key 'begin'", "start"]),
        (DELTA + "start = 'now'\n" + CHANGES + TIME + SINK, ["earliest, latest, snapshot", "not 'now'"]),
        (DELTA + "time = true\n" + CHANGES + TIME + SINK, ["[source.delta] time", "false for none"]),
        (DELTA + "[source]\npath = 'feeds'\n" + CHANGES + TIME + SINK, ["[source] path is not for Delta"]),
        (DELTA + "[source]\nby_replica = false\n" + CHANGES + TIME + SINK, ["by_replica is not for Delta"]),
        (DELTA + CHANGES + TIME + "[sink]\npath = 'lake/mirror/out'\n", ["does not write where it reads"]),
        (
            DELTA + CHANGES + TIME + "[sink.table]\npath = 'lake/home'\nkind = 'history'\n",
            ["does not write where it reads", "lake/home is that"],
        ),
        ("[source.delta]\ntables = 's3://lake/a'\n" + CHANGES + TIME + SINK, ["s3://lake/a", "Mount"]),
    ],
)
def test_a_job_of_changes_that_is_not_one_is_refused_with_the_way_out(tmp_path, text, words):
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        job(tmp_path, text)
    said = "\n".join([str(caught.value), *caught.value.__notes__])
    for word in [*words, "job.toml"]:
        assert word in said, said


def test_the_keys_of_changes_are_the_arguments_of_the_functions_they_are_for():
    def keywords(function):
        return {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}

    assert {*ChangesSection.__struct_fields__} == keywords(ab.merge_changes)
    assert {*DeltaSourceSection.__struct_fields__} == keywords(ab.delta_changes) | {"tables"}


def test_a_program_may_have_changes_too(tmp_path):
    text = (
        "from anabranch import EveryChange\n"
        "def rows(spark): return 'feeds'\n"
        "CHANGES = dict(key=['id'], time='at', ops={'4': 'update'}, policy=EveryChange())\n"
        "SINK = {'path': 'out'}\n"
    )
    found = read_job(job_file(tmp_path, text, name="job.py"))
    given = found.plan.arguments()
    assert (given["key"], given["ops"], given["op"]) == (["id"], {"4": "update"}, "op")
    assert isinstance(given["policy"], EveryChange)
    with pytest.raises(ValueError, match="one of MERGE and CHANGES, and this has both"):
        read_job(job_file(tmp_path, text, "MERGE = {'start': 'at'}\n", name="job.py"))


@pytest.mark.parametrize("page", ["spark.md", "tables.md"])
def test_the_jobs_of_the_documentation_are_jobs(tmp_path, page):
    found = re.findall(r"```toml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert found
    for text in found:
        assert isinstance(job(tmp_path, text).plan, ChangesSection)


def put(folder: Path, *rows: dict) -> None:
    folder.mkdir(parents=True)
    (folder / "0001.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.slow
def test_changes_of_two_replicas_are_merged_as_the_rows_of_one_table(tmp_path):
    put(
        tmp_path / "feeds" / "east",
        {"op": "c", "at": 1, "id": 1, "price": 3.0},
        {"op": "c", "at": 2, "id": 2, "price": 1.0},
        {"op": "+", "at": 5, "id": 1, "price": 3.5},
        {"op": "d", "at": 6, "id": 2},
        {"op": "stable"},
    )
    put(
        tmp_path / "feeds" / "west",
        {"op": "c", "at": 2, "id": 2, "price": 1.0},
        {"op": "c", "at": 1, "id": 1, "price": 3.0},
        {"op": "d", "at": 4, "id": 9},
        {"op": "stable", "at": 4},
    )
    file = job_file(tmp_path, FOLDER, CHANGES, AT, "ops = { '+' = 'update' }\n", SINK, SPARK, QUICK)
    done = run("run", file, "--once", "--strict", cwd=Path("/"))
    assert done.returncode == 1, done.stderr
    assert "all was read: 1 micro-batches, 7 in, 5 out, 1 quarantined" in done.stderr
    assert "east leads" in done.stderr
    merged, meant = Relation(), Relation()
    for part in sorted((tmp_path / "out").glob("*.parquet")):
        merged.apply(Batch.from_arrow(pq.read_table(part)))
    rows = ((1, 3.0, 1, 5), (2, 1.0, 2, 6), (1, 3.5, 5, FOREVER))
    meant.apply([Insert({"id": key, "price": price}, *lifetime) for key, price, *lifetime in rows])
    assert difference(merged, meant) is None
    (refused,) = (tmp_path / "out" / "_quarantine").glob("*.jsonl")
    odd = json.loads(refused.read_text())
    assert (odd["rule"], odd["place"]) == ("no-such-row", f"{tmp_path}/feeds/west/0001.jsonl:3")


def lake(folder: Path) -> None:
    """A table, and a mirror that has not heard of its last version."""
    home = folder / "home"
    columns = pa.schema([("id", pa.int64()), ("left", pa.int64())])
    DeltaTable.create(home, schema=columns, configuration={"delta.enableChangeDataFeed": "true"})
    write_deltalake(home, pa.table({"id": [1, 2], "left": [5, 8]}), mode="append")
    DeltaTable(home).update(updates={"left": "4"}, predicate="id = 1")
    shutil.copytree(home, folder / "mirror")
    DeltaTable(home).delete("id = 2")


def test_a_plan_says_what_columns_of_changes_are_and_in_which_order_they_count(spark, tmp_path):
    lake(tmp_path / "lake")
    found = job(tmp_path, DELTA, "version = 'at'\nstart = 'snapshot'\n", CHANGES, TIME, SINK)
    rows = found.rows(spark)["rows"]
    assert (rows.feeds.start, rows.feeds.versions) == ("snapshot", 100)
    stream, _ = found.frame(spark)
    told = str(plan(found, found.stream, stream, embedded=False))
    assert f"Delta tables: home {tmp_path}/lake/home, mirror {tmp_path}/lake/mirror" in told
    assert "id       int64: payload, names the row" in told
    assert "left     int64: payload\n" in told
    assert "op       string: what happened: insert, update" in told
    assert "time     timestamp[us, tz=UTC]: when it was committed" in told
    assert "at most 1 second after changes that were committed later" in told
    assert "those of a key count in the order in which they are read" in told
    by_time = job(tmp_path, DELTA, "time = false\n", CHANGES, TIME, "by_time = true\n", SINK)
    assert by_time.rows(spark)["rows"].schema.names == ["id", "left", "op", "replica"]
    by_time = job(tmp_path, DELTA, CHANGES, TIME, "by_time = true\n", SINK)
    stream, _ = by_time.frame(spark)
    found = plan(by_time, by_time.stream, stream, embedded=False)
    assert "count by commit time" in found.sources["rows"].time


def test_the_doctor_says_whether_the_changes_of_tables_are_fed(tmp_path):
    lake(tmp_path / "lake")
    asked = Request(job(tmp_path, DELTA, CHANGES, TIME, SINK))
    home, mirror = tables.fed(asked)
    assert home.found == f"changes of {tmp_path}/lake/home are fed, up to version 3"
    assert mirror.found.endswith("up to version 2")
    properties = {"delta.enableChangeDataFeed": "false"}
    DeltaTable(tmp_path / "lake" / "home").alter.set_table_properties(properties)
    shutil.rmtree(tmp_path / "lake" / "mirror")
    home, mirror = tables.fed(asked)
    assert [home.state, mirror.state] == [State.TROUBLE, State.TROUBLE]
    assert "the change data feed of" in home.found
    assert "no Delta table that is there" in mirror.found
    assert all(one.mend for one in (home, mirror))
    assert list(tables.fed(Request(job(tmp_path, FOLDER, CHANGES, AT, SINK)))) == []


@pytest.mark.slow
def test_changes_of_delta_tables_are_kept_as_a_table(tmp_path):
    lake(tmp_path / "lake")
    sink = '[sink.table]\npath = "merged"\nkind = "history"\n'
    file = job_file(tmp_path, DELTA, CHANGES, TIME, sink, SPARK, QUICK)
    done = run("run", file, "--once", "--strict", cwd=Path("/"))
    assert done.returncode == 0, done.stderr
    assert f"waiting for the first rows of Delta tables: home {tmp_path}/lake/home" in done.stderr
    rows = DeltaTable(tmp_path / "merged").to_pyarrow_table().to_pylist()
    history = sorted((row["id"], row["left"], row["valid_to"] is None) for row in rows)
    assert history == [(1, 4, True), (1, 5, False), (2, 8, False)]
