"""A quick run takes what starts nothing, and few cases of each law."""

import subprocess
import sys
from pathlib import Path

import pytest
import quick
from tiers import ROOT, SPARK, tier_of


@pytest.mark.parametrize(
    ("file", "taken"),
    [
        ("tests/model/test_batch.py", True),
        ("tests/laws/test_controls.py", True),
        ("tests/jobs/test_plan_jobs.py", True),
        ("tests/engines/test_job.py", True),
        ("tests/engines/spark/test_spark_laws.py", True),
        ("tests/engines/spark/test_plans.py", False),
        ("tests/engines/test_live.py", False),
        ("tests/laws/test_checked_bounds.py", False),
        ("tests/laws/test_campaign.py", False),
        ("tests/connectors/kafka/test_kafka_queries.py", False),
        ("tests/cli/test_run_command.py", False),
        ("tests/survival/test_kills.py", False),
        ("docs/spark.md", False),
        ("tests/engines/spark/golden/plan.json", False),
    ],
)
def test_a_file_is_of_a_quick_run_where_it_starts_nothing(file, taken):
    assert quick.is_quick(ROOT / file) == taken


def test_a_quick_run_has_an_eighth_of_the_cases_and_one_at_least(monkeypatch):
    monkeypatch.setattr(quick, "share", 1)
    assert [quick.cases(count) for count in (1, 8, 150)] == [1, 8, 150]
    monkeypatch.setattr(quick, "share", quick.LESS)
    assert [quick.cases(count) for count in (1, 8, 150)] == [1, 1, 18]


def collected(*words: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_few_are_collected_and_none_of_files_that_are_left_out():
    names = collected("--quick", "tests/rows", "tests/survival")
    files = {Path(name.split("::")[0]) for name in names}
    assert {file.parts[1] for file in files} == {"rows"}
    assert [file for file in files if tier_of(str(file)) is SPARK] == []
    seeds = [name for name in names if "test_row_keys.py" in name and name.endswith("]")]
    assert 0 < len(seeds) < 10


def test_a_file_that_is_named_is_run_whatever_it_needs():
    file = "tests/test_errors.py"
    assert not quick.is_quick(ROOT / file)
    assert {name.split("::")[0] for name in collected("--quick", file)} == {file}
