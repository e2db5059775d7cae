"""Plans in job files: what they mean, and what is told of those that mean nothing."""

import inspect
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anabranch as ab
from anabranch import col
from anabranch.jobs.beforehand import check_job
from anabranch.jobs.job import Job
from anabranch.jobs.job_file import read_job
from anabranch.jobs.plan_sections import StepSection
from anabranch.jobs.sections import keys
from anabranch.jobs.step_sections import NO_OPERATORS, NOT_STEPS
from anabranch.plan.replicas import Replicas
from anabranch.plan.replicas_of_changes import ReplicasOfChanges
from anabranch.plan.windowed import Windowed

SOURCE = """
[sources.readings]
path = "readings.jsonl"
columns = { room = "string", level = "int64", at = "int64" }
start = "at"
disorder = 2
"""
ROOMS = {"room": "string", "level": "int64", "at": "int64"}


def job(folder: Path, text: str) -> Job:
    rows = [{"room": "A", "level": 5, "at": 1}, {"room": "B", "level": 2, "at": 3}]
    (folder / "readings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "job.toml").write_text(text)
    found = read_job(str(folder / "job.toml"))
    assert isinstance(found, Job)
    return found


def told(error: BaseException) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def readings() -> ab.Stream:
    return ab.source("readings", ROOMS, start="at", disorder=2)


@pytest.mark.parametrize(
    ("step", "meant"),
    [
        (
            "{ filter = \"level > 3 and room == 'A'\" }",
            lambda s: s.filter((col("level") > 3) & (col("room") == "A")),
        ),
        ('{ select = ["room"] }', lambda s: s.select("room")),
        (
            '{ select = { name = "room", twice = "level * 2" } }',
            lambda s: s.select(name=col("room"), twice=col("level") * 2),
        ),
        (
            '{ select = ["room", { twice = "level * 2" }] }',
            lambda s: s.select("room", twice=col("level") * 2),
        ),
        ('{ with_columns = { excess = "level - 3" } }', lambda s: s.with_columns(excess=col("level") - 3)),
        ('{ drop = "level" }', lambda s: s.drop("level")),
        ('{ rename = { room = "name" } }', lambda s: s.rename({"room": "name"})),
        ("{ lasting = 5 }", lambda s: s.lasting(5)),
        ("{ hop = { size = 10, every = 2 } }", lambda s: s.hop(10, 2)),
        ("{ tumble = 10 }", lambda s: s.tumble(10)),
        ("{ shift = -3 }", lambda s: s.shift(-3)),
        ("{ extend = 3 }", lambda s: s.extend(3)),
        ("{ clip = 3 }", lambda s: s.clip(3)),
        ('{ window = 10 }, { agg = { n = "count()" } }', lambda s: s.window(10).agg(n=ab.count())),
        (
            '{ window = { size = 10, every = 5, lifetime = "slide", start = "from", end = "to" } }, '
            '{ group_by = "room" }, { agg = { early = true, most = "(level + 1).max()", n = "count()" } }',
            lambda s: (
                s.window(10, 5, lifetime="slide", start="from", end="to")
                .group_by("room")
                .agg((col("level") + 1).max().alias("most"), n=ab.count(), early=True)
            ),
        ),
        (
            '{ window = 10 }, { agg = { early = "level.approx_quantile(0.9, error=0.1)" } }',
            lambda s: s.window(10).agg(col("level").approx_quantile(0.9, error=0.1).alias("early")),
        ),
        ('"distinct"', lambda s: s.distinct()),
        ('{ distinct = "room" }', lambda s: s.distinct("room")),
        ('{ distinct = ["room", "level"] }', lambda s: s.distinct("room", "level")),
        ('"started"', lambda s: s.started()),
        ("{ ended = true }", lambda s: s.ended()),
        ('"sort"', lambda s: s.sort()),
        ('"final"', lambda s: s.final()),
        ("{ final = { ordered = true } }", lambda s: s.final(ordered=True)),
        (
            "{ alter_lifetime = { start = 'START.floor(4) + 1', duration = 'END - START + 2' } }",
            lambda s: s.alter_lifetime(ab.START.floor(4) + 1, ab.END - ab.START + 2),
        ),
        ("{ alter_lifetime = { start = 'END', duration = 3 } }", lambda s: s.alter_lifetime(ab.END, 3)),
        ("{ alter_lifetime = { duration = 7 } }", lambda s: s.alter_lifetime(duration=7)),
        (
            "{ apply = { function = 'jobs.test_plan_jobs:doubled', keeps = 'room', pure = false } }",
            lambda s: s.apply(doubled, keeps=["room"], pure=False),
        ),
        (
            "{ apply = { rows = 'jobs.test_plan_jobs:row', schema = { n = 'int64' } } }",
            lambda s: s.apply(rows=row, schema={"n": "int64"}),
        ),
        ("{ session = 5 }, { agg = { n = 'count()' } }", lambda s: s.session(5).agg(n=ab.count())),
        (
            "{ session = { gap = 5, start = 'began' } }, { group_by = 'room' }, { agg = { n = 'count()' } }",
            lambda s: s.session(5, start="began").group_by("room").agg(n=ab.count()),
        ),
        ("{ rows = 5 }, { agg = { n = 'count()' } }", lambda s: s.rows(5).agg(n=ab.count())),
        (
            "{ rows = { size = 5, every = 2, end = 'until' } }, { agg = { n = 'count()' } }",
            lambda s: s.rows(5, 2, end="until").agg(n=ab.count()),
        ),
    ],
)
def test_a_step_is_the_method_of_its_name(tmp_path, step, meant):
    found = job(tmp_path, f"{SOURCE}[plan]\nsteps = [{step}]\n").stream
    assert found.explain() == meant(readings()).explain()
    assert found.schema == meant(readings()).schema


def doubled(rows):
    return {"room": rows.column("room"), "level": rows.column("level")}


def row(values):
    return {"n": 1}


def neither_step_nor_listed():
    """The public methods of what a plan is built of that a file can not have and that nothing lists."""
    kinds = (ab.Stream, Windowed, Replicas, ReplicasOfChanges)
    methods = {name for kind in kinds for name, _ in inspect.getmembers(kind, inspect.isfunction)}
    public = {name for name in methods if not name.startswith("_")}
    return public - {*keys(StepSection), *NOT_STEPS, *NO_OPERATORS}


def test_every_public_method_is_a_step_or_listed_as_none():
    assert neither_step_nor_listed() == set()
    assert {"session", "rows", "apply", "alter_lifetime", "join", "window"} <= {*keys(StepSection)}
    assert {*NOT_STEPS} == {"tap"}


def test_a_method_that_is_neither_is_found(monkeypatch):
    monkeypatch.setattr(ab.Stream, "snapshot", lambda self: 3, raising=False)
    assert neither_step_nor_listed() == {"snapshot"}


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("{ session = { gpa = 5 } }", "has no key 'gpa', did you mean 'gap'"),
        ("{ hop = { size = 5 } }", "has no every"),
        ("{ hop = 5 }", "hop is"),
        ("{ rows = '5 minutes' }", "rows is"),
        ("{ alter_lifetime = 'START * 2' }", "a lifetime is made of START, END"),
        ("{ alter_lifetime = 'END - START' }", "a start is made of START"),
        ("{ apply = 'doubled' }", "a function is named as module:name"),
        ("{ tap = 'out' }", "a job has one output"),
        ("'session'", "needs arguments"),
    ],
)
def test_a_step_that_is_wrong_says_what_it_takes(tmp_path, step, words):
    with pytest.raises(ValueError, match=words):
        _ = job(tmp_path, f"{SOURCE}[plan]\nsteps = [{step}]\n").stream


