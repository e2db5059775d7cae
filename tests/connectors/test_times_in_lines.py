"""Lines of JSON hold times of payloads as ISO 8601 text, and give them back where columns are told."""

import json
from collections import Counter
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import anabranch as ab
from anabranch import Insert, Stable
from anabranch.cli.main import main
from anabranch.connectors.files.output import FolderOutput
from anabranch.model.json_lines import UnwritableError

UNITS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def values(random, dtype):
    """A value of a type, whose types are those that lines hold."""
    if random.random() < 0.1:
        return None
    if pa.types.is_timestamp(dtype):
        micros = random.randrange(-(10**15), 4 * 10**15) // UNITS[dtype.unit] * UNITS[dtype.unit]
        return datetime(1970, 1, 1, tzinfo=UTC if dtype.tz else None) + timedelta(microseconds=micros)
    if pa.types.is_duration(dtype):
        return timedelta(
            microseconds=random.randrange(-(10**14), 10**14) // UNITS[dtype.unit] * UNITS[dtype.unit]
        )
    if pa.types.is_date(dtype):
        return date.fromordinal(random.randrange(1, 3_000_000))
    if pa.types.is_time(dtype):
        return time(random.randrange(24), random.randrange(60), random.randrange(60), random.randrange(10**6))
    if pa.types.is_list(dtype):
        return [values(random, dtype.value_type) for _ in range(random.randrange(3))]
    if pa.types.is_struct(dtype):
        return {field.name: values(random, field.type) for field in dtype}
    if pa.types.is_boolean(dtype):
        return random.random() < 0.5
    if pa.types.is_integer(dtype):
        return random.randrange(-100, 100)
    if pa.types.is_floating(dtype):
        return random.random()
    return random.choice(["", "a", "2026-03-01", "PT1S", "ü"])


def dtypes(random, deep=2):
    plain = [
        *(pa.timestamp(unit, zone) for unit in UNITS for zone in (None, "UTC", "Europe/Berlin")),
        *(pa.duration(unit) for unit in UNITS),
        pa.date32(),
        pa.time64("us"),
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.bool_(),
    ]
    if deep and random.random() < 0.3:
        inner = [dtypes(random, deep - 1) for _ in range(2)]
        return pa.list_(inner[0]) if random.random() < 0.5 else pa.struct([("x", inner[0]), ("y", inner[1])])
    return random.choice(plain)


def comes_back(plan, path):
    return Counter(
        (str(one.payload), one.start, one.end)
        for batch in ab.run(plan, {"s": path})
        for one in batch.elements()
        if isinstance(one, Insert)
    )


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("ending", ["out.jsonl", "out.txt", "folder"])
def test_what_lines_hold_comes_back_as_the_types_that_columns_say(seed, ending, tmp_path):
    random = Random(seed)
    schema = pa.schema([(name, dtypes(random)) for name in "abc"])
    plan = ab.source("s", schema)
    payloads = [{field.name: values(random, field.type) for field in schema} for _ in range(20)]
    elements = [Insert(payload, n, n + 2) for n, payload in enumerate(payloads)]
    batches = list(ab.run(plan, {"s": [*elements, Stable(50)]}))
    meant = Counter(
        (str(one.payload), one.start, one.end)
        for b in batches
        for one in b.elements()
        if isinstance(one, Insert)
    )
    if ending == "folder":
        from anabranch.connectors.files.output import FolderOutput

        path = tmp_path / "folder"
        FolderOutput(path, "jsonl").write(batches, plan)
    else:
        path = tmp_path / ending
        ab.write(path, batches)
    assert comes_back(plan, path) == meant


