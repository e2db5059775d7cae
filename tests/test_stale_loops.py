"""A compiled loop is never older than the loops and constants that it uses."""

import importlib
import sys
from pathlib import Path

import pytest
from stale_loops import forget_stale

SOURCE = Path(__file__).parents[1] / "src"

CALLER = """
from anabranch.model.compiled import compiled
from called_loop import one
from constants import TWO

@compiled
def both():
    return one() + TWO
"""
CALLED = """
from anabranch.model.compiled import inner

@inner
def one():
    return {}
"""
BESIDE = """
from anabranch.model.compiled import compiled
from constants import TWO

@compiled
def nothing():
    return 0

def two():
    return TWO
"""


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Files of modules, and what the first of them gives after each change."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ("caller_loop", "called_loop", "constants", "beside")

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.py").write_text(text)

    def result():
        for name in names:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        importlib.import_module("beside").nothing()
        return importlib.import_module("caller_loop").both()

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # of the same second and length, it would be taken
    write(caller_loop=CALLER, called_loop=CALLED.format(1), constants="TWO = 2", beside=BESIDE)
    yield tmp_path, write, result
    for name in names:
        sys.modules.pop(name, None)


def test_a_loop_that_calls_a_changed_loop_is_compiled_anew(modules):
    folder, write, result = modules
    forget_stale(folder)
    assert result() == 3
    write(called_loop=CALLED.format(5))
    assert result() == 3, "Numba sees it by itself: nothing needs to be deleted"
    assert forget_stale(folder) == ["caller_loop"]
    assert result() == 7


def test_a_loop_with_a_changed_constant_is_compiled_anew(modules):
    folder, write, result = modules
    forget_stale(folder)
    assert result() == 3
    write(constants="TWO = 9")
    assert forget_stale(folder) == ["caller_loop"]
    assert result() == 10


def test_where_nothing_changed_all_is_kept(modules):
    folder, write, result = modules
    forget_stale(folder)
    result()
    kept = set(folder.rglob("*.nb[ic]"))
    write(unused="TWO = 2")
    assert forget_stale(folder) == []
    assert forget_stale(folder) == []
    assert set(folder.rglob("*.nb[ic]")) == kept
    assert len(kept) > 0


def test_what_was_cached_before_there_was_a_stamp_is_not_believed(modules):
    folder, write, result = modules
    result()
    write(called_loop=CALLED.format(5))
    assert "caller_loop" in forget_stale(folder)
    assert result() == 7


def test_what_a_loop_is_made_of_is_found_in_our_own_files(tmp_path):
    package = tmp_path / "anabranch"
    for path in [*(SOURCE / "anabranch").rglob("*.py")]:
        copy = tmp_path / path.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    forget_stale(tmp_path)
    with (package / "kernels/store/heap.py").open("a") as file:
        file.write("\nCHANGED = True\n")
    stale = forget_stale(tmp_path)
    assert "anabranch.kernels.merge.r3" in stale
    assert "anabranch.model.murmur" not in stale
