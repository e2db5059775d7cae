"""Jobs in files: what may be in them, what is said about what may not; queries that run, stop and go on."""

import inspect
import json
import os
import signal
import tempfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.spark_commands import are_gone, descendants, run, start

from anabranch import (
    FOREVER,
    Drop,
    FinalOnly,
    Generalise,
    Insert,
    Pace,
    Quarantine,
    Quorum,
    Raise,
    Relation,
    difference,
)
from anabranch.cli.main import INTERRUPTED, TERMINATED, main
from anabranch.cli.micro_batches import Lines, leader
from anabranch.cli.spark_errors import spark_errors_as_ours
from anabranch.engines.spark.query.failure import WorkerError
from anabranch.engines.spark.query.follow import stoppable
from anabranch.engines.spark.query.status import Replica, Status
from anabranch.engines.spark.session.jvm import SHORT_LIVED
from anabranch.jobs.ends import SinkSection
from anabranch.jobs.job_file import read_job
from anabranch.jobs.merge_sections import MergeSection
from anabranch.jobs.sections import SparkSection
from anabranch.model.batch import Batch
from anabranch.model.schema import SchemaError

SOURCE = '[source]\npath = "feeds"\n'
MERGE = '[merge]\nstart = "at"\nend = "until"\nkind = "kind"\nreplica = "replica"\n'
SINK = '[sink]\npath = "out"\n'
SPARK = '[spark]\nmaster = "local[2]"\nshards = 2\n'
QUICK = "".join(f"config.'{key}' = '{value}'\n" for key, value in SHORT_LIVED.items())


def job_file(folder: Path, *parts: str, name: str = "job.toml") -> str:
    (folder / name).write_text("".join(parts))
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            SOURCE + MERGE + SINK + "[spork]\n",
            ["[spork] is no table", "'spark'", "source, merge, changes, sink, spark"],
        ),
        (SOURCE + MERGE, ["the sink is standard output", "--engine embedded"]),
        (
            SOURCE + MERGE + "identiy = ['a']\n" + SINK,
            ["[merge] has no key 'identiy'", "'identity'", "on_late"],
        ),
        (SOURCE + "[merge]\nend = 'until'\n" + SINK, ["[merge] has no start"]),
        (SOURCE + MERGE + "remember = 'all'\n" + SINK, ["[merge] remember is a whole number, not text"]),
        (SOURCE + MERGE + "policy = 'fast'\n" + SINK, ["'fast'", "final", "quorum", "name ="]),
        (SOURCE + MERGE + "policy = 'quorum=7'\n" + SINK, ["quorum", "'7'"]),
        (SOURCE + MERGE + "policy = {name = 'first', fraction = 0.5}\n" + SINK, ["'first' has no fraction"]),
        (SOURCE + MERGE + "policy = {name = 'quorum', by = 'latest'}\n" + SINK, ["'quorum' has no by"]),
        (
            SOURCE + MERGE + "policy = {nme = 'first'}\n" + SINK,
            ["policy has no key 'nme'", "name, lag, fraction"],
        ),
        (SOURCE + MERGE + "on_late = 'generalise'\n" + SINK, ["on_late", "raise, drop, quarantine"]),
        (SOURCE + MERGE + "lossy = 'yes'\n" + SINK, ["'yes'", "Write lossy = true.", "lossy = ['yes']"]),
        (SOURCE + MERGE + "lossy = 'False'\n" + SINK, ["'False'", "Write lossy = false."]),
        (SOURCE + MERGE + "pace = 'fast'\n" + SINK, ["pace", "'fast'", "'fastest'"]),
        (
            "[source]\nschema = 'a int'\n" + MERGE + SINK,
            ["[source]", "no path, kafka, delta or format", "kafka"],
        ),
        (SOURCE + "options = {a = 1}\n" + MERGE + SINK, ["options", "no format"]),
        (
            SOURCE + "format = 'json'\nfiles_per_trigger = 1\n" + MERGE + SINK,
            ["files_per_trigger", "maxFiles"],
        ),
        (SOURCE + MERGE + SINK + "format = 'csv'\n", ["[sink] format", "'csv'", "parquet, jsonl"]),
        (SOURCE + MERGE + SINK + "trigger = '1 second'\navailable_now = true\n", ["1 second", "not both"]),
        (SOURCE + MERGE + "[sink\n", ["Expected ']'"]),
        (SOURCE + MERGE + "[sink]\npath = 'feeds'\n", ["does not write where it reads", "feeds is that"]),
        (SOURCE + MERGE + "[sink]\npath = 'feeds/out'\n", ["out is inside", "a folder beside the source"]),
        ("[source]\npath = 'out/feeds'\n" + MERGE + SINK, ["out holds"]),
        (SOURCE + MERGE + SINK + "checkpoint = 'feeds/checkpoint'\n", ["feeds/checkpoint is inside"]),
        (
            SOURCE + "format = 'json'\nby_replica = true\n" + MERGE + SINK,
            ["by_replica is for folders", "replica in [merge]"],
        ),
    ],
)
def test_a_job_that_is_not_one_is_refused_before_spark_starts(tmp_path, capsys, text, words):
    assert main(["run", job_file(tmp_path, text)]) == 2
    said = capsys.readouterr().err
    for word in [*words, "job.toml"]:
        assert word in said
    assert "Traceback" not in said
    assert [file.name for file in tmp_path.iterdir()] == ["job.toml"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MERGE = SINK = {}\n", ["rows(spark)"]),
        ("def rows(spark): pass\nMERGE = {'start': 'at'}\n", ["the sink is standard output", "[sink]"]),
        (
            "def rows(spark): pass\nMERGE = {'strat': 'at'}\nSINK = {'path': 'o'}\n",
            ["MERGE has no key", "'start'"],
        ),
        ("x = 1\ny = x + nothing\n", ["job.py, line 2", "NameError", "nothing"]),
        ("def rows(spark)\n", ["job.py, line 1", "SyntaxError"]),
    ],
)
def test_a_program_that_is_no_job_is_refused_with_its_line(tmp_path, capsys, text, words):
    assert main(["run", job_file(tmp_path, text, name="job.py")]) == 2
    said = capsys.readouterr().err
    assert all(word in said for word in words), said