def test_a_text_that_is_no_time_is_set_aside_and_the_others_are_read(tmp_path):
    lines = [
        {"kind": "insert", "start": n, "end": 9, "payload": {"at": at}}
        for n, at in enumerate(["PT1S", "soon", "-PT0.5S"])
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    aside = []
    run = ab.run(
        ab.source("s", {"at": pa.duration("ms")}),
        {"s": tmp_path / "in.jsonl"},
        on_invalid=ab.Quarantine(aside.append),
    )
    found = [one.payload["at"] for batch in run for one in batch.elements() if isinstance(one, Insert)]
    assert found == [timedelta(seconds=1), timedelta(milliseconds=-500)]
    assert [one.detail for one in aside] == [
        "column 'at': a length of time is an ISO 8601 duration such as PT1.5S, 'soon' is not"
    ]


def test_what_a_run_gives_is_written_with_the_type_of_its_times(tmp_path):
    moment = datetime(2026, 3, 1, 12, tzinfo=UTC)
    plan = ab.source("s", {"at": "timestamp[us, tz=UTC]", "n": "int64"}, start="at", disorder="1 minute")
    for ending in ("parquet", "jsonl", "arrow"):
        run = ab.run(plan, {"s": [{"at": moment, "n": 1}]})
        assert ab.write(tmp_path / f"out.{ending}", run)
    import pyarrow.parquet as pq

    assert pq.read_schema(tmp_path / "out.parquet").field("start").type == pa.timestamp("us", "UTC")
    lines = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    (event,) = (line for line in lines if line["kind"] == "insert")
    assert event["start"] == "2026-03-01T12:00:00Z"


@pytest.mark.parametrize("given", ["swapped", "two paths", "a number"])
def test_write_names_the_order_of_its_arguments(given, tmp_path):
    plan = ab.source("s", {"n": "int64"})
    arguments = {
        "swapped": lambda: (ab.run(plan, {"s": [Stable(1)]}), tmp_path / "out.jsonl"),
        "two paths": lambda: (tmp_path / "out.jsonl", "in.jsonl"),
        "a number": lambda: (tmp_path / "out.jsonl", 5),
    }[given]()
    with pytest.raises(TypeError, match="write takes a path and then a stream"):
        ab.write(*arguments)


JOB = """
[sources.s]
path = "in.jsonl"
columns = { at = "timestamp[us, tz=UTC]", x = "TYPE" }
start = "at"
disorder = "1 minute"

[plan]
steps = ["sort"]

[sink]
SINK
"""


@pytest.mark.parametrize("check", [["--check"], []])
@pytest.mark.parametrize("dtype", ["binary", "decimal(10, 2)", "list<binary>"])
@pytest.mark.parametrize("sink", ["", 'file = "out.jsonl"', 'file = "out.txt"'])
def test_a_column_that_lines_cannot_hold_is_refused_before_a_run(check, dtype, sink, tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text("")
    (tmp_path / "job.toml").write_text(JOB.replace("TYPE", dtype).replace("SINK", sink))
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded", *check]) == 2
    told = capsys.readouterr().err
    assert "column 'x' is " in told
    assert "out.parquet" in told
    assert "--text" not in told
    assert {one.name for one in Path(tmp_path).iterdir()} == {"in.jsonl", "job.toml"}


@pytest.mark.parametrize("dtype", ["duration[us]", "timestamp[us, tz=UTC]", "date32", "list<duration[ms]>"])
def test_times_of_a_payload_are_written_to_lines_by_a_run(dtype, tmp_path):
    said = {"duration[us]": "PT1.5S", "date32": "2026-03-01", "list<duration[ms]>": ["PT1.5S"]}
    row = {"at": "2026-03-01T12:00:00Z", "x": said.get(dtype, "2026-03-01T11:00:00+01:00")}
    (tmp_path / "in.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "job.toml").write_text(JOB.replace("TYPE", dtype).replace("SINK", 'file = "out.jsonl"'))
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded"]) == 0
    lines = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    (event,) = (line for line in lines if line["kind"] == "insert")
    assert event["payload"]["x"] == {**said, "timestamp[us, tz=UTC]": "2026-03-01T10:00:00Z"}[dtype]


@pytest.mark.parametrize(
    ("sink", "is_refused"),
    [
        ('file = "out.jsonl"\nformat = "parquet"', True),
        ('file = "out.parquet"\nformat = "jsonl"', True),
        ('format = "parquet"', True),
        ('file = "out.jsonl"\nformat = "jsonl"', False),
        ('file = "out.parquet"', False),
        ('format = "jsonl"', False),
    ],
)
def test_a_format_beside_a_file_is_that_of_its_ending(sink, is_refused, tmp_path, capsys):
    (tmp_path / "in.jsonl").write_text("")
    (tmp_path / "job.toml").write_text(JOB.replace("TYPE", "int64").replace("SINK", sink))
    status = main(["run", str(tmp_path / "job.toml"), "--engine", "embedded", "--check"])
    assert status == (2 if is_refused else 0)
    if is_refused:
        assert "is written as" in capsys.readouterr().err


@pytest.mark.parametrize("sink", ['file = "out.jsonl"', 'path = "out"\nformat = "jsonl"'])
@pytest.mark.parametrize("kind", ["timestamp[ns, tz=UTC]", "duration[ns]", "list<timestamp[ns]>"])
def test_nanoseconds_are_refused_before_a_run_by_a_sink_of_lines(sink, kind, tmp_path, capsys):
    import pyarrow.parquet as pq

    dtype = ab.source("s", {"x": kind}).schema.field("x").type
    pq.write_table(pa.table({"x": pa.nulls(2, dtype), "at": [1, 2]}), tmp_path / "rows.parquet")
    (tmp_path / "job.toml").write_text(f"""
[sources.rows]
path = "rows.parquet"
columns = {{ x = "{kind}", at = "int64" }}
start = "at"
disorder = 1
[plan]
steps = [{{ shift = 1 }}]
[sink]
{sink}
""")
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded", "--check"]) == 2
    told = capsys.readouterr().err
    assert "lines hold no nanoseconds, column 'x'" in told
    assert "with_columns(x=col('x').cast(" in told


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0, float("nan")]),
        pa.array([None, [1.0, float("inf")]]),
        pa.array([{"x": 1.0}, {"x": float("-inf")}]),
    ],
)
def test_a_folder_of_lines_refuses_numbers_that_are_not_finite_as_a_file_does(column, tmp_path):
    rows = pa.table({"x": column, "at": [1, 2]})
    plan = ab.source("rows", rows.schema, start="at", disorder=1).shift(1)
    with pytest.raises(UnwritableError, match="JSON has no type for"):
        FolderOutput(tmp_path / "out", "jsonl").write(ab.run(plan, {"rows": rows}), plan)
    finite = pa.table({"x": column.slice(0, 1), "at": [1]})
    assert FolderOutput(tmp_path / "all", "jsonl").write(ab.run(plan, {"rows": finite}), plan) > 0
