"""What runs where neither PySpark nor what only Spark needs is installed, and what the rest answers."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow.parquet import read_table

ROOT = Path(__file__).resolve().parents[1]
HIDES = """
import importlib.metadata, sys

HIDDEN = ("pyspark", "pandas", "protobuf")
version = importlib.metadata.version

def version_of(name):
    if name in HIDDEN:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)

importlib.metadata.version = version_of

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in ("pyspark", "pandas", "google.protobuf"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
WAY_OUT = "Spark needs the package pyspark, and it is not installed: pip install 'anabranch[spark]'"
PLAN = """
[sources.readings]
path = "feeds"
columns = { room = "string", level = "float64", at = "int64", replica = "string" }
start = "at"
duration = 5
disorder = 10
replica = "replica"
lossy = true

[plan]
steps = ["merge", { filter = "level > 3" }]
"""
MERGE = """
[source]
path = "feeds"
schema = "room string, level double, at long"

[merge]
start = "at"
duration = 5
disorder = 10
replica = "replica"
lossy = true

[sink]
path = "merged"
"""
CHANGES = """
[source]
path = "logs"
schema = "id bigint, v double"
values = "debezium"

[changes]
key = "id"
time = "time"
disorder = "1 second"
"""
ENVELOPE = '{"before": null, "after": {"id": 1, "v": 2.5}, "op": "c", "ts_ms": 1772359200000}\n'
TABLES = """
[source.delta]
tables = "lake"

[changes]
key = "id"
time = "time"
disorder = "1 second"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Feeds of two replicas, a log of changes, a table, jobs over them, and Python without Spark."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDES)
    for replica, level in (("east", 4.5), ("west", 4.5)):
        feed = tmp_path / "feeds" / replica
        feed.mkdir(parents=True)
        (feed / "1.jsonl").write_text(f'{{"room": "A", "level": {level}, "at": 3}}\n')
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "1.jsonl").write_text(ENVELOPE)
    rows = pa.table({"id": [1, 2], "left": [5, 8]})
    write_deltalake(tmp_path / "lake", rows, configuration={"delta.enableChangeDataFeed": "true"})
    for name, text in {"plan": PLAN, "merge": MERGE, "changes": CHANGES, "tables": TABLES}.items():
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "imports.py").write_text("import anabranch as ab\nfrom pyspark.sql import functions\n")
    return tmp_path


def python(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(place / "hidden"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def anabranch(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(place, "-m", "anabranch.cli.main", *arguments)


def test_the_examples_of_the_readme_need_no_spark(place):
    copytree(ROOT / "examples" / "gateways", place / "examples" / "gateways")
    done = python(place, "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", str(ROOT / "README.md"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_command_that_the_readme_begins_with_merges_its_files(place):
    copytree(ROOT / "examples" / "gateways", place / "examples" / "gateways")
    text = (ROOT / "README.md").read_text().replace("\\\n", "")
    command = re.search(r"^    anabranch (merge .*)$", text, re.MULTILINE)
    assert command is not None
    done = anabranch(place, *shlex.split(command[1]))
    assert done.returncode == 0, done.stderr
    assert read_table(place / "merged.parquet", columns=["level"]).column(0).drop_null().length() == 5


def test_a_plan_runs_in_this_process_without_spark(place):
    done = anabranch(place, "run", "plan.toml", "--engine", "embedded")
    assert done.returncode == 0, done.stderr
    assert '"room":"A"' in done.stdout


def test_the_job_that_init_writes_runs_without_spark(place):
    done = anabranch(place, "init", "x", "--json")
    following = [command.partition("job.toml")[2].split() for command in json.loads(done.stdout)["next"]]
    assert ["--engine", "embedded"] in following
    assert all("embedded" in words or not words for words in following)
    for arguments in (("explain", "x/job.toml"), ("run", "x/job.toml", "--engine", "embedded")):
        done = anabranch(place, *arguments)
        assert done.returncode == 0, done.stderr
    (merged,) = (place / "x" / "merged").glob("*-0000.jsonl")
    assert len(merged.read_text().splitlines()) == 36


@pytest.mark.parametrize(
    ("name", "row"), [("merge", '"room":"A"'), ("changes", '"id":1'), ("tables", '"id":1')]
)
def test_a_merge_of_rows_or_of_changes_runs_in_this_process_without_spark(place, name, row):
    (place / f"{name}.toml").write_text((place / f"{name}.toml").read_text().partition("[sink]")[0])
    done = anabranch(place, "run", f"{name}.toml", "--engine", "embedded")
    assert done.returncode == 0, done.stderr
    assert row in done.stdout


def test_a_merge_of_rows_is_explained_without_spark(place):
    done = anabranch(place, "explain", "merge.toml")
    assert done.returncode == 0, done.stderr


def test_files_of_rows_are_merged_by_a_command_without_spark(place):
    for name in ("north", "south"):
        (place / f"{name}.csv").write_text("room,at\nA,2026-11-19 06:00:00\nB,2026-11-19 06:01:00\n")
    bounds = ("--start", "at", "--duration", "5 minutes", "--disorder", "1 minute", "--lossy", "all")
    done = anabranch(place, "merge", "north.csv", "south.csv", *bounds, "-o", "merged.parquet")
    assert done.returncode == 0, done.stderr
    assert (place / "merged.parquet").is_file()


def test_help_needs_no_spark(place):
    done = anabranch(place, "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_doctor_who_is_not_asked_for_spark_finds_no_trouble_in_its_absence(place):
    done = anabranch(place, "doctor")
    words = ("pyspark", "pandas", "java", "workers")
    lines = [line for line in done.stdout.splitlines() if line[9:].startswith(words)]
    assert [line.split()[:2] for line in lines] == [["note", "pyspark"], ["note", "pandas"]]
    assert "pip install 'anabranch[spark]'" in lines[0]


def test_a_doctor_who_is_asked_for_spark_names_what_is_missing(place):
    done = anabranch(place, "doctor", "merge.toml")
    assert done.returncode == 1
    assert "trouble  pyspark" in done.stdout
    assert "pip install 'anabranch[spark]'" in done.stdout
    assert "No module named" not in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo",),
        ("run", "plan.toml"),
        ("run", "merge.toml"),
        ("run", "merge.toml", "--check"),
        ("run", "imports.py"),
    ],
)
def test_a_command_that_needs_spark_says_so_in_one_line_with_the_way_out(place, arguments):
    done = anabranch(place, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    first, *rest = done.stderr.splitlines()
    assert first.endswith(WAY_OUT)
    assert all(line.startswith("  In ") for line in rest)
    assert not (place / "merged").exists()
    assert not (place / "anabranch-demo").exists()


def test_spark_in_python_says_which_package_is_missing(place):
    for program in ("import anabranch as ab; ab.spark.session", "from anabranch import spark"):
        done = python(place, "-c", program)
        assert done.stderr.splitlines()[-1] == f"ImportError: {WAY_OUT}"
