"""A job that keeps a table."""

import inspect
import subprocess
import sys

import pytest
from deltalake import DeltaTable

from anabranch import spark as ab
from anabranch.cli.main import main
from anabranch.jobs.ends import TableSinkSection


@pytest.mark.slow
def test_a_job_keeps_the_current_value_of_each_key(tmp_path):
    assert main(["init", str(tmp_path / "sample")]) == 0
    job = tmp_path / "sample" / "job.toml"
    text = job.read_text()
    before, _, after = text.partition("[sink]")
    _, _, spark = after.partition("[spark]")
    table = '[sink.table]\npath = "lake"\nkind = "current"\nkey = "sensor"\n'
    job.write_text(f"{before}{table}[spark]{spark}")
    command = [sys.executable, "-m", "anabranch.cli.main", "run", str(job), "--once"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert f"the result is in table {tmp_path / 'sample' / 'lake'}" in done.stderr
    rows = DeltaTable(tmp_path / "sample" / "lake").to_pyarrow_table().to_pylist()
    assert len(rows) > 1
    assert len({row["sensor"] for row in rows}) == len(rows)


def test_the_keys_of_a_table_are_the_arguments_of_the_function_they_are_for():
    given = inspect.signature(ab.write_table).parameters.values()
    of_job = {"checkpoint", "quarantine", "available_now", "trigger", "name"}
    keywords = {p.name for p in given if p.kind is p.KEYWORD_ONLY}
    assert {*TableSinkSection.__struct_fields__} == keywords - of_job | {"path"}
