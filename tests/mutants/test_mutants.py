"""Faults are put where they matter, one at a time, and what a fault concerns is found out."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from mutants.campaign import COMPILED, ROOT, drawn, sources, summary
from mutants.faults import faults, faulty
from mutants.footprints import Footprint, traced
from mutants.trials import Verdict, left_out

SOURCE = '''
"""A module."""

LIMIT = 5


def least(values: list[int], limit: int = 3) -> int:
    """The least of 7 values."""
    assert len(values) > 0, "there are none"
    if limit < 0:
        error = ValueError(f"a limit is at least 0, this is {limit + 1}")
        error.add_note("Take another.")
        raise error
    found = min(values[0], limit)
    for value in values:
        if value < found and value != LIMIT:
            found = value
    return found


class Heap:
    def push(self, key: int, value: int) -> None:
        self.size += 1
        self.move(key, value)

    def __repr__(self) -> str:
        return str(self.size + 1)
'''


def changes() -> set[tuple[str, str]]:
    return {(fault.before, fault.after) for fault in faults(SOURCE, "least.py")}


def test_slips_are_made_of_comparisons_numbers_names_and_statements():
    assert changes() == {
        ("if limit < 0", "if True"),
        ("if limit < 0", "if False"),
        ("limit < 0", "limit <= 0"),
        ("limit < 0", "limit >= 0"),
        ("limit < 0", "limit < 1"),
        ("limit < 0", "limit < -1"),
        ("min(values[0], limit)", "max(values[0], limit)"),
        ("min(values[0], limit)", "min(values[1], limit)"),
        ("min(values[0], limit)", "min(values[-1], limit)"),
        ("if value < found and value != LIMIT", "if True"),
        ("if value < found and value != LIMIT", "if False"),
        ("value < found and value != LIMIT", "value < found or value != LIMIT"),
        ("value < found and value != LIMIT", "value <= found and value != LIMIT"),
        ("value < found and value != LIMIT", "value >= found and value != LIMIT"),
        ("value < found and value != LIMIT", "value < found and value == LIMIT"),
        ("self.size += 1", "self.size -= 1"),
        ("self.size += 1", "pass"),
        ("1", "2"),
        ("1", "0"),
        ("self.move(key, value)", "pass"),
        ("self.move(key, value)", "return"),
        ("self.move(key, value)", "self.move(value, key)"),
    }


def test_texts_annotations_defaults_assertions_and_what_is_shown_stay():
    words = ("ValueError", "add_note", "there are none", "Take another", "The least of", "LIMIT = 5")
    for fault in faults(SOURCE, "least.py"):
        tree = ast.unparse(faulty(SOURCE, fault))
        assert all(word in tree for word in words)
        assert "limit: int=3" in tree
        assert "str(self.size + 1)" in tree
        assert "this is {limit + 1}" in tree


def test_a_tree_has_one_fault_and_its_functions_stay_on_their_lines():
    usual = ast.parse(SOURCE)
    for fault in faults(SOURCE, "least.py"):
        tree = faulty(SOURCE, fault)
        assert ast.unparse(tree) != ast.unparse(usual)
        differing = [
            (one, other)
            for one, other in zip(tree.body, usual.body, strict=True)
            if ast.dump(one) != ast.dump(other)
        ]
        assert len(differing) == 1
        assert tree.body[2].lineno == usual.body[2].lineno
        assert fault.lines[0] <= fault.line <= fault.lines[1]
        compile(tree, "least.py", "exec")


def test_a_campaign_is_drawn_from_its_seed_alone():
    first, again, other = (drawn(ROOT, 20, seed, "model/dialects") for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert all("model/dialects" in fault.path for fault in first)


def test_what_only_talks_to_spark_or_to_numba_has_no_faults():
    names = {path.relative_to(ROOT / "src" / "anabranch").as_posix() for path in sources(ROOT)}
    assert {
        "model/batch.py",
        "kernels/merge/r4.py",
        "engines/embedded/inbox.py",
        "engines/spark/shard.py",
    } <= names
    assert names.isdisjoint(
        {"model/compiled.py", "engines/spark/session/session.py", "oracle/merge.py", "cli/main.py"}
    )


def test_a_footprint_is_the_lines_that_were_run(tmp_path):
    path = tmp_path / "least.py"
    path.write_text(SOURCE)
    names: dict[str, object] = {}
    exec(compile(SOURCE, str(path), "exec"), names)
    with traced(str(tmp_path)) as tracer:
        assert names["least"]([4, 2]) == 2  # type: ignore[operator]
    lines = SOURCE.splitlines()
    ran = {lines[n - 1].strip() for n in tracer.lines[str(path)]}
    assert {"found = value", "return found"} <= ran
    assert not {"raise error", "self.size += 1"} & ran


TRIALS = """
import sys
from pathlib import Path

