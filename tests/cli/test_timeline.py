"""Bars fit the screen they are drawn on, and say what they mean."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import BEGINNING, FOREVER, Event
from anabranch.cli.main import main
from anabranch.cli.timeline import Glyphs, timeline
from anabranch.model.clock import Clock

HOUR = 3_600_000_000
NOON = 493_044 * HOUR
lifetimes = st.tuples(st.integers(0, 9), st.integers(1, 9) | st.none())
frontiers = st.sampled_from([BEGINNING, FOREVER]) | st.integers(0, 20)


def event(start, lasts):
    end = FOREVER if lasts is None else NOON + (start + lasts) * HOUR
    return Event({"sensor": "hall", "level": start}, NOON + start * HOUR, end)


@given(st.lists(lifetimes, min_size=1, max_size=5), frontiers, st.integers(22, 120))
def test_no_line_is_wider_than_the_screen_and_the_stable_is_told(some, reached, width):
    frontier = reached if reached in (BEGINNING, FOREVER) else NOON + reached * HOUR
    drawn = timeline([event(*one) for one in some], frontier, width, Clock.MOMENTS)
    assert all(len(line) <= width for line in drawn)
    assert ("stable 20" in " ".join(" ".join(drawn).split())) == (BEGINNING < frontier < FOREVER)


def test_a_legend_says_what_each_character_means():
    *_, legend = timeline([event(0, 2), event(2, None)], NOON + 3 * HOUR, 100, Clock.MOMENTS)
    assert legend == "█ settled   ▒ may change   ▶ no end yet   ┊ stable"
    *_, legend = timeline([event(0, 4)], FOREVER, 100, Clock.MOMENTS)
    assert legend == "█ settled"


def test_a_screen_of_ascii_is_drawn_on_in_ascii():
    glyphs = Glyphs.of("ascii")
    drawn = timeline([event(0, 2), event(2, None)], NOON + 3 * HOUR, 60, Clock.MOMENTS, glyphs)
    assert "".join(drawn).isascii()
    assert drawn[-1] == "# settled   . may change   > no end yet   | stable"
    assert Glyphs.of("utf-8") == Glyphs()


def test_a_screen_that_is_too_narrow_has_no_bars():
    assert timeline([event(0, 4)], FOREVER, 15) == []


@pytest.fixture
def feed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f'+ {{"sensor": "hall", "level": {n}}} [2026-03-01T10:0{n}:00Z, inf)' for n in range(8)]
    (tmp_path / "feed.txt").write_text("\n".join([*lines, "| 2026-03-01T10:05:00Z"]))


@pytest.mark.usefixtures("feed")
def test_a_history_has_as_many_rows_as_asked_for(capsys):
    assert main(["show", "feed.txt", "--history", "--limit", "5"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 6
    assert rows[-1] == "… and 3 more (--limit 8 shows all)"


@pytest.mark.usefixtures("feed")
@pytest.mark.parametrize("width", [25, 60, 80, 120])
def test_lifetimes_are_whole_on_every_screen(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["show", "feed.txt"]) == 0
    out = capsys.readouterr().out
    for n in range(8):
        assert f"[2026-03-01 10:0{n}:00," in out


@pytest.mark.usefixtures("feed")
def test_a_terminal_of_ascii_gets_no_question_marks(monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="replace", write_through=True)
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["show", "feed.txt"]) == 0
    assert main(["show", "feed.txt", "--history", "--limit", "3"]) == 0
    assert b"?" not in screen.buffer.getvalue()
    assert b", inf)" in screen.buffer.getvalue()
