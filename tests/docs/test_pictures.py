"""The pictures are those that the programs beside them draw, and no words leave their box."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


@pytest.fixture
def draw(monkeypatch):
    monkeypatch.syspath_prepend(PICTURES)
    yield import_module("draw")
    for name in ("draw", "architecture"):
        sys.modules.pop(name)


def test_the_pictures_of_merge_are_what_a_merge_answers_now(draw):
    for name, (complete, recording) in draw.PICTURES.items():
        assert (PICTURES / f"{name}.svg").read_text() == draw.drawn(recording, complete=complete)


def test_the_architecture_is_as_drawn(draw):
    assert (PICTURES / "architecture.svg").read_text() == draw.architecture.drawn()


def test_a_plan_draws_itself_as_it_is_shown(draw):
    assert (PICTURES / "plan.svg").read_text() == draw.plan().picture()


def test_the_files_that_the_architecture_names_are_there(draw):
    source = PICTURES.parents[1] / "src" / "anabranch"
    for box in draw.architecture.BOXES:
        for file in filter(None, box.file.split(", ")):
            path = PICTURES.parents[1] / file if file.startswith("tests/") else source / file
            assert path.exists() or "<" in file, file
