"""Every benchmark that needs no JVM, no broker and no peer runs, at its smallest, and prints figures."""

import importlib
import sys

import pytest

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
    module = importlib.import_module(name)
    if name == "shard":
        monkeypatch.setattr(module, "EVENTS", 1_000)
        monkeypatch.setattr(module, "ROUNDS", 2)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", *SMALLEST[name].split()])
    module.main()
    told = capsys.readouterr().out
    assert any(character.isdigit() for character in told)