def test_the_column_of_a_replica_that_a_folder_names_need_not_be_among_the_columns(tmp_path):
    text = SOURCE + 'replica = "gateway"\nlossy = ["north"]\n[plan]\nsteps = ["merge"]\n'
    stream = job(tmp_path, text).stream
    assert stream.schema.names == list(readings().schema.names)
    assert "R4: north is lossy" in stream.explain()


def test_every_operator_of_a_step_has_been_tried_above():
    text = Path(__file__).read_text()
    assert [name for name in keys(StepSection) if f"{name} =" not in text and f'"{name}"' not in text] == []


def test_replicas_are_merged_by_a_step_with_its_settings(tmp_path):
    text = SOURCE.replace("at = ", 'who = "string", at = ') + 'replica = "who"\nlossy = true\n'
    steps = '[plan]\nsteps = [{ filter = "level > 3" }, { merge = { policy = "final", remember = 9 } }]\n'
    heard = ab.source(
        "readings", {**ROOMS, "who": "string"}, start="at", disorder=2, replica="who", lossy=True
    )
    meant = heard.filter(col("level") > 3).merge(policy=ab.FinalOnly(), remember=9)
    assert job(tmp_path, text + steps).stream.explain() == meant.explain()


def test_streams_meet_in_sections_of_their_own(tmp_path):
    text = f"""{SOURCE}{SOURCE.replace("sources.readings", "sources.others")}
[plan.hot]
from = "readings"
steps = [{{ filter = "level > 3" }}]

[plan.both]
union = ["hot", "others"]

[plan.out]
merge = {{ of = {{ old = "both", new = "cold" }}, case = "R4" }}
steps = ["final"]

[plan.cold]
from = "others"
"""
    first, second = readings(), ab.source("others", ROOMS, start="at", disorder=2)
    both = ab.union(first.filter(col("level") > 3), second)
    meant = ab.merge({"old": both, "new": second}, case="R4").final()
    assert job(tmp_path, text).stream.explain() == meant.explain()


