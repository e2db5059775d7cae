"""Commands over a few rows: which start without Numba and pandas, and that they answer the same."""

import subprocess
import sys
from pathlib import Path

import pytest
from quick import cases

from anabranch.cli.light_start import FEW_BYTES, are_small
from anabranch.cli.main import main

CASES = ("R0", "R1", "R2", "R3", "R4")
BLOCKS = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in ("numba", "llvmlite", "pandas"):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
sys.meta_path.insert(0, Blocked())
"""
AS_PYTHON = """
import sys
import numpy as np
from anabranch.model.compiled import LOOPS
np.seterr(over="ignore")
LOOPS.as_python = True
from anabranch.cli.main import main
for line in sys.stdin:
    main(line.split())
assert "numba" not in sys.modules
"""
WHILE_COMPILING = "anabranch: the first merge on a machine is compiled for it, once; a moment\n"
LONG_NAMES = "+ x{} [{}, 9223372036854775806)\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with two streams and two files of rows."""
    (tmp_path / "a.txt").write_text("+ a [3, 9)\n| 5\n")
    (tmp_path / "b.txt").write_text("+ a [3, 9)\n+ b [4, 8)\n| 9\n")
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("room,at\nA,2026-11-19 06:00:00\n")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("diff", "a.txt", "b.txt"),
        ("merge", "a.txt", "east=b.txt"),
        ("merge", "north.csv", "south.csv", "--start", "at", "--disorder", "1s", "--lossy", "all"),
        ("show", "a.txt"),
        ("check", "a.txt", "b.txt"),
        ("convert", "a.txt", "c.jsonl"),
    ],
)
def test_a_command_over_small_files_of_text_imports_neither_numba_nor_pandas(place, arguments):
    program = f"{BLOCKS}\nfrom anabranch.cli.main import main\nsys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=place, capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr


def test_loops_that_run_as_python_answer_what_compiled_loops_answer(tmp_path, capsys):
    lines = []
    for case in CASES:
        for seed in range(cases(8)):
            feed = tmp_path / f"{case}-{seed}.jsonl"
            made = ("--case", case, "--events", "12", "--replicas", "2", "--seed", str(seed))
            assert main(["generate", str(feed), *made]) == 0
            a, b = (str(feed.with_name(f"{feed.stem}-{number}.jsonl")) for number in (0, 1))
            lines += [f"merge {a} {b}", f"merge {a} {b} --case R4 --policy final", f"diff {a} {b}"]
            lines += [f"merge {a} {b} --lossy all", f"show {b}", f"check {a}"]
    many = tmp_path / "many.jsonl"
    assert main(["generate", str(many), "--case", "R4", "--events", "700", "--replicas", "2"]) == 0
    a, b = (str(many.with_name(f"many-{number}.jsonl")) for number in (0, 1))
    lines += [f"merge {a} {b}", f"merge {a} {b} --lossy all --policy every-change", f"diff {a} {b}"]
    far = tmp_path / "far.txt"
    names = ["x" * (7 * number) for number in range(1, 20)]
    far.write_text("".join(LONG_NAMES.format(name, number - 9) for number, name in enumerate(names)))
    lines += [f"show {far}", f"diff {far} {far}"]
    capsys.readouterr()
    for line in lines:
        main(line.split())
    compiled = capsys.readouterr()
    done = subprocess.run(
        [sys.executable, "-c", AS_PYTHON],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == compiled.out
    assert done.stderr == compiled.err.replace(WHILE_COMPILING, "")


def test_only_files_whose_size_bounds_their_rows_are_small(place):
    small = str(place / "a.txt")
    (place / "large.txt").write_text("x" * (FEW_BYTES + 1))
    (place / "half.csv").write_text("x" * FEW_BYTES)
    (place / "c.parquet").write_text("")
    assert are_small([small])
    assert are_small([f"east={small}", small])
    for other in ("large.txt", "half.csv", "c.parquet", "absent.txt", "."):
        assert not are_small([small, str(place / other)])
    assert not are_small(["-"])
