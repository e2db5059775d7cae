"""Tiers of the suite: what runs on which worker, what begins first, and seconds beside budgets.

What needs a session of Spark is one unit of work, so that one JVM is started and warmed for all of it; every
other file is a unit of its own. Units are begun in the order of their tiers: long ones first, and many short
ones at the end, so that no worker waits long for another.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
_TEST = re.compile(r"^ *def test_\w+\([^)]*\bspark\b", re.MULTILINE)
_FIXTURE = re.compile(r"@pytest\.fixture.*\n *def \w+\([^)]*\bspark\b")
_PAGE = re.compile(r"^>>> spark = ab\.session\(", re.MULTILINE)


@dataclass(frozen=True)
class Tier:
    """Files by how their paths begin, and how many seconds of a worker they may take on two cores."""

    name: str
    budget: int
    places: tuple[str, ...] = ()


LOADED = 1.5
"""A run fails where a tier takes this many times its budget: less is what other work on the machine costs."""
SPARK = Tier("Spark", 590)
TIERS = (
    SPARK,
    Tier("survival", 200, ("tests/survival/", "tests/engines/spark/test_killed_plans.py")),
    Tier("commands", 155, ("tests/cli/", "tests/jobs/")),
    Tier("laws", 250, ("tests/laws/", "tests/oracle/", "tests/progress/")),
    Tier("engines", 210, ("tests/engines/",)),
    Tier("kernels", 145, ("tests/kernels/", "tests/benchmarks/")),
    Tier("connectors", 100, ("tests/connectors/",)),
    Tier("docs", 20, ("docs/", "README.md", "tests/docs/", "tests/examples/")),
    Tier("model", 130, ("tests/",)),
)


@cache
def tier_of(file: str) -> Tier:
    """The tier of a file, by its path from the root of the project."""
    path = ROOT / file
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if _TEST.search(text) or _FIXTURE.search(text) or _PAGE.search(text):
        return SPARK
    return next((tier for tier in TIERS if file.startswith(tier.places or ("/",))), TIERS[-1])


def _file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


class InTiers(LoadScopeScheduling):
    """Units of work for workers: all that needs a session of Spark, and each other file."""

    def _split_scope(self, nodeid: str) -> str:
        file = _file(nodeid)
        return SPARK.name if tier_of(file) is SPARK else file


class Tiers:
    """State: the seconds of each tier and of each test, as workers report them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self.began = time.monotonic()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: TIERS.index(tier_of(_file(item.nodeid))))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log):
        return InTiers(config, log) if config.getoption("dist") == "loadscope" else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """A whole suite that takes far longer than a budget has failed, and its last lines say where."""
        yield
        if not self.is_whole or session.exitstatus != pytest.ExitCode.OK:
            return
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        for line in self.over():
            reporter.write_line(line, red=True)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def is_whole(self) -> bool:
        """The run has the tests that it has without options, so its seconds can be compared with budgets."""
        if hasattr(self.config, "workerinput"):
            return False
        chosen = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "slow", "quick")
        options = [self.config.option.__dict__.get(name) for name in (*chosen, "hypothesis_profile")]
        return self.config.args_source is pytest.Config.ArgsSource.TESTPATHS and not any(options)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[tier_of(_file(report.nodeid)).name] += report.duration
        self.tests[report.nodeid] += report.duration

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if not self.seconds:
            return
        terminalreporter.section("seconds of each tier, and its budget")
        for line in self.lines():
            terminalreporter.write_line(line)
        if path := self.config.getoption("--durations-to"):
            Path(path).write_text(self.page(), encoding="utf-8")

    def lines(self) -> list[str]:
        """A line for each tier that ran, and one for all."""
        ran = [tier for tier in TIERS if tier.name in self.seconds]
        rows = [(tier.name, self.seconds[tier.name], tier.budget) for tier in ran]
        rows.append(("all", sum(self.seconds.values()), sum(tier.budget for tier in ran)))
        return [
            f"{name:<12}{took:>7.0f} of{budget:>6}{'  over its budget' if took > budget else ''}"
            for name, took, budget in rows
        ]

    def over(self) -> list[str]:
        """A line for each tier that took longer than load explains."""
        return [
            f"tier {tier.name} took {self.seconds[tier.name]:.0f} seconds of workers, and its budget is "
            f"{tier.budget}: mark its slowest tests slow or raise the budget, in tests/tiers.py"
            for tier in TIERS
            if self.seconds[tier.name] > LOADED * tier.budget
        ]

    def page(self) -> str:
        """The seconds of tiers and of the slowest tests, as a page of the design notes."""
        tiers = "\n".join(f"    {line}" for line in self.lines())
        slow = "\n".join(f"| {took:.1f} | `{name}` |" for name, took in self.tests.most_common(40))
        return PAGE.format(
            count=f"{len(self.tests):,}",
            minutes=(time.monotonic() - self.began) / 60,
            cores=os.cpu_count(),
            load=os.getloadavg()[2],
            tiers=tiers,
            slow=slow,
        )


PAGE = """# Where the minutes of the tests go

`./run test --durations-to docs/design/20261118-durations.md` writes this page; tiers and budgets are in
`tests/tiers.py`, and a run of the whole suite in which a tier takes half again its budget fails.

{count} tests in {minutes:.1f} minutes on {cores} cores, with a load of {load:.1f} in the last quarter of an
hour; the tests alone are a load of about 2, and more than that makes them longer. Seconds are those of a
worker, of which there are two:

{tiers}

The slowest, with what is set up for them and taken down after them:

| seconds | |
|---|---|
{slow}
"""