@pytest.mark.parametrize(
    ("step", "meant"),
    [
        ('on = "room", within = [5, 0]', {"on": "room", "within": (5, 0)}),
        (
            'on = { room = "place" }, within = 3, how = "left", at = "left", starts = ["a", "b"]',
            {"on": {"room": "place"}, "within": 3, "how": "left", "at": "left", "starts": ("a", "b")},
        ),
        (
            'within = 0, where = "level < level_other", suffix = "_other"',
            {"within": 0, "where": col("level") < col("level_other"), "suffix": "_other"},
        ),
    ],
)
def test_a_stream_is_joined_with_another_by_its_name(tmp_path, step, meant):
    others = SOURCE.replace("sources.readings", "sources.others").replace("level", "place = 'string', level")
    text = (
        f"{SOURCE}{others}[plan]\nfrom = 'readings'\nsteps = [{{ join = {{ right = 'others', {step} }} }}]\n"
    )
    right = ab.source("others", {"room": "string", "place": "string", **ROOMS}, start="at", disorder=2)
    made = readings().join(right, **meant)
    found = job(tmp_path, text).stream
    assert found.explain() == made.explain()
    assert found.schema == made.schema


def test_a_stream_can_be_joined_with_what_it_is_from(tmp_path):
    text = """
[plan.highest]
from = "readings"
steps = [{ window = { size = 10, end = "by" } }, { agg = { most = "level.max()" } }, { lasting = 1 }]

[plan.out]
from = "readings"
steps = [{ tumble = 10 }, { join = { right = "highest", within = 0, where = "level == most" } }]
"""
    found = job(tmp_path, SOURCE + text).stream
    assert found.schema.names == ["room", "level", "most", "by"]


