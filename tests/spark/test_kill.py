"""A query that is killed with SIGKILL in the middle of a micro-batch goes on as if nothing had happened."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
from element_rows import element_rows, meant_by, named, pieces, relation_of

from anabranch import Case, Insert, difference
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape

QUERY = Path(__file__).with_name("killed_query.py")


def run(folder: Path, where: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(QUERY), str(folder), where]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def finish(folder: Path) -> None:
    done = run(folder, "never")
    assert done.returncode == 0, done.stderr


def rows_of(folder: Path) -> list[str]:
    tables = [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]
    return sorted(str(row) for table in tables for row in table.to_pylist())


def test_killed_before_and_after_the_state_was_written_and_run_twice(tmp_path):
    random = Random(11)
    _, copies = replicas(random, 2, case=Case.R3, shape=Shape(events=40, payloads=15, horizon=60))
    copies = named(copies)
    copies = [[Insert({"value": "kill me"}, 0, 5), *copy] for copy in copies]
    cut = {name: pieces(random, copy, 4) for name, copy in zip("ab", copies, strict=True)}
    (tmp_path / "in").mkdir()
    done = dict.fromkeys(cut, 0)
    for number in range(4):
        tables = []
        for name, parts in cut.items():
            table = element_rows(parts[number], name)
            numbers = pa.array(range(done[name], done[name] + len(table)))
            done[name] += len(table)
            tables.append(table.append_column("n", numbers))
        file = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(pa.concat_tables(tables), file)
        os.utime(file, (1_700_000_000 + number,) * 2)  # Spark reads files by their age

    assert run(tmp_path, "before").returncode
    assert (tmp_path / "killed-before").exists()
    assert run(tmp_path, "after").returncode
    assert (tmp_path / "killed-after").exists()
    finish(tmp_path)
    assert not list((tmp_path / "out").glob("_quarantine/*"))
    written = rows_of(tmp_path / "out")
    assert difference(relation_of(tmp_path / "out"), meant_by(copies[0])) is None
    assert len(written) == len(set(written)), "no row is there twice"

    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    for file in commits.glob(f"*{last}*"):
        file.unlink()
    finish(tmp_path)
    assert rows_of(tmp_path / "out") == written, "a micro-batch that runs again replaces its own files"
