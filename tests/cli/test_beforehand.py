"""What needs no Spark to be known of a job is told before Spark starts, and the same by every command."""

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.spark_commands import run as command

from anabranch.cli.doctor import job as looked_at
from anabranch.cli.doctor.finding import Request, State
from anabranch.engines.spark.query.begun_with import BegunWith, keep_begun_with
from anabranch.engines.spark.query.checkpoint import CheckpointError
from anabranch.jobs.beforehand import check_job, foreseen
from anabranch.jobs.job_file import read_job
from anabranch.jobs.opened_sources import known_columns
from anabranch.kernels.store.saved import StateFormatError

SOURCE = '[source]\npath = "feeds"\nschema = "sensor string, level double, at timestamp"\n'
MERGE = (
    '[merge]\nstart = "at"\nduration = "1 minute"\nreplica = "replica"\n'
    'disorder = "2 minutes"\nlossy = true\n'
)
SINK = '[sink]\npath = "merged"\n'
SPARK = '[spark]\nmaster = "local[2]"\n'
TABLE = '[sink.table]\npath = "table"\nkind = "history"\n'
KAFKA = '[source]\nschema = "id long, at timestamp"\n[source.kafka]\nservers = "localhost:1"\n'
AVRO = 'topics = "a"\nvalues = "avro"\navro_schema = "a.avsc"\n'
DELTA = '[source.delta]\ntables = "lake"\n[changes]\nkey = "id"\ntime = "time"\ndisorder = "1 second"\n'


@pytest.fixture
def place(tmp_path):
    for name in ("east", "west"):
        (tmp_path / "feeds" / name).mkdir(parents=True)
    return tmp_path


LAG = "policy = {{name = 'half-frozen', lag = {}}}\n"


def job_of(place: Path, *parts: str):
    (place / "job.toml").write_text("".join(parts))
    return read_job(str(place / "job.toml"))


def changed(text: str, key: str, value: str | None) -> str:
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith(f"{key} =")]
    return "".join(lines) + ("" if value is None else f"{key} = {value}\n")


def test_a_job_that_would_run_is_let_through_and_nothing_is_made(place):
    there = sorted(place.rglob("*"))
    job = job_of(place, SOURCE, MERGE, SINK, SPARK)
    check_job(job)
    assert sorted(place.rglob("*")) == [*there, place / "job.toml"]
    assert known_columns(job)["rows"].schema.names == ["sensor", "level", "at", "replica"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SOURCE.replace("feeds", "nowhere") + MERGE + SINK, "nowhere is not a folder that is there"),
        (SOURCE.replace("double", "dubble") + MERGE + SINK, "'dubble' is no type of Spark's"),
        (SOURCE + changed(MERGE, "disorder", None) + SINK, "neither is given; nothing would ever"),
        (SOURCE + changed(MERGE, "disorder", "'-1 minute'") + SINK, "disorder"),
        (SOURCE + changed(MERGE, "start", "'att'") + SINK, "start is column 'att', and there is none"),
        (SOURCE + MERGE + "identity = 'levl'\n" + SINK, "identity is column 'levl', and there is none"),
        (SOURCE + changed(MERGE, "replica", None) + SINK, "replica is not given"),
        (SOURCE + MERGE + "replicas = ['east']\nlossy = ['norht']\n" + SINK, "'norht' is none of 'east'"),
        (SOURCE + MERGE + LAG.format("60") + SINK, "the lag of the policy is 60 without a unit"),
        (SOURCE + MERGE + SINK + "trigger = '10s'\n", "'10s' is none that Spark knows"),
        (SOURCE + MERGE + "[sink]\npath = 'job.toml/out'\n", "job.toml is a file, and a folder is needed"),
        (SOURCE + MERGE + TABLE.replace("history", "current") + "key = 'room'\n", "'room' is none"),
        (KAFKA + "topics = {}\n" + MERGE + SINK, "names at least one topic, and it is {}"),
        (KAFKA.replace("servers", "patience") + "topics = 'a'\n" + MERGE + SINK, "known by its servers"),
        (KAFKA + AVRO + MERGE + SINK, "a.avsc"),
        ("[source]\nformat = 'rate'\n" + changed(MERGE, "disorder", None) + SINK, "neither is given"),
    ],
)
def test_a_mistake_is_told_without_spark(place, text, words):
    if "norht" in text:
        text = text.replace("lossy = true\n", "")
    with pytest.raises((ValueError, OSError, TypeError), match=words) as caught:
        check_job(job_of(place, text))
    assert words in str(caught.value) or caught.value.filename.endswith(words)


def test_a_lag_is_a_length_of_time_that_a_checkpoint_tells_in_words(place):
    job = job_of(place, SOURCE, MERGE, LAG.format("'5 min'"), SINK, SPARK)
    settings = foreseen(job, known_columns(job)).settings
    assert settings["merge: policy"] == "half-frozen, 5 minutes behind"