def test_a_plan_of_one_stream_in_a_program_is_read_too(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"room": "A", "level": 5, "at": 1}\n')
    for name, made in (("stream = ", ""), ("def plan():\n    return ", "")):
        (tmp_path / "job.py").write_text(
            "import anabranch as ab\n"
            f"readings = ab.source('readings', {ROOMS!r}, start='at')\n"
            f"{name}readings.filter(ab.col('level') > 3){made}\n"
            "SOURCES = {'readings': 'rows.jsonl'}\n"
            "SINK = {'file': 'out.jsonl'}\n"
        )
        found = read_job(str(tmp_path / "job.py"))
        assert isinstance(found, Job)
        assert found.inputs() == {"readings": tmp_path / "rows.jsonl"}
        assert "filter level > 3" in found.stream.explain()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[plan]\nsteps = [{ filter = 'levle > 3' }]", ["levle", "step 1 of [plan]", "'level'"]),
        ("[plan]\nsteps = [{ filter = 'level >> 3' }]", ["no such sign", "'level >> 3'", "step 1 of [plan]"]),
        ("[plan]\nsteps = [{ filter = 'level' }]", ["step 1 of [plan]", "true or false", "Compare it"]),
        ("[plan]\nsteps = [{ fliter = 'level > 3' }]", ["no key 'fliter'", "did you mean 'filter'?"]),
        ("[plan]\nsteps = ['srot']", ["no operator", "did you mean 'sort'?"]),
        ("[plan]\nsteps = ['filter']", ["needs arguments", "{ filter = … }"]),
        (
            "[plan]\nsteps = [{ filter = 'level > 3', drop = 'room' }]",
            ["one operator", "one after the other"],
        ),
        ("[plan]\nsteps = [{ drop = 'rom' }]", ["no column 'rom'", "step 1 of [plan]"]),
        ("[plan]\nsteps = ['merge']", ["is of replicas", "merge = [NAME"]),
        ("[plan]\nsteps = [{ lasting = '5 minutes' }]", ["numbers", "int of ticks"]),
        ("[plan]\nfrom = 'raedings'", ["no source or stream 'raedings'", "did you mean 'readings'?"]),
        ("[plan]\nform = 'readings'", ["no key 'form'", "did you mean 'from'?"]),
        ("[plan.a]\nfrom = 'b'\n[plan.b]\nfrom = 'a'", ["not made of itself", "a is made of b is made of a"]),
        ("[plan.a]\nfrom = 'readings'\n[plan.b]\nfrom = 'readings'", ["no stream reads 'a', 'b'", "union"]),
        ("[plan.readings]\nsteps = []", ["'readings' is a source and one of the plan", "Rename"]),
        ("[plan]\nfrom = 'readings'\nunion = ['readings']", ["from and union", "own [plan.NAME]"]),
        ("[plan]\n[sinks]\npath = 'out'", ["[sinks] is no table", "did you mean 'sink'?"]),
        ("[plan]\n[merge]\nstart = 'at'", ["[merge] is no table", "[sources.NAME]"]),
        ("[plan]\n[sink]\npath = 'out'\nfile = 'out.jsonl'", ["one of path, file", "path and file"]),
        ("[plan]\nsteps = [{ hop = { size = 10 } }]", ["has no every"]),
        ("[plan]\nsteps = [{ window = 10 }]", ["windows need the step agg", "{ agg = {", "job.toml:9"]),
        ("[plan]\nsteps = [{ window = 10 }, 'sort']", ["sort is of a stream", "these are windows"]),
        ("[plan]\nsteps = [{ agg = { n = 'count()' } }]", ["agg is of windows", "{ window = … }"]),
        (
            "[plan]\nsteps = [{ window = 10 },\n{ agg = { n = 'levle.sum()' } }]",
            ["levle", "'level'", "step 2 of [plan]", "job.toml:10: { agg"],
        ),
        (
            "[plan]\nsteps = [{ window = 10 },\n{ agg = { n = 'level.smu()' } }]",
            ["no method 'smu'", "character 1", "job.toml:10: { agg"],
        ),
        (
            "[plan]\nsteps = [{ window = 10 }, { agg = { n = 'level + 1' } }]",
            ["an aggregate is of many rows", "'level + 1'", "count()"],
        ),
        ("[plan]\nsteps = [{ window = 10 }, { agg = { n = true } }]", ["n is true", 'n = "count()"']),
        ("[plan]\nsteps = [{ filter = 'level.sum() > 3' }]", ["no value of a row", "'level.sum() > 3'"]),
        ("[plan]\nsteps = [{ select = { n = 'count()' } }]", ["of one row", "after window"]),
        (
            "[plan]\nsteps = [{ window = { size = 10, evry = 5 } }]",
            ["no key 'evry'", "did you mean 'every'?"],
        ),
        ("[plan]\nsteps = [{ join = { on = 'room' } }]", ["has no right"]),
        ("[plan]\nsteps = [{ join = { right = 'raedings' } }]", ["no source or stream 'raedings'"]),
        ("[plan]\nsteps = [{ join = { right = 'readings' } }]", ["within is not given", "job.toml:9"]),
        (
            "[plan]\nsteps = [{ join = { right = 'readings', within = 0, where = 'levle > 3' } }]",
            ["levle", "step 1 of [plan]"],
        ),
        (
            "[plan]\nsteps = [{ join = { right = 'readings', within = 0, how = 'outer' } }]",
            ["'outer'", "'anti'"],
        ),
        ("plan = 3", ["[plan] has keys and values"]),
        ("[other]\na = 1", ["needs a table [plan]"]),
    ],
)
def test_a_plan_that_means_nothing_is_told_with_the_rule_the_value_and_the_way_out(tmp_path, text, words):
    with pytest.raises((ValueError, TypeError)) as raised:
        job(tmp_path, f"{text}\n{SOURCE}" if text.startswith("plan") else f"{SOURCE}\n{text}\n")
    for word in [*words, "job.toml"]:
        assert word in told(raised.value)


def test_of_steps_alike_the_one_that_cannot_be_is_told_with_its_line(tmp_path):
    text = f"{SOURCE}\n[plan]\nsteps = [\n  {{ drop = 'room' }},\n  {{ drop = 'rom' }},\n]\n"
    with pytest.raises(ab.PlanError) as raised:
        job(tmp_path, text)
    assert "job.toml:11: { drop = 'rom' }" in told(raised.value)


