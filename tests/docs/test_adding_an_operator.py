"""The page about adding an operator, followed: its blocks are put where it says, and obey the laws."""

import doctest
import re
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import laws.operators
import pytest
from laws.operators import OPERATORS
from laws.plans import check

import anabranch as ab
from anabranch import Fact
from anabranch.plan import stream
from anabranch.plan.node import PlanError

PAGE = (Path(__file__).parents[2] / "docs" / "adding-an-operator.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^`([\w/.]+)`\n\n(`{3,4})\w+\n(.*?)^\2$", re.MULTILINE | re.DOTALL)
BLOCKS = {name: text for name, _, text in BLOCK.findall(PAGE)}
FILES = (
    "src/anabranch/oracle/once.py",
    "src/anabranch/kernels/once.py",
    "src/anabranch/plan/once.py",
    "src/anabranch/plan/stream.py",
    "tests/laws/operators.py",
    "docs/operators/once.md",
)


def check_all(seeds, operators):
    for seed in seeds:
        check(seed, operators)


def module(monkeypatch, file):
    name = file.removeprefix("src/").removesuffix(".py").replace("/", ".")
    made = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, made)
    exec(compile(BLOCKS[file], file, "exec"), vars(made))
    return made


@pytest.fixture
def once(monkeypatch):
    """The row of the operator, once its files are where the page has them."""
    oracle, kernel, plan = (module(monkeypatch, file) for file in FILES[:3])
    method = vars(stream) | {"Once": plan.Once}
    exec(dedent(BLOCKS["src/anabranch/plan/stream.py"]), method)
    monkeypatch.setattr(ab.Stream, "once", method["once"], raising=False)
    row = vars(laws.operators) | {"once": oracle.once}
    exec(BLOCKS["tests/laws/operators.py"], row)
    drawn = re.search(r"`(Operator\(.*?\))`", PAGE)[1]
    return eval(drawn, row), kernel


def test_it_is_five_files_and_a_method_and_nothing_of_the_engines():
    assert tuple(BLOCKS) == FILES
    assert all(f"`{file}`" in PAGE.split("## 1.")[0] for file in FILES)


def test_it_obeys_every_law_of_plans_alone_and_among_others(once):
    row, _ = once
    check_all(range(60), [row])
    check_all(range(120), (*OPERATORS, row, row, row))


def test_the_laws_would_notice_if_it_forgot_too_early(once, monkeypatch):
    row, kernel = once
    monkeypatch.setattr(kernel.Once, "_passed", lambda self, end: end <= self.frontier)
    with pytest.raises(AssertionError):
        check_all(range(400), [row])


def test_what_is_written_of_it_is_run(once):
    _, kernel = once
    page = doctest.DocTestParser().get_doctest(
        BLOCKS["docs/operators/once.md"], {}, "once.md", "docs/operators/once.md", 0
    )
    for test in (*doctest.DocTestFinder().find(kernel), page):
        assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


def test_what_is_known_of_it_is_so(once):
    assert once
    assert Fact.KEYED in ab.source("s", {"v": "int64"}).once().properties
    assert ab.merge(*(ab.source(name, {"v": "int64"}).once() for name in "ab")).node.mark == "R3"
    quiet = ab.source("quiet", {"v": "int64", "at": "int64"}, start="at")
    with pytest.raises(PlanError, match="keeps what the stable has not passed"):
        quiet.once()


def test_its_page_has_what_the_others_have():
    for what in ("promises", "keeps", "refuses, in a plan", "refuses, row by row", "is known"):
        assert f"| {what} |" in BLOCKS["docs/operators/once.md"]