def test_columns_are_known_from_files_topics_and_text(place):
    rows = pa.table({"sensor": ["a"], "at": pa.array([1], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, place / "feeds" / "east" / "1.parquet")
    job = job_of(place, '[source]\npath = "feeds"\n', MERGE, SINK)
    assert known_columns(job)["rows"].schema.names == ["sensor", "at", "replica"]
    topics = job_of(place, KAFKA, "topics = ['a', 'b']\nkey = 'k'\nvalues = 'debezium'\n", MERGE, SINK)
    assert known_columns(topics)["rows"].schema.names == ["id", "at", "op", "time", "k", "replica"]
    assert known_columns(job_of(place, '[source]\nformat = "rate"\n', MERGE, SINK)) == {}


def begin(job, settings):
    """The checkpoint of a job, as its first micro-batch leaves it."""
    job.checkpoint.mkdir(parents=True)
    keep_begun_with(job.checkpoint, BegunWith(job.sink.fixed(), settings, 2))
    for log, text in (("offsets", "v1\n{}\n{}"), ("commits", "v1\n{}")):
        (job.checkpoint / log).mkdir()
        (job.checkpoint / log / "0").write_text(text)
    (job.checkpoint / "metadata").write_text('{"id":"a"}')
    (job.checkpoint / "anabranch-query").write_text("0a1b2c3d")
    (place := job.folder / "_part").mkdir(parents=True)
    (place / ".0a1b2c3d").touch()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            SOURCE + changed(MERGE, "duration", "'5 minutes'") + SINK + SPARK,
            "with source rows: duration 1 minute",
        ),
        (
            SOURCE + changed(MERGE, "lossy", "false") + SINK + SPARK,
            "with source rows: lossy True, this query has False",
        ),
        (
            SOURCE + MERGE + "policy = 'final'\n" + SINK + SPARK,
            "with merge: policy first, this query has final",
        ),
        (SOURCE + MERGE + "identity = 'sensor'\n" + SINK + SPARK, "with source rows: identity None"),
        (SOURCE.replace("double", "string") + MERGE + SINK + SPARK, "payload column 'level'"),
        (SOURCE + MERGE + SINK + SPARK.replace("2", "3"), "begun with 2 shards, and this query has 3"),
        (SOURCE + MERGE + SINK + "format = 'jsonl'\n" + SPARK, "is format parquet, and"),
        (SOURCE + MERGE + TABLE + "[sink]\ncheckpoint = 'merged/_checkpoint'\n" + SPARK, "is a folder, and"),
    ],
)
def test_a_job_that_its_checkpoint_refuses_is_refused_before_rows_come(place, text, words):
    job = job_of(place, SOURCE, MERGE, SINK, SPARK)
    begin(job, foreseen(job, known_columns(job)).settings)
    check_job(job)
    other = job_of(place, text)
    with pytest.raises((CheckpointError, StateFormatError), match=words):
        check_job(other)
    found = list(looked_at.merge(Request(other)))
    assert [one.state for one in found] == [State.TROUBLE]
    assert words.split(",")[0] in found[0].found


def test_a_file_of_another_query_in_the_folder_is_told_without_spark(place):
    (place / "merged").mkdir()
    (place / "merged" / "0badcafe-000000000-0000.jsonl").touch()
    with pytest.raises(FileExistsError, match="not of this query"):
        check_job(job_of(place, SOURCE, MERGE, SINK))


def test_a_table_of_another_kind_is_told_without_spark(place):
    from anabranch.connectors.tables.sink import TableShape, element_columns

    job = job_of(place, SOURCE, MERGE, TABLE)
    columns = element_columns(foreseen(job, known_columns(job)).columns)
    shape = TableShape("elements", "delta")
    shape.target(place / "table", "0a1b2c3d", columns, place / "mark").prepare()
    with pytest.raises(ValueError, match="is a table that this query did not make"):
        check_job(job)


HIDES = """import sys
class Hides:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hides())
import importlib.util, importlib.metadata
found, version = importlib.util.find_spec, importlib.metadata.version
importlib.util.find_spec = lambda name, package=None: None if name in {names} else found(name, package)
def of(name):
    if name.replace("-", "_") in {names}:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
importlib.metadata.version = of
"""


@pytest.mark.parametrize(
    ("package", "text"),
    [
        ("deltalake", SOURCE + MERGE + TABLE),
        ("deltalake", DELTA + SINK),
        ("confluent_kafka", KAFKA + "topics = 'a'\n" + MERGE + SINK),
        ("confluent_kafka", SOURCE + MERGE + "[sink.kafka]\ntopic = 'a'\nservers = 'localhost:1'\n"),
        ("fastavro", KAFKA + AVRO + MERGE + SINK),
    ],
)
def test_a_package_that_a_job_needs_and_is_not_installed_is_trouble(place, package, text):
    (place / "hidden").mkdir()
    (place / "hidden" / "sitecustomize.py").write_text(HIDES.format(names={package}))
    (place / "job.toml").write_text(text)
    path = os.pathsep.join([str(place / "hidden"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = command("run", "job.toml", "--check", cwd=place, PYTHONPATH=path)
    assert done.returncode == 2
    assert f"package {package.replace('_', '-')}, and it is not installed" in done.stderr
    code = (
        "from anabranch.cli.doctor import packages\n"
        "from anabranch.cli.doctor.finding import Request\n"
        "from anabranch.jobs.job_file import read_job\n"
        "import json\n"
        "found = packages.optional(Request(read_job('job.toml')))\n"
        "print(json.dumps({one.what: one.state for one in found}))\n"
    )
    import subprocess

    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    states = json.loads(answer.stdout)
    assert states.pop(package.replace("_", "-")) == "trouble"
    assert "trouble" not in states.values()