def test_a_step_that_cannot_be_is_told_with_its_line(tmp_path):
    text = f"{SOURCE}\n[plan]\nsteps = [\n  {{ filter = 'level > 3' }},\n  {{ drop = 'rom' }},\n]\n"
    with pytest.raises(ab.PlanError) as raised:
        job(tmp_path, text)
    number = text.splitlines().index("  { drop = 'rom' },") + 1
    assert f"job.toml:{number}: {{ drop = 'rom' }}" in told(raised.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('path = "readings.jsonl"', 'paht = "readings.jsonl"'), ["no key 'paht'", "did you mean 'path'?"]),
        (('path = "readings.jsonl"', ""), ["has one of path, kafka and delta", 'path = "feeds"']),
        (('start = "at"', 'start = "ta"'), ["start is column 'ta'", "'at'", "[sources.readings]"]),
        (('level = "int64"', 'level = "itn64"'), ["'itn64'", "int64", "[sources.readings]"]),
        (('start = "at"', 'start = "at"\nreplica = "room"'), ["lossy is not given", "[sources.readings]"]),
    ],
)
def test_a_source_that_cannot_be_is_told_with_its_table(tmp_path, change, words):
    with pytest.raises((ValueError, TypeError)) as raised:
        job(tmp_path, SOURCE.replace(*change) + "[plan]\n")
    for word in words:
        assert word in told(raised.value)


def test_values_of_the_environment_stand_in_texts_once(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOM", "hall")
    steps = "steps = [{ filter = \"room == '${ROOM}' or room == '$${ROOM}'\" }]"
    found = job(tmp_path, f"{SOURCE}[plan]\n{steps}\n").stream
    assert "room == 'hall' | room == '${ROOM}'" in found.explain()


class TestBeforehand:
    def test_what_is_not_there_is_told_with_the_source(self, tmp_path):
        found = job(tmp_path, SOURCE.replace("readings.jsonl", "feeds") + "[plan]\n")
        with pytest.raises(FileNotFoundError, match="is not there") as raised:
            check_job(found, embedded=True)
        assert "source 'readings'" in told(raised.value)

    def test_a_column_that_a_file_lacks_is_told_before_anything_runs(self, tmp_path):
        found = job(tmp_path, SOURCE.replace("readings.jsonl", "rows.parquet") + "[plan]\n")
        pq.write_table(pa.table({"room": ["A"], "at": [1]}), tmp_path / "rows.parquet")
        with pytest.raises(TypeError, match="has no column 'level'"):
            check_job(found, embedded=True)

    def test_a_table_is_looked_at_for_its_columns(self, tmp_path):
        from deltalake import DeltaTable

        columns = pa.schema([("id", pa.int64())])
        text = SOURCE.replace('path = "readings.jsonl"', 'delta = { tables = "stock", time = "at" }')
        with pytest.raises(ValueError, match="no Delta table") as raised:
            check_job(job(tmp_path, f"{text}[plan]\n"), embedded=True)
        assert "source 'readings'" in told(raised.value)
        DeltaTable.create(tmp_path / "stock", columns, configuration={"delta.enableChangeDataFeed": "true"})
        with pytest.raises(TypeError, match="has no column 'room'"):
            check_job(job(tmp_path, f"{text}[plan]\n"), embedded=True)

    def test_a_folder_that_has_files_is_not_written_to_without_spark(self, tmp_path):
        found = job(tmp_path, f'{SOURCE}[plan]\n[sink]\npath = "out"\n')
        (tmp_path / "out").mkdir()
        (tmp_path / "out/old.parquet").touch()
        with pytest.raises(FileExistsError, match=r"old\.parquet"):
            check_job(found, embedded=True)

    def test_a_sink_is_written_by_the_engine_that_can(self, tmp_path):
        found = job(tmp_path, f'{SOURCE}[plan]\n[sink]\nfile = "out.jsonl"\n')
        check_job(found, embedded=True)
        with pytest.raises(ValueError, match="Spark writes to folders") as raised:
            check_job(found, embedded=False)
        assert "--engine embedded" in told(raised.value)
        text = f'{SOURCE}[plan]\n[sink.kafka]\ntopic = "out"\nservers = "localhost:1"\n'
        with pytest.raises(ValueError, match="is written by Spark"):
            check_job(job(tmp_path, text), embedded=True)

    def test_what_is_written_is_apart_from_what_is_read(self, tmp_path):
        with pytest.raises(ValueError, match="does not write where it reads"):
            job(tmp_path, f'{SOURCE}[plan]\n[sink]\nfile = "readings.jsonl"\n')