def test_a_job_is_a_toml_or_a_python_file_that_is_there(tmp_path, capsys):
    assert main(["run", str(tmp_path / "job.yaml")]) == 2
    assert ".toml or a .py" in capsys.readouterr().err
    for name in ("job.toml", "job.py"):
        assert main(["run", str(tmp_path / name)]) == 2
        assert "No such file" in capsys.readouterr().err


def test_the_keys_of_a_job_are_the_arguments_of_the_functions_they_are_for():
    from anabranch import spark as ab

    def keywords(function):
        return {p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY}

    assert {*MergeSection.__struct_fields__} == keywords(ab.merge)
    assert {*SinkSection.__struct_fields__} == keywords(ab.write_folder) - {"name"} | {
        "path",
        "file",
        "kafka",
        "table",
    }
    assert {*SparkSection.__struct_fields__} == keywords(ab.session) - {"name"} | {"master"}


def test_the_help_has_the_statuses_of_a_run_that_is_cut_short(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    status = capsys.readouterr().out.partition("Exit status:")[2]
    assert f"{INTERRUPTED} stopped at once" in status
    assert f"{TERMINATED} by SIGTERM" in status


def test_words_of_a_job_are_the_values_they_stand_for(tmp_path):
    words = (
        "policy = {name = 'quorum', lag = 60, fraction = 0.6}\npace = 'fastest'\non_invalid = 'raise'\n"
        "on_broken = 'generalise'\non_late = 'drop'\ndisorder = '30 seconds'\nlossy = ['a']\n"
    )
    given = read_job(job_file(tmp_path, SOURCE, MERGE, words, SINK)).plan.arguments()
    assert given["policy"] == Quorum(lag=60, fraction=0.6)
    assert given["pace"] is Pace.FASTEST
    answers = [given[name] for name in ("on_invalid", "on_broken", "on_late")]
    assert answers == [Raise(), Generalise(), Drop()]
    assert (given["disorder"], given["lossy"]) == ("30 seconds", ["a"])
    assert "remember" not in given


def test_a_program_may_give_values_instead_of_words(tmp_path):
    text = (
        "from datetime import timedelta\nfrom anabranch import FinalOnly, Pace, Quarantine\n"
        "def rows(spark): return 'feeds'\n"
        "MERGE = dict(start='at', policy=FinalOnly(lag=3), pace=Pace.FASTEST, on_late=Quarantine(),\n"
        "             disorder=timedelta(seconds=3))\n"
        "SINK = {'path': 'out', 'checkpoint': '/elsewhere'}\n"
    )
    job = read_job(job_file(tmp_path, text, name="job.py"))
    given = job.plan.arguments()
    assert (given["policy"], given["pace"]) == (FinalOnly(lag=3), Pace.FASTEST)
    assert isinstance(given["on_late"], Quarantine)
    assert given["disorder"] == timedelta(seconds=3)
    assert job.checkpoint == Path("/elsewhere")


def test_paths_of_a_job_are_relative_to_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    job = read_job(job_file(tmp_path, SOURCE, MERGE, SINK, "quarantine = '../aside'\n"))
    assert job.folder == tmp_path / "out"
    assert job.checkpoint == tmp_path / "out" / "_checkpoint"
    assert job.quarantine == tmp_path / ".." / "aside"


def test_settings_of_spark_are_texts(tmp_path):
    config = "config = {'spark.ui.enabled' = true, 'spark.sql.shuffle.partitions' = 4}\n"
    job = read_job(job_file(tmp_path, SOURCE, MERGE, SINK, SPARK, config))
    assert job.spark.settings() == {"spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "4"}


def replica(frontier, lag, **changes):
    named = ("elements", "led", "disagreements", "holes", "filled", "late", "refused", "removed")
    counts = dict.fromkeys(named, 0)
    return Replica(frontier, lag, **({"attached": True, "joined": True} | counts | changes))


def status(**changes):
    noon = 1_772_452_800_000_000
    replicas = {
        "west": replica(noon - 75_000_000, 75_000_000, disagreements=2),
        "east": replica(noon, 0),
        "gone": replica(-(2**63), None, attached=False),
        "new": replica(-(2**63), None, joined=False),
    }
    received = {"insert": 1000, "adjust": 200, "stable": 34}
    emitted = {"insert": 600, "adjust": 9, "stable": 1}
    fields = {"quarantined": 3, "live": 5, "state_bytes": 1_234_567, "replicas": replicas}
    return Status(
        **(
            {"batch": 7, "case": "R3", "frontier": noon, "received": received, "emitted": emitted}
            | fields
            | changes
        )
    )


def test_a_line_says_who_leads_who_lags_and_what_is_wrong():
    line = Lines(timedelta(microseconds=1)).line(status(), 0.84)
    assert line == (
        "micro-batch 7  in 1,200  out 609  stable until 2026-03-02 12:00:00  east leads  "
        "west 0:01:15 behind  gone left  new has promised nothing  state 1.2 MB  0.8 s  "
        "3 quarantined  2 disagreements so far"
    )
    assert leader(status()) == "east"


def test_times_of_lines_are_on_the_clock_of_the_rows():
    assert Lines(timedelta(days=1)).time(20_514) == "2026-03-02"
    assert Lines(None).time(20_514) == "20514"
    assert Lines(timedelta(microseconds=1)).time(1_500_000) == "1970-01-01 00:00:01.5"
    assert Lines(timedelta(microseconds=1)).time(FOREVER) == "∞"
    assert Lines(timedelta(days=1)).time(10**12) == str(10**12)


def test_a_line_for_programs_has_null_for_infinite_and_leaves_out_what_never_was():
    fields = Lines(None).fields(status(frontier=FOREVER))
    assert fields["frontier"] is None
    assert "frontier" not in fields["replicas"]["new"]
    assert fields["replicas"]["west"]["lag"] == 75_000_000
    json.dumps(fields)


def test_the_first_interrupt_asks_and_the_second_does_not():
    before = signal.getsignal(signal.SIGTERM)
    with stoppable() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.asked == 1
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is before


def table(*rows):
    schema = pa.schema(
        [("kind", pa.string()), ("at", pa.int64()), ("until", pa.int64()), ("room", pa.string())]
    )
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def put(folder: Path, name: str, number: int, *rows) -> None:
    (folder / name).mkdir(parents=True, exist_ok=True)
    pq.write_table(table(*rows), folder / name / f".{number}")
    (folder / name / f".{number}").rename(folder / name / f"{number:04}.parquet")


def test_a_job_runs_until_it_is_stopped_and_the_next_run_goes_on_from_there(tmp_path):
    job = job_file(tmp_path, SOURCE, MERGE, SINK, SPARK, QUICK)
    for name in ("east", "west"):
        put(
            tmp_path / "feeds",
            name,
            0,
            ("insert", 1, 5, "A"),
            ("insert", 2, 9, "B"),
            ("stable", 4, None, None),
        )
    said = []
    with start("run", job, cwd=tmp_path) as process:
        for line in process.stderr:
            said.append(line)
            if line.startswith("micro-batch 0"):
                break
        spark = descendants(process.pid)
        process.send_signal(signal.SIGTERM)
        out, rest = process.communicate(timeout=100)
    said += rest.splitlines()
    assert process.returncode == 0, said
    assert "starting Spark on local[2]" in said[0]
    assert "the checkpoint is new" in said[1]
    assert f"waiting for the first rows of {tmp_path}/feeds: east 1 file, west 1 file" in said[2]
    assert "micro-batch 0: 2 files, Python workers start" in said[3]
    assert "in 4  out 2  stable until 4" in said[4]
    assert any("stopped after micro-batch 0: 1 micro-batches, 4 in, 2 out" in line for line in said)
    assert any("the next run goes on from" in line for line in said)
    assert out == ""
    assert are_gone(spark)

    put(
        tmp_path / "feeds",
        "west",
        1,
        ("insert", 3, 6, "late"),
        ("insert", 7, 8, "C"),
        ("stable", None, None, None),
    )
    done = run("run", job, "--once", "--json", "--strict", cwd=Path("/"))
    assert done.returncode == 1, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == ""
    assert [line["batch"] for line in lines[:-1]] == [1]
    assert lines[0]["frontier"] is None
    assert lines[-1]["end"] == "all was read"
    assert [lines[-1][name] for name in ("in", "out", "quarantined")] == [2, 1, 1]
    merged, meant = Relation(), Relation()
    for file in sorted((tmp_path / "out").glob("*.parquet")):
        merged.apply(Batch.from_arrow(pq.read_table(file)))
    meant.apply([Insert({"room": "A"}, 1, 5), Insert({"room": "B"}, 2, 9), Insert({"room": "C"}, 7, 8)])
    assert difference(merged, meant) is None
    (refused,) = (tmp_path / "out" / "_quarantine").glob("*.jsonl")
    late = json.loads(refused.read_text())
    assert late["rule"] == "insert-behind-stable"
    assert late["place"] == f"{tmp_path}/feeds/west/0001.parquet:1"
    shown = run("show", "out", "--json", cwd=tmp_path)
    assert [event["payload"] for event in json.loads(shown.stdout)["events"]] == [
        {"room": "A"},
        {"room": "B"},
        {"room": "C"},
    ]


def is_spark(process: int) -> bool:
    try:
        return b"pyspark-shell" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.slow
def test_a_job_that_is_interrupted_while_spark_starts_leaves_none_behind(tmp_path):
    (tmp_path / "feeds" / "east").mkdir(parents=True)
    schema = "schema = 'at long, until long, kind string, room string'\n"
    job = job_file(tmp_path, SOURCE + schema, MERGE, SINK, SPARK, QUICK)
    with start("run", job, cwd=tmp_path) as process:
        while not (spark := set(filter(is_spark, descendants(process.pid)))):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=100)
    assert process.returncode == 130
    assert are_gone(spark)


RATE = """
def rows(spark):
    rate = spark.readStream.format("rate").load()
    return rate.selectExpr("timestamp as at", "value % 5 as room", "value as noise", "'a' as line")

MERGE = {"start": "at", "replica": "line", "identity": ["room"], "disorder": "1 second", "lossy": False}
MERGE["properties"] = "keyed"
SINK = {"path": "out"}
SPARK = {"master": "local[2]", "shards": 2}
"""


def test_a_check_explains_the_plan_and_starts_nothing(tmp_path):
    done = run("run", job_file(tmp_path, RATE, name="job.py"), "--check", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    said = done.stdout
    assert "R3: payload and start are a key in every input; perfect is not declared for every replica" in said
    assert "at     timestamp[us, tz=UTC]: the start of the lifetime" in said
    assert "room   int64: payload, tells events apart" in said
    assert "noise  int64: payload, carried along" in said
    assert "line   string: the replica that sends it" in said
    assert "at most 1 second after" in said
    assert f"checkpoint {tmp_path}/out/_checkpoint: begins anew" in said
    assert [file.name for file in tmp_path.iterdir()] == ["job.py"]


@pytest.mark.slow
def test_a_check_refuses_a_trigger_that_spark_does_not_know(tmp_path):
    text = RATE.replace('{"path": "out"}', '{"path": "out", "trigger": "now and then"}')
    done = run("run", job_file(tmp_path, text, name="job.py"), "--check", cwd=tmp_path)
    assert done.returncode == 2, done.stdout
    assert "a trigger is a length of time, and 'now and then' is none that Spark knows" in done.stderr
    assert "'10 seconds'" in done.stderr
    assert "Traceback" not in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["job.py"]


def test_what_goes_wrong_in_rows_is_said_with_its_line(tmp_path):
    job = read_job(job_file(tmp_path, RATE, name="job.py"))
    with pytest.raises(ValueError, match=r"job\.py, line 3: AttributeError: .*readStream"):
        job.rows(None)


def test_what_spark_cannot_do_is_an_error_of_ours_in_a_line():
    from pyspark.errors import AnalysisException

    page = "[UNRESOLVED_COLUMN] A column with name `valu` cannot be resolved.;\n'Project [...]\n+- Relation\n"
    with (
        pytest.raises(ValueError, match=r"Spark could not do this: .*`valu`") as caught,
        spark_errors_as_ours(Path("log")),
    ):
        raise AnalysisException(page)
    assert "\n" not in str(caught.value)
    assert caught.value.__notes__ == ["What Spark said is in log."]


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        (
            'Exception in thread "main" org.apache.spark.SparkException: Master must be\n\tat X\n',
            "Master must be",
        ),
        (
            "Invalid maximum heap size: -Xmx2x\nError: Could not create the Java Virtual Machine.\n",
            "Invalid max",
        ),
    ],
)
def test_why_java_ended_is_told_and_a_log_that_goes_is_not_pointed_to(tmp_path, said, cause):
    def notes(folder):
        log = Path(folder, "spark.log")
        log.write_text(f"WARNING: Using incubator modules\n{said}")
        error = OSError("Spark did not start")
        error.add_note(f"What it said is in {log}.")
        with pytest.raises(OSError, match="did not start") as caught, spark_errors_as_ours(log):
            raise error
        return caught.value.__notes__

    first, second = notes(tmp_path)
    assert first.startswith(f"It said: {cause}")
    assert second == f"What it said is in {tmp_path}/spark.log."
    with tempfile.TemporaryDirectory() as folder:
        assert notes(folder) == [first]


def test_an_error_of_a_worker_stays_what_it_was():
    from pyspark.errors import StreamingQueryException

    told = WorkerError(SchemaError("0001.parquet has no column 'at'"))
    with pytest.raises(SchemaError, match=r"^0001.parquet has no column 'at'$"), spark_errors_as_ours():
        raise StreamingQueryException(f"[STREAM_FAILED] … {told}")
