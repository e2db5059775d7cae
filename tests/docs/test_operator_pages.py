"""Every operator has a page, and the pages say what the code says."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from anabranch import Fact

PAGES = Path(__file__).parents[2] / "docs" / "operators"


def _made():
    spec = spec_from_file_location("make_operator_pages", PAGES / "make.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = _made()
INDEX = (PAGES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", make.operators())
def test_a_page_says_what_the_code_says(word):
    page = PAGES / f"{word}.md"
    assert page.exists(), f"the operator {word} has no page: write {page.name}, as docs/operators/sort.md is"
    assert page.read_text(encoding="utf-8") == make.page(word), "run python docs/operators/make.py"


@pytest.mark.parametrize("word", make.operators())
def test_a_page_tells_what_is_promised_kept_refused_and_known(word):
    page = (PAGES / f"{word}.md").read_text(encoding="utf-8")
    for what in ("promises", "keeps", "refuses, in a plan", "refuses, row by row", "is known"):
        assert f"| {what} |" in page
    assert ">>> " in page
    assert page.startswith(f"# {word}\n")


def test_all_that_makes_a_stream_is_on_a_page():
    told = {called.split(".")[1] for word in make.operators() for called in make.methods(word)}
    assert told == make.written()


def test_the_index_has_every_page_and_no_other():
    assert make.index() == INDEX, "run python docs/operators/make.py"
    linked = set(re.findall(r"^\| \[[^]]*\]\((\w+)\.md\)", INDEX, re.MULTILINE))
    assert linked == set(make.operators()) == {page.stem for page in PAGES.glob("*.md")} - {"README"}


def test_the_index_has_every_fact_as_the_code_has_it():
    for fact in Fact:
        assert f"| {fact} | {fact.value} |" in INDEX
