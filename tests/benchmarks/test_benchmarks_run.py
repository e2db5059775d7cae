"""Every benchmark that needs no JVM, no broker and no peer runs, at its smallest, and prints figures."""

import runpy
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

SMALLEST = {
    "csv_in": "--rows 2000 --rounds 1",
    "hops": "--sizes 6 --pushes 20",
    "joins": "--events 40000 --rounds 1",
    "nexmark": "--events 2000 --rounds 1",
    "plans": "--events 2000 --rounds 1 --pushes 10",
    "promises": "--replicas 10 --calls 5",
    "rows_in": "--rows 20000 --rounds 1 --pushes 10",
    "sessions": "--rows 20000 --rounds 1 --pushes 10",
    "shard": "",
    "sorts": "--rows 20000 --rounds 1 --pushes 10",
    "window_aggregates": "--rows 20000 --groups 10 --rounds 1",
    "windows": "--rows 20000 --groups 10 --rounds 1",
}


@pytest.mark.parametrize("name", SMALLEST)
def test_a_benchmark_runs(name, monkeypatch, capsys):
    main = runpy.run_path(str(BENCHMARKS / f"{name}.py"))["main"]
    if name == "shard":
        monkeypatch.setitem(main.__globals__, "EVENTS", 1_000)
        monkeypatch.setitem(main.__globals__, "ROUNDS", 2)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *SMALLEST[name].split()])
    main()
    told = capsys.readouterr().out
    assert any(character.isdigit() for character in told)