import pytest
from mutants.faults import faults
from mutants.trials import Trials

root = Path(sys.argv[1])
sys.path.insert(0, str(root / "src"))
chosen = faults((root / "src/least.py").read_text(), "src/least.py")
told = []
trials = Trials(root, chosen, root / "footprints", 5.0, 2, told.append, grace=0.1)
pytest.main([str(root / "test_least.py"), "-s", "-p", "no:xdist", "-p", "no:terminal"], plugins=[trials])
for one in told:
    print(one.result, one.fault.split("  ", 1)[1], sep="|")
"""


def test_a_fault_is_caught_by_a_test_that_runs_its_line_and_only_by_such(tmp_path):
    source = """
def least(values):
    found = values[0]
    for value in values:
        if value < found:
            found = value
    return found

def ends(number):
    while number > 0:
        number -= 1

def nobody(number):
    return number + 1
"""
    tests = """
from least import ends, least

def test_the_least_is_found():
    assert least([3, 1, 2]) == 1

def test_it_ends():
    ends(3)
"""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "least.py").write_text(source)
    (tmp_path / "test_least.py").write_text(tests)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-c", TRIALS, str(tmp_path)]
    run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    told = dict(reversed(line.split("|")) for line in run.stdout.splitlines() if "|" in line)
    assert told["value < found  →  value >= found"] == "caught"
    assert told["value < found  →  value <= found"] == "survived", "equal values are one"
    assert told["number -= 1  →  number += 1"] == "timed out"
    assert told["number + 1  →  number - 1"] == "unreached"


SESSION = """
import anabranch as ab
job = ab.source("s", {"k": "int64"}, properties="insert only").session(3).group_by("k").agg(ab.count()).open()
rows = [ab.Insert({"k": n % 40}, n, n + 1) for n in range(80)]
print(len(job.push("s", [*rows, ab.Stable(ab.FOREVER)])))
"""


def test_loops_that_read_ahead_run_as_they_are_written():
    before = f"from mutants.trials import uncompiled; uncompiled('anabranch', {COMPILED})"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    command = [sys.executable, "-c", f"{before}\n{SESSION}"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("81\n", 0), run.stderr


def test_tests_that_no_fault_is_tried_on_are_counted_by_why(tmp_path):
    why = ["", "E  x\na.py:3: TypeError", "E  y\na.py:3: TypeError"]
    known = [Footprint(f"{n}", 1.0, False, {}, one) for n, one in enumerate(why)]
    known += [Footprint("9", 0.0, False, {}, "the process ended"), Footprint("9", 1.0, True, {})]
    (tmp_path / "footprints").write_bytes(b"\n".join(map(msgspec.json.encode, known)))
    assert left_out(tmp_path / "footprints") == [
        "2 tests left out: a.py:3: TypeError",
        "1 tests left out: too slow",
    ]


@pytest.mark.parametrize("result", ["survived", "unreached"])
def test_what_no_test_catches_is_told_with_its_line(result):
    verdicts = [
        Verdict("a.py:3  x < y  →  x <= y", "a.py", 1, 3, result, 4, 1.0),
        Verdict("a.py:9  x + y  →  x - y", "a.py", 2, 9, "caught", 2, 3.0, "tests/test_a.py::test_sum"),
        Verdict("a.py:9  while x  →  while True", "a.py", 3, 9, "timed out", 2, 2.0),
        Verdict("b.py:1  1  →  2", "b.py", 1, 1, "caught", 1, 2.0),
    ]
    told = summary(verdicts)
    assert "a.py:3  x < y  →  x <= y" in told
    assert "x + y" not in told
    assert "score 75.0%, 2.0 s of CPU for each" in told


def test_sources_are_those_of_this_tree():
    assert Path(__file__).is_relative_to(ROOT)
    assert all(path.is_relative_to(ROOT) for path in sources(ROOT))
