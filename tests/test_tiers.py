"""What needs Spark is where its session is, whatever the files say; a suite over its budgets has failed."""

import os
import subprocess
import sys

import pytest
from tiers import ROOT, SPARK, TIERS, Tiers, tier_of


def test_every_test_that_takes_the_session_is_of_its_tier(request):
    taking = {item.path for item in request.session.items if "spark" in getattr(item, "fixturenames", ())}
    files = [str(path.relative_to(request.config.rootpath)) for path in taking]
    assert [file for file in files if tier_of(file) is not SPARK] == []


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("tests/engines/spark/test_plans.py", "Spark"),
        ("docs/spark.md", "Spark"),
        ("tests/engines/spark/test_killed_plans.py", "survival"),
        ("tests/cli/test_run_command.py", "commands"),
        ("tests/engines/spark/test_spark_laws.py", "engines"),
        ("docs/operators/union.md", "docs"),
        ("tests/model/test_batch.py", "model"),
        ("tests/of/no/tier.py", "model"),
    ],
)
def test_a_file_is_of_one_tier(file, name):
    assert tier_of(file).name == name


def test_a_tier_over_its_budget_says_so(pytestconfig):
    tiers = Tiers(pytestconfig)
    tiers.seconds.update({"laws": 1.0, "kernels": 10_000.0})
    laws, kernels = (next(tier for tier in TIERS if tier.name == name) for name in ("laws", "kernels"))
    assert tiers.lines() == [
        f"laws              1 of{laws.budget:>6}",
        f"kernels       10000 of{kernels.budget:>6}  over its budget",
        f"all           10001 of{laws.budget + kernels.budget:>6}  over its budget",
    ]


def test_the_page_has_tiers_and_the_slowest_tests_and_says_how_busy_the_machine_was(pytestconfig):
    tiers = Tiers(pytestconfig)
    tiers.seconds.update({"laws": 10_000.0})
    tiers.tests.update({"tests/laws/test_a.py::test_a": 9_999.0, "tests/laws/test_a.py::test_b": 1.0})
    page = tiers.page()
    assert "2 tests in 0.0 minutes on" in page
    assert "with a load of" in page
    assert "    laws          10000 of" in page
    assert page.index("| 9999.0 | `tests/laws/test_a.py::test_a` |") < page.index("| 1.0 |")


def test_the_budgets_are_a_quarter_of_an_hour_on_two_cores():
    assert sum(tier.budget for tier in TIERS) <= 2 * 15 * 60


SUITE = """
import tiers

def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true")
    parser.addoption("--quick", action="store_true")
    parser.addoption("--durations-to")

def pytest_configure(config):
    tiers.TIERS = (tiers.Tier("model", {budget}, ("",)),)
    config.pluginmanager.register(tiers.Tiers(config), "tiers")
"""


@pytest.fixture
def suite(tmp_path):
    """A suite of one test with a budget; how it ends, and its last line."""
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_one.py").write_text("def test_one():\n    pass\n")

    def run(budget: int, *words: str) -> tuple[int, str]:
        (tmp_path / "conftest.py").write_text(SUITE.format(budget=budget))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", *words],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()[-1]

    return run


@pytest.mark.parametrize("words", [[], ["-n", "1"]], ids=["here", "on workers"])
def test_a_whole_suite_over_its_budget_fails_and_its_last_line_says_where(suite, words):
    status, last = suite(-1, *words)
    assert status == 1
    assert last == (
        "tier model took 0 seconds of workers, and its budget is -1: "
        "mark its slowest tests slow or raise the budget, in tests/tiers.py"
    )


def test_a_whole_suite_within_its_budget_passes(suite):
    status, last = suite(9)
    assert status == 0
    assert last.startswith("1 passed")


def test_a_suite_runs_without_the_plugin_of_workers(suite):
    status, last = suite(9, "-p", "no:xdist")
    assert (status, last[:8]) == (0, "1 passed")


@pytest.mark.parametrize(
    "words",
    [["tests/test_one.py"], ["-k", "one"], ["--slow"], ["--quick"], ["--hypothesis-profile=default"]],
    ids=" ".join,
)
def test_a_part_of_the_suite_or_more_than_it_has_no_budget(suite, words):
    status, last = suite(-1, *words)
    assert status == 0
    assert last.startswith("1 passed")
