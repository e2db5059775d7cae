"""The example of a pipeline, run by Spark's own command: its tables are what happened, run by run."""

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest

PLAN = Path(__file__).with_name("plan_pipeline.py")
EXAMPLE = Path(__file__).parents[3] / "examples" / "pipeline"
LASTS = dt.timedelta(minutes=5)
KEEPS_TABLES = "spark.sql.catalogImplementation=hive"


def happened(numbers):
    """The readings that the sensors gave, by their numbers."""
    moments = {n: dt.datetime(2026, 3, 1, 10, n // 2, tzinfo=dt.UTC) for n in numbers}
    return Counter(("ab"[n % 2], 20 + n / 10, at, at + LASTS) for n, at in moments.items())


def heard_until(minute, numbers):
    """Sensors and when they were heard, of readings that can never change: they end before a time."""
    ends = dt.datetime(2026, 3, 1, 10, minute, tzinfo=dt.UTC)
    return Counter((sensor, start) for sensor, _, start, end in happened(numbers).elements() if end < ends)


def run(folder: Path) -> str:
    """The whole command, as one would type it in the folder of the pipeline; what it said."""
    metastore = f"jdbc:derby:;databaseName={folder}/metastore;create=true"
    command = [
        Path(sys.executable).with_name("spark-pipelines"),
        "run",
        "--conf",
        KEEPS_TABLES,
        "--conf",
        f"spark.hadoop.javax.jdo.option.ConnectionURL={metastore}",
    ]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout + done.stderr


def readings(folder: Path) -> Counter:
    """What the view of the pipeline shows."""
    rows = pq.read_table(folder / "spark-warehouse" / "readings", coerce_int96_timestamp_unit="us")
    return Counter(
        (row["sensor"], row["level"], *(row[name].replace(tzinfo=dt.UTC) for name in ("start", "end")))
        for row in rows.to_pylist()
    )


def final(folder: Path) -> Counter:
    """What the plan says is final: sensors and when they were heard."""
    rows = pq.read_table(folder / "spark-warehouse" / "heard", coerce_int96_timestamp_unit="us").to_pylist()
    assert {row["kind"] for row in rows} == {"insert"}, "shards are at frontiers of their own"
    return Counter((row["sensor"], row["start"].replace(tzinfo=dt.UTC)) for row in rows)


@pytest.fixture
def pipeline(tmp_path):
    """A copy of the example that keeps its state here, and a table beside it that is a plan of two levels."""
    folder = tmp_path / "pipeline"
    shutil.copytree(EXAMPLE, folder)
    shutil.copy(PLAN, folder / "transformations")
    spec = folder / "spark-pipeline.yml"
    lines = spec.read_text().splitlines()
    mine = [f"storage: file://{folder}/storage" if line.startswith("storage:") else line for line in lines]
    assert mine != lines
    spec.write_text("\n".join(mine))
    return folder


@pytest.mark.slow
def test_a_pipeline_of_a_merge_and_a_plan_shows_what_happened_and_goes_on_from_run_to_run(pipeline):
    assert "Run is COMPLETED" in run(pipeline)
    assert readings(pipeline) == happened(range(60))
    assert final(pipeline) == heard_until(19, range(60))
    more = [
        {"sensor": "ab"[n % 2], "level": 20 + n / 10, "at": f"2026-03-01T10:{n // 2:02}:00Z"}
        for n in range(58, 90)
    ]
    for name, part in (("east", more[:20]), ("west", more[8:])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (pipeline / "in" / f"replica={name}" / "2.json").write_text(lines)
    run(pipeline)
    assert readings(pipeline) == happened(range(90))
    assert final(pipeline) == heard_until(28, range(90))
